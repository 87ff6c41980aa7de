//! Schedules from records, and records of schedules.
//!
//! A search finds shorter schedules the longer it goes on. What a search of minutes has found for
//! a loop is written down once ([`ciphermill_program::recorded`]) and taken where the same loop
//! comes again. Which loop it is a digest says: of the operations by their names, of what each
//! reads, and of the machine's units and how many registers there are. The numbers of registers, other
//! instructions of the machine and orders between accesses to memory are no part of it.
//!
//! The digest is no promise. A record is taken if it keeps every rule that schedules keep here:
//! units and paths, orders and lifetimes, the branch's place, registers for all values. One that
//! keeps them but was made for another loop could only be slower than a search of its own.

use super::body::{Body, From};
use super::exact::before_end;
use super::modulo::{Schedule, keeps_orders};
use super::place::{At, Ops, Sides, fit, settle};
use super::rotating::{self, Names};
use super::table::Table;
use super::{Kernel, color, stages};
use ciphermill_machine::InstrId;
use ciphermill_program::kept_schedules::KeptSchedule as Recorded;
use ciphermill_vcode::{Registers, VOp, VReg};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The letter of the first side.
const FIRST: u8 = b'A';

/// What tells a loop from others.
pub fn digest(body: &Body, sides: &Sides<'_>) -> String {
    let mut outside: BTreeMap<VReg, usize> = BTreeMap::new();
    let mut text = room(sides);
    for (i, node) in body.nodes.iter().enumerate() {
        text.push_str(&sides.machine.instrs[usize::from(node.inst.instr.0)].name);
        for op in &node.inst.ops {
            match op {
                VOp::Use(_) | VOp::Def(_) | VOp::Tied { .. } => text.push_str(" _"),
                VOp::Imm(n) => add(&mut text, &[*n]),
                // Which number a block has follows from the rest of the function.
                VOp::Block(_) => text.push_str(" @"),
                other => text.push_str(&format!(" {other:?}")),
            }
        }
        for &(operand, from) in &node.reads {
            let (node, distance) = match from {
                From::Node(n, distance) => (n as i64, i64::from(distance)),
                From::Outside(v) => {
                    let next = outside.len();
                    (*outside.entry(v).or_insert(next) as i64, -1)
                }
            };
            add(&mut text, &[operand as i64, node, distance]);
        }
        let kept = [body.initial.contains_key(&i), body.live_out.iter().any(|l| l.0 == i)];
        text.push_str(&format!(" {:?} {} {kept:?}\n", node.writes, node.tied));
    }
    format!("{:032x}", fnv(text.as_bytes()))
}

/// What a schedule has room in: with more, a search could find a shorter one.
fn room(sides: &Sides<'_>) -> String {
    let issue = &sides.machine.issue;
    let units = sides.machine.units.iter().map(|u| format!("{} {} {}\n", u.name, u.count, u.shared));
    let registers = sides.pool.iter().map(|pool| format!("{}\n", pool.len()));
    std::iter::once(format!("{} {}\n", issue.width, issue.cross_stall)).chain(units).chain(registers).collect()
}

fn add(text: &mut String, numbers: &[i64]) {
    // Text takes any numbers.
    numbers.iter().for_each(|n| _ = write!(text, " {n}"));
}

/// The hash of Fowler, Noll and Vo (FNV-1a) with 128 bits: the same on every computer.
fn fnv(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

/// The record of a kernel; none where an operation has an instruction that is not among its variants.
pub fn write(kernel: &Kernel, body: &Body, sides: &Sides<'_>) -> Option<Recorded> {
    let Kernel { ops, schedule, .. } = kernel;
    let letters = |at: &mut dyn Iterator<Item = At>| if sides.files.len() > 1 { letters(at) } else { String::new() };
    let variant = |(op, v): (&super::place::Op, &InstrId)| Some(op.variants.iter().position(|w| w == v)? as u16);
    Some(Recorded {
        digest: digest(body, sides),
        ii: schedule.ii as u32,
        assignment: letters(&mut ops.settled.iter().copied()),
        clusters: letters(&mut ops.ops.iter().map(|op| op.at)),
        rotates: kernel.rotating.is_some(),
        time: schedule.time.clone(),
        variant: ops.ops.iter().zip(&schedule.variant).map(variant).collect::<Option<_>>()?,
        equivalent: Vec::new(),
    })
}

/// A schedule, its registers, and the operations with the clusters that they have in it.
#[derive(Clone)]
pub struct Finished {
    pub schedule: Schedule,
    pub registers: color::Assignment,
    pub ops: Ops,
    /// Where registers rotate.
    pub names: Option<Names>,
}

/// What a record says of a loop, if that keeps every rule.
pub fn read(record: &Recorded, body: &Body, sides: &Sides<'_>, registers: &Registers) -> Option<Finished> {
    let ops = operations(record, body, sides)?;
    let chosen = record.variant.iter().zip(&ops.ops).map(|(&k, op)| op.variants.get(usize::from(k)).copied());
    let variant: Vec<InstrId> = chosen.collect::<Option<_>>()?;
    let rotating = if record.rotates { Some(rotating::rotating(body, sides, registers).ok()??) } else { None };
    let stages = rotating.as_ref().map(|r| r.stages);
    let schedule = holding(&ops, sides, i64::from(record.ii), &record.time, variant, stages)?;
    let Some(rotating) = rotating else {
        let registers = color::color(sides, &ops, &schedule, &registers.allocatable).ok()?;
        return Some(Finished { schedule, registers, ops, names: None });
    };
    let of = rotating::names(&ops, &schedule, rotating.ring.len() as i64)?;
    let names = Some(Names { ring: rotating.ring, of, back: rotating.back });
    Some(Finished { schedule, registers: rotating::interface(sides, &ops, registers)?, ops, names })
}

/// The operations of a record: those that its division leads to, some on other sides since.
fn operations(record: &Recorded, body: &Body, sides: &Sides<'_>) -> Option<Ops> {
    let divided = places(&record.assignment, sides, body.nodes.len())?;
    let mut ops = settle(body, sides, &divided).ok()?;
    let n = ops.ops.len();
    let at = places(&record.clusters, sides, n)?;
    let moved: Vec<bool> = ops.ops.iter().zip(&at).map(|(op, at)| op.at != *at).collect();
    ops.ops.iter_mut().zip(&at).for_each(|(op, at)| op.at = *at);
    for i in 0..n {
        let reads = &ops.ops[i].reads;
        let reads_moved = reads.iter().any(|r| matches!(r.1, From::Node(p, _) if moved[p]));
        if moved[i] || reads_moved {
            let fitting = fit(sides, &ops, i);
            if ops.ops[i].tied || fitting.is_empty() {
                return None;
            }
            ops.ops[i].variants = fitting;
            ops.ops[i].follow_paths(sides);
        }
    }
    Some(ops)
}

/// A schedule of certain operations, if it keeps every rule but those of registers; where these rotate, `rotating`
/// are the stages that an iteration may have.
pub fn holding(
    ops: &Ops,
    sides: &Sides<'_>,
    ii: i64,
    time: &[i64],
    variant: Vec<InstrId>,
    rotating: Option<i64>,
) -> Option<Schedule> {
    let n = ops.ops.len();
    let last = ops.ops.last()?;
    let fits = time.len() == n && variant.len() == n && ii > 0 && time.iter().all(|&t| t >= 0);
    let before_end = if rotating.is_some() { 1 } else { before_end(sides.machine, last.inst.instr) };
    if !fits || *time.last()? != ii - before_end {
        return None;
    }
    let mut table = Table::new(sides, ops, ii, false);
    // What can run on few units takes its own before others do.
    let choices = |i: &usize| sides.machine.instrs[usize::from(variant[*i].0)].units.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(choices);
    for i in order {
        let op = &ops.ops[i];
        let row = table.row(time[i]);
        let unit = table.free(row, op, variant[i])?;
        if table.count[row] >= table.width() {
            return None;
        }
        table.put(row, i, op, variant[i], unit);
    }
    let own = time.iter().max().map_or(1, |t| t / ii + 1);
    let holds = own <= rotating.unwrap_or_else(|| stages(own)) && keeps_orders(ops, ii, time, rotating.is_some());
    holds.then(|| Schedule { ii, time: time.to_vec(), variant, stages: own })
}

fn letters(at: impl Iterator<Item = At>) -> String {
    let letter = |side: usize| char::from(FIRST + side as u8);
    at.flat_map(|at| [letter(at.unit), letter(at.result)]).collect()
}

/// The clusters of so many operations.
fn places(letters: &str, sides: &Sides<'_>, n: usize) -> Option<Vec<At>> {
    if sides.files.len() == 1 {
        return letters.is_empty().then(|| vec![At { unit: 0, result: 0 }; n]);
    }
    let side = |letter: u8| Some(usize::from(letter.checked_sub(FIRST)?)).filter(|s| *s < sides.files.len());
    let pairs = letters.as_bytes().chunks(2);
    let at: Option<Vec<At>> =
        pairs.map(|pair| Some(At { unit: side(pair[0])?, result: side(*pair.get(1)?)? })).collect();
    at.filter(|at| at.len() == n)
}
