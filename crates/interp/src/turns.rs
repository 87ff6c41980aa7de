//! How many turns loops make each time they are entered.

use ciphermill_ir::{Block, FuncId};
use std::collections::{HashMap, HashSet};

/// A loop, by its function and its header.
pub type Header = (FuncId, Block);

/// Loops whose turns are counted. Where a function is entered again before it returns, turns of both are counted as one
/// entry's, or as several's.
#[derive(Default)]
pub(crate) struct Turns {
    loops: HashMap<Header, Counted>,
}

struct Counted {
    inside: HashSet<Block>,
    /// Of the latest entry; 0 before the first.
    turns: u32,
    seen: Seen,
}

#[derive(Clone, Copy)]
enum Seen {
    Nothing,
    Always(u32),
    Different,
}

impl Turns {
    pub(crate) fn of(loops: impl IntoIterator<Item = (Header, HashSet<Block>)>) -> Turns {
        let counted = |inside| Counted { inside, turns: 0, seen: Seen::Nothing };
        Turns { loops: loops.into_iter().map(|(header, inside)| (header, counted(inside))).collect() }
    }

    /// Control goes from one block to another.
    pub(crate) fn went(&mut self, func: FuncId, from: Block, to: Block) {
        let Some(counted) = self.loops.get_mut(&(func, to)) else { return };
        if counted.inside.contains(&from) {
            counted.turns = counted.turns.saturating_add(1);
        } else {
            counted.end();
            counted.turns = 1;
        }
    }

    /// Loops that made as many turns each time, and how many.
    pub(crate) fn constant(mut self) -> HashMap<Header, u32> {
        self.loops.values_mut().for_each(Counted::end);
        let constant = |(header, counted): (Header, Counted)| match counted.seen {
            Seen::Always(turns) => Some((header, turns)),
            Seen::Nothing | Seen::Different => None,
        };
        self.loops.into_iter().filter_map(constant).collect()
    }
}

impl Counted {
    fn end(&mut self) {
        self.seen = match self.seen {
            _ if self.turns == 0 => return,
            Seen::Nothing => Seen::Always(self.turns),
            Seen::Always(turns) if turns == self.turns => return,
            Seen::Always(_) | Seen::Different => Seen::Different,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_other_turns_is_told_though_the_mean_is_whole() {
        let (f, [before, header, body]) = (FuncId::from_u32(0), [0, 1, 2].map(Block::from_u32));
        let go = |entries: &[u32]| {
            let mut turns = Turns::of([((f, header), HashSet::from([header, body]))]);
            for &n in entries {
                turns.went(f, before, header);
                (1..n).for_each(|_| turns.went(f, body, header));
            }
            turns.constant().get(&(f, header)).copied()
        };
        assert_eq!(
            [go(&[]), go(&[5]), go(&[3, 3, 3]), go(&[1, 2, 3]), go(&[2, 2, 1])],
            [None, Some(5), Some(3), None, None]
        );
    }
}
