//! Table-aligned addresses: a table that begins at a multiple of its size.
//!
//! Some loads do not add base and index but put them side by side
//! (`mem32[base | index]`): nothing carries from the index into the base where
//! the table stands at a multiple of its size, rounded up to a power of two.
//! For machines with such a load the code generator
//!
//! * gives constant tables copies that stand so ([`copy_tables`]);
//! * says where a buffer with tables in it should begin ([`context`]), and
//!   writes the addresses of those tables that then stand so as a union of bits
//!   ([`join_context`]).
//!
//! Which load is chosen is the selector's affair: a machine that has none with
//! a union still has the operation. A buffer that stands elsewhere than it was
//! said to gives another output than the reference's.

use crate::banks::{LARGEST, constant_tables, copied, index, rooted};
use ciphermill_ir::bits::Masks;
use ciphermill_ir::{BinOp, Func, FuncId, Inst, MemAccess, Module, Op, SYSTEM_BASE, Space, Type, Value};
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::pattern::{Action, Template};
use std::collections::{BTreeMap, HashSet};

/// Does some load of the machine, by its templates, put base and index side by side?
pub fn joins(templates: &[Template]) -> bool {
    templates.iter().any(|t| match &t.action {
        Action::Value(_, Pat::Load { addr, .. }) => matches!(&**addr, Pat::Bin(BinOp::Or, ..)),
        _ => false,
    })
}

/// The size of a table that a multiple of it can begin at.
fn rounded(bytes: u64) -> u64 {
    bytes.next_power_of_two()
}

/// Copies of all functions' constant tables in the system area, each at a
/// multiple of its size, and lookups that put address and index side by side.
pub fn copy_tables(module: &mut Module) {
    let ids: Vec<FuncId> = module.funcs.keys().collect();
    let mut found: BTreeMap<FuncId, Vec<(u64, u64, Vec<Inst>)>> = BTreeMap::new();
    // Tables that overlap are parts of one: it is copied as a whole.
    let mut whole: Vec<(u64, u64)> = Vec::new();
    for id in ids {
        let tables = constant_tables(&module.funcs[id], module);
        whole.extend(tables.iter().map(|(&first, t)| (first, t.0)));
        found.insert(id, tables.into_iter().map(|(first, (last, loads))| (first, last, loads)).collect());
    }
    whole.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (first, last) in whole {
        match merged.last_mut().filter(|m| first <= m.1) {
            Some(m) => m.1 = m.1.max(last),
            None => merged.push((first, last)),
        }
    }
    let mut at: BTreeMap<u64, (u64, u32)> = BTreeMap::new();
    for (first, last) in merged {
        let align = rounded(last - first + 1) as u32;
        let place = (module.system.bytes.len() as u32).next_multiple_of(align);
        if let Some(place) = copied(module, first, last, place) {
            at.insert(first, (last, place));
        }
    }
    for (id, tables) in found {
        for (first, last, loads) in tables {
            let Some((&start, &(_, place))) = at.range(..=first).next_back().filter(|a| last <= a.1.0) else {
                continue;
            };
            let base = SYSTEM_BASE + place + (first - start) as u32;
            if u64::from(base) % rounded(last - first + 1) == 0 {
                loads.into_iter().for_each(|inst| join_constant(&mut module.funcs[id], inst, base));
            }
        }
        sweep(&mut module.funcs[id]);
    }
}

/// A lookup in a table at a constant address.
fn join_constant(func: &mut Func, inst: Inst, base: u32) {
    let Op::Load(m) = func.insts[inst].op else { return };
    let rest = index(func, func.resolve(func.insts[inst].args[0]));
    let made = func.make_inst(Op::Const(u64::from(base)), &[], &[Type::I32], 0);
    let constant = func.result(made);
    join(func, inst, constant, rest, &[made]);
    func.insts[inst].op = Op::Load(MemAccess { offset: 0, space: Space::System, ..m });
}

/// The address of `inst` becomes `base | index`; `before` stands before it.
fn join(func: &mut Func, inst: Inst, base: Value, index: Value, before: &[Inst]) {
    let or = func.make_inst(Op::Bin(BinOp::Or), &[base, index], &[Type::I32], func.insts[inst].loc);
    let addr = func.result(or);
    func.insts[inst].args[0] = addr;
    for block in func.layout.clone() {
        let insts = &mut func.blocks[block].insts;
        if let Some(at) = insts.iter().position(|&i| i == inst) {
            insts.splice(at..at, before.iter().copied().chain([or]));
            return;
        }
    }
}

/// A lookup in the buffer that the first parameter points to.
struct Lookup {
    inst: Inst,
    /// Where its table begins in the buffer, and its size.
    first: u64,
    bytes: u64,
    /// What is added to that.
    index: Value,
}

fn lookups(func: &Func) -> Vec<Lookup> {
    let Some(&context) = func.blocks[func.entry].params.first() else { return Vec::new() };
    let masks = Masks::new(func);
    let mut out = Vec::new();
    for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
        let Op::Load(m) = func.insts[inst].op else { continue };
        let addr = func.insts[inst].args[0];
        let Some((true, first, extra)) = rooted(func, &masks, context, addr, 6) else { continue };
        if extra == 0 || m.space != Space::Linear {
            continue;
        }
        if let Some(index) = narrow(func, &masks, context, addr, 6) {
            let bytes = rounded(extra + u64::from(m.bytes));
            out.push(Lookup { inst, first: first + u64::from(m.offset), bytes, index });
        }
    }
    out
}

/// The only term of an address that is neither the buffer nor a constant.
fn narrow(func: &Func, masks: &Masks, root: Value, v: Value, depth: u32) -> Option<Value> {
    let v = func.resolve(v);
    if v == root || func.as_const(v).is_some() {
        return None;
    }
    if masks.possible(func, v) < LARGEST {
        return Some(v);
    }
    let inst = func.def_inst(v)?;
    if depth == 0 || func.insts[inst].op != Op::Bin(BinOp::Add) {
        return None;
    }
    let part = |i: usize| narrow(func, masks, root, func.insts[inst].args[i], depth - 1);
    match (part(0), part(1)) {
        (Some(x), None) | (None, Some(x)) => Some(x),
        _ => None,
    }
}

/// Where the buffer of a function's first parameter should begin, `(modulus,
/// residue)`, for the tables in it to stand at multiples of their size.
pub fn context(func: &Func) -> Option<(u32, u32)> {
    let all = lookups(func);
    let largest = all.iter().max_by_key(|l| l.bytes)?;
    let modulus = u32::try_from(largest.bytes).ok()?;
    Some((modulus, (largest.first as u32).wrapping_neg() & (modulus - 1)))
}

/// Addresses in a buffer that begins at `residue` modulo `modulus`.
pub fn join_context(func: &mut Func, modulus: u32, residue: u32) {
    let Some(&context) = func.blocks[func.entry].params.first() else { return };
    let mut bases: BTreeMap<u64, Value> = BTreeMap::new();
    for l in lookups(func) {
        if l.bytes > u64::from(modulus) || !(u64::from(residue) + l.first).is_multiple_of(l.bytes) {
            continue;
        }
        let Op::Load(m) = func.insts[l.inst].op else { continue };
        let base = match bases.get(&l.first) {
            Some(&base) => base,
            None => {
                let constant = func.make_inst(Op::Const(l.first), &[], &[Type::I32], 0);
                let args = [context, func.result(constant)];
                let sum = func.make_inst(Op::Bin(BinOp::Add), &args, &[Type::I32], 0);
                let entry = func.entry;
                func.blocks[entry].insts.splice(0..0, [constant, sum]);
                func.result(sum)
            }
        };
        bases.insert(l.first, base);
        join(func, l.inst, base, l.index, &[]);
        func.insts[l.inst].op = Op::Load(MemAccess { offset: 0, ..m });
    }
    sweep(func);
}

/// Take away what nothing uses any more: a sum left behind would keep its index
/// from being taken into a load.
fn sweep(func: &mut Func) {
    loop {
        let mut used: HashSet<Value> = HashSet::new();
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                used.extend(func.insts[inst].args.iter().map(|&a| func.resolve(a)));
            }
            func.blocks[block].term.for_each_value(|v| {
                used.insert(func.resolve(v));
            });
        }
        let mut gone = false;
        for block in func.layout.clone() {
            let mut insts = std::mem::take(&mut func.blocks[block].insts);
            let before = insts.len();
            insts.retain(|&i| !func.insts[i].op.is_pure() || func.insts[i].results.iter().any(|r| used.contains(r)));
            gone |= insts.len() < before;
            func.blocks[block].insts = insts;
        }
        if !gone {
            return;
        }
    }
}
