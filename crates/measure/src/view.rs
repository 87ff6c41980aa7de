//! The way of micro-operations through a core that schedules at run time, each
//! with its cycles: some dozens from the middle of a message for
//! [`crate::explain`], or those that a request's `trace` names.

use crate::backends::Simulated;
use crate::compare::stopped;
use crate::error::MeasureError;
use crate::plan::{RunPlan, backstop};
use crate::request::Trace;
use crate::target::{prepare, run};
use ciphermill_machine::Machine;
use ciphermill_ooo::log::{Log, Row};
use ciphermill_program::{Program, asm};
use ciphermill_sim::code::CodeMap;
use serde::Serialize;
use std::collections::HashMap;

/// One micro-operation; cycles count from the first one's renaming.
#[derive(Clone, Debug, Serialize)]
pub struct Passage {
    /// Its instruction, as assembly.
    pub text: String,
    /// `compute`, `load`, `store_address`, `store_data` or `nothing`.
    pub kind: &'static str,
    pub renamed: u64,
    pub started: u64,
    /// A user can start.
    pub ended: u64,
    /// Or thrown away, on a wrong path.
    pub retired: u64,
    pub wrong_path: bool,
}

/// One micro-operation on its way through the pipeline. Cycles count from the
/// start of the measured call; each is the one in which the stage is entered.
#[derive(Clone, Debug, Serialize)]
pub struct Stages {
    /// Its instruction, as assembly; both, where two became one.
    pub text: String,
    /// The instruction's address in the program.
    pub address: u32,
    /// The instruction's number among those that retire, from 0; null on a wrong path.
    pub instruction: Option<u64>,
    /// Its number among the micro-operations of its instruction, from 0.
    pub micro_op: u32,
    /// `compute`, `load`, `store_address`, `store_data` or `nothing`.
    pub kind: &'static str,
    pub fetch: u64,
    pub decode: u64,
    pub rename: u64,
    /// Null when it was thrown away before.
    pub issue: Option<u64>,
    /// A user of its result can start; null when it was thrown away before.
    pub complete: Option<u64>,
    /// Null on a wrong path.
    pub retire: Option<u64>,
    pub squashed: bool,
    /// The cycle in which it was thrown away.
    pub squash: Option<u64>,
    /// The port that it started on; null when it takes none, or never started.
    pub port: Option<String>,
}

/// Micro-operations that [`crate::explain`] shows.
const SHOWN: usize = 48;

/// What [`crate::explain`] shows of a run that has so many instructions.
///
/// # Errors
/// When the simulated machine stops.
pub fn passages(
    program: &Program,
    plan: &RunPlan,
    pages: u32,
    instructions: u64,
) -> Result<Vec<Passage>, MeasureError> {
    let (log, _) = watched(program, plan, pages, Log::new(instructions / 2, SHOWN as u64))?;
    let mut texts = Texts::new(program)?;
    let rows: Vec<&Row> = log.rows.iter().filter(|r| r.started).take(SHOWN).collect();
    let first = rows.iter().map(|r| r.renamed).min().unwrap_or(0);
    let mut one = |row: &&Row| Passage {
        text: texts.of(row.number),
        kind: row.kind.name(),
        renamed: row.renamed - first,
        started: row.start.saturating_sub(first),
        ended: row.end.saturating_sub(first),
        retired: row.retired.saturating_sub(first),
        wrong_path: row.wrong,
    };
    Ok(rows.iter().map(&mut one).collect())
}

/// The micro-operations that a trace asks for, of a run that has so many
/// instructions and, if all of it was timed, so many cycles.
///
/// # Errors
/// When the trace begins behind the run's end, or the machine has no core that
/// schedules at run time.
pub fn trace(
    program: &Program,
    plan: &RunPlan,
    pages: u32,
    trace: &Trace,
    (instructions, cycles): (u64, Option<u64>),
) -> Result<Vec<Stages>, MeasureError> {
    let core = core(&program.machine)?;
    let first = trace.first.unwrap_or(instructions / 2);
    if first >= instructions {
        return Err(MeasureError::input(format!(
            "--first {first}: the run retires {instructions} instructions, numbered from 0"
        )));
    }
    let (log, ran) = watched(program, plan, pages, Log::new(first, u64::from(trace.count)))?;
    if cycles.is_some_and(|cycles| cycles != ran) {
        return Err(MeasureError::internal("two runs of the same calls have different cycles"));
    }
    let mut texts = Texts::new(program)?;
    let names = ciphermill_ooo::decompose::Ports::new(&program.machine).map_err(MeasureError::internal)?.names;
    let mut stages: Vec<Stages> = Vec::with_capacity(log.rows.len());
    let mut before: Option<&Row> = None;
    for row in &log.rows {
        // The wrong path's own instructions follow each other without a break.
        let same = |b: &Row| {
            (b.number, b.retired_before, b.wrong, b.fetched) == (row.number, row.retired_before, row.wrong, row.fetched)
        };
        let micro_op = if before.is_some_and(same) { stages.last().map_or(0, |s| s.micro_op + 1) } else { 0 };
        let text = texts.of(row.number);
        let squash = row.wrong.then_some(row.retired);
        stages.push(Stages {
            text: if row.pair { format!("{text} + {}", texts.of(row.number + 1)) } else { text },
            address: texts.address(row.number),
            instruction: (!row.wrong).then_some(row.retired_before),
            micro_op,
            kind: row.kind.name(),
            fetch: row.fetched,
            decode: row.decoded - u64::from(core.decode.stages),
            rename: row.renamed,
            issue: row.started.then_some(row.start),
            complete: (row.started && squash.is_none_or(|at| row.end <= at)).then_some(row.end),
            retire: (!row.wrong).then_some(row.retired),
            squashed: row.wrong,
            squash,
            port: (row.port != 0).then(|| names.get(row.port.trailing_zeros() as usize).cloned()).flatten(),
        });
        before = Some(row);
    }
    Ok(stages)
}

/// The core that a machine must have for its pipeline to be shown.
pub fn core(machine: &Machine) -> Result<&ciphermill_machine::core::Core, MeasureError> {
    machine.core.as_ref().ok_or_else(|| {
        MeasureError::input(format!(
            "trace: {} has no out-of-order core, so no micro-operation overtakes another there; \
             `ciphermill explain` shows its cycles, or name a machine whose file has [core], such as core2",
            machine.name
        ))
    })
}

/// A run with a log: it, with cycles from the start of the measured calls, and
/// the cycles of these.
fn watched(program: &Program, plan: &RunPlan, pages: u32, log: Log) -> Result<(Log, u64), MeasureError> {
    let mut simulated = Simulated::new(program, pages, backstop(plan.limit))?;
    prepare(&mut simulated, plan).map_err(stopped)?;
    simulated.reset();
    let begin = simulated.next_call();
    simulated.log(Some(log));
    run(&mut simulated, &plan.measured).map_err(stopped)?;
    let mut log = simulated.log(None).unwrap_or_default();
    for r in &mut log.rows {
        for t in [&mut r.fetched, &mut r.decoded, &mut r.renamed, &mut r.start, &mut r.end, &mut r.retired] {
            *t = t.saturating_sub(begin);
        }
    }
    Ok((log, simulated.stats().cycles))
}

/// Instructions as assembly, by number.
struct Texts<'p> {
    program: &'p Program,
    map: CodeMap,
    blocks: HashMap<(u32, u32), Vec<String>>,
}

impl<'p> Texts<'p> {
    fn new(program: &'p Program) -> Result<Texts<'p>, MeasureError> {
        let map = CodeMap::new(program).map_err(MeasureError::internal)?;
        Ok(Texts { program, map, blocks: HashMap::new() })
    }

    fn of(&mut self, number: u32) -> String {
        let Some(at) = self.map.bundles.get(number as usize) else { return String::new() };
        let lines = self.blocks.entry((at.func, at.block)).or_insert_with(|| {
            let block = asm::block(self.program, at.func as usize, at.block as usize);
            block.into_iter().map(|l| l.join(" ")).collect()
        });
        lines.get(at.index as usize).map(|l| l.trim().replace('\t', " ")).unwrap_or_default()
    }

    fn address(&self, number: u32) -> u32 {
        self.map.bundles.get(number as usize).map_or(0, |at| at.addr)
    }
}
