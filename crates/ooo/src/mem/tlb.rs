//! Translation buffers: what an access waits for its page's address.

use super::tags::Tags;
use ciphermill_machine::Replacement;
use ciphermill_machine::core::Dtlb as Model;

/// One or two buffers, the second asked where the first does not know.
pub struct Tlb {
    shift: u32,
    first: Tags,
    second: Option<Tags>,
    second_cycles: u32,
    walk_cycles: u32,
    last: u64,
    /// Accesses whose page neither knew.
    pub walks: u64,
}

impl Tlb {
    pub fn new(model: &Model) -> Tlb {
        let tags = |entries: u32, ways: u32| Tags::new(entries / ways.max(1), ways, Replacement::Lru);
        Tlb {
            shift: model.page_bytes.trailing_zeros(),
            first: tags(model.entries, model.ways),
            second: (model.l2_entries > 0).then(|| tags(model.l2_entries, model.l2_ways)),
            second_cycles: model.l2_cycles,
            walk_cycles: model.walk_cycles,
            last: u64::MAX,
            walks: 0,
        }
    }

    /// Does an access to an address wait for nothing? Then it has been made; if not, nothing has
    /// been done.
    #[inline(always)]
    pub fn knows(&mut self, addr: u64) -> bool {
        let page = addr >> self.shift;
        if page == self.last {
            return true;
        }
        let known = self.first.find(page, false).is_some();
        if known {
            self.last = page;
        }
        known
    }

    /// Cycles that an access to an address waits.
    #[inline(always)]
    pub fn access(&mut self, addr: u64) -> u64 {
        let page = addr >> self.shift;
        if page == self.last {
            return 0;
        }
        self.last = page;
        if self.first.find(page, false).is_some() { 0 } else { self.miss(page) }
    }

    fn miss(&mut self, page: u64) -> u64 {
        self.first.fill(page, 0, false);
        if let Some(second) = &mut self.second {
            if second.find(page, false).is_some() {
                return u64::from(self.second_cycles);
            }
            second.fill(page, 0, false);
        }
        self.walks += 1;
        u64::from(self.walk_cycles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_levels() {
        let model =
            Model { page_bytes: 4096, entries: 2, ways: 2, l2_entries: 8, l2_ways: 4, l2_cycles: 2, walk_cycles: 30 };
        let mut t = Tlb::new(&model);
        let page = |n: u64| n * 4096;
        assert_eq!([0, 0, 1, 2, 0].map(|n| t.access(page(n))), [30, 0, 30, 30, 2]);
        assert_eq!(t.walks, 3);
    }
}
