//! A trace of blocks as instructions that read and make values, whatever places these have.
//!
//! A value is what a place holds at the trace's entry, or what an instruction makes; moves
//! make none. So the first allocation's moves, loads and stores are gone from here.

use super::second::Second;
use super::trace::Trace;
use ciphermill_vcode::{Allocated, Place, Step};
use ciphermill_vcode::places;
use ciphermill_vcode::{VInst, VKind, VOp};
use ciphermill_machine::Reg;
use std::collections::HashMap;

pub type Value = usize;

/// Registers by their numbers among those that may be used.
pub type Set = u64;

pub fn members(set: Set) -> impl Iterator<Item = usize> {
    let some = |s: Set| (s != 0).then_some(s);
    std::iter::successors(some(set), move |&s| some(s & (s - 1))).map(|s| s.trailing_zeros() as usize)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Use,
    /// Read, and its register is that of the result, which is the next operand.
    Overwritten,
    Result,
    Def,
}

#[derive(Clone, Debug)]
pub struct Operand {
    pub role: Role,
    pub value: Value,
    /// Registers it may be in.
    pub within: Set,
    /// The machine has an instruction that reads it in memory.
    pub memory: bool,
}

/// Values in the places that a block begins with.
pub type Places = Vec<(Place, Value)>;

#[derive(Clone, Debug)]
pub struct Node {
    /// Of the instruction in its block.
    pub index: usize,
    /// In the order of places in [`Step::Inst`].
    pub operands: Vec<Operand>,
    /// What it writes beside its operands.
    pub destroyed: Set,
    /// It ends a block of the trace, with these blocks beside the trace's next, and what they
    /// begin with.
    pub sides: Option<Vec<(usize, Places)>>,
}

/// Where a value is read; the trace's exit counts as an instruction behind the last.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    pub at: usize,
    /// It can be read in memory there.
    pub memory: bool,
}

pub struct Code {
    pub nodes: Vec<Node>,
    pub entry: Places,
    pub exit: Places,
    /// Any other places would do at the exit.
    pub open: bool,
    /// What ends the trace behind its exit.
    pub end: Option<usize>,
    /// For each value, in order.
    pub uses: Vec<Vec<Use>>,
    pub registers: Vec<Reg>,
    /// Those that need not be saved, or are saved anyway.
    pub usable: Set,
    /// Slots of the function.
    pub slots: u32,
}

/// What places hold while a trace is gone through.
#[derive(Default)]
struct Held {
    values: HashMap<Place, Value>,
    entry: Places,
    count: usize,
}

impl Held {
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

    fn all(&mut self, places: &places::Places) -> Places {
        places.iter().map(|p| (p, self.read(p))).collect()
    }
}

impl Code {
    /// None for a trace that the second allocation does not understand. `ins` are the places
    /// read in each block before they are written.
    pub fn new(second: &Second, trace: &Trace, allocated: &Allocated, ins: &[places::Places]) -> Option<Code> {
        let registers = second.registers;
        if registers.allocatable.len() > Set::BITS as usize {
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
        let mut held = Held::default();
        for (n, &b) in trace.blocks.iter().enumerate() {
            let block = &second.func.blocks[b];
            let succs = block.succs.iter().map(|s| s.0 as usize);
            let (steps, next) = (&allocated.blocks[b], trace.blocks.get(n + 1));
            for (at, step) in steps.iter().enumerate() {
                let (index, places) = match step {
                    Step::Move { from, to } => {
                        let v = held.read(*from);
                        held.values.insert(*to, v);
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
                        let sides = succs.clone().filter(|s| s != next).map(|s| (s, held.all(&ins[s]))).collect();
                        code.nodes.push(Node { index, operands: Vec::new(), destroyed: 0, sides: Some(sides) });
                    }
                    _ => code.nodes.push(code.node(second, inst, index, places, &mut held)?),
                }
            }
            if next.is_none() {
                let behind: places::Places = succs.flat_map(|s| ins[s].iter()).collect();
                code.exit = held.all(&behind);
            }
        }
        let known = |p: &Place| matches!(p, Place::Slot(_)) || matches!(p, Place::Reg(r) if code.registers.contains(r));
        if !held.entry.iter().chain(&code.exit).all(|(p, _)| known(p)) {
            return None;
        }
        code.entry = held.entry;
        code.count_uses(held.count);
        Some(code)
    }

    /// Values that change their places and nothing else: moves are all that is to be found.
    pub fn moves(&self, entry: Places, exit: Places) -> Code {
        let values = self.uses.len();
        let (registers, usable, slots) = (self.registers.clone(), self.usable, self.slots);
        let mut code =
            Code { nodes: Vec::new(), entry, exit, open: false, end: None, uses: Vec::new(), registers, usable, slots };
        code.count_uses(values);
        code
    }

    /// Other places at the entry and at the exit; at the exit none where any will do.
    pub fn aim(&mut self, entry: Places, exit: Option<Places>) {
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

    fn set<'r>(&self, list: impl IntoIterator<Item = &'r Reg>) -> Set {
        let number = |r: &Reg| self.registers.iter().position(|a| a == r);
        list.into_iter().filter_map(number).fold(0, |s, r| s | 1 << r)
    }

    fn node(&self, second: &Second, inst: &VInst, index: usize, places: &[Place], held: &mut Held) -> Option<Node> {
        let instr = &second.machine.instrs[usize::from(inst.instr.0)];
        let mut shape: Vec<(Role, Set, bool)> = Vec::with_capacity(places.len());
        for (k, op) in inst.ops.iter().enumerate() {
            let within = match instr.only.iter().find(|o| o.0 == k) {
                Some((_, list)) if !list.is_empty() => self.set(list) & self.usable,
                _ => self.usable,
            };
            let memory =
                inst.kind == VKind::Normal && inst.mem.is_none() && second.memory.form(inst.instr, k).is_some();
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
            shape.iter().zip(places).map(|(s, p)| reads(s.0).then(|| held.read(*p))).collect();
        for (v, place) in values.iter_mut().zip(places).filter(|(v, _)| v.is_none()) {
            let made = held.fresh();
            held.values.insert(*place, made);
            *v = Some(made);
        }
        let operand = |((role, within, memory), value): ((Role, Set, bool), Option<Value>)| {
            value.map(|value| Operand { role, value, within, memory })
        };
        let operands = shape.into_iter().zip(values).map(operand).collect::<Option<Vec<_>>>()?;
        let destroyed = match inst.kind {
            VKind::Call => self.set(&second.registers.clobbered),
            _ => self.set(&second.facts.fixed_writes(inst.instr).collect::<Vec<_>>()),
        };
        let given = self.set(inst.fixed_defs.iter().map(|d| &d.1));
        Some(Node { index, operands, destroyed: destroyed & !given, sides: None })
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
            for (_, v) in node.sides.iter().flatten().flat_map(|s| &s.1) {
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
