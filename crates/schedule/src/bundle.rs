//! List scheduling of bundles, cycle by cycle, critical path first.
//!
//! The pipeline is exposed: until a result lands, its register has the old value, which instructions
//! in between may read. Two results for one register land in program order.

use ciphermill_machine::{Instr, InstrId, Machine, Reg, UnitId};
use ciphermill_program::{Bundle, Inst, Operand};
use ciphermill_vcode::banks::{Set, meet};
use ciphermill_vcode::{CompileError, Node, PInst};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::ops::Bound::{Excluded, Included, Unbounded};

/// An instruction with the variants that it may be scheduled as.
#[derive(Clone, Debug)]
pub struct Schedulable {
    pub inst: PInst,
    pub variants: Vec<InstrId>,
}

/// One row of the reservation table: what one cycle's instructions occupy.
#[derive(Clone, Default)]
pub struct Row {
    pub insts: Vec<Inst>,
    units: Vec<(UnitId, u16)>,
    paths: Vec<(UnitId, Reg)>,
    /// Registers read, and how many times.
    reads: Vec<(Reg, u16)>,
    /// Banks of memory that each access may touch.
    banks: Vec<Set>,
}

impl Row {
    /// Are the unit and the paths of a variant free? Gives the unit.
    fn fits(&self, machine: &Machine, variant: InstrId, operands: &[Operand]) -> Option<Option<UnitId>> {
        if self.insts.len() >= usize::from(machine.issue.width) {
            return None;
        }
        let instr = &machine.instrs[usize::from(variant.0)];
        let free = |u: &UnitId| self.units.iter().find(|x| x.0 == *u).map_or(0, |x| x.1) < machine.units[*u].count;
        let unit = match instr.units.as_slice() {
            [] => None,
            units => Some(*units.iter().find(|u| free(u))?),
        };
        let most = machine.issue.register_reads;
        if most > 0 {
            let mine = ported(instr, operands);
            let times = |r: Reg| -> u16 { self.reads.iter().chain(&mine).filter(|x| x.0 == r).map(|x| x.1).sum() };
            if mine.iter().any(|x| times(x.0) > most) {
                return None;
            }
        }
        for &(path, o) in &instr.paths {
            let Some(&Operand::Reg(r)) = operands.get(o) else { return None };
            let on_it = self.paths.iter().filter(|p| p.0 == path);
            let (count, same) = on_it.fold((0, true), |(n, same), p| (n + 1, same && p.1 == r));
            if !machine.units[path].takes(count, same) {
                return None;
            }
        }
        Some(unit)
    }

    /// Places an instruction in the row, if one of its variants fits.
    pub fn place(&mut self, machine: &Machine, candidate: &Schedulable) -> bool {
        let (inst, banks) = (&candidate.inst.inst, candidate.inst.mem.map_or(0, |m| m.banks));
        candidate.variants.iter().any(|&variant| self.place_as(machine, variant, inst, banks))
    }

    /// Places an instruction in the row as one of its variants, if that fits. `banks` are those that it may touch.
    pub fn place_as(&mut self, machine: &Machine, variant: InstrId, inst: &Inst, banks: Set) -> bool {
        if self.banks.iter().any(|&b| meet(b, banks)) {
            return false;
        }
        let Some(unit) = self.fits(machine, variant, &inst.operands) else { return false };
        if let Some(u) = unit {
            match self.units.iter_mut().find(|x| x.0 == u) {
                Some(x) => x.1 += 1,
                None => self.units.push((u, 1)),
            }
        }
        for &(path, o) in &machine.instrs[usize::from(variant.0)].paths {
            if let Some(&Operand::Reg(r)) = inst.operands.get(o) {
                self.paths.push((path, r));
            }
        }
        self.reads.extend(ported(&machine.instrs[usize::from(variant.0)], &inst.operands));
        self.banks.extend((banks != 0).then_some(banks));
        self.insts.push(Inst { instr: variant, ..inst.clone() });
        true
    }
}

/// Registers that an instruction reads through ports, and how many times.
fn ported(instr: &Instr, operands: &[Operand]) -> Vec<(Reg, u16)> {
    let register = |&(o, times): &(usize, u16)| match operands.get(o) {
        Some(&Operand::Reg(r)) => Some((r, times)),
        _ => None,
    };
    instr.ports.iter().filter_map(register).collect()
}

/// A dependence: the successor, and by how many cycles at least it issues later.
pub type Edge = (usize, u32);

/// Dependences on an exposed pipeline.
pub fn edges(nodes: &[Node]) -> Vec<Vec<Edge>> {
    let mut succs: Vec<Vec<Edge>> = vec![Vec::new(); nodes.len()];
    let mut writer: HashMap<u32, (usize, u32)> = HashMap::new();
    let mut readers: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut memory: Vec<usize> = Vec::new();
    for (i, n) in nodes.iter().enumerate() {
        let mut add = |from: usize, cycles: u32| {
            if from != i {
                succs[from].push((i, cycles));
            }
        };
        for r in &n.reads {
            if let Some(&(w, latency)) = writer.get(r) {
                add(w, latency);
            }
        }
        for &(r, latency) in &n.writes {
            if let Some(&(w, before)) = writer.get(&r) {
                add(w, (before + 1).saturating_sub(latency).max(1));
            }
            for &reader in readers.get(&r).map_or(&[][..], |v| v) {
                add(reader, 0);
            }
        }
        if let Some(m) = &n.mem {
            for &other in &memory {
                if let Some(o) = nodes[other].mem
                    && o.conflicts(m)
                {
                    add(other, u32::from(o.store));
                }
            }
            memory.push(i);
        }
        for r in &n.reads {
            readers.entry(*r).or_default().push(i);
        }
        for &(r, latency) in &n.writes {
            writer.insert(r, (i, latency));
            readers.remove(&r);
        }
    }
    succs
}

/// One instruction a cycle, in the order given.
pub fn in_order(
    machine: &Machine,
    insts: &[Schedulable],
    succs: &[Vec<Edge>],
    last: Option<usize>,
) -> (Vec<Row>, Vec<u32>) {
    let mut earliest = vec![0u32; insts.len()];
    let (mut rows, mut issue, mut next): (Vec<Row>, _, u32) = (Vec::new(), vec![0u32; insts.len()], 0);
    for i in (0..insts.len()).filter(|&i| Some(i) != last) {
        let at = next.max(earliest[i]);
        rows.resize_with(at as usize + 1, Row::default);
        rows[at as usize].place(machine, &insts[i]);
        issue[i] = at;
        next = at + 1;
        for &(s, cycles) in &succs[i] {
            earliest[s] = earliest[s].max(at + cycles);
        }
    }
    (rows, issue)
}

/// As many instructions a cycle as fit, those with the longest path to the block's end first. At most
/// `at_once` of them a cycle, unless that is 0.
pub fn list(
    machine: &Machine,
    at_once: usize,
    insts: &[Schedulable],
    nodes: &[Node],
    succs: &[Vec<Edge>],
    last: Option<usize>,
) -> (Vec<Row>, Vec<u32>) {
    let n = insts.len();
    let mut height = vec![0u32; n];
    let mut preds = vec![0u32; n];
    for i in (0..n).rev() {
        let own = nodes[i].writes.iter().map(|w| w.1).max().unwrap_or(1);
        height[i] = succs[i].iter().map(|&(s, cycles)| height[s] + cycles).max().unwrap_or(0).max(own);
        for &(s, _) in &succs[i] {
            preds[s] += 1;
        }
    }
    let mut earliest = vec![0u32; n];
    let mut issue = vec![0u32; n];
    // Instructions whose predecessors have issued: waiting for their cycle, and ready now.
    let key = |i: usize| (Reverse(height[i]), i);
    let mut later: BinaryHeap<Reverse<(u32, usize)>> =
        (0..n).filter(|&i| preds[i] == 0 && Some(i) != last).map(|i| Reverse((0, i))).collect();
    let mut ready: BTreeSet<(Reverse<u32>, usize)> = BTreeSet::new();
    let mut left = n - usize::from(last.is_some());
    let (mut rows, mut cycle): (Vec<Row>, u32) = (Vec::new(), 0);
    let most = match at_once {
        0 => usize::from(machine.issue.width),
        most => most.min(usize::from(machine.issue.width)),
    };
    while left > 0 {
        let mut row = Row::default();
        while let Some(&Reverse((at, i))) = later.peek()
            && at <= cycle
        {
            later.pop();
            ready.insert(key(i));
        }
        // An instruction that did not fit in the row will not fit when it is fuller, so each is tried
        // once. An edge of zero cycles may make another one ready within the cycle; the search then
        // goes on from that one.
        let mut from = Included((Reverse(u32::MAX), 0));
        while row.insts.len() < most {
            let mut rest = ready.range((from, Unbounded));
            let Some(&placed) = rest.find(|r| row.place(machine, &insts[r.1])) else { break };
            ready.remove(&placed);
            let i = placed.1;
            from = Excluded(placed);
            issue[i] = cycle;
            left -= 1;
            for &(s, cycles) in &succs[i] {
                preds[s] -= 1;
                earliest[s] = earliest[s].max(cycle + cycles);
                if preds[s] == 0 && Some(s) != last {
                    if earliest[s] > cycle {
                        later.push(Reverse((earliest[s], s)));
                    } else {
                        ready.insert(key(s));
                        if let Excluded(at) | Included(at) = from
                            && key(s) < at
                        {
                            from = Included(key(s));
                        }
                    }
                }
            }
        }
        rows.push(row);
        cycle += 1;
    }
    (rows, issue)
}

/// Rows as bundles. Empty rows become no-operations of several cycles, or nothing on a machine with
/// interlocks.
pub fn bundles(machine: &Machine, rows: Vec<Row>) -> Result<Vec<Bundle>, CompileError> {
    let mut nops: Vec<(u32, InstrId)> = machine
        .instrs
        .iter()
        .enumerate()
        .filter(|(_, i)| i.semantics.is_empty() && i.operands.is_empty())
        .map(|(id, i)| (i.issue_cycles, InstrId(id as u16)))
        .collect();
    nops.sort();
    let mut out = Vec::new();
    let mut idle = 0u32;
    let flush = |idle: &mut u32, out: &mut Vec<Bundle>| -> Result<(), CompileError> {
        while *idle > 0 {
            let best = nops.iter().rev().find(|n| n.0 <= *idle);
            let &(cycles, instr) =
                best.ok_or_else(|| CompileError::Internal(format!("{} has no one-cycle no-operation", machine.name)))?;
            let nop = Inst {
                instr,
                operands: Default::default(),
                space: ciphermill_ir::Space::Linear,
                trap: None,
                role: ciphermill_program::Role::Overhead,
                predicate: None,
                loc: 0,
            };
            out.push(Bundle { insts: [nop].into_iter().collect() });
            *idle -= cycles;
        }
        Ok(())
    };
    for row in rows {
        if row.insts.is_empty() {
            idle += u32::from(!machine.issue.interlock);
        } else {
            flush(&mut idle, &mut out)?;
            out.push(Bundle { insts: row.insts.into_iter().collect() });
        }
    }
    flush(&mut idle, &mut out)?;
    Ok(out)
}
