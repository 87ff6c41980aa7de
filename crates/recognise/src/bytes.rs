//! Values that are sums of tables of single bytes.
//!
//! A load from data that is never written, whose index is a byte of some value
//! for certain, is a function of that byte: its 256 results are read off the
//! module. So is one whose index is a nibble, the half of a byte. Moving, cutting and adding such values leaves sums of functions of
//! bytes, and a linear operation on a sum is the operation on every entry. So
//! an S-box with MixColumns behind it is found to be four tables, whether the
//! program holds them as tables or computes them.

use super::form::{Form, WORD};
use super::nibbles;
use super::nibbles::ByteTable;
use super::sums::Sums;
use ciphermill_ir::bits::Masks;
use ciphermill_ir::{BinOp, DataSegment, Func, MemAccess, Op, Space, Type, UnOp, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Tables in one sum, at most.
const MOST_TABLES: usize = 8;
/// An entry may be part of a larger one: of up to so many times its size.
const LARGEST_PART: usize = 3;
/// Steps from an index down to the value it is cut from, at most.
const MOST_STEPS: usize = 6;

/// A table looked up with byte `byte` (0 is the lowest) of `source`.
#[derive(Clone, Debug)]
pub struct Lookup {
    pub source: Value,
    pub byte: u8,
    pub table: Arc<ByteTable>,
}

impl Lookup {
    fn mask(&self) -> u32 {
        self.table.iter().fold(0, |m, t| m | t)
    }

    /// Is an entry the sum of those of its index's bits?
    fn is_linear(&self) -> bool {
        let sum = |x: usize| (0..8).filter(|b| x >> b & 1 == 1).fold(0, |s, b| s ^ self.table[1 << b]);
        (0..256).all(|x| self.table[x] == sum(x))
    }

    /// What a linear table makes of a form of its source.
    pub fn form(&self, source: &Form) -> Form {
        let bit =
            |b: usize| source.moved(|i| (self.table[1 << b] >> i & 1 == 1).then_some(8 * usize::from(self.byte) + b));
        (0..8).fold(Form::constant(0), |sum, b| sum.xor(&bit(b)))
    }
}

#[derive(Default)]
pub struct ByteSums {
    of: HashMap<Value, Vec<Lookup>>,
    /// The loads that are lookups: they need not be made if nothing uses them.
    pub loads: HashSet<Value>,
}

impl ByteSums {
    pub fn new(func: &Func, masks: &Masks, sums: &Sums, data: &[DataSegment]) -> ByteSums {
        let mut out = ByteSums { of: HashMap::new(), loads: HashSet::new() };
        for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
            let i = &func.insts[inst];
            let [result] = i.results[..] else { continue };
            if func.ty(result) != Type::I32 {
                continue;
            }
            if let Op::Load(m) = i.op {
                if let Some(found) = lookup(func, masks, data, m, i.args[0]) {
                    out.loads.insert(result);
                    out.of.insert(result, vec![found]);
                }
            } else if let Some(found) = out.combined(func, sums, result, i.op, &i.args) {
                out.of.insert(result, found);
            }
        }
        out
    }

    /// The tables whose sum a value is.
    pub fn of(&self, v: Value) -> Option<&[Lookup]> {
        self.of.get(&v).map(|l| l.as_slice())
    }

    /// The table that a load reads, if it is linear over GF(2).
    pub fn linear(&self, load: Value) -> Option<&Lookup> {
        match self.of(load) {
            Some([lookup]) if self.loads.contains(&load) && lookup.is_linear() => Some(lookup),
            _ => None,
        }
    }

    /// The loads from tables that are linear over GF(2), by what they are
    /// looked up with.
    pub(crate) fn linear_loads(&self) -> HashMap<Value, Vec<(Value, &Lookup)>> {
        let mut out: HashMap<Value, Vec<(Value, &Lookup)>> = HashMap::new();
        for &load in &self.loads {
            if let Some(lookup) = self.linear(load) {
                out.entry(lookup.source).or_default().push((load, lookup));
            }
        }
        out.values_mut().for_each(|list| list.sort_by_key(|l| l.0));
        out
    }

    fn combined(&self, func: &Func, sums: &Sums, result: Value, op: Op, args: &[Value]) -> Option<Vec<Lookup>> {
        if let Some([a, b]) = sums.parts(result) {
            let all = added(self.of(a)?.iter().chain(self.of(b)?));
            return (all.len() <= MOST_TABLES).then_some(all);
        }
        let arg = |i: usize| args.get(i).map(|&v| func.resolve(v));
        let (of, constant) = match op {
            Op::Un(UnOp::Bswap | UnOp::SExt8 | UnOp::SExt16) => (self.of(arg(0)?)?, 0),
            // These are linear in the word for any constant.
            Op::Bin(BinOp::And | BinOp::Shl | BinOp::ShrU | BinOp::ShrS | BinOp::RotL | BinOp::RotR) => {
                (self.of(arg(0)?)?, func.as_const(arg(1)?)? as u32)
            }
            // A product is where no two partial products share a bit.
            Op::Bin(BinOp::Mul) => {
                let (of, c) = (self.of(arg(0)?)?, func.as_const(arg(1)?)? as u32);
                let mask = of.iter().fold(0, |m, l| m | l.mask());
                Form::bin(BinOp::Mul, &Form::source(0, mask), &Form::constant(c))?;
                (of, c)
            }
            _ => return None,
        };
        let entry = |x: u32| match op {
            Op::Un(u) => u.eval(x.into(), 32) as u32,
            Op::Bin(b) => b.eval(x.into(), constant.into(), 32).unwrap_or(0) as u32,
            _ => x,
        };
        Some(of.iter().map(|l| Lookup { table: Arc::new(l.table.map(entry)), ..l.clone() }).collect())
    }
}

/// A sum of tables with one table for each byte.
pub fn added<'a>(lookups: impl Iterator<Item = &'a Lookup>) -> Vec<Lookup> {
    let mut all: Vec<Lookup> = Vec::new();
    for new in lookups {
        match all.iter_mut().find(|l| (l.source, l.byte) == (new.source, new.byte)) {
            Some(old) => old.table = Arc::new(std::array::from_fn(|x| old.table[x] ^ new.table[x])),
            None => all.push(new.clone()),
        }
    }
    all
}

/// The table that a load reads, if it is one for certain.
fn lookup(func: &Func, masks: &Masks, data: &[DataSegment], m: MemAccess, addr: Value) -> Option<Lookup> {
    if m.space != Space::Linear || !matches!(m.bytes, 1 | 2 | 4) {
        return None;
    }
    let (rest, root) = split(func, addr, u64::from(m.offset));
    let rest = rest?;
    BYTE_OR_NIBBLE.into_iter().find_map(|width| entries(func, masks, data, m, (rest, root), width))
}

/// Bits of an index: of a byte if the table has so many entries.
const BYTE_OR_NIBBLE: [usize; 2] = [8, 4];

/// The table at an address that is a constant and an index of so many bits.
fn entries(
    func: &Func,
    masks: &Masks,
    data: &[DataSegment],
    m: MemAccess,
    (rest, root): (Value, u64),
    width: usize,
) -> Option<Lookup> {
    let own = m.bytes.trailing_zeros() as usize;
    let (scale, (source, first)) =
        (own..own + LARGEST_PART).find_map(|scale| Some((scale, index(func, masks, rest, scale, width)?)))?;
    let size = u64::from(m.bytes);
    let end = root + (((1u64 << width) - 1) << scale) + size;
    let inside =
        |d: &&DataSegment| d.readonly && u64::from(d.addr) <= root && end <= u64::from(d.addr) + d.bytes.len() as u64;
    let segment = data.iter().find(inside)?;
    let bytes = &segment.bytes[(root - u64::from(segment.addr)) as usize..];
    let entry = |x: usize| {
        let word = bytes[x << scale..][..size as usize].iter().rev().fold(0, |w, &b| w << 8 | u32::from(b));
        match (m.signed, m.bytes) {
            (true, 1) => word as u8 as i8 as u32,
            (true, 2) => word as u16 as i16 as u32,
            _ => word,
        }
    };
    let table = if width == 8 { std::array::from_fn(entry) } else { nibbles::of_byte(first % 8, entry) };
    Some(Lookup { source, byte: (first / 8) as u8, table: Arc::new(table) })
}

/// An address as a value and a constant. The sum is not reduced: a table whose
/// address was reached by wrapping is none.
pub(super) fn split(func: &Func, addr: Value, offset: u64) -> (Option<Value>, u64) {
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

/// The value that `v` is `width` bits of, shifted left by `scale`, and which of its bits
/// is the lowest of them.
fn index(func: &Func, masks: &Masks, v: Value, scale: usize, width: usize) -> Option<(Value, usize)> {
    let mut chain = vec![v];
    while chain.len() <= MOST_STEPS
        && let Some(inst) = func.def_inst(chain[chain.len() - 1])
    {
        let data = &func.insts[inst];
        let cuts =
            matches!(data.op, Op::Bin(BinOp::And | BinOp::Shl | BinOp::ShrU | BinOp::ShrS | BinOp::RotL | BinOp::RotR));
        if !cuts || func.as_const(data.args[1]).is_none() {
            break;
        }
        chain.push(func.resolve(data.args[0]));
    }
    // The further down, the fewer operations are left to do.
    (0..chain.len()).rev().find_map(|from| {
        let source = chain[from];
        let possible = masks.possible(func, source) as u32;
        let mut form = Form::source(0, possible);
        for &step in chain[..from].iter().rev() {
            let data = &func.insts[func.def_inst(step)?];
            form = Form::of(data.op, &[&form, &Form::constant(func.as_const(data.args[1])? as u32)])?;
        }
        let whole = Form::source(0, possible);
        let first = (0..WORD).step_by(width).find(|first| {
            let cut = |i: usize| i.checked_sub(scale).filter(|&i| i < width).map(|i| i + first);
            form == whole.moved(cut)
        })?;
        Some((source, first))
    })
}
