//! Addresses for machines whose accesses add three terms.
//!
//! Where an access takes a base, a scaled index and a displacement, sums that
//! were made once and kept in registers cost more than they save: each access
//! adds for nothing. So a constant that has gone into an access's base goes into
//! its displacement, and a scaled index is written at the access again, where
//! the pattern of the access can take it in.
//!
//! As everywhere in the code generator a displacement is taken to be added
//! without wrapping; code that must keep every trap is left as it is.

use ciphermill_ir::{BinOp, Func, Inst, MemAccess, Op, Type, Value};
use ciphermill_machine::{Operand, OperandKind};
use ciphermill_patterns::matcher::Matcher;
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::pattern::Action;

/// Does some load take a base, a scaled index and any displacement? A short one
/// has no room for constants that have gone into a base.
pub fn three_terms(matcher: &Matcher) -> bool {
    let any = |o: &Operand| matches!(o.kind, OperandKind::Imm { min, max, .. } if min <= i64::from(i32::MIN) && max >= i64::from(i32::MAX));
    matcher.templates.iter().any(|t| match &t.action {
        Action::Value(_, Pat::Load { addr, .. }) => {
            is_three_terms(addr)
                && matches!(&**addr, Pat::Bin(_, _, d) if matches!(**d, Pat::Imm(i) if any(&t.operands[i])))
        }
        _ => false,
    })
}

/// `(b + (i << s)) + d`, in one instruction that is no access?
pub(crate) fn adds_scaled(matcher: &Matcher) -> bool {
    matcher.templates.iter().any(|t| matches!(&t.action, Action::Value(_, p) if is_three_terms(p)))
}

fn is_three_terms(p: &Pat) -> bool {
    let Pat::Bin(BinOp::Add, sum, d) = p else { return false };
    let Pat::Bin(BinOp::Add, b, i) = &**sum else { return false };
    matches!((&**b, &**d), (Pat::Reg(_), Pat::Imm(_))) && matches!(&**i, Pat::Bin(BinOp::Shl, _, _))
}

/// Give every access the terms of its address.
pub fn spread(func: &mut Func) {
    for block in func.layout.clone() {
        let insts = std::mem::take(&mut func.blocks[block].insts);
        let mut out = Vec::with_capacity(insts.len());
        for inst in insts {
            if let Op::Load(m) | Op::Store(m) = func.insts[inst].op {
                access(func, inst, m, &mut out);
            }
            out.push(inst);
        }
        func.blocks[block].insts = out;
    }
}

fn access(func: &mut Func, inst: Inst, m: MemAccess, out: &mut Vec<Inst>) {
    let mut addr = func.resolve(func.insts[inst].args[0]);
    if func.as_const(addr).is_some() {
        return;
    }
    let mut offset = m.offset;
    while let Some((x, c)) = plus_constant(func, addr) {
        (addr, offset) = (x, offset.wrapping_add(c));
    }
    if let Some((a, b)) = sum(func, addr) {
        let (mut a, mut b) = (a, b);
        for term in [&mut a, &mut b] {
            while let Some((x, c)) = plus_constant(func, *term) {
                (*term, offset) = (x, offset.wrapping_add(c));
            }
        }
        if scaled(func, a).is_some() {
            std::mem::swap(&mut a, &mut b);
        }
        let mut make = |func: &mut Func, op: BinOp, x: Value, y: Value| {
            let made = func.make_inst(Op::Bin(op), &[x, y], &[Type::I32], 0);
            out.push(made);
            func.result(made)
        };
        if let Some((x, by)) = scaled(func, b) {
            b = make(func, BinOp::Shl, x, by);
        }
        addr = make(func, BinOp::Add, a, b);
    } else if let Some((x, by)) = scaled(func, addr)
        && offset != 0
    {
        let made = func.make_inst(Op::Bin(BinOp::Shl), &[x, by], &[Type::I32], 0);
        out.push(made);
        addr = func.result(made);
    }
    func.insts[inst].args[0] = addr;
    let m = MemAccess { offset, ..m };
    func.insts[inst].op = if matches!(func.insts[inst].op, Op::Load(_)) { Op::Load(m) } else { Op::Store(m) };
}

fn sum(func: &Func, v: Value) -> Option<(Value, Value)> {
    let data = &func.insts[func.def_inst(v)?];
    (data.op == Op::Bin(BinOp::Add)).then(|| (func.resolve(data.args[0]), func.resolve(data.args[1])))
}

fn plus_constant(func: &Func, v: Value) -> Option<(Value, u32)> {
    let (a, b) = sum(func, v)?;
    match (func.as_const(a), func.as_const(b)) {
        (None, Some(c)) => Some((a, c as u32)),
        (Some(c), None) => Some((b, c as u32)),
        _ => None,
    }
}

/// A value shifted to the left by so little that an address can do it.
fn scaled(func: &Func, v: Value) -> Option<(Value, Value)> {
    let data = &func.insts[func.def_inst(v)?];
    if data.op != Op::Bin(BinOp::Shl) {
        return None;
    }
    let by = func.resolve(data.args[1]);
    func.as_const(by).filter(|c| (1..=3).contains(c))?;
    Some((func.resolve(data.args[0]), by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphermill_ir::{Signature, Space, Terminator};

    #[test]
    fn constants_go_into_the_displacement() {
        let sig = Signature { params: vec![Type::I32; 2], results: vec![Type::I32] };
        let mut f = Func::new("f", sig);
        let entry = f.entry;
        let (p, i) = (f.blocks[entry].params[0], f.blocks[entry].params[1]);
        let c = f.append1(entry, Op::Const(160), &[], Type::I32, 0);
        let two = f.append1(entry, Op::Const(2), &[], Type::I32, 0);
        let base = f.append1(entry, Op::Bin(BinOp::Add), &[p, c], Type::I32, 0);
        let index = f.append1(entry, Op::Bin(BinOp::Shl), &[i, two], Type::I32, 0);
        let addr = f.append1(entry, Op::Bin(BinOp::Add), &[index, base], Type::I32, 0);
        let m = MemAccess { bytes: 4, signed: false, align: 4, offset: 8, space: Space::Linear };
        let load = f.append(entry, Op::Load(m), &[addr], &[Type::I32], 0);
        let v = f.result(load);
        f.blocks[entry].term = Terminator::Return(vec![v]);
        spread(&mut f);
        let Op::Load(m) = f.insts[load].op else { panic!("no load") };
        assert_eq!(m.offset, 168);
        let (a, b) = sum(&f, f.insts[load].args[0]).unwrap();
        assert_eq!(a, p);
        assert_eq!(scaled(&f, b).unwrap().0, i);
    }
}
