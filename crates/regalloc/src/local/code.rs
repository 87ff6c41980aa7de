//! A trace as instructions on values, independent of places.
//!
//! Each live-in place and each result of an instruction is a value. Moves define none. So the moves,
//! reloads and spills of the first allocation are gone.

use super::allocator::LocalAllocator;
use super::trace::Trace;
use ciphermill_machine::Reg;
use ciphermill_vcode::places;
use ciphermill_vcode::{Allocated, Place, Step};
use ciphermill_vcode::{VInst, VKind, VOp};
use std::collections::HashMap;

pub type Value = usize;

/// A set of registers, by their index in [`Code::registers`].
pub type RegSet = u64;

pub fn members(set: RegSet) -> impl Iterator<Item = usize> {
    let some = |s: RegSet| (s != 0).then_some(s);
    std::iter::successors(some(set), move |&s| some(s & (s - 1))).map(|s| s.trailing_zeros() as usize)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Use,
    /// A tied source. The next operand is its result, in the same register.
    Overwritten,
    Result,
    Def,
}

#[derive(Clone, Debug)]
pub struct Operand {
    pub role: Role,
    pub value: Value,
    /// Registers it may be in.
    pub within: RegSet,
    /// It may be a memory operand.
    pub memory: bool,
}

/// Places of values at a point.
pub type Assignment = Vec<(Place, Value)>;

#[derive(Clone, Debug)]
pub struct Node {
    /// Index of the instruction in its block.
    pub index: usize,
    /// In the order of places in [`Step::Inst`].
    pub operands: Vec<Operand>,
    /// Registers it clobbers.
    pub destroyed: RegSet,
    /// For the end of a block that is not the trace's last: the other successors, with their live-in
    /// values.
    pub side_exits: Option<Vec<(usize, Assignment)>>,
}

/// A use of a value. The trace's exit counts as an instruction after the last.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    pub at: usize,
    /// It may be a memory operand there.
    pub memory: bool,
}

pub struct Code {
    pub nodes: Vec<Node>,
    pub entry: Assignment,
    pub exit: Assignment,
    /// The places in `exit` need not be kept to.
    pub open: bool,
    /// Index of the control instruction after the exit.
    pub end: Option<usize>,
    /// By value, in order.
    pub uses: Vec<Vec<Use>>,
    pub registers: Vec<Reg>,
    /// Caller-saved registers, and those that the function saves anyway.
    pub usable: RegSet,
    /// Stack slots of the function.
    pub slots: u32,
}

/// The value in each place while a trace is read.
#[derive(Default)]
struct Contents {
    values: HashMap<Place, Value>,
    entry: Assignment,
    count: usize,
}

impl Contents {
    fn fresh(&mut self) -> Value {
        self.count += 1;
        self.count - 1
    }

    fn read(&mut self, place: Place) -> Value {
        if let Some(&v) = self.values.get(&place) {
            return v;
        }
        let v = self.fresh();
        self.values.insert(place, v);
        self.entry.push((place, v));
        v
    }

    fn all(&mut self, places: &places::PlaceSet) -> Assignment {
        places.iter().map(|p| (p, self.read(p))).collect()
    }
}

impl Code {
    /// None for a trace that cannot be allocated locally. `ins` are the live-in places of each block.
    pub fn new(
        allocator: &LocalAllocator,
        trace: &Trace,
        allocated: &Allocated,
        ins: &[places::PlaceSet],
    ) -> Option<Code> {
        let registers = allocator.registers;
        if registers.allocatable.len() > RegSet::BITS as usize {
            return None;
        }
        let mut code = Code {
            nodes: Vec::new(),
            entry: Vec::new(),
            exit: Vec::new(),
            open: false,
            end: None,
            uses: Vec::new(),
            registers: registers.allocatable.clone(),
            usable: 0,
            slots: allocated.slots,
        };
        let free = |r: &&Reg| !registers.callee_saved.contains(r) || allocated.saved.contains(r);
        code.usable = code.set(registers.allocatable.iter().filter(free));
        let mut contents = Contents::default();
        for (n, &b) in trace.blocks.iter().enumerate() {
            let block = &allocator.func.blocks[b];
            let succs = block.succs.iter().map(|s| s.0 as usize);
            let (steps, next) = (&allocated.blocks[b], trace.blocks.get(n + 1));
            for (at, step) in steps.iter().enumerate() {
                let (index, places) = match step {
                    Step::Move { from, to } => {
                        let v = contents.read(*from);
                        contents.values.insert(*to, v);
                        continue;
                    }
                    Step::Inst(index, places) => (*index, places),
                };
                let inst = &block.insts[index];
                let ends = matches!(inst.kind, VKind::Branch | VKind::Jump);
                if inst.kind == VKind::Kernel
                    || ends && !places.is_empty()
                    || ends != (at + 1 == steps.len() && !block.succs.is_empty())
                {
                    return None;
                }
                match next {
                    None if ends => code.end = Some(index),
                    Some(next) if ends => {
                        let side_exits =
                            succs.clone().filter(|s| s != next).map(|s| (s, contents.all(&ins[s]))).collect();
                        code.nodes.push(Node {
                            index,
                            operands: Vec::new(),
                            destroyed: 0,
                            side_exits: Some(side_exits),
                        });
                    }
                    _ => code.nodes.push(code.node(allocator, inst, index, places, &mut contents)?),
                }
            }
            if next.is_none() {
                let behind: places::PlaceSet = succs.flat_map(|s| ins[s].iter()).collect();
                code.exit = contents.all(&behind);
            }
        }
        let known = |p: &Place| matches!(p, Place::Slot(_)) || matches!(p, Place::Reg(r) if code.registers.contains(r));
        if !contents.entry.iter().chain(&code.exit).all(|(p, _)| known(p)) {
            return None;
        }
        code.entry = contents.entry;
        code.count_uses(contents.count);
        Some(code)
    }

    /// Code without instructions, whose allocation is a parallel move from `entry` to `exit`.
    pub fn moves(&self, entry: Assignment, exit: Assignment) -> Code {
        let values = self.uses.len();
        let (registers, usable, slots) = (self.registers.clone(), self.usable, self.slots);
        let mut code =
            Code { nodes: Vec::new(), entry, exit, open: false, end: None, uses: Vec::new(), registers, usable, slots };
        code.count_uses(values);
        code
    }

    /// Sets other places at entry and exit. Without `exit` the values may end up anywhere.
    pub fn retarget(&mut self, entry: Assignment, exit: Option<Assignment>) {
        let end = self.nodes.len();
        for (_, v) in &self.exit {
            self.uses[*v].retain(|u| u.at < end);
        }
        self.open = exit.is_none();
        self.exit = exit.unwrap_or_else(|| std::mem::take(&mut self.exit));
        for (place, v) in self.exit.clone() {
            self.use_at_exit(v, self.open || matches!(place, Place::Slot(_)));
        }
        self.entry = entry;
    }

    fn use_at_exit(&mut self, v: Value, memory: bool) {
        let at = self.nodes.len();
        match self.uses[v].last_mut() {
            Some(u) if u.at == at => u.memory &= memory,
            _ => self.uses[v].push(Use { at, memory }),
        }
    }

    fn set<'r>(&self, list: impl IntoIterator<Item = &'r Reg>) -> RegSet {
        let number = |r: &Reg| self.registers.iter().position(|a| a == r);
        list.into_iter().filter_map(number).fold(0, |s, r| s | 1 << r)
    }

    fn node(
        &self,
        allocator: &LocalAllocator,
        inst: &VInst,
        index: usize,
        places: &[Place],
        contents: &mut Contents,
    ) -> Option<Node> {
        let instr = &allocator.machine.instrs[usize::from(inst.instr.0)];
        let mut shape: Vec<(Role, RegSet, bool)> = Vec::with_capacity(places.len());
        for (k, op) in inst.ops.iter().enumerate() {
            let within = match instr.only.iter().find(|o| o.0 == k) {
                Some((_, list)) if !list.is_empty() => self.set(list) & self.usable,
                _ => self.usable,
            };
            let memory =
                inst.kind == VKind::Normal && inst.mem.is_none() && allocator.folds.folded(inst.instr, k).is_some();
            match op {
                VOp::Use(_) => shape.push((Role::Use, within, memory)),
                VOp::Def(_) => shape.push((Role::Def, within, false)),
                VOp::Tied { .. } => shape.extend([(Role::Overwritten, within, false), (Role::Result, within, false)]),
                _ => {}
            }
        }
        shape.extend(inst.fixed_uses.iter().map(|(_, r)| (Role::Use, self.set([r]), false)));
        shape.extend(inst.fixed_defs.iter().map(|(_, r)| (Role::Def, self.set([r]), false)));
        if shape.len() != places.len() || shape.iter().any(|s| s.1 == 0) {
            return None;
        }
        let reads = |role: Role| matches!(role, Role::Use | Role::Overwritten);
        let mut values: Vec<Option<Value>> =
            shape.iter().zip(places).map(|(s, p)| reads(s.0).then(|| contents.read(*p))).collect();
        for (v, place) in values.iter_mut().zip(places).filter(|(v, _)| v.is_none()) {
            let made = contents.fresh();
            contents.values.insert(*place, made);
            *v = Some(made);
        }
        let operand = |((role, within, memory), value): ((Role, RegSet, bool), Option<Value>)| {
            value.map(|value| Operand { role, value, within, memory })
        };
        let operands = shape.into_iter().zip(values).map(operand).collect::<Option<Vec<_>>>()?;
        let destroyed = match inst.kind {
            VKind::Call => self.set(&allocator.registers.clobbered),
            _ => self.set(&allocator.facts.fixed_writes(inst.instr).collect::<Vec<_>>()),
        };
        let given = self.set(inst.fixed_defs.iter().map(|d| &d.1));
        Some(Node { index, operands, destroyed: destroyed & !given, side_exits: None })
    }

    pub fn count_uses(&mut self, values: usize) {
        self.uses = vec![Vec::new(); values];
        for (at, node) in self.nodes.iter().enumerate() {
            for o in node.operands.iter().filter(|o| matches!(o.role, Role::Use | Role::Overwritten)) {
                match self.uses[o.value].last_mut() {
                    Some(u) if u.at == at => u.memory = false,
                    _ => self.uses[o.value].push(Use { at, memory: o.memory }),
                }
            }
            for (_, v) in node.side_exits.iter().flatten().flat_map(|s| &s.1) {
                match self.uses[*v].last_mut() {
                    Some(u) if u.at == at => {}
                    _ => self.uses[*v].push(Use { at, memory: true }),
                }
            }
        }
        for (place, v) in self.exit.clone() {
            self.use_at_exit(v, matches!(place, Place::Slot(_)));
        }
    }
}
