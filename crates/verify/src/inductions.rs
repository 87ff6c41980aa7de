//! What a loop's addresses are sums of: what it finds, and how values go on from one iteration to the
//! next.
//!
//! A register that the loop does not write is a sum of what it was made of, in every iteration. A
//! register that each iteration hands on to the next with a constant added is what it was at first
//! plus that constant times the iterations that have passed. Here that number is a term of its own,
//! which stands for any number: so what is true of the few iterations that are run is true of all
//! later ones, and two addresses are counted from the same sum only if they take the same
//! step. That each iteration adds a constant is shown by running one of which nothing is known, and so
//! are the bits that a register may have which each iteration makes anew.

use crate::code::{Arg, Fault, Inst, SourceLoop, Storage};
use crate::exec::{Exec, Frame, destination};
use crate::rules::Rules;
use crate::sums::Sum;
use crate::terms::{Kind, Term};
use std::collections::BTreeSet;

/// What the registers that a loop begins with are as sums. That brings no new terms to any register.
pub(crate) fn begin(exec: &mut Exec<'_>, source: &SourceLoop) -> Result<(), Fault> {
    let made = outside(exec, source)?;
    let carried = carried(exec.rules, source)?;
    let turn = exec.terms.of(&[Kind::Turn as u32]);
    for Carried { param, step, bits } in carried {
        let Some(&(_, from)) = source.entered.iter().find(|e| e.0 == param) else { continue };
        let first = made.iter().find(|m| m.0 == from).map(|m| m.1);
        let first = first.unwrap_or_else(|| exec.terms.initial(from));
        let own = exec.terms.initial(param);
        // What it is at first, or what some iteration handed on.
        let bits = bits | exec.sums.bits(&exec.terms, first);
        if let Some(step) = step {
            let first = exec.sums.of(&exec.terms, first);
            exec.sums.say(own, first.plus(&Sum::of(turn).times(step)));
        }
        exec.sums.say_bits(own, bits);
    }
    Ok(())
}

/// Run what makes the values that a loop finds; their registers, and what they hold.
fn outside(exec: &mut Exec<'_>, source: &SourceLoop) -> Result<Vec<(Storage, Term)>, Fault> {
    let rules = exec.rules;
    let mut own: BTreeSet<Storage> = source.params.iter().copied().collect();
    for inst in source.body.iter().chain(&source.between) {
        own.extend(rules.effect(inst.instr).results.iter().filter_map(|r| destination(inst, &r.dest)));
    }
    let mut state = exec.start();
    for inst in &source.outside {
        let effect = rules.effect(inst.instr);
        if effect.loads || effect.stores || effect.control || effect.fence {
            return Err(exec.fault(inst, "what makes a value that the loop finds does something else"));
        }
        if registers(inst).any(|r| own.contains(&r)) {
            return Err(exec.fault(inst, "what makes a value that the loop finds is part of the loop"));
        }
        // A physical register may have held something else where this stood.
        let physical = |r: Storage| rules.machine.regs.get(r as usize).is_some_and(|r| !r.zero);
        if effect.fixed.is_empty() && !registers(inst).any(physical) {
            exec.moved(&mut state, inst)?;
        }
    }
    let made: Vec<(Storage, Term)> = state.named.iter().map(|(&v, &t)| (v, t)).collect();
    for &(v, value) in &made {
        let own = exec.terms.initial(v);
        if own != value {
            let (sum, bits) = (exec.sums.of(&exec.terms, value), exec.sums.bits(&exec.terms, value));
            exec.sums.say(own, sum);
            exec.sums.say_bits(own, bits);
        }
    }
    Ok(made)
}

/// A register that one iteration hands on to the next.
struct Carried {
    param: Storage,
    /// The constant that is added to it, if that is all.
    step: Option<u32>,
    /// The bits that the next one may find in it, whatever this one found.
    bits: u64,
}

/// What each register that is handed on is next: by one iteration that begins with anything.
fn carried(rules: &Rules, source: &SourceLoop) -> Result<Vec<Carried>, Fault> {
    let mut exec = Exec::new(rules, Frame::default(), false);
    outside(&mut exec, source)?;
    let mut state = exec.start();
    for inst in source.body.iter().chain(&source.between) {
        exec.step(&mut state, inst, 1)?;
    }
    let mut out = Vec::new();
    for (&param, &handed) in source.params.iter().zip(&source.handed) {
        let (first, next) = (exec.terms.initial(param), exec.read(&state, handed));
        let step = exec.sums.of(&exec.terms, next).plus(&Sum::of(first).times(u32::MAX)).known();
        out.push(Carried { param, step, bits: exec.sums.bits(&exec.terms, next) });
    }
    Ok(out)
}

/// The registers that an instruction names.
fn registers(inst: &Inst) -> impl Iterator<Item = Storage> + '_ {
    inst.args
        .iter()
        .flat_map(|a| match *a {
            Arg::Reg(r) => [Some(r), None],
            Arg::Tied { read, write } => [Some(read), Some(write)],
            Arg::Imm(_) | Arg::Label(_) | Arg::Func(_) => [None, None],
        })
        .flatten()
}
