//! Whether a program fits into a machine that has little memory.

use crate::error::MeasureError;
use crate::interface::STACKS;
use crate::plan::grouped;
use ciphermill_machine::Machine;
use ciphermill_program::Program;
use ciphermill_sim::Stats;

/// Bytes for return addresses: calls as deep as ciphers make them.
const RETURNS: u64 = 32;

/// Do frames, return addresses and the program's own words fit into what a small memory keeps for them?
pub(crate) fn stacks(machine: &Machine, program: &Program, ran: &Stats) -> Result<(), MeasureError> {
    let Some((from, to)) = machine.memory.ram else { return Ok(()) };
    let kept = u64::from(to - from) / u64::from(STACKS);
    let used = ran.stack_bytes + program.system.len() as u64 + RETURNS;
    if used > kept {
        return Err(MeasureError::input(format!(
            "stacks and globals take {used} bytes, and of the memory of {} {kept} are for them; take a machine with more memory, \
             or a variant that keeps less at once",
            machine.name
        )));
    }
    Ok(())
}

/// Do code and constants fit into the memory that both are in? Constants that are in RAM when it runs are there, too.
pub(crate) fn flash(machine: &Machine, program: &Program) -> Result<(), MeasureError> {
    let Some(bytes) = machine.memory.flash_bytes else { return Ok(()) };
    let code = program.code_bytes();
    let constants: u64 = program.data.iter().map(|d| d.bytes.len() as u64).sum();
    let below = |at: u32| at.saturating_sub(machine.memory.flash_from).into();
    let end = program.flash_tables().map_or(u64::from(bytes).saturating_sub(constants), |(at, _)| below(at));
    if code > end {
        return Err(MeasureError::input(format!(
            "code of {} bytes and constants of {} do not fit into the flash of {}, of which {} bytes are for code; take a \
             machine with more flash, or a variant with less code (--no-unroll, --optimise size)",
            grouped(code),
            grouped(constants),
            machine.name,
            grouped(end),
        )));
    }
    Ok(())
}
