//! Microbenchmarks: tiny loops on a machine, each of which shows one of its
//! figures. What the figures should be is no concern of this module.
//!
//! A loop is a text ([`ciphermill_program::lines`]) in which `{turns}` stands for
//! how often it iterates. It is run twice, and what is counted is the difference
//! of the two: what comes before and after the loop is in neither.

use crate::error::MeasureError;
use crate::native::hex;
use crate::pipeline;
use crate::request::MachineRequest;
use crate::sparse::Sparse;
use ciphermill_ir::PAGE_BYTES;
use ciphermill_machine::Machine;
use ciphermill_program::{Program, asm, lines};
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

/// The loops of a request for a real processor: all of them in one program, each a function.
#[derive(Debug, Serialize)]
pub struct PrintedSheet {
    /// For the machine's assembler, with the fewer and with the more turns: the same
    /// instructions but for these numbers.
    pub assembly: (String, String),
    pub loops: Vec<PrintedLoop>,
}

/// One of them.
#[derive(Debug, Serialize)]
pub struct PrintedLoop {
    /// The function to call.
    pub symbol: String,
    /// Turns that it makes more in the second program.
    pub turns: u32,
    /// Bytes of linear memory, in whole pages; and what stands in it, by address, in hexadecimal.
    pub memory_bytes: u64,
    pub writes: Vec<(u32, String)>,
}

/// The loops of a request, to be run on a real processor. Their functions have names of their own.
///
/// # Errors
/// As [`sheet`].
pub fn printed(request: &SheetRequest) -> Result<PrintedSheet, MeasureError> {
    let machine = Arc::new(pipeline::machine(&request.machine)?);
    let turns: Vec<(u32, u32)> = request.loops.iter().map(ordered).collect::<Result<_, _>>()?;
    let text = |pick: fn(&(u32, u32)) -> u32| {
        let of = |(one, turns): (&LoopRequest, _)| one.text.replace("{turns}", &pick(turns).to_string());
        let all: Vec<String> = request.loops.iter().zip(&turns).map(of).collect();
        lines::assemble(machine.clone(), &all.join("\n")).map_err(MeasureError::input)
    };
    let (few, many) = (text(|t| t.0)?, text(|t| t.1)?);
    let named = many.exports.iter().map(|(name, _)| name.clone());
    let loops = request.loops.iter().zip(&turns).zip(named).map(|((one, turns), symbol)| {
        let pages = pages(one).map_err(|what| MeasureError::input(format!("{}: {what}", one.name)))?;
        let mut bytes = vec![0; (pages * PAGE_BYTES) as usize];
        fill(&mut bytes, one);
        let held = Sparse::of(&bytes);
        let writes = held.held().map(|(at, bytes)| (at as u32, hex(bytes))).collect();
        Ok(PrintedLoop { symbol, turns: turns.1 - turns.0, memory_bytes: bytes.len() as u64, writes })
    });
    let loops = loops.collect::<Result<_, MeasureError>>()?;
    Ok(PrintedSheet { assembly: (asm::print(&few), asm::print(&many)), loops })
}

/// The numbers of turns, the first the smaller one.
fn ordered(one: &LoopRequest) -> Result<(u32, u32), MeasureError> {
    let (few, many) = one.turns;
    if few < many {
        return Ok((few, many));
    }
    Err(MeasureError::input(format!("{}: turns = [{few}, {many}]; the second run must be the longer one", one.name)))
}

/// A loop with so many turns, and memory for it.
fn program(machine: &Arc<Machine>, one: &LoopRequest, turns: u32) -> Result<Program, String> {
    let mut program = lines::assemble(machine.clone(), &one.text.replace("{turns}", &turns.to_string()))?;
    let pages = pages(one)? as u32;
    (program.min_pages, program.max_pages) = (pages, pages);
    Ok(program)
}

fn turn(machine: &Arc<Machine>, one: &LoopRequest) -> Result<Turn, MeasureError> {
    let wrong = |what: String| MeasureError::input(format!("{}: {what}", one.name));
    let (few, many) = ordered(one)?;
    let run = |turns: u32| -> Result<Counts, MeasureError> {
        let program = program(machine, one, turns).map_err(&wrong)?;
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

/// Pages of memory, enough for what is put there.
fn pages(one: &LoopRequest) -> Result<u64, String> {
    let words = one.words.as_ref().map_or(0, |w| u64::from(w.at) + 4 * w.words.len() as u64);
    let chase = one.chase.as_ref().map_or(0, |c| u64::from(c.at) + u64::from(c.bytes));
    let pages = (words.max(chase) + 4 * PAGE_BYTES).div_ceil(PAGE_BYTES);
    if pages > 4096 {
        return Err(format!("{} bytes of memory; there are 256 MB", words.max(chase)));
    }
    match &one.chase {
        Some(c) if c.stride < 4 || c.bytes / c.stride < 2 => Err("a circle needs two places of four bytes".into()),
        _ => Ok(pages),
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
