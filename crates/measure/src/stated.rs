//! Whether a block is as long as the cipher says, where no vector tells.
//!
//! A C file states the size of its block a second time, at its end. If the two
//! differ the module runs all the same: a larger one leaves the end of every
//! output block as it was, a smaller one writes into the next block. Cycles of a
//! block, and of a byte, are then those of something else.
//!
//! What is written is seen by giving the same block twice, over outputs that differ
//! in every byte. That nothing is written behind the block is for [`Margins`] to say.

use crate::error::MeasureError;
use crate::interface::Interface;
use crate::kinds::Kind;
use crate::margins::Margins;
use crate::plan::{RunPlan, Work};
use crate::request::{Blocks, Direction, Request};
use crate::target::{Stopped, Target, prepare, run};

/// Check what manifest and module say of the block against each other.
///
/// # Errors
/// When they do not agree.
pub fn manifest(module: &Interface, request: &Request) -> Result<(), MeasureError> {
    match request.block_bytes {
        Some(stated) if stated != module.block_bytes => Err(MeasureError::input(format!(
            "{}: the manifest has block_bytes = {stated}, and cm_block_bytes() returns {}; make the two the same \
             (in C the number is the first argument of the macro at the end, such as CM_BLOCK_CIPHER)",
            request.cipher, module.block_bytes
        ))),
        _ => Ok(()),
    }
}

fn late(stop: &Stopped) -> Result<(), MeasureError> {
    if stop.halt.late { Err(stop.on_reference()) } else { Ok(()) }
}

/// Run a block cipher or a permutation on one block and see that it writes just that.
///
/// # Errors
/// When it writes less than the block that it states, or more; and when it is still running
/// after all of its steps, which nobody wants to wait for twice. A cipher that stops
/// otherwise is no error here: whoever measures it will be told.
pub fn block(module: &Interface, target: &mut impl Target, work: Work) -> Result<(), MeasureError> {
    if !matches!(module.kind, Kind::Block | Kind::Permutation) || work.direction == Direction::Keysetup {
        return Ok(());
    }
    let size = module.block_bytes;
    // The feedback driver copies the whole block itself, whatever the cipher writes.
    let plan = RunPlan::new(module, Work { blocks: Blocks::Multi, ..work }, size)?;
    let Some((_, output)) = plan.buffers.iter().find(|(name, _)| &**name == "output") else { return Ok(()) };
    if !plan.measured.iter().all(|call| module.has(&call.export)) || target.reserve(plan.memory_bytes).is_err() {
        return Ok(());
    }
    target.allow(plan.limit);
    if let Err(stop) = prepare(target, &plan) {
        return late(&stop);
    }
    let margins = Margins::new(&plan, target.memory());
    let mut kept = vec![true; size as usize];
    for fill in [0x5au8, 0xa5] {
        target.write(output.start, &vec![fill; size as usize]);
        if let Err(stop) = run(target, &plan.measured) {
            return late(&stop);
        }
        kept.iter_mut().zip(target.read(output.start, size)).for_each(|(k, &now)| *k &= now == fill);
    }
    let export = plan.measured.first().map_or("", |call| &*call.export);
    margins.check(target.memory(), export)?;
    match kept.iter().position(|&k| k) {
        None => Ok(()),
        Some(at) => Err(MeasureError::input(format!(
            "cm_block_bytes() says that a block has {size} bytes, and {export} of one block writes {} of them (byte {at} \
             keeps what stood there); state the size of the cipher's block, in C as the argument of CM_BLOCK_CIPHER",
            kept.iter().filter(|&&k| !k).count()
        ))),
    }
}
