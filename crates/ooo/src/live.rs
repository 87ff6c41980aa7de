//! Registers that are read before they are written again.
//!
//! When the value of any other one came is of no account: two states of the core that differ in nothing else go on
//! alike, down wrong paths too, because those lie in the same graph.

use crate::decompose::Parts;
use crate::uop::{Lists, Uop};

/// Where control goes to is not known: everything may be read there.
pub const ANYWHERE: u32 = u32::MAX;

/// What an instruction is made of, and the one or two that can come behind it.
#[derive(Clone, Copy)]
pub struct Step {
    pub parts: Parts,
    pub next: [u32; 2],
}

/// A set of registers before each instruction.
pub struct Live {
    registers: usize,
    /// So many words for each instruction.
    words: usize,
    sets: Vec<u64>,
}

impl Live {
    /// Iterated backwards to the least fixed point.
    pub fn new(steps: &[Step], uops: &[Uop], lists: &Lists, registers: usize) -> Live {
        let words = registers.div_ceil(64).max(1);
        let mut live = Live { registers, words, sets: vec![0; words * steps.len()] };
        let mut set = vec![0; words];
        let mut changed = true;
        while changed {
            changed = false;
            for (n, Step { parts, next }) in steps.iter().enumerate().rev() {
                set.fill(0);
                next.iter().for_each(|&next| live.join(&mut set, next));
                for uop in uops[parts.first as usize..][..usize::from(parts.count)].iter().rev() {
                    for r in lists.results(uop) {
                        set[usize::from(r.reg) / 64] &= !(1 << (r.reg % 64));
                    }
                    for &r in lists.sources(uop) {
                        set[usize::from(r) / 64] |= 1 << (r % 64);
                    }
                }
                let own = &mut live.sets[n * words..][..words];
                changed |= *own != set[..];
                own.copy_from_slice(&set);
            }
        }
        live
    }

    fn join(&self, set: &mut [u64], next: u32) {
        match self.sets.get(next as usize * self.words..).and_then(|sets| sets.get(..self.words)) {
            Some(own) if next != ANYWHERE => set.iter_mut().zip(own).for_each(|(a, b)| *a |= b),
            _ => set.fill(u64::MAX),
        }
    }

    /// The registers that are live before an instruction, in ascending order; [`ANYWHERE`]: all.
    pub fn before(&self, n: u32) -> impl Iterator<Item = usize> {
        let own = self.sets.get((n as usize).saturating_mul(self.words)..).and_then(|sets| sets.get(..self.words));
        (0..self.words).flat_map(move |i| {
            let mut left = own.map_or(u64::MAX, |own| own[i]);
            let registers = self.registers;
            std::iter::from_fn(move || {
                let r = i * 64 + left.trailing_zeros() as usize;
                (left != 0 && r < registers).then(|| {
                    left &= left - 1;
                    r
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uop::{FIRST, Kind, Result};

    /// A program of instructions that read registers and write one.
    fn live(insts: &[(&[u16], u16, [u32; 2])]) -> Vec<Vec<usize>> {
        let (mut lists, mut uops, mut all) = (Lists::default(), vec![], vec![]);
        for (n, &(read, written, next)) in insts.iter().enumerate() {
            let (sources, results) = (lists.sources.len() as u32, lists.results.len() as u32);
            lists.sources.extend(read);
            lists.results.push(Result { reg: written, latency: 1, part: false });
            uops.push(Uop {
                kind: Kind::Compute,
                lot: 0,
                own: 0,
                first: [0; FIRST],
                fused: false,
                misnamed: false,
                unnamed: false,
                stations: 1,
                ports: 1,
                class: 0,
                busy: 1,
                latency: 1,
                sources: (sources, read.len() as u8),
                results: (results, 1),
            });
            all.push(Step { parts: Parts { first: n as u32, count: 1, ..Parts::default() }, next });
        }
        let live = Live::new(&all, &uops, &lists, 70);
        (0..insts.len() as u32).map(|n| live.before(n).collect()).collect()
    }

    #[test]
    fn what_a_loop_reads_is_live_around_it() {
        let found = live(&[
            (&[1], 2, [1, 1]),
            // Its target and what comes behind it both count.
            (&[2, 69], 3, [2, 1]),
            (&[3], 4, [0, 0]),
        ]);
        assert_eq!(found, [vec![1, 69], vec![1, 2, 69], vec![1, 3, 69]]);
    }

    #[test]
    fn behind_a_return_everything_may_be_read() {
        let found = live(&[(&[], 5, [1, 1]), (&[7], 6, [ANYWHERE; 2])]);
        let all_but = |left: &[usize]| (0..70).filter(|r| !left.contains(r)).collect::<Vec<_>>();
        assert_eq!(found, [all_but(&[5, 6]), all_but(&[6])]);
    }
}
