//! Branch prediction: which way, and where to.
//!
//! Parts with names ([`counters`], [`loops`]) say which way a conditional
//! branch goes; the [`targets`] say where others lead. All of them learn the outcome of a branch at once,
//! in program order, and the history has no wrong-path outcomes in it:
//! hardware that updates at retirement and repairs its history differs only
//! where the same branch comes again before it has retired.

mod counters;
mod loops;
mod targets;

pub use targets::{Btb, Indirect, ReturnStack};

use ciphermill_machine::core::{PartKind, Predictor as Model};
use counters::Counters;
use loops::Loops;

enum Part {
    Taken(bool),
    Backward,
    /// By address alone.
    Bimodal(Counters),
    /// Address bits above history.
    Global(Counters, u32),
    /// Address exclusive-or history.
    Gshare(Counters, u32),
    /// A branch's own history, and counters for each.
    Local(Vec<u32>, Counters, u32),
    Loop(Loops, usize),
    Chooser(Counters, [usize; 2]),
}

/// Says which way conditional branches go.
pub struct Direction {
    parts: Vec<Part>,
    first: usize,
    /// Outcomes, the last one in bit 0.
    history: u32,
    guesses: Vec<bool>,
}

fn low(history: u32, bits: u32) -> u32 {
    if bits >= 32 { history } else { history & ((1 << bits) - 1) }
}

impl Direction {
    pub fn new(model: &Model) -> Direction {
        let part = |kind: &PartKind| match *kind {
            PartKind::Taken(t) => Part::Taken(t),
            PartKind::Backward => Part::Backward,
            PartKind::Bimodal { entries, bits } => Part::Bimodal(Counters::new(entries, bits)),
            PartKind::Global { entries, bits, history } => Part::Global(Counters::new(entries, bits), history),
            PartKind::Gshare { entries, bits, history } => Part::Gshare(Counters::new(entries, bits), history),
            PartKind::Local { entries, bits, history } => {
                Part::Local(vec![0; entries as usize], Counters::new(entries << history, bits), history)
            }
            PartKind::Loop { entries, trips, sure, otherwise } => {
                Part::Loop(Loops::new(entries, trips, sure), otherwise)
            }
            PartKind::Chooser { entries, bits, parts } => Part::Chooser(Counters::new(entries, bits), parts),
        };
        let parts: Vec<Part> = model.parts.iter().map(|p| part(&p.kind)).collect();
        Direction { guesses: vec![false; parts.len()], first: model.direction, parts, history: 0 }
    }

    /// Outcomes so far, the last one in bit 0.
    pub fn history(&self) -> u32 {
        self.history
    }

    /// The guess for a branch at an address, `backward` or not. Asks every part.
    #[inline(always)]
    pub fn guess(&mut self, addr: u32, backward: bool) -> bool {
        for i in 0..self.parts.len() {
            self.guesses[i] = match &self.parts[i] {
                Part::Taken(t) => *t,
                Part::Backward => backward,
                Part::Bimodal(c) => c.high(addr),
                Part::Global(c, bits) => c.high(low(self.history, *bits) | addr << bits),
                Part::Gshare(c, bits) => c.high(addr ^ low(self.history, *bits)),
                Part::Local(own, c, bits) => {
                    let at = addr & (own.len() as u32 - 1);
                    c.high(low(own[at as usize], *bits) | at << bits)
                }
                Part::Loop(l, otherwise) => l.guess(addr).unwrap_or(self.guesses[*otherwise]),
                Part::Chooser(c, [a, b]) => self.guesses[if c.high(addr) { *b } else { *a }],
            };
        }
        self.guesses[self.first]
    }

    /// The outcome of the branch that was guessed last.
    #[inline(always)]
    pub fn learn(&mut self, addr: u32, taken: bool) {
        let history = self.history;
        for part in &mut self.parts {
            match part {
                Part::Taken(_) | Part::Backward => {}
                Part::Bimodal(c) => c.train(addr, taken),
                Part::Global(c, bits) => c.train(low(history, *bits) | addr << *bits, taken),
                Part::Gshare(c, bits) => c.train(addr ^ low(history, *bits), taken),
                Part::Local(own, c, bits) => {
                    let at = addr & (own.len() as u32 - 1);
                    c.train(low(own[at as usize], *bits) | at << *bits, taken);
                    own[at as usize] = own[at as usize] << 1 | u32::from(taken);
                }
                Part::Loop(l, _) => l.train(addr, taken),
                Part::Chooser(c, [a, b]) => {
                    let right = [self.guesses[*a] == taken, self.guesses[*b] == taken];
                    if right[0] != right[1] {
                        c.train(addr, right[1]);
                    }
                }
            }
        }
        self.history = history << 1 | u32::from(taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphermill_machine::core::Part as Named;

    fn predictor(kinds: Vec<PartKind>) -> Direction {
        let parts: Vec<Named> = kinds.into_iter().map(|kind| Named { name: String::new(), kind }).collect();
        Direction::new(&Model {
            direction: parts.len() - 1,
            parts,
            btb_entries: 0,
            btb_ways: 1,
            return_stack: 0,
            indirect_entries: 0,
            indirect_history: 0,
        })
    }

    /// Wrong guesses among the last `count` of a pattern repeated.
    fn wrong(p: &mut Direction, pattern: &[bool], times: usize, count: usize) -> usize {
        let all: Vec<bool> = pattern.iter().copied().cycle().take(pattern.len() * times).collect();
        let mut missed = Vec::new();
        for &taken in &all {
            missed.push(p.guess(0x40, true) != taken);
            p.learn(0x40, taken);
        }
        missed[all.len() - count..].iter().filter(|&&m| m).count()
    }

    #[test]
    fn two_bits_miss_a_loop_once() {
        let mut p = predictor(vec![PartKind::Bimodal { entries: 16, bits: 2 }]);
        let turns: Vec<bool> = (0..10).map(|i| i != 9).collect();
        // Only the way out is wrong: the counter does not fall below a half.
        assert_eq!(wrong(&mut p, &turns, 8, 40), 4);
    }

    #[test]
    fn history_sees_a_short_pattern() {
        let pattern = [true, true, false, true, false];
        let mut bimodal = predictor(vec![PartKind::Bimodal { entries: 16, bits: 2 }]);
        assert!(wrong(&mut bimodal, &pattern, 40, 50) >= 20);
        let mut global = predictor(vec![PartKind::Global { entries: 256, bits: 2, history: 8 }]);
        assert_eq!(wrong(&mut global, &pattern, 40, 50), 0);
        let mut local = predictor(vec![PartKind::Local { entries: 16, bits: 2, history: 4 }]);
        assert_eq!(wrong(&mut local, &pattern, 40, 50), 0);
        let mut gshare = predictor(vec![PartKind::Gshare { entries: 256, bits: 2, history: 8 }]);
        assert_eq!(wrong(&mut gshare, &pattern, 40, 50), 0);
    }

    #[test]
    fn loops_of_sixty_four_turns_are_counted_and_longer_ones_are_not() {
        let make = || {
            predictor(vec![
                PartKind::Bimodal { entries: 16, bits: 2 },
                PartKind::Loop { entries: 16, trips: 64, sure: 2, otherwise: 0 },
            ])
        };
        let turns = |n: usize| -> Vec<bool> { (0..n).map(|i| i != n - 1).collect() };
        assert_eq!(wrong(&mut make(), &turns(64), 8, 4 * 64), 0);
        assert_eq!(wrong(&mut make(), &turns(65), 8, 4 * 65), 4);
    }

    #[test]
    fn the_chooser_learns_who_is_right() {
        let pattern = [true, true, false, true, false];
        let mut p = predictor(vec![
            PartKind::Bimodal { entries: 16, bits: 2 },
            PartKind::Global { entries: 256, bits: 2, history: 8 },
            PartKind::Chooser { entries: 16, bits: 2, parts: [0, 1] },
        ]);
        assert_eq!(wrong(&mut p, &pattern, 60, 50), 0);
    }

    #[test]
    fn what_never_changes() {
        assert!(predictor(vec![PartKind::Taken(true)]).guess(0, false));
        let mut p = predictor(vec![PartKind::Backward]);
        assert_eq!((p.guess(0, true), p.guess(0, false)), (true, false));
    }
}
