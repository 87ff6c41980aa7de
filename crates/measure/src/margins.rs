//! What lies between the buffers of a plan, and that nothing writes there.
//!
//! A write behind the end of its buffer is the cipher's own error (a key longer
//! than the context has room for, a loop that runs too far). The simulated machine
//! repeats it faithfully, so that comparing the two memories does not show it; but
//! what was measured then is not the cipher.

use crate::error::MeasureError;
use crate::plan::RunPlan;
use std::ops::Range;

/// As far behind the last buffer as is looked.
const BEHIND: u32 = 64;

/// The bytes between the buffers, as they were before the first call.
pub struct Margins<'a> {
    plan: &'a RunPlan,
    /// A buffer's number, and what lies behind it.
    behind: Vec<(usize, Range<usize>, Vec<u8>)>,
    /// What lies below all RAM.
    below: Vec<u8>,
}

impl<'a> Margins<'a> {
    /// Remember what stands in memory.
    pub fn new(plan: &'a RunPlan, memory: &[u8]) -> Margins<'a> {
        let starts = plan.buffers.iter().skip(1).map(|(_, next)| next.start).chain([u32::MAX]);
        let behind = plan.buffers.iter().zip(starts).enumerate().filter_map(|(n, ((_, own), next))| {
            let range = own.end as usize..next.min(own.end.saturating_add(BEHIND)) as usize;
            let held = memory.get(range.clone())?.to_vec();
            Some((n, range, held))
        });
        let below = memory.get(..plan.memory_start as usize).unwrap_or_default().to_vec();
        Margins { plan, behind: behind.collect(), below }
    }

    /// # Errors
    /// When one of the bytes has changed; `export` is what was called last.
    pub fn check(&self, memory: &[u8], export: &str) -> Result<(), MeasureError> {
        if memory.get(..self.below.len()) != Some(&self.below[..]) {
            return Err(MeasureError::input(format!(
                "{export} writes below address {}, where the memory of this machine begins: its arrays do not fit into \
                 the part that C's stack has; take a machine with more memory, or a variant that keeps less at once",
                self.below.len()
            )));
        }
        let changed = |(_, range, held): &&(usize, Range<usize>, Vec<u8>)| memory.get(range.clone()) != Some(held);
        let Some((n, range, held)) = self.behind.iter().find(changed) else { return Ok(()) };
        let far = memory[range.clone()].iter().zip(held).position(|(new, old)| new != old).unwrap_or(0);
        let (name, own) = &self.plan.buffers[*n];
        let hint = match &**name {
            "context" => {
                "; is the key's size one that the cipher has (--key-bits), and cm_ctx_bytes() the context's size?"
            }
            _ => "; look for a loop that runs too far",
        };
        Err(MeasureError::input(format!(
            "{export} writes outside of its buffers: behind the {name}, which has {} bytes, byte {} was changed{hint}",
            own.len(),
            own.len() + far
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> RunPlan {
        let measured = crate::shape::Function::new("f", &[]);
        let shape =
            crate::shape::Shape { buffers: vec![], setup: vec![], prepare: vec![], measured, from: vec![], to: vec![] };
        let sizes = crate::shape::Sizes { context: 0, key: 0, nonce: 0, associated: 0, tag: 0, block: 0, message: 0 };
        RunPlan {
            shape,
            sizes,
            writes: vec![],
            passes: Vec::new(),
            setup: vec![],
            measured: vec![],
            first_bytes: 0,
            bytes: 0,
            buffers: vec![("context".into(), 64..80), ("key".into(), 128..144)],
            memory_start: 32,
            memory_bytes: 144,
            limit: 0,
        }
    }

    #[test]
    fn only_what_lies_between_must_stay() {
        let plan = plan();
        let mut memory = vec![0u8; 4096];
        let margins = Margins::new(&plan, &memory);
        for at in [32, 63, 64, 79, 128, 143, 144 + 64] {
            memory[at] = 1;
        }
        assert!(margins.check(&memory, "f").is_ok());
        memory[82] = 1;
        let said = margins.check(&memory, "f").unwrap_err().to_string();
        assert!(said.contains("behind the context, which has 16 bytes, byte 18 was changed"), "{said}");
        memory[82] = 0;
        memory[144] = 7;
        let said = margins.check(&memory, "f").unwrap_err().to_string();
        assert!(said.contains("behind the key, which has 16 bytes, byte 16 was changed"), "{said}");
    }

    #[test]
    fn nothing_is_written_below_all_memory() {
        let plan = plan();
        let mut memory = vec![0u8; 4096];
        let margins = Margins::new(&plan, &memory);
        memory[31] = 1;
        let said = margins.check(&memory, "f").unwrap_err().to_string();
        assert!(said.contains("below address 32") && said.contains("C's stack"), "{said}");
    }

    #[test]
    fn memory_may_end_with_the_last_buffer() {
        let plan = plan();
        let memory = vec![0u8; 144];
        assert!(Margins::new(&plan, &memory).check(&memory, "f").is_ok());
    }
}
