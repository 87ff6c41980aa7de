//! Values kept apart from the registers that instructions want.
//!
//! To the allocator a value that an instruction wants in one certain register (the amount
//! of a shift on x86) is a value for that register from its beginning to its end, with all
//! that is changed in place to make it; where several such values live at once it is split
//! wherever they meet, and goes back and forth. Here each such instruction gets a copy, which
//! is all that has to be in the register.

use ciphermill_vcode::Facts;
use ciphermill_vcode::moves::mov;
use ciphermill_vcode::{VFunc, VOp};
use ciphermill_machine::Machine;

/// The function with a copy for each operand that has to be in a certain register; None where
/// there is none.
pub fn apart(func: &VFunc, machine: &Machine, facts: &Facts) -> Option<VFunc> {
    // A copy may stand between flags and what reads them.
    if facts.fixed_writes(machine.abi.ops.mov).next().is_some() {
        return None;
    }
    let mut out = func.clone();
    for b in 0..out.blocks.len() {
        let insts = std::mem::take(&mut out.blocks[b].insts);
        let mut made = Vec::with_capacity(insts.len());
        for mut inst in insts {
            let only = &machine.instrs[usize::from(inst.instr.0)].only;
            for (operand, _) in only.iter().filter(|o| o.1.len() == 1) {
                if let Some(VOp::Use(v)) = inst.ops.get(*operand).copied() {
                    let copy = out.new_vreg();
                    made.push(mov(machine, VOp::Def(copy), VOp::Use(v), inst.loc));
                    inst.ops[*operand] = VOp::Use(copy);
                }
            }
            made.push(inst);
        }
        out.blocks[b].insts = made;
    }
    (out.vregs > func.vregs).then_some(out)
}
