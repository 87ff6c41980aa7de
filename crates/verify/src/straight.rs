//! Straight code: the instructions as they were, one after the other, and the bundles made of them.

use crate::code::{Block, Fault, Inst, Storage};
use crate::exec::{Exec, Frame};
use crate::rules::Rules;
use crate::terms::Term;

/// A block as it was before it was scheduled.
#[derive(Clone, Debug, Default)]
pub struct Straight {
    pub body: Vec<Inst>,
    /// The jump, return or trap that ends it; none: control falls through.
    pub end: Option<Inst>,
    /// What has to stand in its delay slots.
    pub slots: Vec<Inst>,
    /// Registers that hold nothing behind the block: those that moves between clusters use.
    pub scratch: Vec<Storage>,
    /// Accesses that could meet in a bank of memory are not to start together.
    pub banks_apart: bool,
}

/// Check that the bundles of a block do what its instructions do one after the other, and that
/// the machine can start each bundle in one cycle.
///
/// # Errors
/// The rule that is broken, with the instruction and the cycle.
pub fn straight(rules: &Rules, before: &Straight, after: &Block) -> Result<(), Fault> {
    let frame = Frame::default();
    let mut exec = Exec::new(rules, frame, before.banks_apart);
    let mut state = exec.start();
    for inst in &before.body {
        exec.step(&mut state, inst, 0)?;
    }
    let mut jump = None;
    if let Some(end) = &before.end {
        jump = exec.step(&mut state, end, 0)?.jump.map(|j| j.event);
    }
    for inst in &before.slots {
        exec.step(&mut state, inst, 0)?;
    }
    exec.fits(after, "the block")?;
    let start = exec.start();
    let left = exec.block(start, after, "the block", &mut |_| {})?;
    exec.quiet(&left.state, "the end of the block")?;
    if left.jump.map(|j| j.event) != jump {
        return Err(Fault("the block ends in another jump, or one that reads other values".into()));
    }
    let excepted = |r: usize| before.scratch.contains(&(r as Storage)) || rules.machine.regs[r].zero;
    let differ = (0..state.registers.len()).find(|&r| !excepted(r) && state.registers[r] != left.state.registers[r]);
    if let Some(r) = differ {
        return Err(Fault(format!("{} holds another value at the end of the block", rules.register(r as Storage))));
    }
    same_effects(&state.effects, &left.state.effects)
}

/// The same stores, calls and traps, in orders that do not matter: what each follows is part of it.
pub(crate) fn same_effects(wanted: &[Term], found: &[Term]) -> Result<(), Fault> {
    let sorted = |list: &[Term]| {
        let mut list = list.to_vec();
        list.sort_unstable();
        list
    };
    if sorted(wanted) == sorted(found) {
        return Ok(());
    }
    let (many, few) = (wanted.len(), found.len());
    Err(Fault(if many == few {
        "a store, call or trap has other operands, or has changed places with an access that it conflicts with".into()
    } else {
        format!("{few} stores, calls and traps are made and not {many}")
    }))
}
