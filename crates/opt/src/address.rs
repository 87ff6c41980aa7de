//! Addresses: constants move into the access, table indices get one shape.
//!
//! **Offsets.** `load (x + c)` becomes `load x, offset c`, so that the machine's
//! addressing adds the constant. The addition wraps at 2^32 but the access's
//! sum does not, so this needs a proof that `x + c` does not wrap:
//! * known zero bits bound `x`; or
//! * `x` has been an address already: an access at `x` that did not trap shows
//!   `x` to be below the largest size memory can have (2^30 bytes as the loader
//!   has it), and `c` is below 2^31. Under strict traps that access has to have
//!   come before on every path; otherwise it may stand anywhere in the block,
//!   because a run that traps does not count;
//! * or `c` is negative, `-c` at most the offset, and traps do not count: the
//!   address is below 2^30 when the access does not trap, so `x`, which is
//!   `-c` more, did not wrap.
//!
//! One could think that in compiled C `x + c` never wraps. It does: compilers
//! count loops from `-n` up to 0 and add the end of the array.
//!
//! Where `x` has no proof but an access at `x + d` came before, that sum `y` is
//! known to be an address itself, and `x + c` is `y + (c - d)` without wrapping:
//! fields of one record share one sum. When traps do not count, the sum made
//! for the first access of a block is the lowest of those the block will need.
//!
//! Constant addresses become a multiple of 2048 and an offset below that, which
//! any machine's immediate field holds, so that neighbours share a constant.
//!
//! **Indices.** A field of a word, scaled by an entry's size, can be cut out
//! first and scaled then, or be shifted only as far as needed and masked in
//! place. Which is better depends on the machine ([`IndexForm`]); either way
//! all lookups end up in one form, and only in address operands, where a
//! scaled addressing mode could take the shift.

use crate::edit;
use crate::options::{IndexForm, Options};
use ciphermill_ir::bits;
use ciphermill_ir::{BinOp, Block, Cfg, Dominators, Func, Inst, MemAccess, Module, Op, PAGE_BYTES, Space, Type, Value};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    edit::for_each_func(module, |module, func| run_func(module, func, options))
}

/// Sums remembered for one base.
const MAX_SUMS: usize = 32;
/// Offsets below this fit the immediate field of every machine's accesses.
const NEAR: u32 = 2048;

/// What a value is shown to be below by being an address, and a constant may
/// be below to be added to it.
const SMALL: u64 = 1 << 31;

fn run_func(module: &Module, func: &mut Func, options: &Options) -> bool {
    let cfg = Cfg::new(func);
    let doms = Dominators::new(func, &cfg);
    let small_memory = u64::from(module.memory.max_pages) * PAGE_BYTES <= SMALL / 2;
    let mut pass = Pass {
        doms: &doms,
        strict: options.strict_traps,
        small_memory,
        form: options.index_form,
        addresses: SecondaryMap::new(),
        sums: SecondaryMap::new(),
        ahead: Vec::new(),
        out: Vec::new(),
        changed: false,
    };
    for &block in doms.preorder() {
        pass.block(func, block);
    }
    pass.changed
}

struct Pass<'a> {
    doms: &'a Dominators,
    strict: bool,
    small_memory: bool,
    form: IndexForm,
    /// Blocks from whose facts on a value is known to be below `SMALL`.
    addresses: SecondaryMap<Value, SmallVec<[Block; 1]>>,
    /// By base: sums of it with a constant that have been addresses.
    sums: SecondaryMap<Value, Vec<Sum>>,
    /// Bases and constants of the sums that are addresses in this block.
    ahead: Vec<(Value, u32)>,
    out: Vec<Inst>,
    changed: bool,
}

/// `base + c`, an address from an access in `block` on.
#[derive(Clone, Copy)]
struct Sum {
    value: Value,
    c: u32,
    block: Block,
}

impl Pass<'_> {
    fn block(&mut self, func: &mut Func, block: Block) {
        let insts = std::mem::take(&mut func.blocks[block].insts);
        self.ahead.clear();
        if !self.strict {
            for &inst in &insts {
                self.learn(func, block, inst);
                self.look_ahead(func, inst);
            }
        }
        for inst in insts {
            if let Op::Load(access) | Op::Store(access) = func.insts[inst].op {
                self.access(func, block, inst, access);
                self.learn(func, block, inst);
                self.remember_sum(func, block, inst);
            }
            self.out.push(inst);
        }
        func.blocks[block].insts = std::mem::take(&mut self.out);
    }

    /// Note that the access's address is below the size of memory.
    fn learn(&mut self, func: &Func, block: Block, inst: Inst) {
        let (Op::Load(access) | Op::Store(access)) = func.insts[inst].op else { return };
        if access.space != Space::Linear || !self.small_memory {
            return;
        }
        let addr = func.insts[inst].args[0];
        self.note(func, block, addr);
        // x - c below 2^30, with c at most 2^30, shows x to be below 2^31.
        if let Some((x, c)) = add_const(func, addr)
            && u64::from(c.wrapping_neg()) <= SMALL / 2
        {
            self.note(func, block, x);
        }
    }

    fn note(&mut self, func: &Func, block: Block, v: Value) {
        if !self.is_small(func, block, v) {
            self.addresses[v].push(block);
        }
    }

    fn is_small(&self, func: &Func, block: Block, v: Value) -> bool {
        bits::possible(func, v) < SMALL || self.addresses[v].iter().any(|&b| self.doms.dominates(b, block))
    }

    fn access(&mut self, func: &mut Func, block: Block, inst: Inst, access: MemAccess) {
        let mut addr = func.insts[inst].args[0];
        let mut offset = access.offset;
        while let Some((x, to)) = self.peel(func, block, addr, offset, access.space) {
            (addr, offset) = (x, to);
        }
        if let Some((y, to)) = self.share(func, block, addr, offset, access.space) {
            (addr, offset) = (y, to);
        } else if let Some((x, c, distance)) = self.lowest(func, addr, access.space)
            && let Some(to) = offset.checked_add(distance)
        {
            addr = self.emit_const(func, inst, BinOp::Add, x, u64::from(c));
            offset = to;
        }
        if let Some(c) = func.as_const(addr)
            && let Some(sum) = (c as u32).checked_add(offset)
            && offset != sum % NEAR
        {
            addr = self.emit(func, inst, Op::Const(u64::from(sum - sum % NEAR)), &[]);
            offset = sum % NEAR;
        }
        if let Some(v) = self.indexed(func, inst, addr, 3) {
            addr = v;
        }
        if addr != func.insts[inst].args[0] || offset != access.offset {
            self.changed = true;
            func.insts[inst].args[0] = addr;
            let access = MemAccess { offset, ..access };
            func.insts[inst].op = match func.insts[inst].op {
                Op::Load(_) => Op::Load(access),
                _ => Op::Store(access),
            };
        }
    }

    /// One constant taken out of the address, if that is sound.
    fn peel(&self, func: &Func, block: Block, addr: Value, offset: u32, space: Space) -> Option<(Value, u32)> {
        let (x, c) = add_const(func, addr)?;
        let most = bits::possible(func, x);
        let known = most + u64::from(c) <= u64::from(u32::MAX);
        let as_address = space == Space::Linear && u64::from(c) < SMALL && self.is_small(func, block, x);
        if known || as_address {
            return Some((x, offset.checked_add(c)?));
        }
        let back = c.wrapping_neg();
        let negative = (c as i32) < 0 && back <= offset;
        (negative && !self.strict && self.small_memory && space == Space::Linear).then(|| (x, offset - back))
    }

    fn remember_sum(&mut self, func: &Func, block: Block, inst: Inst) {
        let (Op::Load(access) | Op::Store(access)) = func.insts[inst].op else { return };
        let value = func.insts[inst].args[0];
        if let Some((base, c)) = add_const(func, value)
            && access.space == Space::Linear
            && self.small_memory
            && self.sums[base].len() < MAX_SUMS
            && !self.sums[base].iter().any(|s| s.value == value && self.doms.dominates(s.block, block))
        {
            self.sums[base].push(Sum { value, c, block });
        }
    }

    fn look_ahead(&mut self, func: &Func, inst: Inst) {
        let (Op::Load(access) | Op::Store(access)) = func.insts[inst].op else { return };
        if let Some(sum) = add_const(func, func.insts[inst].args[0])
            && access.space == Space::Linear
            && self.small_memory
            && self.ahead.len() < MAX_SUMS
        {
            self.ahead.push(sum);
        }
    }

    /// A lower sum that this block uses as an address as well: its base and
    /// constant, and how far the given one is above.
    fn lowest(&self, func: &Func, addr: Value, space: Space) -> Option<(Value, u32, u32)> {
        let (base, c) = add_const(func, addr)?;
        let below = |&(x, low): &(Value, u32)| (x == base).then(|| c.wrapping_sub(low)).filter(|&d| d < NEAR);
        let distance = self.ahead.iter().filter_map(below).max()?;
        (distance > 0 && space == Space::Linear).then(|| (base, c.wrapping_sub(distance), distance))
    }

    /// The address as an offset from a sum that has been one before.
    fn share(&self, func: &Func, block: Block, addr: Value, offset: u32, space: Space) -> Option<(Value, u32)> {
        let (base, c) = add_const(func, addr)?;
        if space != Space::Linear {
            return None;
        }
        self.sums[base].iter().find_map(|sum| {
            let distance = c.wrapping_sub(sum.c);
            let to = if u64::from(distance) < SMALL {
                offset.checked_add(distance)?
            } else if self.strict {
                return None;
            } else {
                offset.checked_sub(distance.wrapping_neg())?
            };
            let usable = sum.value != addr && to < NEAR && self.doms.dominates(sum.block, block);
            usable.then_some((sum.value, to))
        })
    }

    fn emit(&mut self, func: &mut Func, at: Inst, op: Op, args: &[Value]) -> Value {
        let inst = func.make_inst(op, args, &[Type::I32], func.insts[at].loc);
        self.out.push(inst);
        func.result(inst)
    }

    fn emit_const(&mut self, func: &mut Func, at: Inst, op: BinOp, x: Value, c: u64) -> Value {
        let c = self.emit(func, at, Op::Const(c), &[]);
        self.emit(func, at, Op::Bin(op), &[x, c])
    }

    /// The address with its index, a few sums down, in the wanted form.
    fn indexed(&mut self, func: &mut Func, at: Inst, v: Value, depth: u32) -> Option<Value> {
        if depth == 0 {
            return None;
        }
        let inst = func.def_inst(v)?;
        if let Op::Bin(BinOp::Add) = func.insts[inst].op {
            let (x, y) = (func.insts[inst].args[0], func.insts[inst].args[1]);
            let (a, b) = (self.indexed(func, at, x, depth - 1), self.indexed(func, at, y, depth - 1));
            if a.is_none() && b.is_none() {
                return None;
            }
            return Some(self.emit(func, at, Op::Bin(BinOp::Add), &[a.unwrap_or(x), b.unwrap_or(y)]));
        }
        let field = match self.form {
            IndexForm::ExtractThenScale => masked_field(func, v)?,
            IndexForm::ShiftThenMask => scaled_field(func, v)?,
        };
        let Field { word, from, mask, scale } = field;
        match self.form {
            IndexForm::ExtractThenScale => {
                let mut x = word;
                if from > 0 {
                    x = self.emit_const(func, at, BinOp::ShrU, x, from);
                }
                if bits::possible(func, x) & !mask != 0 {
                    x = self.emit_const(func, at, BinOp::And, x, mask);
                }
                Some(self.emit_const(func, at, BinOp::Shl, x, scale))
            }
            IndexForm::ShiftThenMask => {
                let x = match from.cmp(&scale) {
                    std::cmp::Ordering::Less => self.emit_const(func, at, BinOp::Shl, word, scale - from),
                    std::cmp::Ordering::Equal => word,
                    std::cmp::Ordering::Greater => self.emit_const(func, at, BinOp::ShrU, word, from - scale),
                };
                Some(self.emit_const(func, at, BinOp::And, x, mask << scale))
            }
        }
    }
}

/// `((word >>u from) & mask) << scale`.
struct Field {
    word: Value,
    from: u64,
    mask: u64,
    scale: u64,
}

fn bin_const(func: &Func, op: BinOp, v: Value) -> Option<(Value, u64)> {
    let data = &func.insts[func.def_inst(v)?];
    if data.op != Op::Bin(op) {
        return None;
    }
    Some((func.resolve(data.args[0]), func.as_const(data.args[1])?))
}

/// Is it ones from bit 0 up, and nothing else?
fn contiguous(mask: u64) -> bool {
    mask != 0 && mask & (mask + 1) == 0
}

/// Recognise `(x >>u s) & m` and `(x << s) & m`, `m` ones with 1 to 3 zeros
/// below.
fn masked_field(func: &Func, v: Value) -> Option<Field> {
    let (shifted, m) = bin_const(func, BinOp::And, v)?;
    if m == 0 {
        return None;
    }
    if let Some((word, s)) = bin_const(func, BinOp::ShrU, shifted) {
        let scale = u64::from(m.trailing_zeros());
        let mask = m >> scale;
        let fits = (1..=3).contains(&scale) && contiguous(mask) && s % 32 + scale < 32;
        return fits.then_some(Field { word, from: s % 32 + scale, mask, scale });
    }
    let (word, s) = bin_const(func, BinOp::Shl, shifted)?;
    let s = s % 32;
    let m = m & (0xFFFF_FFFF << s);
    if m == 0 {
        return None;
    }
    let scale = u64::from(m.trailing_zeros());
    let fits = (1..=3).contains(&scale) && contiguous(m >> scale) && scale >= s;
    fits.then_some(Field { word, from: scale - s, mask: m >> scale, scale })
}

/// Recognise `((x >>u s) & m) << k`, with `s` and the mask present and a
/// result that saves something.
fn scaled_field(func: &Func, v: Value) -> Option<Field> {
    let (field, scale) = bin_const(func, BinOp::Shl, v)?;
    let (shifted, mask) = bin_const(func, BinOp::And, field)?;
    let (word, from) = bin_const(func, BinOp::ShrU, shifted)?;
    let fits = (1..=3).contains(&scale) && contiguous(mask) && (mask << scale) <= 0xFFFF_FFFF && from < 32;
    fits.then_some(Field { word, from, mask, scale })
}

/// `x + c`, also when written as an or of disjoint bits.
fn add_const(func: &Func, v: Value) -> Option<(Value, u32)> {
    if let Some((x, c)) = bin_const(func, BinOp::Add, v) {
        return Some((x, c as u32));
    }
    let (x, c) = bin_const(func, BinOp::Or, v)?;
    (bits::possible(func, x) & c == 0).then_some((x, c as u32))
}
