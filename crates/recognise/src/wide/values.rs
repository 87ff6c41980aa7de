//! A program's values as sums of functions of bytes of other values.
//!
//! There are two views of a value. What it is *cut from*: going down masks, shifts
//! and the like to a value that is none of these, its source. And, where it is made
//! of lookups in constant tables, the sum of these tables. A table that is looked up
//! with what another one gave is one table.

use super::super::bytes::split;
use super::sum::Sum;
use super::units::{binary, unary};
use ciphermill_ir::bits::Masks;
use ciphermill_ir::{BinOp, DataSegment, Func, MemAccess, Op, Space, Value, ops};
use std::collections::{HashMap, HashSet};

/// Masks and shifts from an index down to its source, at most.
const MOST_STEPS: usize = 8;

pub struct Values {
    /// Sums in which there is a table.
    of: HashMap<Value, Sum<Value>>,
    /// The loads that are lookups: they need not be made if nothing uses them.
    pub loads: HashSet<Value>,
}

impl Values {
    pub fn new(func: &Func, masks: &Masks, data: &[DataSegment]) -> Values {
        let mut out = Values { of: HashMap::new(), loads: HashSet::new() };
        for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
            let i = &func.insts[inst];
            let [result] = i.results[..] else { continue };
            let found = match i.op {
                Op::Load(m) => out.lookup(func, masks, data, m, i.args[0], func.ty(result).mask()),
                op => out.combined(func, op, func.ty(result).bits(), &i.args),
            };
            if let Some(sum) = found.filter(|s| !s.parts.is_empty()) {
                if matches!(i.op, Op::Load(_)) {
                    out.loads.insert(result);
                }
                out.of.insert(result, sum);
            }
        }
        out
    }

    /// The tables whose sum a value is.
    pub fn of(&self, v: Value) -> Option<&Sum<Value>> {
        self.of.get(&v)
    }

    fn combined(&self, func: &Func, op: Op, bits: u32, args: &[Value]) -> Option<Sum<Value>> {
        let arg = |v: Value| {
            let v = func.resolve(v);
            func.as_const(v).map(Sum::constant).or_else(|| self.of(v).cloned())
        };
        match (op, args) {
            (Op::Bin(op), &[a, b]) => binary(op, bits, &arg(a)?, &arg(b)?),
            (Op::Un(op), &[a]) => unary(op, bits, &arg(a)?),
            (Op::Wrap | Op::ZExt, &[a]) => Some(lower(&arg(a)?)),
            _ => None,
        }
    }

    /// The table that a load reads, if it is one for certain.
    fn lookup(
        &self,
        func: &Func,
        masks: &Masks,
        data: &[DataSegment],
        m: MemAccess,
        addr: Value,
        mask: u64,
    ) -> Option<Sum<Value>> {
        if m.space != Space::Linear {
            return None;
        }
        let (rest, root) = split(func, addr, u64::from(m.offset));
        let rest = rest?;
        let index = self.of(rest).filter(|s| s.parts.len() == 1).cloned().or_else(|| cut(func, masks, rest))?;
        let size = usize::from(m.bytes);
        let first = data
            .iter()
            .find(|d| d.readonly && (u64::from(d.addr)..u64::from(d.addr) + d.bytes.len() as u64).contains(&root))?;
        index.lookup(|i| {
            let at = usize::try_from(root.checked_add(i)?.checked_sub(u64::from(first.addr))?).ok()?;
            let bytes = first.bytes.get(at..at.checked_add(size)?)?;
            let word = bytes.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b));
            Some(if m.signed { ops::sext(word, 8 * size as u32) as u64 & mask } else { word })
        })
    }
}

/// The lower half of a word.
fn lower(sum: &Sum<Value>) -> Sum<Value> {
    sum.through(|x| x & ops::mask(32))
}

/// What a value is cut from, if that is a single byte.
fn cut(func: &Func, masks: &Masks, v: Value) -> Option<Sum<Value>> {
    let mut chain = vec![func.resolve(v)];
    while chain.len() <= MOST_STEPS
        && let Some(inst) = func.def_inst(chain[chain.len() - 1])
    {
        let data = &func.insts[inst];
        let cuts = match data.op {
            Op::Bin(BinOp::And | BinOp::Shl | BinOp::ShrU | BinOp::ShrS | BinOp::RotL | BinOp::RotR) => {
                func.as_const(data.args[1]).is_some()
            }
            Op::Un(_) | Op::Wrap | Op::ZExt => true,
            _ => false,
        };
        if !cuts {
            break;
        }
        chain.push(func.resolve(data.args[0]));
    }
    // The further down, the fewer operations are left to do.
    (0..chain.len()).rev().find_map(|from| {
        let mut sum = Sum::source(chain[from], masks.possible(func, chain[from]));
        for &step in chain[..from].iter().rev() {
            let data = &func.insts[func.def_inst(step)?];
            let bits = func.ty(step).bits();
            sum = match data.op {
                Op::Bin(op) => binary(op, bits, &sum, &Sum::constant(func.as_const(data.args[1])?))?,
                Op::Un(op) => unary(op, bits, &sum)?,
                Op::Wrap | Op::ZExt => lower(&sum),
                _ => return None,
            };
        }
        (sum.parts.len() == 1).then_some(sum)
    })
}
