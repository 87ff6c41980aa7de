//! Queues (schedulers): where micro-operations wait for a port.
//!
//! When it is renamed, a micro-operation is sent to one of the queues that have a port for it, and it starts on a port of
//! that one. A queue that is full stops renaming, where there is no other one for it.

use crate::late::{Delayed, Late, lane};
use crate::words::{Reader, Writer};

/// A scheduler: its ports, as a set, and how many wait in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    pub ports: u32,
    pub entries: u32,
    /// Cycles for which a place is kept after the start.
    pub kept: u32,
    /// Another one, whose places it takes: `entries` of that one are for both.
    pub shares: Option<u8>,
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
    /// As was seen some cycles before.
    Delayed(Delayed),
}

/// What waits: all together, and in each queue. Numbers of 16 bits, four to a word, that of all first: what a cycle
/// takes away is taken from all of them at once.
pub struct Pending {
    queues: Vec<Queue>,
    /// Of each queue, those that share its places with it, itself among them, as a set.
    mates: Vec<u32>,
    ports: [Port; 32],
    waiting: Vec<u64>,
    /// The queue that is looked at first.
    pub turn: usize,
    choice: Choice,
    /// Of a delayed choice.
    late: Option<Late>,
}

/// What fits into four bits, of each of the four numbers of a word.
const LOW: u64 = 0x000f_000f_000f_000f;

/// What a port's queue is: its number, the cycles for which a place is kept, and what is added, to which word, when one
/// more waits in it.
#[derive(Clone, Copy, Default)]
struct Port {
    queue: u8,
    word: u8,
    kept: u32,
    added: u64,
}

/// Words that the numbers of so many queues take.
fn words(queues: usize) -> usize {
    queues / 4 + 1
}

impl Pending {
    /// Nothing in them.
    pub fn new(queues: &[Queue], choice: Choice) -> Pending {
        let mut ports = [Port::default(); 32];
        for (q, queue) in queues.iter().enumerate() {
            let (word, lane) = ((q + 1) / 4, (q + 1) % 4);
            let own = Port { queue: q as u8, word: word as u8, kept: queue.kept, added: 1 << (16 * lane) };
            (0..32).filter(|port| queue.ports >> port & 1 != 0).for_each(|port| ports[port] = own);
        }
        let owner = |q: usize| queues[q].shares.map_or(q, usize::from);
        let mates = |q: usize| (0..queues.len()).filter(|&o| owner(o) == owner(q)).fold(0, |all, o| all | 1 << o);
        let mates = (0..queues.len()).map(mates).collect();
        let waiting = vec![0; words(queues.len())];
        let bounds = queues.iter().map(|q| (q.ports, q.entries)).collect();
        let late = if let Choice::Delayed(how) = choice { Some(Late::new(how, bounds, waiting.len())) } else { None };
        Pending { queues: queues.to_vec(), mates, ports, waiting, turn: 0, choice, late }
    }

    /// Are there queues?
    #[inline(always)]
    pub fn any(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Words of a cycle in [`Pending::leave`].
    #[inline(always)]
    pub fn words(&self) -> usize {
        self.waiting.len()
    }

    #[inline(always)]
    fn port(&self, ports: u32) -> &Port {
        &self.ports[ports.trailing_zeros() as usize & 31]
    }

    /// The queue of the first of some ports.
    #[inline(always)]
    pub fn queue(&self, ports: u32) -> usize {
        usize::from(self.port(ports).queue)
    }

    /// All that wait.
    #[inline(always)]
    pub fn all(&self) -> u32 {
        self.waiting[0] as u32 & 0xffff
    }

    #[inline(always)]
    fn count(&self, queue: usize) -> u32 {
        lane(&self.waiting, queue)
    }

    #[inline(always)]
    fn full(&self, queue: usize) -> bool {
        let mates = self.mates[queue];
        if mates & (mates - 1) == 0 {
            return self.count(queue) >= self.queues[queue].entries;
        }
        let owner = self.queues[queue].shares.map_or(queue, usize::from);
        let waiting: u32 = (0..self.queues.len()).filter(|q| mates >> q & 1 != 0).map(|q| self.count(q)).sum();
        waiting >= self.queues[owner].entries
    }

    /// One more waits for a port: in the stations until the cycle is over whose words are `at` this place, in its queue
    /// until that `back` there is.
    #[inline(always)]
    pub fn enters(&mut self, port: u32, leaves: &mut [u64], at: usize, back: usize) {
        self.waiting[0] += 1;
        leaves[at] += 1;
        // Nothing where there are no queues.
        let Port { word, added, .. } = *self.port(port);
        self.waiting[usize::from(word)] += added;
        leaves[back + usize::from(word)] += added;
    }

    /// One that waits starts in another cycle, and gives its place back in another one.
    pub fn moves(&self, port: u32, leaves: &mut [u64], old: [usize; 2], new: [usize; 2]) {
        let Port { word, added, .. } = *self.port(port);
        leaves[old[0]] -= 1;
        leaves[old[1] + usize::from(word)] -= added;
        leaves[new[0]] += 1;
        leaves[new[1] + usize::from(word)] += added;
    }

    /// One more waits for nothing.
    pub fn enters_for_ever(&mut self, leaves: &mut u64) {
        self.waiting[0] += 1;
        *leaves += 1;
    }

    /// What a cycle takes away.
    #[inline(always)]
    pub fn leave(&mut self, leaves: &mut [u64]) {
        for (waiting, leaves) in self.waiting.iter_mut().zip(leaves) {
            *waiting -= std::mem::take(leaves);
        }
        if let Some(late) = &mut self.late {
            late.step(&self.waiting);
        }
    }

    /// Write down what a cycle takes away: of all, and by fours of the queues, from none of which more leave in a cycle
    /// than it has ports.
    pub fn save(&self, leaves: &[u64], w: &mut Writer) {
        w.number(leaves[0] & 0xffff);
        for (n, &leaves) in leaves.iter().enumerate().filter(|_| self.any()) {
            let leaves = if n == 0 { leaves & !0xffff } else { leaves };
            w.broken |= leaves & !LOW != 0;
            w.number(leaves & 15 | leaves >> 12 & 0xf0 | leaves >> 24 & 0xf00 | leaves >> 36 & 0xf000);
        }
    }

    /// A cycle of a state that is set up again, whose words are zero.
    pub fn restore(&mut self, leaves: &mut [u64], r: &mut Reader<'_>) {
        let all = r.number();
        let queues = if self.any() { leaves.len() } else { 0 };
        for leaves in &mut leaves[..queues] {
            let four = r.number();
            *leaves = four & 15 | (four & 0xf0) << 12 | (four & 0xf00) << 24 | (four & 0xf000) << 36;
        }
        leaves[0] += all;
        self.waiting.iter_mut().zip(leaves).for_each(|(waiting, leaves)| *waiting += *leaves);
    }

    /// Nothing waits.
    pub fn clear(&mut self) {
        self.waiting.fill(0);
        self.late.iter_mut().for_each(Late::clear);
    }

    /// Write down what a delayed choice goes by.
    pub fn save_late(&self, w: &mut Writer) {
        self.late.iter().for_each(|late| late.save(w));
    }

    /// Set it up again.
    pub fn restore_late(&mut self, r: &mut Reader<'_>) {
        self.late.iter_mut().for_each(|late| late.restore(r));
    }

    /// What starts on a port in a cycle gives its place back in this one.
    #[inline(always)]
    pub fn gives_back(&self, port: u32, at: u64) -> u64 {
        at + u64::from(self.port(port).kept)
    }

    /// The set that is left once a queue is chosen.
    #[inline(always)]
    pub fn bind(&mut self, ports: u32, own: u32) -> u32 {
        let chosen = match self.choice {
            _ if !self.any() => return ports,
            Choice::Scattered(slack) => return self.scatter(ports, own, slack),
            Choice::Delayed(_) => return self.send(ports),
            _ => self.choose(ports),
        };
        let Some((q, several)) = chosen else { return ports };
        if several && matches!(self.choice, Choice::Fewest | Choice::InTurn) {
            self.turn = (q + 1) % self.queues.len();
        }
        ports & self.queues[q].ports
    }

    /// Is there a place for it in one of its queues, of which `own` is one?
    #[inline(always)]
    pub fn has_room(&self, ports: u32, own: u32) -> bool {
        if let Some(late) = &self.late {
            return late.takes(ports, |q| self.full(q));
        }
        !self.any() || ports == 0 || !self.full(self.queue(own)) || self.has_other(ports)
    }

    /// The port that a delayed choice sends it to.
    fn send(&mut self, ports: u32) -> u32 {
        let Some(late) = &self.late else { return ports };
        let (own, sent) = late.port(ports, |q| self.full(q));
        self.late.iter_mut().for_each(|late| late.sent |= sent);
        own
    }

    fn has_other(&self, ports: u32) -> bool {
        self.queues.iter().enumerate().any(|(q, queue)| queue.ports & ports != 0 && !self.full(q))
    }

    /// Those of some ports in the queue that a lot falls on: each port of a queue is a ticket of it.
    pub fn own(&self, ports: u32, lot: u8) -> u32 {
        let able = || self.queues.iter().map(|q| q.ports & ports);
        let mut ticket = u32::from(lot) % able().map(u32::count_ones).sum::<u32>().max(1);
        for own in able() {
            if ticket < own.count_ones() {
                return own;
            }
            ticket -= own.count_ones();
        }
        ports
    }

    /// The queue of its lot; another one, with fewer waiting, where more than `slack` more wait in that one or it has no
    /// room.
    #[inline(always)]
    fn scatter(&self, ports: u32, own: u32, slack: u32) -> u32 {
        let queue = self.queue(own);
        let waiting = self.count(queue);
        if waiting <= slack && !self.full(queue) || own == ports {
            return own;
        }
        self.scatter_away(ports, own, slack)
    }

    fn scatter_away(&self, ports: u32, own: u32, slack: u32) -> u32 {
        let waiting = |q: usize| self.count(q) + if self.full(q) { FULL } else { 0 };
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
                _ => self.count(q) * EACH[own.count_ones() as usize & 15],
            };
            let load = waiting + if self.full(q) { FULL } else { 0 };
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

    /// A port that is a queue of its own.
    fn alone(ports: u32) -> Queue {
        Queue { ports, entries: u32::MAX, kept: 0, shares: None }
    }

    fn room(c: &Calendar, ports: u32) -> bool {
        c.has_room(ports, c.own(ports, 0))
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
        let queues = [
            Queue { ports: 0b011, entries: 2, kept: 0, shares: None },
            Queue { ports: 0b100, entries: 1, kept: 0, shares: None },
        ];
        let mut c = Calendar::new(&queues, Choice::Fewest, &[0b111, 0b100]);
        // Both empty: the first. One waiting for two ports is less than one for one.
        assert_eq!(c.bind(0b111, 0), 0b011);
        c.take(0b001, 1, 0, 9);
        assert_eq!(c.bind(0b111, 0), 0b100);
        c.take(0b100, 1, 0, 5);
        assert_eq!(c.bind(0b111, 0), 0b011);
        // The second is full until its tenant has started, the first has one more place.
        assert_eq!((room(&c, 0b100), room(&c, 0b111)), (false, true));
        c.take(0b010, 1, 0, 9);
        assert!(!room(&c, 0b111));
        c.advance(6);
        assert!(room(&c, 0b100) && room(&c, 0b111));
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
        let queues = [
            Queue { ports: 0b011, entries: 2, kept: 0, shares: None },
            Queue { ports: 0b100, entries: 1, kept: 0, shares: None },
        ];
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
    }

    #[test]
    fn a_place_is_given_back_later() {
        let queues = [
            Queue { ports: 0b01, entries: 1, kept: 2, shares: None },
            Queue { ports: 0b10, entries: 1, kept: 0, shares: None },
        ];
        let mut c = Calendar::new(&queues, Choice::Fewest, &[0b11]);
        c.take(0b01, 1, 0, 4);
        c.take(0b10, 1, 0, 4);
        c.advance(5);
        assert_eq!((room(&c, 0b01), room(&c, 0b10)), (false, true));
        c.advance(6);
        // Written down and set up again ten cycles later, it is so still.
        let mut w = Writer::default();
        c.save(&mut w, 0);
        c.restore(&mut Reader::new(&w.words), 16);
        assert!(!room(&c, 0b01));
        c.advance(17);
        assert!(room(&c, 0b01));
    }

    #[test]
    fn a_queue_may_take_the_places_of_another() {
        let queues = [
            Queue { ports: 0b0011, entries: 3, kept: 0, shares: None },
            Queue { ports: 0b1100, entries: 0, kept: 0, shares: Some(0) },
            Queue { ports: 0b1_0000, entries: 1, kept: 0, shares: None },
        ];
        let mut c = Calendar::new(&queues, Choice::Scattered(8), &[0b1111]);
        for port in [0b0001, 0b0100] {
            c.take(port, 1, 0, 7);
        }
        assert!(room(&c, 0b0011) && room(&c, 0b1100));
        // Three wait in both together: neither has room, the third queue has.
        c.take(0b1000, 1, 0, 7);
        assert_eq!([0b0011, 0b1100, 0b1111, 0b1_0000].map(|ports| room(&c, ports)), [false, false, false, true]);
    }

    #[test]
    fn by_lot_as_long_as_not_many_more_wait_there() {
        let queues = [
            Queue { ports: 0b0011, entries: 3, kept: 0, shares: None },
            Queue { ports: 0b1100, entries: 8, kept: 0, shares: None },
        ];
        let mut c = Calendar::new(&queues, Choice::Scattered(1), &[0b1111, 0b1100]);
        assert_eq!([0, 1, 2, 3, 4].map(|lot| c.own(0b1111, lot)), [0b0011, 0b0011, 0b1100, 0b1100, 0b0011]);
        // Two ports and one: two tickets and one.
        assert_eq!([0, 1, 2, 3].map(|lot| c.own(0b0111, lot)), [0b0011, 0b0011, 0b0100, 0b0011]);
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
