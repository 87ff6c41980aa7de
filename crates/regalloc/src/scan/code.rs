//! A block as instructions on values, whatever their places.
//!
//! Values of a block are numbered from 0 in the order in which they occur. Each stands for a virtual
//! register; a move of the program defines none, since its result is an alias of its source.

use super::question::Question;
use super::values::Names;
use crate::runs;
use ciphermill_machine::Reg;
use ciphermill_vcode::{Place, VInst, VKind, VOp, VReg};
use std::collections::{BTreeMap, HashMap};

pub type Value = usize;

/// By live value: instructions until its next use.
pub type Next = BTreeMap<VReg, usize>;

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

impl Role {
    pub fn reads(self) -> bool {
        matches!(self, Role::Use | Role::Overwritten)
    }
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
    /// In the order of places in [`ciphermill_vcode::Step::Inst`].
    pub operands: Vec<Operand>,
    /// Registers it clobbers.
    pub destroyed: RegSet,
    /// Operands whose registers rise.
    pub ascending: Vec<usize>,
}

/// A use of a value. Uses behind the block count as one, as many instructions behind its end as the
/// next of them is away.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    pub at: usize,
    /// It may be a memory operand there.
    pub memory: bool,
}

#[derive(Clone, Default)]
pub struct Code {
    pub nodes: Vec<Node>,
    /// Index of the branch or jump behind the nodes, which reads no register.
    pub end: Option<usize>,
    /// By value: the virtual register it stands for.
    pub names: Vec<VReg>,
    numbers: HashMap<VReg, Value>,
    /// By value, in order.
    pub uses: Vec<Vec<Use>>,
    /// By value: the slot of its web.
    pub own_slot: Vec<Option<u32>>,
    /// Slots up to this one belong to webs.
    pub web_slots: u32,
    /// By value: it is made in a block that runs less often, where a spill had better stand.
    pub made_outside: Vec<bool>,
    /// Values that are live where the block begins.
    pub live_in: Vec<Value>,
    /// By value: it is one of them.
    pub is_live_in: Vec<bool>,
    pub registers: Vec<Reg>,
    pub usable: RegSet,
    /// A slot that a value has left stays empty for so many steps, if there is another.
    pub slot_rest: usize,
}

/// Where a load behind a load is cheaper, reloads are brought together later. A spill into the slot that one of them
/// reads keeps them apart, so slots rest longer than spills and reloads of one place stand apart.
const SLOT_REST: usize = 16;

impl Code {
    /// Without instructions, for moves on an edge.
    pub fn empty(registers: &[Reg], usable: RegSet) -> Code {
        Code { registers: registers.to_vec(), usable, ..Code::default() }
    }

    /// None where an operand can be in no register.
    pub fn new(question: &Question, names: &Names, b: usize) -> Option<Code> {
        let mut code = Code::empty(&question.registers.allocatable, 0);
        code.usable = code.set(&code.registers);
        let reload = &question.machine.instrs[usize::from(question.machine.abi.ops.load.0)];
        code.slot_rest = if reload.least_issue_cycles() < reload.issue_cycles { SLOT_REST } else { 0 };
        let insts = &question.func.blocks[b].insts;
        for (index, inst) in insts.iter().enumerate().filter(|(_, i)| names.copied(i).is_none()) {
            let reads = inst.uses().next().is_some() || inst.defs().next().is_some();
            if matches!(inst.kind, VKind::Jump | VKind::Branch) && !reads {
                code.end = Some(index);
            } else {
                let node = code.node(question, names, inst, index)?;
                code.nodes.push(node);
            }
        }
        Some(code)
    }

    /// The number of a virtual register's value.
    pub fn value(&mut self, v: VReg) -> Value {
        let new = self.names.len();
        let value = *self.numbers.entry(v).or_insert(new);
        if value == new {
            self.names.push(v);
            self.uses.push(Vec::new());
        }
        value
    }

    /// The same, if it occurs.
    pub fn known(&self, v: VReg) -> Option<Value> {
        self.numbers.get(&v).copied()
    }

    pub fn number(&self, place: Place) -> Option<usize> {
        self.registers.iter().position(|r| place == Place::Reg(*r))
    }

    fn set<'r>(&self, list: impl IntoIterator<Item = &'r Reg>) -> RegSet {
        list.into_iter().filter_map(|r| self.number(Place::Reg(*r))).fold(0, |s, r| s | 1 << r)
    }

    fn node(&mut self, question: &Question, names: &Names, inst: &VInst, index: usize) -> Option<Node> {
        let instr = &question.machine.instrs[usize::from(inst.instr.0)];
        let mut all: Vec<(Role, VReg, RegSet, bool)> = Vec::new();
        for (k, op) in inst.ops.iter().enumerate() {
            let within = match instr.only.iter().find(|o| o.0 == k) {
                Some((_, list)) if !list.is_empty() => self.set(list),
                _ => self.usable,
            };
            let memory =
                inst.kind == VKind::Normal && inst.mem.is_none() && question.folds.folded(inst.instr, k).is_some();
            match *op {
                VOp::Use(v) => all.push((Role::Use, v, within, memory)),
                VOp::Def(v) => all.push((Role::Def, v, within, false)),
                VOp::Tied { used, def } => {
                    all.extend([(Role::Overwritten, used, within, false), (Role::Result, def, within, false)]);
                }
                _ => {}
            }
        }
        all.extend(inst.fixed_uses.iter().map(|(v, r)| (Role::Use, *v, self.set([r]), false)));
        all.extend(inst.fixed_defs.iter().map(|(v, r)| (Role::Def, *v, self.set([r]), false)));
        if all.iter().any(|o| o.2 == 0) {
            return None;
        }
        let operands: Vec<Operand> = all
            .into_iter()
            .map(|(role, v, within, memory)| Operand { role, value: self.value(names.of(v)), within, memory })
            .collect();
        let at = self.nodes.len();
        for o in operands.iter().filter(|o| o.role.reads()) {
            match self.uses[o.value].last_mut() {
                Some(u) if u.at == at => u.memory = false,
                _ => self.uses[o.value].push(Use { at, memory: o.memory }),
            }
        }
        let destroyed = match inst.kind {
            VKind::Call => self.set(&question.registers.clobbered),
            _ => self.set(&question.facts.fixed_writes(inst.instr).collect::<Vec<_>>()),
        };
        let given = self.set(inst.fixed_defs.iter().map(|d| &d.1));
        let ascending = instr.ascending.iter().map(|&k| runs::place_of(inst, k)).collect();
        Some(Node { index, operands, destroyed: destroyed & !given, ascending })
    }

    /// Adds what is live at the block's ends.
    pub fn set_live(&mut self, before: &Next, behind: &Next, names: &Names) {
        for (&v, &distance) in behind {
            let (value, at) = (self.value(v), self.nodes.len() + distance);
            self.uses[value].push(Use { at, memory: false });
        }
        let live_in = before.keys().map(|&v| self.value(v)).collect();
        self.begin(live_in, names);
    }

    /// Sets the live-in values, when all values are known.
    pub fn begin(&mut self, live_in: Vec<Value>, names: &Names) {
        self.is_live_in = vec![false; self.names.len()];
        live_in.iter().for_each(|&v| self.is_live_in[v] = true);
        self.live_in = live_in;
        self.made_outside.resize(self.names.len(), false);
        self.own_slot = self.names.iter().map(|v| names.slot(*v)).collect();
        self.web_slots = names.slots;
    }
}
