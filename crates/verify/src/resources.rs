//! What may start in one cycle: issue slots, units, paths, ports, and which registers an
//! operand can be.

use crate::code::{Arg, Bundle, Fault, Inst, Storage};
use crate::rules::Rules;
use ciphermill_machine::{OperandKind, UnitId};

/// Can the instructions of a bundle start together?
///
/// # Errors
/// Which instruction finds what taken.
pub(crate) fn fit(rules: &Rules, bundle: &Bundle) -> Result<(), Fault> {
    let machine = &rules.machine;
    let fault = |inst: &Inst, what: String| Err(Fault(format!("`{}`: {what}", rules.name(inst.instr))));
    if let Some(last) = bundle.last()
        && bundle.len() > usize::from(machine.issue.width.max(1))
    {
        return fault(
            last,
            format!("{} instructions start in one cycle of {} slots", bundle.len(), machine.issue.width),
        );
    }
    for inst in bundle {
        let instr = rules.instr(inst.instr);
        if inst.args.len() != instr.operands.len() {
            return fault(inst, format!("it has {} operands and not {}", inst.args.len(), instr.operands.len()));
        }
        for (o, (arg, operand)) in inst.args.iter().zip(&instr.operands).enumerate() {
            let OperandKind::Reg { file, .. } = operand.kind else { continue };
            let Arg::Reg(r) = *arg else {
                return fault(inst, format!("its operand `{}` is no register", operand.name));
            };
            let can = match instr.only.iter().find(|only| only.0 == o) {
                Some((_, list)) => list.iter().any(|x| u32::from(x.0) == r),
                None => machine.regs.get(r as usize).is_some_and(|x| x.file == file),
            };
            if !can {
                return fault(
                    inst,
                    format!("its operand `{}` cannot be the register {}", operand.name, rules.register(r)),
                );
            }
        }
    }
    units(rules, bundle)?;
    paths(rules, bundle)?;
    ports(rules, bundle)
}

/// A unit for each instruction that needs one: a matching, found by augmenting paths.
fn units(rules: &Rules, bundle: &Bundle) -> Result<(), Fault> {
    let needs: Vec<&[UnitId]> = bundle.iter().map(|i| rules.instr(i.instr).units.as_slice()).collect();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); rules.machine.units.len()];
    for k in (0..needs.len()).filter(|&k| !needs[k].is_empty()) {
        let mut seen = vec![false; users.len()];
        if !assign(rules, &needs, k, &mut users, &mut seen) {
            let names: Vec<&str> = needs[k].iter().map(|&u| rules.machine.units[u].name.as_str()).collect();
            return Err(Fault(format!(
                "`{}`: no unit is free for it in its cycle ({})",
                rules.name(bundle[k].instr),
                names.join(", ")
            )));
        }
    }
    Ok(())
}

fn assign(rules: &Rules, needs: &[&[UnitId]], k: usize, users: &mut [Vec<usize>], seen: &mut [bool]) -> bool {
    for &unit in needs[k] {
        if std::mem::replace(&mut seen[unit], true) {
            continue;
        }
        if users[unit].len() < usize::from(rules.machine.units[unit].count) {
            users[unit].push(k);
            return true;
        }
        for place in 0..users[unit].len() {
            let holder = users[unit][place];
            if assign(rules, needs, holder, users, seen) {
                users[unit][place] = k;
                return true;
            }
        }
    }
    false
}

fn register(inst: &Inst, o: usize) -> Option<Storage> {
    if let Some(Arg::Reg(r)) = inst.args.get(o) { Some(*r) } else { None }
}

/// Paths between clusters carry one register, or one for several readers.
fn paths(rules: &Rules, bundle: &Bundle) -> Result<(), Fault> {
    for (path, unit) in rules.machine.units.iter().enumerate() {
        let mut over: Vec<Option<Storage>> = Vec::new();
        for inst in bundle {
            over.extend(rules.instr(inst.instr).paths.iter().filter(|p| p.0 == path).map(|p| register(inst, p.1)));
        }
        let most = if over.iter().all(|r| *r == over[0]) { unit.count.max(unit.shared) } else { unit.count };
        if over.len() > usize::from(most) {
            return Err(Fault(format!("{} operands take the path `{}` in one cycle", over.len(), unit.name)));
        }
    }
    Ok(())
}

/// A register is read only so many times in a cycle.
fn ports(rules: &Rules, bundle: &Bundle) -> Result<(), Fault> {
    let most = u32::from(rules.machine.issue.register_reads);
    let mut read: Vec<(Storage, u32)> = Vec::new();
    for inst in bundle.iter().filter(|_| most > 0) {
        for &(o, times) in &rules.instr(inst.instr).ports {
            let Some(r) = register(inst, o) else { continue };
            match read.iter_mut().find(|x| x.0 == r) {
                Some(x) => x.1 += u32::from(times),
                None => read.push((r, u32::from(times))),
            }
        }
    }
    match read.iter().find(|x| x.1 > most) {
        Some((r, times)) => Err(Fault(format!(
            "the register {} is read {times} times in one cycle, {most} are possible",
            rules.register(*r)
        ))),
        None => Ok(()),
    }
}
