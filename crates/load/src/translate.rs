//! One function body: from structured control flow to a graph of blocks.
//!
//! The translator walks the operators once, beside `wasmparser`'s validator,
//! and keeps two stacks of its own: operands (SSA values) and control frames. A
//! `block` costs no basic block until something branches to its end; a `loop`
//! gets a header at once. Operands that a branch carries become arguments for
//! the parameters of its target; local variables are [`crate::ssa`]'s business.
//!
//! After an operator that never falls through (`br`, `return`, `unreachable`)
//! the rest of the frame is dead. It is validated but makes nothing: only the
//! nesting of frames is tracked until the `end` or `else` that may be reached
//! again.

use crate::error::{self, LoadError};
use crate::numeric::{Numeric, numeric};
use crate::runtime::{DIVISION, DIVISION_32};
use crate::sections::{Body, Origin, value_type};
use crate::ssa::SsaBuilder;
use crate::translator::{Context, Frame, Kind, Refused, Translator};
use ciphermill_ir::{CmpOp, Func, FuncId, Op, SigId, Signature, Target, Terminator, TrapCode, Type, Value};
use wasmparser::{FunctionBody, Operator};

/// What calling a function index means.
enum Callee {
    Func(FuncId),
    Trap(TrapCode),
}

/// Translate a body into the function that stands for it.
pub(crate) fn translate(
    cx: &mut Context<'_, '_>,
    body: Body<'_>,
    name: &str,
    sig: Signature,
) -> Result<Func, LoadError> {
    let invalid = |e: wasmparser::Error| LoadError::InvalidFunction {
        function: name.to_string(),
        message: e.message().to_string(),
        offset: e.offset(),
    };
    let refuse =
        |offset, what: String, reason| LoadError::Operator { function: name.to_string(), offset, what, reason };

    let mut validator = body.validate.into_validator(std::mem::take(cx.allocations));
    let mut locals = sig.params.clone();
    let mut reader = body.body.get_locals_reader().map_err(invalid)?;
    for _ in 0..reader.get_count() {
        let offset = reader.original_position();
        let (count, ty) = reader.read().map_err(invalid)?;
        validator.define_locals(offset, count, ty).map_err(invalid)?;
        // The operator that needs it has a line in the source, a local variable may have none.
        let ty = value_type(ty).map_err(|reason| match used(&body.body, reason) {
            Some((op, offset)) => refuse(offset, error::mnemonic(&op), error::FLOAT),
            None => refuse(offset, "a local variable".into(), reason),
        })?;
        locals.resize(locals.len() + count as usize, ty);
    }

    let results = sig.results.clone();
    let ssa = SsaBuilder::new(name, sig, locals);
    let block = ssa.func.entry;
    let function =
        Frame { kind: Kind::Function, live: true, label: None, results: results.len(), carries: results, height: 0 };
    let mut t =
        Translator { cx, ssa, block, live: true, stack: Vec::new(), frames: vec![function], traps: Vec::new(), loc: 0 };
    let mut operators = body.body.get_operators_reader().map_err(invalid)?;
    while !operators.eof() {
        let (op, offset) = operators.read_with_offset().map_err(invalid)?;
        validator.op(offset, &op).map_err(|e| match e.missing_wasm_feature() {
            Some(_) => refuse(offset, error::mnemonic(&op), error::refusal(&op)),
            None => invalid(e),
        })?;
        if t.cx.origin == Origin::User {
            t.loc = offset as u32;
        }
        t.operator(&op)
            .map_err(|Refused { what, reason }| refuse(offset, what.unwrap_or_else(|| error::mnemonic(&op)), reason))?;
    }
    operators.finish().map_err(invalid)?;
    let Translator { ssa, traps, .. } = t;
    *cx.allocations = validator.into_allocations();
    let mut ssa = ssa;
    for (_, block) in traps {
        ssa.begin(block);
    }
    Ok(ssa.finish())
}

/// The first floating-point operator of a body, for a local variable that is refused as one of such a type.
fn used<'a>(body: &FunctionBody<'a>, reason: &str) -> Option<(Operator<'a>, u64)> {
    let mut operators = body.get_operators_reader().ok().filter(|_| reason == error::FLOAT_TYPE)?;
    while !operators.eof() {
        let (op, offset) = operators.read_with_offset().ok()?;
        if error::refusal(&op) == error::FLOAT {
            return Some((op, offset));
        }
    }
    None
}

impl Translator<'_, '_, '_> {
    fn operator(&mut self, op: &Operator<'_>) -> Result<(), Refused> {
        match op {
            Operator::Block { blockty } => self.enter_frame(*blockty, Kind::Block),
            Operator::Loop { blockty } => self.enter_frame(*blockty, Kind::Loop),
            Operator::If { blockty } => self.enter_if(*blockty),
            Operator::Else => {
                self.otherwise();
                Ok(())
            }
            Operator::End => {
                self.end();
                Ok(())
            }
            _ if self.live => self.plain(op),
            _ => Ok(()),
        }
    }

    /// An operator that is not a control frame, in live code.
    fn plain(&mut self, op: &Operator<'_>) -> Result<(), Refused> {
        if let Some(numeric) = numeric(op) {
            self.numeric(numeric);
            return Ok(());
        }
        match op {
            Operator::Nop => {}
            Operator::Unreachable => {
                // A trap has no place of its own; what nobody uses costs nothing, and says where it stood.
                self.emit(Op::Const(0), &[], Type::I32);
                self.terminate(Terminator::Trap(TrapCode::Unreachable));
            }
            Operator::Drop => {
                self.pop();
            }
            Operator::Select => self.select(),
            Operator::TypedSelect { ty } => {
                value_type(*ty).map_err(|reason| Refused { what: Some("a select".into()), reason })?;
                self.select();
            }
            Operator::LocalGet { local_index } => {
                let value = self.ssa.read(self.block, *local_index);
                self.push(value);
            }
            Operator::LocalSet { local_index } => {
                let value = self.pop();
                self.ssa.write(self.block, *local_index, value);
            }
            Operator::LocalTee { local_index } => {
                let value = self.pop();
                self.ssa.write(self.block, *local_index, value);
                self.push(value);
            }
            Operator::GlobalGet { global_index } => {
                let (id, ty) = self.cx.linker.global_type(*global_index);
                let value = self.emit(Op::GlobalGet(id), &[], ty);
                self.push(value);
            }
            Operator::GlobalSet { global_index } => {
                let (id, _) = self.cx.linker.global_type(*global_index);
                let value = self.pop();
                self.emit_effect(Op::GlobalSet(id), &[value]);
            }
            Operator::Br { relative_depth } => self.branch(*relative_depth),
            Operator::Return => self.branch(self.frames.len() as u32 - 1),
            Operator::BrIf { relative_depth } => {
                let cond = self.pop();
                let then = self.target(*relative_depth);
                let next = self.ssa.block(&[]);
                let els = Target::new(next, Vec::new());
                self.terminate(Terminator::Branch { cond, then, els });
                self.enter(next);
            }
            Operator::BrTable { targets } => {
                let index = self.pop();
                let mut list = Vec::with_capacity(targets.len() as usize);
                for depth in targets.targets() {
                    // The validator has read the same table before.
                    list.push(self.target(depth.unwrap_or(0)));
                }
                let default = self.target(targets.default());
                self.terminate(if list.is_empty() {
                    Terminator::Jump(default)
                } else {
                    Terminator::Switch { index, targets: list, default }
                });
            }
            Operator::Call { function_index } => self.call(*function_index)?,
            Operator::CallIndirect { type_index, .. } => self.call_indirect(*type_index)?,
            _ => return self.bulk(op),
        }
        Ok(())
    }

    fn numeric(&mut self, numeric: Numeric) {
        let value = match numeric {
            Numeric::Const(ty, bits) => self.emit(Op::Const(bits), &[], ty),
            Numeric::Bin(ty, op) => {
                if op.may_trap() && ty == Type::I64 && self.cx.origin == Origin::User {
                    self.want_division(DIVISION);
                }
                if op.may_trap() && ty == Type::I32 {
                    self.want_division(DIVISION_32);
                }
                let (b, a) = (self.pop(), self.pop());
                self.emit(Op::Bin(op), &[a, b], ty)
            }
            Numeric::Un(ty, op) => {
                let a = self.pop();
                self.emit(Op::Un(op), &[a], ty)
            }
            Numeric::Cmp(op, exchanged) => {
                let (b, a) = (self.pop(), self.pop());
                let args = if exchanged { [b, a] } else { [a, b] };
                self.emit(Op::Cmp(op), &args, Type::I32)
            }
            Numeric::Eqz(ty) => {
                let a = self.pop();
                let zero = self.emit(Op::Const(0), &[], ty);
                self.emit(Op::Cmp(CmpOp::Eq), &[a, zero], Type::I32)
            }
            Numeric::Convert(ty, op) => {
                let a = self.pop();
                self.emit(op, &[a], ty)
            }
            Numeric::Load(ty, access) => {
                let address = self.pop();
                self.load(address, access, ty)
            }
            Numeric::Store(access) => {
                let (value, address) = (self.pop(), self.pop());
                return self.emit_effect(Op::Store(access), &[address, value]);
            }
        };
        self.push(value);
    }

    fn select(&mut self) {
        let (cond, zero, nonzero) = (self.pop(), self.pop(), self.pop());
        let ty = self.ssa.func.ty(nonzero);
        let value = self.emit(Op::Select, &[cond, nonzero, zero], ty);
        self.push(value);
    }

    fn callee(&mut self, index: u32) -> Callee {
        if self.cx.origin == Origin::User {
            return Callee::Func(FuncId::from_u32(index));
        }
        match self.cx.runtime.traps.get(index as usize) {
            Some(&code) => Callee::Trap(code),
            None => {
                let name = format!("rt_part_{index}");
                Callee::Func(self.cx.linker.runtime(self.cx.runtime, index, &name))
            }
        }
    }

    fn call(&mut self, index: u32) -> Result<(), Refused> {
        match self.callee(index) {
            Callee::Func(id) => self.emit_call(Op::Call(id), None, self.cx.linker.module.funcs[id].sig.clone()),
            Callee::Trap(code) => self.jump_to_trap(code),
        }
        Ok(())
    }

    /// A call of that signature: operands off the stack, results onto it.
    pub fn emit_call(&mut self, op: Op, pointer: Option<Value>, sig: Signature) {
        let mut args = self.pop_many(sig.params.len());
        args.splice(0..0, pointer);
        let call = self.ssa.func.append(self.block, op, &args, &sig.results, self.loc);
        self.stack.extend_from_slice(&self.ssa.func.insts[call].results);
    }

    /// The signature a type index stands for.
    pub fn signature(&mut self, type_index: u32) -> Result<(SigId, Signature), Refused> {
        let sig = self.cx.source.types[type_index as usize]
            .clone()
            .map_err(|reason| Refused { what: Some("the type of an indirect call".into()), reason })?;
        Ok((self.cx.linker.signature(&sig), sig))
    }
}
