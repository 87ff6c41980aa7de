//! Instructions with several results.
//!
//! A template computes one value. An instruction whose semantics assign several
//! operands is therefore a template for each of them, and these are used only
//! together: [`together`] looks for values of one block that are the results of
//! one instruction, of sources that are ready before the first of them. Each is
//! selected by itself, and [`join`] makes one instruction of those that read the
//! same. Where only one is selected, the other results are read by nobody.

use crate::matcher::{Bind, Binds, Fold, Matcher};
use crate::pat::Pat;
use crate::pattern::Action;
use ciphermill_ir::{Func, Inst, Op, Value};
use ciphermill_vcode::{VFunc, VInst, VKind, VOp, VReg};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// An instruction for each of a block's values that instructions with several
/// results compute: the number of the template and what its operands are.
pub fn together(func: &Func, matcher: &Matcher, insts: &[Inst], fold: Fold<'_>) -> HashMap<Inst, (usize, Binds)> {
    let mut found = HashMap::new();
    if matcher.several.is_empty() {
        return found;
    }
    let place: HashMap<Inst, usize> = insts.iter().enumerate().map(|(n, &i)| (i, n)).collect();
    for group in &matcher.several {
        let mut search = Search { func, matcher, insts, place: &place, fold, group, taken: HashSet::new() };
        for &inst in insts {
            let Some((values, binds)) = search.from(inst) else { continue };
            search.taken.extend(values.iter().flatten().map(|v| v.0));
            for (inst, template) in values.into_iter().flatten() {
                found.entry(inst).or_insert((template, binds.clone()));
            }
        }
    }
    found
}

/// The instruction that computes each result, and the template that it matches.
type Values = SmallVec<[Option<(Inst, usize)>; 4]>;

struct Search<'a> {
    func: &'a Func,
    matcher: &'a Matcher,
    insts: &'a [Inst],
    /// Where each of them stands.
    place: &'a HashMap<Inst, usize>,
    fold: Fold<'a>,
    /// Numbers of the templates of each result of the instruction.
    group: &'a [Range<usize>],
    taken: HashSet<Inst>,
}

impl Search<'_> {
    /// A whole set of results that `inst` is one of.
    fn from(&self, inst: Inst) -> Option<(Values, Binds)> {
        if self.taken.contains(&inst) {
            return None;
        }
        let none: Values = SmallVec::from_elem(None, self.group.len());
        (0..self.group.len()).find_map(|n| self.with(&none, n, inst, None))
    }

    /// Find values for the results that have none yet.
    fn others(&self, values: Values, binds: Binds) -> Option<(Values, Binds)> {
        let Some(n) = values.iter().position(Option::is_none) else {
            return self.ready(&values, &binds).then_some((values, binds));
        };
        let free = |inst: &Inst| !self.taken.contains(inst) && values.iter().flatten().all(|v| v.0 != *inst);
        self.insts.iter().filter(|i| free(i)).find_map(|&inst| self.with(&values, n, inst, Some(&binds)))
    }

    /// The set where `inst` is the n-th result besides those of `values`.
    fn with(&self, values: &Values, n: usize, inst: Inst, bound: Option<&Binds>) -> Option<(Values, Binds)> {
        self.group[n].clone().find_map(|template| {
            self.ways(template, inst, bound).into_iter().find_map(|binds| {
                let mut values = values.clone();
                values[n] = Some((inst, template));
                self.others(values, binds)
            })
        })
    }

    /// Ways in which `inst` matches a template, with what is bound already.
    fn ways(&self, template: usize, inst: Inst, bound: Option<&Binds>) -> SmallVec<[Binds; 2]> {
        let t = self.matcher.template(template);
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
        assert!(!matches!(pat, Pat::Load { .. }));
        let bits = self.matcher.width(self.func, data.op, &data.args, Some(data.results[0]));
        orders
            .iter()
            .filter_map(|args| self.matcher.value_with(self.func, t, bits, data.op, args, self.fold, bound))
            .collect()
    }

    /// Are all sources there before the first of the results is made?
    fn ready(&self, values: &Values, binds: &Binds) -> bool {
        let place = self.place;
        let first = values.iter().flatten().map(|v| place[&v.0]).min();
        binds.iter().flatten().all(|b| match b {
            Bind::Val(v) => {
                let made = self.func.def_inst(self.func.resolve(*v)).and_then(|i| place.get(&i));
                made.is_none_or(|&made| Some(made) < first)
            }
            _ => true,
        })
    }
}

/// Make one instruction of those that are the same but for the result wanted: at
/// the place of the first, where all sources are ready.
pub fn join(func: &mut VFunc, matcher: &Matcher) {
    if matcher.several.is_empty() {
        return;
    }
    let instrs: HashSet<_> = matcher.several.iter().map(|g| matcher.template(g[0].start).parts[0].instr).collect();
    let read: HashSet<VReg> = func
        .blocks
        .iter()
        .flat_map(|b| b.insts.iter().flat_map(VInst::uses).chain(b.succs.iter().flat_map(|s| s.1.iter().copied())))
        .collect();
    for block in &mut func.blocks {
        let mut p = 0;
        while p < block.insts.len() {
            let another = |q: &usize| joined(&block.insts[p], &block.insts[*q], &read);
            if instrs.contains(&block.insts[p].instr)
                && let Some((q, both)) = (p + 1..block.insts.len()).find_map(|q| Some((q, another(&q)?)))
            {
                // The same place again: there may be a third result.
                block.insts[p] = both;
                block.insts.remove(q);
            } else {
                p += 1;
            }
        }
    }
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
