//! Sums with rotates, where few units shift.
//!
//! A rotate that a machine lacks is two shifts and a sum. Where a cluster has one unit
//! that shifts, the second shift waits for it, and what the rotate is added to could
//! be added to the first one meanwhile:
//!
//! ```text
//! (x << n) + (x >> m), + k      ->      (x << n) + k, + (x >> m)
//! ```
//!
//! The sum takes as many operations as before, no longer on a machine with room for
//! both shifts at once, and one cycle less on the others. The same holds for
//! exclusive-ors, the halves of a rotate having no bit in common. A rotate that is
//! used again stays whole; one that is there before the other term does, too.

use crate::legalise::units;
use ciphermill_ir::low_bits::use_counts;
use ciphermill_ir::{BinOp, CmpOp, Func, Inst, Op, Value, bits};
use ciphermill_machine::Machine;
use ciphermill_patterns::matcher::Matcher;
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::pattern::Action;
use std::collections::{HashMap, HashSet};

/// Places by which instructions scale what they add.
pub(crate) const SCALES: u64 = 3;

/// Rewrite the sums of a function; [`shifts_are_few`] says whether that is of use.
pub fn spread(func: &mut Func, machine: &Machine, matcher: &Matcher) {
    let uses = use_counts(func);
    for block in func.layout.clone() {
        let mut ready: HashMap<Value, u32> = HashMap::new();
        let mut gone: HashSet<Inst> = HashSet::new();
        let mut out: Vec<Inst> = Vec::with_capacity(func.blocks[block].insts.len());
        for inst in std::mem::take(&mut func.blocks[block].insts) {
            for arg in 0..func.insts[inst].args.len() {
                func.insts[inst].args[arg] = func.resolve(func.insts[inst].args[arg]);
            }
            if let Some((rotate, [first, last], term)) = sum(func, inst, &uses, &ready) {
                let (op, loc, ty) = (func.insts[inst].op, func.insts[inst].loc, func.ty(func.result(inst)));
                gone.extend(func.def_inst(rotate));
                let early = func.make_inst(op, &[first, term], &[ty], loc);
                let sum = func.result(early);
                ready.insert(sum, 1 + ready.get(&first).max(ready.get(&term)).copied().unwrap_or(0));
                out.push(early);
                func.insts[inst].args = [sum, last].into_iter().collect();
            }
            let data = &func.insts[inst];
            let start = data.args.iter().filter_map(|a| ready.get(a)).max().copied().unwrap_or(0);
            let end = start + latency(machine, matcher, data.op);
            for &result in &data.results {
                ready.insert(result, end);
            }
            out.push(inst);
        }
        out.retain(|i| !gone.contains(i));
        func.blocks[block].insts = out;
    }
}

/// Do fewer units shift than add?
pub fn shifts_are_few(machine: &Machine, matcher: &Matcher) -> bool {
    let shifters = units(machine, matcher, BinOp::Shl, true);
    0 < shifters && shifters < units(machine, matcher, BinOp::Add, false)
}

/// Write `(x << 3) + y` as `((x + x) << 2) + y` where an addition scales by four and few
/// units shift: two additions in the place of one, and no shift.
pub fn scale(func: &mut Func, matcher: &Matcher) {
    if !adds_fourfold(matcher) {
        return;
    }
    let uses = use_counts(func);
    for block in func.layout.clone() {
        let mut out: Vec<Inst> = Vec::with_capacity(func.blocks[block].insts.len());
        let mut gone: HashSet<Inst> = HashSet::new();
        for inst in std::mem::take(&mut func.blocks[block].insts) {
            let args: Vec<Value> = func.insts[inst].args.iter().map(|&a| func.resolve(a)).collect();
            let eightfold = |&k: &usize| {
                let shifted = shift(func, args[k]).filter(|s| !s.wide && s.op == BinOp::Shl);
                uses.get(&args[k]) == Some(&1) && shifted.is_some_and(|s| func.as_const(s.by) == Some(3))
            };
            let which = (0..args.len()).filter(|_| func.insts[inst].op == Op::Bin(BinOp::Add)).find(eightfold);
            if let Some((k, old)) = which.and_then(|k| Some((k, func.def_inst(args[k])?))) {
                let (x, loc, ty) = (func.resolve(func.insts[old].args[0]), func.insts[inst].loc, func.ty(args[k]));
                let twice = func.make_inst(Op::Bin(BinOp::Add), &[x, x], &[ty], loc);
                let two = func.make_inst(Op::Const(2), &[], &[ty], loc);
                let by = [func.result(twice), func.result(two)];
                let scaled = func.make_inst(Op::Bin(BinOp::Shl), &by, &[ty], loc);
                func.insts[inst].args[k] = func.result(scaled);
                out.extend([twice, two, scaled]);
                gone.insert(old);
            }
            out.push(inst);
        }
        // A shift of another block is left, and found to be of no use later.
        out.retain(|i| !gone.contains(i));
        func.blocks[block].insts = out;
    }
}

/// Is there an instruction that computes `a + (b << 2)`?
fn adds_fourfold(matcher: &Matcher) -> bool {
    let scaled =
        |p: &Pat| matches!(p, Pat::Bin(BinOp::Shl, b, by) if matches!((&**b, &**by), (Pat::Reg(_), Pat::Const(2))));
    matcher.candidates(Op::Bin(BinOp::Add)).iter().any(|&i| match &matcher.template(i).action {
        Action::Value(_, Pat::Bin(BinOp::Add, a, b)) => {
            matches!(**a, Pat::Reg(_)) && scaled(b) || matches!(**b, Pat::Reg(_)) && scaled(a)
        }
        _ => false,
    })
}

/// A sum of a rotate and a term that is there no later: the rotate, its halves (the
/// one that is there last behind the other), and the term.
fn sum(
    func: &Func,
    inst: Inst,
    uses: &HashMap<Value, u32>,
    ready: &HashMap<Value, u32>,
) -> Option<(Value, [Value; 2], Value)> {
    let data = &func.insts[inst];
    let Op::Bin(op @ (BinOp::Add | BinOp::Xor)) = data.op else { return None };
    let when = |v: Value| ready.get(&v).copied().unwrap_or(0);
    for (rotate, term) in [(data.args[0], data.args[1]), (data.args[1], data.args[0])] {
        // A rotate of another block stays there.
        if uses.get(&rotate) != Some(&1) || !ready.contains_key(&rotate) || func.as_const(term).is_some() {
            continue;
        }
        let Some(mut halves) = halves(func, rotate, op) else { continue };
        if when(halves[0]) > when(halves[1]) {
            halves.swap(0, 1);
        }
        if when(term) <= when(halves[0]) {
            return Some((rotate, halves, term));
        }
    }
    None
}

/// The two shifts of a rotate that are summed up in a way that goes with `op`.
pub(crate) fn halves(func: &Func, rotate: Value, op: BinOp) -> Option<[Value; 2]> {
    let data = &func.insts[func.def_inst(rotate)?];
    let Op::Bin(with @ (BinOp::Add | BinOp::Or | BinOp::Xor)) = data.op else { return None };
    let [a, b] = [0, 1].map(|i| func.resolve(data.args[i]));
    let (left, right) = (shift(func, a)?, shift(func, b)?);
    let opposite = matches!((left.op, right.op), (BinOp::Shl, BinOp::ShrU) | (BinOp::ShrU, BinOp::Shl));
    // Nothing is left over where an instruction scales and adds.
    let scaled = [left, right].iter().any(|s| s.op == BinOp::Shl && func.as_const(s.by).is_some_and(|n| n <= SCALES));
    let apart = with == op
        || bits::possible(func, a) & bits::possible(func, b) == 0
        || left.wide && right.wide && complementary(func, left.by, right.by);
    (opposite && left.of == right.of && !scaled && apart).then_some([a, b])
}

/// A shift: `of op by`, or, where it is `wide`, 0 if the six lowest bits of `by` are 32
/// or more.
#[derive(Clone, Copy)]
struct Shift {
    op: BinOp,
    of: Value,
    by: Value,
    wide: bool,
}

fn shift(func: &Func, v: Value) -> Option<Shift> {
    let data = &func.insts[func.def_inst(v)?];
    let arg = |i: usize| func.resolve(data.args[i]);
    match data.op {
        Op::Bin(op @ (BinOp::Shl | BinOp::ShrU)) => Some(Shift { op, of: arg(0), by: arg(1), wide: false }),
        Op::Select if func.as_const(arg(1)) == Some(0) => {
            let inner = shift(func, arg(2)).filter(|s| !s.wide)?;
            exceeds(func, arg(0), inner.by).then_some(Shift { wide: true, ..inner })
        }
        _ => None,
    }
}

/// Is it `32 <=u (by & 63)`?
fn exceeds(func: &Func, condition: Value, by: Value) -> bool {
    let parts = |v: Value, wanted: Op| {
        let data = &func.insts[func.def_inst(v)?];
        (data.op == wanted).then(|| [0, 1].map(|i| func.resolve(data.args[i])))
    };
    let masked = parts(condition, Op::Cmp(CmpOp::LeU)).filter(|[least, _]| func.as_const(*least) == Some(32));
    let amount = masked.and_then(|[_, masked]| parts(masked, Op::Bin(BinOp::And)));
    amount.is_some_and(|[amount, mask]| amount == by && func.as_const(mask) == Some(63))
}

/// Is one amount the word's length less the other?
fn complementary(func: &Func, a: Value, b: Value) -> bool {
    let less = |a: Value, b: Value| {
        let Some(data) = func.def_inst(b).map(|i| &func.insts[i]) else { return false };
        let of_word = |v: Value| func.as_const(v) == Some(u64::from(func.ty(a).bits()));
        data.op == Op::Bin(BinOp::Sub) && of_word(func.resolve(data.args[0])) && func.resolve(data.args[1]) == a
    };
    less(a, b) || less(b, a)
}

/// Cycles to the result of the cheapest instruction that does an operation.
fn latency(machine: &Machine, matcher: &Matcher, op: Op) -> u32 {
    let cheapest = matcher.candidates(op).iter().map(|&i| matcher.template(i)).min_by_key(|t| t.cost);
    let parts = cheapest.map_or(&[][..], |t| &t.parts);
    parts.iter().map(|p| machine.instrs[usize::from(p.instr.0)].latency).sum()
}
