//! Products over GF(2) that a loop makes, a bit a turn.
//!
//! A loop of one block that does nothing but compute, and is left after a known number of turns, is
//! followed turn by turn: so what its values are in the last one is written in what they were
//! before the first. Where that is a product of two words ([`super::products`]), an instruction before the
//! loop gives it to whoever wants it behind the loop, and what the loop did for it alone goes. A loop that
//! nobody wants anything of goes as a whole.

use super::emit::{Emitted, Emitter};
use super::facts::Facts;
use super::form;
use super::products::{CarrylessMultiplier, Match, Product, Search, multiplied};
use super::quadratic::Word;
use ciphermill_ir::ops::mask;
use ciphermill_ir::{Block, Cfg, Func, Inst, Op, Target, Terminator, Value, ValueDef};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Turns that are followed, at most: words have no more bits.
const MOST_TURNS: usize = 64;
/// Values that a loop has from outside, at most, of which any two are tried as factors: with four halves of factors
/// there are two for a table's address and the like.
const MOST_GIVEN: usize = 6;

/// A loop of one block with a known number of turns.
pub struct Loop {
    pub block: Block,
    /// The block that it is entered from, and from no other.
    pub before: Block,
    /// What its parameters are in the first turn, and in the next one.
    given: Vec<Value>,
    again: Vec<Value>,
    exit: Target,
    pub turns: usize,
}

/// A loop, and the products among what is wanted of it.
pub struct Found {
    pub of: Loop,
    pub products: Vec<(Value, Match)>,
}

/// The loops of a function that make products.
pub fn find(facts: &Facts<'_>, products: &[&dyn Product]) -> Vec<Found> {
    let func = facts.func;
    let multiplies = |b: &Block| func.blocks[*b].insts.iter().any(|&i| !multiplied(func, &func.insts[i]).is_empty());
    let mut blocks = func.layout.iter().copied().filter(multiplies).peekable();
    if products.is_empty() || blocks.peek().is_none() {
        return Vec::new();
    }
    let cfg = Cfg::new(func);
    let mut search = Search::new(products, facts.word.bits());
    let found = |of: Loop| {
        let products = of.products(facts, &mut search);
        (!products.is_empty()).then_some(Found { of, products })
    };
    blocks.filter_map(|block| Loop::new(func, &cfg, block)).filter_map(found).collect()
}

impl Loop {
    fn new(func: &Func, cfg: &Cfg, block: Block) -> Option<Loop> {
        let data = &func.blocks[block];
        let Terminator::Branch { cond, then, els } = &data.term else { return None };
        let (again, exit) = if then.block == block { (then, els) } else { (els, then) };
        let [one, other] = cfg.preds(block) else { return None };
        let before = if one.from == block { other.from } else { one.from };
        let Terminator::Jump(entry) = &func.blocks[before].term else { return None };
        let inside = again.block == block && exit.block != block && before != block;
        if !inside || !data.insts.iter().all(|&i| func.insts[i].op.is_pure()) {
            return None;
        }
        let all = |args: &[Value]| args.iter().map(|&v| func.resolve(v)).collect();
        let exit = Target::new(exit.block, all(&exit.args));
        let mut of = Loop { block, before, given: all(&entry.args), again: all(&again.args), exit, turns: 0 };
        of.turns = of.counted(func, *cond, then.block == block)?;
        Some(of)
    }

    /// The turns, where the condition follows from constants; it goes on while that is (or is not) zero.
    fn counted(&self, func: &Func, cond: Value, goes_on: bool) -> Option<usize> {
        let params = &func.blocks[self.block].params;
        let constant = |known: &HashMap<Value, u64>, v: Value| {
            let v = func.resolve(v);
            func.as_const(v).or_else(|| known.get(&v).copied())
        };
        let nothing = HashMap::new();
        let mut held: Vec<Option<u64>> = self.given.iter().map(|&v| constant(&nothing, v)).collect();
        (1..=MOST_TURNS)
            .find_map(|turn| {
                let mut known: HashMap<Value, u64> =
                    params.iter().zip(&held).filter_map(|(&p, &c)| Some((p, c?))).collect();
                for &inst in &func.blocks[self.block].insts {
                    let data = &func.insts[inst];
                    let args: Option<Vec<u64>> = data.args.iter().map(|&v| constant(&known, v)).collect();
                    let bits = data.args.first().map_or(0, |&v| func.ty(func.resolve(v)).bits());
                    let value = match (data.op, args.as_deref()) {
                        (Op::Bin(op), Some(&[a, b])) => op.eval(a, b, bits),
                        (Op::Un(op), Some(&[a])) => Some(op.eval(a, bits)),
                        (Op::Cmp(op), Some(&[a, b])) => Some(op.eval(a, b, bits).into()),
                        (Op::Wrap | Op::ZExt, Some(&[a])) => Some(a & mask(32)),
                        _ => None,
                    };
                    known.extend(data.results.iter().copied().zip(value));
                }
                match constant(&known, cond) {
                    None => Some(None),
                    Some(c) if (c != 0) != goes_on => Some(Some(turn)),
                    Some(_) => {
                        held = self.again.iter().map(|&v| constant(&known, v)).collect();
                        None
                    }
                }
            })
            .flatten()
    }

    /// Its values that are wanted behind it.
    fn wanted(&self, func: &Func) -> BTreeSet<Value> {
        let own = |v: Value| match func.values[v].def {
            ValueDef::Param(block, _) => block == self.block,
            ValueDef::Inst(inst, _) => func.blocks[self.block].insts.contains(&inst),
            ValueDef::Alias(_) => false,
        };
        let mut wanted: BTreeSet<Value> = self.exit.args.iter().copied().collect();
        for &block in func.layout.iter().filter(|&&b| b != self.block) {
            for &inst in &func.blocks[block].insts {
                wanted.extend(func.insts[inst].args.iter().map(|&v| func.resolve(v)));
            }
            func.blocks[block].term.for_each_value(|v| {
                wanted.insert(func.resolve(v));
            });
        }
        wanted.into_iter().filter(|&v| own(v)).collect()
    }

    fn products(&self, facts: &Facts<'_>, search: &mut Search<'_>) -> Vec<(Value, Match)> {
        let func = facts.func;
        let wanted: Vec<Value> = self.wanted(func).into_iter().filter(|&v| func.ty(v) == facts.word).collect();
        let insts = &func.blocks[self.block].insts;
        let made: HashSet<Value> = insts.iter().flat_map(|&i| &func.insts[i].results).copied().collect();
        let args = insts.iter().flat_map(|&i| &func.insts[i].args).map(|&v| func.resolve(v));
        let outside = args.filter(|v| !made.contains(v) && !func.blocks[self.block].params.contains(v));
        let given: BTreeSet<Value> = self.given.iter().copied().chain(outside).collect();
        let fits = |v: &Value| func.as_const(*v).is_none() && func.ty(*v) == facts.word;
        let given: Vec<Value> = given.into_iter().filter(fits).collect();
        let mut found = BTreeMap::new();
        if wanted.is_empty() || given.len() > MOST_GIVEN {
            return Vec::new();
        }
        for (n, &first) in given.iter().enumerate() {
            let pairs = given[n + 1..].iter().flat_map(|&v| search.orders([first, v])).collect::<Vec<_>>();
            for pair in pairs {
                let words = self.followed(func, pair);
                for &v in &wanted {
                    let word = words.get(&v).filter(|_| !found.contains_key(&v));
                    if let Some(product) = word.and_then(|word| search.best(facts, pair, word)) {
                        found.insert(v, product);
                    }
                }
            }
        }
        found.into_iter().collect()
    }

    /// What its values are in the last turn, as far as they are made of the factors alone.
    fn followed(&self, func: &Func, factors: [Value; 2]) -> HashMap<Value, Word> {
        let width = |v: Value| func.ty(v).bits();
        let [first, second] = factors;
        let mut words = HashMap::new();
        words.insert(first, Word::first(mask(width(first)), width(first)));
        words.insert(second, Word::second(mask(width(second)), width(second)));
        let word = |words: &HashMap<Value, Word>, v: Value| {
            let v = func.resolve(v);
            func.as_const(v).map(|c| Word::constant(c, width(v))).or_else(|| words.get(&v).cloned())
        };
        let params = &func.blocks[self.block].params;
        for turn in 0..self.turns {
            let from = if turn == 0 { &self.given } else { &self.again };
            let next: Vec<Option<Word>> = from.iter().map(|&v| word(&words, v)).collect();
            for (&param, next) in params.iter().zip(next) {
                set(&mut words, param, next);
            }
            for &inst in &func.blocks[self.block].insts {
                let data = &func.insts[inst];
                let args: Option<Vec<Word>> = data.args.iter().map(|&v| word(&words, v)).collect();
                let value = args.and_then(|args| form::operation(func, data, &args.iter().collect::<Vec<_>>()));
                data.results.iter().for_each(|&r| set(&mut words, r, value.clone()));
            }
        }
        words
    }

    /// Instructions that are there for these values and for the loop's end.
    fn needed(&self, func: &Func, wanted: &BTreeSet<Value>) -> HashSet<Value> {
        let mut todo: Vec<Value> = wanted.iter().copied().collect();
        if let Terminator::Branch { cond, .. } = func.blocks[self.block].term {
            todo.push(func.resolve(cond));
        }
        let mut needed = HashSet::new();
        while let Some(v) = todo.pop() {
            if !needed.insert(v) {
                continue;
            }
            match func.values[v].def {
                ValueDef::Param(block, n) if block == self.block => todo.push(self.again[usize::from(n)]),
                ValueDef::Inst(inst, _) if func.blocks[self.block].insts.contains(&inst) => {
                    todo.extend(func.insts[inst].args.iter().map(|&v| func.resolve(v)));
                }
                _ => {}
            }
        }
        needed
    }

    /// What a turn computes for these values alone.
    pub fn alone(&self, func: &Func, values: &[Value]) -> BTreeSet<Value> {
        let others = self.wanted(func).into_iter().filter(|v| !values.contains(v)).collect();
        let without = self.needed(func, &others);
        let of = self.needed(func, &values.iter().copied().collect());
        let results = func.blocks[self.block].insts.iter().flat_map(|&i| &func.insts[i].results).copied();
        results.filter(|v| of.contains(v) && !without.contains(v) && func.as_const(*v).is_none()).collect()
    }
}

fn set(words: &mut HashMap<Value, Word>, v: Value, word: Option<Word>) {
    match word {
        Some(word) => words.insert(v, word),
        None => words.remove(&v),
    };
}

/// Have the machine's instructions give what loops make.
pub fn rewrite(func: &mut Func, found: Vec<Found>, multipliers: &[CarrylessMultiplier]) {
    for Found { mut of, products } in found {
        let mut made = Emitted::default();
        let mut new: HashMap<Value, Value> = HashMap::new();
        for (v, product) in products {
            let (ty, loc) = (func.ty(v), func.def_inst(v).map_or(0, |i| func.insts[i].loc));
            let mut out = Emitter { func, units: &[], insts: Vec::new(), loc, ty, made: &mut made };
            let value = out.multiplied(&product, multipliers[product.product].function);
            let insts = out.insts;
            func.blocks[of.before].insts.extend(insts);
            new.insert(v, value);
        }
        behind(func, &mut of, &new);
        shorten(func, &of);
    }
}

/// Behind the loop the new values are used.
fn behind(func: &mut Func, of: &mut Loop, new: &HashMap<Value, Value>) {
    let now = |func: &Func, v: Value| {
        let v = func.resolve(v);
        new.get(&v).copied().unwrap_or(v)
    };
    for block in func.layout.clone().into_iter().filter(|&b| b != of.block) {
        for inst in func.blocks[block].insts.clone() {
            for n in 0..func.insts[inst].args.len() {
                func.insts[inst].args[n] = now(func, func.insts[inst].args[n]);
            }
        }
        let mut term = func.blocks[block].term.clone();
        term.map_values(|v| now(func, v));
        func.blocks[block].term = term;
    }
    of.exit.args.iter_mut().for_each(|v| *v = now(func, *v));
    for target in func.blocks[of.block].term.targets_mut().into_iter().filter(|t| t.block != of.block) {
        target.args.clone_from(&of.exit.args);
    }
}

/// What nobody wants any more goes, and the loop if that is all of it.
fn shorten(func: &mut Func, of: &Loop) {
    let wanted = of.wanted(func);
    if wanted.is_empty() {
        func.blocks[of.before].term = Terminator::Jump(of.exit.clone());
        func.layout.retain(|&b| b != of.block);
        return;
    }
    let needed = of.needed(func, &wanted);
    let stays = |func: &Func, i: &Inst| func.insts[*i].results.iter().any(|r| needed.contains(r));
    let insts = func.blocks[of.block].insts.iter().copied().filter(|i| stays(func, i)).collect();
    func.blocks[of.block].insts = insts;
    let params = std::mem::take(&mut func.blocks[of.block].params);
    let kept: Vec<bool> = params.iter().map(|p| needed.contains(p)).collect();
    for block in [of.before, of.block] {
        let mut term = func.blocks[block].term.clone();
        for target in term.targets_mut().into_iter().filter(|t| t.block == of.block) {
            let mut kept = kept.iter();
            target.args.retain(|_| kept.next().is_some_and(|&k| k));
        }
        func.blocks[block].term = term;
    }
    let params: Vec<Value> = params.into_iter().zip(&kept).filter(|p| *p.1).map(|p| p.0).collect();
    for (n, &param) in params.iter().enumerate() {
        func.values[param].def = ValueDef::Param(of.block, n as u16);
    }
    func.blocks[of.block].params = params;
}
