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

use super::form::{Form, WORD};
use ciphermill_ir::bits::Masks;
use ciphermill_ir::{BinOp, Func, Inst, Op, Type, UnOp, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Words that go in or come out, at most: every sum of them is looked at.
const MOST_WORDS: usize = 4;
/// Atoms of one value, at most.
const MOST_ATOMS: usize = 24;

/// A matrix over GF(2), by rows.
pub type Matrix = [u32; WORD];

/// A layer of a function.
pub struct Layer {
    /// The matrix that each word going out (first index) has for each going in.
    ///
    /// Which sums of the words are called words is a matter of choice; it is made by
    /// weights that do not depend on how the program chose.
    pub map: Vec<Vec<Matrix>>,
    /// The operations that compute it.
    pub operations: BTreeSet<Value>,
}

/// A value as the sum of matrices times atoms.
type Linear = BTreeMap<Value, Matrix>;

fn identity(possible: u32) -> Matrix {
    std::array::from_fn(|i| possible & 1 << i)
}

fn xor(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|i| a[i] ^ b[i])
}

fn ones(m: &Matrix) -> u64 {
    m.iter().map(|row| u64::from(row.count_ones())).sum()
}

fn sum(a: &Linear, b: &Linear) -> Linear {
    let mut out = a.clone();
    for (&atom, matrix) in b {
        let entry = out.entry(atom).or_insert([0; WORD]);
        *entry = xor(entry, matrix);
    }
    out.retain(|_, m| *m != [0; WORD]);
    out
}

/// An operation that moves or masks bits, applied to each summand.
fn moved(op: Op, a: &Linear, constant: Option<u32>) -> Option<Linear> {
    let mut out = Linear::new();
    for (&atom, matrix) in a {
        let form = Form { rows: matrix.map(u128::from), constant: 0 };
        let made = match constant {
            Some(c) => Form::of(op, &[&form, &Form::constant(c)])?,
            None => Form::of(op, &[&form])?,
        };
        out.insert(atom, made.rows.map(|r| r as u32));
    }
    out.retain(|_, m| *m != [0; WORD]);
    Some(out)
}

struct Function<'a> {
    func: &'a Func,
    masks: &'a Masks,
    /// Values that something other than a linear operation uses.
    leaving: BTreeSet<Value>,
    of: HashMap<Value, Linear>,
}

impl Function<'_> {
    fn possible(&self, v: Value) -> u32 {
        self.masks.possible(self.func, v) as u32
    }

    /// What an operation on `v` sees: `v` itself where more than sums happen to it.
    fn operand(&self, v: Value) -> Linear {
        let v = self.func.resolve(v);
        match self.of.get(&v) {
            _ if self.func.as_const(v).is_some() => Linear::new(),
            Some(found) if !self.leaving.contains(&v) => found.clone(),
            _ => Linear::from([(v, identity(self.possible(v)))]),
        }
    }

    fn operation(&self, inst: Inst) -> Option<Linear> {
        let data = &self.func.insts[inst];
        let kind = linear(self.func, self.masks, inst)?;
        let args: Vec<Value> = data.args.iter().map(|&a| self.func.resolve(a)).collect();
        let found = match kind {
            Kind::Sum => sum(&self.operand(args[0]), &self.operand(args[1])),
            Kind::Move(constant) => moved(data.op, &self.operand(args[0]), constant)?,
        };
        (!found.is_empty() && found.len() <= MOST_ATOMS).then_some(found)
    }
}

enum Kind {
    Sum,
    /// With a constant where the operation has one.
    Move(Option<u32>),
}

/// Is it an operation that is linear whatever its operands are?
fn linear(func: &Func, masks: &Masks, inst: Inst) -> Option<Kind> {
    let data = &func.insts[inst];
    let words = data.args.iter().chain(&data.results).all(|&v| func.ty(func.resolve(v)) == Type::I32);
    if !words || data.results.len() != 1 {
        return None;
    }
    let possible = |n: usize| masks.possible(func, func.resolve(data.args[n])) as u32;
    let constant = || func.as_const(func.resolve(*data.args.get(1)?)).map(|c| c as u32);
    match data.op {
        Op::Bin(BinOp::Xor) => Some(Kind::Sum),
        Op::Bin(BinOp::Or | BinOp::Add) if possible(0) & possible(1) == 0 => Some(Kind::Sum),
        Op::Bin(BinOp::And | BinOp::Shl | BinOp::ShrU | BinOp::ShrS | BinOp::RotL | BinOp::RotR) => {
            Some(Kind::Move(Some(constant()?)))
        }
        Op::Un(UnOp::Bswap | UnOp::SExt8 | UnOp::SExt16) => Some(Kind::Move(None)),
        _ => None,
    }
}

/// The layers of a function that have several words on either side.
pub fn layers(func: &Func, masks: &Masks) -> Vec<Layer> {
    let mut leaving = BTreeSet::new();
    let insts = || func.layout.iter().flat_map(|&b| &func.blocks[b].insts).copied();
    for inst in insts().filter(|&i| linear(func, masks, i).is_none()) {
        leaving.extend(func.insts[inst].args.iter().map(|&a| func.resolve(a)));
    }
    for &block in &func.layout {
        func.blocks[block].term.for_each_value(|v| {
            leaving.insert(func.resolve(v));
        });
    }
    let mut function = Function { func, masks, leaving, of: HashMap::new() };
    for inst in insts() {
        if let Some(found) = function.operation(inst) {
            function.of.insert(func.result(inst), found);
        }
    }
    let roots: Vec<(Value, Linear)> =
        function.leaving.iter().filter_map(|&v| Some((v, without_added(function.of.get(&v)?)))).collect();
    // Bytes that are cut from a word to be stored are none that a layer gives.
    let word = |v: Value| function.possible(v) == u32::MAX;
    let roots: Vec<(Value, Linear)> = roots.into_iter().filter(|(v, l)| !l.is_empty() && word(*v)).collect();
    groups(roots).into_iter().filter_map(|group| layer(&function, &group)).collect()
}

/// Without the atoms that are only added as they are.
fn without_added(found: &Linear) -> Linear {
    let plain = |m: &Matrix| m.iter().enumerate().all(|(i, row)| row & !(1 << i) == 0);
    found.iter().filter(|(_, m)| !plain(m)).map(|(&v, &m)| (v, m)).collect()
}

/// Roots that share atoms, directly or by way of others.
fn groups(roots: Vec<(Value, Linear)>) -> Vec<Vec<(Value, Linear)>> {
    let mut out: Vec<Vec<(Value, Linear)>> = Vec::new();
    for root in roots {
        let shares = |g: &Vec<(Value, Linear)>| g.iter().any(|(_, l)| l.keys().any(|a| root.1.contains_key(a)));
        let (with, others): (Vec<_>, Vec<_>) = out.into_iter().partition(shares);
        out = others;
        out.push(with.into_iter().flatten().chain([root]).collect());
    }
    out
}

fn layer(function: &Function<'_>, group: &[(Value, Linear)]) -> Option<Layer> {
    let atoms: BTreeSet<Value> = group.iter().flat_map(|(_, l)| l.keys().copied()).collect();
    let entry = |l: &Linear, atom: &Value| l.get(atom).copied().unwrap_or([0; WORD]);
    let rows: Vec<Vec<Matrix>> = group.iter().map(|(_, l)| atoms.iter().map(|a| entry(l, a)).collect()).collect();
    let columns = independent(&transposed(&independent(&rows)?))?;
    let map = sparsest(&transposed(&columns));
    let several = map.len() > 1 && map[0].len() > 1;
    let roots: Vec<Value> = group.iter().map(|(v, _)| *v).collect();
    several.then(|| Layer { map, operations: between(function, &atoms, &roots) })
}

fn transposed(map: &[Vec<Matrix>]) -> Vec<Vec<Matrix>> {
    (0..map.first().map_or(0, Vec::len)).map(|n| map.iter().map(|row| row[n]).collect()).collect()
}

fn added(a: &[Matrix], b: &[Matrix]) -> Vec<Matrix> {
    a.iter().zip(b).map(|(a, b)| xor(a, b)).collect()
}

/// Every sum of some of the vectors, by the set of them; that of none first.
fn sums(of: &[Vec<Matrix>]) -> Vec<Vec<Matrix>> {
    let nothing = vec![[0; WORD]; of.first().map_or(0, Vec::len)];
    of.iter().fold(vec![nothing], |all, v| {
        let with: Vec<Vec<Matrix>> = all.iter().map(|s| added(s, v)).collect();
        all.into_iter().chain(with).collect()
    })
}

/// Vectors of which all are sums; None for more than [`MOST_WORDS`].
fn independent(all: &[Vec<Matrix>]) -> Option<Vec<Vec<Matrix>>> {
    let mut basis: Vec<Vec<Matrix>> = Vec::new();
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
fn sparsest(map: &[Vec<Matrix>]) -> Vec<Vec<Matrix>> {
    let lightest = |map: &[Vec<Matrix>]| -> Vec<Vec<Matrix>> {
        let weight = |v: &Vec<Matrix>| {
            let entries: Vec<Vec<Matrix>> = v.iter().map(|&m| vec![m]).collect();
            sums(&entries).iter().map(|s| ones(&s[0])).sum::<u64>()
        };
        let mut all: Vec<(u64, Vec<Matrix>)> = sums(map).into_iter().skip(1).map(|v| (weight(&v), v)).collect();
        all.sort();
        let vectors: Vec<Vec<Matrix>> = all.into_iter().map(|w| w.1).collect();
        independent(&vectors).unwrap_or_else(|| map.to_vec())
    };
    // Rows are put in order by weights that do not know the columns' words; then the
    // columns, with the rows that there now are; then equal weights of rows once more.
    let columns = lightest(&transposed(&lightest(map)));
    lightest(&transposed(&columns))
}

/// The operations on the way from the atoms to the roots.
fn between(function: &Function<'_>, atoms: &BTreeSet<Value>, roots: &[Value]) -> BTreeSet<Value> {
    let func = function.func;
    // Below an atom, or one that is only added: not part of the layer.
    let part = |v: Value| {
        let of = function.of.get(&v).map(without_added).unwrap_or_default();
        of.keys().any(|a| atoms.contains(a))
    };
    let (mut seen, mut todo) = (BTreeSet::new(), roots.to_vec());
    while let Some(v) = todo.pop() {
        let v = func.resolve(v);
        if part(v)
            && (roots.contains(&v) || !atoms.contains(&v))
            && seen.insert(v)
            && let Some(inst) = func.def_inst(v)
        {
            todo.extend(&func.insts[inst].args);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned(n: u32) -> Matrix {
        std::array::from_fn(|i| 1 << ((i as u32 + n) % 32))
    }

    fn shifted(n: usize) -> Matrix {
        std::array::from_fn(|i| if i < n { 0 } else { 1 << (i - n) })
    }

    const NONE: Matrix = [0; WORD];

    /// However the words on either side are summed up, the map is the same.
    #[test]
    fn the_choice_of_words_does_not_matter() {
        let map = [
            vec![turned(1), shifted(5), NONE],
            vec![NONE, turned(9), shifted(20)],
            vec![shifted(14), NONE, shifted(27)],
        ];
        let rows = [added(&map[0], &map[1]), map[1].clone(), added(&added(&map[2], &map[1]), &map[0])];
        let columns = transposed(&rows);
        let mixed = transposed(&[columns[2].clone(), added(&columns[0], &columns[2]), columns[1].clone()]);
        assert_eq!(sparsest(&map), sparsest(&mixed));
        let total = |m: &[Vec<Matrix>]| m.iter().flatten().map(ones).sum::<u64>();
        assert_eq!(total(&sparsest(&mixed)), total(&map), "and no denser than it was");
    }

    /// Atoms of one word have the same column.
    #[test]
    fn words_are_independent_columns() {
        let row = |a: Matrix, b: Matrix| vec![a, a, b, xor(&a, &b)];
        let rows = [row(turned(1), turned(2)), row(turned(3), turned(4))];
        assert_eq!(independent(&transposed(&rows)).map(|c| c.len()), Some(2));
        let many: Vec<Vec<Matrix>> = (0..5).map(|n| vec![turned(n)]).collect();
        assert_eq!(independent(&many), None);
    }
}
