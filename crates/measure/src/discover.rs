//! Instructions that a cipher would like to have, from a run of it.
//!
//! The code is that which a measurement would run, with rounds as loops; how
//! often its blocks run is counted on the interpreter of the intermediate
//! representation.

use crate::error::MeasureError;
use crate::pipeline::{self, How};
use crate::plan::RunPlan;
use crate::probe::open;
use crate::request::Request;
use crate::trips::edges;
use crate::work::{message, work};
use ciphermill_discover::{Candidate, Counts, Limits};
use serde::Serialize;

/// Blocks of the cipher in the counted run.
const BLOCKS: u32 = 4;

/// Candidates and what they were found in.
#[derive(Clone, Debug, Serialize)]
pub struct Discovery {
    pub candidates: Vec<Candidate>,
    /// The machine's register file that values are passed in.
    pub registers: String,
    /// Bytes of an instruction, cipher blocks in the counted run.
    pub instruction_bytes: u32,
    pub blocks: u32,
}

/// Find candidates for a request.
///
/// # Errors
/// As [`crate::measure`].
pub fn discover(wasm: &[u8], request: &Request, limits: Limits) -> Result<Discovery, MeasureError> {
    let (module, interface, _) = open(wasm, request.kernel.as_ref())?;
    let described = pipeline::described(&request.machine)?;
    let tables = &described.tables;
    let machine = &*tables.machine;
    let work = work(&interface, request)?;
    let (unit, _) = message(&interface, request, work)?;
    let mut module = module;
    pipeline::optimise(&mut module, tables, &How::of(request))?;
    let plan = RunPlan::new(&interface, work, BLOCKS * unit)?;
    let edges = edges(&module, &plan)
        .ok_or_else(|| MeasureError::input("the cipher stops before its end when it is interpreted; `run` says why"))?;
    let mut counts = Counts::new();
    for ((func, _, to), n) in edges {
        *counts.entry((func, to)).or_default() += n;
    }
    let options = pipeline::generation(machine, &How::of(request));
    let front = ciphermill_codegen::front::Front::new(&module, tables, &options).map_err(MeasureError::internal)?;
    let funcs = module.funcs.keys().map(|id| Ok((id, front.func(id)?.0))).collect::<Result<Vec<_>, _>>();
    let funcs = funcs.map_err(pipeline::refused)?;
    let word = machine.abi.args.first().map(|r| machine.regs[usize::from(r.0)].file);
    let add = &machine.instrs[usize::from(machine.abi.ops.add.0)];
    Ok(Discovery {
        candidates: ciphermill_discover::discover(&module, &funcs, machine, &counts, limits),
        registers: word.map(|f| machine.files[f].name.clone()).unwrap_or_default(),
        instruction_bytes: u32::from(add.bytes),
        blocks: BLOCKS,
    })
}
