//! What the core asks of what it does not own: addresses, caches, predictors.
//!
//! How the pipeline goes on depends on its own state and on the answers to
//! these questions, and on nothing else. So every question goes through
//! [`Pipeline::ask`], which lets the memo write them down, and ask them again
//! when it knows what the pipeline will do between them.

use super::asked::Quiet;
use super::{Access, Pipeline};
use crate::mem::Level;
use crate::mem::stores::{Overlap, Seen};

/// A question, or something done to what is outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Question {
    /// When does the line of an address come into the instruction cache?
    Line { addr: u32 },
    /// It was wrong to pass; it need not have waited.
    Passed { pc: u32, wrong: bool },
    /// Which store has, or seems to have, bytes of this access, and may the load of this
    /// instruction pass stores whose addresses are unknown?
    Load { pc: u32, access: u16 },
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
}

impl Data {
    fn pack(self) -> Answer {
        self.later << 4 | (self.level as u64) << 2 | u64::from(self.translated) << 1 | u64::from(self.crosses)
    }

    #[inline(always)]
    pub(super) fn unpack(a: Answer) -> Data {
        let level = match a >> 2 & 3 {
            0 => Level::First,
            1 => Level::Second,
            _ => Level::Memory,
        };
        Data { later: a >> 4, level, translated: a & 2 != 0, crosses: a & 1 != 0 }
    }
}

/// A load's answer about what is older.
#[derive(Clone, Copy, Default)]
pub(super) struct Older {
    pub(super) seen: Seen,
    pub(super) passes: bool,
}

impl Older {
    fn pack(self) -> Answer {
        let overlap = self.seen.overlap.map_or(0, |o| u64::from(o.younger) << 2 | u64::from(o.whole) << 1 | 1);
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
        Older { seen: Seen { overlap, alias }, passes }.pack()
    }

    #[inline(always)]
    pub(super) fn unpack(a: Answer) -> Older {
        let (low, alias) = (a as u32 & 0xffff, (a >> 16) as u32);
        let overlap = (low & 2 != 0).then_some(Overlap { younger: low >> 3, whole: low & 4 != 0 });
        Older { seen: Seen { overlap, alias: alias.checked_sub(1) }, passes: a & 1 != 0 }
    }
}

impl Pipeline {
    /// Ask, in a cycle, and write it down where that is wanted.
    #[inline(always)]
    pub(super) fn ask(&mut self, question: Question, at: u64, accesses: &[Access]) -> Answer {
        if !self.memo.listens {
            return self.answer(question, at, accesses);
        }
        if let Some(answer) = self.memo.known() {
            return answer;
        }
        let answer = self.answer(question, at, accesses);
        self.memo.note(question, at, answer);
        answer
    }

    /// An access that took no time is as it was. If not, nothing has been done.
    #[inline(always)]
    pub(super) fn still_quiet(&mut self, was: &Quiet, at: u64, accesses: &[Access]) -> bool {
        let Access { addr, bytes } = accesses[usize::from(was.access)];
        if !was.write && (self.passes(was.pc) != was.passes || !self.stores.far(addr, bytes, was.still)) {
            return false;
        }
        if !self.memory.quiet(was.pc, addr, bytes, at, was.write) {
            return false;
        }
        if was.write {
            self.stores.push(addr, bytes);
        }
        true
    }

    /// The answer, from what is outside as it is now; it may change by being asked.
    #[inline(always)]
    pub(super) fn answer(&mut self, question: Question, at: u64, accesses: &[Access]) -> Answer {
        match question {
            Question::Line { addr } => self.memory.fetch(addr, at) - at,
            Question::Passed { pc, wrong } => {
                let entry = self.wait_at(pc);
                self.waits[entry] = if wrong { 15 } else { self.waits[entry].saturating_sub(1) };
                0
            }
            Question::Load { pc, access } => {
                let Access { addr, bytes } = accesses[usize::from(access)];
                Older { seen: self.stores.seen(addr, bytes), passes: self.passes(pc) }.pack()
            }
            Question::Data { pc, access, write } => {
                let Access { addr, bytes } = accesses[usize::from(access)];
                let got = self.memory.data(pc, addr, at, write);
                let last = addr.wrapping_add(bytes - 1);
                let crosses = self.memory.line(last) != self.memory.line(addr);
                let mut start = got.start;
                if crosses {
                    start = start.max(self.memory.data(pc, last, at, write).start);
                }
                if write {
                    self.stores.push(addr, bytes);
                }
                Data { later: start - at, level: got.level, translated: got.translation > 0, crosses }.pack()
            }
            Question::Jump { number, taken } => self.judge(number, taken),
            Question::Target { pc } => {
                let known = self.btb.knows(pc);
                self.tally.btb += u64::from(!known);
                u64::from(known)
            }
            Question::Guess { number } => {
                let inst = &self.code.insts[number as usize];
                u64::from(self.direction.guess(inst.addr >> self.pc_shift, inst.target <= number))
            }
        }
    }

    /// What predictors and prefetchers know an instruction by.
    pub(super) fn pc(&self, number: u32) -> u32 {
        self.code.insts[number as usize].addr >> self.pc_shift
    }

    /// May a load pass stores whose addresses are unknown?
    #[inline(always)]
    fn passes(&self, pc: u32) -> bool {
        !self.waits.is_empty() && self.waits[self.wait_at(pc)] == 0
    }

    fn wait_at(&self, pc: u32) -> usize {
        pc as usize & (self.waits.len() - 1)
    }
}
