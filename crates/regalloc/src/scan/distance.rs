//! How far away the next use of each live value is, across blocks.
//!
//! Next-use distances of Braun and Hack (CC 2009, section 3): the least over all ways on, where a way
//! out of a loop counts as very long, so that values used within the loop stay in registers.

use super::code::{Code, Next, Role};
use super::values::Names;
use ciphermill_vcode::{VFunc, VReg};
use std::collections::BTreeSet;

/// What leaving a loop adds to a distance, in instructions: more than a loop has.
const LOOP_EXIT: usize = 100_000;

pub struct Distances {
    /// By block, from its start: the keys are its live-in values.
    pub before: Vec<Next>,
    /// By block, from its end.
    pub behind: Vec<Next>,
}

impl Distances {
    /// Backward data flow; `order` is a reverse post-order of the blocks.
    pub fn new(func: &VFunc, codes: &[Code], names: &Names, order: &[usize], preds: &[Vec<usize>]) -> Distances {
        let n = func.blocks.len();
        let mut d = Distances { before: vec![Next::new(); n], behind: vec![Next::new(); n] };
        // What the blocks themselves say: first uses, and results, which are not live-in.
        let own: Vec<(Next, BTreeSet<VReg>)> = codes.iter().map(own).collect();
        let mut todo: BTreeSet<usize> = (0..order.len()).collect();
        let mut rank = vec![0; n];
        order.iter().enumerate().for_each(|(i, &b)| rank[b] = i);
        while let Some(i) = todo.pop_last() {
            let b = order[i];
            let behind = d.behind(func, names, preds, b);
            let (uses, made) = &own[b];
            let mut before: Next = behind
                .iter()
                .filter(|(v, _)| !made.contains(v))
                .map(|(&v, &far)| (v, codes[b].nodes.len() + far))
                .collect();
            before.extend(uses.iter().map(|(&v, &at)| (v, at)));
            d.behind[b] = behind;
            if d.before[b] != before {
                d.before[b] = before;
                todo.extend(preds[b].iter().map(|&p| rank[p]));
            }
        }
        d
    }

    fn behind(&self, func: &VFunc, names: &Names, preds: &[Vec<usize>], b: usize) -> Next {
        let mut all = Next::new();
        let depth = func.blocks[b].loop_depth;
        for (to, args) in &func.blocks[b].succs {
            let to = *to as usize;
            let block = &func.blocks[to];
            let away = if block.loop_depth < depth { LOOP_EXIT } else { 0 };
            let mut add = |v: VReg, far: usize| {
                let old = all.entry(v).or_insert(usize::MAX);
                *old = (*old).min(far + away);
            };
            let own = |v: &VReg| preds[to].len() > 1 && block.params.contains(v);
            self.before[to].iter().filter(|(v, _)| !own(v)).for_each(|(&v, &far)| add(v, far));
            if preds[to].len() > 1 {
                for (p, a) in block.params.iter().zip(args) {
                    if let Some(&far) = self.before[to].get(p) {
                        add(names.of(*a), far);
                    }
                }
            }
        }
        all
    }
}

/// First uses of values that the block does not make, and the values it makes.
fn own(code: &Code) -> (Next, BTreeSet<VReg>) {
    let (mut uses, mut made) = (Next::new(), BTreeSet::new());
    for (at, node) in code.nodes.iter().enumerate() {
        for o in node.operands.iter().filter(|o| o.role.reads()) {
            let v = code.names[o.value];
            if !made.contains(&v) {
                uses.entry(v).or_insert(at);
            }
        }
        made.extend(
            node.operands.iter().filter(|o| matches!(o.role, Role::Result | Role::Def)).map(|o| code.names[o.value]),
        );
    }
    (uses, made)
}
