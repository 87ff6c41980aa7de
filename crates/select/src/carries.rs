//! Sums and differences of two words by instructions that hand a carry on.
//!
//! Arithmetic of twice the word's size comes as that of its halves, with the carry as a comparison:
//!
//! ```text
//! low = a + b, high = x + y + (low < a)      ->      (low, high) = (a, x) + (b, y)
//! ```
//!
//! Where a machine has an addition that sets a carry, and one that adds it, both read off their semantics, such a sum is
//! one [`Op::Chain`], which selection writes out as the two.

use ciphermill_ir::low_bits::use_counts;
use ciphermill_ir::{BinOp, Block, Chain, CmpOp, Func, Inst, Op, Type, Value};
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Instr, InstrId, Machine};
use std::collections::HashMap;

/// Bits of a word: values of twice as many come in halves on machines of such words alone.
const WORD: u8 = 32;

/// An instruction of two register operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    pub instr: InstrId,
    pub left: usize,
    pub right: usize,
}

/// An instruction that adds the product of two words to two words, which it overwrites with the lower and the upper
/// word of the sum.
#[derive(Clone, Copy, Debug)]
pub struct MulAdd {
    pub instr: InstrId,
    /// Result's lower word first.
    pub sum: [usize; 2],
    pub factors: [usize; 2],
}

/// Pairs of instructions, one that sets the carry, and one that also takes it in; and what adds a product.
#[derive(Clone, Copy, Default, Debug)]
pub struct Carries {
    pub add: Option<[Step; 2]>,
    pub sub: Option<[Step; 2]>,
    /// Adds to the two words of one value.
    pub mul_add: Option<MulAdd>,
    /// Adds to each of two words: `x * y + low + high`.
    pub mul_add_both: Option<MulAdd>,
}

impl Carries {
    pub fn new(machine: &Machine) -> Carries {
        // Chains of narrow words have a section of their own.
        if machine.chains.is_some() {
            return Carries::default();
        }
        let all = || machine.instrs.iter().enumerate().map(|(i, instr)| (InstrId(i as u16), instr));
        let find = |what: fn(&Instr, BinOp) -> Option<(usize, usize)>, op: BinOp| {
            all().find_map(|(instr, i)| what(i, op).map(|(left, right)| Step { instr, left, right }))
        };
        let pair = |op: BinOp| Some([find(sets, op)?, find(takes, op)?]);
        // One that takes longer for some values would tell secret ones apart.
        let product = |what: fn(InstrId, &Instr) -> Option<MulAdd>| {
            all().filter(|(_, i)| i.varies_with.is_empty()).find_map(|(id, i)| what(id, i))
        };
        let (mul_add, mul_add_both) = (product(adds_product), product(adds_product_to_both));
        Carries { add: pair(BinOp::Add), sub: pair(BinOp::Sub), mul_add, mul_add_both }
    }

    pub fn of(&self, chain: Chain) -> Option<[Step; 2]> {
        match chain {
            Chain::Add => self.add,
            Chain::Sub => self.sub,
            _ => None,
        }
    }
}

/// The value assigned to the one operand that an instruction assigns, and the one to a register of its own.
fn assigned(instr: &Instr) -> Option<(&Expr, Option<&Expr>)> {
    let (mut value, mut fixed) = (None, None);
    for stmt in &instr.semantics {
        match stmt {
            Stmt::Assign { dest: Dest::Operand(_), value: v } if value.is_none() => value = Some(v),
            Stmt::Assign { dest: Dest::Fixed(_), value: v } if fixed.is_none() => fixed = Some(v),
            _ => return None,
        }
    }
    Some((value?, fixed))
}

fn operands(a: &Expr, b: &Expr) -> Option<(usize, usize)> {
    match (a, b) {
        (Expr::Operand(a), Expr::Operand(b)) if a != b => Some((*a, *b)),
        _ => None,
    }
}

/// The operands of an instruction that does `op` with two registers, and leaves the carry.
fn sets(instr: &Instr, op: BinOp) -> Option<(usize, usize)> {
    let (Expr::Bin { op: own, a, b, .. }, Some(flags)) = assigned(instr)? else { return None };
    let left = match flags {
        Expr::FlagsAdd { a: x, b: y, .. } => op == BinOp::Add && (x, y) == (a, b),
        Expr::FlagsSub { a: x, b: y, .. } => op == BinOp::Sub && (x, y) == (a, b),
        _ => false,
    };
    operands(a, b).filter(|_| *own == op && left)
}

/// Those of one that does `op` with two registers and the carry that is there.
fn takes(instr: &Instr, op: BinOp) -> Option<(usize, usize)> {
    let (Expr::Bin { op: outer, a, b: carry, .. }, _) = assigned(instr)? else { return None };
    let Expr::Bin { op: inner, a, b, .. } = &**a else { return None };
    let lowest = matches!(&**carry, Expr::Slice { a, lo: 0, width: 1 } if matches!(**a, Expr::Fixed(_)));
    operands(a, b).filter(|_| [*outer, *inner] == [op, op] && lowest)
}

/// The terms of a sum.
fn terms(e: &Expr) -> Vec<&Expr> {
    match e {
        Expr::Bin { op: BinOp::Add, a, b, .. } => [terms(a), terms(b)].concat(),
        e => vec![e],
    }
}

/// The factors, where a sum has a product of two operands that is computed by `op`.
fn factors(sum: &[&Expr], op: BinOp) -> Option<(usize, usize)> {
    sum.iter().find_map(|e| match e {
        Expr::Bin { op: own, a, b, .. } if *own == op => operands(a, b),
        _ => None,
    })
}

/// Has a sum the carry of another sum, kept as `temp`, to which operand `added` was added?
fn carried(sum: &[&Expr], temp: usize, added: usize) -> bool {
    let below = |a: &Expr, b: &Expr| *a == Expr::Temp(temp) && *b == Expr::Operand(added);
    sum.iter().any(|e| matches!(e, Expr::Cmp { op: CmpOp::LtU, a, b, .. } if below(a, b)))
}

/// An instruction whose results are `low + x * y` and `high + mulhu(x, y)` and the carry.
fn adds_product(id: InstrId, instr: &Instr) -> Option<MulAdd> {
    let [
        Stmt::Let { value: sum, .. },
        Stmt::Assign { dest: Dest::Operand(low), value: Expr::Temp(_) },
        Stmt::Assign { dest: Dest::Operand(high), value },
    ] = &instr.semantics[..]
    else {
        return None;
    };
    let (sum, top) = (terms(sum), terms(value));
    let own = |list: &[&Expr], at: usize| list.contains(&&Expr::Operand(at));
    let (x, y) = factors(&sum, BinOp::Mul)?;
    let whole = sum.len() == 2 && own(&sum, *low) && top.len() == 3 && own(&top, *high) && carried(&top, 0, *low);
    let same = factors(&top, BinOp::MulHiU) == Some((x, y));
    (whole && same && instr.operands.len() == 4).then_some(MulAdd { instr: id, sum: [*low, *high], factors: [x, y] })
}

/// An instruction whose results are the two words of `x * y + low + high`.
fn adds_product_to_both(id: InstrId, instr: &Instr) -> Option<MulAdd> {
    let [
        Stmt::Let { value: first, .. },
        Stmt::Let { value: second, .. },
        Stmt::Assign { dest: Dest::Operand(low), value: Expr::Temp(1) },
        Stmt::Assign { dest: Dest::Operand(high), value },
    ] = &instr.semantics[..]
    else {
        return None;
    };
    let (first, second, top) = (terms(first), terms(second), terms(value));
    let (x, y) = factors(&first, BinOp::Mul)?;
    let sums = first.len() == 2
        && first.contains(&&Expr::Operand(*low))
        && second.len() == 2
        && [Expr::Temp(0), Expr::Operand(*high)].iter().all(|e| second.contains(&e));
    let whole = top.len() == 3 && carried(&top, 0, *low) && carried(&top, 1, *high);
    let same = factors(&top, BinOp::MulHiU) == Some((x, y));
    (sums && whole && same && instr.operands.len() == 4).then_some(MulAdd {
        instr: id,
        sum: [*low, *high],
        factors: [x, y],
    })
}

/// Make one operation of each sum or difference of two words.
pub fn join(func: &mut Func, machine: &Machine) {
    let carries = Carries::new(machine);
    if machine.word_bits != WORD || carries.add.or(carries.sub).is_none() {
        return;
    }
    func.resolve_all();
    for block in func.layout.clone() {
        let mut at = 0;
        loop {
            let search = Search::new(func, block);
            let sum = |(n, &inst): (usize, &Inst)| {
                let sum = search.sum(inst).filter(|s| carries.of(s.chain).is_some())?;
                Some((n, search.place(&sum)?, sum))
            };
            let found = func.blocks[block].insts.iter().enumerate().skip(at).find_map(sum);
            let Some((n, place, sum)) = found else { break };
            at = n.saturating_sub(2);
            replace(func, block, place, &sum);
        }
    }
}

/// A sum or difference of two words: operands by word, results as they were.
struct Sum {
    chain: Chain,
    a: [Value; 2],
    /// The upper word may be none.
    b: (Value, Option<Value>),
    low: Inst,
    carry: Inst,
    high: Inst,
    /// The sum within that of the upper words.
    inner: Option<Inst>,
}

struct Search<'a> {
    func: &'a Func,
    block: Block,
    /// Where the block's operations stand.
    place: HashMap<Inst, usize>,
    uses: HashMap<Value, u32>,
}

impl<'a> Search<'a> {
    fn new(func: &'a Func, block: Block) -> Search<'a> {
        let place = func.blocks[block].insts.iter().enumerate().map(|(n, &i)| (i, n)).collect();
        Search { func, block, place, uses: use_counts(func) }
    }

    /// The operation of this block that makes a value, with its operands, if it is one of two.
    fn made(&self, v: Value) -> Option<(Inst, Op, [Value; 2])> {
        let inst = self.func.def_inst(v).filter(|i| self.place.contains_key(i))?;
        let data = &self.func.insts[inst];
        match data.args[..] {
            [a, b] => Some((inst, data.op, [a, b])),
            _ => None,
        }
    }

    /// What the carry `c` is one of: of a sum, or of a difference.
    fn carry(&self, c: Value) -> Option<(Chain, Inst, Inst, [Value; 2])> {
        let (inst, Op::Cmp(CmpOp::LtU), [x, y]) = self.made(c)? else { return None };
        if let Some((low, Op::Bin(BinOp::Add), args)) = self.made(x)
            && args.contains(&y)
        {
            return Some((Chain::Add, inst, low, args));
        }
        let below = |&low: &Inst| {
            let data = &self.func.insts[low];
            data.op == Op::Bin(BinOp::Sub) && data.args[..] == [x, y]
        };
        let low = self.func.blocks[self.block].insts.iter().copied().find(below)?;
        Some((Chain::Sub, inst, low, [x, y]))
    }

    /// The sum that `high` is the upper word of.
    fn sum(&self, high: Inst) -> Option<Sum> {
        let (_, op, args) = self.made(*self.func.insts[high].results.first()?)?;
        let once = |v: Value| self.uses.get(&v) == Some(&1);
        let with = |c: Value, (x, y): (Value, Option<Value>), chain: Chain| {
            let own = |low: Inst| [Some(x), y].contains(&Some(self.func.result(low)));
            let (_, carry, low, words) = self.carry(c).filter(|f| f.0 == chain && once(c) && !own(f.2))?;
            Some(Sum { chain, a: [words[0], x], b: (words[1], y), low, carry, high, inner: None })
        };
        let inner = |v: Value| self.made(v).filter(|m| m.1 == op && once(v)).map(|m| (m.0, m.2));
        let beside = |inner: Inst| move |sum: Sum| Sum { inner: Some(inner), ..sum };
        match op {
            // (x + y) + carry, x + (y + carry), x + carry.
            Op::Bin(BinOp::Add) => [args, [args[1], args[0]]].into_iter().find_map(|[p, q]| {
                let whole = inner(p).and_then(|(inst, [x, y])| {
                    let nested = || with(x, (q, Some(y)), Chain::Add).or_else(|| with(y, (q, Some(x)), Chain::Add));
                    with(q, (x, Some(y)), Chain::Add).or_else(nested).map(beside(inst))
                });
                whole.or_else(|| with(q, (p, None), Chain::Add))
            }),
            // (x - y) - borrow, x - borrow.
            Op::Bin(BinOp::Sub) => {
                let whole =
                    inner(args[0]).and_then(|(inst, [x, y])| with(args[1], (x, Some(y)), Chain::Sub).map(beside(inst)));
                whole.or_else(|| with(args[1], (args[0], None), Chain::Sub))
            }
            _ => None,
        }
    }

    /// Where the whole can stand: behind what makes its operands, in front of what reads its lower word.
    fn place(&self, sum: &Sum) -> Option<usize> {
        let made = |v: &Value| self.func.def_inst(*v).and_then(|i| self.place.get(&i));
        let first = sum.a.iter().chain([&sum.b.0]).chain(&sum.b.1).filter_map(made).max().map_or(0, |n| n + 1);
        let low = self.func.result(sum.low);
        let reads = |&inst: &Inst| inst != sum.carry && self.func.insts[inst].args.contains(&low);
        let insts = &self.func.blocks[self.block].insts;
        let last = insts.iter().position(|i| reads(i) || *i == sum.high)?;
        (first <= last).then_some(last)
    }
}

fn replace(func: &mut Func, block: Block, place: usize, sum: &Sum) {
    let loc = func.insts[sum.high].loc;
    let zero = sum.b.1.is_none().then(|| func.make_inst(Op::Const(0), &[], &[Type::I32], loc));
    let upper = sum.b.1.or(zero.map(|z| func.result(z))).unwrap_or(sum.b.0);
    let args = [sum.a[0], sum.a[1], sum.b.0, upper];
    let made = func.make_inst(Op::Chain(sum.chain, WORD), &args, &[Type::I32, Type::I32], loc);
    let results = func.insts[made].results.clone();
    for (old, new) in [sum.low, sum.high].into_iter().zip(results) {
        let old = func.result(old);
        func.replace(old, new);
    }
    let insts = &mut func.blocks[block].insts;
    insts.splice(place..place, zero.into_iter().chain([made]));
    insts.retain(|i| ![sum.low, sum.carry, sum.high].contains(i) && sum.inner != Some(*i));
    func.resolve_all();
}
