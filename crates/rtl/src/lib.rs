//! Hardware for an instruction, made from its semantics.
//!
//! One instruction becomes one combinational Verilog-2005 module
//! ([`verilog`]): its ports are the operands and registers it reads and writes
//! ([`ports`]), its tables and matrices are modules of their own ([`parts`]).
//! A test bench with values from the plain interpreter goes with it
//! ([`bench`]).
//!
//! The same semantics are translated a second time, bit by bit, into a graph
//! of and-gates and inverters ([`blast`], [`aig`]), which is written as BLIF.
//! The two translations share nothing but the names of the ports: a proof that
//! they are equal for all inputs is a proof against the semantics, not of the
//! Verilog against itself.
//!
//! What does not live here: running the synthesis or the proof (Python starts
//! Yosys), and instructions that reach memory or jump: their hardware is the
//! processor's.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod aig;
pub mod bench;
pub mod blast;
mod options;
mod parts;
pub mod ports;
mod value;
mod verilog;

pub use options::{Refusal, Tables};

use ciphermill_machine::{Instr, Machine};
use serde::Serialize;

/// What an instruction becomes.
#[derive(Clone, Debug, Serialize)]
pub struct Hardware {
    /// The instruction's name, and what its assembler calls it.
    pub instruction: String,
    pub semantics: String,
    /// The Verilog module's name.
    pub module: String,
    pub inputs: Vec<ports::Port>,
    pub outputs: Vec<ports::Port>,
    pub verilog: String,
    /// Modules it instantiates.
    pub parts: Vec<parts::Part>,
    /// The second translation, as BLIF with the same ports, bit by bit.
    pub reference: String,
    /// Two-input gates of that translation, before any synthesis
    /// ([`aig::Graph::unit_gates`]).
    pub unit_gates: usize,
    pub test_bench: String,
}

/// The hardware of an instruction.
///
/// # Errors
/// A [`Refusal`] when it does more than compute registers from registers.
pub fn hardware(machine: &Machine, instr: &Instr, tables: Tables) -> Result<Hardware, Refusal> {
    let ports = ports::Ports::of(machine, instr)?;
    let (verilog, parts) = verilog::module(machine, instr, &ports, tables)?;
    let graph = blast::blast(machine, instr, &ports)?;
    Ok(Hardware {
        instruction: instr.name.clone(),
        semantics: ciphermill_machine::print::statements(&instr.semantics, machine.names(&instr.operands)),
        module: ports.module.clone(),
        verilog,
        parts,
        reference: graph.blif(&ports),
        unit_gates: graph.unit_gates(),
        test_bench: bench::bench(machine, instr, &ports)?,
        inputs: ports.inputs,
        outputs: ports.outputs,
    })
}
