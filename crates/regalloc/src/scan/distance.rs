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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::code::{Node, Operand};
    use ciphermill_machine::InstrId;
    use ciphermill_vcode::VBlock;

    const A: VReg = VReg(0);
    const B: VReg = VReg(1);
    const P: VReg = VReg(2);

    /// A block that reads these values, one an instruction.
    fn reads(values: &[VReg]) -> Code {
        let mut code = Code::empty(&[], 0);
        for (index, &v) in values.iter().enumerate() {
            let operand = Operand { role: Role::Use, value: code.value(v), within: 0, memory: false };
            code.nodes.push(Node { index, operands: vec![operand], destroyed: 0, ascending: Vec::new() });
        }
        code
    }

    #[test]
    fn behind_a_loop_is_far_away_and_an_argument_as_near_as_its_parameter() {
        // 0 goes to the loop 1, 2, which hands P on; 3 is behind it.
        let block = |params: &[VReg], succs: &[(u32, Vec<VReg>)], loop_depth| VBlock {
            params: params.to_vec(),
            succs: succs.to_vec(),
            loop_depth,
            ..VBlock::default()
        };
        let func = VFunc {
            name: "f".into(),
            blocks: vec![
                block(&[], &[(1, vec![A])], 0),
                block(&[P], &[(2, vec![]), (3, vec![])], 1),
                block(&[], &[(1, vec![P])], 1),
                block(&[], &[], 0),
            ],
            idom: vec![None, Some(0), Some(1), Some(1)],
            vregs: 3,
            has_calls: false,
            params: 0,
            results: 0,
            files: vec![],
        };
        let preds = vec![vec![], vec![0, 2], vec![1], vec![1]];
        let codes = [reads(&[B]), reads(&[P, P]), reads(&[]), reads(&[B, A])];
        let names = Names::new(&func, &preds, InstrId(0));
        let d = Distances::new(&func, &codes, &names, &[0, 1, 3, 2], &preds);
        let next = |list: &[(VReg, usize)]| list.iter().copied().collect::<Next>();
        assert_eq!(d.before[3], next(&[(A, 1), (B, 0)]));
        assert_eq!(d.behind[1], next(&[(A, 1 + LOOP_EXIT), (B, LOOP_EXIT), (P, 0)]));
        assert_eq!(d.behind[2], next(&[(A, 3 + LOOP_EXIT), (B, 2 + LOOP_EXIT), (P, 0)]));
        assert_eq!(d.before[1], next(&[(A, 3 + LOOP_EXIT), (B, 2 + LOOP_EXIT), (P, 0)]));
        // A is wanted at once, as P, though as itself only behind the loop.
        assert_eq!(d.behind[0], next(&[(A, 0), (B, 2 + LOOP_EXIT)]));
        assert_eq!(d.before[0], next(&[(A, 1), (B, 0)]));
    }
}
