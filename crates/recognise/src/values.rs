//! A program's values as sums of tables of single bytes.
//!
//! A load from data that is never written, whose address is a function of one byte of some
//! value for certain, is a function of that byte: its 256 results are read off the module.
//! Moving, masking and adding such values leaves sums of functions of bytes. So an S-box with
//! MixColumns behind it is found to be four tables, whether the program holds them as tables
//! or computes them. A table that undoes what another one gave, so that a linear map is left,
//! is put together with that one.
//!
//! Which byte of which value it is comes from going down masks and shifts to a value that is
//! none of these.

use super::form::operation;
use super::sum::{Function, Part, Sum};
use ciphermill_ir::bits::Masks;
use ciphermill_ir::{BinOp, DataSegment, Func, MemAccess, Op, Space, Value, ops};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Masks and shifts from an index down to its source, at most.
const MOST_STEPS: usize = 8;

#[derive(Default)]
pub struct Values {
    /// Sums in which there is a table.
    of: HashMap<Value, Sum<Value>>,
    /// Loads that are put together with another table: as tables by themselves.
    alone: HashMap<Value, Sum<Value>>,
    /// The loads that are lookups: they need not be made if nothing uses them.
    pub loads: HashSet<Value>,
}

impl Values {
    /// Those of a function on a machine of words of so many bits; `data` is what memory holds
    /// when the module starts.
    pub fn new(func: &Func, masks: &Masks, data: &[DataSegment], word_bits: u32) -> Values {
        let mut out = Values::default();
        for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
            let [result] = func.insts[inst].results[..] else { continue };
            if func.ty(result).bits() > word_bits {
                continue;
            }
            let found = match func.insts[inst].op {
                Op::Load(m) => out.lookup(func, masks, data, m, result),
                _ => combined(func, result, &|v| out.of(v).map(Cow::Borrowed)),
            };
            // No instruction takes more than the bytes of two words.
            let most = 2 * word_bits as usize / 8;
            if let Some(sum) = found.filter(|s| (1..=most).contains(&s.parts.len())) {
                if matches!(func.insts[inst].op, Op::Load(_)) {
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

    /// What a value is, or might be instead: the table that is put together with another, by
    /// itself.
    pub fn either(&self, v: Value) -> impl Iterator<Item = &Sum<Value>> {
        self.of.get(&v).into_iter().chain(self.alone.get(&v))
    }

    /// The terms that are sums of tables, added up, and the others.
    pub fn added(&self, terms: &[Value]) -> Option<(Sum<Value>, Vec<Value>)> {
        let (mut sum, mut rest) = (Sum::constant(0), Vec::new());
        for &term in terms {
            match self.of(term) {
                Some(of) => sum = sum.xor(of)?,
                None => rest.push(term),
            }
        }
        Some((sum, rest))
    }

    /// The tables in a sum of terms, as the program looks them up.
    pub fn looked_up(&self, terms: &[Value]) -> Vec<Part<Value>> {
        let mut sums = terms.iter().filter_map(|&term| self.either(term).last());
        sums.try_fold(Sum::constant(0), |all, sum| all.xor(sum)).map_or(Vec::new(), |all| all.parts)
    }

    /// The table that a load reads, if it is linear over GF(2).
    pub fn linear(&self, load: Value) -> Option<&Part<Value>> {
        let sum = self.of(load).filter(|s| self.loads.contains(&load) && s.is_linear())?;
        sum.parts.first().filter(|part| part.is_linear())
    }

    /// The loads from tables that are linear over GF(2), by what they are looked up with.
    pub(crate) fn linear_loads(&self) -> HashMap<Value, Vec<(Value, &Part<Value>)>> {
        let mut out: HashMap<Value, Vec<(Value, &Part<Value>)>> = HashMap::new();
        for &load in &self.loads {
            if let Some(part) = self.linear(load) {
                out.entry(part.source).or_default().push((load, part));
            }
        }
        out.values_mut().for_each(|list| list.sort_by_key(|l| l.0));
        out
    }

    /// The table that a load reads, if it is one for certain.
    fn lookup(
        &mut self,
        func: &Func,
        masks: &Masks,
        data: &[DataSegment],
        m: MemAccess,
        load: Value,
    ) -> Option<Sum<Value>> {
        if m.space != Space::Linear {
            return None;
        }
        let (address, root) = split(func, func.insts[func.def_inst(load)?].args[0], u64::from(m.offset));
        let address = address?;
        let size = usize::from(m.bytes);
        let inside = |d: &&DataSegment| root.checked_sub(u64::from(d.addr)).is_some_and(|at| at < d.bytes.len() as u64);
        let segment = data.iter().find(|d| d.readonly && inside(d))?;
        let entry = |i: u64| {
            let at = usize::try_from(root.checked_add(i)?.checked_sub(u64::from(segment.addr))?).ok()?;
            let bytes = segment.bytes.get(at..at.checked_add(size)?)?;
            let word = bytes.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b));
            Some(if m.signed { ops::sext(word, 8 * size as u32) as u64 & func.ty(load).mask() } else { word })
        };
        let alone = cut(func, masks, address).iter().find_map(|index| index.lookup(entry));
        let through = self.of(address).and_then(|index| index.lookup(entry));
        let affine = |sum: &Sum<Value>| sum.parts.iter().all(|p| matches!(p.function, Function::Linear(_)));
        match (through, alone) {
            (Some(through), Some(alone)) if affine(&through) => {
                self.alone.insert(load, alone);
                Some(through)
            }
            (through, alone) => alone.or(through),
        }
    }
}

/// What an operation makes of what its operands are; constants are known.
pub(crate) fn combined<'a>(
    func: &Func,
    result: Value,
    of: &dyn Fn(Value) -> Option<Cow<'a, Sum<Value>>>,
) -> Option<Sum<Value>> {
    let data = &func.insts[func.def_inst(result)?];
    let operand = |&v: &Value| {
        let v = func.resolve(v);
        func.as_const(v).map(|c| Cow::Owned(Sum::constant(c))).or_else(|| of(v))
    };
    let operands: SmallVec<[Cow<'a, Sum<Value>>; 3]> = data.args.iter().map(operand).collect::<Option<_>>()?;
    let operands: SmallVec<[&Sum<Value>; 3]> = operands.iter().map(|o| &**o).collect();
    operation(func, data, &operands)
}

/// An address as a value and a constant. The sum is not reduced: a table whose address was
/// reached by wrapping is none.
fn split(func: &Func, addr: Value, offset: u64) -> (Option<Value>, u64) {
    let (mut v, mut root) = (func.resolve(addr), offset);
    loop {
        if let Some(c) = func.as_const(v) {
            return (None, root + c);
        }
        let Some(inst) = func.def_inst(v) else { return (Some(v), root) };
        let data = &func.insts[inst];
        let constant = |i: usize| func.as_const(data.args[i]);
        match (data.op, data.args.len()) {
            (Op::Bin(BinOp::Add), 2) if constant(1).is_some() => root += constant(1).unwrap_or(0),
            _ => return (Some(v), root),
        }
        v = func.resolve(data.args[0]);
    }
}

/// What a value is cut from, if that is a single byte: such ways to see it, the best first.
fn cut(func: &Func, masks: &Masks, v: Value) -> Vec<Sum<Value>> {
    let mut chain = vec![func.resolve(v)];
    while chain.len() <= MOST_STEPS
        && let Some(below) = uncut(func, chain[chain.len() - 1])
    {
        chain.push(below);
    }
    let step = |sum: Sum<Value>, &v: &Value| combined(func, v, &|_| Some(Cow::Borrowed(&sum)));
    let from = |from: usize, possible: u64| {
        let source = Sum::source(chain[from], possible);
        chain[..from].iter().rev().try_fold(source, step).filter(|sum| sum.parts.len() == 1)
    };
    let possible = |from: usize| masks.possible(func, chain[from]);
    // Of a byte that is known to be a smaller number any table will do that is right for those.
    let bytes = |from: usize| (0..8).map(|n| 0xff << (8 * n)).filter(|byte| possible(from) & byte != 0).sum();
    // The further down, the fewer operations are left to do.
    let mut depths = (0..chain.len()).rev();
    let plain = depths.clone().find_map(|n| from(n, bytes(n)).filter(is_index));
    plain.into_iter().chain(depths.find_map(|n| from(n, possible(n)))).collect()
}

/// Is it a whole byte or a whole nibble, moved?
fn is_index(sum: &Sum<Value>) -> bool {
    let [Part { function: Function::Linear(columns), .. }] = &sum.parts[..] else { return false };
    let (low, high) = columns.split_at(4);
    let run = |bits: &[u64]| bits[0] != 0 && bits.windows(2).all(|pair| pair[1] == pair[0] << 1);
    let none = |bits: &[u64]| bits.iter().all(|&bit| bit == 0);
    sum.rest == 0 && (run(columns) || run(low) && none(high) || none(low) && run(high))
}

/// The value that a mask, a shift or the like is applied to.
pub(crate) fn uncut(func: &Func, v: Value) -> Option<Value> {
    let data = &func.insts[func.def_inst(v)?];
    let cuts = match data.op {
        Op::Bin(BinOp::And | BinOp::Shl | BinOp::ShrU | BinOp::ShrS | BinOp::RotL | BinOp::RotR) => {
            func.as_const(data.args[1]).is_some()
        }
        Op::Un(_) | Op::Wrap | Op::ZExt => true,
        _ => false,
    };
    cuts.then(|| func.resolve(data.args[0]))
}
