//! A context that the code knows the address of.
//!
//! Programs that encipher under one key keep its schedule and tables in global
//! variables, whose addresses stand in the instructions; a context that comes as
//! a parameter takes a register instead. Where a request asks for it, every
//! function of the C interface has the context's address, as the plan lays it
//! out, for its first parameter; what is passed there is not looked at.

use crate::interface::Interface;
use crate::plan;
use ciphermill_ir::{Module, Op, Type};

/// The module with the context where the plan puts it.
pub fn fixed(module: &Module, interface: &Interface) -> Module {
    let mut module = module.clone();
    let at = u64::from(plan::context(interface));
    for (name, id) in &module.exports {
        if !crate::pipeline::takes_context(name) {
            continue;
        }
        let func = &mut module.funcs[*id];
        let entry = func.entry;
        let Some(&param) = func.blocks[entry].params.first().filter(|&&p| func.ty(p) == Type::I32) else { continue };
        let rest = std::mem::take(&mut func.blocks[entry].insts);
        let address = func.append1(entry, Op::Const(at), &[], Type::I32, 0);
        func.blocks[entry].insts.extend(rest);
        // The parameter itself stays, and nothing reads it.
        for block in func.layout.clone() {
            for inst in func.blocks[block].insts.clone() {
                func.insts[inst].args.iter_mut().filter(|v| **v == param).for_each(|v| *v = address);
            }
            func.blocks[block].term.map_values(|v| if v == param { address } else { v });
        }
    }
    module
}
