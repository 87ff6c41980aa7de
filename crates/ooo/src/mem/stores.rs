//! Stores that have been renamed and not reached the cache: where loads look
//! before they go there.

use crate::words::{Reader, Writer};

/// One store's times.
#[derive(Clone, Copy, Default, Debug)]
pub struct Store {
    /// Its address is known from here on.
    pub address: u64,
    /// Its data starts.
    pub data: u64,
    /// It is in the cache.
    pub drained: u64,
}

/// What a load finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forwarding {
    /// No store has any of its bytes.
    Nothing,
    /// One has all of them: its data's start, its address's time.
    Whole { data: u64, address: u64 },
    /// One has some: the time when it is in the cache, its address's time.
    Part { drained: u64, address: u64 },
}

/// The youngest of the stores that could still be on their way which has bytes
/// of a load: how many are younger, and whether it has all of them. Which it
/// is depends on addresses alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overlap {
    pub younger: u32,
    pub whole: bool,
    /// It begins where the load does, which has enough bytes to be renamed.
    pub first: bool,
}

/// What of a load's address can be told from older stores alone.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StoreMatch {
    pub overlap: Option<Overlap>,
    /// How many are younger than the youngest that only seems to have bytes of it; none when one
    /// that is younger still has some.
    pub alias: Option<u32>,
}

/// The store buffer: addresses and times each in a ring, because addresses are
/// known of stores whose times have yet to be worked out. In front of it stands a filter: for each of some
/// thousand word addresses, how many stores there were when the last one to such a word came.
pub struct Stores {
    /// Address, bytes, and what its instruction is known by.
    places: Vec<(u32, u32, u32)>,
    times: Vec<Store>,
    /// Entries that count, the last so many.
    buffers: u64,
    /// Lower bits of addresses that are compared first; no bit: all at once.
    low: u32,
    /// Bytes that a renamed load has at least.
    renamed: u32,
    /// Stores so far, and those of them that have times.
    pushed: u64,
    settled: u64,
    filter: Box<[u64; FILTER]>,
}

const FILTER: usize = 1024;

impl Stores {
    /// So many of them; addresses `alias_bytes` apart seem to be the same (0: none do); loads of `renamed` bytes
    /// can be renamed.
    pub fn new(buffers: u32, alias_bytes: u32, renamed: u32) -> Stores {
        let buffers = buffers.max(1);
        let len = buffers.next_power_of_two() as usize;
        Stores {
            places: vec![(0, 1, 0); len],
            times: vec![Store::default(); len],
            buffers: u64::from(buffers),
            low: alias_bytes.saturating_sub(1),
            renamed,
            pushed: 0,
            settled: 0,
            filter: Box::new([0; FILTER]),
        }
    }

    #[inline(always)]
    fn at(&self, number: u64) -> usize {
        number as usize & (self.times.len() - 1)
    }

    /// Stores so far.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// When the place that the next store needs is free.
    pub fn free(&self) -> u64 {
        match self.settled.checked_sub(self.buffers) {
            Some(n) => self.times[self.at(n)].drained,
            None => 0,
        }
    }

    /// The time at which the last store is in the cache.
    pub fn last_drained(&self) -> u64 {
        match self.settled {
            0 => 0,
            n => self.times[self.at(n - 1)].drained,
        }
    }

    /// The first cycle in which one more store can reach the cache, where so many do in a cycle, which is not the
    /// last one's where it is `apart`: they reach it in order.
    pub fn next_commit(&self, commits: u32, apart: bool) -> u64 {
        let last = self.last_drained();
        if apart {
            return last + 1;
        }
        let most = u64::from(commits).min(self.buffers).min(self.settled);
        let together = (1..=most).take_while(|&n| self.times[self.at(self.settled - n)].drained == last).count() as u64;
        last + u64::from(together >= u64::from(commits))
    }

    /// A store's address, in program order; its times come with [`Stores::settle`].
    #[inline(always)]
    pub fn push(&mut self, pc: u32, addr: u32, bytes: u32) {
        let at = self.at(self.pushed);
        self.places[at] = (addr, bytes, pc);
        self.pushed += 1;
        for word in addr >> 2..=(addr.wrapping_add(bytes - 1)) >> 2 {
            self.filter[word as usize % FILTER] = self.pushed;
        }
    }

    /// The address of the last store pushed.
    pub fn last(&self) -> u32 {
        self.places[self.at(self.pushed.wrapping_sub(1))].0
    }

    /// What the instruction of a store pushed is known by, of which so many are younger.
    pub fn pc(&self, younger: u32) -> u32 {
        self.places[self.at(self.pushed.wrapping_sub(1 + u64::from(younger)))].2
    }

    /// The times of the next store.
    pub fn settle(&mut self, store: Store) {
        let at = self.at(self.settled);
        self.times[at] = store;
        self.settled += 1;
    }

    /// How many stores there were when the last one came that can have, or seem to have, one of
    /// these bytes: it has been to one of their words here.
    #[inline(always)]
    fn youngest(&self, addr: u32, bytes: u32) -> u64 {
        let last = |word: u32| self.filter[word as usize % FILTER];
        let (a, b) = (addr >> 2, addr.wrapping_add(bytes - 1) >> 2);
        let ends = if a == b { last(a) } else { last(a).max(last(b)) };
        if bytes > 4 { ends.max(last(a.wrapping_add(1))) } else { ends }
    }

    /// The youngest of the stores pushed which has bytes of a load, and one that seems to.
    #[inline(always)]
    pub fn seen(&self, addr: u32, bytes: u32) -> StoreMatch {
        let oldest = self.pushed.saturating_sub(self.buffers);
        let youngest = self.youngest(addr, bytes);
        if youngest <= oldest {
            return StoreMatch::default();
        }
        self.search(addr, bytes, oldest, youngest)
    }

    /// None of the last so many stores can have, or seem to have, one of these bytes.
    #[inline(always)]
    pub fn far(&self, addr: u32, bytes: u32, stores: u32) -> bool {
        self.youngest(addr, bytes) <= self.pushed.saturating_sub(u64::from(stores))
    }

    /// The same among the stores from the number `oldest` on, of which there are `youngest`.
    fn search(&self, addr: u32, bytes: u32, oldest: u64, youngest: u64) -> StoreMatch {
        let (from, to) = (u64::from(addr), u64::from(addr) + u64::from(bytes));
        let mut alias = None;
        for n in (oldest..youngest).rev() {
            let (stored, size, _) = self.places[self.at(n)];
            let (first, last) = (u64::from(stored), u64::from(stored) + u64::from(size));
            let younger = (self.pushed - 1 - n) as u32;
            if first < to && from < last {
                let whole = first <= from && to <= last;
                let first = whole && stored == addr && bytes >= self.renamed;
                return StoreMatch { overlap: Some(Overlap { younger, whole, first }), alias };
            }
            let meets = stored.wrapping_sub(addr) & self.low < bytes || addr.wrapping_sub(stored) & self.low < size;
            if self.low > 0 && meets && alias.is_none() {
                alias = Some(younger);
            }
        }
        StoreMatch { overlap: None, alias }
    }

    /// A load that starts at `start` waits for a store that only seems to have bytes of it
    /// until this cycle, if that store's address was known by then.
    pub fn blocked(&self, alias: Option<u32>, start: u64) -> Option<u64> {
        let s = &self.times[self.at(self.settled.wrapping_sub(1 + u64::from(alias?)))];
        (s.address <= start && s.drained > start).then_some(s.drained)
    }

    /// Stores that are not in the cache in a cycle; the youngest of all, as they go there in order.
    pub fn under_way(&self, at: u64) -> u32 {
        let youngest = 1..=self.buffers.min(self.settled);
        youngest.take_while(|&n| self.times[self.at(self.settled - n)].drained > at).count() as u32
    }

    /// What a load that starts at `start` finds of it.
    #[inline(always)]
    pub fn find(&self, overlap: Option<Overlap>, start: u64) -> Forwarding {
        let Some(overlap) = overlap else { return Forwarding::Nothing };
        let s = &self.times[self.at(self.settled.wrapping_sub(1 + u64::from(overlap.younger)))];
        match overlap.whole {
            // Stores reach the cache in order: whatever is older has too.
            _ if s.drained <= start => Forwarding::Nothing,
            true => Forwarding::Whole { data: s.data, address: s.address },
            false => Forwarding::Part { drained: s.drained, address: s.address },
        }
    }

    /// Write down the times of stores that are on their way in cycle `now`. No load starts before cycle `starts` or asks
    /// before cycle `data` whether data is there; no store retires before `retired`, and the next one but `k` is renamed
    /// in cycle `taken(k)` or later.
    pub fn save(
        &self,
        w: &mut Writer,
        (now, starts, data): (u64, u64, u64),
        retired: u64,
        taken: impl Fn(usize) -> u64,
    ) {
        // The place of the next store but `k` is that of the store `buffers` before it.
        let oldest = self.settled.wrapping_sub(self.buffers);
        let past = |n: u64| {
            // Later than this it would hide something from a load, or make the next one wait for the cache.
            let s = &self.times[self.at(n)];
            s.drained <= starts.min(retired.max(now)) && s.drained < taken(n.wrapping_sub(oldest) as usize)
        };
        let mut from = self.settled.saturating_sub(self.buffers);
        while from < self.settled && past(from) {
            from += 1;
        }
        w.number(self.settled - from);
        for n in from..self.settled {
            let s = &self.times[self.at(n)];
            w.after(s.drained, now);
            let seen = s.drained > starts;
            w.after(if seen { s.address } else { 0 }, starts);
            w.after(if seen { s.data } else { 0 }, data);
        }
    }

    /// Set the times up again, for another cycle, after so many stores.
    pub fn restore(&mut self, r: &mut Reader<'_>, (now, starts, data): (u64, u64, u64), settled: u64) {
        self.settled = settled;
        self.times.fill(Store { address: 0, data: 0, drained: now.saturating_sub(1) });
        let count = r.number();
        for n in settled.saturating_sub(count)..settled {
            let at = self.at(n);
            self.times[at] = Store { drained: r.after(now), address: r.after(starts), data: r.after(data) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_youngest_store_that_is_not_in_the_cache() {
        let mut s = Stores::new(2, 0, 4);
        let store = |addr, bytes, data, drained| (addr, bytes, Store { address: data, data, drained });
        let push = |s: &mut Stores, (addr, bytes, times)| {
            s.push(0, addr, bytes);
            s.settle(times);
        };
        let find = |s: &Stores, addr, bytes, start| s.find(s.seen(addr, bytes).overlap, start);
        push(&mut s, store(0x100, 4, 5, 20));
        push(&mut s, store(0x102, 1, 7, 30));
        assert_eq!(find(&s, 0x100, 2, 10), Forwarding::Whole { data: 5, address: 5 });
        assert_eq!(find(&s, 0x100, 4, 10), Forwarding::Part { drained: 30, address: 7 });
        assert_eq!(find(&s, 0x102, 1, 10), Forwarding::Whole { data: 7, address: 7 });
        assert_eq!(find(&s, 0x100, 2, 20), Forwarding::Nothing);
        assert_eq!(find(&s, 0x104, 4, 10), Forwarding::Nothing);
        assert_eq!((s.free(), s.last_drained()), (20, 30));
        push(&mut s, store(0x200, 4, 9, 40));
        assert_eq!(find(&s, 0x100, 2, 10), Forwarding::Nothing);
    }

    #[test]
    fn a_store_a_page_away_seems_to_be_the_one() {
        let mut s = Stores::new(4, 4096, 4);
        let push = |s: &mut Stores, addr, address, drained| {
            s.push(0, addr, 4);
            s.settle(Store { address, data: address, drained });
        };
        push(&mut s, 0x3100, 5, 20);
        push(&mut s, 0x1100, 6, 30);
        push(&mut s, 0x1204, 7, 40);
        // The youngest that seems to have its bytes; none of its own.
        let seen = s.seen(0x2103, 2);
        assert_eq!(seen, StoreMatch { overlap: None, alias: Some(1) });
        assert_eq!([5, 6, 29, 30].map(|at| s.blocked(seen.alias, at)), [None, Some(30), Some(30), None]);
        assert_eq!(s.seen(0x2104, 4), StoreMatch::default());
        // One that has them hides what is older; what is younger hides nothing of it.
        assert_eq!(
            s.seen(0x1100, 4),
            StoreMatch { overlap: Some(Overlap { younger: 1, whole: true, first: true }), alias: None }
        );
        assert_eq!(
            s.seen(0x3100, 4),
            StoreMatch { overlap: Some(Overlap { younger: 2, whole: true, first: true }), alias: Some(1) }
        );
    }

    #[test]
    fn a_store_within_a_load_is_seen_and_counted_from_the_youngest() {
        let mut s = Stores::new(4, 0, 4);
        let mut push = |addr, bytes| {
            s.push(0, addr, bytes);
            s.settle(Store::default());
        };
        // In the middle of the three words that eight bytes at 0x102 lie in; then one elsewhere.
        push(0x104, 4);
        push(0x200, 4);
        let seen = StoreMatch { overlap: Some(Overlap { younger: 1, whole: false, first: false }), alias: None };
        assert_eq!(s.seen(0x102, 8), seen);
        assert_eq!([1, 2].map(|stores| s.far(0x102, 8, stores)), [true, false]);
        assert!(s.far(0x108, 8, 4));
    }
}
