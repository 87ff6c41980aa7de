//! A choice of queues by what waited some cycles before ([`crate::queues`]).
//!
//! The numbers of waiting micro-operations reach whoever chooses late. What was sent in between is not in them, so several
//! cycles send to the same queue; and as a queue could be full by then, all stop while one of them is nearly so.

use crate::words::{Reader, Writer};

/// A choice by what waited some cycles before. Each port is sent one micro-operation a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delayed {
    /// So many cycles before.
    pub cycles: u8,
    /// Numbers are divided by this before they are compared; the first queue of equals is chosen.
    pub step: u16,
    /// Nothing is sent to any queue while one of them was seen with fewer free places.
    pub spare: u16,
}

/// The number of a queue.
#[inline(always)]
pub fn lane(words: &[u64], queue: usize) -> u32 {
    let at = queue + 1;
    (words[at / 4] >> (16 * (at % 4))) as u32 & 0xffff
}

/// What such a choice goes by.
pub struct Late {
    how: Delayed,
    /// Of each queue its ports, as a set, and its places; `u32::MAX`: any number, and no limit to what it is sent.
    queues: Vec<(u32, u32)>,
    /// Words of a cycle in `seen`.
    words: usize,
    /// What waited at the start of this cycle and of those before, the youngest first.
    seen: Vec<u64>,
    /// Ports that were sent something in this cycle, as a set.
    pub sent: u32,
    /// A queue was seen with too few free places.
    stopped: bool,
}

impl Late {
    /// Nothing waits.
    pub fn new(how: Delayed, queues: Vec<(u32, u32)>, words: usize) -> Late {
        let seen = vec![0; usize::from(how.cycles) * words];
        let mut late = Late { how, queues, words, seen, sent: 0, stopped: false };
        late.look();
        late
    }

    /// The next cycle, at whose start so many wait.
    pub fn step(&mut self, waiting: &[u64]) {
        let older = self.seen.len() - self.words;
        self.seen.copy_within(..older, self.words);
        self.seen[..self.words].copy_from_slice(waiting);
        self.sent = 0;
        self.look();
    }

    /// Nothing waits any more.
    pub fn clear(&mut self) {
        self.seen.fill(0);
        self.sent = 0;
        self.look();
    }

    fn look(&mut self) {
        self.stopped = (0..self.queues.len()).any(|q| self.short(q, self.waited(q)));
    }

    /// What is seen of a queue.
    #[inline(always)]
    fn waited(&self, queue: usize) -> u32 {
        lane(&self.seen[self.seen.len() - self.words..], queue)
    }

    /// Has a queue in which so many wait too few free places?
    #[inline(always)]
    fn short(&self, queue: usize, waiting: u32) -> bool {
        waiting + u32::from(self.how.spare) > self.queues[queue].1
    }

    /// Write it down, and no more than it goes by: a number divided, and whether it is too large.
    pub fn save(&self, w: &mut Writer) {
        w.wide(self.sent);
        for seen in self.seen.chunks(self.words) {
            for q in 0..self.queues.len() {
                let waiting = lane(seen, q);
                w.number(u64::from(waiting / u32::from(self.how.step) * 2 + u32::from(self.short(q, waiting))));
            }
        }
    }

    /// Set it up again: numbers that come to the same.
    pub fn restore(&mut self, r: &mut Reader<'_>) {
        self.sent = r.wide();
        for first in (0..self.seen.len()).step_by(self.words) {
            self.seen[first..first + self.words].fill(0);
            for q in 0..self.queues.len() {
                let word = r.number() as u32;
                let mut waiting = word / 2 * u32::from(self.how.step);
                if word & 1 != 0 && !self.short(q, waiting) {
                    waiting = self.queues[q].1 + 1 - u32::from(self.how.spare);
                }
                self.seen[first + (q + 1) / 4] |= u64::from(waiting) << (16 * ((q + 1) % 4));
            }
        }
        self.look();
    }

    /// Has no queue too few places, and one that can start this a place and a port that was sent nothing in this cycle?
    pub fn takes(&self, ports: u32, full: impl Fn(usize) -> bool) -> bool {
        let able = self.queues.iter().enumerate().filter(|(_, queue)| queue.0 & ports != 0);
        let (mut any, mut takes) = (false, false);
        for (q, &(own, entries)) in able {
            let bounded = entries < u32::MAX;
            any |= bounded;
            takes |= !bounded || own & ports & !self.sent != 0 && !full(q);
        }
        !any || takes && !self.stopped
    }

    /// The port that this is sent to: of those that were sent nothing in this cycle the one whose queue was seen with the
    /// fewest waiting, the first of equals. And what is sent something by that.
    pub fn port(&self, ports: u32, full: impl Fn(usize) -> bool) -> (u32, u32) {
        let able = (0..self.queues.len()).filter(|&q| self.queues[q].0 & ports != 0);
        let busy = |q: usize| self.queues[q].0 & ports & !self.sent == 0;
        let chosen = able.min_by_key(|&q| (full(q), busy(q), self.waited(q) / u32::from(self.how.step)));
        let Some(q) = chosen else { return (ports, 0) };
        let (own, entries) = (self.queues[q].0 & ports, self.queues[q].1);
        if entries == u32::MAX {
            return (own, 0);
        }
        let free = if own & !self.sent == 0 { own } else { own & !self.sent };
        let port = free & free.wrapping_neg();
        (port, port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::Calendar;
    use crate::queues::{Choice, Queue};

    fn room(c: &Calendar, ports: u32) -> bool {
        c.has_room(ports, c.own(ports, 0))
    }

    /// Two queues of a port each that are seen two cycles late.
    fn delayed(entries: u32, step: u16, spare: u16) -> Calendar {
        let queue = |ports| Queue { ports, entries, kept: 0, shares: None };
        let how = Delayed { cycles: 2, step, spare };
        Calendar::new(&[queue(0b01), queue(0b10)], Choice::Delayed(how), &[0b11])
    }

    /// Send one that starts late.
    fn sent(c: &mut Calendar, ports: u32) -> u32 {
        let port = c.bind(ports, 0);
        c.take(port, 1, 0, 40);
        port
    }

    #[test]
    fn what_waits_is_seen_late() {
        let mut c = delayed(9, 1, 0);
        // One a cycle: two go to the first before it is seen that one waits there, and three to the second before it is seen
        // that two do.
        let ports: Vec<u32> = (1..=5)
            .map(|t| {
                let port = sent(&mut c, 0b11);
                c.advance(t);
                port
            })
            .collect();
        assert_eq!(ports, [0b01, 0b01, 0b10, 0b10, 0b10]);
        // Where two are no more than one, two more go to the first.
        let mut c = delayed(9, 2, 0);
        let ports = [1, 2, 3, 4].map(|t| {
            let port = sent(&mut c, 0b11);
            c.advance(t);
            port
        });
        assert_eq!(ports, [0b01, 0b01, 0b01, 0b10]);
    }

    #[test]
    fn a_port_is_sent_one_a_cycle() {
        let mut c = delayed(9, 1, 0);
        assert_eq!([sent(&mut c, 0b11), sent(&mut c, 0b11)], [0b01, 0b10]);
        assert!(!room(&c, 0b11));
        c.advance(1);
        assert!(room(&c, 0b11));
        // The first can start it only there: the other port does not help.
        sent(&mut c, 0b01);
        assert_eq!((room(&c, 0b01), room(&c, 0b11)), (false, true));
    }

    #[test]
    fn a_queue_seen_with_few_places_stops_all() {
        let mut c = delayed(3, 1, 2);
        for t in 1..=2 {
            sent(&mut c, 0b01);
            c.advance(t);
        }
        // One waits there as it is seen: two places are left. In the next cycle it is two, and one place.
        assert!(room(&c, 0b10));
        c.advance(3);
        assert_eq!((room(&c, 0b01), room(&c, 0b10)), (false, false));
        // What is no queue's is not stopped. Written down and set up again it is so still.
        let mut w = Writer::default();
        c.save(&mut w, 0);
        let mut other = delayed(3, 1, 2);
        other.restore(&mut Reader::new(&w.words), 103);
        assert!(!room(&other, 0b10) && room(&other, 0b100));
        // They start in 40.
        other.advance(143);
        assert!(room(&other, 0b10));
    }
}
