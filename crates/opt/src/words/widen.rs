//! 32-bit values in registers of 64 bits.
//!
//! On a machine of 64-bit words every value is a word. A value of 32 bits is
//! held with its sign extended, as RISC-V and its ABI do: then comparisons,
//! signed and unsigned, and bitwise operations are those of words, and the
//! others extend their result anew. What cannot reach bit 31 needs no
//! extension. Afterwards all values are [`Type::I64`].
//!
//! Where nobody looks at bit 31 and above, whatever stands there stays: what a word
//! of the program is cut to, and what a shift to the right brings down from the
//! upper half. Two things want a value without its sign: such a shift otherwise, and addresses
//! of the system area and of code, which are above 2 GB. Addresses in linear
//! memory are taken as they are: one of 2 GB or more is far outside it either
//! way. So is one that is the sum of a value without and a value with a sign, which
//! therefore needs no extension where it is nothing else.

use ciphermill_ir::bits::Masks;
use ciphermill_ir::{BinOp, CmpOp, Func, Inst, InstData, MemAccess, Module, Op, Space, Type, UnOp, Value, ops};
use std::collections::{HashMap, HashSet};

/// The 32 bits of a value.
const LOW: u64 = 0xffff_ffff;
/// What a value must stay below to be the same with and without sign.
const SIGN: u64 = 1 << 31;

/// Make every value of a module a word of 64 bits.
pub(crate) fn widen(module: &mut Module) {
    let wide = |types: &mut Vec<Type>| types.iter_mut().for_each(|t| *t = Type::I64);
    for func in module.funcs.values_mut() {
        Widener::new(func).run();
        wide(&mut func.sig.params);
        wide(&mut func.sig.results);
    }
    for sig in module.sigs.values_mut() {
        wide(&mut sig.params);
        wide(&mut sig.results);
    }
}

struct Widener<'a> {
    func: &'a mut Func,
    /// Values that have 32 bits in the program.
    narrow: HashSet<Value>,
    masks: Masks,
    /// Bits of each value that are looked at.
    demanded: HashMap<Value, u64>,
    /// Values that are addresses in linear memory and nothing else.
    addresses: HashSet<Value>,
    out: Vec<Inst>,
    loc: u32,
}

impl Widener<'_> {
    fn new(func: &mut Func) -> Widener<'_> {
        let (masks, demanded) = (Masks::new(func), demanded(func));
        let narrow = func.values.iter().filter(|(_, v)| v.ty == Type::I32).map(|(v, _)| v).collect();
        let addresses = addresses(func);
        Widener { func, narrow, masks, demanded, addresses, out: Vec::new(), loc: 0 }
    }

    fn run(mut self) {
        for block in self.func.layout.clone() {
            for inst in std::mem::take(&mut self.func.blocks[block].insts) {
                self.loc = self.func.insts[inst].loc;
                self.inst(inst);
            }
            self.func.blocks[block].insts = std::mem::take(&mut self.out);
        }
        self.func.values.values_mut().for_each(|v| v.ty = Type::I64);
        self.func.resolve_all();
    }

    fn emit(&mut self, op: Op, args: &[Value]) -> Value {
        let inst = self.func.make_inst(op, args, &[Type::I64], self.loc);
        self.out.push(inst);
        self.func.result(inst)
    }

    fn konst(&mut self, c: u64) -> Value {
        self.emit(Op::Const(c), &[])
    }

    fn bin(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        self.emit(Op::Bin(op), &[a, b])
    }

    fn bin_const(&mut self, op: BinOp, a: Value, c: u64) -> Value {
        let c = self.konst(c);
        self.bin(op, a, c)
    }

    /// The instruction as another operation.
    fn become_op(&mut self, inst: Inst, op: Op, args: &[Value]) {
        let data = &mut self.func.insts[inst];
        (data.op, data.args) = (op, args.into());
        self.out.push(inst);
    }

    fn possible(&self, v: Value) -> u64 {
        self.masks.possible(self.func, v)
    }

    /// Bits of a value of the program that anything looks at.
    fn looked_at(&self, v: Value) -> u64 {
        self.demanded.get(&v).copied().unwrap_or(u64::MAX)
    }

    /// Without its sign; the same where bit 31 is never set.
    fn unsigned(&mut self, v: Value) -> Value {
        if self.possible(v) < SIGN {
            return v;
        }
        let word = self.cut(v).unwrap_or(v);
        self.bin_const(BinOp::And, word, LOW)
    }

    /// What a value was before its sign was extended, where that took an instruction of its own.
    fn cut(&self, v: Value) -> Option<Value> {
        let data = |v: Value| self.func.def_inst(v).map(|i| &self.func.insts[i]);
        let word = self.func.resolve(data(v).filter(|d| d.op == Op::Un(UnOp::SExt32))?.args[0]);
        let with_it = |op: BinOp| matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Shl);
        (!data(word).is_some_and(|d| matches!(d.op, Op::Bin(op) if with_it(op)))).then_some(word)
    }

    fn inst(&mut self, inst: Inst) {
        let data = self.func.insts[inst].clone();
        let args: Vec<Value> = data.args.iter().map(|&v| self.func.resolve(v)).collect();
        let is_narrow = data.results.first().is_some_and(|r| self.narrow.contains(r));
        match data.op {
            Op::Const(c) if is_narrow => self.become_op(inst, Op::Const(ops::sext(c, 32) as u64), &[]),
            Op::Bin(op) if is_narrow => self.binary(inst, op, &args),
            Op::Un(op) if is_narrow => self.unary(inst, op, args[0]),
            Op::Wrap if self.possible(args[0]) >= SIGN && self.looked_at(data.results[0]) >= SIGN => {
                self.become_op(inst, Op::Un(UnOp::SExt32), &args)
            }
            Op::ZExt if self.possible(args[0]) >= SIGN => {
                let low = self.konst(LOW);
                self.become_op(inst, Op::Bin(BinOp::And), &[args[0], low]);
            }
            Op::Wrap | Op::ZExt | Op::SExt => self.func.replace(data.results[0], args[0]),
            Op::Load(m) => {
                let m = MemAccess { signed: m.signed || is_narrow && m.bytes == 4, ..m };
                let address = self.address(m, args[0]);
                self.become_op(inst, Op::Load(m), &[address]);
            }
            Op::Store(m) => {
                let address = self.address(m, args[0]);
                self.become_op(inst, Op::Store(m), &[address, args[1]]);
            }
            Op::CallPtr(_) => {
                let mut args = args;
                args[0] = self.bin_const(BinOp::And, args[0], LOW);
                self.become_op(inst, data.op, &args);
            }
            _ => self.out.push(inst),
        }
    }

    fn address(&mut self, m: MemAccess, v: Value) -> Value {
        if m.space == Space::Linear || self.func.as_const(v).is_some() { v } else { self.unsigned(v) }
    }

    fn binary(&mut self, inst: Inst, op: BinOp, args: &[Value]) {
        let (a, b) = (args[0], args[1]);
        let below = |x: Option<u64>| x.is_some_and(|x| x < SIGN);
        let amount = self.func.as_const(b).map(|n| n % 32);
        match op {
            BinOp::And | BinOp::Or | BinOp::Xor => self.out.push(inst),
            BinOp::Add if below(self.possible(a).checked_add(self.possible(b))) => self.out.push(inst),
            BinOp::Mul if below(self.possible(a).checked_mul(self.possible(b))) => self.out.push(inst),
            BinOp::Add
                if self.addresses.contains(&self.func.result(inst))
                    && self.possible(a).min(self.possible(b)) < SIGN =>
            {
                self.out.push(inst);
            }
            BinOp::Add | BinOp::Sub | BinOp::Mul => self.extended(inst, op, a, b),
            BinOp::Shl => {
                let by = self.amount(b);
                match amount {
                    Some(n) if self.possible(a) << n < SIGN => self.become_op(inst, Op::Bin(op), &[a, by]),
                    _ => self.extended(inst, op, a, by),
                }
            }
            BinOp::ShrU => {
                let result = self.func.result(inst);
                let by = self.amount(b);
                match amount {
                    Some(0) => self.func.replace(result, a),
                    // Nobody looks at what the upper half brings.
                    Some(n) if self.looked_at(result) >> (32 - n) == 0 => {
                        self.become_op(inst, Op::Bin(op), &[a, by]);
                    }
                    Some(_) => {
                        let a = self.unsigned(a);
                        self.become_op(inst, Op::Bin(op), &[a, by]);
                    }
                    None => {
                        let a = self.bin_const(BinOp::And, a, LOW);
                        self.extended(inst, op, a, by);
                    }
                }
            }
            BinOp::ShrS => {
                let by = self.amount(b);
                self.become_op(inst, Op::Bin(op), &[a, by]);
            }
            BinOp::RotL | BinOp::RotR => self.rotated(inst, op, a, b),
            BinOp::MulHiU | BinOp::MulHiS => {
                let (a, b) = if op == BinOp::MulHiU { (self.unsigned(a), self.unsigned(b)) } else { (a, b) };
                let product = self.bin(BinOp::Mul, a, b);
                let by = self.konst(32);
                self.become_op(inst, Op::Bin(BinOp::ShrS), &[product, by]);
            }
            BinOp::DivU | BinOp::RemU => {
                let (a, b) = (self.unsigned(a), self.unsigned(b));
                self.extended(inst, op, a, b);
            }
            BinOp::RemS => self.out.push(inst),
            BinOp::DivS => {
                let a = self.dividend(a, b);
                self.become_op(inst, Op::Bin(op), &[a, b]);
            }
        }
    }

    /// An operation of words, and the sign of its lower half.
    fn extended(&mut self, inst: Inst, op: BinOp, a: Value, b: Value) {
        let word = self.bin(op, a, b);
        self.become_op(inst, Op::Un(UnOp::SExt32), &[word]);
    }

    /// Amounts of shifts count modulo 32.
    fn amount(&mut self, v: Value) -> Value {
        match self.func.as_const(v) {
            Some(n) => self.konst(n % 32),
            None if self.possible(v) < 32 => v,
            None => self.bin_const(BinOp::And, v, 31),
        }
    }

    fn rotated(&mut self, inst: Inst, op: BinOp, a: Value, b: Value) {
        let left = |n: u64| if op == BinOp::RotL { n % 32 } else { (32 - n % 32) % 32 };
        let (up, down) = match self.func.as_const(b).map(left) {
            Some(0) => return self.func.replace(self.func.result(inst), a),
            Some(n) => (self.konst(n), self.konst(32 - n)),
            None => {
                let zero = self.konst(0);
                let minus = self.bin(BinOp::Sub, zero, b);
                let (up, down) = if op == BinOp::RotL { (b, minus) } else { (minus, b) };
                (self.amount(up), self.bin_const(BinOp::And, down, 31))
            }
        };
        let high = self.bin(BinOp::Shl, a, up);
        let high = self.emit(Op::Un(UnOp::SExt32), &[high]);
        let low = self.unsigned(a);
        let mut low = self.bin(BinOp::ShrU, low, down);
        if self.func.as_const(down).is_none() {
            // By 0 it has its sign, which is then that of the other part too.
            low = self.emit(Op::Un(UnOp::SExt32), &[low]);
        }
        self.become_op(inst, Op::Bin(BinOp::Or), &[high, low]);
    }

    /// The least number by -1 overflows 32 bits and must overflow 64 too.
    fn dividend(&mut self, a: Value, b: Value) -> Value {
        if self.func.as_const(b).is_some_and(|b| b & LOW != LOW) {
            return a;
        }
        let (least, minus_one) = (self.konst(ops::sext(SIGN, 32) as u64), self.konst(u64::MAX));
        let x = self.emit(Op::Cmp(CmpOp::Eq), &[a, least]);
        let y = self.emit(Op::Cmp(CmpOp::Eq), &[b, minus_one]);
        let both = self.bin(BinOp::And, x, y);
        let most = self.konst(1 << 63);
        self.emit(Op::Select, &[both, most, a])
    }

    fn unary(&mut self, inst: Inst, op: UnOp, a: Value) {
        match op {
            UnOp::SExt8 | UnOp::SExt16 => self.out.push(inst),
            UnOp::SExt32 => self.func.replace(self.func.result(inst), a),
            UnOp::Popcnt => {
                let a = self.unsigned(a);
                self.become_op(inst, Op::Un(op), &[a]);
            }
            UnOp::Clz => {
                let a = self.unsigned(a);
                let zeros = self.emit(Op::Un(op), &[a]);
                let above = self.konst(32);
                self.become_op(inst, Op::Bin(BinOp::Sub), &[zeros, above]);
            }
            UnOp::Ctz => {
                let ended = self.bin_const(BinOp::Or, a, 1 << 32);
                self.become_op(inst, Op::Un(op), &[ended]);
            }
            UnOp::Bswap => {
                let turned = self.emit(Op::Un(op), &[a]);
                let by = self.konst(32);
                self.become_op(inst, Op::Bin(BinOp::ShrS), &[turned, by]);
            }
        }
    }
}

/// Values that are addresses in linear memory and nothing else.
fn addresses(func: &Func) -> HashSet<Value> {
    let (mut out, mut others) = (HashSet::new(), HashSet::new());
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            for (n, &v) in data.args.iter().enumerate() {
                let linear = matches!(data.op, Op::Load(m) | Op::Store(m) if m.space == Space::Linear);
                let list = if linear && n == 0 { &mut out } else { &mut others };
                list.insert(func.resolve(v));
            }
        }
        func.blocks[block].term.for_each_value(|v| {
            others.insert(func.resolve(v));
        });
    }
    out.retain(|v| !others.contains(v));
    out
}

/// The bits of each value that anything looks at: the least solution, so a value
/// that nobody looks at has none.
fn demanded(func: &Func) -> HashMap<Value, u64> {
    let mut out: HashMap<Value, u64> = HashMap::new();
    loop {
        let mut changed = false;
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                let mine = data.results.first().map_or(0, |r| out.get(r).copied().unwrap_or(0));
                for (n, &v) in data.args.iter().enumerate() {
                    let v = func.resolve(v);
                    let bits = looked_at(func, data, n, mine) & func.ty(v).mask();
                    let all = out.entry(v).or_default();
                    changed |= bits & !*all != 0;
                    *all |= bits;
                }
            }
            func.blocks[block].term.for_each_value(|v| {
                let v = func.resolve(v);
                changed |= out.insert(v, u64::MAX) != Some(u64::MAX);
            });
        }
        if !changed {
            return out;
        }
    }
}

/// Bits of operand `n` that an instruction looks at where `mine` of its result are.
fn looked_at(func: &Func, data: &InstData, n: usize, mine: u64) -> u64 {
    let constant = |i: usize| func.as_const(data.args[i]);
    let by = |width: u64| constant(1).map(|c| (c % width) as u32);
    let width = u64::from(func.ty(data.args[0]).bits());
    match data.op {
        Op::Bin(BinOp::And) => mine & constant(1 - n).unwrap_or(u64::MAX),
        Op::Bin(BinOp::Or | BinOp::Xor) | Op::Wrap => mine,
        // Whoever looks above the 32 bits wants nothing to stand there.
        Op::ZExt if mine <= LOW => mine,
        Op::Bin(BinOp::ShrU) if n == 0 => by(width).map_or(u64::MAX, |c| mine << c),
        Op::Bin(BinOp::Shl) if n == 0 => by(width).map_or(u64::MAX, |c| mine >> c),
        Op::Store(m) if n == 1 => ops::mask(8 * u32::from(m.bytes)),
        _ => u64::MAX,
    }
}
