//! Random modules: a few functions of nested control flow, full of the shapes
//! the optimiser looks for, and of traps now and then.
//!
//! Loops count down from a small number, and functions call only functions
//! made before them, so everything ends. Stores keep below `READONLY`, where a
//! segment promised to be read-only begins.

use ciphermill_ir::{
    BinOp, Block, CmpOp, DataSegment, Func, FuncId, GlobalData, GlobalId, MemAccess, MemoryDecl, Module, Op, Signature,
    Space, Target, Terminator, TrapCode, Type, UnOp, Value,
};

/// A generator of numbers: xorshift, good enough and the same everywhere.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// An argument or constant: often small, special or with a simple pattern.
    pub fn interesting(&mut self) -> u64 {
        match self.below(8) {
            0 => self.next() & 0x3F,
            1 => 1u64 << self.below(64),
            2 => (1u64 << self.below(64)).wrapping_sub(1),
            3 => self.next() & 0xFFFF_FFFF,
            4 => self.pick(&[0, 1, 2, 31, 32, 33, 63, 64, 0xFF, 0xFF00, 0x3FC, 0xFF00_FF00, 0x00FF_00FF]),
            5 => self.pick(&[0x8000_0000, 0x7FFF_FFFF, 0xFFFF_FFFF, u64::MAX, 1 << 63, 8, 16, 24, 4, 255]),
            6 => (self.next() & 0xFF).wrapping_neg(),
            _ => self.next(),
        }
    }
}

const READONLY: u32 = 0x8000;
const READONLY_BYTES: u32 = 0x400;

/// How a loop counts.
struct Counter {
    start: Value,
    step: u64,
    /// Comparison, bound, and whether the counter stands on the left; none for
    /// the counter itself as condition.
    test: Option<(CmpOp, Value, bool)>,
    /// The counter is tested as it was before the step.
    late: bool,
    /// The loop is left, not repeated, when the test is true.
    leaves: bool,
}

struct Gen<'a> {
    rng: &'a mut Rng,
    module: &'a Module,
    func: Func,
    at: Block,
    /// Values that may be used here; those of blocks left are taken out.
    pool: Vec<Value>,
    budget: usize,
}

/// A random module; its functions are all exported, and all take and give
/// both types of values.
pub fn module(seed: u64) -> Module {
    let mut rng = Rng::new(seed);
    let mut module = Module { memory: MemoryDecl { min_pages: 1, max_pages: 4 }, ..Module::default() };
    module.data.push(DataSegment {
        addr: READONLY,
        bytes: (0..READONLY_BYTES).map(|i| (i * 7 + 3) as u8).collect(),
        readonly: true,
        name: None,
    });
    for (i, ty) in [Type::I32, Type::I64, Type::I32, Type::I32].into_iter().enumerate() {
        let init = rng.interesting() & ty.mask();
        module.globals.push(GlobalData { ty, mutable: i != 2, init, system_offset: 8 + 8 * i as u32, name: None });
    }
    module.exported_globals.push(("g".into(), GlobalId::from_u32(3)));
    module.system.bytes = vec![0; 64];
    for i in 0..1 + rng.below(4) {
        let params = (0..3).map(|_| rng.pick(&[Type::I32, Type::I64])).collect();
        let results = (0..1 + rng.below(2)).map(|_| rng.pick(&[Type::I32, Type::I64])).collect();
        let budget = rng.pick(&[4, 10, 30, 60]);
        let func = function(&mut rng, &module, Signature { params, results }, budget, i);
        let id = module.funcs.push(func);
        if rng.below(3) > 0 {
            module.exports.push((format!("f{i}"), id));
        }
    }
    let last = FuncId::from_u32(module.funcs.len() as u32 - 1);
    module.exports.push(("last".into(), last));
    module
}

/// Arguments for a call of any of the functions.
pub fn arguments(rng: &mut Rng) -> Vec<u64> {
    (0..3).map(|_| rng.interesting()).collect()
}

fn function(rng: &mut Rng, module: &Module, sig: Signature, budget: usize, index: usize) -> Func {
    let func = Func::new(format!("f{index}"), sig);
    let at = func.entry;
    let pool = func.blocks[at].params.clone();
    let mut generator = Gen { rng, module, func, at, pool, budget };
    generator.statements(0);
    let results = generator.func.sig.results.clone();
    let values = results.iter().map(|&ty| generator.value(ty)).collect();
    let at = generator.at;
    generator.func.blocks[at].term = Terminator::Return(values);
    generator.func
}

impl Gen<'_> {
    fn push(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let v = self.func.append1(self.at, op, args, ty, 0);
        self.pool.push(v);
        v
    }

    fn constant(&mut self, c: u64, ty: Type) -> Value {
        self.func.append1(self.at, Op::Const(c & ty.mask()), &[], ty, 0)
    }

    /// Some value of a type: from the pool, the newer the likelier, or a
    /// constant.
    fn value(&mut self, ty: Type) -> Value {
        let of_type: Vec<Value> = self.pool.iter().copied().filter(|&v| self.func.ty(v) == ty).collect();
        if of_type.is_empty() || self.rng.below(5) == 0 {
            let c = self.rng.interesting();
            return self.constant(c, ty);
        }
        let back = self.rng.below(of_type.len()).min(self.rng.below(of_type.len()));
        of_type[of_type.len() - 1 - back]
    }

    fn any_type(&mut self) -> Type {
        self.rng.pick(&[Type::I32, Type::I32, Type::I64])
    }

    fn statements(&mut self, depth: u32) {
        let count = 2 + self.rng.below(12);
        for _ in 0..count {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            match self.rng.below(24) {
                0..=9 => self.operation(),
                10..=12 => self.idiom(),
                13..=15 => self.load(),
                16..=17 => self.store(),
                18 => self.global(),
                19 | 20 if depth < 4 => self.branch(depth),
                21 if depth < 3 => self.counted_loop(depth),
                22 if depth < 4 => self.switch(depth),
                23 => self.call(),
                _ => self.operation(),
            }
        }
    }

    fn operation(&mut self) {
        use BinOp::*;
        let ty = self.any_type();
        let (x, y) = (self.value(ty), self.value(ty));
        match self.rng.below(16) {
            0 => {
                let op = self.rng.pick(&[UnOp::Clz, UnOp::Ctz, UnOp::Popcnt, UnOp::SExt8, UnOp::SExt16, UnOp::Bswap]);
                self.push(Op::Un(op), &[x], ty);
            }
            1 | 2 => {
                let op = self.rng.pick(&[CmpOp::Eq, CmpOp::Ne, CmpOp::LtU, CmpOp::LtS, CmpOp::LeU, CmpOp::LeS]);
                self.push(Op::Cmp(op), &[x, y], Type::I32);
            }
            3 => {
                let cond = self.value(Type::I32);
                self.push(Op::Select, &[cond, x, y], ty);
            }
            4 => {
                let wide = self.value(Type::I64);
                self.push(Op::Wrap, &[wide], Type::I32);
            }
            5 => {
                let narrow = self.value(Type::I32);
                let op = self.rng.pick(&[Op::ZExt, Op::SExt]);
                self.push(op, &[narrow], Type::I64);
            }
            6 if ty == Type::I64 => {
                self.push(Op::Un(UnOp::SExt32), &[x], ty);
            }
            7 if ty == Type::I32 => {
                let op = self.rng.pick(&[DivU, DivS, RemU, RemS]);
                // Mostly a divisor that does not trap.
                let y = if self.rng.below(4) == 0 {
                    y
                } else {
                    let c = self.rng.pick(&[1, 2, 3, 7, 8, 64, 0x8000_0000, 0xFFFF_FFFF]);
                    self.constant(c, ty)
                };
                self.push(Op::Bin(op), &[x, y], ty);
            }
            8 | 9 => {
                let n = self.rng.below(70) as u64;
                let n = self.constant(n, ty);
                let op = self.rng.pick(&[Shl, ShrU, ShrS, RotL, RotR]);
                self.push(Op::Bin(op), &[x, n], ty);
            }
            10 => {
                let c = self.rng.pick(&[1, 0xFF, 0xFFFF, 0x3FC, 0xFF00, 0xFFFF_FFFF, 0xFF_FFFF, 31, 63]);
                let c = self.constant(c, ty);
                let op = self.rng.pick(&[And, And, Or, Xor, Add]);
                self.push(Op::Bin(op), &[x, c], ty);
            }
            _ => {
                let op = self
                    .rng
                    .pick(&[Add, Add, Sub, Sub, Mul, MulHiU, MulHiS, And, Or, Xor, Xor, Shl, ShrU, ShrS, RotL, RotR]);
                self.push(Op::Bin(op), &[x, y], ty);
            }
        }
    }

    fn bin(&mut self, op: BinOp, x: Value, y: Value) -> Value {
        let ty = self.func.ty(x);
        self.push(Op::Bin(op), &[x, y], ty)
    }

    fn bin_const(&mut self, op: BinOp, x: Value, c: u64) -> Value {
        let ty = self.func.ty(x);
        let c = self.constant(c, ty);
        self.bin(op, x, c)
    }

    /// Shapes that compilers write and `fold` looks for.
    fn idiom(&mut self) {
        use BinOp::*;
        let ty = self.any_type();
        let width = u64::from(ty.bits());
        let x = self.value(ty);
        match self.rng.below(8) {
            0 => {
                let n = self.rng.below(width as usize + 1) as u64;
                let (a, b) = (self.bin_const(Shl, x, n), self.bin_const(ShrU, x, width - n));
                let op = self.rng.pick(&[Or, Xor, Add]);
                self.bin(op, a, b);
            }
            1 => {
                let n = self.value(ty);
                let from = self.rng.pick(&[0, width, 2 * width]);
                let from = self.constant(from, ty);
                let m = self.bin(Sub, from, n);
                let (a, b) = (self.bin(Shl, x, n), self.bin(ShrU, x, m));
                let op = self.rng.pick(&[Or, Or, Xor, Add]);
                self.bin(op, a, b);
            }
            2 => {
                let (a, b) = (self.bin_const(RotL, x, 24), self.bin_const(RotL, x, 8));
                let (a, b) = (self.bin_const(And, a, 0xFF00_FF00), self.bin_const(And, b, 0x00FF_00FF));
                self.bin(Or, a, b);
            }
            3 => {
                let mut sum = self.constant(0, ty);
                for i in 0..width / 8 {
                    let byte = self.bin_const(ShrU, x, 8 * i);
                    let byte = self.bin_const(And, byte, 0xFF);
                    let byte = self.bin_const(Shl, byte, width - 8 - 8 * i);
                    sum = self.bin(Or, sum, byte);
                }
            }
            4 => {
                let (n, m) = (self.rng.below(32) as u64, self.rng.below(32) as u64);
                let (first, second) = (self.rng.pick(&[Shl, ShrU, ShrS]), self.rng.pick(&[Shl, ShrU, ShrS]));
                let a = self.bin_const(first, x, n);
                let m = if self.rng.below(2) == 0 { n } else { m };
                self.bin_const(second, a, m);
            }
            5 => {
                let zero = self.constant(0, ty);
                let op = self.rng.pick(&[CmpOp::Eq, CmpOp::Ne, CmpOp::LtS, CmpOp::LtU]);
                let y = self.value(ty);
                let other = self.rng.pick(&[zero, y]);
                let mut v = self.push(Op::Cmp(op), &[x, other], Type::I32);
                for _ in 0..self.rng.below(3) {
                    let c = self.rng.below(2) as u64;
                    let c = self.constant(c, Type::I32);
                    let op = self.rng.pick(&[CmpOp::Eq, CmpOp::Ne]);
                    v = self.push(Op::Cmp(op), &[v, c], Type::I32);
                }
            }
            6 => {
                let (c, d) = (self.rng.interesting(), self.rng.interesting());
                let op = self.rng.pick(&[Add, Sub, Mul, And, Or, Xor]);
                let a = self.bin_const(op, x, c);
                let op = self.rng.pick(&[op, op, And, Add]);
                self.bin_const(op, a, d);
            }
            _ => {
                let y = self.value(ty);
                let op = self.rng.pick(&[Xor, Add, Sub]);
                let a = self.bin(op, x, y);
                let other = self.rng.pick(&[x, y]);
                let op = self.rng.pick(&[op, Sub, Xor]);
                let (p, q) = self.rng.pick(&[(a, other), (other, a)]);
                self.bin(op, p, q);
            }
        }
    }

    /// An address: mostly in bounds, in the shapes of pointers and tables.
    /// With `wild`, sometimes out of bounds or wrapping.
    fn address(&mut self, wild: bool) -> Value {
        use BinOp::*;
        let x = self.value(Type::I32);
        let mut base = self.bin_const(And, x, 0x3FF0);
        match self.rng.below(10) {
            0 | 1 => {
                let c = self.rng.pick(&[4, 8, 16, 0x100, 0xFFFF_FFFC, 0xFFFF_FFF0]);
                base = self.bin_const(Add, base, c);
            }
            2 => {
                let shift = self.rng.pick(&[22u64, 14, 6]);
                let y = self.bin_const(ShrU, x, shift);
                let y = self.bin_const(And, y, 0x3FC);
                base = self.bin(Add, base, y);
            }
            3 => {
                let y = self.bin_const(Shl, x, 2);
                base = self.bin_const(And, y, 0x3FC);
            }
            4 => base = self.constant(0x1000, Type::I32),
            5 => base = self.bin_const(Or, base, 4),
            6 => {
                let bases: Vec<Value> = self.pool.iter().copied().filter(|&v| self.masked(v)).collect();
                if !bases.is_empty() {
                    base = self.rng.pick(&bases);
                }
            }
            8 | 9 if self.rng.below(3) > 0 => {
                base = self.pointer();
                let c = self.rng.pick(&[0, 4, 8, 12, 100, 0xFFFF_FFFC, 0xFFFF_FFF8]);
                if c != 0 {
                    base = self.bin_const(Add, base, c);
                }
            }
            7 if wild && self.rng.below(3) == 0 => base = self.value(Type::I32),
            8 if wild && self.rng.below(2) == 0 => {
                let y = self.value(Type::I32);
                let y = self.bin_const(And, y, 0xFFFF);
                let c = self.rng.pick(&[0xFFFF_FF00, 0x0000_FF00, 8, 0xFFFF_FFF8]);
                base = self.bin_const(Add, y, c);
            }
            _ => {}
        }
        base
    }

    /// An address in bounds that no known bits show to be, of which there are
    /// few in a function.
    fn pointer(&mut self) -> Value {
        const TOP: u64 = 0x2000;
        let from_top = |v: &Value| match self.func.def_inst(*v).map(|i| &self.func.insts[i]) {
            Some(data) if data.op == Op::Bin(BinOp::Sub) => self.func.as_const(data.args[0]) == Some(TOP),
            _ => false,
        };
        let known: Vec<Value> = self.pool.iter().copied().filter(|v| from_top(v)).collect();
        if !known.is_empty() && self.rng.below(6) > 0 {
            return self.rng.pick(&known);
        }
        let x = self.value(Type::I32);
        let x = self.bin_const(BinOp::And, x, 0x3F8);
        let top = self.constant(TOP, Type::I32);
        self.bin(BinOp::Sub, top, x)
    }

    /// Does the value stay below the read-only segment by its own mask?
    fn masked(&self, v: Value) -> bool {
        let Some(inst) = self.func.def_inst(v) else { return false };
        let data = &self.func.insts[inst];
        data.op == Op::Bin(BinOp::And)
            && self.func.ty(v) == Type::I32
            && self.func.as_const(data.args[1]).is_some_and(|c| c <= 0x3FFF)
    }

    fn access(&mut self, ty: Type) -> MemAccess {
        let widths: &[u8] = if ty == Type::I64 { &[1, 2, 4, 8, 8] } else { &[1, 2, 4, 4] };
        let bytes = self.rng.pick(widths);
        let signed = self.rng.below(3) == 0;
        let offset = self.rng.pick(&[0, 0, 0, 2, 3, 4, 4, 8, 16, 20, 0x1000]);
        MemAccess { bytes, signed, align: 1, offset, space: Space::Linear }
    }

    fn load(&mut self) {
        let ty = self.any_type();
        let mut access = self.access(ty);
        let addr = if self.rng.below(4) == 0 {
            // A lookup in the read-only table.
            access.offset = READONLY;
            let x = self.value(Type::I32);
            let x = self.bin_const(BinOp::And, x, 0x7F);
            self.bin_const(BinOp::Shl, x, 2)
        } else {
            if self.rng.below(20) == 0 {
                access.offset = self.rng.pick(&[0xFFFF_FFFF, 0xFFFF_FFFC, 0xFFFF_FFF8]);
            }
            self.address(true)
        };
        self.push(Op::Load(access), &[addr], ty);
    }

    fn store(&mut self) {
        let ty = self.any_type();
        let mut access = self.access(ty);
        let mut addr = self.address(false);
        let value = self.value(ty);
        match self.rng.below(12) {
            // Out of bounds for certain, or at the very end of memory.
            0 => access.offset = self.rng.pick(&[0x1_0000, 0xFFFF_FFFF, 0xFFFF_FFFC, 0xFFFF_FFF9]),
            1 => {
                let at = self.rng.pick(&[0xFFF8, 0xFFFA, 0xFFFC, 0xFFFE]);
                addr = self.constant(at, Type::I32);
                access.offset = 0;
            }
            _ => {}
        }
        self.func.append(self.at, Op::Store(access), &[addr, value], &[], 0);
        if self.rng.below(2) == 0 {
            // Read back, perhaps otherwise.
            let ty = self.any_type();
            let again = self.access(ty);
            self.push(Op::Load(MemAccess { offset: access.offset, ..again }), &[addr], ty);
        }
    }

    fn global(&mut self) {
        let id = GlobalId::from_u32(self.rng.below(self.module.globals.len()) as u32);
        let global = &self.module.globals[id];
        if self.rng.below(2) == 0 || !global.mutable {
            let ty = global.ty;
            self.push(Op::GlobalGet(id), &[], ty);
        } else {
            let value = self.value(global.ty);
            self.func.append(self.at, Op::GlobalSet(id), &[value], &[], 0);
        }
    }

    fn call(&mut self) {
        if self.module.funcs.is_empty() {
            return self.operation();
        }
        let callee = FuncId::from_u32(self.rng.below(self.module.funcs.len()) as u32);
        let sig = self.module.funcs[callee].sig.clone();
        let args: Vec<Value> = sig.params.iter().map(|&ty| self.value(ty)).collect();
        let inst = self.func.append(self.at, Op::Call(callee), &args, &sig.results, 0);
        self.pool.extend(&self.func.insts[inst].results);
    }

    /// One arm: a new block, statements, and a jump or a way out.
    fn arm(&mut self, block: Block, join: Block, types: &[Type], depth: u32) {
        let mark = self.pool.len();
        self.at = block;
        if self.rng.below(4) > 0 {
            self.statements(depth + 1);
        }
        let term = match self.rng.below(16) {
            0 => Terminator::Trap(TrapCode::Unreachable),
            1 => {
                let results = self.func.sig.results.clone();
                Terminator::Return(results.iter().map(|&ty| self.value(ty)).collect())
            }
            _ => Terminator::Jump(Target::new(join, types.iter().map(|&ty| self.value(ty)).collect())),
        };
        let at = self.at;
        self.func.blocks[at].term = term;
        self.pool.truncate(mark);
    }

    fn types(&mut self) -> Vec<Type> {
        (0..self.rng.below(4)).map(|_| self.any_type()).collect()
    }

    fn join(&mut self, types: &[Type]) -> Block {
        let join = self.func.add_block();
        for &ty in types {
            self.func.add_param(join, ty);
        }
        join
    }

    fn enter(&mut self, join: Block) {
        self.at = join;
        self.pool.extend(&self.func.blocks[join].params);
    }

    fn branch(&mut self, depth: u32) {
        let cond = self.value(Type::I32);
        let types = self.types();
        let join = self.join(&types);
        let then = self.func.add_block();
        let from = self.at;
        let els = if self.rng.below(2) == 0 {
            Target::new(join, types.iter().map(|&ty| self.value(ty)).collect())
        } else {
            Target::new(self.func.add_block(), vec![])
        };
        let els_block = els.block;
        self.func.blocks[from].term = Terminator::Branch { cond, then: Target::new(then, vec![]), els };
        self.arm(then, join, &types, depth);
        if els_block != join {
            self.arm(els_block, join, &types, depth);
        }
        self.enter(join);
    }

    fn switch(&mut self, depth: u32) {
        let index = self.value(Type::I32);
        let index = self.bin_const(BinOp::And, index, 3);
        let types = self.types();
        let join = self.join(&types);
        let from = self.at;
        let arms: Vec<Block> = (0..1 + self.rng.below(4)).map(|_| self.func.add_block()).collect();
        let mut targets: Vec<Target> = arms.iter().map(|&b| Target::new(b, vec![])).collect();
        targets.push(Target::new(join, types.iter().map(|&ty| self.value(ty)).collect()));
        let default = self.rng.below(targets.len());
        let default = targets[default].clone();
        self.func.blocks[from].term = Terminator::Switch { index, targets, default };
        for arm in arms {
            self.arm(arm, join, &types, depth);
        }
        self.enter(join);
    }

    /// `head(count, carried...)`: statements, then round again while the count
    /// is not 0; leaves from the bottom, now and then also from the top.
    fn counted_loop(&mut self, depth: u32) {
        let types = self.types();
        let head = self.func.add_block();
        let count = self.func.add_param(head, Type::I32);
        let carried: Vec<Value> = types.iter().map(|&ty| self.func.add_param(head, ty)).collect();
        let exit = self.join(&types);
        let counter = self.counter();
        let mut first = vec![counter.start];
        first.extend(types.iter().map(|&ty| self.value(ty)));
        let from = self.at;
        self.func.blocks[from].term = Terminator::Jump(Target::new(head, first));
        let mark = self.pool.len();
        self.at = head;
        self.pool.extend(&carried);
        if self.rng.below(3) == 0 {
            let cond = self.value(Type::I32);
            let body = self.func.add_block();
            let out = types.iter().map(|&ty| self.value(ty)).collect();
            let at = self.at;
            self.func.blocks[at].term =
                Terminator::Branch { cond, then: Target::new(body, vec![]), els: Target::new(exit, out) };
            self.at = body;
        }
        self.statements(depth + 1);
        let next = self.bin_const(BinOp::Add, count, counter.step);
        let mut again = vec![next];
        again.extend(types.iter().map(|&ty| self.value(ty)));
        let out = types.iter().map(|&ty| self.value(ty)).collect();
        let tested = if counter.late { count } else { next };
        let cond = match counter.test {
            None => tested,
            Some((op, bound, true)) => self.push(Op::Cmp(op), &[tested, bound], Type::I32),
            Some((op, bound, false)) => self.push(Op::Cmp(op), &[bound, tested], Type::I32),
        };
        let at = self.at;
        let (mut then, mut els) = (Target::new(head, again), Target::new(exit, out));
        if counter.leaves {
            std::mem::swap(&mut then, &mut els);
        }
        self.func.blocks[at].term = Terminator::Branch { cond, then, els };
        self.pool.truncate(mark);
        self.enter(exit);
    }

    /// Mostly a counter that comes to an end soon.
    fn counter(&mut self) -> Counter {
        let turns = self.rng.below(6) as u64 + 1;
        if self.rng.below(3) == 0 {
            let start = self.constant(turns, Type::I32);
            return Counter { start, step: u64::MAX, test: None, late: false, leaves: false };
        }
        let step = self.rng.pick(&[1, 1, 2, 3, 16, u64::MAX, (-2i64) as u64, (-16i64) as u64]);
        let from = self.rng.pick(&[0, 0, 1, 7, 0x100, 0x7FFF_FFFE, 0x8000_0000, 0xFFFF_FFF0]);
        let to = step.wrapping_mul(turns).wrapping_add(from + self.rng.below(2) as u64);
        // Either end may be known only at run time.
        let x = self.value(Type::I32);
        let mut some = self.bin_const(BinOp::And, x, 7);
        if self.rng.below(2) == 0 {
            some = self.bin_const(BinOp::Shl, some, 4);
        }
        let [mut start, mut bound] = [from, to].map(|c| self.constant(c, Type::I32));
        match self.rng.below(4) {
            0 => start = self.bin(BinOp::Sub, start, some),
            1 => bound = self.bin(BinOp::Add, bound, some),
            _ => {}
        }
        let ops = [CmpOp::Ne, CmpOp::Ne, CmpOp::LtU, CmpOp::LtS, CmpOp::LeU, CmpOp::LeS];
        let (op, up) = (self.rng.pick(&ops), (step as i64) > 0);
        let leaves = self.rng.below(3) == 0;
        // Going on while below, which is leaving when not.
        let (op, on_left) = match leaves {
            true => (op.negated().0, up != op.negated().1),
            false => (op, up),
        };
        Counter { start, step, test: Some((op, bound, on_left)), late: self.rng.below(4) == 0, leaves }
    }
}
