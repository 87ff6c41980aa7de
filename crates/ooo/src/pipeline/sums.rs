//! What is counted of a run of code whichever way it goes through the core: added up once for each run.

use super::marks::Tally;
use super::memo::Run;
use crate::code::Code;
use crate::events::Cause;
use crate::uop::Kind;

/// The counts of a run.
#[derive(Clone, Default)]
pub(super) struct Sum {
    /// Instructions of the run that begins here, those without bytes too; 0: none has come yet.
    pub(super) count: u32,
    pub(super) instructions: u64,
    macro_fused: u64,
    slots: u64,
    retired: u64,
    eliminated: u64,
    loads: u64,
    stores: u64,
    /// Accesses, those of instructions without bytes too.
    pub(super) accesses: usize,
    /// Cycles for which ports are taken, by class.
    work: Vec<u64>,
}

impl Sum {
    pub(super) fn of(code: &Code, run: Run) -> Sum {
        let mut sum = Sum { count: run.count, work: vec![0; code.ports.classes.len()], ..Sum::default() };
        let (mut n, end) = (run.first, run.first + run.count);
        while n < end {
            let inst = &code.insts[n as usize];
            let pair = inst.pairs && n + 1 < end;
            let parts = if pair { &code.insts[n as usize + 1].pair } else { &inst.parts };
            n += 1 + u32::from(pair);
            sum.accesses += usize::from(parts.loads + parts.stores);
            if inst.bytes == 0 {
                continue;
            }
            sum.instructions += 1 + u64::from(pair);
            sum.macro_fused += u64::from(pair);
            sum.slots += u64::from(parts.slots);
            sum.stores += u64::from(parts.stores);
            for uop in &code.uops[parts.first as usize..][..usize::from(parts.count)] {
                sum.retired += 1;
                sum.eliminated += u64::from(uop.kind == Kind::Nothing);
                sum.loads += u64::from(uop.kind == Kind::Load);
                sum.work[usize::from(uop.class)] += u64::from(uop.busy);
            }
        }
        sum
    }

    pub(super) fn add_to(&self, tally: &mut Tally, places: &mut [u64], work: &mut [u64]) {
        // Each has a place for retiring of its own.
        places[Cause::Base as usize] += self.slots;
        tally.timed += self.instructions;
        tally.macro_fused += self.macro_fused;
        tally.renamed += self.slots;
        tally.slots += self.slots;
        tally.retired += self.retired;
        tally.eliminated += self.eliminated;
        tally.dispatched += self.retired - self.eliminated;
        tally.loads += self.loads;
        tally.stores += self.stores;
        work.iter_mut().zip(&self.work).for_each(|(work, more)| *work += more);
    }
}
