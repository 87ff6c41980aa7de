//! 64-bit values as pairs of 32-bit ones, for machines with 32-bit words.
//!
//! Each function is rebuilt block by block, in an order that meets definitions
//! before uses. A 64-bit value becomes two, low word first: in signatures,
//! parameters, results, block arguments and calls, so an exported function
//! with an `i64` then takes and gives a pair of words. Operations become the
//! usual multi-word sequences ([`ops`]), with these points to mind:
//!
//! * **Carries** have no operation of their own: the carry of `a + b` is
//!   `sum <u a`, the borrow of `a - b` is `a <u b`. A code generator for a
//!   machine with an add-with-carry finds the pattern.
//! * **Shifts** by constants take only the operations they need. By a variable
//!   amount they are branch-free: both outcomes, below 32 and from 32 on, and
//!   a select.
//! * **Division** calls `rt_div_u64` and its like, which the loader links in.
//! * **An 8-byte store** is two of 4 bytes, the one at the higher address
//!   first: if the store as a whole is out of bounds, that one traps, and
//!   nothing has been written. Should the higher address itself not be
//!   expressible, the access is out of bounds for any address operand, and so
//!   is a word at the largest offset.
//! * **Globals**: the global keeps the low word and its number, an appended
//!   one with the next four bytes of the slot holds the high word. An exported
//!   64-bit global so names its low word.
//!
//! Distinct signature numbers stay distinct even where splitting makes two
//! alike: indirect calls are checked against numbers fixed before.

mod emit;
mod ops;

use crate::error::OptError;
use ciphermill_ir::{
    Block, Cfg, Func, FuncId, GlobalData, GlobalId, InstData, MemAccess, Module, Op, Signature, Target, Terminator,
    Type, Value,
};
use cranelift_entity::SecondaryMap;
use emit::Emit;

/// A split value, or a plain one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Half {
    One(Value),
    Two(Value, Value),
}

/// The low and the high word of a 64-bit value.
pub(crate) type Pair = (Value, Value);

/// The runtime's division functions.
#[derive(Clone, Copy)]
struct Runtime {
    div_u: Option<FuncId>,
    div_s: Option<FuncId>,
    rem_u: Option<FuncId>,
    rem_s: Option<FuncId>,
}

/// Split all 64-bit values of a module.
pub(crate) fn run(module: &mut Module) -> Result<(), OptError> {
    let runtime = runtime(module);
    let high = split_globals(module);
    for sig in module.sigs.values_mut() {
        split_signature(sig);
    }
    let ids: Vec<FuncId> = module.funcs.keys().collect();
    for id in ids {
        let old = std::mem::replace(&mut module.funcs[id], Func::new("", Signature::default()));
        module.funcs[id] = Lower::new(old, &high, runtime).run()?;
    }
    Ok(())
}

/// The runtime stands behind the user's functions, one of which may have the
/// same name, so the last of a name is taken.
fn runtime(module: &Module) -> Runtime {
    let sig = Signature { params: vec![Type::I64; 2], results: vec![Type::I64] };
    let find = |name: &str| {
        let mut found = module.funcs.iter().filter(|(_, f)| f.name == name && f.sig == sig);
        found.next_back().map(|(id, _)| id)
    };
    Runtime {
        div_u: find("rt_div_u64"),
        div_s: find("rt_div_s64"),
        rem_u: find("rt_rem_u64"),
        rem_s: find("rt_rem_s64"),
    }
}

/// Make the high words of 64-bit globals; gives them by the low one's number.
fn split_globals(module: &mut Module) -> SecondaryMap<GlobalId, Option<GlobalId>> {
    let mut high = SecondaryMap::new();
    let wide: Vec<GlobalId> = module.globals.iter().filter(|(_, g)| g.ty == Type::I64).map(|(id, _)| id).collect();
    for id in wide {
        let global = &mut module.globals[id];
        let upper = GlobalData {
            ty: Type::I32,
            mutable: global.mutable,
            init: global.init >> 32,
            system_offset: global.system_offset + 4,
            name: global.name.as_ref().map(|n| format!("{n}.high")),
        };
        global.ty = Type::I32;
        global.init &= 0xFFFF_FFFF;
        high[id] = Some(module.globals.push(upper));
    }
    high
}

fn split_types(types: &[Type]) -> Vec<Type> {
    let halves = |&ty: &Type| std::iter::repeat_n(Type::I32, if ty == Type::I64 { 2 } else { 1 });
    types.iter().flat_map(halves).collect()
}

fn split_signature(sig: &mut Signature) {
    sig.params = split_types(&sig.params);
    sig.results = split_types(&sig.results);
}

struct Lower<'a> {
    old: Func,
    emit: Emit,
    blocks: SecondaryMap<Block, Option<Block>>,
    map: SecondaryMap<Value, Option<Half>>,
    high: &'a SecondaryMap<GlobalId, Option<GlobalId>>,
    runtime: Runtime,
}

impl<'a> Lower<'a> {
    fn new(old: Func, high: &'a SecondaryMap<GlobalId, Option<GlobalId>>, runtime: Runtime) -> Lower<'a> {
        let mut sig = old.sig.clone();
        split_signature(&mut sig);
        let new = Func::new(old.name.clone(), sig);
        let emit = Emit::new(new);
        Lower { old, emit, blocks: SecondaryMap::new(), map: SecondaryMap::new(), high, runtime }
    }

    fn run(mut self) -> Result<Func, OptError> {
        let cfg = Cfg::new(&self.old);
        // Layout order for the new blocks, though they are filled in another.
        let layout: Vec<Block> = self.old.layout.iter().copied().filter(|&b| cfg.is_reachable(b)).collect();
        self.emit.func.layout.clear();
        for &block in &layout {
            let new = if block == self.old.entry {
                self.emit.func.layout.push(self.emit.func.entry);
                self.emit.func.entry
            } else {
                self.emit.func.add_block()
            };
            self.blocks[block] = Some(new);
            self.params(block, new);
        }
        for &block in &cfg.rpo {
            self.emit.block = self.block(block);
            for i in 0..self.old.blocks[block].insts.len() {
                let inst = self.old.blocks[block].insts[i];
                let data = self.old.insts[inst].clone();
                self.emit.loc = data.loc;
                self.inst(&data)?;
            }
            let term = self.term(&self.old.blocks[block].term.clone());
            let at = self.emit.block;
            self.emit.func.blocks[at].term = term;
        }
        Ok(self.emit.func)
    }

    fn block(&self, old: Block) -> Block {
        self.blocks[old].unwrap_or(self.emit.func.entry)
    }

    fn params(&mut self, old: Block, new: Block) {
        // The entry's parameters exist: the signature made them.
        let mut ready = self.emit.func.blocks[new].params.clone().into_iter();
        for param in self.old.blocks[old].params.clone() {
            let mut next = || ready.next().unwrap_or_else(|| self.emit.func.add_param(new, Type::I32));
            let half = match self.old.ty(param) {
                Type::I32 => Half::One(next()),
                Type::I64 => Half::Two(next(), next()),
            };
            self.map[param] = Some(half);
        }
    }

    /// The value or values now standing for an old value. Definitions are met
    /// first, so there always is one.
    fn half(&self, old: Value) -> Half {
        let old = self.old.resolve(old);
        self.map[old].unwrap_or_else(|| unreachable!("{old} of {:?} is used before its definition", self.old.name))
    }

    /// The value for an old 32-bit value, or the low word of a 64-bit one.
    fn low(&self, old: Value) -> Value {
        match self.half(old) {
            Half::One(v) | Half::Two(v, _) => v,
        }
    }

    fn pair(&mut self, old: Value) -> Pair {
        match self.half(old) {
            Half::One(v) => (v, self.emit.zero()),
            Half::Two(low, high) => (low, high),
        }
    }

    fn all(&self, old: &[Value]) -> Vec<Value> {
        let mut new = Vec::with_capacity(old.len());
        for &v in old {
            match self.half(v) {
                Half::One(v) => new.push(v),
                Half::Two(low, high) => new.extend([low, high]),
            }
        }
        new
    }

    fn inst(&mut self, data: &InstData) -> Result<(), OptError> {
        let ty = data.results.first().map(|&v| self.old.ty(v));
        let wide_arg = data.args.iter().any(|&v| self.old.ty(v) == Type::I64);
        let done = match (data.op, ty) {
            (Op::Call(_) | Op::CallPtr(_), _) => {
                let args = self.all(&data.args);
                let types: Vec<Type> = data.results.iter().map(|&v| self.old.ty(v)).collect();
                let call = self.emit.inst(data.op, &args, &split_types(&types));
                self.take_results(data, &call);
                return Ok(());
            }
            (Op::Store(access), _) => {
                self.store(data, access);
                return Ok(());
            }
            (Op::GlobalSet(global), _) => {
                let value = self.half(data.args[0]);
                let low = self.low(data.args[0]);
                self.emit.inst(Op::GlobalSet(global), &[low], &[]);
                if let (Half::Two(_, high), Some(upper)) = (value, self.high[global]) {
                    self.emit.inst(Op::GlobalSet(upper), &[high], &[]);
                }
                return Ok(());
            }
            (Op::Wrap, _) => Half::One(self.low(data.args[0])),
            (Op::Cmp(op), _) if wide_arg => {
                let (a, b) = (self.pair(data.args[0]), self.pair(data.args[1]));
                Half::One(self.emit.compare(op, a, b))
            }
            (_, Some(Type::I64)) => {
                let (low, high) = self.wide(data)?;
                Half::Two(low, high)
            }
            (op, _) => {
                let args = self.all(&data.args);
                Half::One(self.emit.one(op, &args))
            }
        };
        if let Some(&result) = data.results.first() {
            self.map[result] = Some(done);
        }
        Ok(())
    }

    /// Name the words a call gives: as many as its split signature has.
    fn take_results(&mut self, data: &InstData, words: &[Value]) {
        let mut at = 0;
        for &result in &data.results {
            let (half, taken) = match self.old.ty(result) {
                Type::I32 => (Half::One(words[at]), 1),
                Type::I64 => (Half::Two(words[at], words[at + 1]), 2),
            };
            self.map[result] = Some(half);
            at += taken;
        }
    }

    /// An operation with a 64-bit result.
    fn wide(&mut self, data: &InstData) -> Result<Pair, OptError> {
        use ciphermill_ir::BinOp;
        let args = &data.args;
        Ok(match data.op {
            Op::Const(c) => self.emit.constant(c),
            Op::Bin(op @ (BinOp::DivU | BinOp::DivS | BinOp::RemU | BinOp::RemS)) => {
                let (callee, runtime) = match op {
                    BinOp::DivU => (self.runtime.div_u, "rt_div_u64"),
                    BinOp::DivS => (self.runtime.div_s, "rt_div_s64"),
                    BinOp::RemU => (self.runtime.rem_u, "rt_rem_u64"),
                    _ => (self.runtime.rem_s, "rt_rem_s64"),
                };
                let Some(callee) = callee else {
                    return Err(OptError::MissingRuntime { func: self.old.name.clone(), runtime });
                };
                let args = self.all(args);
                let results = self.emit.inst(Op::Call(callee), &args, &[Type::I32; 2]);
                (results[0], results[1])
            }
            Op::Bin(op @ (BinOp::Shl | BinOp::ShrU | BinOp::ShrS | BinOp::RotL | BinOp::RotR)) => {
                let a = self.pair(args[0]);
                match self.old.as_const(args[1]) {
                    Some(n) => self.emit.shift_const(op, a, (n % 64) as u32),
                    None => {
                        let n = self.low(args[1]);
                        self.emit.shift(op, a, n)
                    }
                }
            }
            Op::Bin(BinOp::Mul) if self.both(args, Op::SExt) => {
                let (a, b) = (self.low(args[0]), self.low(args[1]));
                self.emit.product(BinOp::MulHiS, a, b)
            }
            Op::Bin(op) => {
                let (a, b) = (self.pair(args[0]), self.pair(args[1]));
                self.emit.binary(op, a, b)
            }
            Op::Un(op) => {
                let a = self.pair(args[0]);
                self.emit.unary(op, a)
            }
            Op::Select => {
                let cond = self.low(args[0]);
                let (a, b) = (self.pair(args[1]), self.pair(args[2]));
                (self.emit.select(cond, a.0, b.0), self.emit.select(cond, a.1, b.1))
            }
            Op::SExt => {
                let low = self.low(args[0]);
                (low, self.emit.sign(low))
            }
            Op::Load(access) => self.load(args[0], access),
            Op::GlobalGet(global) => {
                let low = self.emit.one(Op::GlobalGet(global), &[]);
                let high = match self.high[global] {
                    Some(upper) => self.emit.one(Op::GlobalGet(upper), &[]),
                    None => self.emit.zero(),
                };
                (low, high)
            }
            // A zero extension; the rest have no 64-bit result.
            _ => (self.low(args[0]), self.emit.zero()),
        })
    }

    fn both(&self, args: &[Value], op: Op) -> bool {
        args.iter().all(|&v| self.old.def_op(v) == Some(op))
    }

    fn load(&mut self, addr: Value, access: MemAccess) -> Pair {
        let addr = self.low(addr);
        if access.bytes == 8 {
            let (first, second) = words(access);
            return (self.emit.one(Op::Load(first), &[addr]), self.emit.one(Op::Load(second), &[addr]));
        }
        let low = self.emit.one(Op::Load(access), &[addr]);
        let high = if access.signed { self.emit.sign(low) } else { self.emit.zero() };
        (low, high)
    }

    fn store(&mut self, data: &InstData, access: MemAccess) {
        let addr = self.low(data.args[0]);
        match self.half(data.args[1]) {
            Half::Two(low, high) if access.bytes == 8 => {
                let (first, second) = words(access);
                self.emit.inst(Op::Store(second), &[addr, high], &[]);
                self.emit.inst(Op::Store(first), &[addr, low], &[]);
            }
            Half::One(v) | Half::Two(v, _) => {
                self.emit.inst(Op::Store(access), &[addr, v], &[]);
            }
        }
    }

    fn term(&mut self, term: &Terminator) -> Terminator {
        let target = |t: &Target| Target::new(self.block(t.block), self.all(&t.args));
        match term {
            Terminator::Jump(t) => Terminator::Jump(target(t)),
            Terminator::Branch { cond, then, els } => {
                Terminator::Branch { cond: self.low(*cond), then: target(then), els: target(els) }
            }
            Terminator::Switch { index, targets, default } => Terminator::Switch {
                index: self.low(*index),
                targets: targets.iter().map(target).collect(),
                default: target(default),
            },
            Terminator::Return(values) => Terminator::Return(self.all(values)),
            Terminator::Trap(code) => Terminator::Trap(*code),
        }
    }
}

/// The two words of an 8-byte access, at the lower and the higher address.
fn words(access: MemAccess) -> (MemAccess, MemAccess) {
    let word = |offset| MemAccess { bytes: 4, signed: false, align: access.align.min(4), offset, ..access };
    (word(access.offset), word(access.offset.saturating_add(4)))
}
