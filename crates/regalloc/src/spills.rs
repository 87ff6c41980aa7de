//! Moves that two-address instructions leave behind the allocator.
//!
//! An instruction that overwrites a source ties two values to one register.
//! Where the allocator has to split such a chain it keeps every link of it in
//! the chain's stack slot, read again or not. Here the moves between
//! instructions are gone over, after allocation:
//!
//! * a reload of what a register still holds becomes a move, or nothing;
//! * a copy is not read while the register it was made of holds the same;
//! * a reload that serves one use is left to that use, where the machine has an
//!   instruction that reads memory there ([`Memory`]);
//! * a move whose target nobody reads is dropped.
//!
//! What is known at the end of a block holds at the start of one that control
//! reaches from there alone, such as the block on a loop's back edge.
//!
//! Only machines with two-address instructions are looked at.

use ciphermill_vcode::{Allocated, Place, Step};
use ciphermill_vcode::Facts;
use ciphermill_vcode::places::Places;
use ciphermill_vcode::{VFunc, VInst, VKind, VOp};
use ciphermill_machine::print::{Names, statements};
use ciphermill_machine::sem::{Expr, Stmt};
use ciphermill_machine::{Instr, InstrId, InstrKind, Machine, OperandKind, Reg};
use smallvec::{SmallVec, smallvec};
use std::collections::{BTreeSet, HashMap};

/// Instructions that read at a base register and a displacement what others
/// read in a register.
pub struct Memory {
    forms: HashMap<(InstrId, usize), Form>,
}

/// Such an instruction, with what each of its operands is.
#[derive(Clone, Debug)]
pub struct Form {
    pub instr: InstrId,
    pub operands: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The other instruction's operand of this index.
    Same(usize),
    Base,
    Displacement,
}

/// Bytes of a value that has not all of a word, on machines that compute in 32 bits, too.
const NARROW: u8 = 4;

/// Stands for the value that is in a register here and in memory there.
const HERE: Expr = Expr::Temp(9999);

/// Nodes up to which semantics are compared with their `let`s put in.
const MOST_WRITTEN: usize = 4096;

impl Memory {
    /// Find them, by comparing semantics.
    pub fn new(machine: &Machine) -> Memory {
        let mut loads: HashMap<String, usize> = HashMap::new();
        for (i, instr) in machine.instrs.iter().enumerate() {
            if let Some(text) = loaded(machine, instr) {
                loads.entry(text).or_insert(i);
            }
        }
        let mut forms = HashMap::new();
        let list = if loads.is_empty() { &[] } else { &machine.instrs[..] };
        for (i, instr) in list.iter().enumerate().filter(|(_, i)| i.kind == InstrKind::Compute) {
            for (k, operand) in instr.operands.iter().enumerate() {
                if !matches!(operand.kind, OperandKind::Reg { def: false, used: true, .. }) {
                    continue;
                }
                let here = |e: &Expr| (*e == Expr::Operand(k)).then_some(HERE);
                let text = written(machine, instr, &here);
                let whole = |b: &usize| loaded_bits(&machine.instrs[*b]) == Some(machine.word_bits) || reads_low(instr, k);
                let found = loads.get(&text).filter(|b| whole(b));
                let found = found.and_then(|&b| Some((b, parts(instr, k, &machine.instrs[b])?)));
                if let Some((b, operands)) = found {
                    forms.insert((InstrId(i as u16), k), Form { instr: InstrId(b as u16), operands });
                }
            }
        }
        Memory { forms }
    }

    pub fn form(&self, instr: InstrId, operand: usize) -> Option<&Form> {
        self.forms.get(&(instr, operand))
    }
}

/// Base and displacement of the one word an instruction loads.
fn based(machine: &Machine, instr: &Instr) -> Option<(usize, usize)> {
    let mut found = BTreeSet::new();
    ciphermill_machine::for_each_expr(&instr.semantics, &mut |e| {
        if let Expr::Load { bytes, addr, .. } = e {
            let place = match &**addr {
                Expr::Bin { op: ciphermill_ir::BinOp::Add, a, b, .. } => match (&**a, &**b) {
                    (Expr::Operand(a), Expr::Imm(b)) if bytes * 8 == machine.word_bits || *bytes == NARROW && machine.computes_narrow() => Some((*a, *b)),
                    _ => None,
                },
                _ => None,
            };
            found.insert(place);
        }
    });
    let place = found.pop_first().flatten().filter(|_| found.is_empty())?;
    let wide = matches!(instr.operands[place.1].kind, OperandKind::Imm { min, max, .. } if max - min >= u32::MAX.into());
    (wide && instr.kind == InstrKind::Load).then_some(place)
}

fn loaded_bits(instr: &Instr) -> Option<u8> {
    let mut bits = None;
    ciphermill_machine::for_each_expr(&instr.semantics, &mut |e| {
        if let Expr::Load { bytes, .. } = e {
            bits = Some(bytes * 8);
        }
    });
    bits
}

/// Does the instruction read no more than 32 bits of its operand `k`, so that the low half of
/// a slot will do?
fn reads_low(instr: &Instr, k: usize) -> bool {
    fn low(e: &Expr, k: usize, cut: bool) -> bool {
        let cut = match e {
            Expr::Operand(i) => return *i != k || cut,
            Expr::Bin { bits, .. }
            | Expr::Un { bits, .. }
            | Expr::Cmp { bits, .. }
            | Expr::FlagsSub { bits, .. }
            | Expr::FlagsAdd { bits, .. }
            | Expr::FlagsLogic { bits, .. } => *bits <= 8 * NARROW,
            Expr::Slice { lo, width, .. } => lo + width <= 8 * NARROW,
            _ => false,
        };
        let mut all = true;
        e.children(|child| all &= low(child, k, cut));
        all
    }
    instr.semantics.iter().all(|s| match s {
        Stmt::Let { value, .. } | Stmt::Assign { value, .. } => low(value, k, false),
        Stmt::Store { addr, value, .. } => low(addr, k, false) && low(value, k, false),
        _ => true,
    })
}

/// The semantics of an instruction that loads, with what it loads left open.
fn loaded(machine: &Machine, instr: &Instr) -> Option<String> {
    based(machine, instr)?;
    Some(written(machine, instr, &|e| matches!(e, Expr::Load { .. }).then_some(HERE)))
}

/// Semantics as text, `let`s put in, and what `open` finds left open.
pub fn written(machine: &Machine, instr: &Instr, open: &dyn Fn(&Expr) -> Option<Expr>) -> String {
    let mut lets: HashMap<usize, Expr> = HashMap::new();
    let mut out = Vec::new();
    // Written out, `let`s that use each other have no bound. Two instructions that have so many
    // are not told to be the same unless they are written the same.
    let keep = whole(&instr.semantics) > MOST_WRITTEN;
    for s in &instr.semantics {
        let put = |e: &Expr| {
            replaced(e, &|e| match e {
                Expr::Temp(t) => lets.get(t).cloned(),
                e => open(e),
            })
        };
        let made = match s {
            Stmt::Let { temp, value } if keep => Stmt::Let { temp: *temp, value: put(value) },
            Stmt::Let { temp, value } => {
                let value = put(value);
                lets.insert(*temp, value);
                continue;
            }
            Stmt::Assign { dest, value } => Stmt::Assign { dest: dest.clone(), value: put(value) },
            Stmt::Store { bytes, addr, value } => Stmt::Store { bytes: *bytes, addr: put(addr), value: put(value) },
            other => other.clone(),
        };
        out.push(made);
    }
    let names = Names { word: machine.word_bits, operands: &instr.operands, regs: &machine.regs, tables: &machine.tables };
    statements(&out, names)
}

/// Nodes of semantics with their `let`s put in.
fn whole(stmts: &[Stmt]) -> usize {
    let mut lets: HashMap<usize, usize> = HashMap::new();
    let mut all = 0usize;
    for s in stmts {
        let mut size = 0usize;
        ciphermill_machine::for_each_expr(std::slice::from_ref(s), &mut |e| {
            let n = if let Expr::Temp(t) = e { lets.get(t).copied().unwrap_or(1) } else { 1 };
            size = size.saturating_add(n);
        });
        if let Stmt::Let { temp, .. } = s {
            lets.insert(*temp, size);
        } else {
            all = all.saturating_add(size);
        }
    }
    all
}

/// The expression with what `with` knows replaced, outermost first.
fn replaced(e: &Expr, with: &dyn Fn(&Expr) -> Option<Expr>) -> Expr {
    if let Some(new) = with(e) {
        return new;
    }
    let sub = |e: &Expr| Box::new(replaced(e, with));
    match e {
        Expr::Bin { op, bits, a, b } => Expr::Bin { op: *op, bits: *bits, a: sub(a), b: sub(b) },
        Expr::Un { op, bits, a } => Expr::Un { op: *op, bits: *bits, a: sub(a) },
        Expr::Cmp { op, bits, a, b } => Expr::Cmp { op: *op, bits: *bits, a: sub(a), b: sub(b) },
        Expr::Select { cond, then, els } => Expr::Select { cond: sub(cond), then: sub(then), els: sub(els) },
        Expr::Slice { a, lo, width } => Expr::Slice { a: sub(a), lo: *lo, width: *width },
        Expr::Load { bytes, signed, addr } => Expr::Load { bytes: *bytes, signed: *signed, addr: sub(addr) },
        Expr::FlagsSub { bits, a, b } => Expr::FlagsSub { bits: *bits, a: sub(a), b: sub(b) },
        Expr::FlagsAdd { bits, a, b } => Expr::FlagsAdd { bits: *bits, a: sub(a), b: sub(b) },
        Expr::FlagsLogic { bits, a } => Expr::FlagsLogic { bits: *bits, a: sub(a) },
        Expr::FlagsTest { op, flags } => Expr::FlagsTest { op: *op, flags: sub(flags) },
        other => other.clone(),
    }
}

/// Where the operands of `other` come from, when it reads operand `k` of
/// `instr` in memory.
fn parts(instr: &Instr, k: usize, other: &Instr) -> Option<Vec<Part>> {
    let (mut base, mut displacement) = (None, None);
    ciphermill_machine::for_each_expr(&other.semantics, &mut |e| {
        if let Expr::Load { addr, .. } = e
            && let Expr::Bin { a, b, .. } = &**addr
            && let (Expr::Operand(a), Expr::Imm(b)) = (&**a, &**b)
        {
            (base, displacement) = (Some(*a), Some(*b));
        }
    });
    let part = |(i, o): (usize, &ciphermill_machine::Operand)| match i {
        _ if Some(i) == base => Some(Part::Base),
        _ if Some(i) == displacement => Some(Part::Displacement),
        _ => {
            let same = instr.operands.iter().position(|p| p.name == o.name).filter(|&p| p != k)?;
            let only = |i: &Instr, at: usize| i.only.iter().find(|p| p.0 == at).map(|p| p.1.clone());
            (only(instr, same) == only(other, i)).then_some(Part::Same(same))
        }
    };
    let free = instr.only.iter().all(|o| o.0 != k);
    other.operands.iter().enumerate().map(part).collect::<Option<Vec<_>>>().filter(|_| free)
}

/// Does the machine overwrite sources?
pub fn two_address(machine: &Machine) -> bool {
    let ties = |i: &Instr| {
        i.selectable && i.operands.iter().any(|o| matches!(o.kind, OperandKind::Reg { def: true, used: true, .. }))
    };
    machine.issue.interlock && !machine.issue.explicit && machine.instrs.iter().any(ties)
}

/// What an instruction does with one of its places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    /// Operand of this index, which only reads.
    Use(usize),
    /// A read that must stay where it is.
    Bound,
    Def,
}

fn accesses(inst: &VInst) -> SmallVec<[Access; 6]> {
    let mut out = SmallVec::new();
    for (i, op) in inst.ops.iter().enumerate() {
        match op {
            VOp::Use(_) => out.push(Access::Use(i)),
            VOp::Def(_) => out.push(Access::Def),
            VOp::Tied { .. } => out.extend([Access::Bound, Access::Def]),
            _ => {}
        }
    }
    out.extend(inst.fixed_uses.iter().map(|_| Access::Bound));
    out.extend(inst.fixed_defs.iter().map(|_| Access::Def));
    out
}

type Touched = SmallVec<[Place; 4]>;

/// Values by number, each with the time since when its place has it.
#[derive(Clone, Default)]
struct Held {
    values: HashMap<Place, (u32, u32)>,
    count: u32,
}

impl Held {
    fn put(&mut self, place: Place, value: u32) {
        self.count += 1;
        self.values.insert(place, (value, self.count));
    }

    /// A value that nothing else has.
    fn fresh(&mut self, place: Place) -> u32 {
        let value = self.count + 1;
        self.put(place, value);
        value
    }

    fn value(&mut self, place: Place) -> u32 {
        match self.values.get(&place) {
            Some(h) => h.0,
            None => self.fresh(place),
        }
    }

    /// The register that has held the value longest.
    fn first(&self, value: u32) -> Option<Place> {
        let holders = self.values.iter().filter(|(p, h)| h.0 == value && matches!(p, Place::Reg(_)));
        holders.min_by_key(|(p, h)| (h.1, **p)).map(|(p, _)| *p)
    }
}

/// Goes over the moves of one function.
pub struct Cleaner<'a> {
    pub func: &'a VFunc,
    pub machine: &'a Machine,
    pub facts: &'a Facts,
    pub memory: &'a Memory,
    /// Registers that a call destroys.
    pub clobbered: &'a [Reg],
}

impl Cleaner<'_> {
    pub fn run(&self, allocated: &mut Allocated) {
        let only = self.only_predecessors();
        let mut ends: Vec<Option<Held>> = vec![None; allocated.blocks.len()];
        for (b, steps) in allocated.blocks.iter_mut().enumerate() {
            self.as_moves(b, steps);
            let known = only[b].and_then(|p| ends[p].clone()).unwrap_or_default();
            ends[b] = Some(self.forward(b, steps, known));
        }
        self.drop_dead(allocated);
        let (_, outs) = self.live(allocated);
        for (b, steps) in allocated.blocks.iter_mut().enumerate() {
            self.take_in(b, steps, &outs[b]);
        }
        self.drop_dead(allocated);
    }

    /// Moves of the program are moves like those of the allocator.
    fn as_moves(&self, b: usize, steps: &mut Vec<Step>) {
        for step in steps.iter_mut() {
            let Step::Inst(index, places) = step else { continue };
            let inst = self.inst(b, *index);
            if inst.instr != self.machine.abi.ops.mov || inst.kind != VKind::Normal {
                continue;
            }
            let (from, to) = match (&inst.ops[..], &places[..]) {
                ([VOp::Def(_), VOp::Use(_)], &[to, from]) | ([VOp::Use(_), VOp::Def(_)], &[from, to]) => (from, to),
                _ => continue,
            };
            *step = Step::Move { from, to };
        }
        steps.retain(|s| !matches!(s, Step::Move { from, to } if from == to));
    }

    /// For each block the one that control comes from, where that is only one.
    fn only_predecessors(&self) -> Vec<Option<usize>> {
        let mut preds = vec![Vec::new(); self.func.blocks.len()];
        for (b, block) in self.func.blocks.iter().enumerate() {
            block.succs.iter().for_each(|s| preds[s.0 as usize].push(b));
        }
        // Control comes to the first block from outside, too.
        let only = |(b, list): (usize, Vec<usize>)| if let (&[p], true) = (&list[..], b > 0) { Some(p) } else { None };
        preds.into_iter().enumerate().map(only).collect()
    }

    fn inst(&self, b: usize, index: usize) -> &VInst {
        &self.func.blocks[b].insts[index]
    }

    /// Registers that an instruction writes beside its operands.
    fn destroyed(&self, inst: &VInst) -> SmallVec<[Reg; 4]> {
        match inst.kind {
            VKind::Call => self.clobbered.iter().copied().collect(),
            _ => self.facts.fixed_writes(inst.instr).collect(),
        }
    }

    /// What a register still holds is not loaded again, and a copy is not read
    /// while the register that it was made of holds the same. `held` is what is
    /// known at the block's start; at its end, what this gives.
    fn forward(&self, b: usize, steps: &mut Vec<Step>, mut held: Held) -> Held {
        let old = std::mem::take(steps);
        for mut step in old {
            match &mut step {
                Step::Move { from, to } => {
                    let value = held.value(*from);
                    if held.values.get(to).is_some_and(|h| h.0 == value) {
                        continue;
                    }
                    if let Some(first) = held.first(value) {
                        *from = first;
                    }
                    held.put(*to, value);
                }
                Step::Inst(index, places) => {
                    let inst = self.inst(b, *index);
                    let list = accesses(inst);
                    let only = &self.machine.instrs[usize::from(inst.instr.0)].only;
                    for (place, access) in places.iter_mut().zip(&list) {
                        if let (Access::Use(k), Place::Reg(_)) = (access, &place)
                            && only.iter().all(|o| o.0 != *k)
                            && inst.kind == VKind::Normal
                            && let Some(first) = held.values.get(place).and_then(|h| held.first(h.0))
                        {
                            *place = first;
                        }
                    }
                    for r in self.destroyed(inst) {
                        held.fresh(Place::Reg(r));
                    }
                    for (place, access) in places.iter().zip(&list) {
                        if *access == Access::Def {
                            held.fresh(*place);
                        }
                    }
                }
            }
            steps.push(step);
        }
        held
    }

    /// Reads and writes of a step, in that order.
    fn effects(&self, b: usize, step: &Step) -> (Touched, Touched) {
        match step {
            Step::Move { from, to } => (smallvec![*from], smallvec![*to]),
            Step::Inst(index, places) => {
                let inst = self.inst(b, *index);
                let (mut reads, mut writes) = (Touched::new(), Touched::new());
                for (place, access) in places.iter().zip(accesses(inst)) {
                    if access == Access::Def { writes.push(*place) } else { reads.push(*place) }
                }
                writes.extend(self.destroyed(inst).into_iter().map(Place::Reg));
                (reads, writes)
            }
        }
    }

    fn before(&self, b: usize, step: &Step, live: &mut Places) {
        match step {
            Step::Move { from, to } => {
                live.remove(*to);
                live.insert(*from);
            }
            Step::Inst(index, places) => {
                let inst = self.inst(b, *index);
                let list = accesses(inst);
                let all = || places.iter().copied().zip(&list);
                self.destroyed(inst).into_iter().for_each(|r| live.remove(Place::Reg(r)));
                all().filter(|(_, a)| **a == Access::Def).for_each(|(p, _)| live.remove(p));
                all().filter(|(_, a)| **a != Access::Def).for_each(|(p, _)| live.insert(p));
            }
        }
    }

    /// Places read in each block or behind it before they are written, and those behind it.
    pub fn live(&self, allocated: &Allocated) -> (Vec<Places>, Vec<Places>) {
        let n = allocated.blocks.len();
        let (mut ins, mut outs, mut written) = (vec![Places::default(); n], vec![Places::default(); n], Vec::new());
        for (b, steps) in allocated.blocks.iter().enumerate() {
            steps.iter().rev().for_each(|step| self.before(b, step, &mut ins[b]));
            written.push(self.written(b, steps));
        }
        let mut changed = true;
        while changed {
            changed = false;
            for b in (0..n).rev() {
                for (s, _) in &self.func.blocks[b].succs {
                    outs[b].join(&ins[*s as usize], None);
                }
                changed |= ins[b].join(&outs[b], Some(&written[b]));
            }
        }
        (ins, outs)
    }

    pub fn written(&self, b: usize, steps: &[Step]) -> Places {
        let mut written = Places::default();
        for step in steps {
            match step {
                Step::Move { to, .. } => written.insert(*to),
                Step::Inst(index, places) => {
                    let inst = self.inst(b, *index);
                    self.destroyed(inst).into_iter().for_each(|r| written.insert(Place::Reg(r)));
                    let made = places.iter().zip(accesses(inst)).filter(|(_, a)| *a == Access::Def);
                    made.for_each(|(p, _)| written.insert(*p));
                }
            }
        }
        written
    }

    pub fn drop_dead(&self, allocated: &mut Allocated) {
        let (_, outs) = self.live(allocated);
        for (b, out) in outs.into_iter().enumerate() {
            let mut live = out;
            let mut kept = Vec::new();
            for step in std::mem::take(&mut allocated.blocks[b]).into_iter().rev() {
                if matches!(&step, Step::Move { to, .. } if !live.contains(*to)) {
                    continue;
                }
                self.before(b, &step, &mut live);
                kept.push(step);
            }
            kept.reverse();
            allocated.blocks[b] = kept;
        }
    }

    /// Leave reloads that serve one use to that use.
    fn take_in(&self, b: usize, steps: &mut Vec<Step>, out: &Places) {
        let mut i = 0;
        while i < steps.len() {
            if let Step::Move { from: from @ Place::Slot(_), to: to @ Place::Reg(_) } = steps[i]
                && let Some((j, at)) = self.only_use(b, &steps[i + 1..], from, to, out)
            {
                match &mut steps[i + 1 + j] {
                    Step::Inst(_, places) => places[at] = from,
                    Step::Move { from: reg, .. } => *reg = from,
                }
                steps.remove(i);
                continue;
            }
            i += 1;
        }
    }

    /// The one read of `reg` before it is written again, where it can read
    /// `slot` instead: the step, and the place in it.
    fn only_use(&self, b: usize, steps: &[Step], slot: Place, reg: Place, out: &Places) -> Option<(usize, usize)> {
        let mut found = None;
        for (j, step) in steps.iter().enumerate() {
            let (reads, writes) = self.effects(b, step);
            let count = reads.iter().filter(|&&r| r == reg).count();
            if count > 1 || (count == 1 && found.is_some()) {
                return None;
            }
            if count == 1 {
                let (index, places) = match step {
                    Step::Inst(index, places) => (index, places),
                    Step::Move { to: Place::Reg(_), .. } => {
                        found = Some((j, 0));
                        if writes.contains(&reg) {
                            return found;
                        }
                        continue;
                    }
                    Step::Move { .. } => return None,
                };
                let inst = self.inst(b, *index);
                let in_memory = places.iter().any(|p| matches!(p, Place::Slot(_)));
                let (at, operand) = places.iter().zip(accesses(inst)).enumerate().find_map(|(n, (p, a))| match a {
                    Access::Use(k) if *p == reg => Some((n, k)),
                    _ => None,
                })?;
                self.memory.form(inst.instr, operand).filter(|_| !in_memory && inst.mem.is_none())?;
                found = Some((j, at));
            }
            if writes.contains(&reg) {
                return found;
            }
            if writes.contains(&slot) && found.is_none() {
                return None;
            }
        }
        found.filter(|_| !out.contains(reg))
    }
}
