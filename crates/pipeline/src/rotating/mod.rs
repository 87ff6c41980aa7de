//! Software pipelines on rotating registers, with predicated stages.
//!
//! ```text
//! ops -> schedule -> names -> emit
//! ```
//!
//! Where the machine renames registers with every turn of a loop, a value may
//! live longer than the initiation interval: the next iteration's has another
//! register. So any number of iterations can be under way, the interval is what
//! units and recurrences allow, and the loop's code stands once: each operation
//! is guarded by the predicate of its stage, which is 0 in an iteration that has
//! not begun or is over (Rau, Lee, Tirumalai, Schlansker, PLDI 1992; Dehnert,
//! Hsu, Bratt, ASPLOS 1989).
//!
//! A branch within the loop has become moves under a condition by now (`opt`'s
//! `if_convert`): they write the register of one of their sources, which [`names`]
//! takes to be one value with theirs. Loops with operands that overwrite a value of
//! the iteration before, or that want certain registers, are left to the pipeliner
//! without rotation.

pub mod emit;
mod names;

pub use names::names;

use super::body::{Body, From};
use super::color;
use super::place::{self, At, Op, Ops, Sides};
use ciphermill_machine::sem::Stmt;
use ciphermill_machine::{InstrId, Machine, Reg, Rotation};
use ciphermill_vcode::CompileError;
use ciphermill_vcode::Registers;

/// Names for the values of a pipelined loop.
#[derive(Clone, Debug)]
pub struct Names {
    /// The rotating registers, in the order in which a value passes through them.
    pub ring: Vec<Reg>,
    /// For each operation with a result, the place in the ring at which it is
    /// written in the stage of its operation.
    pub of: Vec<Option<i64>>,
    /// The branch back.
    pub back: InstrId,
}

impl Names {
    /// The register at a place in the ring.
    pub fn register(&self, place: i64) -> Reg {
        self.ring[place.rem_euclid(self.ring.len() as i64) as usize]
    }
}

/// The rotating registers, where kernels may have all of them.
pub fn ring(machine: &Machine) -> Option<(&Rotation, Vec<Reg>)> {
    let rotation = machine.abi.rotation.as_ref()?;
    let file = machine.files.iter().find(|f| f.rotating.1 > 1 && !rotation.predicates.contains(&f.rotating.0))?;
    let ring: Vec<Reg> = (0..file.rotating.1).map(|i| Reg(file.rotating.0.0 + i)).collect();
    ring.iter().all(|r| machine.abi.scratch.contains(r)).then_some((rotation, ring))
}

/// What a loop needs to have rotating registers.
#[derive(Clone)]
pub struct Rotating {
    pub ring: Vec<Reg>,
    /// Predicates of stages.
    pub stages: i64,
    /// The branch back.
    pub back: InstrId,
}

/// What a loop needs to have rotating registers; none where it cannot have them.
///
/// # Errors
/// When some operation has no variant.
pub fn rotating(body: &Body, sides: &Sides<'_>, registers: &Registers) -> Result<Option<Rotating>, CompileError> {
    let machine = sides.machine;
    let Some((rotation, ring)) = ring(machine).filter(|_| sides.files.len() == 1 && machine.issue.interlock) else {
        return Ok(None);
    };
    let ops = place::settle(body, sides, &vec![At { unit: 0, result: 0 }; body.nodes.len()])?;
    let certain = |i: &InstrId| !machine.instrs[usize::from(i.0)].only.is_empty();
    let early = |op: &Op| op.tied && !matches!(names::replaced(op), Some(From::Node(_, 0)));
    if ops.ops.iter().any(|op| early(op) || op.variants.iter().any(certain) || !guardable(machine, op.inst.instr)) {
        return Ok(None);
    }
    // The branch decides in the first stage by what its own iteration has made.
    let early = |r: &(usize, From)| matches!(r.1, From::Node(_, d) if d > 0);
    if ops.ops.last().is_none_or(|branch| branch.reads.iter().any(early)) {
        return Ok(None);
    }
    let Some(back) = back(machine, rotation, body) else { return Ok(None) };
    // A form of the loop with values in the frame has no more of them.
    let stages = rotation.predicates.len() as i64;
    Ok(interface(sides, &ops, registers).map(|_| Rotating { ring, stages, back }))
}

/// Can an instruction do nothing where a predicate says so?
fn guardable(machine: &Machine, instr: InstrId) -> bool {
    let semantics = &machine.instrs[usize::from(instr.0)].semantics;
    semantics
        .iter()
        .all(|s| matches!(s, Stmt::Let { .. } | Stmt::Assign { .. } | Stmt::Store { .. } | Stmt::Goto { .. }))
}

/// The branch that goes back where the loop's own does.
fn back(machine: &Machine, rotation: &Rotation, body: &Body) -> Option<InstrId> {
    let skips_nonzero = super::body::tests_nonzero(&machine.instrs[usize::from(body.skip.0)])?;
    let back = if skips_nonzero { rotation.back_zero } else { rotation.back };
    let branch = body.nodes.last()?.inst.instr;
    let units = |i: InstrId| &machine.instrs[usize::from(i.0)].units;
    (units(back) == units(branch)).then_some(back)
}

/// Registers by which values come into the loop and leave it; those within it
/// are in the ring. None where they are too many.
pub fn interface(sides: &Sides<'_>, ops: &Ops, registers: &Registers) -> Option<color::Assignment> {
    let mut free = registers.allocatable.iter().rev().copied();
    let mut out = color::Assignment { result: vec![None; ops.ops.len()], ..Default::default() };
    for (_, from) in ops.ops.iter().flat_map(|op| &op.reads) {
        if let From::Outside(v) = *from
            && !out.outside.contains_key(&(v, 0))
        {
            out.outside.insert((v, 0), free.next()?);
        }
    }
    for i in 0..ops.ops.len() {
        if ops.initial.contains_key(&i) || ops.live_out.iter().any(|l| l.0 == i) {
            out.result[i] = Some(free.next()?);
        }
    }
    assert_eq!(sides.files.len(), 1);
    Some(out)
}
