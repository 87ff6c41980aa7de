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

/// How a value is computed anew: by an instruction, and what is added to it.
#[derive(Clone)]
struct Plan {
    function: u16,
    low: Option<u32>,
    sources: Vec<Value>,
    rest: Vec<Value>,
}

/// Replace what the machine's table and matrix instructions compute.
pub fn rewrite(func: &mut Func, data: &[DataSegment], units: &[Unit]) {
    let masks = Masks::new(func);
    let (sums, values) = (Sums::new(func, &masks), Values::new(func, &masks, data));
    let (plans, needed) = plan(func, units, &sums, &values);
    if plans.is_empty() {
        return;
    }
    for block in func.layout.clone() {
        for inst in std::mem::take(&mut func.blocks[block].insts) {
            let results = func.insts[inst].results.clone();
            let removable = func.insts[inst].op.is_pure() || results.iter().any(|r| values.loads.contains(r));
            if let Some(plan) = results.first().and_then(|r| plans.get(r)) {
                let loc = func.insts[inst].loc;
                let args: Vec<Value> = plan.sources.iter().map(|&v| func.resolve(v)).collect();
                let mut value = func.append1(block, Op::Apply(plan.function), &args, Type::I64, loc);
                if let Some(turn) = plan.low {
                    value = low(func, block, value, turn, loc);
                }
                for &other in &plan.rest {
                    let other = func.resolve(other);
                    value = func.append1(block, Op::Bin(BinOp::Xor), &[value, other], Type::I64, loc);
                }
                func.replace(results[0], value);
            } else if !removable || results.iter().any(|r| needed.contains(r)) {
                func.blocks[block].insts.push(inst);
            }
        }
    }
    func.resolve_all();
}

/// What [`Unit::low`] says, as operations.
fn low(func: &mut Func, block: Block, word: Value, turn: u32, loc: u32) -> Value {
    let mut with = |op: BinOp, a: Value, c: u64| {
        let c = func.append1(block, Op::Const(c), &[], Type::I64, loc);
        func.append1(block, Op::Bin(op), &[a, c], Type::I64, loc)
    };
    if turn == 0 {
        return func.append1(block, Op::Un(UnOp::SExt32), &[word], Type::I64, loc);
    }
    let up = with(BinOp::Shl, word, u64::from(32 - turn));
    let cut = with(BinOp::And, word, u64::from(u32::MAX));
    let down = with(BinOp::ShrU, cut, u64::from(turn));
    let up = func.append1(block, Op::Un(UnOp::SExt32), &[up], Type::I64, loc);
    func.append1(block, Op::Bin(BinOp::Or), &[up, down], Type::I64, loc)
}

/// The plans of the values that have one, and all values that are needed.
fn plan(func: &Func, units: &[Unit], sums: &Sums, values: &Values) -> (HashMap<Value, Plan>, HashSet<Value>) {
    let mut todo = roots(func, &values.loads);
    let (mut plans, mut needed) = (HashMap::new(), HashSet::new());
    while let Some(v) = todo.pop() {
        let v = func.resolve(v);
        let Some(inst) = func.def_inst(v).filter(|_| needed.insert(v)) else { continue };
        match choose(units, sums, values, v) {
            Some(plan) => {
                todo.extend(plan.sources.iter().chain(&plan.rest));
                plans.insert(v, plan);
            }
            None => todo.extend(&func.insts[inst].args),
        }
    }
    (plans, needed)
}

fn choose(units: &[Unit], sums: &Sums, values: &Values, v: Value) -> Option<Plan> {
    let (all, rest) = tables_of(sums, values, v)?;
    if all.parts.len() < LEAST_TABLES {
        return None;
    }
    let (unit, sources) = units.iter().find_map(|unit| Some((unit, bound(unit, &all)?)))?;
    Some(Plan { function: unit.function, low: unit.low, sources, rest })
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
