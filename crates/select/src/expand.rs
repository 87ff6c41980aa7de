//! Expansion: from what a WebAssembly operation means to what a machine of
//! any kind can be asked to do.
//!
//! One walk over each function replaces
//!
//! * **divisions** by the checks WebAssembly prescribes and the bare division
//!   (dropped where the divisor is a constant that needs none);
//! * **accesses** that the machine cannot make as they stand: unaligned ones
//!   become bytes, and on a big-endian machine sub-word addresses are turned
//!   (below); a machine that loads without sign only gets the sign extended
//!   behind the load;
//! * **globals** by a register that holds them for the whole program, or by
//!   an access to the system area;
//! * **switches** by a binary search of branches;
//! * **select conditions** by 0 or 1, so that rules may rely on it;
//! * under strict traps, every access by one with a bounds check before it.
//!
//! # Byte order
//!
//! A WebAssembly program sees little-endian memory. On a big-endian machine
//! memory is kept *word-invariant*: an aligned 32-bit word has the value the
//! program expects, so word accesses cost nothing; the byte with WebAssembly
//! address `a` is the machine's byte `a ^ 3`, the halfword `a` is `a ^ 2`.
//! The exclusive-or vanishes where the low two bits of the address are known
//! ([`ciphermill_ir::low_bits`]), which is the case for `p[0] .. p[15]` of an
//! aligned buffer. Read-only byte tables (an S-box) are put a second time into
//! the system area with their bytes in the machine's own order, and a load
//! whose address is certain to be in such a segment goes there without
//! correction.

use ciphermill_ir::bits::Masks;
use ciphermill_ir::low_bits::LowBits;
use ciphermill_ir::{
    BinOp, Block, CmpOp, Func, GlobalId, Inst, MemAccess, Module, Op, SYSTEM_BASE, Space, Target, Terminator, TrapCode,
    Type, UnOp, Value,
};
use ciphermill_machine::{Endian, Machine};
use ciphermill_patterns::matcher::Matcher;
use std::collections::HashMap;

/// What the expansion must know beside the function.
pub struct Context<'a> {
    pub module: &'a Module,
    pub machine: &'a Machine,
    pub matcher: &'a Matcher,
    pub strict_traps: bool,
    /// Promised alignment makes words of accesses that do not state any.
    pub word_buffers: bool,
    /// Globals held in registers; the others live in the system area.
    pub pinned: &'a [GlobalId],
    /// Read-only segments copied in machine byte order: `(address, length,
    /// offset of the copy in the system area)`.
    pub byte_copies: &'a [(u32, u32, u32)],
}

/// What is known of the bits of a function's values.
///
/// A promise about buffers settles how a byte is *addressed* on a big-endian
/// machine. It does not turn byte accesses into words unless
/// [`Context::word_buffers`] asks for it: a native compiler, which sees
/// `uint8_t *`, could not do that either.
pub struct AddressFacts {
    pub promised: LowBits,
    pub proved: LowBits,
    /// Bounds of indices, where there are byte tables to look up.
    pub masks: Option<Masks>,
}

/// Expand one function in place.
pub fn expand(func: &mut Func, cx: &Context<'_>, facts: &AddressFacts) {
    let blocks = func.layout.clone();
    func.layout.clear();
    let mut ex = Expander { ty: Type::I32, func, cx, facts, cur: blocks[0], cache: HashMap::new(), traps: Vec::new() };
    for block in blocks {
        ex.start(block);
        let insts = std::mem::take(&mut ex.func.blocks[block].insts);
        let term = std::mem::replace(&mut ex.func.blocks[block].term, Terminator::Trap(TrapCode::Unreachable));
        for inst in insts {
            ex.inst(inst);
        }
        ex.term(term);
    }
    let traps = std::mem::take(&mut ex.traps);
    func.layout.extend(traps.iter().map(|&(_, b)| b));
    func.resolve_all();
}

struct Expander<'a> {
    /// Of what is computed, where the machine computes in 32 bits and in 64.
    ty: Type,
    func: &'a mut Func,
    cx: &'a Context<'a>,
    facts: &'a AddressFacts,
    cur: Block,
    /// Pure operations already made in the current block.
    cache: HashMap<(Op, Vec<Value>), Value>,
    traps: Vec<(TrapCode, Block)>,
}

impl Expander<'_> {
    fn start(&mut self, block: Block) {
        self.cur = block;
        self.func.layout.push(block);
        self.cache.clear();
    }

    fn new_block(&mut self) -> Block {
        let block = self.func.add_block();
        self.func.layout.pop();
        block
    }

    fn emit(&mut self, op: Op, args: &[Value], loc: u32) -> Value {
        let key = (op, args.to_vec());
        if let Some(&v) = self.cache.get(&key) {
            return v;
        }
        let ty = if self.cx.machine.computes_narrow() && matches!(op, Op::Cmp(_)) { Type::I32 } else { self.word() };
        let v = self.func.append1(self.cur, op, args, ty, loc);
        if op.is_pure() {
            self.cache.insert(key, v);
        }
        v
    }

    fn word(&self) -> Type {
        if self.cx.machine.computes_narrow() { self.ty } else { Type::of_word(u32::from(self.cx.machine.word_bits)) }
    }

    fn konst(&mut self, c: u32) -> Value {
        self.emit(Op::Const(u64::from(c)), &[], 0)
    }

    fn bin(&mut self, op: BinOp, a: Value, b: Value, loc: u32) -> Value {
        self.emit(Op::Bin(op), &[a, b], loc)
    }

    /// Stop with `code` when `cond` is not zero; go on in a new block.
    fn trap_if(&mut self, cond: Value, code: TrapCode) {
        let trap = match self.traps.iter().find(|t| t.0 == code) {
            Some(&(_, b)) => b,
            None => {
                let b = self.new_block();
                self.func.blocks[b].term = Terminator::Trap(code);
                self.traps.push((code, b));
                b
            }
        };
        let next = self.new_block();
        self.func.blocks[self.cur].term =
            Terminator::Branch { cond, then: Target::new(trap, vec![]), els: Target::new(next, vec![]) };
        self.start(next);
    }

    fn inst(&mut self, inst: Inst) {
        let data = self.func.insts[inst].clone();
        let args: Vec<Value> = data.args.iter().map(|&v| self.func.resolve(v)).collect();
        self.ty = match (data.op, data.results.first()) {
            // What is made for these is their addresses.
            (Op::Load(_) | Op::Store(_), _) | (_, None) => Type::I32,
            (_, Some(&v)) => self.func.ty(v),
        };
        match data.op {
            Op::Bin(op) if op.may_trap() => self.division(inst, op, &args, data.loc),
            Op::Select => {
                let cond = self.boolean(args[0], data.loc);
                self.func.insts[inst].args[0] = cond;
                self.keep(inst);
            }
            Op::Load(m) => {
                let v = self.load(m, args[0], data.loc);
                if self.cx.machine.computes_narrow() {
                    self.func.values[v].ty = self.func.ty(data.results[0]);
                }
                self.func.replace(data.results[0], v);
            }
            Op::Store(m) => self.store(m, args[0], args[1], data.loc),
            Op::GlobalGet(g) if !self.cx.pinned.contains(&g) => {
                let (base, m) = self.global(g);
                let v = self.emit(Op::Load(m), &[base], data.loc);
                self.func.replace(data.results[0], v);
            }
            Op::GlobalSet(g) if !self.cx.pinned.contains(&g) => {
                let (base, m) = self.global(g);
                self.func.append(self.cur, Op::Store(m), &[base, args[0]], &[], data.loc);
            }
            _ => self.keep(inst),
        }
    }

    fn keep(&mut self, inst: Inst) {
        self.func.blocks[self.cur].insts.push(inst);
    }

    fn global(&mut self, g: GlobalId) -> (Value, MemAccess) {
        let base = self.konst(SYSTEM_BASE + self.cx.module.globals[g].system_offset);
        // A 32-bit value in a wider word has its sign extended.
        let bytes = self.cx.module.globals[g].ty.bits() as u8 / 8;
        (base, MemAccess { bytes, align: bytes, signed: true, ..word(Space::System) })
    }

    /// A value that is 0 or 1 and zero exactly when `v` is.
    fn boolean(&mut self, v: Value, loc: u32) -> Value {
        match self.func.def_op(v) {
            Some(Op::Cmp(_)) => v,
            Some(Op::Bin(BinOp::And)) => {
                let arg = self.func.insts[self.func.def_inst(v).expect("has an operation")].args[1];
                if self.func.as_const(arg) == Some(1) { v } else { self.nonzero(v, loc) }
            }
            _ => self.nonzero(v, loc),
        }
    }

    fn nonzero(&mut self, v: Value, loc: u32) -> Value {
        let zero = self.konst(0);
        self.emit(Op::Cmp(CmpOp::Ne), &[v, zero], loc)
    }

    fn division(&mut self, inst: Inst, op: BinOp, args: &[Value], loc: u32) {
        let (a, b) = (args[0], args[1]);
        let divisor = self.func.as_const(b);
        if divisor.is_none_or(|d| d == 0) {
            let zero = self.konst(0);
            let is_zero = self.emit(Op::Cmp(CmpOp::Eq), &[b, zero], loc);
            self.trap_if(is_zero, TrapCode::IntegerDivisionByZero);
        }
        let minus_one = divisor.is_none_or(|d| d == self.word().mask());
        let old = self.func.insts[inst].results[0];
        match op {
            BinOp::DivS if minus_one => {
                let ones = self.emit(Op::Const(self.word().mask()), &[], 0);
                let min = self.emit(Op::Const(1 << (self.word().bits() - 1)), &[], 0);
                let x = self.emit(Op::Cmp(CmpOp::Eq), &[b, ones], loc);
                let y = self.emit(Op::Cmp(CmpOp::Eq), &[a, min], loc);
                let both = self.bin(BinOp::And, x, y, loc);
                self.trap_if(both, TrapCode::IntegerOverflow);
                self.keep(inst);
            }
            // The remainder by -1 is 0 where the machine's division overflows.
            BinOp::RemS if minus_one => {
                let ones = self.emit(Op::Const(self.word().mask()), &[], 0);
                let x = self.emit(Op::Cmp(CmpOp::Eq), &[b, ones], loc);
                let (zero, bare, join) = (self.konst(0), self.new_block(), self.new_block());
                self.func.blocks[self.cur].term =
                    Terminator::Branch { cond: x, then: Target::new(join, vec![zero]), els: Target::new(bare, vec![]) };
                self.start(bare);
                let r = self.func.append1(bare, Op::Bin(op), &[a, b], self.word(), loc);
                self.func.blocks[bare].term = Terminator::Jump(Target::new(join, vec![r]));
                self.start(join);
                let joined = self.func.add_param(join, self.word());
                self.func.replace(old, joined);
            }
            _ => self.keep(inst),
        }
    }

    /// Under strict traps: stop unless all bytes of the access are in bounds.
    fn bounds_check(&mut self, m: MemAccess, addr: Value, loc: u32) {
        if !self.cx.strict_traps || m.space != Space::Linear {
            return;
        }
        // An access reads the lower half of a longer word; a comparison would read all of it.
        let long = self.cx.machine.computes_narrow() && self.func.ty(addr) == Type::I64;
        let addr = if long { self.emit(Op::Wrap, &[addr], loc) } else { addr };
        let base = self.konst(SYSTEM_BASE);
        let pages = self.emit(Op::Load(word(Space::System)), &[base], loc);
        let shift = self.konst(16);
        let limit = self.bin(BinOp::Shl, pages, shift, loc);
        let Some(end) = m.offset.checked_add(u32::from(m.bytes)) else {
            let always = self.konst(1);
            return self.trap_if(always, TrapCode::MemoryOutOfBounds);
        };
        let end = self.konst(end);
        let short = self.emit(Op::Cmp(CmpOp::LtU), &[limit, end], loc);
        let last = self.bin(BinOp::Sub, limit, end, loc);
        let beyond = self.emit(Op::Cmp(CmpOp::LtU), &[last, addr], loc);
        let bad = self.bin(BinOp::Or, short, beyond, loc);
        self.trap_if(bad, TrapCode::MemoryOutOfBounds);
    }

    /// Alignment of the access that may be relied on.
    fn alignment(&self, m: MemAccess, addr: Value) -> u32 {
        let facts = if self.cx.word_buffers { &self.facts.promised } else { &self.facts.proved };
        let known = facts.alignment(self.func, addr, m.offset);
        let stated = if self.cx.strict_traps && m.space == Space::Linear { 1 } else { u32::from(m.align) };
        known.max(stated)
    }

    fn load(&mut self, m: MemAccess, addr: Value, loc: u32) -> Value {
        self.bounds_check(m, addr, loc);
        let align = self.alignment(m, addr);
        let m = MemAccess { align: align.min(u32::from(m.bytes)) as u8, ..m };
        if align >= u32::from(m.bytes) || self.cx.matcher.anywhere(m.bytes, false) {
            if let Some(v) = self.table_byte(m, addr, loc) {
                return v;
            }
            let (addr, m) = self.machine_address(m, addr, loc);
            return self.read(m, addr, loc);
        }
        let part = if align >= 2 { 2 } else { 1 };
        let mut whole = None;
        for at in (0..m.bytes).step_by(usize::from(part)) {
            let top = at + part == m.bytes;
            let m = MemAccess { bytes: part, signed: m.signed && top, align: part, ..m };
            let piece = self.load_part(m, addr, at, loc);
            whole = Some(match whole {
                None => piece,
                Some(low) => {
                    let by = self.konst(u32::from(at) * 8);
                    let high = self.bin(BinOp::Shl, piece, by, loc);
                    self.bin(BinOp::Or, low, high, loc)
                }
            });
        }
        whole.expect("an access has at least one byte")
    }

    fn load_part(&mut self, m: MemAccess, addr: Value, at: u8, loc: u32) -> Value {
        let (addr, m) = self.displace(m, addr, at, loc);
        if let Some(v) = self.table_byte(m, addr, loc) {
            return v;
        }
        let (addr, m) = self.machine_address(m, addr, loc);
        self.read(m, addr, loc)
    }

    /// The load itself; where the machine loads bytes or halfwords without
    /// their sign only, the sign is extended behind it.
    fn read(&mut self, m: MemAccess, addr: Value, loc: u32) -> Value {
        let extend = match m.bytes {
            1 => UnOp::SExt8,
            2 => UnOp::SExt16,
            _ => return self.emit(Op::Load(m), &[addr], loc),
        };
        if !m.signed || self.cx.matcher.loads_signed(m.bytes) {
            return self.emit(Op::Load(m), &[addr], loc);
        }
        let bare = self.emit(Op::Load(MemAccess { signed: false, ..m }), &[addr], loc);
        self.emit(Op::Un(extend), &[bare], loc)
    }

    fn store(&mut self, m: MemAccess, addr: Value, value: Value, loc: u32) {
        self.bounds_check(m, addr, loc);
        let align = self.alignment(m, addr);
        let m = MemAccess { align: align.min(u32::from(m.bytes)) as u8, ..m };
        if align >= u32::from(m.bytes) || self.cx.matcher.anywhere(m.bytes, true) {
            let (addr, m) = self.machine_address(m, addr, loc);
            self.func.append(self.cur, Op::Store(m), &[addr, value], &[], loc);
            return;
        }
        let part = if align >= 2 { 2 } else { 1 };
        for at in (0..m.bytes).step_by(usize::from(part)) {
            let by = self.konst(u32::from(at) * 8);
            let piece = if at == 0 { value } else { self.bin(BinOp::ShrU, value, by, loc) };
            let m = MemAccess { bytes: part, align: part, ..m };
            let (addr, m) = self.displace(m, addr, at, loc);
            let (addr, m) = self.machine_address(m, addr, loc);
            self.func.append(self.cur, Op::Store(m), &[addr, piece], &[], loc);
        }
    }

    fn displace(&mut self, m: MemAccess, addr: Value, by: u8, loc: u32) -> (Value, MemAccess) {
        match m.offset.checked_add(u32::from(by)) {
            Some(offset) => (addr, MemAccess { offset, ..m }),
            None => {
                let c = self.konst(u32::from(by));
                (self.bin(BinOp::Add, addr, c, loc), m)
            }
        }
    }

    /// A byte load from a read-only segment on a big-endian machine, made from
    /// the copy in machine byte order. The address being rooted in the segment
    /// is not enough: in `table[i - 1]` the constant is in whatever stands
    /// before the table.
    fn table_byte(&mut self, m: MemAccess, addr: Value, loc: u32) -> Option<Value> {
        if m.bytes != 1 || m.space != Space::Linear || self.func.as_const(addr).is_some() {
            return None;
        }
        let (rest, root) = self.split_constant(addr);
        let root = root.wrapping_add(m.offset);
        let rest = rest?;
        let most = self.facts.masks.as_ref()?.possible(self.func, rest);
        let inside =
            |&&(start, len, _): &&(u32, u32, u32)| root >= start && u64::from(root - start) + most < u64::from(len);
        let &(start, _, copy) = self.cx.byte_copies.iter().find(inside)?;
        let offset = SYSTEM_BASE + copy + (root - start);
        Some(self.read(MemAccess { offset, space: Space::System, ..m }, rest, loc))
    }

    /// `addr` as a value plus a constant.
    fn split_constant(&self, addr: Value) -> (Option<Value>, u32) {
        if let Some(c) = self.func.as_const(addr) {
            return (None, c as u32);
        }
        if let Some(inst) = self.func.def_inst(addr)
            && self.func.insts[inst].op == Op::Bin(BinOp::Add)
        {
            let (a, b) = (self.func.insts[inst].args[0], self.func.insts[inst].args[1]);
            for (x, y) in [(a, b), (b, a)] {
                if let Some(c) = self.func.as_const(y) {
                    return (Some(self.func.resolve(x)), c as u32);
                }
            }
        }
        (Some(addr), 0)
    }

    /// The address to give the machine for an access at WebAssembly address
    /// `addr + offset`.
    fn machine_address(&mut self, m: MemAccess, addr: Value, loc: u32) -> (Value, MemAccess) {
        let turn = match (self.cx.machine.endian, m.bytes) {
            (Endian::Big, 1) => 3,
            (Endian::Big, 2) => 2,
            _ => return (addr, m),
        };
        if let Some(c) = self.func.as_const(addr) {
            let whole = (c as u32).wrapping_add(m.offset) ^ turn;
            return (self.konst(whole), MemAccess { offset: 0, ..m });
        }
        if let Some(low) = self.facts.promised.low_two(self.func, addr) {
            let here = low.wrapping_add(m.offset) & 3;
            let there = here ^ turn;
            let offset = i64::from(m.offset) + i64::from(there) - i64::from(here);
            if let Ok(offset) = u32::try_from(offset) {
                return (addr, MemAccess { offset, ..m });
            }
        }
        let low = m.offset & 3;
        let base = if low == 0 {
            addr
        } else {
            let c = self.konst(low);
            self.bin(BinOp::Add, addr, c, loc)
        };
        let three = self.konst(turn);
        (self.bin(BinOp::Xor, base, three, loc), MemAccess { offset: m.offset - low, ..m })
    }

    fn term(&mut self, term: Terminator) {
        self.ty = Type::I32;
        let mut term = term;
        term.map_values(|v| self.func.resolve(v));
        if let Terminator::Switch { index, targets, default } = term {
            self.switch(index, &targets, 0, &default);
        } else {
            self.func.blocks[self.cur].term = term;
        }
    }

    /// Branches that choose `targets[index - first]`, or `default` beyond.
    fn switch(&mut self, index: Value, targets: &[Target], first: u32, default: &Target) {
        match targets {
            [] => self.func.blocks[self.cur].term = Terminator::Jump(default.clone()),
            [only] => {
                let c = self.konst(first);
                let cond = self.emit(Op::Cmp(CmpOp::Eq), &[index, c], 0);
                self.func.blocks[self.cur].term = Terminator::Branch { cond, then: only.clone(), els: default.clone() };
            }
            _ => {
                let mid = targets.len() / 2;
                let at = first + mid as u32;
                let c = self.konst(at);
                let cond = self.emit(Op::Cmp(CmpOp::LtU), &[index, c], 0);
                let (below, above) = (self.new_block(), self.new_block());
                self.func.blocks[self.cur].term =
                    Terminator::Branch { cond, then: Target::new(below, vec![]), els: Target::new(above, vec![]) };
                self.start(below);
                // An index below `first` cannot arrive here, so `default` is
                // reached only from the upper end.
                self.switch_known(index, &targets[..mid], first);
                self.start(above);
                self.switch(index, &targets[mid..], at, default);
            }
        }
    }

    /// As [`Self::switch`], where the index is known to be in range.
    fn switch_known(&mut self, index: Value, targets: &[Target], first: u32) {
        if let [only] = targets {
            self.func.blocks[self.cur].term = Terminator::Jump(only.clone());
        } else {
            let mid = targets.len() / 2;
            let at = first + mid as u32;
            let c = self.konst(at);
            let cond = self.emit(Op::Cmp(CmpOp::LtU), &[index, c], 0);
            let (below, above) = (self.new_block(), self.new_block());
            self.func.blocks[self.cur].term =
                Terminator::Branch { cond, then: Target::new(below, vec![]), els: Target::new(above, vec![]) };
            self.start(below);
            self.switch_known(index, &targets[..mid], first);
            self.start(above);
            self.switch_known(index, &targets[mid..], at);
        }
    }
}

fn word(space: Space) -> MemAccess {
    MemAccess { bytes: 4, signed: false, align: 4, offset: 0, space }
}
