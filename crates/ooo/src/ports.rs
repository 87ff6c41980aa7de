//! Which port is taken in which cycle, and how many micro-operations wait.
//!
//! Micro-operations are placed in program order, each in the first cycle from
//! which on it could start and a port of its set is free. An older one is
//! placed before any younger one looks, so whenever two compete for a port the
//! older one gets it: what a scheduler that picks the oldest does. (Where a port
//! is taken for several cycles, an older micro-operation that becomes ready
//! within them would find it taken in hardware; here the younger one goes
//! behind it.)
//!
//! Cycles before the one in which renaming stands are forgotten; the calendar
//! is a ring that grows when something starts further ahead than it reaches.

use crate::words::{Reader, Writer};

/// The calendar.
pub struct Calendar {
    /// Ports taken, by cycle.
    taken: Vec<u32>,
    /// Micro-operations that leave the reservation stations, by cycle.
    leaving: Vec<u16>,
    mask: usize,
    /// The cycle up to which everything has been forgotten.
    now: u64,
    /// Nothing is written behind this cycle.
    last: u64,
    /// In the reservation stations at `now`.
    pub waiting: u32,
    /// Starts on each port since the start.
    pub starts: [u64; 32],
    /// With ports bound at rename: those waiting for each, and when they go.
    pending: Option<Box<Pending>>,
}

struct Pending {
    count: [u32; 32],
    starting: Vec<u32>,
}

impl Calendar {
    /// An empty one, with ports chosen at rename or at start.
    pub fn new(binds: bool) -> Calendar {
        let len = 1 << 10;
        let pending = binds.then(|| Box::new(Pending { count: [0; 32], starting: vec![0; len] }));
        Calendar {
            taken: vec![0; len],
            leaving: vec![0; len],
            mask: len - 1,
            now: 0,
            last: 0,
            waiting: 0,
            starts: [0; 32],
            pending,
        }
    }

    /// Make it reach a cycle.
    #[inline(always)]
    fn reach(&mut self, cycle: u64) {
        if cycle.saturating_sub(self.now) >= self.taken.len() as u64 {
            self.grow(cycle);
        }
    }

    #[cold]
    fn grow(&mut self, cycle: u64) {
        let old = self.taken.len();
        let len = ((cycle - self.now) as usize + 1).next_power_of_two();
        let (mut taken, mut leaving, mut starting) = (vec![0; len], vec![0; len], vec![0; len]);
        for t in self.now..self.now + old as u64 {
            let (from, to) = (t as usize & (old - 1), t as usize & (len - 1));
            (taken[to], leaving[to]) = (self.taken[from], self.leaving[from]);
            if let Some(p) = &self.pending {
                starting[to] = p.starting[from];
            }
        }
        (self.taken, self.leaving, self.mask) = (taken, leaving, len - 1);
        if let Some(p) = &mut self.pending {
            p.starting = starting;
        }
    }

    /// Renaming has come to this cycle.
    #[inline(always)]
    pub fn advance(&mut self, to: u64) {
        while self.now < to {
            self.step();
        }
    }

    /// To the next cycle.
    #[inline(always)]
    pub fn step(&mut self) {
        let at = self.now as usize & self.mask;
        self.waiting -= u32::from(self.leaving[at]);
        self.leaving[at] = 0;
        self.taken[at] = 0;
        if let Some(p) = &mut self.pending {
            let mut set = std::mem::take(&mut p.starting[at]);
            while set != 0 {
                p.count[set.trailing_zeros() as usize] -= 1;
                set &= set - 1;
            }
        }
        self.now += 1;
    }

    /// The cycle it has come to.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Forget everything and go on at a cycle.
    pub fn restart(&mut self, at: u64) {
        self.taken.fill(0);
        self.leaving.fill(0);
        self.waiting = 0;
        (self.now, self.last) = (at, at);
        if let Some(p) = &mut self.pending {
            p.count = [0; 32];
            p.starting.fill(0);
        }
    }

    /// Do choices depend on nothing but what is under way? Not where the
    /// least used of several ports is taken.
    pub fn forgets(&self, classes: &[u32]) -> bool {
        self.pending.is_some() || classes.iter().all(|c| c.count_ones() <= 1)
    }

    /// Write down all that is under way.
    pub fn save(&self, w: &mut Writer) {
        let at = w.words.len();
        w.number(0);
        let mut count = 0;
        for t in self.now..=self.last {
            let i = t as usize & self.mask;
            let starting = self.pending.as_ref().map_or(0, |p| p.starting[i]);
            if self.taken[i] != 0 || self.leaving[i] != 0 {
                w.after(t, self.now);
                w.number(u64::from(self.taken[i]));
                w.number(u64::from(self.leaving[i]));
                w.number(u64::from(starting));
                count += 1;
            }
        }
        w.words[at] = count;
    }

    /// Set it up again, at another cycle.
    pub fn restore(&mut self, r: &mut Reader<'_>, now: u64) {
        for t in self.now..=self.last {
            let i = t as usize & self.mask;
            (self.taken[i], self.leaving[i]) = (0, 0);
            if let Some(p) = &mut self.pending {
                p.starting[i] = 0;
            }
        }
        if let Some(p) = &mut self.pending {
            p.count = [0; 32];
        }
        (self.now, self.last, self.waiting) = (now, now, 0);
        for _ in 0..r.number() {
            let t = r.after(now);
            self.reach(t);
            let i = t as usize & self.mask;
            self.taken[i] = r.number() as u32;
            self.leaving[i] = r.number() as u16;
            self.waiting += u32::from(self.leaving[i]);
            let starting = r.number() as u32;
            if let Some(p) = &mut self.pending {
                p.starting[i] = starting;
                (0..32).for_each(|port| p.count[port] += starting >> port & 1);
            }
            self.last = t;
        }
    }

    /// The set that is left once a port is chosen at rename.
    #[inline(always)]
    pub fn bind(&self, ports: u32) -> u32 {
        let Some(p) = &self.pending else { return ports };
        self.fewest(ports, |i| u64::from(p.count[i]))
    }

    fn fewest(&self, ports: u32, of: impl Fn(usize) -> u64) -> u32 {
        let mut set = ports;
        let (mut best, mut least) = (ports, u64::MAX);
        while set != 0 {
            let i = set.trailing_zeros() as usize;
            if of(i) < least {
                (best, least) = (1 << i, of(i));
            }
            set &= set - 1;
        }
        best
    }

    /// The first cycle from `from` on in which one of the ports is free.
    #[inline(always)]
    pub fn find(&mut self, ports: u32, busy: u16, from: u64) -> (u64, u32) {
        let mut t = from;
        loop {
            self.reach(t + u64::from(busy));
            let mut free = ports & !self.taken[t as usize & self.mask];
            for later in 1..u64::from(busy) {
                free &= !self.taken[(t + later) as usize & self.mask];
            }
            if free != 0 {
                // Of several that are free the one that was used least.
                let one = if free & (free - 1) == 0 { free } else { self.fewest(free, |i| self.starts[i]) };
                return (t, one);
            }
            t += 1;
        }
    }

    /// Take what was found. It leaves its reservation station then.
    #[inline(always)]
    pub fn take(&mut self, port: u32, busy: u16, at: u64) {
        for t in at..at + u64::from(busy) {
            self.taken[t as usize & self.mask] |= port;
        }
        self.last = self.last.max(at + u64::from(busy));
        self.starts[port.trailing_zeros() as usize & 31] += 1;
        self.leaving[at as usize & self.mask] += 1;
        self.waiting += 1;
        if let Some(p) = &mut self.pending {
            p.count[port.trailing_zeros() as usize & 31] += 1;
            p.starting[at as usize & self.mask] |= port;
        }
    }

    /// Something waits until `at` and never starts.
    pub fn wait_until(&mut self, at: u64) {
        self.reach(at);
        self.last = self.last.max(at);
        self.leaving[at as usize & self.mask] += 1;
        self.waiting += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_one_first_and_the_least_used_port() {
        let mut c = Calendar::new(false);
        let (t, p) = c.find(0b011, 1, 5);
        assert_eq!((t, p), (5, 0b001));
        c.take(p, 1, t);
        // The second one in the same cycle takes the other port, the third waits.
        assert_eq!(c.find(0b011, 1, 5), (5, 0b010));
        c.take(0b010, 1, 5);
        assert_eq!(c.find(0b011, 1, 5), (6, 0b001));
        // An earlier cycle is still free for a younger one that is ready.
        assert_eq!(c.find(0b001, 1, 3), (3, 0b001));
        // A port that is taken for three cycles.
        c.take(0b001, 3, 6);
        assert_eq!(c.find(0b001, 1, 6).0, 9);
        assert_eq!(c.find(0b001, 2, 3).0, 3);
        assert_eq!(c.find(0b001, 3, 3).0, 9);
    }

    #[test]
    fn stations_empty_as_their_tenants_start() {
        let mut c = Calendar::new(false);
        c.take(1, 1, 4);
        c.take(2, 1, 4);
        c.take(1, 1, 7);
        assert_eq!(c.waiting, 3);
        c.advance(4);
        assert_eq!(c.waiting, 3);
        c.advance(5);
        assert_eq!(c.waiting, 1);
        c.advance(8);
        assert_eq!(c.waiting, 0);
    }

    #[test]
    fn it_grows_with_what_it_holds() {
        let mut c = Calendar::new(true);
        c.take(0b01, 1, 1000);
        assert_eq!(c.find(0b01, 1, 5000), (5000, 0b01));
        assert_eq!(c.find(0b01, 1, 1000).0, 1001);
        c.take(0b01, 1, 5000);
        assert_eq!(c.find(0b01, 1, 5000).0, 5001);
        c.advance(1001);
        assert_eq!(c.waiting, 1);
    }

    #[test]
    fn bound_at_rename_to_the_port_with_the_fewest_waiting() {
        let mut c = Calendar::new(true);
        assert_eq!(c.bind(0b11), 0b01);
        c.take(0b01, 1, 9);
        assert_eq!(c.bind(0b11), 0b10);
        c.take(0b10, 1, 3);
        c.advance(4);
        assert_eq!(c.bind(0b11), 0b10);
    }
}
