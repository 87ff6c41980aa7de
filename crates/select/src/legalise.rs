//! Legalisation: rewriting what a machine has no way to compute.
//!
//! An operation is legal when some template computes it with its operands in
//! registers (or, for constants, as immediates). Where none does, the rules
//! file is searched in its order for an identity whose left side matches, and
//! the right side takes the operation's place; its parts are legalised in
//! turn. Displacements and constant addresses out of a load's reach are split
//! here too, so that the parts that are alike can be shared.
//!
//! No rule is applied inside its own result, so a pair of rules may turn into
//! each other (a rotate to the left is one to the right) for machines that have
//! either. A selection's condition is known to be 0 or 1, which the rules write
//! as `c & 1`.
//!
//! A selection in a rule stands for what an instruction does as a whole (a
//! shift whose amount may exceed the word): a rule that has one is for machines
//! with such an instruction only, and its selections are made as that
//! instruction's pattern, nothing in them rewritten.
//!
//! A comparison that only decides its block's branch is left alone: branch
//! templates take it as it stands.

mod displacements;
mod rewriting;
mod whole;

use ciphermill_ir::low_bits::use_counts;
use ciphermill_ir::{BinOp, Block, Func, Inst, InstData, Op, Terminator, TrapCode, Type, Value, bits};
use ciphermill_machine::{Machine, Operand, OperandKind, Rule};
use ciphermill_patterns::matcher::{Bind, Matcher};
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::pattern::Action;
use ciphermill_vcode::CompileError;
use std::collections::{HashMap, HashSet};

/// Rules applied inside rules, at most; more is a rules file that runs in a
/// circle.
const MAX_DEPTH: u32 = 24;

/// Make every operation of `func` one that a template of `matcher` computes;
/// `throughput` admits the rules that trade latency for slots.
///
/// # Errors
/// [`CompileError::NoInstruction`] names the operation that neither an
/// instruction nor a rule covers.
pub fn legalise(func: &mut Func, machine: &Machine, matcher: &Matcher, throughput: bool) -> Result<(), CompileError> {
    let rules = [(&machine.rules, machine.word_bits), (&machine.narrow_rules, 32)]
        .map(|(list, bits)| prepared(list, bits, matcher, throughput));
    let units = |op| units(machine, matcher, op, false);
    let sum_is_wider = units(BinOp::Add) > units(BinOp::Or) || crate::addressing::adds_scaled(matcher);
    let mut l = Legaliser {
        uses: use_counts(func),
        func,
        matcher,
        rules,
        sum_is_wider,
        adds_scaled: crate::addressing::adds_scaled(matcher),
        cur: Block::from_u32(0),
        cache: HashMap::new(),
        booleans: HashSet::new(),
        active: Vec::new(),
        bits: u32::from(machine.word_bits),
        registers: machine.abi.allocatable.len(),
        far: HashMap::new(),
    };
    l.far = l.far_accesses();
    for block in l.func.layout.clone() {
        l.cur = block;
        l.cache.clear();
        let insts = std::mem::take(&mut l.func.blocks[block].insts);
        let term = std::mem::replace(&mut l.func.blocks[block].term, Terminator::Trap(TrapCode::Unreachable));
        for inst in insts {
            let only_branches = match (&term, l.func.insts[inst].op) {
                (Terminator::Branch { cond, .. }, Op::Cmp(_)) => {
                    let v = l.func.result(inst);
                    l.func.resolve(*cond) == v && l.uses.get(&v) == Some(&1)
                }
                _ => false,
            };
            if only_branches {
                l.resolve_args(inst);
                l.func.blocks[block].insts.push(inst);
            } else {
                l.inst(inst, 0)?;
            }
        }
        l.func.blocks[block].term = term;
    }
    func.resolve_all();
    Ok(())
}

enum Fold {
    Value(Value),
    Const(u64),
}

/// A rule with its left side as a pattern.
struct Prepared<'a> {
    rule: &'a Rule,
    from: Pat,
    vars: Vec<Operand>,
}

fn prepared<'a>(rules: &'a [Rule], bits: u8, matcher: &Matcher, throughput: bool) -> Vec<Option<Prepared<'a>>> {
    let chosen = |r| prepare(r, bits, matcher).filter(|p| throughput || !p.rule.throughput);
    rules.iter().map(chosen).collect()
}

/// None for a rule that means nothing on this machine.
fn prepare<'a>(rule: &'a Rule, word: u8, matcher: &Matcher) -> Option<Prepared<'a>> {
    let from = ciphermill_patterns::pattern::expression(&rule.from, word)?;
    if !rule.lets.iter().chain([&rule.to]).all(|e| whole::covered(e, matcher)) {
        return None;
    }
    let vars = rule
        .vars
        .iter()
        .map(|v| Operand {
            name: v.name.clone(),
            kind: if v.constant {
                OperandKind::Imm { min: i64::MIN, max: i64::MAX, step: 1, values: None }
            } else {
                OperandKind::Reg { file: usize::MAX, def: false, used: true }
            },
        })
        .collect();
    Some(Prepared { rule, from, vars })
}

struct Legaliser<'a> {
    func: &'a mut Func,
    /// Uses of the values that there were before.
    uses: HashMap<Value, u32>,
    matcher: &'a Matcher,
    /// For words, and for 32 bits where the machine computes in those, too.
    rules: [Vec<Option<Prepared<'a>>>; 2],
    /// More units add than or, or an addition scales on the way.
    sum_is_wider: bool,
    adds_scaled: bool,
    cur: Block,
    cache: HashMap<(Op, Vec<Value>), Value>,
    /// Values that are 0 or 1.
    booleans: HashSet<Value>,
    /// Rules being applied, outermost first.
    active: Vec<usize>,
    /// Of the operation at hand.
    bits: u32,
    /// Registers that values may be in.
    registers: usize,
    /// The displacements out of reach at which each address is accessed.
    far: HashMap<Value, HashSet<u32>>,
}

impl<'a> Legaliser<'a> {
    fn resolve_args(&mut self, inst: Inst) {
        for i in 0..self.func.insts[inst].args.len() {
            let v = self.func.resolve(self.func.insts[inst].args[i]);
            self.func.insts[inst].args[i] = v;
        }
    }

    fn inst(&mut self, inst: Inst, depth: u32) -> Result<(), CompileError> {
        self.resolve_args(inst);
        let before = self.bits;
        let data = self.func.insts[inst].clone();
        self.bits = match data.op {
            Op::Load(_) | Op::Store(_) if self.matcher.narrow() => 32,
            op => self.matcher.width(self.func, op, &data.args, data.results.first().copied()),
        };
        let done = self.legal(inst, &data, depth);
        self.bits = before;
        done
    }

    fn legal(&mut self, inst: Inst, data: &InstData, depth: u32) -> Result<(), CompileError> {
        match data.op {
            Op::Load(m) | Op::Store(m) => {
                let (addr, m) = self.displacement(m, data.args[0], data.op, depth)?;
                self.func.insts[inst].args[0] = addr;
                self.func.insts[inst].op = if matches!(data.op, Op::Load(_)) { Op::Load(m) } else { Op::Store(m) };
                self.func.blocks[self.cur].insts.push(inst);
                Ok(())
            }
            Op::Bin(_) | Op::Un(_) | Op::Cmp(_) | Op::Select => {
                let old = data.results[0];
                if self.is_shared(data.op, &data.args)
                    && let Some(&v) = self.cache.get(&(data.op, data.args.to_vec()))
                {
                    self.func.replace(old, v);
                    return Ok(());
                }
                if matches!(data.op, Op::Cmp(_)) || self.masks_one(data.op, &data.args) {
                    self.booleans.insert(old);
                }
                if self.is_sum(data.op, &data.args) {
                    let v = self.make(Op::Bin(BinOp::Add), &data.args, data.loc, depth)?;
                    self.func.replace(old, v);
                    return Ok(());
                }
                if let Some(v) = self.only_within(data.op, &data.args, data.loc, depth)? {
                    self.func.replace(old, v);
                    return Ok(());
                }
                if let Some(v) = self.turned(data.op, &data.args, data.loc, depth)? {
                    self.func.replace(old, v);
                    return Ok(());
                }
                if let Some(v) = self.strength(data.op, &data.args, data.loc, depth)? {
                    self.func.replace(old, v);
                    return Ok(());
                }
                if self.is_legal(data.op, &data.args) {
                    self.func.blocks[self.cur].insts.push(inst);
                    if self.is_shared(data.op, &data.args) {
                        self.cache.insert((data.op, data.args.to_vec()), old);
                    }
                    return Ok(());
                }
                let v = self.rewrite(data.op, &data.args, data.loc, depth)?;
                if matches!(data.op, Op::Cmp(_)) {
                    self.booleans.insert(v);
                }
                self.func.replace(old, v);
                if data.op.is_pure() {
                    self.cache.insert((data.op, data.args.to_vec()), v);
                }
                Ok(())
            }
            _ => {
                self.func.blocks[self.cur].insts.push(inst);
                Ok(())
            }
        }
    }

    fn word(&self) -> Type {
        Type::of_word(self.bits)
    }

    /// The type of an operation made for the one at hand.
    fn result(&self, op: Op) -> Type {
        if self.matcher.narrow() && matches!(op, Op::Cmp(_)) { Type::I32 } else { self.word() }
    }

    fn rules(&self) -> &[Option<Prepared<'a>>] {
        &self.rules[usize::from(self.matcher.narrow() && self.bits == 32)]
    }

    /// Is one such operation enough for a block? Not of those that cut 32 bits out
    /// of a wider word: the instructions behind them do it for nothing.
    fn is_shared(&self, op: Op, args: &[Value]) -> bool {
        let cuts = self.bits == 64
            && !self.matcher.narrow()
            && op == Op::Bin(BinOp::And)
            && self.func.as_const(args[1]) == Some(u64::from(u32::MAX));
        op.is_pure() && !cuts
    }

    fn is_scaled(&self, v: Value) -> bool {
        self.func.def_op(v) == Some(Op::Bin(BinOp::Shl))
    }

    /// Is it a sum as well (no bit can be set on both sides), and better one?
    fn is_sum(&self, op: Op, args: &[Value]) -> bool {
        matches!(op, Op::Bin(BinOp::Or | BinOp::Xor))
            && self.sum_is_wider
            && (self.func.as_const(args[1]).is_none() || self.adds_scaled && self.is_scaled(args[0]))
            && bits::possible(self.func, args[0]) & bits::possible(self.func, args[1]) == 0
    }

    /// A rotate by a constant in the direction that takes an immediate.
    fn turned(&mut self, op: Op, args: &[Value], loc: u32, depth: u32) -> Result<Option<Value>, CompileError> {
        let other = match op {
            Op::Bin(BinOp::RotL) => BinOp::RotR,
            Op::Bin(BinOp::RotR) => BinOp::RotL,
            _ => return Ok(None),
        };
        let Some(n) = self.func.as_const(args[1]) else { return Ok(None) };
        if !self.turns(op, other) {
            return Ok(None);
        }
        let bits = u64::from(self.bits);
        let back = self.make(Op::Const((bits - n % bits) % bits), &[], loc, depth)?;
        self.make(Op::Bin(other), &[args[0], back], loc, depth).map(Some)
    }

    fn turns(&self, rotate: Op, other: BinOp) -> bool {
        !self.takes_immediate(rotate) && self.takes_immediate(Op::Bin(other))
    }

    /// An operation that no instruction does alone, but one does with what makes its operands.
    fn only_within(&mut self, op: Op, args: &[Value], loc: u32, depth: u32) -> Result<Option<Value>, CompileError> {
        let turns = match op {
            Op::Bin(BinOp::RotL) => self.turns(op, BinOp::RotR),
            Op::Bin(BinOp::RotR) => self.turns(op, BinOp::RotL),
            _ => false,
        };
        if !turns && self.is_legal(op, args) {
            return Ok(None);
        }
        let once = |v: Value| self.uses.get(&v) == Some(&1);
        let Some((pat, binds)) = whole::taking_in(self.func, self.matcher, self.bits, op, args, &once) else {
            return Ok(None);
        };
        let mut leaves = Vec::with_capacity(binds.len());
        for (operand, bind) in binds {
            let value = match bind {
                Bind::Val(v) => v,
                Bind::Imm(c) => self.make(Op::Const(c as u64 & self.word().mask()), &[], loc, depth)?,
                Bind::Zero(_) | Bind::Load(_) => return Ok(None),
            };
            leaves.push((operand, value));
        }
        Ok(Some(self.as_it_stands(pat, &leaves, loc)))
    }

    fn takes_immediate(&self, op: Op) -> bool {
        self.matcher.candidates(op).iter().any(|&i| match (&self.matcher.templates[i].action, op) {
            (Action::Value(_, Pat::Bin(p, a, b)), Op::Bin(o)) => {
                *p == o && matches!((&**a, &**b), (Pat::Reg(_), Pat::Imm(_)))
            }
            _ => false,
        })
    }

    /// A product with a constant as shifts, sums and differences, one for each
    /// nonzero digit of the constant's non-adjacent form, where those cost
    /// less than the machine's multiplication.
    fn strength(&mut self, op: Op, args: &[Value], loc: u32, depth: u32) -> Result<Option<Value>, CompileError> {
        let (Op::Bin(BinOp::Mul), Some(c)) = (op, args.get(1).and_then(|&b| self.func.as_const(b))) else {
            return Ok(None);
        };
        let digits = non_adjacent(c, self.bits);
        // A rule that multiplies to spare the shifters means it.
        let meant = |&i: &usize| self.rules().get(i).and_then(Option::as_ref).is_some_and(|p| p.rule.throughput);
        if self.active.iter().any(meant) {
            return Ok(None);
        }
        let Some(&(top, true)) = digits.last() else { return Ok(None) };
        let shifts = digits.iter().filter(|d| d.0 > 0).count();
        let price = |this: &Self, op: BinOp| this.price(Op::Bin(op), args);
        let (add, shl) = (price(self, BinOp::Add), price(self, BinOp::Shl));
        if (digits.len() - 1) as u32 * add + shifts as u32 * shl >= price(self, BinOp::Mul) {
            return Ok(None);
        }
        let mut sum = self.shifted(args[0], top, loc, depth)?;
        for &(by, plus) in digits.iter().rev().skip(1) {
            let term = self.shifted(args[0], by, loc, depth)?;
            let op = if plus { BinOp::Add } else { BinOp::Sub };
            sum = self.make(Op::Bin(op), &[sum, term], loc, depth)?;
        }
        Ok(Some(sum))
    }

    fn shifted(&mut self, v: Value, by: u32, loc: u32, depth: u32) -> Result<Value, CompileError> {
        if by == 0 {
            return Ok(v);
        }
        let by = self.make(Op::Const(u64::from(by)), &[], loc, depth)?;
        self.make(Op::Bin(BinOp::Shl), &[v, by], loc, depth)
    }

    /// Cost of the cheapest template for the operation; very high without one.
    fn price(&self, op: Op, args: &[Value]) -> u32 {
        let costs = self.matcher.candidates(op).iter().map(|&i| &self.matcher.templates[i]);
        let fitting = costs.filter(|t| match op {
            Op::Bin(b) => {
                matches!(&t.action, Action::Value(_, Pat::Bin(p, x, _)) if *p == b && matches!(**x, Pat::Reg(_)))
            }
            _ => self.matcher.value(self.func, t, self.bits, op, args, &|_| false).is_some(),
        });
        fitting.map(|t| t.cost).min().unwrap_or(1 << 16)
    }

    fn masks_one(&self, op: Op, args: &[Value]) -> bool {
        op == Op::Bin(BinOp::And) && self.func.as_const(args[1]) == Some(1)
    }

    fn is_legal(&self, op: Op, args: &[Value]) -> bool {
        let no_fold = |_| false;
        self.matcher.candidates(op).iter().any(|&t| {
            self.matcher.value(self.func, &self.matcher.templates[t], self.bits, op, args, &no_fold).is_some()
        })
    }

    fn make(&mut self, op: Op, args: &[Value], loc: u32, depth: u32) -> Result<Value, CompileError> {
        if let Some(&v) = self.cache.get(&(op, args.to_vec())) {
            return Ok(v);
        }
        if self.masks_one(op, args) && self.booleans.contains(&args[0]) {
            return Ok(args[0]);
        }
        match self.folded(op, args) {
            Some(Fold::Value(v)) => return Ok(v),
            Some(Fold::Const(c)) => return self.make(Op::Const(c), &[], loc, depth),
            None => {}
        }
        let inst = self.func.make_inst(op, args, &[self.result(op)], loc);
        self.inst(inst, depth)?;
        let v = self.func.resolve(self.func.result(inst));
        self.cache.insert((op, args.to_vec()), v);
        Ok(v)
    }

    /// What a rule's operation comes to when a rule meets constants: its
    /// value, or one of its operands.
    fn folded(&self, op: Op, args: &[Value]) -> Option<Fold> {
        let constant = |i: usize| self.func.as_const(args[i]);
        match op {
            Op::Bin(op) => {
                if let (Some(a), Some(b)) = (constant(0), constant(1)) {
                    return op.eval(a, b, self.bits).map(Fold::Const);
                }
                let zero = [constant(0) == Some(0), constant(1) == Some(0)];
                match op {
                    BinOp::Add | BinOp::Or | BinOp::Xor if zero[0] => Some(Fold::Value(args[1])),
                    BinOp::Add | BinOp::Or | BinOp::Xor | BinOp::Sub | BinOp::Shl | BinOp::ShrU | BinOp::ShrS
                        if zero[1] =>
                    {
                        Some(Fold::Value(args[0]))
                    }
                    BinOp::And if zero[0] || zero[1] => Some(Fold::Const(0)),
                    BinOp::And => constant(1).and_then(|c| self.masked(args[0], c)).map(Fold::Value),
                    _ => None,
                }
            }
            Op::Cmp(op) => {
                let (a, b) = (constant(0)?, constant(1)?);
                Some(Fold::Const(u64::from(op.eval(a, b, self.bits))))
            }
            _ => None,
        }
    }

    /// The value that is `v & c`, if there is one: `v`, or the only part of it
    /// that has bits of the mask.
    fn masked(&self, v: Value, c: u64) -> Option<Value> {
        let possible = |v: Value| bits::possible(self.func, v);
        if possible(v) & !c == 0 {
            return Some(v);
        }
        let data = &self.func.insts[self.func.def_inst(v)?];
        let disjoint = |a: Value, b: Value| possible(a) & possible(b) == 0;
        let (a, b) = match (data.op, &data.args[..]) {
            (Op::Bin(BinOp::Or | BinOp::Xor), &[a, b]) => (self.func.resolve(a), self.func.resolve(b)),
            (Op::Bin(BinOp::Add), &[a, b]) if disjoint(a, b) => (self.func.resolve(a), self.func.resolve(b)),
            _ => return None,
        };
        let other = [(a, b), (b, a)].into_iter().find(|&(x, _)| possible(x) & c == 0)?.1;
        self.masked(other, c)
    }
}

/// Units that the operation of two registers, or of one and a constant, can run on, on
/// any side.
pub(crate) fn units(machine: &Machine, matcher: &Matcher, op: BinOp, constant: bool) -> u32 {
    let plain = |t: &&ciphermill_patterns::pattern::Template| {
        let registers = |a: &Pat, b: &Pat| match b {
            Pat::Imm(_) => constant && matches!(a, Pat::Reg(_)),
            _ => !constant && matches!((a, b), (Pat::Reg(_), Pat::Reg(_))),
        };
        t.parts.len() == 1 && matches!(&t.action, Action::Value(_, Pat::Bin(o, a, b)) if *o == op && registers(a, b))
    };
    let on = |t: &ciphermill_patterns::pattern::Template| -> u32 {
        let id = t.parts[0].instr;
        let variants = std::iter::once(&id).chain(&machine.variants[usize::from(id.0)]);
        let units: HashSet<_> = variants.flat_map(|v| &machine.instrs[usize::from(v.0)].units).collect();
        units.iter().map(|&&u| u32::from(machine.units[u].count)).sum()
    };
    matcher.templates.iter().filter(plain).map(on).max().unwrap_or(0)
}

/// The nonzero digits of the non-adjacent form of `c`, lowest first: the
/// place of each, and whether it is +1 (or else -1). No two are neighbours, and
/// no signed-digit form has fewer.
fn non_adjacent(c: u64, bits: u32) -> Vec<(u32, bool)> {
    let mut rest = i128::from(ciphermill_ir::ops::sext(c, bits));
    let mut digits = Vec::new();
    let mut place = 0;
    while rest != 0 && place < bits {
        if rest & 1 != 0 {
            let plus = rest & 3 == 1;
            digits.push((place, plus));
            rest -= if plus { 1 } else { -1 };
        }
        rest >>= 1;
        place += 1;
    }
    digits
}
