//! Whether and how a loop is software-pipelined, or why not: as data and in words.

use crate::proved::{Proofs, least, refused};
use ciphermill_machine::Machine;
use ciphermill_program::{CircuitStep, PipelinedLoop, PlainLoop, Program};
use ciphermill_sim::Stats;
use serde::Serialize;

/// An instruction of a recurrence circuit.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    pub name: String,
    /// Offset in the WebAssembly module; 0 for none.
    pub at: u32,
    /// Latency of the dependence to the next instruction, and its distance in iterations.
    pub cycles: u32,
    pub iterations: u32,
    /// It is a dependence through memory that the code generator cannot rule out.
    pub memory: bool,
}

/// A circuit with names of instructions.
pub fn steps(machine: &Machine, circuit: &[CircuitStep]) -> Vec<Step> {
    let one = |s: &CircuitStep| Step {
        name: machine.instrs[usize::from(s.instr.0)].name.clone(),
        at: s.loc,
        cycles: s.cycles,
        iterations: s.distance,
        memory: s.memory,
    };
    circuit.iter().map(one).collect()
}

/// The pipelined loop whose iterations run in one of these blocks.
pub fn pipelined<'a>(program: &'a Program, func: usize, blocks: &[usize]) -> Option<&'a PipelinedLoop> {
    program.loops.iter().find(|l| l.func as usize == func && blocks.contains(&(l.block as usize)))
}

/// The innermost loop around all these blocks that is not pipelined.
pub fn plain<'a>(program: &'a Program, func: usize, blocks: &[usize]) -> Option<&'a PlainLoop> {
    let inside = |l: &&PlainLoop| l.func as usize == func && blocks.iter().any(|&b| l.blocks.contains(&(b as u32)));
    let all = |l: &&PlainLoop| blocks.iter().all(|&b| l.blocks.contains(&(b as u32)));
    let loops = || program.plain_loops.iter().filter(inside);
    // A block that a call splits is known by its first part.
    loops().filter(all).min_by_key(|l| l.blocks.len()).or_else(|| loops().min_by_key(|l| l.blocks.len()))
}

/// The pipelined loops of the functions that ran, the busiest function's first.
pub fn ran_most<'a>(program: &'a Program, stats: &Stats) -> Vec<&'a PipelinedLoop> {
    let ran = |l: &&PipelinedLoop| stats.per_func.get(l.func as usize).copied().unwrap_or(0);
    let mut list: Vec<&PipelinedLoop> = program.loops.iter().filter(|l| ran(l) > 0).collect();
    list.sort_by_key(|l| std::cmp::Reverse(ran(l)));
    list
}

/// Does RecMII exceed ResMII?
pub fn binds(l: &PipelinedLoop) -> bool {
    l.rec_mii > l.res_mii
}

/// In words how a loop is pipelined. `seen` is the recurrence bound by dependences that a run has
/// shown, `proofs` are the loop's.
pub fn how(machine: &Machine, l: &PipelinedLoop, seen: u64, proofs: &Proofs) -> String {
    let stages = match l.stages {
        1 => "in 1 stage, so iterations do not overlap".to_owned(),
        n => format!("in {n} stages"),
    };
    let kept = if l.kept_schedule { ", by a kept schedule" } else { "" };
    let mut out = format!(
        "It is software-pipelined{kept}: an iteration begins every {} (II), {stages}; units need {} (ResMII), \
         what goes from one iteration to the next {} (RecMII)",
        cycles(l.ii),
        l.res_mii,
        l.rec_mii
    );
    let steps = steps(machine, &l.circuit);
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
            named.join(", "),
            cycles(seen as u32)
        );
    }
    out += match l.ii <= least(l, &proofs.plain) {
        true if pairs.is_empty() => ". No schedule is shorter",
        true => ". In this order no schedule is shorter",
        false => "",
    };
    out + &refused(l, proofs)
}

/// In words why a loop is not pipelined.
pub fn why_not(l: &PlainLoop) -> String {
    format!("It is not software-pipelined, because {}.", l.why)
}

fn cycles(n: u32) -> String {
    if n == 1 { "1 cycle".to_owned() } else { format!("{n} cycles") }
}
