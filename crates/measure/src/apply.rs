//! A direction of a module on given bytes, by the reference interpreter.

use crate::crash::{self, Run};
use crate::error::MeasureError;
use crate::interface::Interface;
use crate::kinds::Kind;
use crate::plan::{self, RunPlan};
use crate::request::{Blocks, Direction};
use crate::shape::{Count, Name, Sizes};
use crate::target::{Target, run};
use ciphermill_reference::Reference;

/// What came of it.
pub struct Applied {
    results: Vec<u64>,
    buffers: Vec<(Name, Vec<u8>)>,
}

impl Applied {
    /// A buffer's bytes; none where there is no such buffer.
    pub fn buffer(&self, name: &str) -> &[u8] {
        self.buffers.iter().find(|b| &*b.0 == name).map_or(&[], |b| &b.1)
    }

    pub fn has(&self, name: &str) -> bool {
        self.buffers.iter().any(|b| &*b.0 == name)
    }

    pub fn holds(&self, name: &str, bytes: &[u8]) -> bool {
        self.has(name) && self.buffer(name) == bytes
    }

    /// What the function returned, if it returns something.
    pub fn returned(&self) -> Option<u64> {
        self.results.first().copied()
    }

    pub fn into_buffers(self) -> Vec<(Name, Vec<u8>)> {
        self.buffers
    }
}

/// Run a direction on the bytes `given` for buffers, by their names. The message has `length` bytes, a
/// digest or tag `tag`.
///
/// # Errors
/// When the kind has no such direction, a buffer no such name or size, the module not the exports; and
/// when it traps.
pub fn apply(
    module: &Interface,
    direction: Direction,
    given: &[(&str, &[u8])],
    (length, tag): (u32, u32),
    target: &mut Reference,
    limit: Option<u64>,
) -> Result<Applied, MeasureError> {
    let blocks = module.kind.blocks(direction, module.kernel.as_deref()).0;
    let mut shape = module.shape(direction, blocks.first().copied().unwrap_or(Blocks::Multi))?;
    // The input is given, and not made.
    shape.prepare.clear();
    module.require(shape.exports().iter().map(|export| &**export))?;
    let bytes = |name: &str| given.iter().find(|g| g.0 == name).map(|g| g.1);
    let size = |name: &str| bytes(name).map_or(0, |b| b.len() as u32);
    let sizes = Sizes {
        context: module.ctx_bytes,
        key: size("key"),
        nonce: size(if module.kind == Kind::Aead { "nonce" } else { "IV" }),
        associated: size("associated data"),
        tag,
        block: module.block_bytes,
        message: length,
    };
    if shape.count() == Count::Blocks && !length.is_multiple_of(module.block_bytes) {
        return Err(MeasureError::input(format!(
            "{length} bytes of data; it must be whole blocks of {} bytes",
            module.block_bytes
        )));
    }
    for buffer in &shape.buffers {
        let (has, wanted) = (bytes(&buffer.name).map(<[u8]>::len), sizes.of(buffer.bytes));
        if has.is_some_and(|has| has as u64 != wanted) {
            return Err(MeasureError::input(format!(
                "{} has {wanted} bytes, and {} are given",
                buffer.name,
                has.unwrap_or(0)
            )));
        }
    }
    let limit = limit.unwrap_or_else(|| plan::limit(length as usize));
    let plan = RunPlan::laid_out(&module.anywhere(), shape, sizes, limit, |buffer, len| {
        Some(bytes(&buffer.name).map_or_else(|| vec![0; len], <[u8]>::to_vec))
    })?;
    target.reserve(plan.memory_bytes).map_err(MeasureError::input)?;
    target.set_fuel(plan.limit);
    for (addr, bytes) in &plan.writes {
        target.write(*addr, bytes);
    }
    let whole = Run { writes: &plan.writes, calls: [&plan.setup, &plan.measured, &[]], bytes: plan.memory_bytes };
    let made = run(target, &plan.setup).and_then(|_| run(target, &plan.measured));
    let results = made.map_err(|stop| crash::found(target.wasm(), &stop, &whole))?;
    let held =
        |(name, at): &(Name, std::ops::Range<u32>)| (name.clone(), target.read(at.start, at.end - at.start).to_vec());
    Ok(Applied { results: results.concat(), buffers: plan.buffers.iter().map(held).collect() })
}
