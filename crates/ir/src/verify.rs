//! The verifier: what every pass may rely on and has to leave true.
//!
//! A module is well formed when
//! * the layout lists every reachable block, none twice, the entry among them,
//!   and nothing branches to the entry;
//! * every instruction stands in one place, and values and their definitions
//!   name each other;
//! * operands and results have the types their operation wants, constants fit
//!   their type, access widths are legal, calls match signatures, block
//!   arguments match parameters, returns match the function's results;
//! * every use is dominated by its definition, and no use names a replaced
//!   value.
//!
//! Uses in blocks that cannot be reached are checked for types but not for
//! dominance, which means nothing there. The first fault is reported; the
//! error names the function, the block and the instruction's text.

use crate::cfg::{Cfg, Dominators};
use crate::func::{Block, Func, Inst, Target, Terminator, Value, ValueDef};
use crate::module::Module;
use crate::ops::{MemAccess, Op, Signature, Type, UnOp};
use cranelift_entity::SecondaryMap;
use std::fmt;

/// What is wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyError {
    /// Name of the function; empty for a fault of the module itself.
    pub func: String,
    pub block: Option<Block>,
    /// The instruction or terminator, as printed.
    pub inst: Option<String>,
    pub message: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.func.is_empty() {
            write!(f, "module")?;
        } else {
            write!(f, "function {:?}", self.func)?;
        }
        if let Some(block) = self.block {
            write!(f, ", {block}")?;
        }
        if let Some(inst) = &self.inst {
            write!(f, ", `{inst}`")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for VerifyError {}

/// Check a whole module.
///
/// # Errors
/// The first fault found, in the order module, functions.
pub fn verify(module: &Module) -> Result<(), VerifyError> {
    let fault = |message: String| Err(VerifyError { func: String::new(), block: None, inst: None, message });
    for (name, id) in &module.exports {
        if module.funcs.get(*id).is_none() {
            return fault(format!("export {name:?} names {id}, which does not exist"));
        }
    }
    for (name, id) in &module.exported_globals {
        if module.globals.get(*id).is_none() {
            return fault(format!("export {name:?} names {id}, which does not exist"));
        }
    }
    for (id, global) in &module.globals {
        if global.init & !global.ty.mask() != 0 {
            return fault(format!("the initial value of {id} does not fit {}", global.ty));
        }
    }
    for func_ref in &module.system.func_refs {
        let end = func_ref.offset as usize + 4;
        if module.funcs.get(func_ref.func).is_none() || end > module.system.bytes.len() {
            return fault(format!("the reference to {} at {} is out of range", func_ref.func, func_ref.offset));
        }
    }
    if let Some(start) = module.start {
        match module.funcs.get(start) {
            Some(func) if func.sig == Signature::default() => {}
            _ => return fault(format!("start function {start} has to exist, without parameters or results")),
        }
    }
    module.funcs.values().try_for_each(|func| verify_func(module, func))
}

/// Check one function of a module.
///
/// # Errors
/// The first fault found.
pub(crate) fn verify_func(module: &Module, func: &Func) -> Result<(), VerifyError> {
    let mut verifier = Verifier { module, func, place: SecondaryMap::new() };
    verifier.run().map_err(|fault| VerifyError {
        func: if func.name.is_empty() { "?".to_string() } else { func.name.clone() },
        block: fault.block,
        inst: fault.at.map(|at| match at {
            At::Inst(inst) => func.inst_text(inst),
            At::Term(block) => func.blocks[block].term.to_string(),
        }),
        message: fault.message,
    })
}

#[derive(Clone, Copy)]
enum At {
    Inst(Inst),
    Term(Block),
}

struct Fault {
    block: Option<Block>,
    at: Option<At>,
    message: String,
}

/// Where an instruction stands: its block, and its position plus one.
#[derive(Clone, Copy, Default)]
struct Place {
    block: u32,
    order: u32,
}

struct Verifier<'a> {
    module: &'a Module,
    func: &'a Func,
    place: SecondaryMap<Inst, Place>,
}

impl Verifier<'_> {
    fn run(&mut self) -> Result<(), Fault> {
        self.structure()?;
        for &block in &self.func.layout {
            for &inst in &self.func.blocks[block].insts {
                let check = self.types(inst);
                check.map_err(|message| Fault { block: Some(block), at: Some(At::Inst(inst)), message })?;
            }
            let check = self.terminator(&self.func.blocks[block].term);
            check.map_err(|message| Fault { block: Some(block), at: Some(At::Term(block)), message })?;
        }
        self.dominance()
    }

    /// Layout, placement, and that values and definitions agree.
    fn structure(&mut self) -> Result<(), Fault> {
        let func = self.func;
        let mut listed: SecondaryMap<Block, bool> = SecondaryMap::new();
        for &block in &func.layout {
            let at = |message: String| Fault { block: Some(block), at: None, message };
            if func.blocks.get(block).is_none() {
                return Err(at("the layout names a block that does not exist".into()));
            }
            if std::mem::replace(&mut listed[block], true) {
                return Err(at("the block stands in the layout twice".into()));
            }
            for (i, &param) in func.blocks[block].params.iter().enumerate() {
                let def = func.values.get(param).map(|v| v.def);
                if def != Some(ValueDef::Param(block, i as u16)) {
                    return Err(at(format!("parameter {param} is not defined here")));
                }
            }
            for (i, &inst) in func.blocks[block].insts.iter().enumerate() {
                let at = |message: String| Fault { block: Some(block), at: Some(At::Inst(inst)), message };
                if func.insts.get(inst).is_none() {
                    return Err(Fault { block: Some(block), at: None, message: format!("no such {inst}") });
                }
                if self.place[inst].order != 0 {
                    return Err(at("the instruction stands in two places".into()));
                }
                self.place[inst] = Place { block: block.as_u32(), order: i as u32 + 1 };
                for (n, &result) in func.insts[inst].results.iter().enumerate() {
                    let def = func.values.get(result).map(|v| v.def);
                    if def != Some(ValueDef::Inst(inst, n as u16)) {
                        return Err(at(format!("result {result} is not defined here")));
                    }
                }
                for &arg in &func.insts[inst].args {
                    self.usable(arg).map_err(at)?;
                }
            }
            let mut bad = None;
            func.blocks[block].term.for_each_value(|v| {
                if let Err(message) = self.usable(v) {
                    bad.get_or_insert(message);
                }
            });
            if let Some(message) = bad {
                return Err(Fault { block: Some(block), at: Some(At::Term(block)), message });
            }
            for target in func.blocks[block].term.targets() {
                let here = Some(At::Term(block));
                if func.blocks.get(target.block).is_none() {
                    let message = "the target does not exist".into();
                    return Err(Fault { block: Some(block), at: here, message });
                }
                if target.block == func.entry {
                    let message = "a branch leads to the entry block".into();
                    return Err(Fault { block: Some(block), at: here, message });
                }
            }
        }
        if !listed[func.entry] {
            let message = "the entry block is not in the layout".into();
            return Err(Fault { block: Some(func.entry), at: None, message });
        }
        for block in Cfg::new(func).rpo {
            if !listed[block] {
                let message = "the block is reachable but not in the layout".into();
                return Err(Fault { block: Some(block), at: None, message });
            }
        }
        let params: Vec<Type> = func.blocks[func.entry].params.iter().map(|&v| func.ty(v)).collect();
        if params != func.sig.params {
            let message = "the entry block's parameters are not the signature's".into();
            return Err(Fault { block: Some(func.entry), at: None, message });
        }
        Ok(())
    }

    fn usable(&self, v: Value) -> Result<(), String> {
        match self.func.values.get(v).map(|data| data.def) {
            None => Err(format!("{v} does not exist")),
            Some(ValueDef::Alias(to)) => Err(format!("{v} has been replaced by {to}")),
            Some(_) => Ok(()),
        }
    }

    fn types(&self, inst: Inst) -> Result<(), String> {
        use Type::{I32, I64};
        let data = &self.func.insts[inst];
        let args: Vec<Type> = data.args.iter().map(|&v| self.func.ty(v)).collect();
        let results: Vec<Type> = data.results.iter().map(|&v| self.func.ty(v)).collect();
        let first_result = results.first().copied().unwrap_or(I32);
        let first_arg = args.first().copied().unwrap_or(I32);
        let expect = |a: &[Type], r: &[Type]| {
            if args != a {
                return Err(format!("operands {}, wanted {}", list(&args), list(a)));
            }
            if results != r {
                return Err(format!("results {}, wanted {}", list(&results), list(r)));
            }
            Ok(())
        };
        match data.op {
            Op::Const(c) => {
                expect(&[], &[first_result])?;
                if c & !first_result.mask() != 0 {
                    return Err(format!("the constant does not fit {first_result}"));
                }
                Ok(())
            }
            Op::Bin(_) => expect(&[first_result; 2], &[first_result]),
            Op::Un(UnOp::SExt32) => expect(&[I64], &[I64]),
            Op::Un(_) => expect(&[first_result], &[first_result]),
            Op::Cmp(_) => expect(&[first_arg; 2], &[I32]),
            Op::Select => expect(&[I32, first_result, first_result], &[first_result]),
            Op::Wrap => expect(&[I64], &[I32]),
            Op::ZExt | Op::SExt => expect(&[I32], &[I64]),
            Op::Load(access) => {
                expect(&[I32], &[first_result])?;
                width(access, first_result)
            }
            Op::Store(access) => {
                let stored = args.get(1).copied().unwrap_or(I32);
                expect(&[I32, stored], &[])?;
                width(access, stored)
            }
            Op::GlobalGet(id) => match self.module.globals.get(id) {
                Some(global) => expect(&[], &[global.ty]),
                None => Err(format!("{id} does not exist")),
            },
            Op::GlobalSet(id) => match self.module.globals.get(id) {
                Some(global) if global.mutable => expect(&[global.ty], &[]),
                Some(_) => Err(format!("{id} cannot be set: it is not mutable")),
                None => Err(format!("{id} does not exist")),
            },
            Op::Call(callee) => match self.module.funcs.get(callee) {
                Some(callee) => expect(&callee.sig.params, &callee.sig.results),
                None => Err(format!("{callee} does not exist")),
            },
            Op::Apply(_) => expect(&vec![I32; data.args.len()], &vec![I32; data.results.len()]),
            Op::Chain(chain, _) => expect(&vec![I32; data.args.len()], &vec![I32; chain.results(data.args.len())]),
            Op::CallPtr(sig) => match self.module.sigs.get(sig) {
                Some(sig) => {
                    let mut wanted = vec![I32];
                    wanted.extend(&sig.params);
                    expect(&wanted, &sig.results)
                }
                None => Err(format!("{sig} does not exist")),
            },
        }
    }

    fn terminator(&self, term: &Terminator) -> Result<(), String> {
        let func = self.func;
        match term {
            Terminator::Branch { cond: v, .. } | Terminator::Switch { index: v, .. } => {
                if func.ty(*v) != Type::I32 {
                    return Err(format!("{v} is not an i32"));
                }
            }
            Terminator::Return(values) => {
                let types: Vec<Type> = values.iter().map(|&v| func.ty(v)).collect();
                if types != func.sig.results {
                    return Err(format!("returns {}, wanted {}", list(&types), list(&func.sig.results)));
                }
            }
            Terminator::Jump(_) | Terminator::Trap(_) => {}
        }
        term.targets().into_iter().try_for_each(|t| self.target(t))
    }

    fn target(&self, target: &Target) -> Result<(), String> {
        let args: Vec<Type> = target.args.iter().map(|&v| self.func.ty(v)).collect();
        let params: Vec<Type> = self.func.blocks[target.block].params.iter().map(|&v| self.func.ty(v)).collect();
        if args != params {
            return Err(format!("{} gets {}, wants {}", target.block, list(&args), list(&params)));
        }
        Ok(())
    }

    fn dominance(&self) -> Result<(), Fault> {
        let func = self.func;
        let cfg = Cfg::new(func);
        let doms = Dominators::new(func, &cfg);
        for &block in &cfg.rpo {
            for (i, &inst) in func.blocks[block].insts.iter().enumerate() {
                for &arg in &func.insts[inst].args {
                    if !self.available(&doms, arg, block, i as u32 + 1) {
                        let message = format!("{arg} is used before its definition or where that does not dominate");
                        return Err(Fault { block: Some(block), at: Some(At::Inst(inst)), message });
                    }
                }
            }
            let mut bad = None;
            func.blocks[block].term.for_each_value(|v| {
                if bad.is_none() && !self.available(&doms, v, block, u32::MAX) {
                    bad = Some(v);
                }
            });
            if let Some(v) = bad {
                let message = format!("the definition of {v} does not dominate this use");
                return Err(Fault { block: Some(block), at: Some(At::Term(block)), message });
            }
        }
        Ok(())
    }

    /// Is `v` defined on every path to position `order` of `block`?
    fn available(&self, doms: &Dominators, v: Value, block: Block, order: u32) -> bool {
        match self.func.values[v].def {
            ValueDef::Param(at, index) => {
                self.func.blocks[at].params.get(usize::from(index)) == Some(&v) && doms.dominates(at, block)
            }
            ValueDef::Inst(inst, _) => {
                let place = self.place[inst];
                let at = Block::from_u32(place.block);
                place.order != 0 && if at == block { place.order < order } else { doms.dominates(at, block) }
            }
            ValueDef::Alias(_) => false,
        }
    }
}

fn width(access: MemAccess, ty: Type) -> Result<(), String> {
    if !matches!(access.bytes, 1 | 2 | 4 | 8) || u32::from(access.bytes) * 8 > ty.bits() {
        return Err(format!("an access of {} bytes with a value of type {ty}", access.bytes));
    }
    if !access.align.is_power_of_two() || access.align > access.bytes {
        return Err(format!("an access of {} bytes stated to be aligned to {}", access.bytes, access.align));
    }
    Ok(())
}

fn list(types: &[Type]) -> String {
    format!("({})", types.iter().map(Type::to_string).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
