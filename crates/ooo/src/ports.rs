//! Which port is taken in which cycle, and how many micro-operations wait.
//!
//! Micro-operations are placed in program order, each in the first cycle from
//! which on it could start and a port of its set is free. An older one is
//! placed before any younger one looks, so whenever two compete for a port the
//! older one gets it: what a scheduler that picks the oldest does. (Where a port
//! is taken for several cycles, an older micro-operation that becomes ready
//! within them would find it taken in hardware; here the younger one goes
//! behind it. And where two results of a port cannot come in one cycle,
//! some cores let a younger one come first: [`crate::overtaken`].)
//!
//! Where a core has several queues ([`crate::queues`]), a micro-operation is sent to one of them when it is renamed, and
//! starts on a port of that one.
//!
//! Cycles before the one in which renaming stands are forgotten; the calendar
//! is a ring that grows when something starts further ahead than it reaches.

use crate::lanes::Lanes;
use crate::overtaken::Overtaken;
use crate::queues::{Choice, Pending, Queue};
use crate::words::{Reader, Writer};

/// The calendar.
pub struct Calendar {
    /// Cycles in which ports are taken.
    taken: Lanes,
    /// Cycles in which a computation ends there, where only one can.
    ending: Lanes,
    result_bus: bool,
    /// Of these some can be taken by younger ones.
    pub overtaken: Overtaken,
    /// From when on the last one that was looked for a place for could start.
    ready: u64,
    /// By cycle, what no longer waits from the next one on: [`Pending::leave`].
    leaves: Vec<u64>,
    /// Cycles, a power of two, less one.
    mask: usize,
    /// The cycle up to which everything has been forgotten.
    now: u64,
    /// Nothing is written behind this cycle.
    last: u64,
    /// Starts on each port since the start.
    pub starts: [u64; 32],
    /// In the reservation stations at `now`, and in the queues.
    pending: Pending,
    /// All ports that occur.
    ports: u32,
    /// Ports that some class has are had together by all that have one of them: which of several free ones is
    /// taken makes no difference.
    alike: bool,
}

impl Calendar {
    /// An empty one. What is renamed is sent to one of the queues there are, as `choice` says; with none of
    /// them all ports are open to it until it starts. `classes` are the sets of ports that occur.
    pub fn new(queues: &[Queue], choice: Choice, classes: &[u32]) -> Calendar {
        let len = 1 << 10;
        let pending = Pending::new(queues, choice);
        let whole = [Queue { ports: u32::MAX, entries: 0, kept: 0, shares: None }];
        let sets = if queues.is_empty() { &whole[..] } else { queues };
        let within = |class: u32| sets.iter().map(move |q| q.ports & class).filter(|&set| set != 0);
        let alike = classes
            .iter()
            .flat_map(|&c| within(c))
            .all(|set| classes.iter().all(|&other| other & set == 0 || other & set == set));
        Calendar {
            taken: Lanes::new(len),
            ending: Lanes::new(len),
            result_bus: false,
            overtaken: Overtaken::new(0, [].into_iter()),
            ready: 0,
            leaves: vec![0; len * pending.words()],
            mask: len - 1,
            now: 0,
            last: 0,
            starts: [0; 32],
            pending,
            ports: classes.iter().fold(0, |all, class| all | class),
            alike,
        }
    }

    /// Make it reach a cycle, and the 64 behind it, which are looked at together.
    #[inline(always)]
    fn reach(&mut self, cycle: u64) {
        if cycle.saturating_sub(self.now) + BEHIND > self.mask as u64 {
            self.grow(cycle);
        }
    }

    #[cold]
    fn grow(&mut self, cycle: u64) {
        let (old, words) = (self.mask + 1, self.pending.words());
        let len = ((cycle - self.now + BEHIND) as usize + 1).next_power_of_two();
        let mut leaves = vec![0; len * words];
        for t in self.now as usize..self.now as usize + old {
            let (from, to) = ((t & (old - 1)) * words, (t & (len - 1)) * words);
            leaves[to..to + words].copy_from_slice(&self.leaves[from..from + words]);
        }
        (self.taken, self.ending) = (self.taken.grown(len, self.now), self.ending.grown(len, self.now));
        self.overtaken.grow(len, self.now);
        (self.leaves, self.mask) = (leaves, len - 1);
    }

    /// Where a cycle's words are in [`Calendar::leaves`].
    #[inline(always)]
    fn at(&self, cycle: u64) -> usize {
        (cycle as usize & self.mask) * self.pending.words()
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
        let at = self.at(self.now);
        self.pending.leave(&mut self.leaves[at..]);
        self.now += 1;
        if self.now.is_multiple_of(64) {
            self.taken.clear(self.now - 1);
            self.ending.clear(self.now - 1);
            self.overtaken.over(self.now - 1);
        }
        self.overtaken.forget(self.now);
    }

    /// Micro-operations in the reservation stations.
    #[inline(always)]
    pub fn waiting(&self) -> u32 {
        self.pending.all()
    }

    /// The cycle it has come to.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Forget everything and go on at a cycle.
    pub fn restart(&mut self, at: u64) {
        self.taken.clear_all();
        self.ending.clear_all();
        self.overtaken.clear();
        self.leaves.fill(0);
        (self.now, self.last) = (at, at);
        self.pending.clear();
        self.pending.turn = 0;
    }

    /// Do choices depend on nothing but what is under way? Of several free ports the first is taken then: it is
    /// as good as any, or the one that a queue's picks begin with. Elsewhere it is the least used one.
    pub fn forgets(&self) -> bool {
        self.alike || self.pending.any()
    }

    /// Write down all that is under way, where nothing that has no place yet starts before cycle `first`.
    pub fn save(&self, w: &mut Writer, first: u64) {
        let at = w.words.len();
        w.number(0);
        for t in self.now..=self.last {
            let leaves = &self.leaves[self.at(t)..][..self.pending.words()];
            if leaves.iter().any(|&l| l != 0) {
                w.words[at] += 1;
                w.after(t, self.now);
                self.pending.save(leaves, w);
            }
        }
        self.save_lanes(&self.taken, w, first);
        if self.result_bus {
            self.save_lanes(&self.ending, w, first);
            self.overtaken.save(w, first, self.now);
            self.save_lanes(&self.overtaken.long, w, first);
        }
        w.number(self.pending.turn as u64);
        self.pending.save_late(w);
    }

    /// By 64 cycles of each port, where there is something in them.
    fn save_lanes(&self, lanes: &Lanes, w: &mut Writer, first: u64) {
        let at = w.words.len();
        w.number(0);
        for from in (first..=self.last).step_by(64) {
            let mut set = self.ports;
            while set != 0 {
                let port = set.trailing_zeros() as usize;
                set &= set - 1;
                let taken = lanes.window(port, from);
                if taken != 0 {
                    w.words[at] += 1;
                    w.after(from, self.now);
                    w.number(port as u64);
                    w.wide(taken as u32);
                    w.wide((taken >> 32) as u32);
                }
            }
        }
    }

    /// Set it up again, at another cycle.
    pub fn restore(&mut self, r: &mut Reader<'_>, now: u64) {
        let words = self.pending.words();
        for t in self.now..=self.last {
            let at = self.at(t);
            self.leaves[at..at + words].fill(0);
        }
        for t in (self.now..=self.last + 64).step_by(64) {
            self.taken.clear(t);
            self.ending.clear(t);
            self.overtaken.over(t);
        }
        self.pending.clear();
        (self.now, self.last) = (now, now);
        for _ in 0..r.number() {
            let t = r.after(now);
            self.reach(t);
            let at = self.at(t);
            self.pending.restore(&mut self.leaves[at..at + words], r);
            self.last = t;
        }
        self.restore_lanes(r, now, Of::Taken);
        if self.result_bus {
            self.restore_lanes(r, now, Of::Ending);
            self.overtaken.restore(r, now);
            self.restore_lanes(r, now, Of::Long);
        }
        self.pending.turn = r.number() as usize;
        self.pending.restore_late(r);
    }

    fn restore_lanes(&mut self, r: &mut Reader<'_>, now: u64, of: Of) {
        for _ in 0..r.number() {
            let (from, port) = (r.after(now), r.number() as usize);
            let mut taken = u64::from(r.wide()) | u64::from(r.wide()) << 32;
            self.reach(from + 64);
            while taken != 0 {
                let t = from + u64::from(taken.trailing_zeros());
                let lanes = match of {
                    Of::Taken => &mut self.taken,
                    Of::Ending => &mut self.ending,
                    Of::Long => &mut self.overtaken.long,
                };
                lanes.set(port, t);
                self.last = self.last.max(t);
                taken &= taken - 1;
            }
        }
    }

    /// The set that is left once a queue is chosen at rename, for a micro-operation whose lot is `own` of them.
    #[inline(always)]
    pub fn bind(&mut self, ports: u32, own: u32) -> u32 {
        self.pending.bind(ports, own)
    }

    /// Those of some ports that a lot falls on (`queue_choice = "scattered"`).
    pub fn own(&self, ports: u32, lot: u8) -> u32 {
        self.pending.own(ports, lot)
    }

    /// Is there a place for it in one of its queues? On the first of them its `own` lot falls.
    #[inline(always)]
    pub fn has_room(&self, ports: u32, own: u32) -> bool {
        self.pending.has_room(ports, own)
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

    /// Computations of one port end in different cycles from now on; some are overtaken.
    pub fn set_result_bus(&mut self, on: bool, overtaken: Overtaken) {
        (self.result_bus, self.overtaken) = (on, overtaken);
    }

    /// The first cycle from `from` on in which one of the ports is free, for what takes it for `busy` cycles and
    /// ends `latency` later; 0: it makes no result there.
    #[inline(always)]
    pub fn find(&mut self, ports: u32, busy: u16, latency: u16, from: u64) -> (u64, u32) {
        let result = if self.result_bus { u64::from(latency) } else { 0 };
        self.reach(from + 64 + u64::from(busy).max(result));
        self.ready = from;
        let only_one = ports & (ports - 1) == 0;
        let free = self.free(ports, from, busy, result);
        if only_one && free != 0 {
            return (from + u64::from(free.trailing_zeros()), ports);
        }
        self.find_of(ports, busy, result, from)
    }

    /// The same of several ports, or where the only one is taken for long.
    fn find_of(&mut self, ports: u32, busy: u16, result: u64, from: u64) -> (u64, u32) {
        let mut t = from;
        loop {
            self.reach(t + 64 + u64::from(busy).max(result));
            let (mut any, mut set) = (0, ports);
            while set != 0 {
                any |= self.free(set, t, busy, result);
                set &= set - 1;
            }
            if any != 0 {
                t += u64::from(any.trailing_zeros());
                return (t, self.one_of(ports, t, busy, result));
            }
            t += 64;
        }
    }

    /// The same where one of some others has to be free in that cycle, too: that one behind the first.
    pub fn find_with(&mut self, ports: u32, others: u32, from: u64) -> (u64, u32, u32) {
        let mut t = from;
        loop {
            let (start, port) = self.find(ports, 1, 0, t);
            let (free, other) = self.find(others, 1, 0, start);
            if free == start {
                return (start, port, other);
            }
            t = free;
        }
    }

    /// Take the other one that was found; 0: there is none.
    #[inline(always)]
    pub fn pass(&mut self, other: u32, at: u64) {
        if other != 0 {
            self.taken.set(other.trailing_zeros() as usize & 31, at);
        }
    }

    /// Of the 64 cycles from `from` on those in which the first of the ports is free.
    #[inline(always)]
    fn free(&self, ports: u32, from: u64, busy: u16, result: u64) -> u64 {
        let port = ports.trailing_zeros() as usize & 31;
        let mut taken = self.taken.window(port, from);
        for later in 1..u64::from(busy) {
            taken |= self.taken.window(port, from + later);
        }
        if result > 0 {
            taken |= self.ending.window(port, from + result) & !self.overtaken.yields(port, from, result);
        }
        !taken
    }

    /// Of those that are free in a cycle the first, or the one that was used least.
    #[inline(always)]
    fn one_of(&self, ports: u32, t: u64, busy: u16, result: u64) -> u32 {
        if ports & (ports - 1) == 0 {
            return ports;
        }
        let (mut set, mut free) = (ports, 0);
        while set != 0 {
            if self.free(set, t, busy, result) & 1 != 0 {
                free |= set & set.wrapping_neg();
            }
            set &= set - 1;
        }
        if self.forgets() { free & free.wrapping_neg() } else { self.fewest(free, |i| self.starts[i]) }
    }

    /// Take what was found. It leaves its reservation station then, and its queue's place when that is given back.
    #[inline(always)]
    pub fn take(&mut self, port: u32, busy: u16, latency: u16, at: u64) {
        let back = self.pending.gives_back(port, at);
        self.take_until(port, busy, latency, at, back);
    }

    /// The same where the place is given back in this cycle.
    #[inline(always)]
    pub fn take_until(&mut self, port: u32, busy: u16, latency: u16, at: u64, back: u64) {
        let i = port.trailing_zeros() as usize & 31;
        let (end, free) = (at + u64::from(latency), at + u64::from(busy));
        let last = end.max(free).max(back);
        self.reach(last);
        self.last = self.last.max(last);
        self.taken.set(i, at);
        if self.result_bus && latency > 0 {
            self.ends(i, u64::from(latency), at);
        }
        for t in at + 1..free {
            self.taken.set(i, t);
        }
        self.starts[i] += 1;
        let (leaves, back) = (self.at(at), self.at(back));
        self.pending.enters(port, &mut self.leaves, leaves, back);
    }

    /// A computation that starts then makes its result; one that would have made its own then comes later.
    #[inline(always)]
    fn ends(&mut self, port: usize, latency: u64, at: u64) {
        if self.ending.window(port, at + latency) & 1 != 0 {
            // Each that waits takes its own cycle, and keeps no more than two from others.
            self.reach(at + BEHIND + 4 * u64::from(self.pending.all()));
            self.overtaken.ends(port, at + latency);
            if let Some((from, to)) = self.overtaken.overtake(port, at + latency, &mut self.taken, &mut self.ending) {
                let [was, back] = [from, to].map(|t| self.pending.gives_back(1 << port, t));
                self.reach(back + BEHIND);
                self.last = self.last.max(back).max(to + latency);
                let (old, new) = ([from, was].map(|t| self.at(t)), [to, back].map(|t| self.at(t)));
                self.pending.moves(1 << port, &mut self.leaves, old, new);
            }
        }
        self.ending.set(port, at + latency);
        if self.overtaken.on(port, latency) {
            self.overtaken.enters(port, latency, self.ready, at, &mut self.taken);
        } else {
            self.overtaken.ends(port, at + latency);
        }
    }

    /// Something waits until `at` and never starts.
    pub fn wait_until(&mut self, at: u64) {
        self.reach(at);
        self.last = self.last.max(at);
        let at = self.at(at);
        self.pending.enters_for_ever(&mut self.leaves[at]);
    }
}

/// What cycles of a port are written down.
enum Of {
    Taken,
    Ending,
    Long,
}

/// Cycles that are looked at behind one that is reached: the rest of its 64, and the next.
const BEHIND: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    /// A port that is a queue of its own.
    fn alone(ports: u32) -> Queue {
        Queue { ports, entries: u32::MAX, kept: 0, shares: None }
    }

    #[test]
    fn the_older_one_first_and_the_least_used_port() {
        let mut c = Calendar::new(&[], Choice::First, &[0b011, 0b001]);
        let (t, p) = c.find(0b011, 1, 0, 5);
        assert_eq!((t, p), (5, 0b001));
        c.take(p, 1, 0, t);
        // The second one in the same cycle takes the other port, the third waits.
        assert_eq!(c.find(0b011, 1, 0, 5), (5, 0b010));
        c.take(0b010, 1, 0, 5);
        assert_eq!(c.find(0b011, 1, 0, 5), (6, 0b001));
        // An earlier cycle is still free for a younger one that is ready.
        assert_eq!(c.find(0b001, 1, 0, 3), (3, 0b001));
        // A port that is taken for three cycles.
        c.take(0b001, 3, 0, 6);
        assert_eq!(c.find(0b001, 1, 0, 6).0, 9);
        assert_eq!(c.find(0b001, 2, 0, 3).0, 3);
        assert_eq!(c.find(0b001, 3, 0, 3).0, 9);
    }

    #[test]
    fn stations_empty_as_their_tenants_start() {
        let mut c = Calendar::new(&[], Choice::First, &[0b011, 0b001]);
        c.take(1, 1, 0, 4);
        c.take(2, 1, 0, 4);
        c.take(1, 1, 0, 7);
        assert_eq!(c.waiting(), 3);
        c.advance(4);
        assert_eq!(c.waiting(), 3);
        c.advance(5);
        assert_eq!(c.waiting(), 1);
        c.advance(8);
        assert_eq!(c.waiting(), 0);
    }

    #[test]
    fn it_grows_with_what_it_holds() {
        let mut c = Calendar::new(&[alone(0b01), alone(0b10)], Choice::First, &[0b11]);
        c.take(0b01, 1, 0, 1000);
        assert_eq!(c.find(0b01, 1, 0, 5000), (5000, 0b01));
        assert_eq!(c.find(0b01, 1, 0, 1000).0, 1001);
        c.take(0b01, 1, 0, 5000);
        assert_eq!(c.find(0b01, 1, 0, 5000).0, 5001);
        c.advance(1001);
        assert_eq!(c.waiting(), 1);
    }

    #[test]
    fn ports_are_alike_where_no_class_tells_them_apart() {
        let alike = |classes: &[u32]| Calendar::new(&[], Choice::First, classes).forgets();
        assert!(alike(&[0b0011, 0b1100]) && alike(&[0b0001, 0b0110]));
        assert!(!alike(&[0b0011, 0b0001]));
        // A queue of each kind makes them so.
        let queues = [
            Queue { ports: 0b0011, entries: 8, kept: 0, shares: None },
            Queue { ports: 0b1100, entries: 8, kept: 0, shares: None },
        ];
        assert!(Calendar::new(&queues, Choice::Fewest, &[0b1111, 0b0011]).forgets());
    }

    #[test]
    fn what_takes_one_of_some_others_too_waits_for_both() {
        let mut c = Calendar::new(&[], Choice::First, &[0b001, 0b110]);
        for (port, at) in [(0b010, 5), (0b100, 5), (0b010, 6), (0b001, 7)] {
            c.take(port, 1, 0, at);
        }
        // In 5 none of the others is free.
        assert_eq!(c.find_with(0b001, 0b110, 5), (6, 0b001, 0b100));
        c.take(0b001, 1, 0, 6);
        c.pass(0b100, 6);
        // Now the second of the others is taken in 6; in 7 it is the first port that is not free.
        assert_eq!(c.find(0b110, 1, 0, 5).0, 7);
        assert_eq!(c.find_with(0b001, 0b110, 6), (8, 0b001, 0b010));
    }

    #[test]
    fn two_results_of_a_port_in_one_cycle() {
        let mut c = Calendar::new(&[], Choice::First, &[0b01, 0b11]);
        c.set_result_bus(true, Overtaken::new(0, [].into_iter()));
        // A product starts in 4 and ends in 7: nothing of one cycle starts there in 6, but in 5 it does.
        c.take(0b01, 1, 3, 4);
        assert_eq!([4, 5, 6].map(|from| c.find(0b01, 1, 1, from).0), [5, 5, 7]);
        // Another product can, as it ends in 9; and another port.
        assert_eq!(c.find(0b01, 1, 3, 6), (6, 0b01));
        assert_eq!(c.find(0b11, 1, 1, 6), (6, 0b10));
        // Written down and set up ten cycles later, it is so still.
        let mut w = Writer::default();
        c.save(&mut w, 0);
        c.restore(&mut Reader::new(&w.words), 10);
        assert_eq!([15, 16].map(|from| c.find(0b01, 1, 1, from).0), [15, 17]);
    }
}
