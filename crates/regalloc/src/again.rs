//! Values made again where they are wanted: rematerialisation in front of the allocator.
//!
//! A word that was loaded, and is still in memory where it was, needs no spill: it is loaded again. A constant is
//! made again. Where more values live than there are registers, such a value gives up its register between two
//! uses that are far apart, and one that is made long before its first use is made just before it. The base of
//! the loads lives longer for that: one register for any number of words.

use ciphermill_machine::{InstrKind, Machine};
use ciphermill_vcode::liveness::{Set, live_out};
use ciphermill_vcode::{Allocated, Facts, Node, VBlock, VFunc, VInst, VKind, VOp, VReg};
use std::collections::HashMap;

/// Between two uses as near as this a value keeps its register: to make it again hardly frees one.
const NEAR: usize = 8;

/// A function with values made again, and what that adds to an execution of it, as [`Allocated::cost`] counts.
pub struct Remade {
    pub func: VFunc,
    pub added: u64,
}

/// The function with values made again in blocks whose MaxLive exceeds `registers`; None where there is nothing to
/// gain.
pub fn remade(func: &VFunc, machine: &Machine, facts: &Facts, registers: usize) -> Option<Remade> {
    let outs = live_out(func);
    let mut out = Remade { func: func.clone(), added: 0 };
    let mut changed = false;
    for (b, live) in outs.iter().enumerate() {
        let frequency = func.blocks[b].frequency();
        let Some(pressed) = Pressed::new(&func.blocks[b], live, machine, facts, registers) else { continue };
        let chosen = pressed.chosen();
        changed |= !chosen.is_empty();
        let more = chosen.iter().filter(|g| !g.first).map(|g| pressed.price(g) * frequency);
        out.added += more.sum::<u64>();
        pressed.rewrite(chosen, &mut out.func, b);
    }
    changed.then_some(out)
}

/// Where a value waits for its next use.
struct Gap {
    value: VReg,
    /// What makes it, by the instruction's index in its block.
    maker: usize,
    /// From an instruction's index to another's, the use.
    from: usize,
    to: usize,
    /// It begins where the value is made.
    first: bool,
}

/// A block in which more values live at once than there are registers.
struct Pressed<'a> {
    block: &'a VBlock,
    machine: &'a Machine,
    nodes: Vec<Node>,
    /// In front of each instruction: how many values are live.
    live: Vec<usize>,
    /// By value: the instructions that read it.
    uses: HashMap<VReg, Vec<usize>>,
    out: &'a Set,
    registers: usize,
}

impl<'a> Pressed<'a> {
    fn new(
        block: &'a VBlock,
        out: &'a Set,
        machine: &'a Machine,
        facts: &Facts,
        registers: usize,
    ) -> Option<Pressed<'a>> {
        let mut live = vec![0; block.insts.len()];
        let mut now = out.clone();
        for (at, inst) in block.insts.iter().enumerate().rev() {
            inst.defs().for_each(|d| {
                now.remove(d);
            });
            inst.uses().for_each(|u| {
                now.insert(u);
            });
            live[at] = now.len();
        }
        if live.iter().all(|&n| n <= registers) {
            return None;
        }
        let mut uses: HashMap<VReg, Vec<usize>> = HashMap::new();
        for (at, inst) in block.insts.iter().enumerate() {
            for v in inst.uses() {
                let list = uses.entry(v).or_default();
                if list.last() != Some(&at) {
                    list.push(at);
                }
            }
        }
        let nodes = block.insts.iter().map(|i| facts.virtual_node(machine, i)).collect();
        Some(Pressed { block, machine, nodes, live, uses, out, registers })
    }

    fn loads(&self, maker: usize) -> bool {
        self.machine.instrs[usize::from(self.block.insts[maker].instr.0)].kind == InstrKind::Load
    }

    /// Cost of making a value once more.
    fn price(&self, gap: &Gap) -> u64 {
        if self.loads(gap.maker) { Allocated::TRANSFER } else { Allocated::COPY }
    }

    /// The one value that an instruction makes, if it can be made again: from memory or from nothing, without a trace.
    fn makes(&self, at: usize) -> Option<VReg> {
        let inst = &self.block.insts[at];
        let kind = self.machine.instrs[usize::from(inst.instr.0)].kind;
        let whole = |o: &VOp| match o {
            VOp::Use(_) | VOp::Def(_) | VOp::Imm(_) => true,
            VOp::Phys(r) => self.machine.regs[usize::from(r.0)].zero,
            _ => false,
        };
        let fixed = !inst.fixed_uses.is_empty() || !inst.fixed_defs.is_empty();
        if inst.kind != VKind::Normal || inst.trap.is_some() || fixed || !inst.ops.iter().all(whole) {
            return None;
        }
        let source = match kind {
            InstrKind::Load => inst.mem.is_some_and(|m| !m.store),
            InstrKind::Compute => inst.uses().next().is_none(),
            _ => false,
        };
        let mut made = inst.defs();
        let value = made.next().filter(|v| source && !self.out.contains(*v))?;
        // It writes nothing else, flags neither.
        (made.next().is_none() && self.nodes[at].writes.len() == 1).then_some(value)
    }

    /// Is what `maker` reads in memory, and in registers that are no operands, still the same in front of instruction `to`?
    fn unwritten(&self, maker: usize, to: usize) -> bool {
        let read = &self.nodes[maker].mem;
        let registers = self.machine.regs.len() as u32;
        let read_here = |r: &u32| *r < registers && self.nodes[maker].reads.contains(r);
        self.nodes[maker + 1..to].iter().all(|n| match (&n.mem, read) {
            _ if n.barrier || n.writes.iter().any(|(r, _)| read_here(r)) => false,
            (Some(m), Some(r)) => !m.conflicts(r),
            _ => true,
        })
    }

    fn gaps(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        for maker in 0..self.block.insts.len() {
            let Some(value) = self.makes(maker) else { continue };
            let mut from = maker;
            for &to in self.uses.get(&value).into_iter().flatten() {
                if !self.unwritten(maker, to) {
                    break;
                }
                if to > from + NEAR {
                    gaps.push(Gap { value, maker, from, to, first: from == maker });
                }
                from = to;
            }
        }
        gaps
    }

    /// The longest gaps first, as long as there are too few registers in them.
    fn chosen(&self) -> Vec<Gap> {
        let mut gaps = self.gaps();
        gaps.sort_by_key(|g| (std::cmp::Reverse(g.to - g.from), g.from));
        let mut live = self.live.clone();
        let mut ends: HashMap<VReg, usize> = HashMap::new();
        gaps.retain(|gap| {
            let without = &mut live[gap.from + 1..gap.to];
            if without.iter().all(|&n| n <= self.registers) {
                return false;
            }
            without.iter_mut().for_each(|n| *n -= 1);
            for base in self.block.insts[gap.maker].uses().filter(|b| !self.out.contains(*b)) {
                let last = self.uses.get(&base).and_then(|u| u.last()).copied().unwrap_or(gap.maker);
                let end = ends.entry(base).or_insert(last);
                if *end < gap.to {
                    live[*end + 1..=gap.to].iter_mut().for_each(|n| *n += 1);
                    *end = gap.to;
                }
            }
            true
        });
        gaps
    }

    /// Makes the values of these gaps again at their ends.
    fn rewrite(&self, mut gaps: Vec<Gap>, func: &mut VFunc, b: usize) {
        gaps.sort_by_key(|g| (g.to, g.maker));
        let moved: Vec<usize> = gaps.iter().filter(|g| g.first).map(|g| g.maker).collect();
        let mut names: HashMap<VReg, VReg> = HashMap::new();
        let mut insts = Vec::with_capacity(self.block.insts.len() + gaps.len());
        let mut next = gaps.iter().peekable();
        for (at, inst) in self.block.insts.iter().enumerate() {
            while let Some(gap) = next.next_if(|g| g.to == at) {
                let mut made = self.block.insts[gap.maker].clone();
                if !gap.first {
                    let fresh = func.new_vreg();
                    made.ops.iter_mut().filter(|o| matches!(o, VOp::Def(_))).for_each(|o| *o = VOp::Def(fresh));
                    names.insert(gap.value, fresh);
                }
                insts.push(made);
            }
            if !moved.contains(&at) {
                insts.push(renamed(inst, &names));
            }
        }
        func.blocks[b].insts = insts;
        if let Some(inverse) = &mut func.blocks[b].inverse {
            inverse.ops.iter_mut().for_each(|o| rename(o, &names));
        }
    }
}

/// The instruction with what it reads under its new names.
fn renamed(inst: &VInst, names: &HashMap<VReg, VReg>) -> VInst {
    let mut out = inst.clone();
    out.ops.iter_mut().for_each(|o| rename(o, names));
    out.fixed_uses.iter_mut().for_each(|u| u.0 = names.get(&u.0).copied().unwrap_or(u.0));
    out
}

fn rename(op: &mut VOp, names: &HashMap<VReg, VReg>) {
    if let VOp::Use(v) | VOp::Tied { used: v, .. } = op {
        *v = names.get(v).copied().unwrap_or(*v);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{function, named, of_name};
    use ciphermill_ir::Space;
    use ciphermill_vcode::MemRef;
    use ciphermill_vcode::liveness::max_live;

    const BASE: VReg = VReg(0);
    const WORDS: u32 = 12;
    const REGISTERS: usize = 4;

    /// So many words are loaded and summed up, and then, behind a store in the place of the first, once more.
    fn twice(machine: &Machine) -> VFunc {
        let inst = |name: &str, ops: &[VOp]| VInst::new(VKind::Normal, named(machine, name), ops, 0);
        let at = |word: u32| i64::from(4 * word);
        let touching = |mut inst: VInst, store: bool, word: u32| {
            inst.mem = Some(MemRef::own(Space::Linear, store, at(word), 4));
            inst
        };
        let mut insts = vec![VInst::new(VKind::Params, named(machine, "nop"), &[], 0)];
        insts[0].fixed_defs = vec![(BASE, machine.abi.allocatable[0])];
        let word = |n: u32| VReg(1 + n);
        for n in 0..WORDS {
            let load = inst("ldr_far_i12", &[VOp::Def(word(n)), VOp::Use(BASE), VOp::Imm(at(n))]);
            insts.push(touching(load, false, n));
        }
        let mut sum = word(0);
        for n in 1..2 * WORDS {
            if n == WORDS {
                let store = inst("str_far_i12", &[VOp::Use(sum), VOp::Use(BASE), VOp::Imm(0)]);
                insts.push(touching(store, true, 0));
            }
            let next = VReg(WORDS + n);
            insts.push(inst("add_r", &[VOp::Def(next), VOp::Use(sum), VOp::Use(word(n % WORDS))]));
            sum = next;
        }
        let mut ret = VInst::new(VKind::Return, named(machine, "ret"), &[], 0);
        ret.fixed_uses = vec![(sum, machine.abi.allocatable[0])];
        insts.push(ret);
        function(vec![VBlock { insts, ..VBlock::default() }], 3 * WORDS)
    }

    fn loads(func: &VFunc, machine: &Machine, word: u32) -> usize {
        let load = named(machine, "ldr_far_i12");
        let reads = |i: &&VInst| i.instr == load && i.ops[2] == VOp::Imm(i64::from(4 * word));
        func.blocks[0].insts.iter().filter(reads).count()
    }

    #[test]
    fn words_are_loaded_again_but_for_one_that_was_written() {
        let machine = of_name("cortex-m4");
        let func = twice(&machine);
        let again = remade(&func, &machine, &Facts::new(&machine), REGISTERS).expect("there is something to gain");
        // The first word stays in its register: behind the store another one is in its place.
        assert_eq!(loads(&again.func, &machine, 0), 1);
        let twice_loaded = (1..WORDS).filter(|&n| loads(&again.func, &machine, n) == 2).count();
        assert!(twice_loaded > WORDS as usize / 2, "{twice_loaded}");
        assert_eq!(again.added, twice_loaded as u64 * Allocated::TRANSFER);
        let pressure = |f: &VFunc| max_live(f, 0, &live_out(f)[0]);
        assert!(pressure(&func) > 2 * REGISTERS);
        assert!(pressure(&again.func) <= REGISTERS + 1, "{}", pressure(&again.func));
    }

    #[test]
    fn with_registers_enough_nothing_is_made_again() {
        let machine = of_name("cortex-m4");
        assert!(remade(&twice(&machine), &machine, &Facts::new(&machine), 2 * WORDS as usize).is_none());
    }
}
