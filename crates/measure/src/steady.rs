//! The steady state: what a block costs once nothing is new any more.
//!
//! A message's cycles hold more than its blocks': the call, and the first pass through
//! code, tables and buffers, which caches and predictors have not seen. So the message is
//! processed once, and then again on the same machine: a quarter of it, half of it and all of it, each
//! counted by itself. (Where no cache and no predictor remembers anything, the first time serves as
//! the last.) What a call costs beside its blocks is in each of the three
//! once, and goes out as their differences are taken. From the quarter to
//! the half is one slope, from the half to the whole a second one, over twice as many blocks.
//! The second is the steady state.
//!
//! It is steady if the two slopes agree. Where they do not, something is new or uneven
//! still: HC-128 runs through one of its tables, then through the other, with code for each,
//! and a message may end within the first. The message is then taken twice as
//! long, and again, up to a limit; what was found last counts, and the measurement
//! says that it had not settled.
//!
//! A key set-up has no length, nor has a kernel that is not told of one. It is called again and again; its steady state is a call
//! that takes as long as the one before it.

use crate::compare::{Outcome, side_by_side};
use crate::error::MeasureError;
use crate::interface::Interface;
use crate::plan::{RunPlan, Work};
use crate::sampling::{LONG, Timed};
use crate::shape::Count;
use crate::slope::Slope;
use ciphermill_machine::Machine;
use ciphermill_program::Program;
use ciphermill_sim::Stats;
use serde::Serialize;

/// Slopes agree that differ by no more than this part of the later one.
const AGREE: f64 = 0.01;
/// Turns of the loop over blocks in the longest pass, at least.
const TURNS: u32 = 16;
/// The state of what is told of bytes goes on, and its code may follow it: bytes in the longest pass, at least.
const STREAM: u32 = 4096;
/// Messages longer than [`LONG`] have the steady state of one of so many bytes.
const STEADY: u32 = 1 << 20;
/// Instructions of a pass that may be too many for a longer one than was asked for.
const BUDGET: u64 = 2_000_000;
/// A message becomes so many times as long, or a key set-up is called so much more often.
const LONGER: u32 = 16;

/// Which passes it was taken from.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Lengths {
    /// Bytes of the two passes whose difference it is; for a key set-up 0 and the key's.
    pub shorter: u32,
    pub longer: u32,
    /// Calls on the same machine before the longer one.
    pub calls_before: u32,
    /// By how much it differs from the slope before it, as a part of it.
    pub change: f64,
    /// The two agree to within a hundredth.
    pub settled: bool,
}

/// The counts of two passes whose difference is the steady state.
#[derive(Debug)]
pub struct Steady {
    from: Stats,
    to: Stats,
    pub blocks: f64,
    pub lengths: Lengths,
}

impl Steady {
    /// A count per block.
    pub fn slope(&self, count: impl Fn(&Stats) -> u64) -> f64 {
        between(&self.from, &self.to, self.blocks, count)
    }

    /// The two passes.
    pub fn passes(&self) -> impl Iterator<Item = &Stats> {
        [&self.from, &self.to].into_iter()
    }

    /// The counts of a core that schedules at run time.
    pub fn counts(&self) -> Option<Slope<'_>> {
        let (from, to) = (self.from.core.as_ref()?, self.to.core.as_ref()?);
        Some(Slope { from, to, blocks: self.blocks })
    }
}

fn between(from: &Stats, to: &Stats, blocks: f64, count: impl Fn(&Stats) -> u64) -> f64 {
    (count(to) as f64 - count(from) as f64) / blocks
}

/// What the steady state is wanted of.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub wasm: &'a [u8],
    pub program: &'a Program,
    pub interface: &'a Interface,
    pub work: Work,
    /// Bytes of a block, or of a key.
    pub unit: u32,
    /// Bytes that the loop over blocks takes an iteration: whole blocks.
    pub turn: u32,
}

impl Wanted<'_> {
    /// There is no message's length, only calls.
    fn calls(&self) -> bool {
        self.work.count == Count::Calls
    }

    /// Bytes of the longest pass of the first attempt, for a message of so many.
    pub fn first(&self, bytes: u32) -> u32 {
        if self.calls() {
            return self.unit;
        }
        let least = match self.work.count {
            Count::Bytes => STREAM.max(TURNS * self.turn),
            _ => TURNS * self.turn,
        };
        let bytes = if bytes > LONG { STEADY } else { bytes };
        let bytes = bytes.max(least).next_multiple_of(self.turn);
        bytes.min(self.most() / self.turn * self.turn).max(self.turn)
    }

    /// Bytes of the longest message that fits at once.
    fn most(&self) -> u32 {
        let long = self.interface.memory_end.map(|_| RunPlan::new(self.interface, self.work, STEADY));
        long.map_or(u32::MAX, |plan| plan.map_or(0, |plan| plan.first_bytes))
    }

    /// A plan for a message of so many bytes and the passes behind it; a key set-up or kernel is called
    /// `times` as often again as it must be.
    ///
    /// # Errors
    /// As [`RunPlan::new`].
    pub fn plan(&self, bytes: u32, times: u32) -> Result<RunPlan, MeasureError> {
        let mut plan = RunPlan::new(self.interface, self.work, bytes)?;
        plan.passes = match self.calls() {
            true => vec![plan.measured[0].clone(); 2 * times as usize],
            false => parts(bytes, self.turn).into_iter().map(|bytes| plan.call(bytes)).collect(),
        };
        if !self.calls() && !keeps(&self.program.machine) {
            plan.passes.pop();
        }
        Ok(plan)
    }

    /// The steady state; `message` is what a plan of [`Wanted::plan`] for its first length came
    /// to, or None, and a failure if there was one. `each` are the instructions of a block.
    ///
    /// # Errors
    /// As [`side_by_side`].
    pub fn find(
        &self,
        bytes: u32,
        message: Option<Outcome>,
        each: u64,
    ) -> Result<(Steady, Option<String>), MeasureError> {
        let (mut length, mut times) = (bytes, 1);
        let cost = |length: u32| each.saturating_mul(u64::from(length / self.unit));
        if message.is_none() {
            while cost(length) > BUDGET && length / 2 >= 4 * self.turn && !self.calls() {
                length = (length / 2).next_multiple_of(self.turn);
            }
        }
        let mut known = message;
        loop {
            let outcome = match known.take() {
                Some(outcome) => outcome,
                None => side_by_side(self.wasm, self.program, &self.plan(length, times)?, Timed::Everything)?,
            };
            let (failure, steady) = (outcome.failure.clone(), self.of(length, outcome)?);
            let longer = if self.calls() { length * times * 2 } else { length * 2 };
            let most = if self.calls() { u32::MAX } else { self.most() };
            let room =
                longer <= most && longer <= bytes.saturating_mul(LONGER) && longer <= STEADY && cost(longer) <= BUDGET;
            if steady.lengths.settled || failure.is_some() || !room {
                return Ok((steady, failure));
            }
            (length, times) = if self.calls() { (length, 2 * times) } else { (longer, 1) };
        }
    }

    /// Plans whose last calls are the two passes that a steady state is the difference of; a
    /// key set-up has one.
    ///
    /// # Errors
    /// As [`RunPlan::new`].
    pub fn compared(&self, lengths: &Lengths) -> Result<(Option<RunPlan>, RunPlan), MeasureError> {
        let plan = self.plan(lengths.longer, 1)?;
        let calls = [&plan.measured[..], &plan.passes].concat();
        let until = |n: usize| RunPlan { measured: calls[..n].to_vec(), passes: Vec::new(), ..plan.clone() };
        Ok(match (self.calls(), lengths.calls_before) {
            (true, _) => (None, until(calls.len())),
            (false, 0) => (Some(until(calls.len())), until(plan.measured.len())),
            (false, _) => (Some(until(calls.len() - 1)), until(calls.len())),
        })
    }

    /// Lengths like these of a message that takes about `most` instructions at the most, where `each`
    /// are those of a block; and the blocks between the two passes.
    pub fn briefer(&self, lengths: &Lengths, each: f64, most: f64) -> (Lengths, f64) {
        let Lengths { mut shorter, mut longer, .. } = *lengths;
        while !self.calls() && each * f64::from(longer / self.unit) > most && longer / 2 >= 4 * self.turn {
            longer = (longer / 2).next_multiple_of(self.turn);
            shorter = parts(longer, self.turn)[1];
        }
        let lengths = Lengths { shorter, longer, ..*lengths };
        (lengths, self.blocks(&lengths))
    }

    /// Blocks between two passes.
    pub fn blocks(&self, lengths: &Lengths) -> f64 {
        f64::from((lengths.longer - lengths.shorter) / self.unit)
    }

    /// Steady-state cycles of a block on short messages, to compare programs by. Where nothing
    /// is kept of what has passed, the first pass is as good as any other.
    pub fn trial(&self) -> Result<f64, Trial> {
        // Where blocks overlap, and guesses fail, few iterations are too few.
        let turns = if self.program.machine.core.is_some() { 8 } else { 4 };
        // A small memory may have room for less of a message.
        let room = self.most() / self.turn * self.turn;
        let longer = (2 * turns * self.turn).min(room).max(self.turn);
        let shorter = parts(longer, self.turn)[1];
        let bytes = if self.calls() { self.unit } else { longer };
        let mut plan = self.plan(bytes, 1).map_err(Trial::Failed)?;
        if !self.calls() {
            plan.passes.remove(0);
        }
        let run = side_by_side(self.wasm, self.program, &plan, Timed::Everything).map_err(Trial::Failed)?;
        if let Some(failure) = run.failure {
            return Err(Trial::Differs(failure));
        }
        let cycles = |pass: usize| run.passes.get(pass).unwrap_or(&run.stats).cycles as f64;
        match self.calls() {
            true => Ok(cycles(1)),
            false => Ok((cycles(1) - cycles(0)) / f64::from((longer - shorter) / self.unit)),
        }
    }

    /// What the passes of one run came to.
    fn of(&self, length: u32, outcome: Outcome) -> Result<Steady, MeasureError> {
        let Outcome { stats, idle, mut passes, .. } = outcome;
        // Where nothing is kept the message itself is the last pass.
        let calls_before = if passes.len() == 2 && !self.calls() { 0 } else { passes.len() as u32 };
        if calls_before == 0 {
            passes.push(stats);
        }
        let missing = || MeasureError::internal("a run without the passes of a steady state");
        let (last, before) = (passes.pop().ok_or_else(missing)?, passes.pop().ok_or_else(missing)?);
        let (from, lengths, earlier) = match self.calls() {
            true => (idle, (0, length), before.cycles as f64),
            false => {
                let [quarter, half, _] = parts(length, self.turn);
                let first = passes.pop().ok_or_else(missing)?;
                let earlier = between(&first, &before, f64::from((half - quarter) / self.unit), |s| s.cycles);
                (before, (half, length), earlier)
            }
        };
        let blocks = f64::from((lengths.1 - lengths.0) / self.unit);
        let cycles = between(&from, &last, blocks, |s| s.cycles);
        let change = if cycles > 0.0 { cycles / earlier.max(f64::MIN_POSITIVE) - 1.0 } else { 0.0 };
        let lengths =
            Lengths { shorter: lengths.0, longer: lengths.1, calls_before, change, settled: change.abs() <= AGREE };
        Ok(Steady { from, to: last, blocks, lengths })
    }
}

/// Does a machine remember anything of what it did, but registers and memory?
fn keeps(machine: &Machine) -> bool {
    machine.core.is_some() || machine.memory.icache.is_some() || machine.memory.dcache.is_some()
}

/// Why a program could not be compared.
#[derive(Debug)]
pub enum Trial {
    /// Its output is not the reference's.
    Differs(String),
    Failed(MeasureError),
}

/// A quarter, half and all of a message, in whole iterations.
fn parts(bytes: u32, turn: u32) -> [u32; 3] {
    let half = bytes / 2 / turn * turn;
    [half / 2 / turn * turn, half, bytes]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_whole_turns() {
        assert_eq!(parts(4096, 16), [1024, 2048, 4096]);
        assert_eq!(parts(4128, 48), [1008, 2064, 4128]);
        assert_eq!(parts(64, 16), [16, 32, 64]);
    }
}
