//! Which instructions serve table lookups.
//!
//! A load is a table lookup when its address contains an *index*: a value cut
//! out of another (a byte, a halfword, a masked field) rather than a counter.
//! The instructions that cut out, scale and add the index belong to the lookup
//! as long as nothing but lookups uses their result. This is the accounting of
//! Fiskiran and Lee (ICCD 2001): extract, scale, add, load.
//!
//! It is done on the last form that the program has before instructions are
//! selected, so that no transformation comes between: what unrolling, jamming
//! and the rewriting of addresses have made is what is looked at. A selected
//! instruction has the role of the operation whose value it makes; where an
//! instruction covers several, that is the last of them. Scheduling and
//! allocation only move instructions; what they add is overhead.

use ciphermill_ir::low_bits::is_narrow;
use ciphermill_ir::{BinOp, Func, Inst, Op, Space, UnOp, Value};
use std::collections::{HashMap, HashSet};

/// The instructions of one function that serve table lookups.
pub struct Lookups {
    insts: HashSet<Inst>,
}

impl Lookups {
    /// `reads_table` says of a recognised function ([`Op::Apply`]) whether it
    /// reads a table: such an instruction is a whole lookup, or several.
    pub fn new(func: &Func, reads_table: &dyn Fn(u16) -> bool) -> Lookups {
        let mut insts = HashSet::new();
        let mut arithmetic = Vec::new();
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                if let Op::Apply(n) = data.op
                    && reads_table(n)
                {
                    insts.insert(inst);
                }
                if let Op::Load(m) = data.op
                    && m.space != Space::Stack
                    && has_index(func, data.args[0], 4)
                {
                    insts.insert(inst);
                    collect(func, data.args[0], &mut arithmetic);
                }
            }
        }
        let users = users(func);
        // A value that several lookups use is theirs once all of them are known.
        loop {
            let before = insts.len();
            for &inst in &arithmetic {
                let mine = |u: &Option<Inst>| u.is_some_and(|u| insts.contains(&u) && addresses(func, u, inst));
                if users.get(&func.result(inst)).is_some_and(|list| list.iter().all(mine)) {
                    insts.insert(inst);
                }
            }
            if insts.len() == before {
                return Lookups { insts };
            }
        }
    }

    pub fn contains(&self, inst: Inst) -> bool {
        self.insts.contains(&inst)
    }
}

/// Who uses each value; `None` is a terminator.
fn users(func: &Func) -> HashMap<Value, Vec<Option<Inst>>> {
    let mut users: HashMap<Value, Vec<Option<Inst>>> = HashMap::new();
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            for &a in &func.insts[inst].args {
                users.entry(func.resolve(a)).or_default().push(Some(inst));
            }
        }
        func.blocks[block].term.for_each_value(|v| users.entry(func.resolve(v)).or_default().push(None));
    }
    users
}

/// Does the user take the value as part of an address? A table entry that is
/// the index into the next table has been looked up all the same.
fn addresses(func: &Func, user: Inst, value: Inst) -> bool {
    let data = &func.insts[user];
    match data.op {
        Op::Load(_) => func.resolve(data.args[0]) == func.result(value),
        _ => true,
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
        Op::Bin(BinOp::Shl) if depth > 0 => {
            func.as_const(data.args[1]).is_some() && has_index(func, data.args[0], depth - 1)
        }
        // What a word of 32 bits in a register of 64 is cut to.
        Op::Un(UnOp::SExt32) => has_index(func, data.args[0], depth),
        _ => false,
    }
}

/// The address arithmetic between a lookup and the data its index is cut from,
/// users before what they use.
fn collect(func: &Func, v: Value, out: &mut Vec<Inst>) {
    let v = func.resolve(v);
    let Some(inst) = func.def_inst(v) else { return };
    let data = &func.insts[inst];
    let address = matches!(
        data.op,
        Op::Un(UnOp::SExt32) | Op::Bin(BinOp::Add | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::ShrU | BinOp::And)
    );
    if address && !out.contains(&inst) {
        out.push(inst);
        // Below the extraction stands the data itself, which is not ours.
        let extraction = matches!(data.op, Op::Bin(BinOp::And | BinOp::ShrU));
        for &a in &data.args {
            if !extraction || is_narrow(func, a) || shifted_field(func, a) {
                collect(func, a, out);
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
