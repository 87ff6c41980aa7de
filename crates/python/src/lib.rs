//! The core, for Python: text and bytes in, JSON text and bytes out.
//!
//! Python decides what is measured and shows the result; everything between
//! happens in [`ciphermill_measure`]. Requests and answers cross the border as
//! JSON, so that neither side has to know the other's types, and what crosses
//! is exactly what `--json` prints. The interpreter lock is released during
//! every call, so that Python threads measure on all cores.
//!
//! Errors become [`InputError`] (a `ValueError`: the message names the place
//! and the mend) or [`InternalError`] (our fault). No panic crosses: one that
//! got this far is caught and becomes an [`InternalError`] with its place.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

#[cfg(target_os = "linux")]
mod allocator;
mod confined;

use ciphermill_measure as core;
use ciphermill_measure::MeasureError;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

pyo3::create_exception!(ciphermill, InputError, PyValueError, "Bad input; the message names the place and the mend.");
pyo3::create_exception!(
    ciphermill,
    ModuleError,
    InputError,
    "What is wrong with a module, in places of it: arguments are the message, and what and where as JSON."
);
pyo3::create_exception!(ciphermill, InternalError, PyRuntimeError, "An error in ciphermill itself.");

thread_local! {
    /// What the last panic on this thread said.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Run without the interpreter lock; turn errors and panics into exceptions.
fn guarded<T: Send>(py: Python<'_>, f: impl FnOnce() -> Result<T, MeasureError> + Send) -> PyResult<T> {
    let outcome = py.detach(|| {
        catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| {
            let said = PANIC.with(|p| p.borrow().clone());
            Err(MeasureError::Internal(format!("a check inside failed: {said}")))
        })
    });
    outcome.map_err(|error| match error {
        MeasureError::Input(message) | MeasureError::Misaligned(message) => InputError::new_err(message),
        MeasureError::Module(placed) => match serde_json::to_string(&placed) {
            Ok(places) => ModuleError::new_err((placed.to_string(), places)),
            Err(_) => InputError::new_err(placed.to_string()),
        },
        MeasureError::Internal(message) => InternalError::new_err(message),
    })
}

/// Version of the core.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// One measurement: a request and the measurement are JSON.
#[pyfunction]
fn measure(py: Python<'_>, wasm: &[u8], request: &str) -> PyResult<String> {
    guarded(py, || core::json::measure(wasm, request))
}

/// Forget what earlier requests have left in memory.
#[pyfunction]
fn forget() {
    core::forget();
}

/// Wall time of simulating a request's message, `runs` times; times are JSON.
#[pyfunction]
fn speed(py: Python<'_>, wasm: &[u8], request: &str, runs: u32) -> PyResult<String> {
    guarded(py, || core::json::speed(wasm, request, runs))
}

/// The hottest blocks of a request's program, cycle by cycle; JSON.
#[pyfunction]
fn explain(py: Python<'_>, wasm: &[u8], request: &str) -> PyResult<String> {
    guarded(py, || core::json::explain(wasm, request))
}

/// Instructions that a request's cipher would like to have; JSON.
#[pyfunction]
fn discover(
    py: Python<'_>,
    wasm: &[u8],
    request: &str,
    inputs: usize,
    outputs: usize,
    most: usize,
) -> PyResult<String> {
    guarded(py, || core::json::discover(wasm, request, inputs, outputs, most))
}

/// The pipelined loops of a request's program as scheduling problems; JSON.
#[pyfunction]
fn problems(py: Python<'_>, wasm: &[u8], request: &str) -> PyResult<String> {
    guarded(py, || core::json::problems(wasm, request))
}

/// The schedules of a request's program, to be kept; JSON.
#[pyfunction]
fn records(py: Python<'_>, wasm: &[u8], request: &str) -> PyResult<String> {
    guarded(py, || core::json::records(wasm, request))
}

/// Run official vectors on the reference interpreter.
#[pyfunction]
fn check_vectors(py: Python<'_>, wasm: &[u8], request: &str) -> PyResult<String> {
    guarded(py, || core::json::check_vectors(wasm, request))
}

/// Kind, sizes and exports of a module.
#[pyfunction]
#[pyo3(signature = (wasm, kernel=None))]
fn inspect(py: Python<'_>, wasm: &[u8], kernel: Option<&str>) -> PyResult<String> {
    guarded(py, || core::json::inspect(wasm, kernel))
}

/// A module compiled for a machine, as assembly text.
#[pyfunction]
fn assemble(py: Python<'_>, wasm: &[u8], request: &str) -> PyResult<String> {
    guarded(py, || core::json::assemble(wasm, request))
}

/// A request for a real processor, with messages of `shorter` and `longer` bytes: assembly, calls,
/// and the memory that must come of them, as JSON.
#[pyfunction]
fn native(py: Python<'_>, wasm: &[u8], request: &str, shorter: u32, longer: u32) -> PyResult<String> {
    guarded(py, || core::json::native(wasm, request, shorter, longer))
}

/// Do a request's buffers fit into the machine's RAM?
#[pyfunction]
fn fits(py: Python<'_>, wasm: &[u8], request: &str) -> PyResult<bool> {
    guarded(py, || core::json::fits(wasm, request))
}

/// A request's program for an object file: its assembly and what it needs of memory, as JSON.
#[pyfunction]
fn object(py: Python<'_>, wasm: &[u8], request: &str) -> PyResult<String> {
    guarded(py, || core::json::object(wasm, request))
}

/// Tiny loops for a real processor, as assembly; request and answer are JSON.
#[pyfunction]
fn printed_sheet(py: Python<'_>, request: &str) -> PyResult<String> {
    guarded(py, || core::json::printed_sheet(request))
}

/// Where secrets decide branches and addresses; the report is JSON.
#[pyfunction]
#[pyo3(signature = (wasm, key_bits, iv_bits, limit=None, kernel=None))]
fn audit(
    py: Python<'_>,
    wasm: &[u8],
    key_bits: Vec<u32>,
    iv_bits: Vec<u32>,
    limit: Option<u64>,
    kernel: Option<&str>,
) -> PyResult<String> {
    guarded(py, || core::json::audit_module(wasm, kernel, (&key_bits, &iv_bits), limit))
}

/// The same of the machine code that a request would measure; `debug` has the line tables.
#[pyfunction]
fn audit_code(py: Python<'_>, wasm: &[u8], debug: &[u8], request: &str) -> PyResult<String> {
    guarded(py, || core::json::audit(wasm, debug, request))
}

/// The source of places in a module, for which another was compiled with debugging
/// information: for each offset a list of `[function, file, line]`, the innermost first,
/// as JSON. Lists are empty where nothing is known, all of them where the two differ in their code.
#[pyfunction]
fn source(py: Python<'_>, wasm: &[u8], debug: &[u8], offsets: Vec<u32>) -> PyResult<String> {
    guarded(py, || {
        let source = ciphermill_audit::frames::Source::read(wasm, debug);
        let frames: Vec<_> = offsets.iter().map(|&offset| source.frames(offset)).collect();
        serde_json::to_string(&frames).map_err(MeasureError::internal)
    })
}

/// A native shared library under this computer's counters; request and answer are JSON.
///
/// It runs foreign machine code in this process.
#[pyfunction]
fn observe(py: Python<'_>, request: &str) -> PyResult<String> {
    guarded(py, || ciphermill_host::observe_json(request).map_err(MeasureError::input))
}

/// A machine with its extensions and settings, resolved.
#[pyfunction]
fn describe_machine(py: Python<'_>, request: &str) -> PyResult<String> {
    guarded(py, || core::json::describe_machine(request))
}

/// Verilog of instructions, with what proves and tests it, as JSON.
#[pyfunction]
fn hardware(py: Python<'_>, request: &str) -> PyResult<String> {
    guarded(py, || core::json::hardware(request))
}

/// What tiny loops come to on a machine; request and answer are JSON.
#[pyfunction]
fn sheet(py: Python<'_>, request: &str) -> PyResult<String> {
    guarded(py, || core::json::sheet(request))
}

/// The JSON schema of machine files.
#[pyfunction]
fn machine_schema(py: Python<'_>) -> PyResult<String> {
    guarded(py, core::json::machine_schema)
}

/// Encrypt or decrypt whole blocks on the reference interpreter.
#[pyfunction]
#[pyo3(signature = (wasm, key, data, decrypt, limit=None))]
fn crypt(py: Python<'_>, wasm: &[u8], key: &[u8], data: &[u8], decrypt: bool, limit: Option<u64>) -> PyResult<Vec<u8>> {
    guarded(py, || core::crypt(wasm, key, data, decrypt, limit))
}

/// Keystream from the reference interpreter.
#[pyfunction]
#[pyo3(signature = (wasm, key, iv, length, limit=None))]
fn keystream(
    py: Python<'_>,
    wasm: &[u8],
    key: &[u8],
    iv: &[u8],
    length: usize,
    limit: Option<u64>,
) -> PyResult<Vec<u8>> {
    guarded(py, || core::keystream(wasm, key, iv, length, limit))
}

/// What a function returned, and its buffers by name.
type Processed = (Option<u64>, Vec<(String, Vec<u8>)>);

/// A direction run once on the reference interpreter, on the bytes given for buffers by their names.
#[pyfunction]
fn process(py: Python<'_>, wasm: &[u8], request: &str, given: Vec<(String, Vec<u8>)>) -> PyResult<Processed> {
    let given: Vec<(&str, &[u8])> = given.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    guarded(py, || core::json::process(wasm, request, &given))
}

/// From now on this process opens only files below these paths, and no socket.
#[pyfunction]
fn confine(py: Python<'_>, readable: Vec<String>, writable: Vec<String>) -> PyResult<()> {
    guarded(py, || confined::confine(&readable, &writable).map_err(MeasureError::Input))
}

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    // Keep the message for the exception instead of printing it.
    std::panic::set_hook(Box::new(|info| PANIC.with(|p| *p.borrow_mut() = info.to_string())));
    m.add("InputError", m.py().get_type::<InputError>())?;
    m.add("ModuleError", m.py().get_type::<ModuleError>())?;
    m.add("InternalError", m.py().get_type::<InternalError>())?;
    m.add_function(wrap_pyfunction!(version, m)?)?;
    m.add_function(wrap_pyfunction!(measure, m)?)?;
    m.add_function(wrap_pyfunction!(forget, m)?)?;
    m.add_function(wrap_pyfunction!(speed, m)?)?;
    m.add_function(wrap_pyfunction!(explain, m)?)?;
    m.add_function(wrap_pyfunction!(discover, m)?)?;
    m.add_function(wrap_pyfunction!(problems, m)?)?;
    m.add_function(wrap_pyfunction!(records, m)?)?;
    m.add_function(wrap_pyfunction!(check_vectors, m)?)?;
    m.add_function(wrap_pyfunction!(inspect, m)?)?;
    m.add_function(wrap_pyfunction!(assemble, m)?)?;
    m.add_function(wrap_pyfunction!(native, m)?)?;
    m.add_function(wrap_pyfunction!(fits, m)?)?;
    m.add_function(wrap_pyfunction!(object, m)?)?;
    m.add_function(wrap_pyfunction!(printed_sheet, m)?)?;
    m.add_function(wrap_pyfunction!(audit, m)?)?;
    m.add_function(wrap_pyfunction!(audit_code, m)?)?;
    m.add_function(wrap_pyfunction!(source, m)?)?;
    m.add_function(wrap_pyfunction!(observe, m)?)?;
    m.add_function(wrap_pyfunction!(describe_machine, m)?)?;
    m.add_function(wrap_pyfunction!(hardware, m)?)?;
    m.add_function(wrap_pyfunction!(machine_schema, m)?)?;
    m.add_function(wrap_pyfunction!(sheet, m)?)?;
    m.add_function(wrap_pyfunction!(process, m)?)?;
    m.add_function(wrap_pyfunction!(crypt, m)?)?;
    m.add_function(wrap_pyfunction!(keystream, m)?)?;
    m.add_function(wrap_pyfunction!(confine, m)?)?;
    Ok(())
}
