//! Does the machine code that is measured take a time that depends on secrets?
//!
//! The program of a request is run with a mask beside every register and every
//! byte of memory (`ciphermill_audit::tracker`), by the calls of a measurement
//! and some more: set-up with a secret key and IV, then messages of several
//! lengths. What a clean verdict means is said in crate `audit`; here it is
//! about one program of one machine. Outputs and memory are compared with the
//! reference interpreter's, as for a measurement.
//!
//! [`audit`] is asked for; [`brief`] goes along with every measurement and is
//! kept short: few blocks, and more of them only until every bundle that the
//! measured message needed has run with masks.

use crate::backends::Simulated;
use crate::chosen::Chosen;
use crate::compare;
use crate::error::MeasureError;
use crate::interface::Interface;
use crate::measurement::Leaks;
use crate::plan::{RunPlan, Work};
use crate::request::Request;
use crate::shape::Count;
use crate::target::Target;
use crate::work;
use ciphermill_audit::Finding;
use ciphermill_audit::code::Followed;
use ciphermill_audit::lines::Lines;
use ciphermill_audit::tracker::Tracker;
use ciphermill_ir::PAGE_BYTES;
use ciphermill_program::Program;
use serde::Serialize;

/// Sets of secrets tried where the first shows a finding: others may show more.
const SECRETS: u32 = 4;
/// Instructions of one call that are followed: some ten seconds.
const LONGEST: u64 = 30_000_000;
/// The same beside a measurement.
const LONGEST_BRIEF: u64 = 500_000;
/// Longest message, in bytes.
const MESSAGE: u32 = 1 << 14;
/// Blocks that the first run beside a measurement has.
const BRIEF: u32 = 4;

/// The answer of an audit of machine code.
#[derive(Clone, Debug, Serialize)]
pub struct Audit {
    pub machine: String,
    pub direction: &'static str,
    pub blocks: &'static str,
    pub key_bits: u32,
    /// Messages that were processed, in bytes.
    pub bytes: Vec<u32>,
    pub clean: bool,
    pub findings: Vec<Finding>,
    /// Sets of secrets.
    pub runs: u32,
    /// Loads, stores, conditional branches and instructions of varying time in the
    /// functions that ran, and how many of them were reached.
    pub sites: u32,
    pub reached: u32,
}

/// Follow secrets through the program that a request measures. `debug` is the
/// same module with line tables, or the same.
///
/// # Errors
/// As [`crate::measure`]; and for a cipher whose calls take too long to follow.
pub fn audit(wasm: &[u8], debug: &[u8], request: &Request) -> Result<Audit, MeasureError> {
    let (module, interface, _) = crate::probe::open(wasm, request.kernel.as_ref())?;
    let work = work::work(&interface, request)?;
    let (unit, bytes) = work::message(&interface, request, work)?;
    let chosen = work::chosen(wasm, request)?;
    let lengths = lengths(work, unit, chosen.jam, bytes);
    let follow = Follow { wasm, chosen: &chosen, interface: &interface, work, limit: LONGEST, judged: true };
    let mut followed = Followed::default();
    for secrets in 0..SECRETS {
        follow.run(&lengths, secrets, &mut followed)?.map_err(MeasureError::Input)?;
        // What was seen once without a finding is what always happens.
        if followed.clean() {
            break;
        }
    }
    let program = &chosen.program;
    let findings = followed.findings(program, &module, &Lines::of_same_code(wasm, debug));
    let (sites, reached) = followed.reached(program);
    Ok(Audit {
        machine: program.machine.name.clone(),
        direction: work.direction.name(),
        blocks: work.blocks.name(),
        key_bits: request.key_bits,
        bytes: lengths,
        clean: findings.is_empty(),
        findings,
        runs: followed.runs,
        sites,
        reached,
    })
}

/// The verdict that goes along with a measurement. `ran` says which bundles the
/// measured message needed.
///
/// # Errors
/// When a stage of ours failed.
pub(crate) fn brief(
    wasm: &[u8],
    chosen: &Chosen,
    interface: &Interface,
    work: Work,
    (unit, bytes): (u32, u32),
    ran: &[bool],
) -> Result<Leaks, MeasureError> {
    let follow = Follow { wasm, chosen, interface, work, limit: LONGEST_BRIEF, judged: false };
    let mut length = (BRIEF * chosen.jam * unit).min(bytes);
    loop {
        let mut followed = Followed::default();
        if let Err(why) = follow.run(&[length], 0, &mut followed)? {
            let unknown = Some(format!("{why} beside a measurement; `ciphermill audit --on` follows more"));
            return Ok(Leaks { unknown, ..Leaks::default() });
        }
        let seen = ran.iter().enumerate().all(|(n, &ran)| !ran || followed.ran(n));
        let longer = (4 * length).min(bytes).min(MESSAGE / unit.max(1) * unit);
        if seen || longer <= length || work.count == Count::Calls {
            let counts = followed.counts();
            let unknown =
                (!seen && followed.clean()).then(|| "some of the code ran only in longer messages".to_owned());
            return Ok(Leaks { bytes: length, places: counts.values().sum(), kinds: counts, unknown });
        }
        length = longer;
    }
}

/// Messages that begin, end and go on inside and at the edges of blocks and of
/// iterations of the loop over blocks, and the one that is measured; in bytes.
fn lengths(work: Work, unit: u32, jam: u32, bytes: u32) -> Vec<u32> {
    let mut lengths = match work.count {
        Count::Calls => return vec![2 * unit],
        Count::Bytes => vec![unit, 1, unit - 1, 2 * unit, unit + 1, 3 * unit + 5, 0],
        Count::Blocks => [1, 2, 3, jam, 2 * jam + 1].map(|n| n * unit).to_vec(),
    };
    lengths.push(bytes.min(MESSAGE.next_multiple_of(unit)));
    lengths
}

/// Runs of one program with masks.
struct Follow<'a> {
    wasm: &'a [u8],
    chosen: &'a Chosen,
    interface: &'a Interface,
    work: Work,
    limit: u64,
    /// Memory is compared with the reference interpreter's. The program of a measurement has been.
    judged: bool,
}

impl Follow<'_> {
    /// The set-up, then messages of these lengths one after the other. Inside, why
    /// it could not be followed to its end.
    fn run(&self, lengths: &[u32], secrets: u32, followed: &mut Followed) -> Result<Result<(), String>, MeasureError> {
        let program: &Program = &self.chosen.program;
        let plan = self.plan(lengths, secrets)?;
        let judged = self.judged.then(|| compare::judge(self.wasm, &plan, plan.measured.len())).transpose()?;
        let needed = u64::from(program.min_pages).max(plan.memory_bytes.div_ceil(PAGE_BYTES));
        let pages = judged.as_ref().map_or(needed, |j| j.pages);
        let mut machine = Simulated::new(program, pages as u32, self.limit)?;
        let mut tracker = Tracker::new(program).map_err(MeasureError::internal)?;
        for (addr, bytes) in &plan.writes {
            machine.write(*addr, bytes);
            tracker.secret(*addr..*addr + bytes.len() as u32);
        }
        for call in plan.setup.iter().chain(&plan.measured) {
            if let Err(halt) = machine.watched(call, &mut tracker)? {
                return Ok(Err(format!("{}: {halt}", call.export)));
            }
        }
        if let Some(fault) = tracker.fault {
            return Err(MeasureError::internal(fault));
        }
        if judged.is_some_and(|j| j.memory.difference(machine.memory()).is_some()) {
            return Err(MeasureError::internal("a run with masks left another memory than the reference's"));
        }
        followed.add(&tracker);
        Ok(Ok(()))
    }

    /// A measurement's plan with other secrets, and calls for several messages.
    fn plan(&self, lengths: &[u32], secrets: u32) -> Result<RunPlan, MeasureError> {
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let interface = self.interface.at(self.chosen.context_at);
        let mut plan = RunPlan::of_secrets(&interface, self.work, longest, secrets)?;
        if self.work.count != Count::Calls && plan.measured.len() == 1 {
            plan.measured = lengths.iter().map(|&length| plan.call(length)).collect();
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_begin_and_end_inside_blocks() {
        let work = |count| Work {
            direction: crate::request::Direction::Encrypt,
            blocks: crate::request::Blocks::Multi,
            count,
            key_bytes: 16,
            iv_bytes: 0,
            limit: None,
        };
        assert_eq!(lengths(work(Count::Blocks), 16, 2, 4096), [16, 32, 48, 32, 80, 4096]);
        assert_eq!(lengths(work(Count::Bytes), 16, 1, 100), [16, 1, 15, 32, 17, 53, 0, 100]);
        assert_eq!(lengths(work(Count::Calls), 16, 1, 16), [32]);
    }
}
