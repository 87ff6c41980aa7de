//! Addresses as sums, which tell accesses of different iterations apart.
//!
//! An address is a sum of roots times constants, plus a constant. A root is a value from outside
//! the loop, the number of the iteration, or a value of one iteration of which nothing is known. An
//! induction (a value that is that of the iteration before plus a constant) is the value that it
//! begins with plus that constant times the iteration's number. Values from outside are followed to
//! what they are made of: a pointer that begins 64 bytes behind another has the same root.
//!
//! Two accesses whose addresses differ by constants alone meet in those iterations in which their
//! bytes overlap, and in no others. Of a root the bits may be known that it can have set, as an index into a
//! table has them that has been masked: then a difference lies between two numbers, and is a constant beside a
//! multiple of a power of two. Accesses to two tables of one structure are apart by the one, those to two
//! fields of the elements of an array by the other. All sums are taken modulo 2^32. That loses nothing that matters:
//! two bytes of one address are of one address modulo 2^32, so accesses that are apart there are
//! apart, on machines with longer words too, and whether or not an address wraps. One condition is
//! left: a distance is looked for below the one at which the step times it comes round. So steps are
//! below [`gap::LARGEST_STEP`], which lets 2^15 iterations pass before that, and no schedule overlaps so
//! many.

use super::body::{From, Node};
use ciphermill_ir::{BinOp, UnOp};
use ciphermill_machine::Machine;
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_schedule::verified::DEEPEST;
use ciphermill_vcode::{VFunc, VInst, VKind, VOp, VReg};
use std::cell::RefCell;
use std::collections::BTreeMap;

mod bits;
mod gap;
mod sums;
#[cfg(test)]
mod tests;

use gap::Gap;
pub use gap::Meeting;
use sums::{Known, Root, Sum, Value, width};

/// A sum of more roots is a root itself.
const MOST_ROOTS: usize = 8;

/// The address of an access to memory.
#[derive(Clone, Debug)]
pub struct Address {
    sum: Sum,
    bytes: i64,
    /// Of the sum's roots, the bits that they may have set.
    bits: BTreeMap<Root, u32>,
}

impl Address {
    /// Are they apart in one and the same iteration?
    pub fn apart(&self, other: &Address) -> bool {
        let between = other.sum.clone().minus(&self.sum);
        let mut gap = Gap::of(between.constant);
        between.roots.iter().for_each(|(&root, &factor)| gap.add(factor, self.possible(root) & other.possible(root)));
        gap.meets(self.bytes, other.bytes, 0, 0) == Meeting::Never
    }

    /// The bits that a root of this address may have set; all, if it is another's.
    fn possible(&self, root: Root) -> u32 {
        self.bits.get(&root).copied().unwrap_or(u32::MAX)
    }

    /// The least distance from an iteration to a later one (or itself, if `least` is 0) of which
    /// the access `other` meets this one.
    pub fn meets(&self, other: &Address, least: u32) -> Meeting {
        let turn = |a: &Address| a.sum.roots.get(&Root::Turn).copied().unwrap_or(0);
        let mut gap = Gap::of(other.sum.constant.wrapping_sub(self.sum.constant));
        let mut step = turn(self);
        if step != turn(other) {
            // The iteration's number is as little known as what is between them.
            gap.add(turn(other).wrapping_sub(step), u32::MAX);
            gap.add(step, u32::MAX);
            step = 0;
        }
        let before = self.sum.clone().times(u32::MAX);
        let mut outside = Sum::default();
        for (address, sum) in [(self, &before), (other, &other.sum)] {
            for (&root, &factor) in &sum.roots {
                match root {
                    Root::Turn => {}
                    // The same in both.
                    Root::Outside(_) => outside = outside.plus(&Sum::root(root).times(factor)),
                    Root::Before(_) | Root::Made(_) => gap.add(factor, address.possible(root)),
                }
            }
        }
        for (&root, &factor) in &outside.roots {
            gap.add(factor, self.possible(root) & other.possible(root));
        }
        gap.meets(self.bytes, other.bytes, step as i32, least)
    }
}

/// Where instructions outside of a loop find what they read.
struct Outside<'a> {
    func: &'a VFunc,
    machine: &'a Machine,
    /// Block and place of each definition.
    made: BTreeMap<VReg, (usize, usize)>,
    /// What the loop's parameters are at first, where one edge alone leads to it. The check of the loop follows
    /// no other edge.
    given: BTreeMap<VReg, VReg>,
    /// What was asked for before.
    found: RefCell<BTreeMap<VReg, Known>>,
}

impl<'a> Outside<'a> {
    /// `back` is the block behind which the loop's `header` runs once more.
    fn of(func: &'a VFunc, machine: &'a Machine, header: u32, back: u32) -> Outside<'a> {
        let mut made = BTreeMap::new();
        let mut entries: Vec<&Vec<VReg>> = Vec::new();
        for (b, block) in func.blocks.iter().enumerate() {
            if b as u32 != header && b as u32 != back {
                for (at, inst) in block.insts.iter().enumerate().filter(|(_, i)| i.kind == VKind::Normal) {
                    made.extend(inst.defs().map(|d| (d, (b, at))));
                }
            }
            if b as u32 != back {
                entries.extend(block.succs.iter().filter(|s| s.0 == header).map(|s| &s.1));
            }
        }
        let given = match entries[..] {
            [handed] => func.blocks[header as usize].params.iter().copied().zip(handed.iter().copied()).collect(),
            _ => BTreeMap::new(),
        };
        Outside { func, machine, made, given, found: RefCell::default() }
    }

    fn known(&self, v: VReg, depth: u32) -> Known {
        if let Some(found) = self.found.borrow().get(&v) {
            return found.clone();
        }
        let known = self.followed(v, depth).unwrap_or(Known { sum: None, bits: u64::MAX });
        self.found.borrow_mut().insert(v, known.clone());
        known
    }

    fn sum(&self, v: VReg) -> Sum {
        self.known(v, DEEPEST).sum.unwrap_or_else(|| Sum::root(Root::Outside(v)))
    }

    /// What is known of a value by what it is made of.
    fn followed(&self, v: VReg, depth: u32) -> Option<Known> {
        let depth = depth.checked_sub(1)?;
        let known = |v: VReg| {
            let known = self.known(v, depth);
            Known { sum: Some(known.sum.unwrap_or_else(|| Sum::root(Root::Outside(v)))), ..known }
        };
        if let Some(&from) = self.given.get(&v) {
            return Some(known(from));
        }
        let &(block, at) = self.made.get(&v)?;
        let inst = &self.func.blocks[block].insts[at];
        // Nor does it look at other instructions outside.
        let named = |o: &VOp| matches!(o, VOp::Phys(r) if !self.machine.regs[usize::from(r.0)].zero);
        let plain = inst.mem.is_none() && inst.trap.is_none() && !inst.ops.iter().any(named);
        plain.then(|| result(self.machine, inst, &|_, v| Some(known(v))))
    }
}

/// The addresses of a loop's accesses, node by node. `initial` is what nodes that are carried round
/// begin with.
pub fn addresses(
    func: &VFunc,
    machine: &Machine,
    (header, back): (u32, u32),
    nodes: &[Node],
    initial: &BTreeMap<usize, VReg>,
) -> Vec<Option<Address>> {
    if nodes.iter().all(|n| n.mem.is_none()) {
        return vec![None; nodes.len()];
    }
    let outside = Outside::of(func, machine, header, back);
    let mut made: Vec<Known> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let known = result(machine, &node.inst, &|o, _| operand(node, o, &made, &outside));
        made.push(known);
    }
    let sum_of = |i: usize| made[i].sum.clone().unwrap_or_else(|| Sum::root(Root::Made(i)));
    // What a node left before is what it began with and so many steps.
    let carried = |root: Root| {
        let Root::Before(n) = root else { return None };
        let step = sum_of(n).minus(&Sum::root(root)).known()?;
        Some(outside.sum(*initial.get(&n)?).plus(&Sum::root(Root::Turn).times(step)))
    };
    let possible = |root: Root| match root {
        Root::Turn => u64::MAX,
        Root::Outside(v) => outside.known(v, DEEPEST).bits,
        Root::Made(n) => made[n].bits,
        Root::Before(n) => made[n].bits | initial.get(&n).map_or(u64::MAX, |&v| outside.known(v, DEEPEST).bits),
    };
    let address = |node: &Node| {
        let (expr, bytes) = accessed(machine, &node.inst)?;
        let mem = node.mem.filter(|m| m.bytes == bytes)?;
        let sum = linear(machine, &node.inst, &expr, &|o, _| operand(node, o, &made, &outside))?.with(&carried);
        let bits = sum.roots.keys().map(|&root| (root, possible(root) as u32)).collect();
        Some(Address { sum, bytes: i64::from(mem.bytes), bits })
    };
    nodes.iter().map(address).collect()
}

/// What a node reads in an operand.
fn operand(node: &Node, o: usize, made: &[Known], outside: &Outside<'_>) -> Option<Known> {
    let root = |root: Root, known: &Known| {
        let sum = known.sum.clone().unwrap_or_else(|| Sum::root(root));
        Some(Known { sum: Some(sum), bits: known.bits })
    };
    match node.reads.iter().find(|r| r.0 == o)?.1 {
        From::Node(p, 0) => root(Root::Made(p), made.get(p)?),
        From::Node(p, _) => Some(Known { sum: Some(Sum::root(Root::Before(p))), bits: u64::MAX }),
        From::Outside(v) => root(Root::Outside(v), &outside.known(v, DEEPEST)),
    }
}

/// What is known of an instruction's one result.
fn result(machine: &Machine, inst: &VInst, value: &Value<'_>) -> Known {
    let instr = &machine.instrs[usize::from(inst.instr.0)];
    let [Stmt::Assign { dest: Dest::Operand(o), value: meaning }] = &instr.semantics[..] else {
        return Known { sum: None, bits: u64::MAX };
    };
    let bits = bits::possible(machine, inst, meaning, value) & bits::lowest(width(machine, inst, *o));
    let plain = width(machine, inst, *o) >= 32 && inst.mem.is_none() && inst.trap.is_none();
    let sum = if plain { linear(machine, inst, meaning, value) } else { None };
    Known { sum: sum.filter(|s| s.roots.len() <= MOST_ROOTS), bits }
}

/// The address of an instruction's one access to memory, and its bytes.
fn accessed(machine: &Machine, inst: &VInst) -> Option<(Expr, u8)> {
    match &machine.instrs[usize::from(inst.instr.0)].semantics[..] {
        [Stmt::Store { bytes, addr, .. }] => Some((addr.clone(), *bytes)),
        [Stmt::Assign { value, .. }] => {
            let mut value = value;
            while let Expr::Un { a, .. } | Expr::Slice { a, .. } = value {
                value = a;
            }
            if let Expr::Load { bytes, addr, .. } = value { Some(((**addr).clone(), *bytes)) } else { None }
        }
        _ => None,
    }
}

/// An expression as a sum, modulo 2^32.
fn linear(machine: &Machine, inst: &VInst, e: &Expr, value: &Value<'_>) -> Option<Sum> {
    let of = |e: &Expr| linear(machine, inst, e, value);
    let possible = |e: &Expr| bits::possible(machine, inst, e, value);
    // A mask that takes nothing away.
    let kept = |e: &Expr, mask: u32| possible(e) as u32 & !mask == 0;
    match e {
        Expr::Const(c) => Some(Sum::number(*c as u32)),
        Expr::Imm(o) => match inst.ops.get(*o)? {
            VOp::Imm(v) => Some(Sum::number(*v as u32)),
            _ => None,
        },
        Expr::Operand(o) => match inst.ops.get(*o)? {
            VOp::Const(c) => Some(Sum::number(*c as u32)),
            VOp::Phys(r) if machine.regs[usize::from(r.0)].zero => Some(Sum::number(0)),
            VOp::Use(v) | VOp::Tied { used: v, .. } if width(machine, inst, *o) >= 32 => value(*o, *v)?.sum,
            _ => None,
        },
        Expr::Bin { op, bits: 32.., a, b } => {
            let (x, y) = (&**a, &**b);
            let (a, b) = (of(a)?, of(b)?);
            match (op, a.known(), b.known()) {
                (BinOp::Add, ..) => Some(a.plus(&b)),
                (BinOp::Sub, ..) => Some(a.minus(&b)),
                (BinOp::Mul, _, Some(factor)) => Some(a.times(factor)),
                (BinOp::Mul, Some(factor), _) => Some(b.times(factor)),
                (BinOp::Shl, _, Some(by)) if by < 32 => Some(a.times(1 << by)),
                // Constants of two halves.
                (BinOp::Or, Some(a), Some(b)) => Some(Sum::number(a | b)),
                (BinOp::And, Some(a), Some(b)) => Some(Sum::number(a & b)),
                (BinOp::And, _, Some(mask)) if kept(x, mask) => Some(a),
                (BinOp::And, Some(mask), _) if kept(y, mask) => Some(b),
                // Without a carry.
                (BinOp::Or | BinOp::Xor, ..) if possible(x) as u32 & possible(y) as u32 == 0 => Some(a.plus(&b)),
                _ => None,
            }
        }
        Expr::Un { op: UnOp::SExt32, bits: 32.., a } => of(a),
        // The bits above do not count, and within the 32 the number is known.
        Expr::Slice { a, lo: 0, width: 32.. } => of(a),
        Expr::Slice { a, lo: 0, width } => {
            let mask = (1u32 << width) - 1;
            let sum = of(a)?;
            match sum.known() {
                Some(number) => Some(Sum::number(number & mask)),
                None => kept(a, mask).then_some(sum),
            }
        }
        _ => None,
    }
}
