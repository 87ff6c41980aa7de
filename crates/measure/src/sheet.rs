//! Microbenchmarks: tiny loops on a machine, each of which shows one of its
//! figures. What the figures should be is no concern of this module.
//!
//! A loop is a text ([`ciphermill_program::lines`]) in which `{turns}` stands for
//! how often it iterates. It is run twice, and what is counted is the difference
//! of the two: what comes before and after the loop is in neither.

use crate::error::MeasureError;
use crate::pipeline;
use crate::request::MachineRequest;
use ciphermill_ir::PAGE_BYTES;
use ciphermill_machine::Machine;
use ciphermill_program::{Program, lines};
use ciphermill_sim::{SimOptions, Simulator};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A machine and its loops.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SheetRequest {
    pub machine: MachineRequest,
    pub loops: Vec<LoopRequest>,
}

/// One loop.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopRequest {
    /// For messages.
    pub name: String,
    /// One function, named and without parameters or results.
    pub text: String,
    /// Turns of the shorter and the longer run.
    pub turns: (u32, u32),
    /// Words in memory, from an address on.
    #[serde(default)]
    pub words: Option<Words>,
    /// A circle of pointers in memory.
    #[serde(default)]
    pub chase: Option<Chase>,
}

/// Words in memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    pub at: u32,
    pub words: Vec<u32>,
}

/// In each `stride` bytes of `bytes` from `at` on, the address of another such
/// place; all of them are one circle, in a pseudo-random order or, `ascending`, in that of addresses.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chase {
    pub at: u32,
    pub bytes: u32,
    pub stride: u32,
    #[serde(default)]
    pub ascending: bool,
}

/// What an iteration came to, on average.
#[derive(Clone, Debug, Serialize)]
pub struct Turn {
    pub name: String,
    pub cycles: f64,
    pub instructions: f64,
    /// Counts of the core, by name.
    pub events: BTreeMap<&'static str, f64>,
}

/// Run the loops of a request.
///
/// # Errors
/// For a machine or a loop that is none.
pub fn sheet(request: &SheetRequest) -> Result<Vec<Turn>, MeasureError> {
    let machine = Arc::new(pipeline::machine(&request.machine)?);
    request.loops.iter().map(|one| turn(&machine, one)).collect()
}

fn turn(machine: &Arc<Machine>, one: &LoopRequest) -> Result<Turn, MeasureError> {
    let wrong = |what: String| MeasureError::input(format!("{}: {what}", one.name));
    let (few, many) = one.turns;
    if few >= many {
        return Err(wrong(format!("turns = [{few}, {many}]; the second run must be the longer one")));
    }
    let run = |turns: u32| -> Result<Counts, MeasureError> {
        let text = one.text.replace("{turns}", &turns.to_string());
        let mut program = lines::assemble(machine.clone(), &text).map_err(&wrong)?;
        memory(&mut program, one).map_err(&wrong)?;
        let mut sim = Simulator::new(Arc::new(program), SimOptions::default()).map_err(|e| wrong(e.to_string()))?;
        fill(sim.memory_mut(), one);
        sim.call(0, &[]).map_err(|e| wrong(e.to_string()))?;
        let stats = sim.stats();
        let events = stats.core.map_or(Vec::new(), |c| c.events);
        Ok(Counts { cycles: stats.cycles, instructions: stats.instructions, events })
    };
    let (short, long) = (run(few)?, run(many)?);
    let each = |a: u64, b: u64| (b as f64 - a as f64) / f64::from(many - few);
    let counts = short.events.iter().zip(&long.events).map(|(&a, &b)| each(a, b));
    Ok(Turn {
        name: one.name.clone(),
        cycles: each(short.cycles, long.cycles),
        instructions: each(short.instructions, long.instructions),
        events: ciphermill_machine::core::Event::NAMES.iter().copied().zip(counts).collect(),
    })
}

struct Counts {
    cycles: u64,
    instructions: u64,
    events: Vec<u64>,
}

/// Memory enough for what is put there.
fn memory(program: &mut Program, one: &LoopRequest) -> Result<(), String> {
    let words = one.words.as_ref().map_or(0, |w| u64::from(w.at) + 4 * w.words.len() as u64);
    let chase = one.chase.as_ref().map_or(0, |c| u64::from(c.at) + u64::from(c.bytes));
    let pages = (words.max(chase) + 4 * PAGE_BYTES).div_ceil(PAGE_BYTES);
    if pages > 4096 {
        return Err(format!("{} bytes of memory; there are 256 MB", words.max(chase)));
    }
    (program.min_pages, program.max_pages) = (pages as u32, pages as u32);
    match &one.chase {
        Some(c) if c.stride < 4 || c.bytes / c.stride < 2 => Err("a circle needs two places of four bytes".into()),
        _ => Ok(()),
    }
}

fn fill(memory: &mut [u8], one: &LoopRequest) {
    let mut put = |at: usize, word: u32| memory[at..at + 4].copy_from_slice(&word.to_le_bytes());
    if let Some(w) = &one.words {
        w.words.iter().enumerate().for_each(|(i, &word)| put(w.at as usize + 4 * i, word));
    }
    if let Some(c) = &one.chase {
        let count = c.bytes / c.stride;
        let mut order: Vec<u32> = (0..count).collect();
        if !c.ascending {
            // Fisher and Yates' shuffle, with Marsaglia's xorshift.
            let mut random = 0x2545_f491u32;
            for i in (1..count).rev() {
                random ^= random << 13;
                random ^= random >> 17;
                random ^= random << 5;
                order.swap(i as usize, (random % (i + 1)) as usize);
            }
            // The circle begins where a loop does that starts at `at`.
            let first = order.iter().position(|&n| n == 0).unwrap_or(0);
            order.rotate_left(first);
        }
        for (i, &n) in order.iter().enumerate() {
            let next = order[(i + 1) % order.len()];
            put((c.at + n * c.stride) as usize, c.at + next * c.stride);
        }
    }
}
