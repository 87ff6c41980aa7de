//! Liveness of virtual registers, and MaxLive.

use crate::code::{VFunc, VReg};

/// A set of virtual registers, which knows how many are in it.
#[derive(Clone, PartialEq, Eq)]
pub struct Set {
    words: Vec<u64>,
    len: usize,
}

impl Set {
    pub fn new(n: u32) -> Set {
        Set { words: vec![0; (n as usize).div_ceil(64)], len: 0 }
    }

    pub fn insert(&mut self, v: VReg) -> bool {
        let (word, bit) = (v.0 as usize / 64, 1u64 << (v.0 % 64));
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.len += usize::from(new);
        new
    }

    pub fn remove(&mut self, v: VReg) -> bool {
        let (word, bit) = (v.0 as usize / 64, 1u64 << (v.0 % 64));
        let had = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        self.len -= usize::from(had);
        had
    }

    pub fn contains(&self, v: VReg) -> bool {
        self.words[v.0 as usize / 64] & (1u64 << (v.0 % 64)) != 0
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn len(&self) -> usize {
        self.len
    }

    fn union(&mut self, other: &Set) -> bool {
        let mut more = 0;
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            more += (*b & !*a).count_ones() as usize;
            *a |= b;
        }
        self.len += more;
        more > 0
    }
}

/// Live-out set of every block, by backward data flow.
pub fn live_out(func: &VFunc) -> Vec<Set> {
    let n = func.blocks.len();
    let mut outs = vec![Set::new(func.vregs); n];
    let mut ins = vec![Set::new(func.vregs); n];
    loop {
        let mut changed = false;
        for (b, block) in func.blocks.iter().enumerate().rev() {
            for (succ, args) in &block.succs {
                let from = ins[*succ as usize].clone();
                changed |= outs[b].union(&from);
                // Arguments are read by the branch, so they are live before it
                // rather than out of the block; counting them here is the same
                // for every purpose of this analysis.
                for &a in args {
                    changed |= outs[b].insert(a);
                }
            }
            let mut live = outs[b].clone();
            for inst in block.insts.iter().rev() {
                inst.defs().for_each(|d| {
                    live.remove(d);
                });
                inst.uses().for_each(|u| {
                    live.insert(u);
                });
            }
            for &p in &block.params {
                live.remove(p);
            }
            changed |= ins[b].union(&live);
        }
        if !changed {
            return outs;
        }
    }
}

/// MaxLive of a block: the largest number of virtual registers live at one point.
pub fn max_live(func: &VFunc, block: usize, out: &Set) -> usize {
    let mut live = out.clone();
    let mut most = live.len();
    for inst in func.blocks[block].insts.iter().rev() {
        inst.defs().for_each(|d| {
            live.remove(d);
        });
        inst.uses().for_each(|u| {
            live.insert(u);
        });
        most = most.max(live.len());
    }
    most
}
