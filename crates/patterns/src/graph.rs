//! Patterns are graphs.
//!
//! Semantics name what they use several times (`let q = p * p`), and a pattern
//! has one node for it that several others point to. Written out as a tree,
//! twenty such lines have a million nodes: so whatever walks a pattern goes
//! through it by the functions here, which come to each node once.

use crate::pat::Pat;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Nodes by their place; they live as long as the pattern does.
type Key = *const Pat;

/// The patterns right below one.
pub fn below(p: &Pat) -> impl Iterator<Item = &Arc<Pat>> {
    let (three, many): ([Option<&Arc<Pat>>; 3], &[Arc<Pat>]) = match p {
        Pat::Bin(_, a, b) | Pat::Cmp(_, a, b) => ([Some(a), Some(b), None], &[]),
        Pat::Un(_, a) | Pat::Low(a) | Pat::Load { addr: a, .. } => ([Some(a), None, None], &[]),
        Pat::Select(c, a, b) => ([Some(c), Some(a), Some(b)], &[]),
        Pat::Apply(_, args) => ([None; 3], args),
        Pat::Reg(_) | Pat::Imm(_) | Pat::Const(_) => ([None; 3], &[]),
    };
    three.into_iter().flatten().chain(many)
}

/// Does this hold for some node?
pub fn any(p: &Pat, holds: impl FnMut(&Pat) -> bool) -> bool {
    any_within(p, |_| true, holds)
}

/// Does this hold for some node, of those that only nodes `into` lie above?
pub fn any_within(p: &Pat, into: impl Fn(&Pat) -> bool, mut holds: impl FnMut(&Pat) -> bool) -> bool {
    type Into<'a> = &'a dyn Fn(&Pat) -> bool;
    fn go(p: &Pat, seen: &mut HashSet<Key>, into: Into, holds: &mut dyn FnMut(&Pat) -> bool) -> bool {
        let again = |p: &Arc<Pat>, seen: &mut HashSet<Key>| Arc::strong_count(p) > 1 && !seen.insert(Arc::as_ptr(p));
        holds(p) || into(p) && below(p).any(|b| !again(b, seen) && go(b, seen, into, holds))
    }
    go(p, &mut HashSet::new(), &into, &mut holds)
}

/// Operations of a pattern, written out as a tree; an access of memory is none.
pub fn operations(p: &Pat) -> usize {
    fn go(p: &Pat, known: &mut HashMap<Key, usize>) -> usize {
        match p {
            Pat::Bin(..) | Pat::Cmp(..) | Pat::Un(..) | Pat::Select(..) => {}
            _ => return 0,
        }
        let mut sum = 1usize;
        for b in below(p) {
            let n = match known.get(&Arc::as_ptr(b)) {
                Some(&n) => n,
                None => go(b, known),
            };
            if Arc::strong_count(b) > 1 {
                known.insert(Arc::as_ptr(b), n);
            }
            sum = sum.saturating_add(n);
        }
        sum
    }
    go(p, &mut HashMap::new())
}

/// Its nodes, each counted once.
pub fn nodes(p: &Pat) -> usize {
    fn go(p: &Pat, seen: &mut HashSet<Key>) -> usize {
        let mut sum = 1;
        for b in below(p) {
            if seen.insert(Arc::as_ptr(b)) {
                sum += go(b, seen);
            }
        }
        sum
    }
    go(p, &mut HashSet::new())
}

/// A pattern with each node made anew by `make`, which is given the node and what has become of
/// those right below it. None: it, or one above it, cannot be.
pub fn mapped<T: Clone>(p: &Pat, make: &dyn Fn(&Pat, &[T]) -> Option<T>) -> Option<T> {
    fn go<T: Clone>(p: &Pat, known: &mut HashMap<Key, T>, make: &dyn Fn(&Pat, &[T]) -> Option<T>) -> Option<T> {
        let mut parts = Vec::new();
        for b in below(p) {
            let part = match known.get(&Arc::as_ptr(b)) {
                Some(part) => part.clone(),
                None => go(b, known, make)?,
            };
            if Arc::strong_count(b) > 1 {
                known.insert(Arc::as_ptr(b), part.clone());
            }
            parts.push(part);
        }
        make(p, &parts)
    }
    go(p, &mut HashMap::new(), make)
}

impl PartialEq for Pat {
    fn eq(&self, other: &Pat) -> bool {
        same(self, other, &mut HashSet::new())
    }
}

/// Equal as trees. What was found equal is not compared again.
fn same(a: &Pat, b: &Pat, known: &mut HashSet<(Key, Key)>) -> bool {
    let root = match (a, b) {
        (Pat::Reg(i), Pat::Reg(j)) | (Pat::Imm(i), Pat::Imm(j)) => i == j,
        (Pat::Const(c), Pat::Const(d)) => c == d,
        (Pat::Bin(o, ..), Pat::Bin(p, ..)) => o == p,
        (Pat::Un(o, _), Pat::Un(p, _)) => o == p,
        (Pat::Cmp(o, ..), Pat::Cmp(p, ..)) => o == p,
        (Pat::Select(..), Pat::Select(..)) | (Pat::Low(_), Pat::Low(_)) => true,
        (Pat::Load { bytes: m, signed: s, .. }, Pat::Load { bytes: n, signed: t, .. }) => (m, s) == (n, t),
        (Pat::Apply(m, x), Pat::Apply(n, y)) => m == n && x.len() == y.len(),
        _ => false,
    };
    root && below(a).zip(below(b)).all(|(x, y)| {
        let key = (Arc::as_ptr(x), Arc::as_ptr(y));
        if Arc::ptr_eq(x, y) || known.contains(&key) {
            return true;
        }
        let equal = same(x, y, known);
        if equal && Arc::strong_count(x) > 1 {
            known.insert(key);
        }
        equal
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphermill_ir::BinOp;

    /// `x` squared so many times.
    fn squared(times: usize) -> Arc<Pat> {
        (0..times).fold(Arc::new(Pat::Reg(0)), |p, _| Arc::new(Pat::Bin(BinOp::Mul, p.clone(), p)))
    }

    #[test]
    fn shared_nodes_are_looked_at_once() {
        let (p, q) = (squared(60), squared(60));
        assert_eq!(operations(&p), (1 << 60) - 1);
        assert_eq!(operations(&squared(100)), usize::MAX);
        let mut nodes = 0;
        any(&p, |_| {
            nodes += 1;
            false
        });
        assert_eq!(nodes, 61);
        assert!(p == q && p != squared(59));
        let again = mapped(&p, &|p, parts: &[Arc<Pat>]| {
            Some(match (p, parts) {
                (Pat::Bin(op, ..), [a, b]) => Arc::new(Pat::Bin(*op, a.clone(), b.clone())),
                _ => Arc::new(p.clone()),
            })
        });
        assert!(again == Some(q));
    }
}
