//! What accesses state of their alignment, and what is made of it.
//!
//! In WebAssembly the alignment of an access is a hint: a wrong one may cost time and is no
//! error. On a machine that has no misaligned accesses it is worth much, since a word of
//! which nothing is known has to be put together from bytes. So hints are believed where a
//! run on a short message, on the interpreter of the intermediate representation, does not
//! show them to be wrong; the accesses that are wrong there state what they are. The
//! simulator checks every other one, and where a longer message shows one to be wrong after
//! all, nothing is believed any more ([`retried`]).

use crate::error::{MeasureError, Place};
use crate::interface::Interface;
use crate::plan::{RunPlan, Work};
use crate::request::Request;
use crate::shared;
use crate::trips;
use ciphermill_interp::Misaligned;
use ciphermill_ir::{FuncId, Inst, MemAccess, Module, Op, Space};
use ciphermill_machine::Machine;
use serde::Serialize;

/// Hints that were wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Wrong {
    /// Accesses that are not believed; None: none is.
    pub accesses: Option<usize>,
    /// The first of them.
    pub first: Option<Place>,
}

/// A module whose accesses state what is so, and a text that tells it from the one that it was.
pub struct Mended {
    pub module: Module,
    pub wrong: Wrong,
    pub key: String,
}

/// The module as `machine` can have it; None where it is right as it is.
///
/// # Errors
/// When the plan of a short message cannot be made.
pub fn mended(
    wasm: &[u8],
    module: &Module,
    interface: &Interface,
    machine: &Machine,
    request: &Request,
    (work, unit): (Work, u32),
) -> Result<Option<Mended>, MeasureError> {
    if !request.hints {
        let mut module = module.clone();
        let all: Vec<FuncId> = module.funcs.keys().collect();
        for id in all {
            let insts: Vec<Inst> = module.funcs[id].insts.keys().collect();
            insts.into_iter().for_each(|inst| state(&mut module, id, inst, 1));
        }
        let wrong = Wrong { accesses: None, first: None };
        return Ok(Some(Mended { module, wrong, key: "no hints".to_owned() }));
    }
    if machine.memory.unaligned {
        return Ok(None);
    }
    let key = shared::key(&[wasm, format!("{work:?} {unit}").as_bytes()]);
    let found = shared::MISALIGNED.get(key, || found(module, interface, work, unit))?;
    let Some((&(func, inst), _)) = found.first_key_value() else { return Ok(None) };
    let of = &module.funcs[func];
    let first = Place { function: of.name.clone(), offset: of.insts[inst].loc };
    let mut module = module.clone();
    found.iter().for_each(|(&(func, inst), &align)| state(&mut module, func, inst, align));
    let wrong = Wrong { accesses: Some(found.len()), first: Some(first) };
    Ok(Some(Mended { module, wrong, key: format!("{found:?}") }))
}

/// Let an access to linear memory state no more than so much.
fn state(module: &mut Module, func: FuncId, inst: Inst, align: u8) {
    if let Op::Load(MemAccess { align: stated, space: Space::Linear, .. })
    | Op::Store(MemAccess { align: stated, space: Space::Linear, .. }) = &mut module.funcs[func].insts[inst].op
    {
        *stated = (*stated).min(align);
    }
}

/// Accesses of a run on three blocks that are less aligned than they state. One that stops
/// before its end says nothing of the rest.
fn found(module: &Module, interface: &Interface, work: Work, unit: u32) -> Result<Misaligned, MeasureError> {
    let plan = RunPlan { limit: trips::LONGEST, ..RunPlan::new(interface, work, 3 * unit)? };
    Ok(trips::misaligned(module, &plan))
}

/// Do something with hints as they are, and once more without if one of them is wrong.
///
/// # Errors
/// What `make` gives.
pub fn retried<T>(request: &Request, make: impl Fn(&Request) -> Result<T, MeasureError>) -> Result<T, MeasureError> {
    match make(request) {
        Err(MeasureError::Misaligned(_)) if request.hints => make(&Request { hints: false, ..request.clone() }),
        other => other,
    }
}
