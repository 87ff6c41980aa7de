//! The calls of this crate with JSON text for requests and answers.

use crate::error::MeasureError;
use crate::pipeline;
use crate::probe::open;
use crate::request::{Direction, MachineRequest, TextFile};
use crate::shape::Kernel;
use crate::sizes;
use crate::vectors::{self, Selection};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Answer a [`crate::Request`] with a [`crate::Measurement`].
///
/// # Errors
/// As [`crate::measure`]; and for a request that is not one.
pub fn measure(wasm: &[u8], request: &str) -> Result<String, MeasureError> {
    text(&crate::measure(wasm, &parse(request)?)?)
}

/// Time the simulation of a [`crate::Request`]; a [`crate::Speed`].
///
/// # Errors
/// As [`crate::speed`]; and for a request that is not one.
pub fn speed(wasm: &[u8], request: &str, runs: u32) -> Result<String, MeasureError> {
    text(&crate::speed(wasm, &parse(request)?, runs)?)
}

/// Show the hottest blocks of a [`crate::Request`]; an [`crate::Explanation`].
///
/// # Errors
/// As [`crate::explain`]; and for a request that is not one.
pub fn explain(wasm: &[u8], request: &str) -> Result<String, MeasureError> {
    text(&crate::explain(wasm, &parse(request)?)?)
}

/// Find instructions that a [`crate::Request`]'s cipher would like to have:
/// such that read up to `inputs` registers, `most` of each kind.
///
/// # Errors
/// As [`crate::measure`]; and for a request that is not one.
pub fn discover(
    wasm: &[u8],
    request: &str,
    inputs: usize,
    outputs: usize,
    most: usize,
) -> Result<String, MeasureError> {
    let limits = ciphermill_discover::Limits { inputs, outputs, most };
    text(&crate::discover::discover(wasm, &parse(request)?, limits)?)
}

/// The pipelined loops of a [`crate::Request`] as problems for an exact
/// scheduler, with the unroll-and-jam variant of the code.
///
/// # Errors
/// As [`crate::measure`]; and for a request that is not one.
pub fn problems(wasm: &[u8], request: &str) -> Result<String, MeasureError> {
    let (unrolling, loops) = crate::measure::problems(wasm, &parse(request)?)?;
    text(&json!({"form": unrolling, "loops": loops}))
}

/// The schedules of a [`crate::Request`]'s loops, to be kept
/// ([`ciphermill_program::kept_schedules::KeptSchedule`]), with the unroll-and-jam variant of the code.
///
/// # Errors
/// As [`crate::measure`]; and for a request that is not one.
pub fn records(wasm: &[u8], request: &str) -> Result<String, MeasureError> {
    let (unrolling, schedules) = crate::measure::records(wasm, &parse(request)?)?;
    text(&json!({"form": unrolling, "schedules": schedules}))
}

/// Run the loops of a [`crate::SheetRequest`]; a list of [`crate::Turn`].
///
/// # Errors
/// As [`crate::sheet`]; and for a request that is not one.
pub fn sheet(request: &str) -> Result<String, MeasureError> {
    text(&crate::sheet(&parse(request)?)?)
}

/// The loops of a [`crate::SheetRequest`] for a real processor; a [`crate::PrintedSheet`].
///
/// # Errors
/// As [`crate::printed`]; and for a request that is not one.
pub fn printed_sheet(request: &str) -> Result<String, MeasureError> {
    text(&crate::printed(&parse(request)?)?)
}

/// A [`crate::Request`] for a real processor, with messages of `shorter` and `longer` bytes; a
/// [`crate::Native`].
///
/// # Errors
/// As [`crate::native`]; and for a request that is not one.
pub fn native(wasm: &[u8], request: &str, shorter: u32, longer: u32) -> Result<String, MeasureError> {
    text(&crate::native(wasm, &parse(request)?, (shorter, longer))?)
}

/// The program of a [`crate::Request`] for an object file; a [`crate::Object`].
///
/// # Errors
/// As [`crate::object`]; and for a request that is not one.
pub fn object(wasm: &[u8], request: &str) -> Result<String, MeasureError> {
    text(&crate::object(wasm, &parse(request)?)?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VectorRequest {
    variant: String,
    direction: Direction,
    key_bits: u32,
    #[serde(default)]
    limit: Option<u64>,
    #[serde(default)]
    kernel: Option<Kernel>,
    files: Vec<TextFile>,
}

/// Run official vectors on the reference interpreter; a
/// [`crate::VectorReport`].
///
/// # Errors
/// When a vector file is malformed or the module lacks an export.
pub fn check_vectors(wasm: &[u8], request: &str) -> Result<String, MeasureError> {
    let request: VectorRequest = parse(request)?;
    let (_, module, mut target) = open(wasm, request.kernel.as_ref())?;
    let VectorRequest { variant, direction, key_bits, limit, files, .. } = &request;
    let select = Selection { variant, direction: *direction, key_bits: *key_bits, limit: *limit };
    text(&vectors::check(&module, files, &select, &mut target)?)
}

/// Kind, sizes, exports and modes of a module: its directions, each with the ways in which blocks may
/// depend on each other, the usual one first. `kernel` is JSON, what a manifest says of one.
///
/// # Errors
/// When it is not a module with the interface of a cipher.
pub fn inspect(wasm: &[u8], kernel: Option<&str>) -> Result<String, MeasureError> {
    let kernel: Option<Kernel> = kernel.map(parse).transpose()?;
    let (loaded, module, _) = open(wasm, kernel.as_ref())?;
    text(&json!({
        "kind": module.kind,
        "modes": module.modes(),
        "ctx_bytes": module.ctx_bytes,
        "block_bytes": module.block_bytes,
        "tag_bytes": module.tag_bytes,
        "nonce_bytes": module.nonce_bytes,
        "exports": module.exports,
        "constants": sizes::constants(&loaded),
        "heap_base": module.heap_base,
    }))
}

/// Whether a [`crate::Request`]'s buffers fit into the machine's RAM: `true` or `false`.
///
/// # Errors
/// As [`crate::measure`].
pub fn fits(wasm: &[u8], request: &str) -> Result<bool, MeasureError> {
    crate::room::ram(wasm, &parse(request)?)
}

/// Run a direction once on the reference interpreter; see [`crate::process`].
///
/// # Errors
/// As [`crate::process`]; and for a request that is not one.
pub fn process(wasm: &[u8], request: &str, given: &[(&str, &[u8])]) -> Result<crate::crypt::Answer, MeasureError> {
    crate::process(wasm, &parse(request)?, given)
}

/// The program that a [`crate::Request`] would measure, as assembly for the
/// machine's own assembler.
///
/// # Errors
/// As [`crate::measure`].
pub fn assemble(wasm: &[u8], request: &str) -> Result<String, MeasureError> {
    let program = crate::measure::program(wasm, &parse(request)?)?;
    Ok(ciphermill_program::asm::print(&program))
}

/// Follow secrets through a module; a [`ciphermill_audit::Report`]. `kernel` is as for [`inspect`], the
/// sizes are those of keys and IVs.
///
/// # Errors
/// As [`crate::audit_module`].
pub fn audit_module(
    wasm: &[u8],
    kernel: Option<&str>,
    (key_bits, iv_bits): (&[u32], &[u32]),
    limit: Option<u64>,
) -> Result<String, MeasureError> {
    let kernel: Option<Kernel> = kernel.map(parse).transpose()?;
    text(&crate::audit_module(wasm, kernel.as_ref(), key_bits, iv_bits, limit)?)
}

/// Follow secrets through the program that a [`crate::Request`] would measure; an
/// [`crate::Audit`]. `debug` is the same module with line tables, or the same.
///
/// # Errors
/// As [`crate::audit`]; and for a request that is not one.
pub fn audit(wasm: &[u8], debug: &[u8], request: &str) -> Result<String, MeasureError> {
    text(&crate::audit(wasm, debug, &parse(request)?)?)
}

/// A machine, resolved.
///
/// # Errors
/// When one of the texts is at fault.
pub fn describe_machine(request: &str) -> Result<String, MeasureError> {
    let request: MachineRequest = parse(request)?;
    text(&pipeline::machine(&request)?.to_json())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HardwareRequest {
    machine: MachineRequest,
    /// Names of instructions.
    instructions: Vec<String>,
    /// Tables as case statements even where there is a hand-written module.
    plain_tables: bool,
}

/// Verilog, second translation and test bench of instructions; for one that
/// has no hardware of its own, why.
///
/// # Errors
/// When the machine is at fault, or has no such instruction.
pub fn hardware(request: &str) -> Result<String, MeasureError> {
    let request: HardwareRequest = parse(request)?;
    let machine = pipeline::machine(&request.machine)?;
    let tables = if request.plain_tables { ciphermill_rtl::Tables::Case } else { ciphermill_rtl::Tables::Hand };
    let made = request.instructions.iter().map(|name| {
        let id = machine.instr_named(name);
        let id = id.ok_or_else(|| MeasureError::input(format!("{} has no instruction `{name}`", machine.name)))?;
        Ok(match ciphermill_rtl::hardware(&machine, machine.instr(id), tables) {
            Ok(hardware) => json!(hardware),
            Err(refusal) => json!({"instruction": name, "refused": refusal.to_string()}),
        })
    });
    text(&made.collect::<Result<Vec<_>, MeasureError>>()?)
}

/// The JSON schema of machine files.
///
/// # Errors
/// None in practice.
pub fn machine_schema() -> Result<String, MeasureError> {
    serde_json::to_string_pretty(&ciphermill_machine::schema()).map_err(MeasureError::internal)
}

fn parse<T: DeserializeOwned>(request: &str) -> Result<T, MeasureError> {
    serde_json::from_str(request).map_err(|e| MeasureError::internal(format!("a request the core does not read: {e}")))
}

fn text<T: Serialize>(value: &T) -> Result<String, MeasureError> {
    serde_json::to_string(value).map_err(MeasureError::internal)
}
