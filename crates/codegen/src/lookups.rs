//! Which instructions serve table lookups.
//!
//! A load is a table lookup when its address contains an *index*: a value cut
//! out of another (a byte, a halfword, a masked field) rather than a counter.
//! The instructions that cut out, scale and add the index belong to the lookup
//! as long as nothing else uses their result. This is the accounting of
//! Fiskiran and Lee (ICCD 2001): extract, scale, add, load.

use crate::align::{is_narrow, use_counts};
use ciphermill_ir::{BinOp, Func, Inst, Op, Space, Value};
use std::collections::{HashMap, HashSet};

/// The instructions of one function that serve table lookups.
pub struct Lookups {
    insts: HashSet<Inst>,
}

impl Lookups {
    pub fn new(func: &Func) -> Lookups {
        let uses = use_counts(func);
        let mut insts = HashSet::new();
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                if let Op::Load(m) = data.op
                    && m.space != Space::Stack
                    && has_index(func, data.args[0], 4)
                {
                    insts.insert(inst);
                    claim(func, data.args[0], &uses, &mut insts);
                }
            }
        }
        Lookups { insts }
    }

    pub fn contains(&self, inst: Inst) -> bool {
        self.insts.contains(&inst)
    }
}

/// Is one of the terms of the sum `v` an index, scaled or not?
fn has_index(func: &Func, v: Value, depth: u32) -> bool {
    let v = func.resolve(v);
    if is_narrow(func, v) {
        return true;
    }
    let Some(inst) = func.def_inst(v) else { return false };
    let data = &func.insts[inst];
    match data.op {
        Op::Bin(BinOp::Add | BinOp::Or | BinOp::Xor) if depth > 0 => {
            data.args.iter().any(|&a| func.as_const(a).is_none() && has_index(func, a, depth - 1))
        }
        Op::Bin(BinOp::Shl) if depth > 0 => func.as_const(data.args[1]).is_some() && has_index(func, data.args[0], depth - 1),
        _ => false,
    }
}

/// Claim the address arithmetic that only this lookup uses.
fn claim(func: &Func, v: Value, uses: &HashMap<Value, u32>, insts: &mut HashSet<Inst>) {
    let v = func.resolve(v);
    let Some(inst) = func.def_inst(v) else { return };
    let data = &func.insts[inst];
    let address = matches!(
        data.op,
        Op::Bin(BinOp::Add | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::ShrU | BinOp::And)
    );
    if address && uses.get(&v) == Some(&1) && insts.insert(inst) {
        // Below the extraction stands the data itself, which is not ours.
        let extraction = matches!(data.op, Op::Bin(BinOp::And | BinOp::ShrU));
        for &a in &data.args {
            if !extraction || is_narrow(func, a) || shifted_field(func, a) {
                claim(func, a, uses, insts);
            }
        }
    }
}

/// `x >> c` under a mask: the other half of a field extraction.
fn shifted_field(func: &Func, v: Value) -> bool {
    func.def_inst(v).is_some_and(|i| {
        matches!(func.insts[i].op, Op::Bin(BinOp::ShrU)) && func.as_const(func.insts[i].args[1]).is_some()
    })
}
