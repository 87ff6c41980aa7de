//! Stores that have been renamed and not reached the cache: where loads look
//! before they go there.

/// One store.
#[derive(Clone, Copy, Default, Debug)]
pub struct Store {
    pub addr: u32,
    pub bytes: u32,
    /// Its address is known from here on.
    pub address: u64,
    /// Its data starts.
    pub data: u64,
    /// It is in the cache.
    pub drained: u64,
}

/// What a load finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// No store has any of its bytes.
    Nothing,
    /// One has all of them: its data's start, its address's time.
    Whole { data: u64, address: u64 },
    /// One has some: the time when it is in the cache, its address's time.
    Part { drained: u64, address: u64 },
}

/// The store buffer, a ring, with a filter in front of it: for each of some
/// hundred word addresses, the number of the last store to such a word.
pub struct Stores {
    ring: Vec<Store>,
    count: u64,
    filter: Vec<u64>,
}

const FILTER: usize = 1024;

impl Stores {
    pub fn new(buffers: u32) -> Stores {
        Stores { ring: vec![Store::default(); buffers.max(1) as usize], count: 0, filter: vec![0; FILTER] }
    }

    /// When the place that the next store needs is free.
    pub fn free(&self) -> u64 {
        self.ring[self.count as usize % self.ring.len()].drained
    }

    /// The time at which the last store is in the cache.
    pub fn last_drained(&self) -> u64 {
        match self.count {
            0 => 0,
            n => self.ring[(n - 1) as usize % self.ring.len()].drained,
        }
    }

    pub fn push(&mut self, store: Store) {
        let at = self.count as usize % self.ring.len();
        self.ring[at] = store;
        self.count += 1;
        for word in store.addr >> 2..=(store.addr.wrapping_add(store.bytes - 1)) >> 2 {
            self.filter[word as usize % FILTER] = self.count;
        }
    }

    /// The youngest store that has bytes of a load which starts at `start`.
    #[inline(always)]
    pub fn find(&self, addr: u32, bytes: u32, start: u64) -> Found {
        let oldest = self.count.saturating_sub(self.ring.len() as u64);
        let (a, b) = (addr >> 2, addr.wrapping_add(bytes - 1) >> 2);
        if self.filter[a as usize % FILTER] <= oldest && self.filter[b as usize % FILTER] <= oldest {
            return Found::Nothing;
        }
        self.search(addr, bytes, start, oldest)
    }

    fn search(&self, addr: u32, bytes: u32, start: u64, oldest: u64) -> Found {
        for n in (oldest..self.count).rev() {
            let s = &self.ring[n as usize % self.ring.len()];
            if s.drained <= start {
                break;
            }
            let (from, to) = (u64::from(addr), u64::from(addr) + u64::from(bytes));
            let (first, last) = (u64::from(s.addr), u64::from(s.addr) + u64::from(s.bytes));
            if first <= from && to <= last {
                return Found::Whole { data: s.data, address: s.address };
            }
            if first < to && from < last {
                return Found::Part { drained: s.drained, address: s.address };
            }
        }
        Found::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_youngest_store_that_is_not_in_the_cache() {
        let mut s = Stores::new(2);
        let store = |addr, bytes, data, drained| Store { addr, bytes, address: data, data, drained };
        s.push(store(0x100, 4, 5, 20));
        s.push(store(0x102, 1, 7, 30));
        assert_eq!(s.find(0x100, 2, 10), Found::Whole { data: 5, address: 5 });
        assert_eq!(s.find(0x100, 4, 10), Found::Part { drained: 30, address: 7 });
        assert_eq!(s.find(0x102, 1, 10), Found::Whole { data: 7, address: 7 });
        assert_eq!(s.find(0x100, 2, 20), Found::Nothing);
        assert_eq!(s.find(0x104, 4, 10), Found::Nothing);
        assert_eq!((s.free(), s.last_drained()), (20, 30));
        s.push(store(0x200, 4, 9, 40));
        assert_eq!(s.find(0x100, 2, 10), Found::Nothing);
    }
}
