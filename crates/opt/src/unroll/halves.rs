//! A counter in a ring that is divided in halves: on either side of the loop it is in a half of its own.
//!
//! A generator that renews one table and then another counts through both, and asks in which half the
//! counter is. On the side on which it is in the lower half it is its own lowest bits, and on the other one
//! the half plus these; and as it goes on by a power of two, or a multiple of one, it is a multiple. Written so,
//! everyone sees which of the tables an address is in. A counter that is above the ring, or no multiple, is
//! so only where the loop begins. So a side is entered where a test says that the counter is a place of the ring,
//! and else an iteration runs that assumes nothing.

use super::graph::Graph;
use super::lasting;
use crate::edit;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{BinOp, Block, CmpOp, Func, Op, Target, Terminator, Type, Value};

/// A counter whose ring a condition divides.
#[derive(Clone, Copy)]
pub(super) struct Halves {
    pub counter: Value,
    /// As long as a half, a power of two.
    half: u32,
    /// The largest power of two, below the half, that it goes on by multiples of.
    unit: u32,
    /// The condition is true in the lower half.
    lower: bool,
}

impl Halves {
    /// The halves that a comparison tells apart.
    pub fn of(func: &Func, graph: &Graph, id: LoopId, cond: Value) -> Option<Halves> {
        let (op, a, b) = lasting::operation(func, cond)?;
        let number = |v: Value| func.as_const(v).map(|n| n as u32);
        let (counter, half, lower) = match (op, number(a), number(b)) {
            (Op::Cmp(CmpOp::LtU), None, Some(n)) => (a, n, true),
            (Op::Cmp(CmpOp::LeU), None, Some(n)) => (a, n.wrapping_add(1), true),
            (Op::Cmp(CmpOp::LtU), Some(n), None) => (b, n.wrapping_add(1), false),
            (Op::Cmp(CmpOp::LeU), Some(n), None) => (b, n, false),
            _ => return None,
        };
        let ring = u64::from(half.checked_mul(2)?) - 1;
        let within = |v: Value| match lasting::operation(func, v) {
            Some((Op::Bin(BinOp::And), _, mask)) => func.as_const(mask) == Some(ring),
            _ => false,
        };
        let next = lasting::next(func, graph, id, counter)?;
        let step = lasting::step(func, graph, id, counter)?;
        let unit = 1u32.checked_shl(step.trailing_zeros())?;
        let fits = half.is_power_of_two() && unit < half && func.ty(counter) == Type::I32;
        (fits && next.into_iter().all(within)).then_some(Halves { counter, half, unit, lower })
    }

    /// Has the side to be tested for on which the condition has this value?
    pub fn tested(&self, when: bool) -> bool {
        self.upper(when) || self.unit > 1
    }

    /// Is the counter in the upper half where the condition has this value?
    fn upper(&self, when: bool) -> bool {
        when != self.lower
    }

    /// On a side, which begins with `begin`, write the counter as what it is there.
    pub fn write(&self, func: &mut Func, blocks: &[Block], begin: Block, counter: Value, when: bool) {
        let term = edit::take_term(func, begin);
        let bits = self.constant(func, begin, self.half - self.unit);
        let mut value = func.append1(begin, Op::Bin(BinOp::And), &[counter, bits], Type::I32, 0);
        let own = func.def_inst(value);
        if self.upper(when) {
            let half = self.constant(func, begin, self.half);
            value = func.append1(begin, Op::Bin(BinOp::Add), &[value, half], Type::I32, 0);
        }
        func.blocks[begin].term = term;
        let known = |v: Value| if v == counter { value } else { v };
        for &block in blocks {
            for inst in func.blocks[block].insts.clone() {
                if Some(inst) != own {
                    func.insts[inst].args.iter_mut().for_each(|v| *v = known(*v));
                }
            }
            let mut term = edit::take_term(func, block);
            term.map_values(known);
            func.blocks[block].term = term;
        }
    }

    /// What is not 0 where a counter is no place of the ring.
    pub fn beyond(&self, func: &mut Func, block: Block, counter: Value) -> Value {
        let others = self.constant(func, block, !(2 * self.half - self.unit));
        func.append1(block, Op::Bin(BinOp::And), &[counter, others], Type::I32, 0)
    }

    /// The condition for a side's next iteration to be on the same side, with the counter in the ring;
    /// it is 0 or 1, and the side goes on where it is what `when` says.
    pub fn stays(&self, func: &mut Func, block: Block, cond: Value, counter: Value, when: bool) -> Value {
        let beyond = self.beyond(func, block, counter);
        if !when {
            return func.append1(block, Op::Bin(BinOp::Or), &[cond, beyond], Type::I32, 0);
        }
        let zero = self.constant(func, block, 0);
        let inside = func.append1(block, Op::Cmp(CmpOp::Eq), &[beyond, zero], Type::I32, 0);
        func.append1(block, Op::Bin(BinOp::And), &[cond, inside], Type::I32, 0)
    }

    /// A block that goes on to a side if the counter is a place of the ring, and to what assumes nothing else.
    pub fn check(&self, func: &mut Func, counter: Value, [side, other]: [Block; 2], args: &[Value]) -> Block {
        let check = func.add_block();
        let beyond = self.beyond(func, check, counter);
        let to = |block| Target::new(block, args.to_vec());
        func.blocks[check].term = Terminator::Branch { cond: beyond, then: to(other), els: to(side) };
        check
    }

    fn constant(&self, func: &mut Func, block: Block, value: u32) -> Value {
        func.append1(block, Op::Const(u64::from(value)), &[], Type::I32, 0)
    }
}
