//! The module itself under audit: every direction with several secrets, on messages that begin and end
//! inside, at and across the edges of blocks. What a verdict means is said in crate `audit`.

use crate::error::MeasureError;
use crate::interface::Interface;
use crate::plan::{RunPlan, Work};
use crate::probe::open;
use crate::request::{Blocks, Direction};
use crate::shape::{Call, Count, Kernel};
use ciphermill_audit::{AuditError, Report, Run};

/// Sets of secrets tried.
const SECRETS: u32 = 4;

/// Audit a module with the C interface, or a kernel.
///
/// `key_bits` and `iv_bits` are the lengths to run, in bits, none where the kind takes none; an IV of 0 bits
/// skips `cm_ivsetup`. Each run may take `limit` operations.
///
/// # Errors
/// When the module lacks an export, or a run does not end.
pub fn audit_module(
    wasm: &[u8],
    kernel: Option<&Kernel>,
    key_bits: &[u32],
    iv_bits: &[u32],
    limit: Option<u64>,
) -> Result<Report, MeasureError> {
    let (_, interface, _) = open(wasm, kernel)?;
    let or_none = |sizes: &[u32]| if sizes.is_empty() { vec![0] } else { sizes.to_vec() };
    let modes: Vec<(Direction, Vec<Blocks>)> =
        interface.modes().into_iter().filter(|mode| mode.0 != Direction::Keysetup).collect();
    if modes.is_empty() {
        let shape = interface.shape(interface.usual(), Blocks::Multi)?;
        interface.require(shape.exports().iter().map(|export| &**export))?;
    }
    let mut runs = Vec::new();
    for bits in or_none(key_bits) {
        for (direction, ways) in &modes {
            for (blocks, iv) in ways.iter().flat_map(|&way| or_none(iv_bits).into_iter().map(move |iv| (way, iv))) {
                let count = interface.shape(*direction, blocks)?.count();
                let work =
                    Work { direction: *direction, blocks, count, key_bytes: bits / 8, iv_bytes: iv / 8, limit: None };
                for secrets in 0..SECRETS {
                    runs.push(run(&interface, work, secrets)?);
                }
            }
        }
    }
    ciphermill_audit::audit(wasm, &runs, limit).map_err(|error| match error {
        AuditError::Load(refused) => MeasureError::load(refused),
        other => MeasureError::input(other),
    })
}

fn run(interface: &Interface, work: Work, secrets: u32) -> Result<Run, MeasureError> {
    let block = work.unit(interface);
    let lengths = match (work.count, work.blocks) {
        (Count::Calls, _) => vec![block],
        (Count::Bytes, _) => vec![block, 1, block - 1, 2 * block, block + 1, 3 * block + 5, 0],
        (Count::Blocks, Blocks::Single) => vec![2 * block],
        (Count::Blocks, Blocks::Multi) => vec![block, 2 * block, 3 * block],
    };
    let longest = lengths.iter().copied().max().unwrap_or(block);
    let plan = RunPlan::of_secrets(interface, work, longest, secrets)?;
    let setup = plan.setup.iter().filter(|call| work.iv_bytes > 0 || &*call.export != "cm_ivsetup").cloned();
    let calls = setup.chain(lengths.into_iter().map(|bytes| plan.call(bytes)));
    Ok(Run {
        memory: plan.memory_bytes.min(u64::from(u32::MAX)) as u32,
        secrets: plan.writes.clone(),
        calls: calls.map(|Call { export, args }| (export, args)).collect(),
    })
}
