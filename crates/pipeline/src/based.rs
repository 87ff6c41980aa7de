//! The frame of a loop on a machine with clusters, and addresses of its words in registers.
//!
//! The stack pointer is a register of one cluster, whose units then make all accesses to the frame. In a loop that keeps most
//! of its values there these are more than all else that it does in a row: Keccak's round on the C6201 makes 217 of them,
//! and what its other operations need are 89 rows. So a loop may have addresses of words in registers of its own, which any
//! cluster can have and each of which reaches some words behind it. They take registers away from values, which are short in
//! just these loops; so that is a form of its own, for where units are shorter still ([`super::forms`]).

use super::body::{Body, From, Node};
use super::framed::{address, with};
use super::park::{Parked, park};
use super::place::{At, Sides};
use ciphermill_machine::{Instr, InstrId, Machine};
use ciphermill_vcode::banks::Set;
use ciphermill_vcode::semantics::access_operands;
use ciphermill_vcode::{VInst, VOp, VReg};
use std::collections::BTreeSet;

/// Words that an address in a register is asked to reach at most.
const MOST_WORDS: usize = 64;

/// Addresses of words of the frame that a loop may have in registers.
#[derive(Clone, Debug)]
pub struct Bases {
    load: InstrId,
    store: InstrId,
    /// Words that one reaches.
    reach: usize,
    /// The offset of the first one's first word from the stack pointer.
    first: i64,
    names: Vec<VReg>,
}

impl Bases {
    /// So many for the words from `first` on. None where there is one cluster, or accesses that reach several words from any
    /// register are none of the machine's.
    pub fn of(sides: &Sides<'_>, body: &Body, first: i64, count: usize) -> Option<Bases> {
        let machine = sides.machine;
        let ops = &machine.abi.ops;
        let like = |instr: InstrId| {
            let own = &machine.instrs[usize::from(instr.0)];
            let same = |i: &Instr| i.selectable && i.semantics == own.semantics && i.latency == own.latency;
            let found = machine.instrs.iter().position(|i| i.name != own.name && same(i))?;
            let found = InstrId(found as u16);
            let clusters = machine.variants[usize::from(found.0)].iter().map(|v| sides.of_variant(*v));
            (clusters.collect::<BTreeSet<_>>().len() == sides.files.len()).then_some(found)
        };
        let (load, store) = (like(ops.load)?, like(ops.store)?);
        let word = i64::from(machine.word_bits / 8);
        let reaches = |words: usize| {
            let last = (words as i64 - 1) * word;
            [load, store].iter().all(|i| displaced(machine, *i, last).is_some())
        };
        let reach = (1..=MOST_WORDS).rev().find(|words| reaches(*words))?;
        let names = body.bases.get(..count)?.to_vec();
        let bases = Bases { load, store, reach, first, names };
        let last = bases.address(bases.names.len().checked_sub(1)?, word);
        let made = address(machine, VReg(0), last, || VReg(0)).is_some();
        (sides.files.len() > 1 && reach > 1 && made).then_some(bases)
    }

    /// Words that they reach, from the one at an offset on.
    fn words(&self, offset: i64, word: i64) -> usize {
        (self.reach * self.names.len()).saturating_sub(((offset - self.first) / word) as usize)
    }

    /// The address that reaches an offset, and how far it is from there.
    fn reaching(&self, word: i64, offset: i64) -> Option<(usize, i64)> {
        let far = usize::try_from(offset - self.first).ok()? / word as usize;
        let base = far / self.reach;
        (base < self.names.len()).then(|| (base, offset - self.address(base, word)))
    }

    fn address(&self, base: usize, word: i64) -> i64 {
        self.first + (base * self.reach) as i64 * word
    }

    /// What [`park`] has made, its accesses to the frame for values on other clusters than the stack pointer's by these
    /// addresses where they reach, and on these clusters. Each access says then which banks of memory it touches, as two of
    /// them may be in one cycle.
    fn give(&self, sides: &Sides<'_>, (mut body, mut at, index): Parked) -> Parked {
        let machine = sides.machine;
        let home = sides.of_reg(machine.abi.stack_pointer);
        let word = i64::from(machine.word_bits / 8);
        let mut used: BTreeSet<(VReg, i64)> = body.based.iter().copied().collect();
        for (i, node) in body.nodes.iter_mut().enumerate() {
            let Some(mut mem) = node.mem.filter(|_| is_framed(machine, node)) else { continue };
            mem.banks = banks(machine, mem.offset);
            (node.mem, node.inst.mem) = (Some(mem), Some(mem));
            let value = match (node.writes, node.reads.first()) {
                (None, Some((_, From::Node(p, _)))) => at[*p].result,
                _ => at[i].result,
            };
            let elsewhere = Some(value) != home;
            let Some((base, displacement)) = self.reaching(word, mem.offset).filter(|_| elsewhere) else { continue };
            let instr = if mem.store { self.store } else { self.load };
            let Some(mut inst) = displaced(machine, instr, displacement) else { continue };
            let Some((_, operand)) = access_operands(&machine.instrs[usize::from(instr.0)].semantics) else { continue };
            (inst.mem, inst.loc) = (Some(mem), node.inst.loc);
            node.inst = inst;
            node.reads.push((operand, From::Outside(self.names[base])));
            at[i] = At { unit: value, ..at[i] };
            used.insert((self.names[base], self.address(base, word)));
        }
        body.based = used.into_iter().collect();
        (body, at, index)
    }
}

/// The frame, as a form of a loop may use it.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The offset of the next free word from the stack pointer.
    pub next: i64,
    /// Addresses that the loop has in registers for what other clusters than the stack pointer's have in the frame.
    pub bases: Option<Bases>,
}

impl Frame {
    /// The same behind so many words.
    pub fn behind(&self, words: usize, machine: &Machine) -> Frame {
        Frame { next: self.next + words as i64 * i64::from(machine.word_bits / 8), ..self.clone() }
    }

    /// What [`park`] makes of a body.
    pub fn parked(&self, body: &Body, at: &[At], sides: &Sides<'_>, room: &[usize]) -> Option<Parked> {
        let machine = sides.machine;
        let Some(bases) = &self.bases else { return park(body, at, sides, room, (self.next, 0)) };
        let home = sides.of_reg(machine.abi.stack_pointer);
        let less = |(side, room): (usize, &usize)| {
            if Some(side) == home { *room } else { room.saturating_sub(bases.names.len()) }
        };
        let room: Vec<usize> = room.iter().enumerate().map(less).collect();
        let reached = bases.words(self.next, i64::from(machine.word_bits / 8));
        Some(bases.give(sides, park(body, at, sides, &room, (self.next, reached))?))
    }
}

/// Does a node load a word of the frame or store one, by the stack pointer?
fn is_framed(machine: &Machine, node: &Node) -> bool {
    let ops = &machine.abi.ops;
    let sp = VOp::Phys(machine.abi.stack_pointer);
    [ops.load, ops.store].contains(&node.inst.instr) && node.inst.ops.contains(&sp)
}

/// An access by an address in a register.
fn displaced(machine: &Machine, instr: InstrId, displacement: i64) -> Option<VInst> {
    let (_, base) = access_operands(&machine.instrs[usize::from(instr.0)].semantics)?;
    with(machine, instr, (base, VOp::Use(VReg(0))), VReg(0), displacement)
}

/// The banks that a word of the frame is in, beside those that other accesses know of: which block the frame is in is not
/// known here. None where the stack pointer does not say which.
pub fn banks(machine: &Machine, offset: i64) -> Set {
    let Some(banks) = &machine.memory.banks else { return 0 };
    let turn = banks.banks * banks.bank_bytes;
    let beside = banks.blocks * banks.banks;
    if !machine.abi.stack_align.is_multiple_of(turn) || beside + banks.banks > Set::BITS {
        return 0;
    }
    let bytes = offset..offset + i64::from(machine.word_bits / 8);
    let bank = |byte: i64| beside + (byte.rem_euclid(i64::from(turn)) as u32) / banks.bank_bytes;
    bytes.fold(0, |set, byte| set | 1 << bank(byte))
}

#[cfg(test)]
mod tests {
    use super::{Bases, Frame};
    use crate::body::{Body, From, Node};
    use crate::framed::address;
    use crate::place::{At, Sides, settle};
    use crate::search::tests::{addition, named_machine, with_branch};
    use ciphermill_vcode::{VInst, VOp, VReg};

    const NAMES: [VReg; 2] = [VReg(90), VReg(91)];

    /// So many values that are made of another one after the other, and then read in that order, all on the first cluster.
    fn values(m: &ciphermill_machine::Machine, count: usize) -> (Body, Vec<At>) {
        let mut nodes = vec![addition(m, From::Outside(VReg(0)))];
        nodes.extend((0..count).map(|_| addition(m, From::Node(0, 0))));
        nodes.extend((1..=count).map(|k| addition(m, From::Node(k, 0))));
        let body = Body { bases: NAMES.to_vec(), ..with_branch(m, nodes) };
        let at = vec![At { unit: 0, result: 0 }; body.nodes.len()];
        (body, at)
    }

    /// What an access is, its displacement, and the register of its address.
    type Access = (String, i64, Option<VReg>);

    fn accesses(m: &ciphermill_machine::Machine, body: &Body) -> Vec<Access> {
        let one = |n: &Node| {
            let imm = n.inst.ops.iter().find_map(|o| if let VOp::Imm(v) = o { Some(*v) } else { None });
            let base = n.reads.iter().find_map(|r| if let From::Outside(v) = r.1 { Some(v) } else { None });
            (m.instrs[usize::from(n.inst.instr.0)].name.clone(), imm.unwrap_or(-1), base)
        };
        body.nodes.iter().filter(|n| n.mem.is_some()).map(one).collect()
    }

    #[test]
    fn other_clusters_reach_words_by_addresses_of_their_own() {
        let m = named_machine("c6201");
        let sides = Sides::new(&m, &m.abi.allocatable);
        let (body, at) = values(&m, 35);
        let bases = Bases::of(&sides, &body, 8, 1);
        assert!(bases.is_some());
        // One of three registers has the address, and one value stays: 34 go to 32 words and two others.
        let (out, at, _) = Frame { next: 8, bases }.parked(&body, &at, &sides, &[3, 3]).unwrap();
        assert_eq!(out.based, [(NAMES[0], 8)]);
        let all = accesses(&m, &out);
        let (near, far): (Vec<Access>, Vec<Access>) = all.into_iter().partition(|a| a.2 == Some(NAMES[0]));
        let stored: Vec<i64> = near.iter().filter(|a| a.0 == "stw").map(|a| a.1).collect();
        assert_eq!(stored, (0..32).map(|k| 4 * k).collect::<Vec<_>>());
        let others: Vec<(&str, i64)> = far.iter().filter(|a| a.0 == "stw_far").map(|a| (a.0.as_str(), a.1)).collect();
        assert_eq!(others, [("stw_far", 8 + 4 * 32), ("stw_far", 8 + 4 * 33)]);
        assert!(near.iter().all(|a| ["stw", "ldw"].contains(&a.0.as_str())));
        // The accesses run where the values are, and can.
        let ops = settle(&out, &sides, &at).unwrap();
        let on_first = ops.ops.iter().filter(|op| op.inst.mem.is_some() && op.at.unit == 0).count();
        assert_eq!(on_first, near.len());
        // Words on one bank meet, those next to each other do not.
        let banks: Vec<u64> = out.nodes.iter().filter_map(|n| n.mem).map(|m| m.banks).collect();
        assert!(banks.iter().all(|b| b.count_ones() == 2 && b.trailing_zeros() >= 8));
        assert!(banks[0] != banks[1] && banks[0] == banks[2]);
    }

    #[test]
    fn a_machine_without_clusters_has_none() {
        let m = named_machine("epic");
        let sides = Sides::new(&m, &m.abi.allocatable);
        let body = Body { bases: NAMES.to_vec(), ..Body::of(Vec::new(), m.abi.ops.jump) };
        assert!(Bases::of(&sides, &body, 0, 1).is_none());
    }

    #[test]
    fn an_address_takes_as_many_additions_as_its_offset_wants() {
        let m = named_machine("c6201");
        let mut next = 10;
        let mut fresh = || {
            next += 1;
            VReg(next)
        };
        let added = |insts: &[VInst]| -> Vec<i64> {
            insts
                .iter()
                .flat_map(|i| &i.ops)
                .filter_map(|o| if let VOp::Imm(v) = o { Some(*v) } else { None })
                .collect()
        };
        let made = address(&m, NAMES[0], 40, &mut fresh).unwrap();
        assert_eq!(added(&made), [15, 15, 10]);
        let defined: Vec<VReg> = made.iter().flat_map(|i| i.defs()).collect();
        assert_eq!(defined, [VReg(11), VReg(12), NAMES[0]]);
        assert_eq!(added(&address(&m, NAMES[0], 0, &mut fresh).unwrap()), [0]);
    }
}
