//! Which registers a function may use, and whether it has a register window of its own.

use ciphermill_ir::GlobalId;
use ciphermill_machine::{Machine, Reg};
use ciphermill_vcode::{Registers, VFunc, VKind, VOp, liveness};

/// Does the function need a register window of its own?
pub fn wants_window(func: &VFunc, machine: &Machine, pinned: &[(GlobalId, Reg)]) -> bool {
    if machine.abi.windows.is_none() {
        return false;
    }
    let outs = liveness::live_out(func);
    let max_live =
        func.blocks.iter().enumerate().map(|(b, _)| liveness::max_live(func, b, &outs[b])).max().unwrap_or(0);
    let constants = func.blocks.iter().flat_map(|b| &b.insts).flat_map(|i| &i.ops);
    let constants: std::collections::BTreeSet<u64> =
        constants.filter_map(|o| if let VOp::Const(c) = o { Some(*c) } else { None }).collect();
    func.has_calls || max_live + constants.len().min(8) > registers(machine, false, pinned).allocatable.len()
}

pub fn registers(machine: &Machine, windowed: bool, pinned: &[(GlobalId, Reg)]) -> Registers {
    let abi = &machine.abi;
    let taken = |r: &Reg| pinned.iter().any(|p| p.1 == *r) || abi.scratch.contains(r);
    let leaf_only = abi.windows.is_some() && !windowed;
    let allocatable: Vec<Reg> = abi
        .allocatable
        .iter()
        .copied()
        .filter(|r| !(taken(r) || (leaf_only && abi.call_preserved.contains(r))))
        .collect();
    // A function hands the return address back, but a call writes it.
    let keeps =
        |r: &Reg| (abi.callee_saved.contains(r) || abi.call_preserved.contains(r)) && abi.return_address != Some(*r);
    Registers {
        // Arguments may wait in registers that are not given away otherwise.
        clobbered: allocatable.iter().chain(&abi.args).chain(&abi.results).copied().filter(|r| !keeps(r)).collect(),
        callee_saved: abi.callee_saved.clone(),
        mov: (
            abi.ops.mov,
            machine.instrs[usize::from(abi.ops.mov.0)]
                .operands
                .iter()
                .map(|o| matches!(o.kind, ciphermill_machine::OperandKind::Reg { def: true, .. }))
                .collect(),
        ),
        jump: abi.ops.jump,
        nop: abi.ops.nop,
        allocatable,
    }
}

/// On a machine without scratch registers, one that frame code may have instead of the allocator: at entry and
/// exit nothing is in it.
pub fn spare(machine: &Machine) -> Option<Reg> {
    let abi = &machine.abi;
    let taken =
        [&abi.args, &abi.results, &abi.callee_args, &abi.callee_results, &abi.callee_saved, &abi.call_preserved];
    let spare =
        abi.allocatable.iter().rfind(|r| taken.iter().all(|t| !t.contains(r)) && abi.return_address != Some(**r));
    spare.copied().filter(|_| abi.scratch.is_empty())
}

/// A leaf that opens no window finds its arguments where the caller put them.
pub fn without_window(func: &mut VFunc, machine: &Machine) {
    let abi = &machine.abi;
    for inst in func.blocks.iter_mut().flat_map(|b| &mut b.insts) {
        match inst.kind {
            VKind::Params => inst.fixed_defs.iter_mut().zip(&abi.args).for_each(|(d, &r)| d.1 = r),
            VKind::Return => inst.fixed_uses.iter_mut().zip(&abi.results).for_each(|(u, &r)| u.1 = r),
            _ => {}
        }
    }
}
