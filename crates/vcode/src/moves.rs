//! Moves between registers.

use crate::code::{VInst, VKind, VOp};
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{InstrId, Machine, OperandKind};
use smallvec::SmallVec;

/// A register move, its operands in the order the machine file has them.
pub fn mov(machine: &Machine, to: VOp, from: VOp, loc: u32) -> VInst {
    let mov = match to {
        // A register that no ordinary move reaches has an instruction of its own.
        VOp::Phys(r) => {
            let file = machine.regs[usize::from(r.0)].file;
            let state = machine.files.get(file).is_some_and(|f| f.state);
            state.then(|| writer(machine, file)).flatten().unwrap_or(machine.abi.ops.mov)
        }
        _ => machine.abi.ops.mov,
    };
    let defines = |o: &ciphermill_machine::Operand| matches!(o.kind, OperandKind::Reg { def: true, .. });
    let ops = machine.instrs[mov.0 as usize].operands.iter().map(|o| if defines(o) { to } else { from });
    VInst::new(VKind::Normal, mov, &ops.collect::<SmallVec<[VOp; 4]>>(), loc)
}

/// The instruction that writes a register of a file that nothing else moves to.
pub fn writer(machine: &Machine, file: usize) -> Option<InstrId> {
    let found = machine.instrs.iter().position(|instr| {
        let [Stmt::Assign { dest: Dest::Operand(row), value: Expr::Operand(_) }] = &instr.semantics[..] else {
            return false;
        };
        let of = |i: usize| match instr.operands.get(i).map(|o| &o.kind) {
            Some(OperandKind::Reg { file, .. }) => Some(*file),
            _ => None,
        };
        instr.operands.len() == 2 && of(*row) == Some(file)
    });
    found.map(|i| InstrId(i as u16))
}
