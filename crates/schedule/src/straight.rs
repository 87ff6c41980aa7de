//! The straight code of a function before registers are allocated.

use crate::list::PressureLimit;
use crate::{carried, verified};
use ciphermill_machine::Machine;
use ciphermill_vcode::{CompileError, Facts, VFunc, VReg, liveness};

/// Schedules the blocks of a function for a machine that issues in order.
///
/// # Errors
/// [`CompileError::Internal`] when the checker refuses an order.
pub fn schedule(func: &mut VFunc, machine: &Machine, facts: &Facts, registers: usize) -> Result<(), CompileError> {
    let outs = liveness::live_out(func);
    let base = machine.regs.len() as u32;
    for (b, out) in outs.iter().enumerate() {
        let block = &func.blocks[b];
        let last = block.insts.len() - 1;
        let nodes: Vec<_> = block.insts.iter().map(|i| facts.virtual_node(machine, i)).collect();
        assert!(nodes[last].barrier);
        let live_out = |r: u32| r >= base && out.contains(VReg(r - base));
        let limit = PressureLimit {
            registers: registers.saturating_sub(1),
            values: base,
            live_out: &live_out,
            live_through: out.len(),
        };
        let order = carried::order(func, b, &nodes, &limit, out);
        verified::order(&nodes, &order)
            .map_err(|e| CompileError::Internal(format!("`{}`, block {b}: {e}", func.name)))?;
        let mut insts: Vec<_> = std::mem::take(&mut func.blocks[b].insts).into_iter().map(Some).collect();
        func.blocks[b].insts = order.into_iter().filter_map(|i| insts[i].take()).collect();
    }
    Ok(())
}
