//! Machines of 64-bit words: instructions found by sums of functions of bytes.
//!
//! All that an instruction of tables and matrices over GF(2) does is one thing here,
//! a [`sum::Sum`], and so is what a program computes with tables. A value, with
//! whatever else is added to it, that is the sum of an instruction is computed by it.
//!
//! * [`sum`]: such sums;
//! * [`units`]: those of the machine's instructions;
//! * [`values`]: those of a program's values;
//! * [`report`]: what was found and what was missed, for people.

pub mod report;
pub mod sum;
pub mod units;
pub mod values;

use super::nibbles;
use super::rewrite::roots;
use super::sums::Sums;
use ciphermill_ir::bits::Masks;
use ciphermill_ir::{BinOp, Block, DataSegment, Func, Op, Type, UnOp, Value};
use std::collections::{HashMap, HashSet};
use sum::Sum;
use units::Unit;
use values::Values;

/// Tables that an instruction takes the place of, at least.
const LEAST_TABLES: usize = 2;

/// The same where its result has to be masked: a constant of 64 bits takes up to eight
/// instructions.
const LEAST_UNDER_MASK: usize = 4;

/// How a value is computed anew: by an instruction, and what is added to it.
#[derive(Clone)]
struct WideReplacement {
    function: u16,
    low: Option<u32>,
    /// Bits of the result that are wanted.
    mask: u64,
    /// Bits by which a single source is shifted down first; up where it is negative.
    down: i32,
    sources: Vec<Value>,
    rest: Vec<Value>,
    /// Instead of one instruction: what else is added, and how.
    chain: Vec<Link>,
}

/// An instruction that adds to a value.
#[derive(Clone)]
struct Link {
    function: u16,
    /// Which of its two sources the value is.
    place: usize,
    source: Value,
}

/// Replace what the machine's table and matrix instructions compute.
pub fn rewrite(func: &mut Func, data: &[DataSegment], units: &[Unit]) {
    let masks = Masks::new(func);
    let (sums, values) = (Sums::new(func, &masks), Values::new(func, &masks, data));
    let (replacements, needed) = replacement(func, units, &sums, &values);
    if replacements.is_empty() {
        return;
    }
    for block in func.layout.clone() {
        // What has been computed in this block already, whole or for a part of it.
        let mut made: HashMap<(u16, Vec<Value>, Type), Value> = HashMap::new();
        for inst in std::mem::take(&mut func.blocks[block].insts) {
            let results = func.insts[inst].results.clone();
            let removable = func.insts[inst].op.is_pure() || results.iter().any(|r| values.loads.contains(r));
            if let Some(replacement) = results.first().and_then(|r| replacements.get(r)) {
                let loc = func.insts[inst].loc;
                let ty = func.ty(results[0]);
                let args: Vec<Value> =
                    replacement.sources.iter().map(|&v| shifted(func, block, v, replacement.down, loc)).collect();
                if !replacement.chain.is_empty() {
                    let value = linked(func, block, replacement, ty, loc);
                    func.replace(results[0], value);
                    continue;
                }
                let whole = if replacement.low.is_some() { Type::I64 } else { ty };
                let mut value = *made
                    .entry((replacement.function, args.clone(), whole))
                    .or_insert_with(|| func.append1(block, Op::Apply(replacement.function), &args, whole, loc));
                if let Some(turn) = replacement.low {
                    value = if ty == Type::I64 {
                        low(func, block, value, turn, loc)
                    } else {
                        narrow(func, block, value, turn, loc)
                    };
                }
                if replacement.mask != u64::MAX {
                    value = with_constant(func, block, BinOp::And, value, replacement.mask, loc);
                }
                for &other in &replacement.rest {
                    let other = func.resolve(other);
                    value = func.append1(block, Op::Bin(BinOp::Xor), &[value, other], ty, loc);
                }
                func.replace(results[0], value);
            } else if !removable || results.iter().any(|r| needed.contains(r)) {
                func.blocks[block].insts.push(inst);
            }
        }
    }
    func.resolve_all();
}

/// The value of a chain.
fn linked(func: &mut Func, block: Block, replacement: &WideReplacement, ty: Type, loc: u32) -> Value {
    let rest: Vec<Value> = replacement.rest.iter().map(|&v| func.resolve(v)).collect();
    let sum = rest.into_iter().reduce(|a, b| func.append1(block, Op::Bin(BinOp::Xor), &[a, b], ty, loc));
    let start = match sum {
        None => func.append1(block, Op::Const(0), &[], ty, loc),
        // The instruction adds all of a word, where the sum would have read half of it.
        Some(v) if ty == Type::I32 && func.ty(v) == Type::I64 => func.append1(block, Op::Wrap, &[v], ty, loc),
        Some(v) => v,
    };
    replacement.chain.iter().fold(start, |value, link| {
        let mut args = vec![func.resolve(link.source)];
        args.insert(link.place, value);
        func.append1(block, Op::Apply(link.function), &args, ty, loc)
    })
}

/// A value shifted down, or up by a negative number.
fn shifted(func: &mut Func, block: Block, v: Value, down: i32, loc: u32) -> Value {
    let v = func.resolve(v);
    match down {
        0 => v,
        by if by > 0 => with_constant(func, block, BinOp::ShrU, v, u64::from(by.unsigned_abs()), loc),
        by => with_constant(func, block, BinOp::Shl, v, u64::from(by.unsigned_abs()), loc),
    }
}

fn with_constant(func: &mut Func, block: Block, op: BinOp, v: Value, constant: u64, loc: u32) -> Value {
    let ty = func.ty(v);
    let constant = func.append1(block, Op::Const(constant & ty.mask()), &[], ty, loc);
    func.append1(block, Op::Bin(op), &[v, constant], ty, loc)
}

/// What [`Unit::low`] says, where values of 32 bits are computed as such.
fn narrow(func: &mut Func, block: Block, word: Value, turn: u32, loc: u32) -> Value {
    let half = func.append1(block, Op::Wrap, &[word], Type::I32, loc);
    if turn == 0 { half } else { with_constant(func, block, BinOp::RotR, half, turn.into(), loc) }
}

/// What [`Unit::low`] says, as operations on words.
fn low(func: &mut Func, block: Block, word: Value, turn: u32, loc: u32) -> Value {
    let mut with = |op: BinOp, a: Value, c: u64| with_constant(func, block, op, a, c, loc);
    if turn == 0 {
        return func.append1(block, Op::Un(UnOp::SExt32), &[word], Type::I64, loc);
    }
    let up = with(BinOp::Shl, word, u64::from(32 - turn));
    let cut = with(BinOp::And, word, u64::from(u32::MAX));
    let down = with(BinOp::ShrU, cut, u64::from(turn));
    let up = func.append1(block, Op::Un(UnOp::SExt32), &[up], Type::I64, loc);
    func.append1(block, Op::Bin(BinOp::Or), &[up, down], Type::I64, loc)
}

/// The replacements of the values that have one, and all values that are needed.
fn replacement(
    func: &Func,
    units: &[Unit],
    sums: &Sums,
    values: &Values,
) -> (HashMap<Value, WideReplacement>, HashSet<Value>) {
    let mut todo = roots(func, &values.loads);
    let uses = ciphermill_ir::low_bits::use_counts(func);
    let (mut replacements, mut needed) = (HashMap::new(), HashSet::new());
    while let Some(v) = todo.pop() {
        let v = func.resolve(v);
        let Some(inst) = func.def_inst(v).filter(|_| needed.insert(v)) else { continue };
        match choose(units, sums, values, v).or_else(|| chained(units, sums, values, &uses, v)) {
            Some(replacement) => {
                todo.extend(replacement.sources.iter().chain(&replacement.rest));
                replacements.insert(v, replacement);
            }
            None => todo.extend(&func.insts[inst].args),
        }
    }
    (replacements, needed)
}

/// A sum with lookups that nothing else reads: each of them is added by the instruction that
/// looks up.
fn chained(
    units: &[Unit],
    sums: &Sums,
    values: &Values,
    uses: &HashMap<Value, u32>,
    v: Value,
) -> Option<WideReplacement> {
    sums.parts(v)?;
    let adds = |term: Value| {
        let wanted = values.of(term).filter(|_| values.loads.contains(&term) && uses.get(&term) == Some(&1))?;
        units.iter().find_map(|unit| {
            let place = unit.added?;
            let replacement = looked_up(unit, wanted).filter(|replacement| replacement.down == 0)?;
            Some(Link { function: unit.function, place, source: replacement.sources[0] })
        })
    };
    let (mut chain, mut rest) = (Vec::new(), Vec::new());
    for term in sums.flatten(v, &mut |_| false) {
        match adds(term) {
            Some(link) => chain.push(link),
            None => rest.push(term),
        }
    }
    let sources = chain.iter().map(|link| link.source).collect();
    (!chain.is_empty()).then_some(WideReplacement {
        function: 0,
        low: None,
        mask: u64::MAX,
        down: 0,
        sources,
        rest,
        chain,
    })
}

fn choose(units: &[Unit], sums: &Sums, values: &Values, v: Value) -> Option<WideReplacement> {
    let (all, rest) = tables_of(sums, values, v)?;
    if all.parts.len() < LEAST_TABLES {
        return if values.loads.contains(&v) { single(units, &all) } else { None };
    }
    let whole = |unit: &Unit| {
        Some(WideReplacement {
            function: unit.function,
            low: unit.low,
            mask: u64::MAX,
            down: 0,
            sources: bound(unit, &all)?,
            rest: rest.clone(),
            chain: Vec::new(),
        })
    };
    units.iter().filter(|u| u.added.is_none()).find_map(whole).or_else(|| masked(units, &all, &rest))
}

/// An instruction that gives more than is wanted, and a mask.
fn masked(units: &[Unit], wanted: &Sum<Value>, rest: &[Value]) -> Option<WideReplacement> {
    let mask = wanted.possible();
    if wanted.parts.len() < LEAST_UNDER_MASK || mask == u64::MAX {
        return None;
    }
    units.iter().filter(|u| u.low.is_none() && u.added.is_none()).find_map(|unit| {
        let cut = Unit { sum: unit.sum.through(|x| x & mask), ..unit.clone() };
        Some(WideReplacement {
            function: unit.function,
            low: None,
            mask,
            down: 0,
            sources: bound(&cut, wanted)?,
            rest: rest.to_vec(),
            chain: Vec::new(),
        })
    })
}

/// An instruction that looks up one byte or nibble, put to one that stands anywhere.
fn single(units: &[Unit], wanted: &Sum<Value>) -> Option<WideReplacement> {
    let replacements = units.iter().filter(|u| u.added.is_none()).filter_map(|unit| looked_up(unit, wanted));
    // One that takes the byte where it stands needs no shift.
    replacements.min_by_key(|replacement| replacement.down != 0)
}

fn looked_up(unit: &Unit, wanted: &Sum<Value>) -> Option<WideReplacement> {
    let ([part], [own]) = (&wanted.parts[..], &unit.sum.parts[..]) else { return None };
    if unit.low.is_some() || unit.sum.constant != wanted.constant {
        return None;
    }
    let nibble = nibbles::is_of_one(&own.table) && nibbles::is_of_one(&part.table);
    let at = |table: &sum::Table| if nibble { nibbles::first(table) } else { 0 };
    let (from, to) = (at(&part.table), at(&own.table));
    let entries = if nibble { 16 } else { 256 };
    if (0..entries).any(|x| part.table[x << from] != own.table[x << to]) {
        return None;
    }
    let place = |byte: u8, shift: usize| 8 * i32::from(byte) + shift as i32;
    let down = place(part.byte, from) - place(own.byte, to);
    Some(WideReplacement {
        function: unit.function,
        low: None,
        mask: u64::MAX,
        down,
        sources: vec![part.source],
        rest: Vec::new(),
        chain: Vec::new(),
    })
}

/// The tables in a value's sum, and its other terms.
fn tables_of(sums: &Sums, values: &Values, v: Value) -> Option<(Sum<Value>, Vec<Value>)> {
    let terms = sums.flatten(v, &mut |_| false);
    let (tables, rest): (Vec<Value>, Vec<Value>) = terms.into_iter().partition(|&t| values.of(t).is_some());
    let all = tables.iter().try_fold(Sum::constant(0), |sum, &t| sum.xor(values.of(t)?))?;
    Some((all, rest))
}

/// The values that are the unit's sources where it computes just that.
fn bound(unit: &Unit, wanted: &Sum<Value>) -> Option<Vec<Value>> {
    if unit.sum.constant != wanted.constant || unit.sum.parts.len() != wanted.parts.len() {
        return None;
    }
    let mut sources: Vec<Option<Value>> = vec![None; unit.sources];
    for part in &unit.sum.parts {
        let fits = wanted.parts.iter().find(|p| {
            p.byte == part.byte && p.table == part.table && sources[part.source].is_none_or(|s| s == p.source)
        })?;
        sources[part.source] = Some(fits.source);
    }
    // Each byte of each source once: none is left over.
    let sources: Vec<Value> = sources.into_iter().collect::<Option<_>>()?;
    let there = |p: &sum::Part<Value>| {
        unit.sum.parts.iter().any(|u| sources[u.source] == p.source && u.byte == p.byte && u.table == p.table)
    };
    wanted.parts.iter().all(there).then_some(sources)
}
