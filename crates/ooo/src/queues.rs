//! Queues (schedulers): where micro-operations wait for a port.
//!
//! When it is renamed, a micro-operation is sent to one of the queues that have a port for it, and it starts on a port of
//! that one. A queue that is full stops renaming, where there is no other one for it.

/// A scheduler: its ports, as a set, and how many wait in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    pub ports: u32,
    pub entries: u32,
    /// Cycles for which a place is kept after the start.
    pub kept: u32,
}

/// Which of several queues is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// One with the fewest waiting, the first of equals.
    First,
    /// One with the fewest waiting, of equals the next in turn.
    Fewest,
    /// The next in turn.
    InTurn,
    /// By its lot; but the one with the fewest waiting, where so many more wait in that one.
    Scattered(u32),
}

/// What waits in each queue.
pub struct Pending {
    queues: Vec<Queue>,
    /// The queue of each port.
    of: [u8; 32],
    /// Waiting, by queue.
    count: [u32; 32],
    /// Ports of queues that have no room.
    full: u32,
    /// The queue that is looked at first.
    pub turn: usize,
    choice: Choice,
}

impl Pending {
    /// Nothing in them.
    pub fn new(queues: &[Queue], choice: Choice) -> Pending {
        let mut of = [0; 32];
        for (q, queue) in queues.iter().enumerate() {
            (0..32).filter(|port| queue.ports >> port & 1 != 0).for_each(|port| of[port] = q as u8);
        }
        Pending { queues: queues.to_vec(), of, count: [0; 32], full: 0, turn: 0, choice }
    }

    fn queue(&self, port: u32) -> usize {
        usize::from(self.of[port.trailing_zeros() as usize & 31])
    }

    /// One more waits for a port.
    pub fn enters(&mut self, port: u32) {
        let q = self.queue(port);
        self.count[q] += 1;
        if self.count[q] >= self.queues[q].entries {
            self.full |= self.queues[q].ports;
        }
    }

    /// What starts on some ports waits no longer.
    pub fn leave(&mut self, mut ports: u32) {
        while ports != 0 {
            let q = self.queue(ports);
            self.count[q] -= 1;
            if self.count[q] < self.queues[q].entries {
                self.full &= !self.queues[q].ports;
            }
            ports &= ports - 1;
        }
    }

    /// What gives its place back in cycle `t`, where nothing starts before cycle `first` that has no place yet: in a queue
    /// of which nothing more can do so then, as many ports as do, the first ones.
    pub fn counted(&self, mut ports: u32, t: u64, first: u64) -> u32 {
        let mut set = 0;
        while ports != 0 {
            let queue = &self.queues[self.queue(ports)];
            let own = ports & queue.ports;
            if t < first + u64::from(queue.kept) {
                let mut left = queue.ports;
                for _ in 0..own.count_ones() {
                    set |= left & left.wrapping_neg();
                    left &= left - 1;
                }
            } else {
                set |= own;
            }
            ports &= !queue.ports & (ports - 1);
        }
        set
    }

    /// Nothing waits.
    pub fn clear(&mut self) {
        (self.count, self.full) = ([0; 32], 0);
    }

    /// What starts on a port in a cycle gives its place back in this one.
    pub fn gives_back(&self, port: u32, at: u64) -> u64 {
        at + u64::from(self.queues[self.queue(port)].kept)
    }

    /// The set that is left once a queue is chosen.
    #[inline(always)]
    pub fn bind(&mut self, ports: u32, own: u32) -> u32 {
        let chosen = match self.choice {
            Choice::Scattered(slack) => return self.scatter(ports, own, slack),
            _ => self.choose(ports),
        };
        let Some((q, several)) = chosen else { return ports };
        if several && matches!(self.choice, Choice::Fewest | Choice::InTurn) {
            self.turn = (q + 1) % self.queues.len();
        }
        ports & self.queues[q].ports
    }

    /// Is there a place for it?
    #[inline(always)]
    pub fn has_room(&self, ports: u32) -> bool {
        ports == 0 || ports & !self.full != 0
    }

    /// Those of some ports in the queue that a lot falls on.
    pub fn own(&self, ports: u32, lot: u8) -> u32 {
        let able = || self.queues.iter().map(|q| q.ports & ports).filter(|&own| own != 0);
        able().nth(usize::from(lot) % able().count().max(1)).unwrap_or(ports)
    }

    /// The queue of its lot; another one, with fewer waiting, where more than `slack` more wait in that one or it has no
    /// room.
    #[inline(always)]
    fn scatter(&self, ports: u32, own: u32, slack: u32) -> u32 {
        let queue = self.queue(own);
        if own & self.full == 0 && self.count[queue] <= slack || own == ports {
            return own;
        }
        self.scatter_away(ports, own, slack)
    }

    fn scatter_away(&self, ports: u32, own: u32, slack: u32) -> u32 {
        let waiting = |q: usize| self.count[q] + if self.queues[q].ports & self.full != 0 { FULL } else { 0 };
        let able = (0..self.queues.len()).filter(|&q| self.queues[q].ports & ports != 0);
        let Some(least) = able.min_by_key(|&q| waiting(q)) else { return ports };
        if waiting(self.queue(own)) > waiting(least) + slack { self.queues[least].ports & ports } else { own }
    }

    /// The queue that this is sent to: one with room, where that counts with the fewest waiting for each of its
    /// ports that could start this, the first of those from the turn on; and whether there were several.
    #[inline(always)]
    fn choose(&self, ports: u32) -> Option<(usize, bool)> {
        let (mut chosen, mut least, mut able) = (None, u32::MAX, 0);
        let (before, behind) = self.queues.split_at(self.turn.min(self.queues.len()));
        let in_turn = (self.turn..).zip(behind).chain((0..).zip(before));
        for (q, queue) in in_turn {
            let own = queue.ports & ports;
            if own == 0 {
                continue;
            }
            able += 1;
            let waiting = match self.choice {
                Choice::InTurn => 0,
                _ => self.count[q] * EACH[own.count_ones() as usize & 15],
            };
            let load = waiting + if self.full & own != 0 { FULL } else { 0 };
            if load < least {
                (chosen, least) = (Some(q), load);
            }
        }
        Some((chosen?, able > 1))
    }
}

/// One that waits in a queue of so many ports, as a part of each.
const EACH: [u32; 16] = {
    let mut each = [EVEN; 16];
    let mut ports = 1;
    while ports < 16 {
        each[ports] = EVEN / ports as u32;
        ports += 1;
    }
    each
};
/// A number that most numbers of ports divide.
const EVEN: u32 = 840;
/// More than can wait.
const FULL: u32 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::Calendar;
    use crate::words::{Reader, Writer};

    /// A port that is a queue of its own.
    fn alone(ports: u32) -> Queue {
        Queue { ports, entries: u32::MAX, kept: 0 }
    }

    #[test]
    fn bound_at_rename_to_the_port_with_the_fewest_waiting() {
        let mut c = Calendar::new(&[alone(0b01), alone(0b10)], Choice::First, &[0b11]);
        assert_eq!(c.bind(0b11, 0), 0b01);
        c.take(0b01, 1, 0, 9);
        assert_eq!(c.bind(0b11, 0), 0b10);
        c.take(0b10, 1, 0, 3);
        c.advance(4);
        assert_eq!(c.bind(0b11, 0), 0b10);
    }

    #[test]
    fn a_queue_of_two_ports_and_one_of_one() {
        let queues = [Queue { ports: 0b011, entries: 2, kept: 0 }, Queue { ports: 0b100, entries: 1, kept: 0 }];
        let mut c = Calendar::new(&queues, Choice::Fewest, &[0b111, 0b100]);
        // Both empty: the first. One waiting for two ports is less than one for one.
        assert_eq!(c.bind(0b111, 0), 0b011);
        c.take(0b001, 1, 0, 9);
        assert_eq!(c.bind(0b111, 0), 0b100);
        c.take(0b100, 1, 0, 5);
        assert_eq!(c.bind(0b111, 0), 0b011);
        // The second is full until its tenant has started, the first has one more place.
        assert_eq!((c.has_room(0b100), c.has_room(0b111)), (false, true));
        c.take(0b010, 1, 0, 9);
        assert!(!c.has_room(0b111));
        c.advance(6);
        assert!(c.has_room(0b100) && c.has_room(0b111));
        assert_eq!(c.bind(0b111, 0), 0b100);
        assert!(c.forgets());
    }

    #[test]
    fn queues_in_turn_whatever_waits_in_them() {
        let mut c = Calendar::new(&[alone(0b001), alone(0b010), alone(0b100)], Choice::InTurn, &[0b111, 0b101]);
        let bound = [0b111, 0b101, 0b111, 0b111].map(|ports| c.bind(ports, 0));
        // The second may not go to the second queue: the third, and the turn goes on behind it.
        assert_eq!(bound, [0b001, 0b100, 0b001, 0b010]);
        // What is written down comes back.
        let mut w = Writer::default();
        c.save(&mut w, 0);
        let mut other = Calendar::new(&[alone(0b001), alone(0b010), alone(0b100)], Choice::InTurn, &[0b111, 0b101]);
        other.restore(&mut Reader::new(&w.words), 50);
        assert_eq!(other.bind(0b111, 0), 0b100);
    }

    #[test]
    fn of_equal_queues_the_next_in_turn() {
        let mut c = Calendar::new(&[alone(0b001), alone(0b010), alone(0b100)], Choice::Fewest, &[0b111]);
        // What can go to one queue only does not move the turn.
        assert_eq!([0b111, 0b001, 0b111].map(|ports| c.bind(ports, 0)), [0b001, 0b001, 0b010]);
        // All equal: the third; two waiting there: the first of the others from the turn on.
        assert_eq!(c.bind(0b111, 0), 0b100);
        c.take(0b001, 1, 0, 9);
        assert_eq!(c.bind(0b111, 0), 0b010);
    }

    #[test]
    fn which_port_of_a_queue_gave_its_place_back_is_not_written_down() {
        let queues = [Queue { ports: 0b011, entries: 2, kept: 0 }, Queue { ports: 0b100, entries: 1, kept: 0 }];
        let written = |port: u32, first: u64| {
            let mut c = Calendar::new(&queues, Choice::Fewest, &[0b111]);
            c.take(port, 1, 0, 4);
            let mut w = Writer::default();
            c.save(&mut w, first);
            w.words
        };
        // Nothing can start in cycle 4 any more.
        assert_eq!(written(0b001, 5), written(0b010, 5));
        assert_ne!(written(0b001, 5), written(0b100, 5));
        // Something can, on the other port only.
        assert_ne!(written(0b001, 4), written(0b010, 4));
        // What starts in cycle 3 or later gives its place back in 5 or later where it is kept for two cycles.
        let kept = Pending::new(&[Queue { kept: 2, ..queues[0] }], Choice::Fewest);
        assert_eq!([4, 5].map(|t| kept.counted(0b010, t, 3)), [0b001, 0b010]);
    }

    #[test]
    fn a_place_is_given_back_later() {
        let queues = [Queue { ports: 0b01, entries: 1, kept: 2 }, Queue { ports: 0b10, entries: 1, kept: 0 }];
        let mut c = Calendar::new(&queues, Choice::Fewest, &[0b11]);
        c.take(0b01, 1, 0, 4);
        c.take(0b10, 1, 0, 4);
        c.advance(5);
        assert_eq!((c.has_room(0b01), c.has_room(0b10)), (false, true));
        c.advance(6);
        // Written down and set up again ten cycles later, it is so still.
        let mut w = Writer::default();
        c.save(&mut w, 0);
        c.restore(&mut Reader::new(&w.words), 16);
        assert!(!c.has_room(0b01));
        c.advance(17);
        assert!(c.has_room(0b01));
    }

    #[test]
    fn by_lot_as_long_as_not_many_more_wait_there() {
        let queues = [Queue { ports: 0b0011, entries: 3, kept: 0 }, Queue { ports: 0b1100, entries: 8, kept: 0 }];
        let mut c = Calendar::new(&queues, Choice::Scattered(1), &[0b1111, 0b1100]);
        assert_eq!([0, 1, 2, 3].map(|lot| c.own(0b1111, lot)), [0b0011, 0b1100, 0b0011, 0b1100]);
        assert_eq!([0b0011, 0b1100].map(|own| c.bind(0b1111, own)), [0b0011, 0b1100]);
        // Only one queue can start it.
        assert_eq!(c.bind(0b1100, c.own(0b1100, 0)), 0b1100);
        // One more may wait in its own queue, two not.
        c.take(0b01, 1, 0, 7);
        assert_eq!(c.bind(0b1111, 0b0011), 0b0011);
        c.take(0b10, 1, 0, 7);
        assert_eq!(c.bind(0b1111, 0b0011), 0b1100);
        // A full one takes none, however few wait elsewhere.
        for port in [0b0100, 0b1000] {
            c.take(port, 1, 0, 7);
        }
        assert_eq!(c.bind(0b1111, 0b0011), 0b0011);
        c.take(0b01, 1, 0, 8);
        assert_eq!(c.bind(0b1111, 0b0011), 0b1100);
    }
}
