//! The way of micro-operations through a core that schedules at run time: some
//! dozens from the middle of a message, each with its cycles.

use crate::backends::Simulated;
use crate::error::MeasureError;
use ciphermill_ooo::log::{Log, Row};
use ciphermill_program::{Program, asm};
use ciphermill_sim::code::CodeMap;
use serde::Serialize;

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

/// Micro-operations shown.
pub const SHOWN: usize = 48;

/// Have the core write down what passes.
pub fn watch(simulated: &mut Simulated, skipped: u64) {
    simulated.log(Some(Log::new(skipped, SHOWN)));
}

/// What it wrote down.
pub fn passages(simulated: &mut Simulated, program: &Program) -> Result<Vec<Passage>, MeasureError> {
    let Some(log) = simulated.log(None) else { return Ok(Vec::new()) };
    let map = CodeMap::new(program).map_err(MeasureError::internal)?;
    let first = log.rows.iter().map(|r| r.renamed).min().unwrap_or(0);
    let one = |row: &Row| {
        let at = map.bundles.get(row.number as usize);
        let lines = at.map(|at| (asm::block(program, at.func as usize, at.block as usize), at.index as usize));
        let text = lines.and_then(|(lines, i)| lines.get(i).map(|l| l.join(" "))).unwrap_or_default();
        Passage {
            text,
            kind: row.kind.name(),
            renamed: row.renamed - first,
            started: row.start.saturating_sub(first),
            ended: row.end.saturating_sub(first),
            retired: row.retired.saturating_sub(first),
            wrong_path: row.wrong,
        }
    };
    Ok(log.rows.iter().map(one).collect())
}
