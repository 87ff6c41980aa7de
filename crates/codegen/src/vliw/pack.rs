//! Straight code into bundles.
//!
//! A list scheduler, cycle by cycle, longest path first. A result may be read
//! from the cycle in which it lands; until then its register holds the old
//! value, which instructions in between may still read. Two results for one
//! register land in the order in which they were meant. A block leaves nothing
//! under way: control passes on when the last result has landed, and a
//! branch is started early enough for its delay slots to end just then.
//!
//! A machine that waits for operands by itself (`issue.interlock`) gets the same
//! bundles without the empty cycles between them, and what is under way when a
//! block ends may stay so.
//!
//! A call ends a block here: the return address is that of the next one. On an
//! exposed pipeline it is put into its register by the two instructions of
//! `[abi.link]`; elsewhere the call does so, and stands alone.

use crate::CompileError;
use crate::banks::{Set, meet};
use crate::finish::{Finish, Laid, PInst, aimed, control};
use crate::schedule::Node;
use crate::vcode::VKind;
use crate::verified;
use crate::vliw::kernel;
use crate::vliw::sides::{Sided, settle};
use ciphermill_machine::{Instr, InstrId, InstrKind, Machine, Reg, UnitId};
use ciphermill_program::{Block, Bundle, Inst, Operand};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::ops::Bound::{Excluded, Included, Unbounded};

/// What one cycle's instructions occupy.
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
    /// Does a variant with these operands find its unit and paths free?
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

    /// Place an instruction here, if one of its variants fits.
    fn place(&mut self, machine: &Machine, sided: &Sided) -> bool {
        let (inst, banks) = (&sided.inst.inst, sided.inst.mem.map_or(0, |m| m.banks));
        if self.banks.iter().any(|&b| meet(b, banks)) {
            return false;
        }
        for &variant in &sided.variants {
            let Some(unit) = self.fits(machine, variant, &inst.operands) else { continue };
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
            return true;
        }
        false
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

/// Cycles between two instructions: the second issues at least so many later.
type Edge = (usize, u32);

/// Dependences on an exposed pipeline.
fn edges(nodes: &[Node]) -> Vec<Vec<Edge>> {
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

/// Emit a block, and those that calls cut off it.
pub fn emit(
    finish: &Finish<'_>,
    body: Vec<PInst>,
    end: Option<PInst>,
    loop_depth: u8,
    out: &mut Laid,
) -> Result<(), CompileError> {
    let mut segment = Vec::new();
    for p in body {
        if p.kind == VKind::Kernel {
            let number = p.inst.operands.iter().find_map(|o| if let Operand::Imm(n) = o { Some(*n as usize) } else { None });
            let Some((number, kernel)) = number.and_then(|n| Some((n, finish.kernels.get(n)?))) else {
                return Err(CompileError::Internal("a pipelined loop is lost".into()));
            };
            straight(finish, std::mem::take(&mut segment), None, loop_depth, out)?;
            let (from, aside) = (out.blocks.len(), out.aside.len());
            let at = kernel::emit::emit(finish.machine, kernel, out)?;
            out.kernels.insert(number, at);
            finish.checker.kernel(kernel, out, from, aside)?;
            continue;
        }
        if p.kind != VKind::Call {
            segment.push(p);
            continue;
        }
        if finish.machine.issue.interlock {
            straight(finish, std::mem::take(&mut segment), None, loop_depth, out)?;
            out.blocks.push(Block { bundles: vec![Bundle { insts: [p.inst].into_iter().collect() }], loop_depth });
            continue;
        }
        let back = out.fresh();
        let jump = call(finish, p, back, &mut segment)?;
        straight(finish, std::mem::take(&mut segment), Some(jump), loop_depth, out)?;
        out.label(back);
    }
    straight(finish, segment, end, loop_depth, out)
}

/// The two instructions that load the return address, and the jump.
fn call(finish: &Finish<'_>, p: PInst, back: u32, segment: &mut Vec<PInst>) -> Result<PInst, CompileError> {
    let machine = finish.machine;
    let Some(link) = &machine.abi.link else {
        return Err(CompileError::Unsupported(format!(
            "calls on {} need [abi.link] in its machine file",
            machine.name
        )));
    };
    for instr in [link.low, link.high] {
        segment.push(aimed(finish.frame.inst(instr, &[], 0), back));
    }
    let direct = machine.instrs[usize::from(p.inst.instr.0)].kind == InstrKind::Call;
    let mut jump = p.clone();
    jump.inst.instr = if direct { machine.abi.ops.jump } else { link.jump_indirect };
    Ok(control(jump))
}

/// Schedule straight code and the jump that ends it.
fn straight(
    finish: &Finish<'_>,
    body: Vec<PInst>,
    end: Option<PInst>,
    loop_depth: u8,
    out: &mut Laid,
) -> Result<(), CompileError> {
    let machine = finish.machine;
    let mut before = verified::before(&body, end.as_ref(), &[]);
    let given = body.len() + usize::from(end.is_some());
    let mut insts: Vec<Sided> = Vec::new();
    for p in body {
        settle(finish, p, &mut insts)?;
    }
    let has_end = end.is_some();
    if let Some(end) = end {
        settle(finish, end, &mut insts)?;
    }
    let nodes: Vec<Node> =
        insts.iter().map(|s| finish.facts.node(machine, &s.inst.inst, s.inst.kind, s.inst.mem)).collect();
    let succs = edges(&nodes);
    let last = has_end.then(|| insts.len() - 1);
    let (mut rows, issue) = if finish.schedule {
        list(machine, finish.at_once, &insts, &nodes, &succs, last)
    } else {
        in_order(machine, &insts, &succs, last)
    };

    // Nothing may be under way when control passes on.
    let landed = |i: usize| {
        let latency = nodes[i].writes.iter().map(|w| w.1).max().unwrap_or(1).max(1);
        issue[i] + latency
    };
    let exposed = (0..insts.len()).filter(|&i| !machine.issue.interlock && Some(i) != last);
    let quiet = exposed.map(landed).max().unwrap_or(0) as usize;
    match last {
        None => rows.resize_with(quiet.max(rows.len()), Row::default),
        Some(l) => {
            let jump = &insts[l];
            let behind = 1 + usize::from(machine.instrs[usize::from(jump.variants[0].0)].delay_slots);
            let mut ready = 0usize;
            for (i, list) in succs.iter().enumerate() {
                for &(_, cycles) in list.iter().filter(|e| e.0 == l) {
                    ready = ready.max(issue[i] as usize + cycles as usize);
                }
            }
            let mut at = ready.max(quiet.max(rows.len()).saturating_sub(behind));
            // What was stored before a trap is seen behind it, and a store in its cycle never happens.
            if jump.inst.kind == VKind::Trap {
                at = at.max(rows.len());
            }
            loop {
                if rows.len() < at + behind {
                    rows.resize_with(at + behind, Row::default);
                }
                if rows[at].place(machine, jump) {
                    break;
                }
                at += 1;
            }
        }
    }
    let block = Block { bundles: bundles(machine, rows)?, loop_depth };
    before.banks_apart = finish.schedule;
    if insts.len() > given {
        // Moves between clusters pass through them.
        before.scratch = verified::scratch(machine);
    }
    finish.checker.straight(&before, &block, out.blocks.len())?;
    out.blocks.push(block);
    Ok(())
}

/// One instruction a cycle, in the order given.
fn in_order(machine: &Machine, insts: &[Sided], succs: &[Vec<Edge>], last: Option<usize>) -> (Vec<Row>, Vec<u32>) {
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

/// As many instructions a cycle as fit, those with the longest way to the end
/// first; of those, no more than `at_once` unless it is 0.
fn list(
    machine: &Machine,
    at_once: usize,
    insts: &[Sided],
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
    // Those that nothing holds back but their cycle, and those that could issue now.
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
        // What does not fit into a row will not when more stands in it: nobody is asked twice,
        // but for those behind one that has only now become ready: zero-cycle edges let a
        // successor follow in the same cycle.
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

/// Rows as bundles. Empty ones become no-operations of several cycles, or
/// nothing where the machine waits by itself.
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
                guard: None,
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
