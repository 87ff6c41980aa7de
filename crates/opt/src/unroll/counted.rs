//! Counted loops of unknown length: when do the next few iterations come for
//! certain?
//!
//! A *counter* is a header parameter `i` that every back edge raises by the
//! same constant `s` (modulo the word). A branch out of the loop is *counted*
//! when it compares `x = i + d`, `d` constant, with a bound `n` that the loop
//! does not change, and goes on while `x` is below, above, or different from
//! `n`. To run several iterations as one, `t` tests in a row have to be known to go
//! on: those of `x`, `x + s`, ..., `x + (t - 1) s`.
//!
//! That is asked by one comparison, the *guard*, chosen so that it implies the
//! `t` tests whatever wraps around. Let `y` be `i` when `d` and `s` have the
//! same sign and `x` otherwise, and `r` the distance from `y` to the farthest
//! of the tested values, which is less than half of the number circle:
//!
//! | goes on while | `s` | guard | once, before the loop |
//! |---|---|---|---|
//! | `x < n`  | > 0 | `y < n - r`  | `n - r` does not wrap |
//! | `x <= n` | > 0 | `y <= n - r` | the same |
//! | `x > n`  | < 0 | `y > n + r`  | `n + r` does not wrap |
//! | `x >= n` | < 0 | `y >= n + r` | the same |
//! | `x != n` | > 0 | `n - y >u r` | |
//! | `x != n` | < 0 | `y - n >u r` | |
//!
//! Comparisons are signed or unsigned as the test is. In the first four the
//! tested values lie between `y` and `y ± r` without wrapping, since that is
//! on the near side of `n`. In the last two they are closer to `y` than `n`
//! is, in the direction of counting. The guard may be false although the tests
//! would go on (at wrap-around, or for a loop of 2^32 iterations): then the
//! original loop runs, which is always right.

use super::graph::{Exit, Graph};
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{BinOp, Block, CmpOp, Func, Inst, Op, Type, Value, ops};

/// A loop's counter and the branch that asks it.
#[derive(Clone, Copy)]
pub(crate) struct Counted {
    pub exit: Exit,
    /// Number of the counter among the header's parameters.
    pub counter: usize,
    pub ty: Type,
    /// What an iteration adds to the counter, in two's complement of its type.
    pub step: u64,
    /// Constant added to the counter before it is tested.
    pub ahead: u64,
    pub bound: Bound,
    pub test: Test,
    /// The operation that takes the step.
    pub stepper: Inst,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Constant(u64),
    Value(Value),
}

/// The relation of tested value and bound while the loop goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Test {
    NotEqual,
    /// The value is below the bound, or may equal it.
    Below {
        signed: bool,
        or_equal: bool,
    },
    /// The value is above the bound, or may equal it.
    Above {
        signed: bool,
        or_equal: bool,
    },
}

impl Counted {
    /// The loop's counted branches.
    pub(crate) fn of(func: &Func, graph: &Graph, id: LoopId) -> Vec<Counted> {
        Exit::of(func, graph, id).into_iter().filter_map(|exit| Counted::by(func, graph, id, exit)).collect()
    }

    fn by(func: &Func, graph: &Graph, id: LoopId, exit: Exit) -> Option<Counted> {
        let (op, x, y) = relation(func, exit)?;
        let bound_of = |v: Option<Value>| match v {
            None => Some(Bound::Constant(0)),
            Some(v) => match func.as_const(v) {
                Some(c) => Some(Bound::Constant(c)),
                None => graph.invariant(id, v).then_some(Bound::Value(v)),
            },
        };
        let (tested, bound, on_left) = match (bound_of(y), bound_of(Some(x))) {
            (Some(bound), None) => (x, bound, true),
            (None, Some(bound)) => (y?, bound, false),
            _ => return None,
        };
        let test = match (op, on_left) {
            (CmpOp::Ne, _) => Test::NotEqual,
            (CmpOp::Eq, _) => return None,
            (CmpOp::LtU, true) => Test::Below { signed: false, or_equal: false },
            (CmpOp::LtS, true) => Test::Below { signed: true, or_equal: false },
            (CmpOp::LeU, true) => Test::Below { signed: false, or_equal: true },
            (CmpOp::LeS, true) => Test::Below { signed: true, or_equal: true },
            (CmpOp::LtU, false) => Test::Above { signed: false, or_equal: false },
            (CmpOp::LtS, false) => Test::Above { signed: true, or_equal: false },
            (CmpOp::LeU, false) => Test::Above { signed: false, or_equal: true },
            (CmpOp::LeS, false) => Test::Above { signed: true, or_equal: true },
        };
        let (base, ahead) = offset(func, tested);
        let counter = graph.header_param(func, id, base)?;
        let next = graph.agreed(func, &graph.back_edges(id), counter)?;
        let (from, step) = offset(func, next);
        let stepper = func.def_inst(next)?;
        let counts = from == base && step != 0;
        counts.then_some(Counted { exit, counter, ty: func.ty(base), step, ahead, bound, test, stepper })
    }

    fn signed(&self, c: u64) -> i64 {
        ops::sext(c, self.ty.bits())
    }

    /// The guard for `tests` tests in a row, the first of which is the one of
    /// the iteration that begins, or of the iteration before it if `missed`. The guard's
    /// parts that do not change are put at the end of `front`, which every
    /// entry into the loop passes. None when no guard is known.
    pub(crate) fn guard(&self, func: &mut Func, front: Block, tests: u32, missed: bool) -> Option<Guard> {
        let bits = self.ty.bits();
        let first = self.ahead.wrapping_sub(if missed { self.step } else { 0 }) & self.ty.mask();
        let (step, ahead) = (self.signed(self.step), self.signed(first));
        let up = step > 0;
        let from_counter = ahead == 0 || (ahead > 0) == up;
        let span = i128::from(step).unsigned_abs() * u128::from(tests.checked_sub(1)?);
        let reach = span + if from_counter { i128::from(ahead).unsigned_abs() } else { 0 };
        if reach >= 1 << (bits - 1) {
            return None;
        }
        let reach = reach as u64;
        let mut at = At { func, block: front, ty: self.ty };
        let bound = match self.bound {
            Bound::Constant(c) => at.constant(c),
            Bound::Value(v) => v,
        };
        let mut guard = Guard { once: None, op: CmpOp::LtU, swapped: false, limit: bound, minus: None, ahead: 0 };
        if !from_counter {
            guard.ahead = first;
        }
        let lowest = |signed: bool| if signed { 1u64 << (bits - 1) } else { 0 };
        let highest = |signed: bool| self.ty.mask() ^ lowest(signed);
        match self.test {
            Test::NotEqual => {
                guard.minus = Some(if up { Difference::FromBound(bound) } else { Difference::ToBound(bound) });
                guard.limit = at.constant(reach);
                guard.swapped = true;
            }
            Test::Below { signed, or_equal } if up => {
                let least = at.constant(lowest(signed).wrapping_add(reach));
                guard.once = Some(at.cmp(compare(signed, true), least, bound));
                let reach = at.constant(reach);
                guard.limit = at.bin(BinOp::Sub, bound, reach);
                guard.op = compare(signed, or_equal);
            }
            Test::Above { signed, or_equal } if !up => {
                let most = at.constant(highest(signed).wrapping_sub(reach));
                guard.once = Some(at.cmp(compare(signed, true), bound, most));
                let reach = at.constant(reach);
                guard.limit = at.bin(BinOp::Add, bound, reach);
                guard.op = compare(signed, or_equal);
                guard.swapped = true;
            }
            _ => return None,
        }
        Some(guard)
    }
}

/// The comparison that holds while the loop goes on; a plain value as condition
/// is compared with 0, for which there is no operand.
fn relation(func: &Func, exit: Exit) -> Option<(CmpOp, Value, Option<Value>)> {
    let comparison = func.def_inst(exit.cond).map(|i| &func.insts[i]);
    let Some((Op::Cmp(op), data)) = comparison.map(|data| (data.op, data)) else {
        return (!exit.when_true).then_some((CmpOp::Ne, exit.cond, None));
    };
    let (x, y) = (func.resolve(data.args[0]), func.resolve(data.args[1]));
    let (op, swapped) = if exit.when_true { op.negated() } else { (op, false) };
    Some(if swapped { (op, y, Some(x)) } else { (op, x, Some(y)) })
}

/// A value as base plus constant, modulo its word.
pub(crate) fn offset(func: &Func, v: Value) -> (Value, u64) {
    let mut base = func.resolve(v);
    let mask = func.ty(base).mask();
    let mut sum = 0u64;
    while let Some(inst) = func.def_inst(base) {
        let data = &func.insts[inst];
        let Some(c) = data.args.get(1).and_then(|&c| func.as_const(c)) else { break };
        match data.op {
            Op::Bin(BinOp::Add) => sum = sum.wrapping_add(c),
            Op::Bin(BinOp::Sub) => sum = sum.wrapping_sub(c),
            _ => break,
        }
        base = func.resolve(data.args[0]);
    }
    (base, sum & mask)
}

fn compare(signed: bool, or_equal: bool) -> CmpOp {
    match (signed, or_equal) {
        (false, false) => CmpOp::LtU,
        (false, true) => CmpOp::LeU,
        (true, false) => CmpOp::LtS,
        (true, true) => CmpOp::LeS,
    }
}

/// A comparison that implies that the next tests go on.
#[derive(Clone, Copy)]
pub(crate) struct Guard {
    /// Has to hold too, and does not change.
    pub once: Option<Value>,
    op: CmpOp,
    /// The limit stands on the left.
    swapped: bool,
    limit: Value,
    minus: Option<Difference>,
    /// Added to the counter first.
    ahead: u64,
}

#[derive(Clone, Copy)]
enum Difference {
    FromBound(Value),
    ToBound(Value),
}

impl Guard {
    /// Ask the guard at the end of a block: 1 when the tests will go on.
    pub(crate) fn ask(&self, func: &mut Func, block: Block, counter: Value) -> Value {
        let ty = func.ty(counter);
        let mut at = At { func, block, ty };
        let mut y = counter;
        if self.ahead != 0 {
            let c = at.constant(self.ahead);
            y = at.bin(BinOp::Add, y, c);
        }
        match self.minus {
            Some(Difference::FromBound(n)) => y = at.bin(BinOp::Sub, n, y),
            Some(Difference::ToBound(n)) => y = at.bin(BinOp::Sub, y, n),
            None => {}
        }
        if self.swapped { at.cmp(self.op, self.limit, y) } else { at.cmp(self.op, y, self.limit) }
    }
}

/// A block to append operations to.
struct At<'a> {
    func: &'a mut Func,
    block: Block,
    ty: Type,
}

impl At<'_> {
    fn constant(&mut self, c: u64) -> Value {
        self.func.append1(self.block, Op::Const(c & self.ty.mask()), &[], self.ty, 0)
    }

    fn bin(&mut self, op: BinOp, x: Value, y: Value) -> Value {
        self.func.append1(self.block, Op::Bin(op), &[x, y], self.ty, 0)
    }

    fn cmp(&mut self, op: CmpOp, x: Value, y: Value) -> Value {
        self.func.append1(self.block, Op::Cmp(op), &[x, y], Type::I32, 0)
    }
}
