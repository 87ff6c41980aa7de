//! A function as all passes over it see it.

use super::code::Code;
use super::distance::Distances;
use super::question::Question;
use super::values::Names;
use ciphermill_vcode::{VFunc, VInst, VReg};

pub struct Blocks<'a> {
    pub func: &'a VFunc,
    pub names: Names,
    pub codes: Vec<Code>,
    /// A reverse post-order.
    pub order: Vec<usize>,
    pub preds: Vec<Vec<usize>>,
}

impl<'a> Blocks<'a> {
    /// None where an operand can be in no register, or an edge is critical.
    pub fn new(question: &Question<'a>) -> Option<Blocks<'a>> {
        let func = question.func;
        let mut preds = vec![Vec::new(); func.blocks.len()];
        for (b, block) in func.blocks.iter().enumerate() {
            block.succs.iter().for_each(|s| preds[s.0 as usize].push(b));
        }
        // Moves on an edge stand at the end of the block before it.
        let critical = |b: &Vec<usize>| b.len() > 1 && b.iter().any(|&p| func.blocks[p].succs.len() > 1);
        if preds.iter().any(critical) || !preds[0].is_empty() {
            return None;
        }
        let order = reverse_post_order(func);
        if order.len() < func.blocks.len() {
            return None;
        }
        let names = Names::new(func, &preds, question.machine.abi.ops.mov);
        let mut codes = (0..func.blocks.len()).map(|b| Code::new(question, &names, b)).collect::<Option<Vec<_>>>()?;
        let distances = Distances::new(func, &codes, &names, &order, &preds);
        codes
            .iter_mut()
            .enumerate()
            .for_each(|(b, code)| code.set_live(&distances.before[b], &distances.behind[b], &names));
        let made = made(func);
        for (b, code) in codes.iter_mut().enumerate() {
            let rarer = |v: &VReg| made[v.0 as usize] < func.blocks[b].frequency();
            code.made_outside = code.names.iter().map(rarer).collect();
        }
        Some(Blocks { func, names, codes, order, preds })
    }

    pub fn has_loops(&self) -> bool {
        self.func.blocks.iter().any(|b| b.loop_depth > 0)
    }

    /// The live-in values of block `to`, each with the value it has when control comes from `from`.
    pub fn sources(&self, from: usize, to: usize) -> Vec<(VReg, VReg)> {
        let block = &self.func.blocks[to];
        let args = self.func.blocks[from].succs.iter().find(|s| s.0 as usize == to).map(|s| &s.1);
        let several = self.preds[to].len() > 1;
        let source = |v: VReg| {
            let param = block.params.iter().position(|p| *p == v).filter(|_| several);
            param.and_then(|n| args.and_then(|a| a.get(n))).map_or(v, |a| self.names.of(*a))
        };
        let code = &self.codes[to];
        code.live_in.iter().map(|&v| code.names[v]).map(|v| (v, source(v))).collect()
    }
}

/// By virtual register: the frequency of the block that makes it.
fn made(func: &VFunc) -> Vec<u64> {
    let mut made = vec![0; func.vregs as usize];
    for block in &func.blocks {
        let all = block.params.iter().copied().chain(block.insts.iter().flat_map(VInst::defs));
        all.for_each(|v| made[v.0 as usize] = block.frequency());
    }
    made
}

fn reverse_post_order(func: &VFunc) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; func.blocks.len()];
    // Blocks with the number of their successors that have been visited.
    let mut path = vec![(0, 0)];
    seen[0] = true;
    while let Some((b, next)) = path.last_mut() {
        let succs = &func.blocks[*b].succs;
        // The last first, so that in the reverse order the first comes first.
        match succs.len().checked_sub(*next + 1).map(|i| succs[i].0 as usize) {
            Some(to) => {
                *next += 1;
                if !std::mem::replace(&mut seen[to], true) {
                    path.push((to, 0));
                }
            }
            None => {
                order.push(*b);
                path.pop();
            }
        }
    }
    order.reverse();
    order
}
