//! Instructions with several results.
//!
//! A template computes one value. An instruction whose semantics assign several
//! operands is therefore a template for each of them, and these are used only
//! together: [`together`] looks for values of one block that are the results of
//! one instruction, of the same sources. Each is selected by itself, and
//! [`join`] makes one instruction of those that read the same. Where that would
//! move something past what it must not pass, they stay apart: each is then
//! computed by an instruction of its own whose other results nobody reads.

use crate::facts::Facts;
use crate::matcher::{Bind, Binds, Fold, Matcher};
use crate::pattern::{Action, Pat, Template};
use crate::vcode::{VFunc, VInst, VKind, VOp, VReg};
use ciphermill_ir::{Func, Inst, Op, Value};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// An instruction for each of a block's values that instructions with several
/// results compute: the number of the template and what its operands are.
pub fn together(func: &Func, matcher: &Matcher, insts: &[Inst], fold: Fold<'_>) -> HashMap<Inst, (usize, Binds)> {
    let mut found = HashMap::new();
    for group in &matcher.several {
        let first = group.start;
        let mut search = Search { func, matcher, insts, fold, group: group.clone().collect(), taken: HashSet::new() };
        for &inst in insts {
            let Some((values, binds)) = search.from(inst) else { continue };
            search.taken.extend(values.iter().flatten());
            for (n, value) in values.into_iter().enumerate() {
                if let Some(inst) = value
                    && !found.contains_key(&inst)
                {
                    found.insert(inst, (first + n, binds.clone()));
                }
            }
        }
    }
    found
}

/// The instruction that computes each result.
type Values = SmallVec<[Option<Inst>; 4]>;

struct Search<'a> {
    func: &'a Func,
    matcher: &'a Matcher,
    insts: &'a [Inst],
    fold: Fold<'a>,
    /// Numbers of the templates of the instruction.
    group: Vec<usize>,
    taken: HashSet<Inst>,
}

impl Search<'_> {
    /// A whole set of results that `inst` is one of.
    fn from(&self, inst: Inst) -> Option<(Values, Binds)> {
        if self.taken.contains(&inst) {
            return None;
        }
        let none = || SmallVec::from_elem(None, self.group.len());
        (0..self.group.len()).find_map(|n| {
            self.ways(n, inst, None).into_iter().find_map(|binds| {
                let mut values: Values = none();
                values[n] = Some(inst);
                self.others(values, binds)
            })
        })
    }

    /// Find values for the results that have none yet.
    fn others(&self, values: Values, binds: Binds) -> Option<(Values, Binds)> {
        let Some(n) = values.iter().position(Option::is_none) else {
            return self.independent(&values, &binds).then_some((values, binds));
        };
        self.insts.iter().filter(|i| !self.taken.contains(i) && !values.contains(&Some(**i))).find_map(|&inst| {
            self.ways(n, inst, Some(&binds)).into_iter().find_map(|binds| {
                let mut values = values.clone();
                values[n] = Some(inst);
                self.others(values, binds)
            })
        })
    }

    /// Ways in which `inst` is the n-th result, with what is bound already.
    fn ways(&self, n: usize, inst: Inst, bound: Option<&Binds>) -> SmallVec<[Binds; 2]> {
        let t = self.matcher.template(self.group[n]);
        let data = &self.func.insts[inst];
        let Action::Value(_, pat) = &t.action else { return SmallVec::new() };
        if data.results.len() != 1 || !data.op.is_pure() || matches!(data.op, Op::Load(_) | Op::Const(_)) {
            return SmallVec::new();
        }
        let args: SmallVec<[Value; 3]> = data.args.iter().map(|&a| self.func.resolve(a)).collect();
        let turned = matches!(data.op, Op::Bin(op) if op.commutes()) && args.len() == 2;
        let mut orders: SmallVec<[SmallVec<[Value; 3]>; 2]> = SmallVec::new();
        orders.push(args.clone());
        if turned {
            orders.push(args.iter().rev().copied().collect());
        }
        debug_assert!(!matches!(pat, Pat::Load { .. }));
        orders
            .iter()
            .filter_map(|args| self.matcher.value_with(self.func, t, data.op, args, self.fold, bound))
            .collect()
    }

    /// Does no source depend on a result?
    fn independent(&self, values: &Values, binds: &Binds) -> bool {
        let here: HashSet<Inst> = self.insts.iter().copied().collect();
        let mut seen = HashSet::new();
        let mut stack: Vec<Value> =
            binds.iter().flatten().filter_map(|b| if let Bind::Val(v) = b { Some(*v) } else { None }).collect();
        while let Some(v) = stack.pop() {
            let Some(inst) = self.func.def_inst(self.func.resolve(v)).filter(|i| here.contains(i)) else { continue };
            if values.contains(&Some(inst)) {
                return false;
            }
            if seen.insert(inst) {
                stack.extend(self.func.insts[inst].args.iter().copied());
            }
        }
        true
    }
}

/// Is every operand of a group's templates but the results bound by one of
/// their patterns?
pub fn complete(group: &[Template]) -> bool {
    let mut bound = HashSet::new();
    for t in group {
        let Action::Value(dest, pat) = &t.action else { return false };
        bound.insert(*dest);
        leaves(pat, &mut bound);
    }
    group.iter().all(|t| (0..t.operands.len()).all(|i| bound.contains(&i)))
}

fn leaves(pat: &Pat, out: &mut HashSet<usize>) {
    match pat {
        Pat::Reg(i) | Pat::Imm(i) => {
            out.insert(*i);
        }
        Pat::Const(_) => {}
        Pat::Bin(_, a, b) | Pat::Cmp(_, a, b) => [a, b].into_iter().for_each(|p| leaves(p, out)),
        Pat::Un(_, a) | Pat::Load { addr: a, .. } => leaves(a, out),
        Pat::Select(a, b, c) => [a, b, c].into_iter().for_each(|p| leaves(p, out)),
        Pat::Apply(_, args) => args.iter().for_each(|p| leaves(p, out)),
    }
}

/// Make one instruction of those that are the same but for the result wanted.
pub fn join(func: &mut VFunc, matcher: &Matcher, facts: &Facts) {
    if matcher.several.is_empty() {
        return;
    }
    let instrs: HashSet<_> = matcher.several.iter().map(|g| matcher.template(g.start).parts[0].instr).collect();
    let read: HashSet<VReg> = func
        .blocks
        .iter()
        .flat_map(|b| b.insts.iter().flat_map(VInst::uses).chain(b.succs.iter().flat_map(|s| s.1.iter().copied())))
        .collect();
    for block in &mut func.blocks {
        let mut p = 0;
        while p < block.insts.len() {
            // Again at the same place: there may be a third result.
            while instrs.contains(&block.insts[p].instr)
                && let Some(insts) = with_another(&block.insts, p, &read, facts)
            {
                block.insts = insts;
            }
            p += 1;
        }
    }
}

/// The block with the instruction at `p` joined with one behind it.
fn with_another(insts: &[VInst], p: usize, read: &HashSet<VReg>, facts: &Facts) -> Option<Vec<VInst>> {
    (p + 1..insts.len()).find_map(|q| placed(insts, p, q, joined(&insts[p], &insts[q], read)?, facts))
}

/// The two as one, if they read the same and give different results.
fn joined(a: &VInst, b: &VInst, read: &HashSet<VReg>) -> Option<VInst> {
    if a.instr != b.instr || a.kind != VKind::Normal || a.ops.len() != b.ops.len() {
        return None;
    }
    let mut out = a.clone();
    for (x, y) in out.ops.iter_mut().zip(&b.ops) {
        match (&x, y) {
            (VOp::Def(d), VOp::Def(e)) => match (read.contains(d), read.contains(e)) {
                (true, true) => return None,
                (false, true) => *x = *y,
                _ => {}
            },
            (x, y) if *x == y => {}
            _ => return None,
        }
    }
    Some(out)
}

/// The block with the instructions at `p` and `q` replaced by `joined`: at `p`,
/// with what only `q` waits for before it, or else at `q`.
fn placed(insts: &[VInst], p: usize, q: usize, joined: VInst, facts: &Facts) -> Option<Vec<VInst>> {
    if let Some(moved) = earlier(insts, p, q, facts) {
        let mut out: Vec<VInst> = insts[..p].to_vec();
        out.extend(moved.iter().map(|&k| insts[k].clone()));
        out.push(joined);
        out.extend((p + 1..insts.len()).filter(|k| *k != q && !moved.contains(k)).map(|k| insts[k].clone()));
        return Some(out);
    }
    let results: HashSet<VReg> = insts[p].defs().collect();
    if insts[p + 1..q].iter().any(|i| i.uses().any(|v| results.contains(&v))) {
        return None;
    }
    let mut out = insts.to_vec();
    out[q] = joined;
    out.remove(p);
    Some(out)
}

/// Instructions between `p` and `q` that have to come before `p` for `q` to
/// stand there, in their order; None when one of them cannot.
fn earlier(insts: &[VInst], p: usize, q: usize, facts: &Facts) -> Option<Vec<usize>> {
    let mut wanted: HashSet<VReg> = insts[q].uses().collect();
    let mut moved = Vec::new();
    for k in (p + 1..q).rev() {
        if !insts[k].defs().any(|v| wanted.contains(&v)) {
            continue;
        }
        let stays = |n: &usize| !moved.contains(n);
        let passes = insts[k].mem.is_none_or(|m| {
            !m.store && (p..k).filter(stays).all(|n| insts[n].mem.is_none_or(|other| !other.conflicts(&m)))
        });
        let physical = insts[k].ops.iter().any(|o| matches!(o, VOp::Phys(_)));
        if insts[k].kind != VKind::Normal || !passes || physical || facts.touches_fixed(insts[k].instr) {
            return None;
        }
        wanted.extend(insts[k].uses());
        moved.push(k);
    }
    if insts[p].defs().any(|v| wanted.contains(&v)) {
        return None;
    }
    moved.reverse();
    Some(moved)
}
