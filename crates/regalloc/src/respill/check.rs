//! The checker of the second allocation.
//!
//! It knows nothing of how places were chosen. It follows which virtual registers each place
//! holds the value of, through all blocks until nothing changes (what a place holds at a
//! block's entry is what it holds at the end of all blocks before), and asks at each
//! instruction whether what it reads is there, in a place that it can read. This is what
//! `regalloc2`'s own checker does, with two things more: moves of the program may be gone,
//! a virtual register that one defines being another name of the one that it reads; and an
//! operand may be in memory where the machine has an instruction for that.

use ciphermill_vcode::{Place, Step};
use crate::spills::Memory;
use ciphermill_vcode::{VBlock, VFunc, VInst, VKind, VOp, VReg};
use ciphermill_machine::sem::{Dest, Stmt};
use ciphermill_machine::{Machine, Reg};
use std::collections::{BTreeSet, HashMap, HashSet};

pub struct Checker<'a> {
    pub func: &'a VFunc,
    pub machine: &'a Machine,
    pub memory: &'a Memory,
    /// Registers that a call destroys.
    pub clobbered: &'a [Reg],
    /// Registers that may be written.
    pub writable: &'a dyn Fn(Reg) -> bool,
    pub slots: u32,
}

/// What an instruction does with one of its places.
struct Does<'a> {
    value: VReg,
    writes: bool,
    /// The result of a tied pair, whose source stands before it.
    tied: bool,
    /// Of the instruction's own operands, one that is only read.
    operand: Option<usize>,
    within: Option<&'a [Reg]>,
}

/// Which values places hold.
type Held = HashMap<Place, BTreeSet<VReg>>;

impl Checker<'_> {
    /// # Errors
    /// A sentence about the first instruction that does not find what it reads.
    pub fn check(&self, blocks: &[Vec<Step>]) -> Result<(), String> {
        for (b, (block, steps)) in self.func.blocks.iter().zip(blocks).enumerate() {
            let name = |e: String| format!("block {b}: {e}");
            self.complete(block, steps).map_err(name)?;
            steps.iter().try_for_each(|step| self.possible(block, step)).map_err(name)?;
        }
        let names = self.names();
        let mut starts: Vec<Option<Held>> = vec![None; blocks.len()];
        starts[0] = Some(Held::new());
        let mut todo = BTreeSet::from([0]);
        while let Some(b) = todo.pop_first() {
            let Some(mut held) = starts[b].clone() else { continue };
            let block = &self.func.blocks[b];
            for step in &blocks[b] {
                // What is missing may be so only for now.
                let _ = self.step(block, step, &names, &mut held);
            }
            for (to, args) in &block.succs {
                let to = *to as usize;
                let mut there = entered(&held, &self.func.blocks[to].params, args, &names);
                if let Some(old) = &starts[to] {
                    there = common(old, &there);
                }
                if starts[to].as_ref() != Some(&there) {
                    starts[to] = Some(there);
                    todo.insert(to);
                }
            }
        }
        for (b, (block, steps)) in self.func.blocks.iter().zip(blocks).enumerate() {
            let Some(mut held) = starts[b].clone() else { continue };
            steps
                .iter()
                .try_for_each(|step| self.step(block, step, &names, &mut held))
                .map_err(|e| format!("block {b}: {e}"))?;
        }
        Ok(())
    }

    fn moves(&self, inst: &VInst) -> Option<(VReg, VReg)> {
        match inst.ops[..] {
            _ if inst.instr != self.machine.abi.ops.mov || inst.kind != VKind::Normal => None,
            [VOp::Def(to), VOp::Use(from)] | [VOp::Use(from), VOp::Def(to)] => Some((to, from)),
            _ => None,
        }
    }

    /// For each virtual register the one whose value it has.
    fn names(&self) -> Vec<VReg> {
        let mut names: Vec<VReg> = (0..self.func.vregs).map(VReg).collect();
        for (to, from) in self.func.blocks.iter().flat_map(|b| &b.insts).filter_map(|i| self.moves(i)) {
            names[to.0 as usize] = from;
        }
        for v in 0..names.len() {
            let mut at = names[v];
            while names[at.0 as usize] != at {
                at = names[at.0 as usize];
            }
            names[v] = at;
        }
        names
    }

    /// Each instruction once and in order, moves of the program excepted; nothing in front of
    /// the parameters, nothing behind the end.
    fn complete(&self, block: &VBlock, steps: &[Step]) -> Result<(), String> {
        let there = steps.iter().filter_map(|s| if let Step::Inst(i, _) = s { Some(*i) } else { None });
        let stays = |i: &usize| self.moves(&block.insts[*i]).is_none();
        if !there.filter(stays).eq((0..block.insts.len()).filter(stays)) {
            return Err("instructions are missing, or in another order".into());
        }
        let last = matches!(steps.last(), Some(Step::Inst(i, _)) if i + 1 == block.insts.len());
        let params = block.insts.first().is_some_and(|i| i.kind == VKind::Params);
        let first = matches!(steps.first(), Some(Step::Inst(0, _)));
        if !last || params && !first { Err("moves outside the block".into()) } else { Ok(()) }
    }

    fn does<'a>(&'a self, inst: &'a VInst) -> Vec<Does<'a>> {
        let only = &self.machine.instrs[usize::from(inst.instr.0)].only;
        let mut list = Vec::new();
        for (k, op) in inst.ops.iter().enumerate() {
            let within = only.iter().find(|o| o.0 == k).map(|o| &o.1[..]).filter(|l| !l.is_empty());
            match op {
                VOp::Use(v) => list.push(Does { value: *v, writes: false, tied: false, operand: Some(k), within }),
                VOp::Def(v) => list.push(Does { value: *v, writes: true, tied: false, operand: None, within }),
                VOp::Tied { used, def } => {
                    list.push(Does { value: *used, writes: false, tied: false, operand: None, within });
                    list.push(Does { value: *def, writes: true, tied: true, operand: None, within });
                }
                _ => {}
            }
        }
        let fixed = inst.fixed_uses.iter().map(|f| (f, false)).chain(inst.fixed_defs.iter().map(|f| (f, true)));
        for ((v, r), writes) in fixed {
            list.push(Does { value: *v, writes, tied: false, operand: None, within: Some(std::slice::from_ref(r)) });
        }
        list
    }

    fn destroyed(&self, inst: &VInst) -> Vec<Reg> {
        let written = self.machine.instrs[usize::from(inst.instr.0)].semantics.iter();
        let fixed =
            written.filter_map(|s| if let Stmt::Assign { dest: Dest::Fixed(r), .. } = s { Some(*r) } else { None });
        let given = |r: &Reg| inst.fixed_defs.iter().any(|d| d.1 == *r);
        match inst.kind {
            VKind::Call => self.clobbered.iter().copied().filter(|r| !given(r)).collect(),
            _ => fixed.collect(),
        }
    }

    /// Can the step be done at all?
    fn possible(&self, block: &VBlock, step: &Step) -> Result<(), String> {
        let there = |p: &Place| match p {
            Place::Reg(r) => (self.writable)(*r),
            Place::Slot(s) => *s < self.slots,
        };
        let (index, places) = match step {
            Step::Move { from: Place::Slot(_), to: Place::Slot(_) } => return Err("a slot is moved to a slot".into()),
            Step::Move { to, .. } if !there(to) => return Err(format!("{to:?} must not be written")),
            Step::Move { .. } => return Ok(()),
            Step::Inst(index, places) => (*index, places),
        };
        let inst = &block.insts[index];
        let list = self.does(inst);
        let wrong = |what: &str| Err(format!("instruction {index} with {places:?}: {what}"));
        if list.len() != places.len() {
            return wrong("another number of places");
        }
        let destroyed = self.destroyed(inst);
        let mut written = HashSet::new();
        for (n, (does, place)) in list.iter().zip(places).enumerate() {
            match place {
                Place::Reg(r) => {
                    if does.within.is_some_and(|list| !list.contains(r)) {
                        return wrong("an operand is where it cannot be");
                    }
                    if does.writes && (!written.insert(*r) || destroyed.contains(r) || !there(place)) {
                        return wrong("a result is lost");
                    }
                    if does.tied && n.checked_sub(1).is_none_or(|n| places[n] != *place) {
                        return wrong("a result is not where its source was");
                    }
                }
                Place::Slot(_) => {
                    let form = does.operand.and_then(|k| self.memory.form(inst.instr, k));
                    if form.is_none() || inst.mem.is_some() || inst.kind != VKind::Normal {
                        return wrong("a register is in memory");
                    }
                }
            }
        }
        let in_memory = places.iter().filter(|p| matches!(p, Place::Slot(_))).count();
        if in_memory > 1 { wrong("two operands in memory") } else { Ok(()) }
    }

    /// One step; what is wrong with what it reads.
    fn step(&self, block: &VBlock, step: &Step, names: &[VReg], held: &mut Held) -> Result<(), String> {
        let (index, places) = match step {
            Step::Move { from, to } => {
                let values = held.get(from).cloned().unwrap_or_default();
                held.insert(*to, values);
                return Ok(());
            }
            Step::Inst(index, places) => (*index, places),
        };
        let inst = &block.insts[index];
        let list = self.does(inst);
        let name = |v: VReg| names[v.0 as usize];
        let missing = |(does, place): &(&Does, &Place)| {
            !does.writes && !held.get(place).is_some_and(|values| values.contains(&name(does.value)))
        };
        let wrong = list.iter().zip(places).find(missing);
        let told = wrong.map_or(Ok(()), |(does, place)| {
            Err(format!("instruction {index} reads {:?}, which is not in {place:?}", does.value))
        });
        for r in self.destroyed(inst) {
            held.remove(&Place::Reg(r));
        }
        for (does, place) in list.iter().zip(places).filter(|(d, _)| d.writes) {
            let value = name(does.value);
            // What places hold of an earlier turn of a loop is another value.
            if value == does.value {
                held.values_mut().for_each(|values| {
                    values.remove(&value);
                });
            }
            held.insert(*place, BTreeSet::from([value]));
        }
        told
    }
}

/// What places hold in a block that has been entered with these arguments.
fn entered(held: &Held, params: &[VReg], args: &[VReg], names: &[VReg]) -> Held {
    let mut there = Held::new();
    for (place, values) in held {
        let mut now: BTreeSet<VReg> = values.iter().copied().filter(|v| !params.contains(v)).collect();
        now.extend(params.iter().zip(args).filter(|(_, a)| values.contains(&names[a.0 as usize])).map(|(p, _)| *p));
        if !now.is_empty() {
            there.insert(*place, now);
        }
    }
    there
}

/// What places hold either way.
fn common(a: &Held, b: &Held) -> Held {
    let both = a.iter().filter_map(|(place, values)| {
        let now: BTreeSet<VReg> = values.intersection(b.get(place)?).copied().collect();
        (!now.is_empty()).then_some((*place, now))
    });
    both.collect()
}
