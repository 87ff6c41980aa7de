//! Values that only certain registers can hold.
//!
//! What an instruction is executed under, or a branch asks, stands in one of a few registers of
//! a side: five in all on a C62x. A row may have registers enough and these too few, and that
//! shows only when registers are coloured. So where a loop has more such values than a side has
//! of these registers they are counted twice: with all the values of their side, and by
//! themselves.

use super::body::From;
use super::place::{Ops, Sides};
use ciphermill_machine::Reg;
use std::collections::BTreeSet;

#[derive(Default)]
pub struct Certain {
    /// Is an operation's result such a value? Empty where there are registers enough for all.
    results: Vec<bool>,
    /// Registers of each side for them; none where there are enough.
    pub limits: Vec<i64>,
}

impl Certain {
    pub fn of(sides: &Sides<'_>, ops: &Ops) -> Certain {
        let mut results = vec![false; ops.ops.len()];
        let mut registers: Option<BTreeSet<Reg>> = None;
        let mut outside = BTreeSet::new();
        for op in &ops.ops {
            let only = op.variants.first().map_or(&[][..], |v| &sides.machine.instrs[usize::from(v.0)].only);
            for &(o, from) in &op.reads {
                let Some((_, list)) = only.iter().find(|p| p.0 == o) else { continue };
                // Where lists differ, what is in all of them.
                let kept = |r: &Reg| registers.as_ref().is_none_or(|known| known.contains(r));
                registers = Some(list.iter().copied().filter(kept).collect());
                match from {
                    From::Node(p, _) => results[p] = true,
                    From::Outside(v) => {
                        outside.insert((v, op.at.unit));
                    }
                }
            }
        }
        let registers = registers.unwrap_or_default();
        let limit = |(side, pool): (usize, &Vec<Reg>)| {
            let own = pool.iter().filter(|r| registers.contains(r)).count();
            own as i64 - outside.iter().filter(|o| o.1 == side).count() as i64
        };
        let limits: Vec<i64> = sides.pool.iter().enumerate().map(limit).collect();
        let values = results.iter().filter(|r| **r).count() as i64;
        match limits.iter().all(|l| values <= *l) {
            true => Certain::default(),
            false => Certain { results, limits },
        }
    }

    /// Is the operation's result such a value, and are these counted?
    pub fn holds(&self, i: usize) -> bool {
        self.results.get(i).is_some_and(|r| *r)
    }
}
