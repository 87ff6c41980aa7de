//! Which virtual registers are the same value, and which flow into each other.
//!
//! A *web* is a parameter of a block with the values that are given for it. A slot of its own, which no
//! other value takes, spares moves between slots where control goes from block to block.

use ciphermill_machine::InstrId;
use ciphermill_vcode::{VFunc, VInst, VKind, VOp, VReg};
use std::collections::BTreeMap;

/// Copies, and parameters of blocks with one predecessor, are aliases of what they copy.
pub struct Names {
    mov: InstrId,
    of: Vec<VReg>,
    /// By virtual register: the slot of its web, if it is not alone in it.
    slot: Vec<Option<u32>>,
    /// Number of slots that belong to webs.
    pub slots: u32,
}

impl Names {
    /// `preds` are the predecessors of each block, `mov` the machine's register move.
    pub fn new(func: &VFunc, preds: &[Vec<usize>], mov: InstrId) -> Names {
        let mut names = Names { mov, of: (0..func.vregs).map(VReg).collect(), slot: Vec::new(), slots: 0 };
        for inst in func.blocks.iter().flat_map(|b| &b.insts) {
            if let Some((to, from)) = names.copied(inst) {
                names.of[to.0 as usize] = from;
            }
        }
        for (to, args) in func.blocks.iter().flat_map(|b| &b.succs) {
            if preds[*to as usize].len() == 1 {
                let params = &func.blocks[*to as usize].params;
                params.iter().zip(args).for_each(|(p, a)| names.of[p.0 as usize] = *a);
            }
        }
        for v in 0..names.of.len() {
            names.of[v] = root(&names.of, VReg(v as u32));
        }
        let webs = names.webs(func, preds);
        let mut slots: BTreeMap<VReg, u32> = BTreeMap::new();
        for web in webs.iter().enumerate().filter(|(v, web)| web.0 as usize != *v).map(|w| *w.1) {
            let next = slots.len() as u32;
            slots.entry(web).or_insert(next);
        }
        names.slots = slots.len() as u32;
        names.slot = webs.iter().map(|web| slots.get(web).copied()).collect();
        names
    }

    /// Parameters with what is given for them. Those that take each other's places stay apart: they
    /// live at the same time.
    fn webs(&self, func: &VFunc, preds: &[Vec<usize>]) -> Vec<VReg> {
        let mut web: Vec<VReg> = (0..func.vregs).map(VReg).collect();
        for (to, args) in func.blocks.iter().flat_map(|b| &b.succs) {
            let params = &func.blocks[*to as usize].params;
            for (p, a) in params.iter().zip(args).filter(|_| preds[*to as usize].len() > 1) {
                let a = self.of(*a);
                if !params.contains(&a) {
                    let (p, a) = (root(&web, *p), root(&web, a));
                    web[p.0.max(a.0) as usize] = p.min(a);
                }
            }
        }
        (0..func.vregs).map(|v| root(&web, VReg(v))).collect()
    }

    pub fn of(&self, v: VReg) -> VReg {
        self.of[v.0 as usize]
    }

    /// The slot that belongs to a value's web.
    pub fn slot(&self, v: VReg) -> Option<u32> {
        self.slot[v.0 as usize]
    }

    /// Result and source of a register move.
    pub fn copied(&self, inst: &VInst) -> Option<(VReg, VReg)> {
        match inst.ops[..] {
            _ if inst.instr != self.mov || inst.kind != VKind::Normal => None,
            [VOp::Def(to), VOp::Use(from)] | [VOp::Use(from), VOp::Def(to)] => Some((to, from)),
            _ => None,
        }
    }
}

fn root(of: &[VReg], v: VReg) -> VReg {
    let mut at = v;
    while of[at.0 as usize] != at {
        at = of[at.0 as usize];
    }
    at
}
