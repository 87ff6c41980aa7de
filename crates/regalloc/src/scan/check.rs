//! The checker of the final allocation.
//!
//! It knows nothing of how places were chosen. A forward data-flow analysis follows which virtual
//! registers' values each place has; at a block's entry it is what all predecessors agree on. Every
//! operand has to be in its place. `regalloc2`'s checker does the same. This one also allows two
//! things: move instructions may be gone, as the register that a move defines is an alias of its
//! source; and an operand may be in memory where the machine has an instruction for it.

use crate::fold::FoldTable;
use ciphermill_machine::sem::{Dest, Stmt};
use ciphermill_machine::{Machine, Reg};
use ciphermill_vcode::{Place, Step};
use ciphermill_vcode::{VBlock, VFunc, VInst, VKind, VOp, VReg};
use std::collections::{BTreeSet, HashMap, HashSet};

pub struct Checker<'a> {
    pub func: &'a VFunc,
    pub machine: &'a Machine,
    pub folds: &'a FoldTable,
    /// Registers that a call clobbers.
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
    /// Index of an operand that is only read.
    operand: Option<usize>,
    within: Option<&'a [Reg]>,
}

/// Which values each place has.
type Contents = HashMap<Place, BTreeSet<VReg>>;

impl Checker<'_> {
    /// # Errors
    /// A sentence about the first instruction whose operand is not in its place.
    pub fn check(&self, blocks: &[Vec<Step>]) -> Result<(), String> {
        for (b, (block, steps)) in self.func.blocks.iter().zip(blocks).enumerate() {
            let name = |e: String| format!("block {b}: {e}");
            self.complete(block, steps).map_err(name)?;
            steps.iter().try_for_each(|step| self.possible(block, step)).map_err(name)?;
        }
        let names = self.names();
        let mut starts: Vec<Option<Contents>> = vec![None; blocks.len()];
        starts[0] = Some(Contents::new());
        let mut todo = BTreeSet::from([0]);
        while let Some(b) = todo.pop_first() {
            let Some(mut contents) = starts[b].clone() else { continue };
            let block = &self.func.blocks[b];
            for step in &blocks[b] {
                // An operand may be missing only until the analysis has converged.
                let _ = self.step(block, step, &names, &mut contents);
            }
            for (to, args) in &block.succs {
                let to = *to as usize;
                let mut there = entered(&contents, &self.func.blocks[to].params, args, &names);
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
            let Some(mut contents) = starts[b].clone() else { continue };
            steps
                .iter()
                .try_for_each(|step| self.step(block, step, &names, &mut contents))
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

    /// For each virtual register the one that it is an alias of.
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

    /// Each instruction is there once and in order, except move instructions. No step comes before
    /// the parameters or after the block's last instruction.
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

    /// Can the machine do this step, whatever the places contain?
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
                    let form = does.operand.and_then(|k| self.folds.folded(inst.instr, k));
                    if form.is_none() || inst.mem.is_some() || inst.kind != VKind::Normal {
                        return wrong("a register is in memory");
                    }
                }
            }
        }
        let in_memory = places.iter().filter(|p| matches!(p, Place::Slot(_))).count();
        if in_memory > 1 { wrong("two operands in memory") } else { Ok(()) }
    }

    /// Executes one step, and says which operand it does not find.
    fn step(&self, block: &VBlock, step: &Step, names: &[VReg], contents: &mut Contents) -> Result<(), String> {
        let (index, places) = match step {
            Step::Move { from, to } => {
                let values = contents.get(from).cloned().unwrap_or_default();
                contents.insert(*to, values);
                return Ok(());
            }
            Step::Inst(index, places) => (*index, places),
        };
        let inst = &block.insts[index];
        let list = self.does(inst);
        let name = |v: VReg| names[v.0 as usize];
        let missing = |(does, place): &(&Does, &Place)| {
            !does.writes && !contents.get(place).is_some_and(|values| values.contains(&name(does.value)))
        };
        let wrong = list.iter().zip(places).find(missing);
        let told = wrong.map_or(Ok(()), |(does, place)| {
            Err(format!("instruction {index} reads {:?}, which is not in {place:?}", does.value))
        });
        for r in self.destroyed(inst) {
            contents.remove(&Place::Reg(r));
        }
        for (does, place) in list.iter().zip(places).filter(|(d, _)| d.writes) {
            let value = name(does.value);
            // A value of the same register from an earlier iteration is another value.
            if value == does.value {
                contents.values_mut().for_each(|values| {
                    values.remove(&value);
                });
            }
            contents.insert(*place, BTreeSet::from([value]));
        }
        told
    }
}

/// Contents of places after entry to a block with these arguments.
fn entered(contents: &Contents, params: &[VReg], args: &[VReg], names: &[VReg]) -> Contents {
    let mut there = Contents::new();
    for (place, values) in contents {
        let mut now: BTreeSet<VReg> = values.iter().copied().filter(|v| !params.contains(v)).collect();
        now.extend(params.iter().zip(args).filter(|(_, a)| values.contains(&names[a.0 as usize])).map(|(p, _)| *p));
        if !now.is_empty() {
            there.insert(*place, now);
        }
    }
    there
}

/// Contents that both agree on.
fn common(a: &Contents, b: &Contents) -> Contents {
    let both = a.iter().filter_map(|(place, values)| {
        let now: BTreeSet<VReg> = values.intersection(b.get(place)?).copied().collect();
        (!now.is_empty()).then_some((*place, now))
    });
    both.collect()
}
