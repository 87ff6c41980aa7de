//! Linear layers: maps over GF(2) of several words to several, whole.
//!
//! Compilers take such a layer apart: exclusive-ors are put in another order, so that
//! neither the words that go in nor those that come out need be values of the program.
//! What is left of it is linear algebra. Every value that operations linear over GF(2)
//! compute is a sum of matrices times *atoms*, the values behind which something else
//! happens. The values that leave the linear part and share atoms are taken together:
//! their matrices are rows, with a column for each atom. Atoms that belong to one word
//! of the layer have the same column, those of several words the sum of theirs; so the
//! words that go in are as many as columns are independent over GF(2), and those that
//! come out as many as rows are.
//!
//! For people, as [`super::report`]: no code is made from it.

use super::facts::Facts;
use super::sum::{Rows, Sum};
use super::values::combined;
use super::walk::backwards;
use ciphermill_ir::{BinOp, Inst, Op, UnOp, Value};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

/// Words that go in or come out, at most: every sum of them is looked at.
const MOST_WORDS: usize = 4;
/// Atoms of one value, at most.
const MOST_ATOMS: usize = 24;

/// A layer of a function.
pub struct Layer {
    /// The matrix that each word going out (first index) has for each going in.
    ///
    /// Which sums of the words are called words is a matter of choice; it is made by
    /// weights that do not depend on how the program chose.
    pub map: Vec<Vec<Rows>>,
    /// The operations that compute it.
    pub operations: BTreeSet<Value>,
}

fn xor(a: &Rows, b: &Rows) -> Rows {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

fn ones(m: &Rows) -> u64 {
    m.iter().map(|row| u64::from(row.count_ones())).sum()
}

struct Function<'a> {
    facts: &'a Facts<'a>,
    /// Values that something other than a linear operation uses.
    leaving: BTreeSet<Value>,
    /// Values as sums of matrices times atoms.
    of: HashMap<Value, Sum<Value>>,
}

impl Function<'_> {
    /// What an operation on `v` sees: `v` itself where more than sums happen to it.
    fn operand(&self, v: Value) -> Cow<'_, Sum<Value>> {
        match self.of.get(&v) {
            Some(found) if !self.leaving.contains(&v) => Cow::Borrowed(found),
            _ => Cow::Owned(Sum::source(v, self.facts.possible(v))),
        }
    }

    fn operation(&self, inst: Inst) -> Option<Sum<Value>> {
        let result = self.facts.func.insts[inst].results.first().filter(|_| self.is_linear(inst))?;
        let found = combined(self.facts.func, *result, &|v| Some(self.operand(v)))?;
        (!found.parts.is_empty() && found.sources().len() <= MOST_ATOMS).then_some(found)
    }

    /// Is it an operation that is linear whatever its operands are?
    fn is_linear(&self, inst: Inst) -> bool {
        let func = self.facts.func;
        let data = &func.insts[inst];
        let possible = |n: usize| self.facts.possible(func.resolve(data.args[n]));
        let is = match data.op {
            Op::Bin(BinOp::Xor) | Op::Un(UnOp::Bswap | UnOp::SExt8 | UnOp::SExt16 | UnOp::SExt32) => true,
            Op::Bin(BinOp::Or | BinOp::Add) => possible(0) & possible(1) == 0,
            Op::Bin(BinOp::And | BinOp::Shl | BinOp::ShrU | BinOp::ShrS | BinOp::RotL | BinOp::RotR) => {
                func.as_const(func.resolve(data.args[1])).is_some()
            }
            _ => false,
        };
        is && data.args.iter().chain(&data.results).all(|&v| func.ty(func.resolve(v)) == self.facts.word)
    }

    /// Without the atoms that are only added as they are.
    fn without_added(&self, found: &Sum<Value>) -> Sum<Value> {
        let parts = found.parts.iter().filter(|p| found.kept(p.source).is_none()).cloned().collect();
        Sum { parts, rest: 0 }
    }
}

/// The layers of a function that have several words on either side.
pub fn layers(facts: &Facts<'_>) -> Vec<Layer> {
    let func = facts.func;
    let mut function = Function { facts, leaving: BTreeSet::new(), of: HashMap::new() };
    let mut leaving = BTreeSet::new();
    for inst in facts.insts().filter(|&i| !function.is_linear(i)) {
        leaving.extend(func.insts[inst].args.iter().map(|&a| func.resolve(a)));
    }
    for &block in &func.layout {
        func.blocks[block].term.for_each_value(|v| {
            leaving.insert(func.resolve(v));
        });
    }
    function.leaving = leaving;
    for inst in facts.insts() {
        if let Some(found) = function.operation(inst) {
            function.of.insert(func.result(inst), found);
        }
    }
    let of = |&v: &Value| Some((v, function.without_added(function.of.get(&v)?)));
    // Bytes that are cut from a word to be stored are none that a layer gives.
    let word = |root: &Root| !root.1.parts.is_empty() && facts.possible(root.0) == facts.word.mask();
    let roots = function.leaving.iter().filter_map(of).filter(word).collect();
    groups(roots).into_iter().filter_map(|group| layer(&function, &group)).collect()
}

/// A value that leaves the linear part, over its atoms.
type Root = (Value, Sum<Value>);

/// Roots that share atoms, directly or by way of others.
fn groups(roots: Vec<Root>) -> Vec<Vec<Root>> {
    let mut out: Vec<Vec<Root>> = Vec::new();
    for root in roots {
        let atoms = root.1.sources();
        let shares = |g: &Vec<Root>| g.iter().any(|(_, sum)| !sum.sources().is_disjoint(&atoms));
        let (with, others): (Vec<_>, Vec<_>) = out.into_iter().partition(shares);
        out = others;
        out.push(with.into_iter().flatten().chain([root]).collect());
    }
    out
}

fn layer(function: &Function<'_>, group: &[Root]) -> Option<Layer> {
    let atoms: BTreeSet<Value> = group.iter().flat_map(|(_, sum)| sum.sources()).collect();
    let row = |sum: &Sum<Value>| atoms.iter().map(|&a| sum.rows(a, function.facts.word.bits())).collect();
    let rows: Vec<Vec<Rows>> = group.iter().map(|(_, sum)| row(sum)).collect();
    let columns = independent(&transposed(&independent(&rows)?))?;
    let map = sparsest(&transposed(&columns));
    let several = map.len() > 1 && map[0].len() > 1;
    let roots: Vec<Value> = group.iter().map(|(v, _)| *v).collect();
    several.then(|| Layer { map, operations: between(function, &atoms, &roots) })
}

fn transposed(map: &[Vec<Rows>]) -> Vec<Vec<Rows>> {
    (0..map.first().map_or(0, Vec::len)).map(|n| map.iter().map(|row| row[n].clone()).collect()).collect()
}

fn added(a: &[Rows], b: &[Rows]) -> Vec<Rows> {
    a.iter().zip(b).map(|(a, b)| xor(a, b)).collect()
}

/// Every sum of some of the vectors, by the set of them; that of none first.
fn sums(of: &[Vec<Rows>]) -> Vec<Vec<Rows>> {
    let nothing: Vec<Rows> = of.first().map_or(Vec::new(), |v| v.iter().map(|m| vec![0; m.len()]).collect());
    of.iter().fold(vec![nothing], |all, v| {
        let with: Vec<Vec<Rows>> = all.iter().map(|s| added(s, v)).collect();
        all.into_iter().chain(with).collect()
    })
}

/// Vectors of which all are sums; None for more than [`MOST_WORDS`].
fn independent(all: &[Vec<Rows>]) -> Option<Vec<Vec<Rows>>> {
    let mut basis: Vec<Vec<Rows>> = Vec::new();
    for v in all {
        if !sums(&basis).contains(v) {
            basis.push(v.clone());
        }
        if basis.len() > MOST_WORDS {
            return None;
        }
    }
    Some(basis)
}

/// The map with those sums of its words as words that weigh least. The weight of a sum
/// is what it has of ones with all sums of the other side, whichever words they have.
fn sparsest(map: &[Vec<Rows>]) -> Vec<Vec<Rows>> {
    let lightest = |map: &[Vec<Rows>]| -> Vec<Vec<Rows>> {
        let weight = |v: &Vec<Rows>| {
            let entries: Vec<Vec<Rows>> = v.iter().map(|m| vec![m.clone()]).collect();
            sums(&entries).iter().map(|s| ones(&s[0])).sum::<u64>()
        };
        let mut all: Vec<(u64, Vec<Rows>)> = sums(map).into_iter().skip(1).map(|v| (weight(&v), v)).collect();
        all.sort();
        let vectors: Vec<Vec<Rows>> = all.into_iter().map(|w| w.1).collect();
        independent(&vectors).unwrap_or_else(|| map.to_vec())
    };
    // Rows are put in order by weights that do not know the columns' words; then the
    // columns, with the rows that there now are; then equal weights of rows once more.
    let columns = lightest(&transposed(&lightest(map)));
    lightest(&transposed(&columns))
}

/// The operations on the way from the atoms to the roots.
fn between(function: &Function<'_>, atoms: &BTreeSet<Value>, roots: &[Value]) -> BTreeSet<Value> {
    let func = function.facts.func;
    // Below an atom, or one that is only added: not part of the layer.
    let part = |v: Value| {
        let of = function.of.get(&v).map(|sum| function.without_added(sum).sources()).unwrap_or_default();
        !of.is_disjoint(atoms)
    };
    backwards(func, roots, |v| part(v) && (roots.contains(&v) || !atoms.contains(&v)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned(n: u32) -> Rows {
        (0..32).map(|i| 1 << ((i + n) % 32)).collect()
    }

    fn shifted(n: usize) -> Rows {
        (0..32).map(|i| if i < n { 0 } else { 1 << (i - n) }).collect()
    }

    fn none() -> Rows {
        vec![0; 32]
    }

    /// However the words on either side are summed up, the map is the same.
    #[test]
    fn the_choice_of_words_does_not_matter() {
        let map = [
            vec![turned(1), shifted(5), none()],
            vec![none(), turned(9), shifted(20)],
            vec![shifted(14), none(), shifted(27)],
        ];
        let rows = [added(&map[0], &map[1]), map[1].clone(), added(&added(&map[2], &map[1]), &map[0])];
        let columns = transposed(&rows);
        let mixed = transposed(&[columns[2].clone(), added(&columns[0], &columns[2]), columns[1].clone()]);
        assert_eq!(sparsest(&map), sparsest(&mixed));
        let total = |m: &[Vec<Rows>]| m.iter().flatten().map(ones).sum::<u64>();
        assert_eq!(total(&sparsest(&mixed)), total(&map), "and no denser than it was");
    }

    /// Atoms of one word have the same column.
    #[test]
    fn words_are_independent_columns() {
        let row = |a: Rows, b: Rows| vec![a.clone(), a.clone(), b.clone(), xor(&a, &b)];
        let rows = [row(turned(1), turned(2)), row(turned(3), turned(4))];
        assert_eq!(independent(&transposed(&rows)).map(|c| c.len()), Some(2));
        let many: Vec<Vec<Rows>> = (0..5).map(|n| vec![turned(n)]).collect();
        assert_eq!(independent(&many), None);
    }
}
