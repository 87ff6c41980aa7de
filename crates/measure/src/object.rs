//! A request's program as an object file is to be made of it: its text, and what it needs of memory.
//!
//! Somebody else's firmware gives a program no memory of its own at fixed addresses: it has the
//! caller's buffers, the machine's stack, and the module's static data, wherever the linker puts
//! that. So it is said here what a program needs besides, and whoever makes the object refuses it.

use crate::error::MeasureError;
use crate::native::hex;
use crate::probe::open;
use crate::request::Request;
use crate::work::chosen;
use ciphermill_ir::Space;
use ciphermill_program::{Operand, Program, asm};
use serde::Serialize;
use std::collections::BTreeSet;

/// What an object file is made of.
#[derive(Debug, Serialize)]
pub struct Object {
    /// For the machine's assembler, with addresses as numbers.
    pub assembly: String,
    /// Initial content of linear memory by address, in hexadecimal.
    pub data: Vec<(u32, String)>,
    /// All of it is constant, and nothing follows it that is static and may be written.
    pub readonly: bool,
    /// First address behind the module's static data.
    pub data_end: u32,
    /// Registers of which the program expects that they hold a global: the C stack's pointer.
    pub global_registers: Vec<String>,
    /// It reads or writes the system area.
    pub system: bool,
}

/// The program of a request, and what it needs of memory.
///
/// # Errors
/// As [`crate::measure`].
pub fn object(wasm: &[u8], request: &Request) -> Result<Object, MeasureError> {
    let (_, interface, _) = open(wasm, request.kernel.as_ref())?;
    let program = chosen(wasm, request)?.program;
    let behind = |at: u32| at.next_multiple_of(ALIGN);
    let filled = program.data.iter().map(|s| s.addr + s.bytes.len() as u32).max();
    let constant = |s: &ciphermill_program::Segment| program.readonly.iter().any(|r| r.contains(&s.addr));
    Ok(Object {
        assembly: asm::print(&program),
        data: program.data.iter().map(|s| (s.addr, hex(&s.bytes))).collect(),
        readonly: program.data.iter().all(constant) && filled.is_some_and(|end| behind(end) >= interface.heap_base),
        data_end: interface.heap_base,
        global_registers: global_registers(&program),
        system: insts(&program).any(|inst| inst.space == Space::System),
    })
}

/// To so many bytes the linker rounds up where static data ends.
const ALIGN: u32 = 16;

fn insts(program: &Program) -> impl Iterator<Item = &ciphermill_program::Inst> {
    program.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.bundles).flat_map(|b| &b.insts)
}

/// The names of the registers that hold globals and stand in an instruction.
fn global_registers(program: &Program) -> Vec<String> {
    let regs: BTreeSet<_> = program.global_regs.iter().map(|g| g.0).collect();
    let used = |o: &Operand| if let Operand::Reg(r) = o { Some(*r).filter(|r| regs.contains(r)) } else { None };
    let found: BTreeSet<_> = insts(program).flat_map(|inst| inst.operands.iter().filter_map(used)).collect();
    found.iter().filter_map(|r| program.machine.regs.get(usize::from(r.0)).map(|info| info.name.clone())).collect()
}
