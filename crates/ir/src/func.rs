//! A function: blocks with parameters, instructions, values.
//!
//! Values are defined once, by an instruction or as a block parameter.
//! Replacing a value leaves an [`ValueDef::Alias`] behind; [`Func::resolve`]
//! follows it, and [`Func::resolve_all`] rewrites every use and is called by a
//! pass before it returns, so that no pass has to know of another's aliases.

use crate::ops::{Op, Signature, TrapCode, Type};
use cranelift_entity::{PrimaryMap, entity_impl};
use smallvec::SmallVec;

/// A basic block of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block(u32);
entity_impl!(Block, "block");

/// An instruction of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inst(u32);
entity_impl!(Inst, "inst");

/// An SSA value of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(u32);
entity_impl!(Value, "v");

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueDef {
    /// The n-th result of an instruction.
    Inst(Inst, u16),
    /// The n-th parameter of a block.
    Param(Block, u16),
    /// Replaced by another value.
    Alias(Value),
}

#[derive(Clone, Copy, Debug)]
pub struct ValueData {
    pub ty: Type,
    pub def: ValueDef,
}

#[derive(Clone, Debug)]
pub struct InstData {
    pub op: Op,
    pub args: SmallVec<[Value; 3]>,
    pub results: SmallVec<[Value; 1]>,
    /// Offset in the WebAssembly module this came from; 0 for none.
    pub loc: u32,
}

/// A control transfer and the values it hands to the target's parameters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    pub block: Block,
    pub args: Vec<Value>,
}

impl Target {
    pub fn new(block: Block, args: Vec<Value>) -> Target {
        Target { block, args }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Terminator {
    Jump(Target),
    /// To `then` when `cond` (I32) is not zero.
    Branch {
        cond: Value,
        then: Target,
        els: Target,
    },
    /// To `targets[index]`, or `default` when the index is too large (unsigned).
    Switch {
        index: Value,
        targets: Vec<Target>,
        default: Target,
    },
    Return(Vec<Value>),
    Trap(TrapCode),
}

impl Terminator {
    /// The targets in order (`default` last).
    pub fn targets(&self) -> SmallVec<[&Target; 2]> {
        match self {
            Terminator::Jump(t) => SmallVec::from_slice(&[t]),
            Terminator::Branch { then, els, .. } => SmallVec::from_slice(&[then, els]),
            Terminator::Switch { targets, default, .. } => targets.iter().chain([default]).collect(),
            Terminator::Return(_) | Terminator::Trap(_) => SmallVec::new(),
        }
    }

    /// The targets in order (`default` last).
    pub fn targets_mut(&mut self) -> SmallVec<[&mut Target; 2]> {
        match self {
            Terminator::Jump(t) => {
                let mut v = SmallVec::new();
                v.push(t);
                v
            }
            Terminator::Branch { then, els, .. } => {
                let mut v = SmallVec::new();
                v.push(then);
                v.push(els);
                v
            }
            Terminator::Switch { targets, default, .. } => targets.iter_mut().chain([default]).collect(),
            Terminator::Return(_) | Terminator::Trap(_) => SmallVec::new(),
        }
    }

    /// Call `f` on every value the terminator uses, block arguments included.
    pub fn for_each_value(&self, mut f: impl FnMut(Value)) {
        match self {
            Terminator::Branch { cond, .. } => f(*cond),
            Terminator::Switch { index, .. } => f(*index),
            Terminator::Return(values) => values.iter().copied().for_each(&mut f),
            Terminator::Jump(_) | Terminator::Trap(_) => {}
        }
        for target in self.targets() {
            target.args.iter().copied().for_each(&mut f);
        }
    }

    /// Call `f` on every value the terminator uses, to change it.
    pub fn map_values(&mut self, mut f: impl FnMut(Value) -> Value) {
        match self {
            Terminator::Branch { cond, .. } => *cond = f(*cond),
            Terminator::Switch { index, .. } => *index = f(*index),
            Terminator::Return(values) => values.iter_mut().for_each(|v| *v = f(*v)),
            Terminator::Jump(_) | Terminator::Trap(_) => {}
        }
        for target in self.targets_mut() {
            target.args.iter_mut().for_each(|v| *v = f(*v));
        }
    }
}

#[derive(Clone, Debug)]
pub struct BlockData {
    pub params: Vec<Value>,
    pub insts: Vec<Inst>,
    pub term: Terminator,
}

/// One function. The entry block's parameters are the function's parameters,
/// and no branch leads to it.
#[derive(Clone)]
pub struct Func {
    pub name: String,
    pub sig: Signature,
    pub blocks: PrimaryMap<Block, BlockData>,
    pub insts: PrimaryMap<Inst, InstData>,
    pub values: PrimaryMap<Value, ValueData>,
    pub entry: Block,
    /// The blocks that are part of the function, in the order they are laid
    /// out; a block not listed is dead.
    pub layout: Vec<Block>,
}

impl Func {
    /// A function with an entry block that has the signature's parameters and
    /// traps as unreachable.
    pub fn new(name: impl Into<String>, sig: Signature) -> Func {
        let mut func = Func {
            name: name.into(),
            sig,
            blocks: PrimaryMap::new(),
            insts: PrimaryMap::new(),
            values: PrimaryMap::new(),
            entry: Block(0),
            layout: Vec::new(),
        };
        let entry = func.add_block();
        for ty in func.sig.params.clone() {
            func.add_param(entry, ty);
        }
        func
    }

    /// Append an empty block, unreachable-terminated, to the layout.
    pub fn add_block(&mut self) -> Block {
        let block = self.blocks.push(BlockData {
            params: Vec::new(),
            insts: Vec::new(),
            term: Terminator::Trap(TrapCode::Unreachable),
        });
        self.layout.push(block);
        block
    }

    /// Append a parameter to a block. The caller extends every branch to it.
    pub fn add_param(&mut self, block: Block, ty: Type) -> Value {
        let index = self.blocks[block].params.len() as u16;
        let value = self.values.push(ValueData { ty, def: ValueDef::Param(block, index) });
        self.blocks[block].params.push(value);
        value
    }

    /// Make an instruction with results of the given types, in no block yet.
    pub fn make_inst(&mut self, op: Op, args: &[Value], results: &[Type], loc: u32) -> Inst {
        let inst = self.insts.push(InstData { op, args: args.into(), results: SmallVec::new(), loc });
        for (i, &ty) in results.iter().enumerate() {
            let value = self.values.push(ValueData { ty, def: ValueDef::Inst(inst, i as u16) });
            self.insts[inst].results.push(value);
        }
        inst
    }

    /// Append an instruction to a block.
    pub fn append(&mut self, block: Block, op: Op, args: &[Value], results: &[Type], loc: u32) -> Inst {
        let inst = self.make_inst(op, args, results, loc);
        self.blocks[block].insts.push(inst);
        inst
    }

    /// Append an instruction with one result and return the result.
    pub fn append1(&mut self, block: Block, op: Op, args: &[Value], ty: Type, loc: u32) -> Value {
        let inst = self.append(block, op, args, &[ty], loc);
        self.insts[inst].results[0]
    }

    /// The only result of an instruction. Panics when there is none.
    pub fn result(&self, inst: Inst) -> Value {
        self.insts[inst].results[0]
    }

    pub fn ty(&self, v: Value) -> Type {
        self.values[v].ty
    }

    /// The value `v` stands for, through all replacements.
    pub fn resolve(&self, mut v: Value) -> Value {
        while let ValueDef::Alias(to) = self.values[v].def {
            v = to;
        }
        v
    }

    /// Make every use of `old` mean `new`. Takes effect in the instruction
    /// lists at the next [`Func::resolve_all`].
    pub fn replace(&mut self, old: Value, new: Value) {
        let new = self.resolve(new);
        assert_ne!(old, new);
        self.values[old].def = ValueDef::Alias(new);
    }

    /// Rewrite every use through the aliases left by [`Func::replace`].
    pub fn resolve_all(&mut self) {
        for &block in &self.layout {
            for &inst in &self.blocks[block].insts {
                for i in 0..self.insts[inst].args.len() {
                    let v = self.insts[inst].args[i];
                    if let ValueDef::Alias(_) = self.values[v].def {
                        self.insts[inst].args[i] = self.resolve(v);
                    }
                }
            }
        }
        for i in 0..self.layout.len() {
            let block = self.layout[i];
            let placeholder = Terminator::Trap(TrapCode::Unreachable);
            let mut term = std::mem::replace(&mut self.blocks[block].term, placeholder);
            term.map_values(|v| self.resolve(v));
            self.blocks[block].term = term;
        }
    }

    /// The instruction that defines a value, if one does.
    pub fn def_inst(&self, v: Value) -> Option<Inst> {
        match self.values[self.resolve(v)].def {
            ValueDef::Inst(inst, _) => Some(inst),
            _ => None,
        }
    }

    /// The operation that defines a value, if one does.
    pub fn def_op(&self, v: Value) -> Option<Op> {
        self.def_inst(v).map(|i| self.insts[i].op)
    }

    /// The constant a value is, if it is one.
    pub fn as_const(&self, v: Value) -> Option<u64> {
        match self.def_op(v) {
            Some(Op::Const(c)) => Some(c),
            _ => None,
        }
    }

    /// Number of instructions in live blocks, terminators included.
    pub fn size(&self) -> usize {
        self.layout.iter().map(|&b| self.blocks[b].insts.len() + 1).sum()
    }
}
