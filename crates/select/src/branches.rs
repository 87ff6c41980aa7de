//! Selections as branches.
//!
//! WebAssembly's `select`, and what if-conversion makes of branches, costs a
//! machine without a conditional move a mask and three operations. Compilers
//! for such machines, and those of the time before conditional moves were
//! trusted, branch. Where the machine file says `select = "branch"`, every
//! selection becomes one, neighbours with the same condition together.

use ciphermill_ir::{Block, Func, Inst, Op, Target, Terminator, TrapCode, Value};

/// Make a branch of every selection.
pub fn lower(func: &mut Func) {
    let mut layout = Vec::with_capacity(func.layout.len());
    for block in func.layout.clone() {
        let mut at = block;
        layout.push(at);
        while let Some(first) = func.blocks[at].insts.iter().position(|&i| func.insts[i].op == Op::Select) {
            at = split(func, at, first);
            layout.push(at);
        }
    }
    func.layout = layout;
    func.resolve_all();
}

/// End `block` before its instruction `first`, a selection, with a branch to a
/// new block that has the rest; the new block.
fn split(func: &mut Func, block: Block, first: usize) -> Block {
    let mut rest = func.blocks[block].insts.split_off(first);
    let operands =
        |func: &Func, i: Inst| -> Vec<Value> { func.insts[i].args.iter().map(|&a| func.resolve(a)).collect() };
    let cond = operands(func, rest[0])[0];
    let mut made: Vec<Value> = Vec::new();
    let mut count = 0;
    for &inst in &rest {
        let args = operands(func, inst);
        if func.insts[inst].op != Op::Select || args[0] != cond || args.iter().any(|a| made.contains(a)) {
            break;
        }
        made.push(func.result(inst));
        count += 1;
    }
    let after = rest.split_off(count);
    let join = func.add_block();
    let (mut then, mut els) = (Vec::new(), Vec::new());
    for &inst in &rest {
        let args = operands(func, inst);
        then.push(args[1]);
        els.push(args[2]);
    }
    for inst in rest {
        let old = func.result(inst);
        let param = func.add_param(join, func.ty(old));
        func.replace(old, param);
    }
    func.blocks[join].insts = after;
    func.blocks[join].term = std::mem::replace(&mut func.blocks[block].term, Terminator::Trap(TrapCode::Unreachable));
    func.blocks[block].term = Terminator::Branch { cond, then: Target::new(join, then), els: Target::new(join, els) };
    join
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphermill_ir::{CmpOp, Signature, Type};

    #[test]
    fn neighbours_share_a_branch() {
        let sig = Signature { params: vec![Type::I32; 3], results: vec![Type::I32] };
        let mut f = Func::new("f", sig);
        let entry = f.entry;
        let p: Vec<Value> = f.blocks[entry].params.clone();
        let c = f.append1(entry, Op::Cmp(CmpOp::LtU), &[p[0], p[1]], Type::I32, 0);
        let a = f.append1(entry, Op::Select, &[c, p[1], p[2]], Type::I32, 0);
        let b = f.append1(entry, Op::Select, &[c, p[2], p[1]], Type::I32, 0);
        let d = f.append1(entry, Op::Select, &[c, a, b], Type::I32, 0);
        f.blocks[entry].term = Terminator::Return(vec![d]);
        lower(&mut f);
        // The first two together, the third with what they gave.
        assert_eq!(f.layout.len(), 3);
        let (join, last) = (f.layout[1], f.layout[2]);
        assert_eq!((f.blocks[join].params.len(), f.blocks[last].params.len()), (2, 1));
        assert!(f.layout.iter().all(|&b| f.blocks[b].insts.iter().all(|&i| f.insts[i].op != Op::Select)));
        assert!(matches!(&f.blocks[last].term, Terminator::Return(v) if v[..] == f.blocks[last].params[..]));
    }
}
