//! Expressions opened and put together again.
//!
//! A *term* is a value with what is done to it on its way into a sum (or an exclusive-or, and so
//! on): shifts that distribute over it, and a sign. The latest term is opened again and again, and
//! after each time the terms are put together, always two of the earliest: that is Huffman's
//! algorithm, which makes trees of least height where every operation takes as long (Golumbic,
//! *Combinatorial merging*, IEEE Transactions on Computers 25, 1976). The tree whose value arrives
//! first takes the old one's place.

use super::clock::{Clock, EARLY, NEVER};
use crate::halves;
use ciphermill_ir::{BinOp, Block, Func, Inst, Op, Type, Value, bits};
use smallvec::{SmallVec, smallvec};
use std::collections::{HashMap, HashSet};

/// Terms up to which an expression is opened: a tree of this many leaves is four levels high, and the
/// work grows with their number.
const MOST_TERMS: usize = 12;

/// Of so many earliest terms two are put together: where an instruction shifts and adds, the next
/// but one can be the better partner.
const PARTNERS: usize = 3;

/// What the terms are put together with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Group {
    Sum,
    Xor,
    Or,
    And,
}

#[derive(Clone, Debug)]
struct Term {
    value: Value,
    /// What is done to it, in this order, with a constant each.
    ops: SmallVec<[(BinOp, u64); 2]>,
    negative: bool,
}

/// Rebuild every expression on a longest circuit; true where one is shorter now. With `twice`, also
/// where a value that is used elsewhere, too, is computed twice for it. `steps` operations at most are tried, and
/// taken off.
pub fn rebuild(func: &mut Func, block: Block, clock: &mut Clock<'_>, twice: bool, steps: &mut u32) -> bool {
    let insts = std::mem::take(&mut func.blocks[block].insts);
    let mut builder =
        Builder { func, clock, twice, steps, known: HashMap::new(), fresh: HashSet::new(), out: Vec::new() };
    let mut changed = false;
    for inst in insts {
        for i in 0..builder.func.insts[inst].args.len() {
            builder.func.insts[inst].args[i] = builder.func.resolve(builder.func.insts[inst].args[i]);
        }
        builder.clock.settle(builder.func, inst);
        if let Some(better) = builder.better(inst) {
            builder.place(better);
            let old = builder.func.result(inst);
            builder.func.replace(old, better);
            changed = true;
            continue;
        }
        builder.out.push(inst);
        builder.remember(inst);
    }
    let out = builder.out;
    func.blocks[block].insts = out;
    changed
}

struct Builder<'a, 'b> {
    func: &'a mut Func,
    clock: &'a mut Clock<'b>,
    twice: bool,
    steps: &'a mut u32,
    /// Operations whose values are there, or could be.
    known: HashMap<(Op, SmallVec<[Value; 3]>), Value>,
    /// Those that stand nowhere yet.
    fresh: HashSet<Inst>,
    out: Vec<Inst>,
}

impl Builder<'_, '_> {
    /// A value equal to the operation's that arrives earlier, if the operation is on a longest circuit.
    fn better(&mut self, inst: Inst) -> Option<Value> {
        let data = &self.func.insts[inst];
        let (Op::Bin(op), &[old]) = (data.op, &data.results[..]) else { return None };
        if !self.clock.is_critical(old) || *self.steps == 0 {
            return None;
        }
        let by_constant = self.func.as_const(data.args[1]).is_some();
        let groups: &[Group] = match op {
            BinOp::Add | BinOp::Sub => &[Group::Sum],
            BinOp::Xor => &[Group::Xor],
            BinOp::Or => &[Group::Or],
            BinOp::And if by_constant => &[Group::Xor],
            BinOp::And => &[Group::And],
            BinOp::Shl if by_constant => &[Group::Sum, Group::Xor],
            BinOp::ShrU | BinOp::RotL | BinOp::RotR if by_constant => &[Group::Xor],
            _ => return None,
        };
        let mut best = (self.clock.at(old), None);
        for &group in groups {
            self.opened(old, group, &mut best);
        }
        best.1
    }

    /// Open an operation step by step.
    fn opened(&mut self, old: Value, group: Group, best: &mut (i64, Option<Value>)) {
        let (ty, loc) = (self.func.ty(old), self.func.def_inst(old).map_or(0, |i| self.func.insts[i].loc));
        let whole = Term { value: old, ops: smallvec![], negative: false };
        let Some(mut terms) = self.open(&whole, group).map(SmallVec::into_vec) else { return };
        while terms.len() <= MOST_TERMS {
            let openable = |t: &&(usize, &Term)| self.twice || self.clock.used_once(t.1.value);
            let by_time: Vec<(usize, &Term)> = terms.iter().enumerate().collect();
            let mut order: Vec<&(usize, &Term)> = by_time.iter().filter(openable).collect();
            // Where nothing splits, shifts are only merged: for that what is there is not given up first.
            order.sort_by_cached_key(|(i, t)| (!self.splits(t.value, group), std::cmp::Reverse(self.late(t)), *i));
            // Terms that would be there in time at the end of a list are no matter.
            let matters = |t: &Term| self.clock.at(t.value) > EARLY && self.late(t) + terms.len() as i64 >= best.0;
            let next = order.into_iter().filter(|t| matters(t.1)).find_map(|(i, t)| Some((*i, self.open(t, group)?)));
            let Some((i, parts)) = next else { break };
            terms.splice(i..=i, parts);
            if terms.len() > 1
                && terms.len() <= MOST_TERMS
                && let Some(v) = self.build(terms.clone(), group, ty, loc)
                && self.clock.at(v) < best.0
            {
                *best = (self.clock.at(v), Some(v));
            }
        }
    }

    /// Is the value put together from several terms, if by way of what distributes over them?
    fn splits(&self, value: Value, group: Group) -> bool {
        let mut term = Term { value, ops: smallvec![], negative: false };
        while let Some(parts) = self.open(&term, group) {
            let [part] = &parts[..] else { return true };
            term.value = part.value;
        }
        false
    }

    /// When a term can be there.
    fn late(&self, t: &Term) -> i64 {
        self.clock.at(t.value) + t.ops.len() as i64
    }

    /// The terms that a term is put together from.
    fn open(&self, term: &Term, group: Group) -> Option<SmallVec<[Term; 2]>> {
        let inst = self.clock.computed(self.func, term.value)?;
        let data = &self.func.insts[inst];
        let Op::Bin(op) = data.op else { return None };
        let [a, b] = [0, 1].map(|i| self.func.resolve(data.args[i]));
        let apart = || bits::possible(self.func, a) & bits::possible(self.func, b) == 0;
        let part = |value: Value, turned: bool| Term { value, ops: term.ops.clone(), negative: term.negative ^ turned };
        let together = match (group, op) {
            (Group::Sum, BinOp::Add | BinOp::Sub)
            | (Group::Xor, BinOp::Xor)
            | (Group::Or, BinOp::Or)
            | (Group::And, BinOp::And) => true,
            (Group::Xor, BinOp::Add) => apart() || halves::halves(self.func, term.value, BinOp::Xor).is_some(),
            (Group::Sum | Group::Xor, BinOp::Or) | (Group::Sum, BinOp::Xor) | (Group::Or, BinOp::Add | BinOp::Xor) => {
                apart()
            }
            _ => false,
        };
        if together {
            return Some(smallvec![part(a, false), part(b, op == BinOp::Sub)]);
        }
        let by = self.func.as_const(b)?;
        let distributes = match group {
            Group::Sum => op == BinOp::Shl,
            Group::Xor | Group::Or => {
                matches!(op, BinOp::Shl | BinOp::ShrU | BinOp::RotL | BinOp::RotR | BinOp::And)
            }
            Group::And => matches!(op, BinOp::Shl | BinOp::ShrU | BinOp::RotL | BinOp::RotR),
        };
        if !distributes {
            return None;
        }
        let mut ops: SmallVec<[(BinOp, u64); 2]> = smallvec![(op, by)];
        ops.extend(term.ops.iter().copied());
        let width = u64::from(self.func.ty(term.value).bits());
        if let [(BinOp::Shl, n), (BinOp::Shl, m), ..] = ops[..]
            && n % width + m % width < width
        {
            ops.remove(0);
            ops[0].1 = n % width + m % width;
        }
        Some(smallvec![Term { value: a, ops, negative: term.negative }])
    }

    /// One value of some terms, the earliest put together first.
    fn build(&mut self, terms: Vec<Term>, group: Group, ty: Type, loc: u32) -> Option<Value> {
        let mut list: Vec<(Value, bool)> = Vec::with_capacity(terms.len());
        for term in terms {
            let mut value = term.value;
            for (op, by) in term.ops {
                let by = self.constant(by, ty, loc);
                value = self.make(op, [value, by], ty, loc);
            }
            list.push((value, term.negative));
        }
        while list.len() > 1 {
            list.sort_by_key(|&(v, _)| self.clock.at(v));
            let near = list.len().min(PARTNERS);
            let mut best: Option<(i64, usize, usize, Value)> = None;
            for i in 0..near {
                for j in i + 1..near {
                    let v = self.pair(list[i], list[j], group, ty, loc);
                    let at = self.clock.at(v);
                    if best.is_none_or(|b| at < b.0) {
                        best = Some((at, i, j, v));
                    }
                }
            }
            let (at, i, j, v) = best?;
            if at >= NEVER {
                return None;
            }
            let negative = list[i].1 && list[j].1;
            list.remove(j);
            list[i] = (v, negative);
        }
        list.first().filter(|l| !l.1).map(|l| l.0)
    }

    fn pair(&mut self, a: (Value, bool), b: (Value, bool), group: Group, ty: Type, loc: u32) -> Value {
        let (op, args) = match (group, a.1, b.1) {
            (Group::Sum, false, true) => (BinOp::Sub, [a.0, b.0]),
            (Group::Sum, true, false) => (BinOp::Sub, [b.0, a.0]),
            (Group::Sum, ..) => (BinOp::Add, [a.0, b.0]),
            (Group::Xor, ..) => (BinOp::Xor, [a.0, b.0]),
            (Group::Or, ..) => (BinOp::Or, [a.0, b.0]),
            (Group::And, ..) => (BinOp::And, [a.0, b.0]),
        };
        self.make(op, args, ty, loc)
    }

    fn constant(&mut self, c: u64, ty: Type, loc: u32) -> Value {
        self.found_or_made(Op::Const(c & ty.mask()), &[], ty, loc)
    }

    /// An operation in the form that selection knows: constants worked out, or on the right.
    fn make(&mut self, mut op: BinOp, [mut a, mut b]: [Value; 2], ty: Type, loc: u32) -> Value {
        if let (Some(x), Some(y)) = (self.func.as_const(a), self.func.as_const(b))
            && let Some(c) = op.eval(x, y, ty.bits())
        {
            return self.constant(c, ty, loc);
        }
        if op.commutes() && self.func.as_const(a).is_some() {
            std::mem::swap(&mut a, &mut b);
        }
        if let (BinOp::Sub, Some(c)) = (op, self.func.as_const(b)) {
            op = BinOp::Add;
            b = self.constant(c.wrapping_neg(), ty, loc);
        }
        self.found_or_made(Op::Bin(op), &[a, b], ty, loc)
    }

    fn found_or_made(&mut self, op: Op, args: &[Value], ty: Type, loc: u32) -> Value {
        let key = key(op, args);
        // An instruction that scales what it adds takes the shift in only where nothing else uses it.
        let scales = op == Op::Bin(BinOp::Shl) && self.func.as_const(args[1]).is_some_and(|n| n <= halves::SCALES);
        if let Some(&v) = self.known.get(&key)
            && self.func.ty(v) == ty
            && !scales
        {
            return v;
        }
        *self.steps = self.steps.saturating_sub(1);
        let inst = self.func.make_inst(op, args, &[ty], loc);
        let v = self.func.result(inst);
        self.clock.settle(self.func, inst);
        self.fresh.insert(inst);
        self.known.insert(key, v);
        v
    }

    /// Put what a value is made of behind what stands there.
    fn place(&mut self, v: Value) {
        let Some(inst) = self.func.def_inst(v).filter(|i| self.fresh.remove(i)) else { return };
        for i in 0..self.func.insts[inst].args.len() {
            self.place(self.func.insts[inst].args[i]);
        }
        self.out.push(inst);
    }

    /// An operation that stands there now.
    fn remember(&mut self, inst: Inst) {
        let data = &self.func.insts[inst];
        if let (Op::Bin(_) | Op::Const(_), &[v]) = (data.op, &data.results[..]) {
            let known = self.known.entry(key(data.op, &data.args)).or_insert(v);
            if self.func.def_inst(*known).is_some_and(|i| self.fresh.contains(&i)) {
                *known = v;
            }
        }
    }
}

fn key(op: Op, args: &[Value]) -> (Op, SmallVec<[Value; 3]>) {
    let mut args: SmallVec<[Value; 3]> = args.into();
    if let Op::Bin(op) = op
        && op.commutes()
    {
        args.sort();
    }
    (op, args)
}
