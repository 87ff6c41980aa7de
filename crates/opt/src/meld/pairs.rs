//! Which instructions of two sides do the same.

use crate::alias::split;
use ciphermill_ir::{Block, Func, Inst, MemAccess, Op, Type, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Levels of operands that are compared to see which way round operands fit.
const DEPTH: u32 = 4;
/// Operands that are the same value say more than ones that are computed alike.
const SAME: u32 = 4;

/// One side.
pub(super) struct Side {
    /// Instructions, without constants.
    pub len: usize,
    /// What is needed of the side, in its order.
    pub live: Vec<Inst>,
    pub stores: Vec<Inst>,
    /// What the block where the sides meet is given.
    pub args: Vec<Value>,
    /// Of a load the number of stores before it; of others the greatest of those that went into them.
    pub sections: BTreeMap<Inst, usize>,
}

impl Side {
    /// None of a side that does more than compute, load and store.
    pub fn of(func: &Func, block: Block, args: Vec<Value>) -> Option<Side> {
        let insts = &func.blocks[block].insts;
        let (mut sections, mut stores) = (BTreeMap::new(), Vec::new());
        for &inst in insts {
            let data = &func.insts[inst];
            let from = data.args.iter().filter_map(|&v| func.def_inst(func.resolve(v)));
            let above = from.filter_map(|i| sections.get(&i)).max().copied().unwrap_or(0);
            let section = match data.op {
                Op::Load(_) => stores.len(),
                Op::Store(_) => {
                    stores.push(inst);
                    continue;
                }
                Op::GlobalGet(_) | Op::Bin(_) => above,
                op if op.is_pure() => above,
                _ => return None,
            };
            sections.insert(inst, section);
        }
        let mut needed: BTreeSet<Inst> = BTreeSet::new();
        let mut work: Vec<Value> = args.clone();
        work.extend(stores.iter().flat_map(|&i| func.insts[i].args.iter().copied()));
        while let Some(v) = work.pop() {
            if let Some(inst) = func.def_inst(func.resolve(v))
                && sections.contains_key(&inst)
                && needed.insert(inst)
            {
                work.extend(&func.insts[inst].args);
            }
        }
        let live = insts.iter().copied().filter(|i| needed.contains(i)).collect();
        let len = insts.iter().filter(|&&i| !matches!(func.insts[i].op, Op::Const(_))).count();
        Some(Side { len, live, stores, args, sections })
    }
}

/// Instructions that come out.
pub(super) struct Size {
    /// Selections and all.
    pub all: usize,
    /// Those for both sides.
    pub shared: usize,
}

/// What a value becomes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Made {
    Constant(Type, u64),
    /// That of an instruction of a side; of a pair, the first one's.
    Inst(Inst),
    Outside(Value),
}

/// The sides' instructions, and which of them are one.
pub(super) struct Pairs {
    of: [BTreeMap<Inst, Inst>; 2],
    /// Those of the first side that have the operands of the second exchanged.
    turned: BTreeSet<Inst>,
    sections: [BTreeMap<Inst, usize>; 2],
    stores: Vec<(Inst, Inst)>,
    args: Vec<(Value, Value)>,
}

impl Pairs {
    /// None where the sides do not store alike.
    pub fn of(func: &Func, a: &Side, b: &Side) -> Option<Pairs> {
        let alike = |(&i, &j): (&Inst, &Inst)| {
            same(func.insts[i].op, func.insts[j].op) && func.ty(func.insts[i].args[1]) == func.ty(func.insts[j].args[1])
        };
        if a.stores.len() != b.stores.len() || !a.stores.iter().zip(&b.stores).all(alike) {
            return None;
        }
        let stores: Vec<(Inst, Inst)> = a.stores.iter().copied().zip(b.stores.iter().copied()).collect();
        let args: Vec<(Value, Value)> = a.args.iter().copied().zip(b.args.iter().copied()).collect();
        let sections = [a.sections.clone(), b.sections.clone()];
        let mut pairs = Pairs { of: Default::default(), turned: BTreeSet::new(), sections, stores, args };
        for (i, j) in pairs.stores.clone() {
            for k in 0..2 {
                pairs.join(func, func.insts[i].args[k], func.insts[j].args[k]);
            }
        }
        for (x, y) in pairs.args.clone() {
            pairs.join(func, x, y);
        }
        Some(pairs)
    }

    /// Is it an instruction of a side?
    pub fn inside(&self, inst: Inst) -> bool {
        self.sections.iter().any(|s| s.contains_key(&inst))
    }

    /// Is it one of a pair, that of the first side or that of the second?
    pub fn paired(&self, side: usize, inst: Inst) -> bool {
        self.of[side].contains_key(&inst)
    }

    /// The pair that an instruction is in.
    pub fn pair(&self, inst: Inst) -> Option<(Inst, Inst)> {
        let first = self.of[0].get(&inst).map(|&j| (inst, j));
        first.or_else(|| self.of[1].get(&inst).map(|&i| (i, inst)))
    }

    /// Operands of a pair, side by side.
    pub fn operands(&self, func: &Func, i: Inst, j: Inst) -> Vec<(Value, Value)> {
        side_by_side(func, i, j, self.turned.contains(&i))
    }

    /// Do the operands fit better when one side's are exchanged?
    fn fits_turned(&self, func: &Func, i: Inst, j: Inst) -> bool {
        let commutes = matches!(func.insts[i].op, Op::Bin(op) if op.commutes());
        let fit = |turned: bool| -> u32 {
            side_by_side(func, i, j, turned).into_iter().map(|(x, y)| self.fit(func, x, y, DEPTH)).sum()
        };
        commutes && fit(true) > fit(false)
    }

    /// How much two values are alike.
    fn fit(&self, func: &Func, x: Value, y: Value, depth: u32) -> u32 {
        if self.made(func, x) == self.made(func, y) {
            return SAME;
        }
        let Some((i, j)) = self.alike(func, x, y).filter(|_| depth > 0) else { return 0 };
        let sum = |turned: bool| -> u32 {
            side_by_side(func, i, j, turned).into_iter().map(|(x, y)| self.fit(func, x, y, depth - 1)).sum()
        };
        let commutes = matches!(func.insts[i].op, Op::Bin(op) if op.commutes());
        1 + if commutes { sum(false).max(sum(true)) } else { sum(false) }
    }

    /// Instructions of the two sides that compute two values in the same way.
    fn alike(&self, func: &Func, x: Value, y: Value) -> Option<(Inst, Inst)> {
        let [i, j] = [x, y].map(|v| func.def_inst(func.resolve(v)));
        let (i, j) = (i?, j?);
        let sections = (self.sections[0].get(&i)?, self.sections[1].get(&j)?);
        let (a, b) = (&func.insts[i], &func.insts[j]);
        let types = |i: Inst| func.insts[i].args.iter().map(|&v| func.ty(v)).collect::<Vec<_>>();
        let constant = matches!(a.op, Op::Const(_));
        let one = !constant && same(a.op, b.op) && func.ty(x) == func.ty(y) && types(i) == types(j);
        (one && sections.0 == sections.1).then_some((i, j))
    }

    /// Pair what two values are computed from, as far as it is the same.
    fn join(&mut self, func: &Func, x: Value, y: Value) {
        let mut work = vec![(x, y)];
        while let Some((x, y)) = work.pop() {
            let Some((i, j)) = self.alike(func, x, y) else { continue };
            if self.paired(0, i) || self.paired(1, j) {
                continue;
            }
            let turned = self.fits_turned(func, i, j);
            if turned {
                self.turned.insert(i);
            }
            self.of[0].insert(i, j);
            self.of[1].insert(j, i);
            work.extend(side_by_side(func, i, j, turned));
        }
    }

    fn made(&self, func: &Func, v: Value) -> Made {
        let v = func.resolve(v);
        match func.def_inst(v) {
            Some(inst) => match (func.as_const(v), self.pair(inst)) {
                (Some(c), _) => Made::Constant(func.ty(v), c),
                (None, Some((i, _))) => Made::Inst(i),
                (None, None) if self.inside(inst) => Made::Inst(inst),
                (None, None) => Made::Outside(v),
            },
            None => Made::Outside(v),
        }
    }

    /// How much comes out; none where pairs would wait for each other in a circle.
    pub fn size(&self, func: &Func) -> Option<Size> {
        let mut count = Count {
            pairs: self,
            func,
            state: BTreeMap::new(),
            choices: BTreeSet::new(),
            sums: BTreeSet::new(),
            size: 0,
            shared: 0,
        };
        for &(i, j) in &self.stores {
            count.access(i, j)?;
            count.choice((func.insts[i].args[1], func.insts[j].args[1]))?;
            count.size += 1;
            count.shared += 1;
        }
        for &pair in &self.args {
            count.choice(pair)?;
        }
        Some(Size { all: count.size + count.choices.len(), shared: count.shared })
    }
}

struct Count<'a> {
    pairs: &'a Pairs,
    func: &'a Func,
    /// Instructions being counted, or counted.
    state: BTreeMap<Inst, bool>,
    choices: BTreeSet<(Made, Made)>,
    sums: BTreeSet<(Made, u32, u32)>,
    size: usize,
    shared: usize,
}

impl Count<'_> {
    fn choice(&mut self, (x, y): (Value, Value)) -> Option<()> {
        let (a, b) = (self.pairs.made(self.func, x), self.pairs.made(self.func, y));
        self.value(x)?;
        self.value(y)?;
        if let Some((base, c, d)) = distances(self.func, x, y).filter(|_| a != b) {
            self.moved(self.pairs.made(self.func, base), c, d);
        } else if a != b {
            self.choices.insert((a, b));
        }
        Some(())
    }

    fn access(&mut self, i: Inst, j: Inst) -> Option<()> {
        let (a, b) = (&self.func.insts[i], &self.func.insts[j]);
        self.choice((a.args[0], b.args[0]))?;
        let offset = |op: Op| if let Op::Load(a) | Op::Store(a) = op { a.offset } else { 0 };
        let (c, d) = (offset(a.op), offset(b.op));
        if c != d {
            self.size += 1;
            self.choices.insert((constant(c), constant(d)));
        }
        Some(())
    }

    fn moved(&mut self, base: Made, c: u32, d: u32) {
        self.choices.insert((constant(c), constant(d)));
        self.size += usize::from(self.sums.insert((base, c, d)));
    }

    fn value(&mut self, v: Value) -> Option<()> {
        let Made::Inst(inst) = self.pairs.made(self.func, v) else { return Some(()) };
        match self.state.get(&inst) {
            Some(true) => return Some(()),
            Some(false) => return None,
            None => {}
        }
        self.state.insert(inst, false);
        self.size += 1;
        if let Some((i, j)) = self.pairs.pair(inst) {
            self.shared += 1;
            if let Op::Load(_) = self.func.insts[i].op {
                self.access(i, j)?;
            } else {
                for pair in self.pairs.operands(self.func, i, j) {
                    self.choice(pair)?;
                }
            }
        } else {
            for &arg in &self.func.insts[inst].args {
                self.value(arg)?;
            }
        }
        self.state.insert(inst, true);
        Some(())
    }
}

fn constant(c: u32) -> Made {
    Made::Constant(Type::I32, u64::from(c))
}

/// Two values that are one base and different constants: the choice is that of a constant then, and what is known of
/// the base, as of a pointer, is known of the sum.
pub(super) fn distances(func: &Func, x: Value, y: Value) -> Option<(Value, u32, u32)> {
    let ((a, c), (b, d)) = (split(func, x), split(func, y));
    (func.ty(x) == Type::I32 && a == b && c != d).then_some((a?, c, d))
}

/// Operands of two instructions, the second's exchanged or not.
fn side_by_side(func: &Func, i: Inst, j: Inst, turned: bool) -> Vec<(Value, Value)> {
    let (a, b) = (&func.insts[i].args, &func.insts[j].args);
    let other = |k: usize| if turned { b[b.len() - 1 - k] } else { b[k] };
    (0..a.len()).map(|k| (a[k], other(k))).collect()
}

/// Is it one operation? Of accesses offset and alignment may differ.
fn same(a: Op, b: Op) -> bool {
    let alike = |x: MemAccess, y: MemAccess| (x.bytes, x.signed, x.space) == (y.bytes, y.signed, y.space);
    match (a, b) {
        (Op::Load(x), Op::Load(y)) | (Op::Store(x), Op::Store(y)) => alike(x, y),
        _ => a == b,
    }
}
