//! Is a loop software-pipelined, and how; if not, why not: as data and in words.

use ciphermill_machine::Machine;
use ciphermill_program::{PipelinedLoop, PlainLoop, Program, RoundStep};
use serde::Serialize;

/// An instruction of a way round a loop.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    pub name: String,
    /// Offset in the WebAssembly module; 0 for none.
    pub at: u32,
    /// Cycles until the next instruction of the way may start, and iterations later that it is meant.
    pub cycles: u32,
    pub iterations: u32,
    /// The two touch memory, and the code generator cannot tell that they never meet there.
    pub memory: bool,
}

/// A way round as it is told.
pub fn steps(machine: &Machine, round: &[RoundStep]) -> Vec<Step> {
    let one = |s: &RoundStep| Step {
        name: machine.instrs[usize::from(s.instr.0)].name.clone(),
        at: s.loc,
        cycles: s.cycles,
        iterations: s.distance,
        memory: s.memory,
    };
    round.iter().map(one).collect()
}

/// The pipelined loop whose iterations run in one of these blocks.
pub fn pipelined<'a>(program: &'a Program, func: usize, blocks: &[usize]) -> Option<&'a PipelinedLoop> {
    program.loops.iter().find(|l| l.func as usize == func && blocks.contains(&(l.block as usize)))
}

/// Of the loops that are not pipelined the innermost one that all these blocks stand in.
pub fn plain<'a>(program: &'a Program, func: usize, blocks: &[usize]) -> Option<&'a PlainLoop> {
    let inside = |l: &&PlainLoop| l.func as usize == func && blocks.iter().any(|&b| l.blocks.contains(&(b as u32)));
    let all = |l: &&PlainLoop| blocks.iter().all(|&b| l.blocks.contains(&(b as u32)));
    let loops = || program.plain_loops.iter().filter(inside);
    // A block that was cut in two by a call is known by its first part.
    loops().filter(all).min_by_key(|l| l.blocks.len()).or_else(|| loops().min_by_key(|l| l.blocks.len()))
}

/// Is it not units alone that hold the loop, but what goes round it?
pub fn binds(l: &PipelinedLoop) -> bool {
    l.rec_mii > l.res_mii
}

/// In words how a loop is pipelined. `seen` is the least cycles that the dependences need which
/// a run has shown.
pub fn how(machine: &Machine, l: &PipelinedLoop, seen: u64) -> String {
    let stages = match l.stages {
        1 => "in 1 stage, so iterations do not overlap".to_owned(),
        n => format!("in {n} stages"),
    };
    let kept = if l.recorded { ", by a kept schedule" } else { "" };
    let mut out = format!(
        "It is software-pipelined{kept}: an iteration begins every {} (II), {stages}; units need {} (ResMII), \
         what goes from one iteration to the next {} (RecMII)",
        cycles(l.ii), l.res_mii, l.rec_mii
    );
    let bound = l.res_mii.max(l.rec_mii);
    if l.least > bound {
        out += &format!(", both together {}", l.least);
    }
    let steps = steps(machine, &l.round);
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for (i, step) in steps.iter().enumerate().filter(|s| s.1.memory && binds(l)) {
        let next = &steps[(i + 1) % steps.len()];
        if !pairs.contains(&(&step.name, &next.name)) {
            pairs.push((&step.name, &next.name));
        }
    }
    if !pairs.is_empty() {
        let named: Vec<String> = pairs.iter().map(|(a, b)| format!("{a} and {b}")).collect();
        out += &format!(
            ". RecMII goes through memory: accesses that cannot be told apart keep their order ({}), whether they meet or not; \
             dependences seen in this run need {}",
            named.join(", "), cycles(seen as u32)
        );
    }
    out += &match l.ii <= bound.max(l.least) {
        true if pairs.is_empty() => ". No schedule is shorter.".to_owned(),
        true => ". In this order no schedule is shorter.".to_owned(),
        false => format!(". None below {} is possible; what lies between is open.", bound.max(l.least)),
    };
    out
}

/// In words why a loop is not pipelined.
pub fn why_not(l: &PlainLoop) -> String {
    format!("It is not software-pipelined, because {}.", l.why)
}

fn cycles(n: u32) -> String {
    if n == 1 { "1 cycle".to_owned() } else { format!("{n} cycles") }
}
