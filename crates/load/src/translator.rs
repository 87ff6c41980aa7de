//! What the translation of a body keeps from operator to operator: the two stacks,
//! the block under way, and the function made so far.

use crate::link::Linker;
use crate::sections::{Origin, Source};
use crate::ssa::SsaBuilder;
use ciphermill_ir::{BinOp, Block, MemAccess, Op, Target, Terminator, TrapCode, Type, Value};
use wasmparser::FuncValidatorAllocations;

/// What translating any body needs besides the body.
pub(crate) struct Context<'c, 'a> {
    /// The module the body comes from.
    pub source: &'c Source<'a>,
    pub origin: Origin,
    /// The runtime module, to link functions from.
    pub runtime: &'c Source<'static>,
    pub linker: &'c mut Linker,
    pub allocations: &'c mut FuncValidatorAllocations,
}

pub(crate) struct Translator<'t, 'c, 'a> {
    pub cx: &'t mut Context<'c, 'a>,
    pub ssa: SsaBuilder,
    pub block: Block,
    pub live: bool,
    pub stack: Vec<Value>,
    pub frames: Vec<Frame>,
    pub traps: Vec<(TrapCode, Block)>,
    /// Offset of the operator being translated.
    pub loc: u32,
}

/// An operator outside the subset. `what` stands for the operator itself when
/// it is None.
pub(crate) struct Refused {
    pub what: Option<String>,
    pub reason: &'static str,
}

/// What opened a frame.
pub(crate) enum Kind {
    Function,
    Block,
    Loop,
    /// The block for the condition zero, and the operands it starts with.
    If(Block, Vec<Value>),
}

/// A `block`, `loop` or `if` that is open.
pub(crate) struct Frame {
    pub kind: Kind,
    /// False when the frame was entered in dead code.
    pub live: bool,
    /// The block a branch to this frame goes to, once there is one.
    pub label: Option<Block>,
    /// Types of the operands a branch to this frame carries.
    pub carries: Vec<Type>,
    pub results: usize,
    /// Operands below the frame's own.
    pub height: usize,
}

impl Translator<'_, '_, '_> {
    pub fn pop(&mut self) -> Value {
        // Validation has seen to it that the operand is there.
        self.stack.pop().expect("the operand stack matches the validated code")
    }

    pub fn push(&mut self, value: Value) {
        self.stack.push(value);
    }

    pub fn pop_many(&mut self, n: usize) -> Vec<Value> {
        self.stack.split_off(self.stack.len() - n)
    }

    pub fn top_many(&self, n: usize) -> Vec<Value> {
        self.stack[self.stack.len() - n..].to_vec()
    }

    pub fn emit(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        self.ssa.func.append1(self.block, op, args, ty, self.loc)
    }

    pub fn emit_effect(&mut self, op: Op, args: &[Value]) {
        self.ssa.func.append(self.block, op, args, &[], self.loc);
    }

    pub fn constant(&mut self, value: u32) -> Value {
        self.emit(Op::Const(u64::from(value)), &[], Type::I32)
    }

    pub fn bin(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        let ty = self.ssa.func.ty(a);
        self.emit(Op::Bin(op), &[a, b], ty)
    }

    pub fn load(&mut self, address: Value, access: MemAccess, ty: Type) -> Value {
        self.emit(Op::Load(access), &[address], ty)
    }

    /// A block with one predecessor begins.
    pub fn enter(&mut self, block: Block) {
        self.ssa.begin(block);
        self.ssa.seal(block);
        self.block = block;
        self.live = true;
    }

    pub fn terminate(&mut self, term: Terminator) {
        self.ssa.terminate(self.block, term);
        self.live = false;
    }

    /// The block that traps so; one a function and kind.
    fn trap_block(&mut self, code: TrapCode) -> Block {
        if let Some(&(_, block)) = self.traps.iter().find(|&&(c, _)| c == code) {
            return block;
        }
        let block = self.ssa.block(&[]);
        self.ssa.func.blocks[block].term = Terminator::Trap(code);
        self.traps.push((code, block));
        block
    }

    /// Trap when the condition is not zero, else go on.
    pub fn trap_if(&mut self, cond: Value, code: TrapCode) {
        let trap = self.trap_block(code);
        let next = self.ssa.block(&[]);
        let (then, els) = (Target::new(trap, Vec::new()), Target::new(next, Vec::new()));
        self.terminate(Terminator::Branch { cond, then, els });
        self.enter(next);
    }

    pub fn jump_to_trap(&mut self, code: TrapCode) {
        let trap = self.trap_block(code);
        self.terminate(Terminator::Jump(Target::new(trap, Vec::new())));
    }
}
