//! What can be asked of what the core does not own, and the answers, as numbers.

use crate::mem::Level;
use crate::mem::stores::{Overlap, StoreMatch};

/// A question, or something done to what is outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Question {
    /// When does the line of an address come into the instruction cache? Above one bit that says whether the op cache
    /// has missed it.
    Line { addr: u32 },
    /// It was wrong to pass; it need not have waited.
    Passed { pc: u32, wrong: bool },
    /// Which store has, or seems to have, bytes of this access, and may the load of this
    /// instruction pass stores whose addresses are unknown?
    Load { pc: u32, access: u16 },
    /// Has the load of this instruction its value from the store with so many younger ones where registers are
    /// renamed?
    Renames { pc: u32, younger: u8 },
    /// Is the load of this instruction taken to read a store that it does not read?
    Misnamed { number: u32 },
    /// When is this access's line in the data cache, and where was it?
    Data { pc: u32, access: u16, write: bool },
    /// What was guessed of this jump, which was taken or not?
    Jump { number: u32, taken: bool },
    /// Does the branch target buffer know it?
    Target { pc: u32 },
    /// What would be guessed of this branch on a wrong path?
    Guess { number: u32 },
}

/// An answer; cycles in it count from the question's.
pub(super) type Answer = u64;

/// A load or store's answer.
#[derive(Clone, Copy)]
pub(super) struct Data {
    pub(super) later: u64,
    pub(super) level: Level,
    pub(super) translated: bool,
    /// It lies in two lines.
    pub(super) crosses: bool,
    /// A store: in another line than the one before, where that matters.
    pub(super) apart: bool,
}

impl Data {
    pub(super) fn pack(self) -> Answer {
        let level = (self.level as u64) << 2;
        self.later << 5 | u64::from(self.apart) << 4 | level | u64::from(self.translated) << 1 | u64::from(self.crosses)
    }

    #[inline(always)]
    pub(super) fn unpack(a: Answer) -> Data {
        let level = match a >> 2 & 3 {
            0 => Level::First,
            1 => Level::Second,
            _ => Level::Memory,
        };
        Data { later: a >> 5, level, translated: a & 2 != 0, crosses: a & 1 != 0, apart: a & 16 != 0 }
    }
}

/// A load's answer about what is older.
#[derive(Clone, Copy, Default)]
pub(super) struct Older {
    pub(super) seen: StoreMatch,
    pub(super) passes: bool,
}

impl Older {
    pub(super) fn pack(self) -> Answer {
        let bits = |o: Overlap| u64::from(o.younger) << 3 | u64::from(o.first) << 2 | u64::from(o.whole) << 1 | 1;
        let overlap = self.seen.overlap.map_or(0, bits);
        let alias = self.seen.alias.map_or(0, |younger| u64::from(younger) + 1);
        alias << 16 | overlap << 1 | u64::from(self.passes)
    }

    /// The same about so many of the youngest stores only.
    #[inline(always)]
    pub(super) fn within(a: Answer, stores: u32) -> Answer {
        if a <= 1 {
            return a;
        }
        let Older { seen, passes } = Older::unpack(a);
        let overlap = seen.overlap.filter(|o| o.younger < stores);
        let alias = seen.alias.filter(|&younger| younger < stores);
        Older { seen: StoreMatch { overlap, alias }, passes }.pack()
    }

    #[inline(always)]
    pub(super) fn unpack(a: Answer) -> Older {
        let (low, alias) = (a as u32 & 0xffff, (a >> 16) as u32);
        let overlap = (low & 2 != 0).then_some(Overlap { younger: low >> 4, whole: low & 4 != 0, first: low & 8 != 0 });
        Older { seen: StoreMatch { overlap, alias: alias.checked_sub(1) }, passes: a & 1 != 0 }
    }
}
