//! Sums over GF(2) in a program, taken apart into their terms.
//!
//! A sum is a tree of exclusive-ors whose inner nodes nothing else uses; an or
//! and an addition count where no bit can be set on both sides.

use ciphermill_ir::bits::Masks;
use ciphermill_ir::low_bits::use_counts;
use ciphermill_ir::{BinOp, Func, Op, Value};
use std::collections::{HashMap, HashSet};

/// Terms of a sum, at most.
const MOST_TERMS: usize = 64;

pub struct Sums {
    /// The two terms of each single addition.
    parts: HashMap<Value, [Value; 2]>,
    uses: HashMap<Value, u32>,
    /// The terms of each whole sum.
    terms: HashMap<Value, Vec<Value>>,
    /// The whole sums in which a value is a term.
    roots: HashMap<Value, Vec<Value>>,
}

impl Sums {
    pub fn new(func: &Func, masks: &Masks) -> Sums {
        let mut sums =
            Sums { parts: HashMap::new(), uses: use_counts(func), terms: HashMap::new(), roots: HashMap::new() };
        for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
            let data = &func.insts[inst];
            let Op::Bin(op @ (BinOp::Xor | BinOp::Or | BinOp::Add)) = data.op else { continue };
            let args = [0, 1].map(|i| func.resolve(data.args[i]));
            let disjoint = || masks.possible(func, args[0]) & masks.possible(func, args[1]) == 0;
            if op == BinOp::Xor || disjoint() {
                sums.parts.insert(data.results[0], args);
            }
        }
        let inner: HashSet<Value> = sums.parts.values().flatten().copied().filter(|v| sums.is_inner(*v)).collect();
        let mut roots: Vec<Value> = sums.parts.keys().copied().filter(|v| !inner.contains(v)).collect();
        roots.sort();
        for root in roots {
            let terms = sums.flatten(root, &mut |_| false);
            for &term in &terms {
                sums.roots.entry(term).or_default().push(root);
            }
            sums.terms.insert(root, terms);
        }
        sums
    }

    fn is_inner(&self, v: Value) -> bool {
        self.uses.get(&v) == Some(&1) && self.parts.contains_key(&v)
    }

    /// The two values whose sum a value is.
    pub fn parts(&self, v: Value) -> Option<[Value; 2]> {
        self.parts.get(&v).copied()
    }

    /// The terms of a sum; a value for which `whole` says so is not taken apart.
    pub fn flatten(&self, root: Value, whole: &mut dyn FnMut(Value) -> bool) -> Vec<Value> {
        let (mut out, mut todo) = (Vec::new(), vec![root]);
        while let Some(v) = todo.pop() {
            match self.parts.get(&v) {
                Some(&[a, b]) if (v == root || self.is_inner(v)) && out.len() < MOST_TERMS && !whole(v) => {
                    todo.extend([b, a]);
                }
                _ => out.push(v),
            }
        }
        out
    }

    /// The terms of a whole sum.
    pub fn terms(&self, root: Value) -> &[Value] {
        self.terms.get(&root).map_or(&[], |t| t)
    }

    /// The whole sums in which a value is a term.
    pub(crate) fn of_term(&self, term: Value) -> &[Value] {
        self.roots.get(&term).map_or(&[], |r| r)
    }
}
