//! Threshold annealing of a schedule with a few values too many.
//!
//! Moves that make nothing worse get stuck where every one of them needs another first.
//! Here each may cost a little, at first more and at last hardly anything (G. Dueck and
//! T. Scheuer, "Threshold accepting", J. Comp. Phys. 90, 1990; how much is drawn anew for
//! each move, about as in simulated annealing). What a schedule costs grows with the square of
//! the values that rows have too many, and a little where rows are full or nearly so:
//! room there is what the next move needs.

use super::Relief;
use crate::vliw::kernel::modulo::mix;

/// Moves that are tried.
const MOVES: u64 = 10_000;
/// Cost that a move may have: the mean at the beginning and at the end.
const WARMTH: (i64, i64) = (12, 2);
/// One move of so many begins with any operation, the others near a row with too many values.
const ANY: usize = 4;
/// One of so many goes anywhere, the others not far.
const FAR: usize = 4;
const NEAR: i64 = 6;
/// Moves after which crowded rows are looked for anew.
const LOOK: u64 = 256;
/// Parts of a unit of warmth.
const PARTS: i64 = 256;

/// What a row costs that has so many values more than registers.
fn cost(more: i64) -> i64 {
    match more {
        1.. => 2 + 16 * more + 4 * more * more,
        0 => 2,
        -1 => 1,
        _ => 0,
    }
}

/// What is known of the cost while a schedule is annealed.
#[derive(Default)]
pub(super) struct Heat {
    total: i64,
    /// How much more the next move may cost; none while nothing is annealed.
    allowed: Option<i64>,
}

impl Heat {
    /// A row has other values than before.
    pub(super) fn change(&mut self, before: i64, after: i64) {
        self.total += cost(after) - cost(before);
    }

    pub(super) fn total(&self) -> i64 {
        self.total
    }

    /// May a move stay after which the total is what it is, and was `before`?
    pub(super) fn allows(&self, before: i64) -> Option<bool> {
        self.allowed.map(|allowed| self.total <= before + allowed)
    }
}

impl Relief<'_> {
    /// Anneal until no row has too many values; moves that were tried.
    pub(super) fn anneal(&mut self) -> u64 {
        for k in 0..MOVES {
            if self.excess == 0 {
                return k;
            }
            if k % LOOK == 0 {
                self.look();
            }
            let warmth = (WARMTH.0 * (MOVES - k) as i64 + WARMTH.1 * k as i64) * PARTS / MOVES as i64;
            // Zeros at the end of a random number: each one more is half as likely.
            let chance = mix(k, 77);
            let drawn = i64::from(chance.trailing_zeros()) * PARTS + (chance >> 56) as i64;
            self.heat.allowed = Some(drawn * warmth / (PARTS * PARTS));
            self.jump(k);
        }
        MOVES
    }

    /// Try one move.
    fn jump(&mut self, k: u64) {
        let choice = |m: u64, of: usize| mix(k, 5000 + m) as usize % of.max(1);
        let n = self.ops.ops.len();
        let crowded = self.crowded.get(choice(2, self.crowded.len())).copied();
        let i = match crowded.filter(|_| choice(0, ANY) > 0) {
            None => Some(choice(1, n)),
            Some((side, row)) => self.concerned(side, row, choice(1, n), choice(3, 2) == 0),
        };
        let Some(i) = i.filter(|&i| self.near.movable[i]) else { return };
        let (low, high) = self.window(i);
        let now = self.schedule.time[i];
        if high <= low || !(low..=high).contains(&now) {
            return;
        }
        let far = if choice(4, FAR) == 0 { high - low } else { NEAR };
        let (a, b) = (low.max(now - far), high.min(now + far));
        let to = a + choice(5, (b - a + 1) as usize) as i64;
        if to != now {
            self.shift(i, to, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Heat;

    #[test]
    fn a_move_may_cost_what_is_allowed() {
        let mut heat = Heat::default();
        let before = heat.total();
        // A full row gets a value too many, and one with room for two gets one of them.
        heat.change(0, 1);
        heat.change(-2, -1);
        assert_eq!(heat.total() - before, 20 + 1);
        assert_eq!(heat.allows(before), None);
        heat.allowed = Some(20);
        assert_eq!(heat.allows(before), Some(false));
        heat.allowed = Some(21);
        assert_eq!(heat.allows(before), Some(true));
        // What is too much already costs more with each value.
        heat.change(1, 2);
        assert_eq!(heat.total() - before, 21 + 16 + 12);
    }
}
