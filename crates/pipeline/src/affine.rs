//! Addresses as sums, which tell accesses of different iterations apart.
//!
//! An address is a sum of roots times constants, plus a constant. A root is a value from outside
//! the loop, the number of the iteration, or a value of one iteration of which nothing is known. An
//! induction (a value that is that of the iteration before plus a constant) is the value that it
//! begins with plus that constant times the iteration's number. Values from outside are followed to
//! what they are made of: a pointer that begins 64 bytes behind another has the same root.
//!
//! Two accesses whose addresses differ by constants alone meet in those iterations in which their
//! bytes overlap, and in no others. All sums are taken modulo 2^32. That loses nothing that matters:
//! two bytes of one address are of one address modulo 2^32, so accesses that are apart there are
//! apart, on machines with longer words too, and whether or not an address wraps. One condition is
//! left: a distance is looked for below the one at which the step times it comes round. So steps are
//! below [`LARGEST_STEP`], which lets 2^15 iterations pass before that, and no schedule overlaps so
//! many.

use super::body::{From, Node};
use ciphermill_ir::{BinOp, UnOp};
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Machine, OperandKind};
use ciphermill_vcode::{VFunc, VInst, VKind, VOp, VReg};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A step beyond this, in bytes, may come round before the iterations that overlap are over.
const LARGEST_STEP: i64 = 1 << 16;
/// A sum of more roots is a root itself.
const MOST_ROOTS: usize = 8;
/// Values from outside are followed through so many instructions, one behind the other.
const DEEPEST: u32 = 32;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Root {
    /// The iteration's number.
    Turn,
    Outside(VReg),
    /// What a node left in the iteration before.
    Before(usize),
    /// What a node makes in this iteration.
    Made(usize),
}

/// Roots times constants, plus a constant, modulo 2^32. No factor is 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Sum {
    roots: BTreeMap<Root, u32>,
    constant: u32,
}

impl Sum {
    fn root(root: Root) -> Sum {
        Sum { roots: BTreeMap::from([(root, 1)]), constant: 0 }
    }

    fn number(constant: u32) -> Sum {
        Sum { roots: BTreeMap::new(), constant }
    }

    /// The number that it is, if it is one.
    fn known(&self) -> Option<u32> {
        self.roots.is_empty().then_some(self.constant)
    }

    fn times(mut self, factor: u32) -> Sum {
        self.roots.values_mut().for_each(|f| *f = f.wrapping_mul(factor));
        self.roots.retain(|_, f| *f != 0);
        self.constant = self.constant.wrapping_mul(factor);
        self
    }

    fn plus(mut self, other: &Sum) -> Sum {
        for (&root, &factor) in &other.roots {
            let sum = self.roots.entry(root).or_insert(0);
            *sum = sum.wrapping_add(factor);
        }
        self.roots.retain(|_, f| *f != 0);
        self.constant = self.constant.wrapping_add(other.constant);
        self
    }

    fn minus(self, other: &Sum) -> Sum {
        self.plus(&other.clone().times(u32::MAX))
    }

    /// With other sums in the place of some roots.
    fn with(&self, instead: &dyn Fn(Root) -> Option<Sum>) -> Sum {
        let start = Sum::number(self.constant);
        self.roots.iter().fold(start, |sum, (&root, &factor)| {
            sum.plus(&instead(root).unwrap_or_else(|| Sum::root(root)).times(factor))
        })
    }
}

/// Which iterations two accesses meet in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meeting {
    Unknown,
    Never,
    /// The second's iteration is at the least so many behind the first's.
    After(u32),
}

/// The address of an access to memory.
#[derive(Clone, Debug)]
pub struct Address {
    sum: Sum,
    bytes: i64,
}

impl Address {
    /// Are they apart in one and the same iteration?
    pub fn apart(&self, other: &Address) -> bool {
        let between = other.sum.clone().minus(&self.sum).known();
        between.is_some_and(|between| !self.overlaps(other, i64::from(between as i32)))
    }

    /// Do their bytes overlap, if the other's address is so much higher?
    fn overlaps(&self, other: &Address, between: i64) -> bool {
        -other.bytes < between && between < self.bytes
    }

    /// The least distance from an iteration to a later one (or itself, if `least` is 0) of which
    /// the access `other` meets this one.
    pub fn meets(&self, other: &Address, least: u32) -> Meeting {
        let steady = |r: &Root| matches!(r, Root::Turn | Root::Outside(_));
        let Some(between) = other.sum.clone().minus(&self.sum).known() else { return Meeting::Unknown };
        let step = self.sum.roots.get(&Root::Turn).copied().unwrap_or(0);
        let (between, step) = (i64::from(between as i32), i64::from(step as i32));
        if !self.sum.roots.keys().all(steady) || step.abs() > LARGEST_STEP {
            return Meeting::Unknown;
        }
        // At distance d the other is `between + step * d` higher. It enters where that comes in reach.
        let outside = if step < 0 { between - (self.bytes - 1) } else { -(other.bytes - 1) - between };
        let enters = match step.abs() {
            0 => 0,
            step => (outside.max(0) as u64).div_ceil(step as u64) as i64,
        };
        let distance = enters.max(i64::from(least));
        match u32::try_from(distance) {
            Ok(d) if self.overlaps(other, between + step * distance) => Meeting::After(d),
            _ => Meeting::Never,
        }
    }
}

/// Where instructions outside of a loop find what they read.
struct Outside<'a> {
    func: &'a VFunc,
    machine: &'a Machine,
    /// Block and place of each definition.
    made: BTreeMap<VReg, (usize, usize)>,
    /// What a block's parameter is, where one edge alone leads to the block.
    given: BTreeMap<VReg, VReg>,
    /// Sums that were asked for before.
    found: RefCell<BTreeMap<VReg, Sum>>,
}

impl<'a> Outside<'a> {
    /// `back` is the block behind which the loop's `header` runs once more.
    fn of(func: &'a VFunc, machine: &'a Machine, header: u32, back: u32) -> Outside<'a> {
        let mut made = BTreeMap::new();
        let mut edges: BTreeMap<u32, Vec<&[VReg]>> = BTreeMap::new();
        for (b, block) in func.blocks.iter().enumerate() {
            if b as u32 != header && b as u32 != back {
                for (at, inst) in block.insts.iter().enumerate().filter(|(_, i)| i.kind == VKind::Normal) {
                    made.extend(inst.defs().map(|d| (d, (b, at))));
                }
            }
            for (to, handed) in &block.succs {
                if *to != header || b as u32 != back {
                    edges.entry(*to).or_default().push(handed);
                }
            }
        }
        let mut given = BTreeMap::new();
        for (to, list) in edges {
            if let [handed] = list[..] {
                given.extend(func.blocks[to as usize].params.iter().copied().zip(handed.iter().copied()));
            }
        }
        Outside { func, machine, made, given, found: RefCell::default() }
    }

    fn sum(&self, v: VReg, depth: u32) -> Sum {
        if let Some(found) = self.found.borrow().get(&v) {
            return found.clone();
        }
        let sum = self.followed(v, depth).filter(|s| s.roots.len() <= MOST_ROOTS);
        let sum = sum.unwrap_or_else(|| Sum::root(Root::Outside(v)));
        self.found.borrow_mut().insert(v, sum.clone());
        sum
    }

    /// The sum of what a value is made of.
    fn followed(&self, v: VReg, depth: u32) -> Option<Sum> {
        let depth = depth.checked_sub(1)?;
        if let Some(&from) = self.given.get(&v) {
            return Some(self.sum(from, depth));
        }
        let &(block, at) = self.made.get(&v)?;
        result(self.machine, &self.func.blocks[block].insts[at], &|_, v| Some(self.sum(v, depth)))
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
    let mut sums: Vec<Sum> = Vec::with_capacity(nodes.len());
    for (i, node) in nodes.iter().enumerate() {
        let value = |o: usize, _| operand(node, o, &sums, &outside);
        let own = result(machine, &node.inst, &value).filter(|s| s.roots.len() <= MOST_ROOTS);
        sums.push(own.unwrap_or_else(|| Sum::root(Root::Made(i))));
    }
    // What a node left before is what it began with and so many steps.
    let carried = |root: Root| {
        let Root::Before(n) = root else { return None };
        let step = sums[n].clone().minus(&Sum::root(root)).known()?;
        Some(outside.sum(*initial.get(&n)?, DEEPEST).plus(&Sum::root(Root::Turn).times(step)))
    };
    let address = |node: &Node| {
        let (expr, bytes) = accessed(machine, &node.inst)?;
        let mem = node.mem.filter(|m| m.bytes == bytes)?;
        let value = |o: usize, _| operand(node, o, &sums, &outside);
        let sum = linear(machine, &node.inst, &expr, &value)?;
        Some(Address { sum: sum.with(&carried), bytes: i64::from(mem.bytes) })
    };
    nodes.iter().map(address).collect()
}

/// What a node reads in an operand.
fn operand(node: &Node, o: usize, sums: &[Sum], outside: &Outside<'_>) -> Option<Sum> {
    Some(match node.reads.iter().find(|r| r.0 == o)?.1 {
        From::Node(p, 0) => sums.get(p)?.clone(),
        From::Node(p, _) => Sum::root(Root::Before(p)),
        From::Outside(v) => outside.sum(v, DEEPEST),
    })
}

/// What an instruction's operand is, by the operand's number and the register that it reads.
type Value<'a> = dyn Fn(usize, VReg) -> Option<Sum> + 'a;

/// The sum that an instruction's one result is, if its meaning is one.
fn result(machine: &Machine, inst: &VInst, value: &Value<'_>) -> Option<Sum> {
    let instr = &machine.instrs[usize::from(inst.instr.0)];
    let [Stmt::Assign { dest: Dest::Operand(o), value: meaning }] = &instr.semantics[..] else { return None };
    if !wide(machine, inst, *o) || inst.mem.is_some() || inst.trap.is_some() {
        return None;
    }
    linear(machine, inst, meaning, value)
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

/// Has an operand's register all of the 32 bits?
fn wide(machine: &Machine, inst: &VInst, o: usize) -> bool {
    match machine.instrs[usize::from(inst.instr.0)].operands.get(o).map(|o| &o.kind) {
        Some(OperandKind::Reg { file, .. }) => machine.files[*file].bits >= 32,
        _ => false,
    }
}

/// An expression as a sum, modulo 2^32.
fn linear(machine: &Machine, inst: &VInst, e: &Expr, value: &Value<'_>) -> Option<Sum> {
    let of = |e: &Expr| linear(machine, inst, e, value);
    match e {
        Expr::Const(c) => Some(Sum::number(*c as u32)),
        Expr::Imm(o) => match inst.ops.get(*o)? {
            VOp::Imm(v) => Some(Sum::number(*v as u32)),
            _ => None,
        },
        Expr::Operand(o) => match inst.ops.get(*o)? {
            VOp::Const(c) => Some(Sum::number(*c as u32)),
            VOp::Phys(r) if machine.regs[usize::from(r.0)].zero => Some(Sum::number(0)),
            VOp::Use(v) | VOp::Tied { used: v, .. } if wide(machine, inst, *o) => value(*o, *v),
            _ => None,
        },
        Expr::Bin { op, bits: 32.., a, b } => {
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
                (BinOp::And, _, Some(u32::MAX)) => Some(a),
                _ => None,
            }
        }
        Expr::Un { op: UnOp::SExt32, bits: 32.., a } => of(a),
        // The bits above do not count, and within the 32 the number is known.
        Expr::Slice { a, lo: 0, width: 32.. } => of(a),
        Expr::Slice { a, lo: 0, width } => of(a)?.known().map(|a| Sum::number(a & ((1 << width) - 1))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address in bytes behind a pointer that takes such a step.
    fn at(constant: u32, step: u32, bytes: i64) -> Address {
        let sum = Sum::root(Root::Outside(VReg(0))).plus(&Sum::root(Root::Turn).times(step));
        Address { sum: sum.plus(&Sum::number(constant)), bytes }
    }

    #[test]
    fn distances_by_hand() {
        let (word, before) = (at(0, 4, 4), at(-12i32 as u32, 4, 4));
        // What is stored here is loaded three iterations later, and never the other way round.
        assert_eq!(word.meets(&before, 0), Meeting::After(3));
        assert_eq!(before.meets(&word, 0), Meeting::Never);
        assert_eq!(word.meets(&word, 0), Meeting::After(0));
        assert_eq!(word.meets(&word, 1), Meeting::Never);
        // A pointer that stands still, and one that goes back.
        assert_eq!(at(8, 0, 4).meets(&at(8, 0, 4), 1), Meeting::After(1));
        assert_eq!(at(8, 0, 4).meets(&at(12, 0, 4), 1), Meeting::Never);
        assert_eq!(at(0, -4i32 as u32, 4).meets(&at(9, -4i32 as u32, 4), 1), Meeting::After(2));
        // Steps of one byte: a word meets itself three times more.
        assert_eq!(at(0, 1, 4).meets(&at(0, 1, 4), 1), Meeting::After(1));
        assert_eq!(at(0, 1, 1).meets(&at(-5i32 as u32, 1, 4), 1), Meeting::After(2));
        // Other roots and steps, and a step that comes round soon.
        assert_eq!(word.meets(&at(0, 8, 4), 1), Meeting::Unknown);
        assert_eq!(at(0, 1 << 30, 4).meets(&at(0, 1 << 30, 4), 1), Meeting::Unknown);
        let other = Address { sum: Sum::root(Root::Outside(VReg(1))), bytes: 4 };
        assert_eq!(at(0, 0, 4).meets(&other, 1), Meeting::Unknown);
        // Of what one iteration makes, another iteration may make something else.
        let made = |constant| Address { sum: Sum::root(Root::Made(3)).plus(&Sum::number(constant)), bytes: 4 };
        assert_eq!(made(0).meets(&made(0), 1), Meeting::Unknown);
        assert!(made(0).apart(&made(4)) && !made(0).apart(&made(3)));
    }

    /// Every distance up to some is tried, with addresses as the machine counts them.
    #[test]
    fn the_least_distance_is_the_first_at_which_bytes_overlap() {
        let seed = 0x5eed_0002u64;
        println!("seed {seed:#x}");
        let mut state = seed;
        let mut random = |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % n
        };
        let mut met = 0;
        for _ in 0..20_000 {
            let step = (random(41) as u32).wrapping_sub(20);
            let sizes = [1, 2, 4, 8];
            let (x, y) = ((random(121) as u32).wrapping_sub(60), (random(121) as u32).wrapping_sub(60));
            let (a, b) = (sizes[random(4) as usize], sizes[random(4) as usize]);
            let least = random(3) as u32;
            let pointer = random(1 << 32) as u32;
            let bytes = |first: u32, n: u32| (0..n).map(move |k| pointer.wrapping_add(first).wrapping_add(k));
            let overlap = |d: &u32| {
                let later = y.wrapping_add(step.wrapping_mul(*d));
                bytes(x, a).any(|i| bytes(later, b).any(|j| i == j))
            };
            let wanted = (least..200).find(overlap).map_or(Meeting::Never, Meeting::After);
            let found = at(x, step, i64::from(a)).meets(&at(y, step, i64::from(b)), least);
            assert_eq!(found, wanted, "{x} {a} {y} {b} step {step} from {least} on");
            met += usize::from(wanted != Meeting::Never);
        }
        assert!(met > 1000, "{met} of them meet");
    }

    #[test]
    fn sums_are_modulo_two_to_the_32() {
        let x = Sum::root(Root::Outside(VReg(0)));
        let y = Sum::root(Root::Outside(VReg(1)));
        let sum = x.clone().times(4).plus(&y).plus(&Sum::number(7));
        assert_eq!(sum.clone().minus(&y).minus(&x.clone().times(3)).minus(&x).known(), Some(7));
        assert_eq!(sum.clone().minus(&y).known(), None);
        assert_eq!(x.times(1 << 31).times(2).known(), Some(0));
    }
}
