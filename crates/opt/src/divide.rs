//! Divisions of machines that have none: calls of the runtime's functions.
//!
//! The functions are those of the loader's runtime (`rt_div_u32` and so on),
//! which trap as WebAssembly says. They are ordinary functions of the module,
//! so what a division costs is what they cost on the machine. Divisions by
//! powers of two have been folded away before.

use crate::error::OptError;
use ciphermill_ir::{BinOp, FuncId, Module, Op, Signature, Type};

/// Turn every 32-bit division and remainder into a call.
pub(crate) fn run(module: &mut Module) -> Result<(), OptError> {
    let sig = Signature { params: vec![Type::I32; 2], results: vec![Type::I32] };
    // The runtime stands behind the user's functions, so the last of a name is it.
    let find = |name: &str| -> Option<FuncId> {
        let mut found = module.funcs.iter().filter(|(_, f)| f.name == name && f.sig == sig);
        found.next_back().map(|(id, _)| id)
    };
    let names = [
        (BinOp::DivU, "rt_div_u32"),
        (BinOp::DivS, "rt_div_s32"),
        (BinOp::RemU, "rt_rem_u32"),
        (BinOp::RemS, "rt_rem_s32"),
    ];
    let runtime = names.map(|(op, name)| (op, name, find(name)));
    for func in module.funcs.values_mut() {
        for block in func.layout.clone() {
            for inst in func.blocks[block].insts.clone() {
                let Op::Bin(op) = func.insts[inst].op else { continue };
                if !op.may_trap() || func.ty(func.insts[inst].results[0]) != Type::I32 {
                    continue;
                }
                let Some(&(_, name, callee)) = runtime.iter().find(|r| r.0 == op) else { continue };
                let Some(callee) = callee else {
                    return Err(OptError::MissingRuntime { func: func.name.clone(), runtime: name });
                };
                func.insts[inst].op = Op::Call(callee);
            }
        }
    }
    Ok(())
}
