//! Which banks of on-chip memory an access may touch, and what stands where so
//! that accesses of one cycle seldom meet.
//!
//! Two accesses of one cycle to one single-ported bank cost a cycle. Words at
//! unknown places of one block meet in every second cycle; words of different
//! blocks never do. So the code generator
//!
//! * finds for each access the banks it may touch ([`Analysis`]), for the
//!   schedulers to keep apart those that would probably meet ([`meet`]);
//! * reads half of the constant tables from copies in another block
//!   ([`copy_tables`]);
//! * says where a border between blocks should lie in a buffer that holds
//!   tables ([`border`]).
//!
//! Nothing here is needed for a right result: a buffer that stands elsewhere
//! than assumed costs cycles, no more.

use crate::provenance::extent;
use ciphermill_ir::bits::Masks;
use ciphermill_ir::low_bits::{Low, LowBits};
use ciphermill_ir::{BinOp, Func, FuncId, Inst, MemAccess, Module, Op, SYSTEM_BASE, Space, Value};
use ciphermill_machine::{Banks, Machine};
use ciphermill_vcode::banks::Set;
use std::collections::BTreeMap;

/// Tables larger than this are no tables.
pub(crate) const LARGEST: u64 = 1 << 14;
/// Lookups from which a table is worth its bytes a second time.
const USED: usize = 4;
/// Copies of tables start at multiples of this, so that they lie across banks
/// as their originals do.
const ALIGN: u32 = 8;

/// The banks that accesses are kept apart in: those of a machine that does not
/// order accesses itself.
pub fn described(machine: &Machine) -> Option<&Banks> {
    machine.memory.banks.as_ref().filter(|_| !machine.issue.interlock)
}

/// What is known of the addresses of one function.
pub struct Analysis<'a> {
    banks: &'a Banks,
    low: LowBits,
    masks: Masks,
}

/// An address modulo the memory's size: a first one, and what may come on top
/// of it, a multiple of some power of two.
#[derive(Clone, Copy)]
struct Region {
    first: u64,
    extra: u64,
    step: u64,
}

impl<'a> Analysis<'a> {
    pub fn new(func: &Func, banks: &'a Banks, params: &[Low]) -> Analysis<'a> {
        Analysis { banks, low: LowBits::new(func, params), masks: Masks::new(func) }
    }

    /// The banks that an access may touch; all of the stack's.
    pub fn touched(&self, func: &Func, m: MemAccess, addr: Value) -> Set {
        let size = u64::from(self.banks.blocks) * u64::from(self.banks.block_bytes);
        let line = u64::from(self.banks.banks * self.banks.bank_bytes);
        let mut r = match m.space {
            Space::Stack => Region { first: 0, extra: size, step: 4 },
            _ => self.region(func, func.resolve(addr), size, 6),
        };
        r.first += u64::from(m.offset);
        // Within a block the banks repeat from line to line.
        let whole = r.extra >= u64::from(self.banks.block_bytes);
        let far = if whole { 0 } else { r.extra / line * line };
        let starts = if whole {
            (0..u64::from(self.banks.blocks)).map(|b| b * u64::from(self.banks.block_bytes) + r.first % line).collect()
        } else {
            vec![r.first, r.first + far]
        };
        let mut set = 0;
        for start in starts {
            for by in (0..=r.extra.min(line - 1)).step_by(r.step.clamp(1, line) as usize) {
                let addr = ((start + by) % size) as u32;
                self.banks.touched(addr, u32::from(m.bytes)).for_each(|b| set |= 1 << (b % 64));
            }
        }
        set
    }

    fn region(&self, func: &Func, v: Value, size: u64, depth: u32) -> Region {
        let (bits, value) = self.low.known_bits(func, v);
        if 1u64.checked_shl(bits).is_none_or(|n| n >= size) {
            return Region { first: u64::from(value) % size, extra: 0, step: size };
        }
        let most = self.masks.possible(func, v);
        if most < size {
            return Region { first: 0, extra: most, step: 1 << most.trailing_zeros().min(16) };
        }
        if depth > 0
            && let Some(inst) = func.def_inst(v)
            && func.insts[inst].op == Op::Bin(BinOp::Add)
        {
            let part = |i: usize| self.region(func, func.resolve(func.insts[inst].args[i]), size, depth - 1);
            let (a, b) = (part(0), part(1));
            return Region { first: a.first + b.first, extra: a.extra + b.extra, step: a.step.min(b.step) };
        }
        let bits = bits.min(16);
        Region { first: u64::from(value) & ((1 << bits) - 1), extra: size, step: 1 << bits }
    }
}

/// The function's lookups in data that is never written, by first address:
/// the last byte any of them may read, and the loads.
pub(crate) fn constant_tables(func: &Func, module: &Module) -> BTreeMap<u64, (u64, Vec<Inst>)> {
    let masks = Masks::new(func);
    let mut tables: BTreeMap<u64, (u64, Vec<Inst>)> = BTreeMap::new();
    for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
        let Op::Load(m) = func.insts[inst].op else { continue };
        let addr = func.insts[inst].args[0];
        if m.space != Space::Linear || func.as_const(func.resolve(addr)).is_some() {
            continue;
        }
        let Some((first, last)) = extent(func, &masks, addr, m.offset, m.bytes) else { continue };
        let (first, last) = (u64::from(first), u64::from(last));
        let inside = |d: &&ciphermill_ir::DataSegment| {
            let start = u64::from(d.addr);
            d.readonly && start <= first && last < start + d.bytes.len() as u64
        };
        if last - first < LARGEST && module.data.iter().any(|d| inside(&d)) {
            let table = tables.entry(first).or_default();
            table.0 = table.0.max(last);
            table.1.push(inst);
        }
    }
    tables
}

/// Constant tables with many lookups: the first byte of each and the last, its loads, and
/// the block of memory in which it should stand.
fn shared_out(module: &Module, func: &Func, banks: &Banks) -> Vec<(u64, u64, Vec<Inst>, u32)> {
    let mut tables: Vec<(u64, (u64, Vec<Inst>))> = constant_tables(func, module).into_iter().collect();
    tables.retain(|t| t.1.1.len() >= USED);
    let all: usize = tables.iter().map(|t| t.1.1.len()).sum();
    let start = tables.first().map_or(0, |t| banks.block(t.0 as u32));
    let mut before = 0;
    let placed = tables.into_iter().map(|(first, (last, loads))| {
        // Neighbours stay together: their values are often combined.
        let part = (2 * before + loads.len()) * banks.blocks as usize / (2 * all);
        before += loads.len();
        (first, last, loads, (start + part as u32) % banks.blocks)
    });
    placed.collect()
}

/// The block in which a context without tables should stand, where the function looks up
/// constant tables in both: the one with fewer lookups. So a round key is read beside a
/// lookup in the other.
pub fn beside(module: &Module, func: &Func, banks: &Banks) -> Option<u32> {
    let mut lookups = vec![0; banks.blocks as usize];
    shared_out(module, func, banks).iter().for_each(|t| lookups[t.3 as usize] += t.2.len());
    let busy = lookups.iter().filter(|&&n| n > 0).count() > 1;
    (0..banks.blocks).filter(|_| busy).min_by_key(|&b| lookups[b as usize])
}

/// Give a function that looks up several constant tables copies of some of
/// them in the system area, in the block of memory that has fewer lookups.
pub fn copy_tables(module: &mut Module, id: FuncId, banks: &Banks) {
    for (first, last, loads, block) in shared_out(module, &module.funcs[id], banks) {
        let home = banks.block(first as u32);
        if block == home && banks.block(last as u32) == home {
            continue;
        }
        let Some(at) = copy(module, first, last, block, banks) else { continue };
        let func = &mut module.funcs[id];
        for inst in loads {
            let data = &func.insts[inst];
            let Op::Load(m) = data.op else { continue };
            let addr = func.resolve(data.args[0]);
            let rest = index(func, addr);
            let data = &mut func.insts[inst];
            data.args[0] = rest;
            data.op = Op::Load(MemAccess { offset: SYSTEM_BASE + at, space: Space::System, ..m });
        }
    }
}

/// An address without the constant in it.
pub(crate) fn index(func: &Func, addr: Value) -> Value {
    let Some(inst) = func.def_inst(addr) else { return addr };
    let data = &func.insts[inst];
    if data.op != Op::Bin(BinOp::Add) {
        return addr;
    }
    let (a, b) = (func.resolve(data.args[0]), func.resolve(data.args[1]));
    match (func.as_const(a), func.as_const(b)) {
        (Some(_), _) => b,
        (_, Some(_)) => a,
        _ => addr,
    }
}

/// Copy a range of a read-only segment to the system area; where there it is.
fn copy(module: &mut Module, first: u64, last: u64, block: u32, banks: &Banks) -> Option<u32> {
    let mut at = (module.system.bytes.len() as u32).next_multiple_of(ALIGN) + first as u32 % ALIGN;
    let end = |at: u32| SYSTEM_BASE + at + (last - first) as u32;
    while banks.block(SYSTEM_BASE + at) != block || banks.block(end(at)) != block {
        let next = (SYSTEM_BASE + at + 1).checked_next_multiple_of(banks.block_bytes)?;
        at = next - SYSTEM_BASE + first as u32 % ALIGN;
    }
    copied(module, first, last, at)
}

/// Copy a range of a read-only segment to a place in the system area behind all
/// that is there.
pub(crate) fn copied(module: &mut Module, first: u64, last: u64, at: u32) -> Option<u32> {
    let segment = module
        .data
        .iter()
        .find(|d| d.readonly && u64::from(d.addr) <= first && last < u64::from(d.addr) + d.bytes.len() as u64)?;
    let from = (first - u64::from(segment.addr)) as usize;
    let bytes = segment.bytes.get(from..=(last - u64::from(segment.addr)) as usize)?.to_vec();
    module.system.bytes.resize(at as usize + bytes.len(), 0);
    module.system.bytes[at as usize..].copy_from_slice(&bytes);
    Some(at)
}

/// The offset in the buffer that a function's first parameter points to at
/// which a border between blocks of memory divides its tables best: half of
/// the lookups on each side.
pub fn border(func: &Func) -> Option<u32> {
    let context = *func.blocks[func.entry].params.first()?;
    let masks = Masks::new(func);
    let mut tables: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
        let Op::Load(m) = func.insts[inst].op else { continue };
        let Some((true, first, extra)) = rooted(func, &masks, context, func.insts[inst].args[0], 6) else { continue };
        if extra > 0 && m.space == Space::Linear {
            let first = first + u64::from(m.offset);
            let table = tables.entry(first).or_default();
            table.0 = table.0.max(first + extra + u64::from(m.bytes));
            table.1 += 1;
        }
    }
    let all: usize = tables.values().map(|t| t.1).sum();
    let mut before = (0, 0);
    let mut best: Option<(usize, u32)> = None;
    for (&first, &(end, count)) in &tables {
        if before.0 <= first && before.1 > 0 {
            let uneven = all.abs_diff(2 * before.1);
            if best.is_none_or(|b| uneven < b.0) {
                best = Some((uneven, first as u32));
            }
        }
        before = (end.max(before.0), before.1 + count);
    }
    best.map(|b| b.1)
}

/// An address as a sum: does it contain the buffer's, its constants, and the
/// most the rest can be.
pub(crate) fn rooted(func: &Func, masks: &Masks, root: Value, v: Value, depth: u32) -> Option<(bool, u64, u64)> {
    let v = func.resolve(v);
    if v == root {
        return Some((true, 0, 0));
    }
    if let Some(c) = func.as_const(v) {
        return (c < LARGEST).then_some((false, c, 0));
    }
    let most = masks.possible(func, v);
    if most < LARGEST {
        return Some((false, 0, most));
    }
    let inst = func.def_inst(v)?;
    if depth == 0 || func.insts[inst].op != Op::Bin(BinOp::Add) {
        return None;
    }
    let part = |i: usize| rooted(func, masks, root, func.insts[inst].args[i], depth - 1);
    let (a, b) = (part(0)?, part(1)?);
    (!(a.0 && b.0)).then_some((a.0 || b.0, a.1 + b.1, a.2 + b.2))
}

#[cfg(test)]
mod tests {
    use ciphermill_vcode::banks::meet;

    #[test]
    fn words_meet_in_one_block_and_not_across() {
        let (first, second) = (0b1111, 0b1111_0000);
        assert!(meet(first, first));
        assert!(!meet(first, second));
        // The even word of a line and any word of the block; the odd word.
        assert!(meet(0b0011, first) && meet(0b0011, 0b0011) && !meet(0b0011, 0b1100));
        // Anywhere in two blocks: every fourth time.
        assert!(!meet(0xff, 0xff) && !meet(0, 0));
    }
}
