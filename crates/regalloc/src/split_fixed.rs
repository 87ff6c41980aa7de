//! Live-range splitting at operands with a fixed register.
//!
//! Some operands have to be in one register, such as a shift's amount on x86. The allocator wants
//! such a value in that register for its whole live range, and moves it to and fro where several of
//! them live at once. This pass copies the value in front of the instruction, so that only the copy
//! is bound to the register.

use ciphermill_machine::Machine;
use ciphermill_vcode::Facts;
use ciphermill_vcode::moves::mov;
use ciphermill_vcode::{VFunc, VOp};

/// The function with a copy for each operand that has a fixed register; None if there is none.
pub fn split_fixed(func: &VFunc, machine: &Machine, facts: &Facts) -> Option<VFunc> {
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
