//! One block, cycle by cycle.

use super::homes::{Homes, MOST_FILES, mov};
use super::variants::{Choice, choices};
use crate::bundle::Row;
use crate::list::{self, Edges};
use ciphermill_machine::{Machine, Reg};
use ciphermill_program::{Inst, Operand};
use ciphermill_vcode::liveness::Set;
use ciphermill_vcode::{Facts, Node, VFunc, VInst, VKind, VOp, VReg};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// How far beyond the oldest waiting instruction the scheduler looks: what is taken from farther on lives long. 30 and
/// 1000 cost 1 % each over ten programs whose loops call or branch (`tests/python/foreign`, C62x and C64x).
const WINDOW: usize = 200;
/// What a copy costs in the choice between files; at 0 the ten take 7 % more cycles.
const COPY: i64 = 6;
/// What a file costs all of whose registers have values, and in proportion one that has some left; at 0 they take 5 %
/// more, at 40 2 %. What an operand from another cluster costs, and where the other operands of a value's readers are,
/// was tried beside it and is worth nothing.
const PRESSURE: i64 = 20;

/// Cycles without an instruction after which the oldest is one that no unit takes with its operands where they are: the
/// code generator moves them.
const PATIENCE: usize = 100;

/// A block's instructions, with copies each behind what it copies, and the order they are to run in.
pub struct Done {
    pub insts: Vec<VInst>,
    pub order: Vec<usize>,
}

/// What stands in the schedule: an instruction of the block or a copy.
#[derive(Clone, Copy)]
enum Entry {
    Inst(usize),
    Copy(usize),
}

/// A copy, and where it stands at the earliest in the block.
struct Copied {
    behind: usize,
    inst: VInst,
}

struct Scheduler<'a, 'h, 'r> {
    machine: &'a Machine,
    homes: &'h mut Homes<'r>,
    insts: Vec<VInst>,
    nodes: Vec<Node>,
    edges: Edges,
    height: Vec<u32>,
    out: &'a Set,
    /// Reads of each value that are left.
    reads_left: HashMap<VReg, usize>,
    /// Values alive in each file.
    alive: Vec<usize>,
    /// The cycle from which a value can be read; from the start those from outside.
    lands: HashMap<VReg, usize>,
    /// Where each value is made.
    made: HashMap<VReg, usize>,
    copies: Vec<Copied>,
    /// By value and file: the copy.
    copy_of: HashMap<(VReg, u8), VReg>,
    rows: Vec<Row>,
    /// Rows before are behind a barrier.
    closed: usize,
    /// The instruction behind the last barrier.
    segment: usize,
    placed: Vec<(usize, Entry)>,
}

/// Schedules a block. Values are given their files as they are met. `out` are those that are alive behind it, of the so
/// many that the function had.
pub fn schedule(
    func: &mut VFunc,
    b: usize,
    machine: &Machine,
    facts: &Facts,
    homes: &mut Homes<'_>,
    (values, out): (u32, &Set),
) -> Done {
    let insts = func.blocks[b].insts.clone();
    let nodes: Vec<Node> = insts.iter().map(|i| facts.virtual_node(machine, i)).collect();
    let edges = list::edges(&nodes);
    let mut height = vec![0u32; nodes.len()];
    for i in (0..nodes.len()).rev() {
        let own = nodes[i].writes.iter().map(|w| w.1).max().unwrap_or(1);
        height[i] = edges.succs[i].iter().map(|&(s, cycles)| height[s] + cycles).max().unwrap_or(0).max(own);
    }
    let (mut reads_left, mut made) = (HashMap::new(), HashMap::new());
    for (i, inst) in insts.iter().enumerate() {
        for v in inst.uses() {
            *reads_left.entry(v).or_default() += 1;
        }
        made.extend(inst.defs().map(|d| (d, i)));
    }
    let mut scheduler = Scheduler {
        machine,
        alive: vec![0; homes.count()],
        homes,
        insts,
        nodes,
        edges,
        height,
        out,
        reads_left,
        lands: HashMap::new(),
        made,
        copies: Vec::new(),
        copy_of: HashMap::new(),
        rows: Vec::new(),
        closed: 0,
        segment: 0,
        placed: Vec::new(),
    };
    scheduler.count(values);
    scheduler.run(func);
    scheduler.done()
}

impl Scheduler<'_, '_, '_> {
    /// Values from before the block. Those that are nowhere yet are taken to be spread over the files.
    fn count(&mut self, values: u32) {
        let through = (0..values).map(VReg).filter(|v| self.out.contains(*v) && !self.made.contains_key(v));
        let read = self.reads_left.keys().copied().filter(|v| !self.made.contains_key(v) && !self.out.contains(*v));
        let mut nowhere = 0;
        for v in through.chain(read) {
            match self.homes.known(v) {
                Some(f) => self.alive[usize::from(f)] += 1,
                None => nowhere += 1,
            }
        }
        let files = self.alive.len();
        self.alive.iter_mut().enumerate().for_each(|(f, n)| *n += (nowhere + f) / files);
    }

    fn run(&mut self, func: &mut VFunc) {
        let n = self.insts.len();
        let mut preds = self.edges.preds.clone();
        let mut earliest = vec![0usize; n];
        let mut done = vec![false; n];
        // Those whose predecessors have all issued.
        let mut open: BTreeSet<(Reverse<u32>, usize)> =
            (0..n).filter(|&i| preds[i] == 0).map(|i| (Reverse(self.height[i]), i)).collect();
        let (mut oldest, mut cycle, mut since) = (0, 0, 0);
        while oldest < n {
            let end = oldest + WINDOW;
            let candidates: Vec<usize> =
                open.iter().map(|o| o.1).filter(|&i| i < end && earliest[i] <= cycle).collect();
            let mut issued = false;
            for i in candidates {
                if self.nodes[i].barrier || i == oldest && cycle - since > PATIENCE {
                    // All before it has issued.
                    cycle = cycle.max(self.rows.len());
                    self.barrier(i, cycle);
                } else if let Err(later) = self.issue(func, i, cycle, i == oldest) {
                    earliest[i] = later;
                    continue;
                }
                (issued, since) = (true, cycle);
                done[i] = true;
                open.remove(&(Reverse(self.height[i]), i));
                for &(s, cycles) in &self.edges.succs[i] {
                    preds[s] -= 1;
                    earliest[s] = earliest[s].max(cycle + cycles as usize);
                    if preds[s] == 0 {
                        open.insert((Reverse(self.height[s]), s));
                    }
                }
                if self.nodes[i].barrier {
                    break;
                }
            }
            while oldest < n && done[oldest] {
                oldest += 1;
            }
            // What may issue in the same cycle as what it waits for is looked for once more.
            let again = issued && open.iter().any(|&(_, i)| i < end && earliest[i] <= cycle);
            cycle += usize::from(!again);
        }
    }

    /// Issues an instruction, or says in which cycle it may be tried again.
    fn issue(&mut self, func: &mut VFunc, i: usize, cycle: usize, oldest: bool) -> Result<(), usize> {
        let mut found = choices(self.machine, self.homes, &self.insts[i]);
        found.retain(|c| oldest || self.has_room(i, c));
        found.sort_by_cached_key(|c| (self.price(i, c), c.variant));
        let mut waits = cycle + 1;
        for choice in &found {
            let Some(copied) = self.sources(func, choice, i, cycle, &mut waits) else { continue };
            let inst = bare(&self.insts[i], choice.variant, &copied);
            let banks = self.insts[i].mem.map_or(0, |m| m.banks);
            self.open(cycle);
            if !self.rows[cycle].place_as(self.machine, choice.variant, &inst, banks) {
                continue;
            }
            let used: Vec<VReg> = self.insts[i].uses().collect();
            for &(o, v) in &copied {
                if let VOp::Use(used) | VOp::Tied { used, .. } = &mut self.insts[i].ops[o] {
                    *used = v;
                }
            }
            self.decide(choice);
            self.stands(i, cycle, &used);
            return Ok(());
        }
        Err(waits)
    }

    fn open(&mut self, cycle: usize) {
        if self.rows.len() <= cycle {
            self.rows.resize_with(cycle + 1, Row::default);
        }
    }

    fn decide(&mut self, choice: &Choice) {
        for &(v, file) in &choice.decides {
            self.homes.decide(v, file);
        }
    }

    /// What nothing moves across: it is alone in its cycle.
    fn barrier(&mut self, i: usize, cycle: usize) {
        self.open(cycle);
        let inst = &self.insts[i];
        let fixed = inst.fixed_uses.iter().map(|&(v, r)| (v, self.machine.regs[usize::from(r.0)].file));
        let fixed: Vec<_> = fixed.filter_map(|(v, file)| Some((v, self.homes.number(file)?))).collect();
        for (v, file) in fixed {
            if self.homes.known(v).is_none() {
                self.homes.decide(v, file);
            }
        }
        if inst.kind != VKind::Params
            && let Some(best) = choices(self.machine, self.homes, inst).into_iter().min_by_key(|c| c.foreign.len())
        {
            self.decide(&best);
        }
        let used: Vec<VReg> = self.insts[i].uses().collect();
        self.stands(i, cycle, &used);
        // A call leaves few registers as they are.
        for f in std::mem::take(&mut self.copy_of).into_keys().map(|(_, f)| usize::from(f)) {
            self.alive[f] = self.alive[f].saturating_sub(1);
        }
        self.closed = cycle + 1;
        self.segment = i + 1;
    }

    fn is_read(&self, v: VReg) -> bool {
        self.reads_left.get(&v).is_some_and(|&n| n > 0) || self.out.contains(v)
    }

    /// One read of a value less.
    fn read(&mut self, v: VReg) {
        if let Some(n) = self.reads_left.get_mut(&v) {
            *n = n.saturating_sub(1);
        }
        if !self.is_read(v) {
            let home = usize::from(self.homes.of(v));
            self.alive[home] = self.alive[home].saturating_sub(1);
            for f in 0..self.alive.len() {
                let had = self.copy_of.remove(&(v, f as u8)).is_some();
                self.alive[f] = self.alive[f].saturating_sub(usize::from(had));
            }
        }
    }

    /// An instruction issues: what it used may end, and what it makes begins.
    fn stands(&mut self, i: usize, cycle: usize, used: &[VReg]) {
        used.iter().for_each(|&v| self.read(v));
        let latency = self.nodes[i].writes.iter().map(|w| w.1).max().unwrap_or(1) as usize;
        for v in self.insts[i].defs().collect::<Vec<_>>() {
            let file = usize::from(self.homes.of(v));
            self.alive[file] += usize::from(self.is_read(v));
            self.lands.insert(v, cycle + latency);
        }
        self.placed.push((cycle, Entry::Inst(i)));
    }

    /// Are there registers for the result and for what is copied?
    fn has_room(&self, i: usize, choice: &Choice) -> bool {
        let mut more = [0i64; MOST_FILES];
        if let Some(f) = choice.result {
            more[usize::from(f)] += 1;
        }
        for &(o, f) in &choice.foreign {
            let (VOp::Use(v) | VOp::Tied { used: v, .. }) = self.insts[i].ops[o] else { continue };
            more[usize::from(f)] += i64::from(!self.copy_of.contains_key(&(v, f)));
        }
        for v in self.insts[i].uses() {
            let times = self.insts[i].uses().filter(|u| *u == v).count();
            if !self.out.contains(v) && self.reads_left.get(&v) == Some(&times) {
                more[usize::from(self.homes.of(v))] -= 1;
            }
        }
        let fits = |(f, &more): (usize, &i64)| more <= 0 || self.alive[f] as i64 + more <= self.homes.sizes[f] as i64;
        more.iter().take(self.alive.len()).enumerate().all(fits)
    }

    /// What a choice costs beside the slot that it takes.
    fn price(&self, i: usize, choice: &Choice) -> i64 {
        let mut price = 0;
        for &(o, f) in &choice.foreign {
            let (VOp::Use(v) | VOp::Tied { used: v, .. }) = self.insts[i].ops[o] else { continue };
            price += COPY * i64::from(!self.copy_of.contains_key(&(v, f)));
        }
        price -= choice.decides.iter().map(|&(v, f)| i64::from(self.homes.vote(v, f))).sum::<i64>();
        let full =
            choice.result.map(usize::from).map(|f| PRESSURE * self.alive[f] as i64 / self.homes.sizes[f].max(1) as i64);
        price + full.unwrap_or(0)
    }

    /// Copies of the operands that are elsewhere, in earlier cycles. None where there is no room for one: it is made in
    /// this cycle then, if there is room, and the instruction waits for it.
    fn sources(
        &mut self,
        func: &mut VFunc,
        choice: &Choice,
        i: usize,
        cycle: usize,
        waits: &mut usize,
    ) -> Option<Vec<(usize, VReg)>> {
        let mut sources = Vec::new();
        for &(o, file) in &choice.foreign {
            let (VOp::Use(v) | VOp::Tied { used: v, .. }) = self.insts[i].ops[o] else { continue };
            let copy = match self.copy_of.get(&(v, file)) {
                Some(copy) => *copy,
                None => self.copy(func, v, file, cycle)?,
            };
            let lands = self.lands.get(&copy).copied().unwrap_or(0);
            if lands > cycle {
                *waits = lands;
                return None;
            }
            sources.push((o, copy));
        }
        Some(sources)
    }

    /// A copy of a value in another file, as late as it can be made for a reader in a cycle.
    fn copy(&mut self, func: &mut VFunc, v: VReg, file: u8, cycle: usize) -> Option<VReg> {
        self.homes.known(v)?;
        let first = self.lands.get(&v).copied().unwrap_or(0).max(self.closed);
        let mut inst = mov(self.homes.registers, v, VReg(u32::MAX));
        let variants = &self.machine.variants[usize::from(inst.instr.0)];
        let home = self.homes.of(v);
        self.open(cycle);
        // The last is the cycle itself: the reader waits then.
        let at = (first..cycle).rev().chain([cycle]).find(|&at| {
            variants.iter().any(|&variant| {
                let spec = &self.machine.instrs[usize::from(variant.0)].operands;
                let right = inst.ops.iter().zip(spec).all(|(op, spec)| {
                    let wanted = if matches!(op, VOp::Def(_)) { file } else { home };
                    matches!(spec.kind, ciphermill_machine::OperandKind::Reg { file: f, .. }
                        if self.homes.number(f) == Some(wanted))
                });
                let bare = bare(&inst, variant, &[]);
                right && self.rows[at].place_as(self.machine, variant, &bare, 0)
            })
        })?;
        let copy = self.homes.copy(func, file);
        for op in &mut inst.ops {
            if let VOp::Def(d) = op {
                *d = copy;
            }
        }
        let latency = self.machine.instrs[usize::from(inst.instr.0)].latency.max(1) as usize;
        self.lands.insert(copy, at + latency);
        self.copy_of.insert((v, file), copy);
        self.alive[usize::from(file)] += 1;
        self.placed.push((at, Entry::Copy(self.copies.len())));
        let behind = self.made.get(&v).map_or(0, |m| m + 1).max(self.segment);
        self.copies.push(Copied { behind, inst });
        Some(copy)
    }

    fn done(self) -> Done {
        let n = self.insts.len();
        let mut behind: Vec<Vec<usize>> = vec![Vec::new(); n + 1];
        self.copies.iter().enumerate().for_each(|(k, c)| behind[c.behind].push(k));
        let (mut insts, mut of_inst, mut of_copy) =
            (Vec::with_capacity(n + self.copies.len()), vec![0; n], vec![0; self.copies.len()]);
        for (i, inst) in self.insts.into_iter().enumerate() {
            for &k in &behind[i] {
                of_copy[k] = insts.len();
                insts.push(self.copies[k].inst.clone());
            }
            of_inst[i] = insts.len();
            insts.push(inst);
        }
        let mut placed: Vec<(usize, usize)> = Vec::with_capacity(insts.len());
        for (cycle, entry) in self.placed {
            placed.push(match entry {
                Entry::Inst(i) => (cycle, of_inst[i]),
                Entry::Copy(k) => (cycle, of_copy[k]),
            });
        }
        // Of one cycle what was scheduled first comes first: it may read what the next one overwrites.
        placed.sort_by_key(|p| p.0);
        Done { insts, order: placed.into_iter().map(|p| p.1).collect() }
    }
}

/// An instruction for the table of units and paths: of its values only which are the same counts.
fn bare(inst: &VInst, variant: ciphermill_machine::InstrId, copied: &[(usize, VReg)]) -> Inst {
    let operand = |(o, op): (usize, &VOp)| match *op {
        VOp::Use(v) | VOp::Def(v) | VOp::Tied { used: v, .. } => {
            let v = copied.iter().find(|c| c.0 == o).map_or(v, |c| c.1);
            Operand::Reg(Reg(v.0 as u16))
        }
        VOp::Phys(r) => Operand::Reg(r),
        VOp::Imm(v) => Operand::Imm(v),
        VOp::Const(c) => Operand::Imm(c as i64),
        VOp::Block(b) => Operand::Block(b),
        VOp::Func(f) => Operand::Func(f),
    };
    Inst {
        instr: variant,
        operands: inst.ops.iter().enumerate().map(operand).collect(),
        space: ciphermill_ir::Space::Linear,
        trap: None,
        role: inst.role,
        predicate: None,
        loc: 0,
    }
}
