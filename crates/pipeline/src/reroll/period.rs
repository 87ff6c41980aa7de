//! The rounds of an unrolled body.
//!
//! They are found by the operations alone, whatever the loop once was:
//!
//! 1. The *length* of a round, in nodes: the distance at which most nodes have one like themselves, whose operands are
//!    those of the first or as far from them.
//! 2. The *next* of a node, the same operation of the next round: nodes that far away whose operands are, too; and from
//!    these on by what they read and who reads them, so that a constant that takes one node in a round and two in another
//!    does no harm.
//! 3. A *window* of nodes from one to its next is a round, of which the nodes before and behind in the same chains are the
//!    others. Of all windows that with the longest chains is taken.
//! 4. A *strand* is what one window reaches. The blocks of a jammed loop are strands, and their rounds one.

use crate::body::{Body, From, Node};
use std::cmp::Reverse;

/// Nodes of a round, and rounds, at the least.
const SHORTEST: usize = 16;
const FEWEST: usize = 3;
/// Hundredths of all nodes that must have one like themselves at the distance of a round, and that a strand must have.
const LIKE: usize = 25;
/// The part of a round by which windows are tried.
const STEP: usize = 8;
/// Rounds back from which a round reads a value in a register: then as many are taken for one. SHA-256 reads four back.
const BACK: usize = 4;
const STRANDS: usize = 4;

/// The rounds of a body.
pub struct Period {
    /// Nodes of one of the rounds, strand by strand, in order.
    pub window: Vec<usize>,
    /// The round that each of them is of.
    pub own: Vec<usize>,
    /// For each node of the body that is in a round: which, and where in the window.
    pub place: Vec<Option<(usize, usize)>>,
    /// Rounds of the longest strand.
    pub count: usize,
}

/// The rounds that most of a body is.
pub fn period(body: &Body) -> Option<Period> {
    let nodes = &body.nodes;
    let length = length(nodes)?;
    let mut next = next(nodes, length);
    let mut all: Option<Period> = None;
    for _ in 0..STRANDS {
        let Some(strand) = strand(nodes, &next, length) else { break };
        if all.as_ref().is_some_and(|all| strand.count.abs_diff(all.count) > 1 + all.count / 8) {
            break;
        }
        next.iter_mut().zip(&strand.place).filter(|n| n.1.is_some()).for_each(|n| *n.0 = None);
        all = Some(match all {
            None => strand,
            Some(all) => all.beside(strand),
        });
    }
    all
}

impl Period {
    fn beside(mut self, other: Period) -> Period {
        let from = self.window.len();
        self.window.extend(other.window);
        self.own.extend(other.own);
        self.count = self.count.max(other.count);
        for (own, place) in self.place.iter_mut().zip(other.place) {
            *own = own.or(place.map(|(round, place)| (round, from + place)));
        }
        self
    }

    /// Nodes that are in a round.
    pub fn covered(&self) -> usize {
        self.place.iter().flatten().count()
    }

    /// Rounds between a node and the one of the window at its place.
    pub fn far(&self, node: usize) -> usize {
        self.place[node].map_or(0, |(round, place)| round.abs_diff(self.own[place]))
    }
}

/// Have two nodes the same instruction, and as many operands?
fn alike(a: &Node, b: &Node) -> bool {
    a.inst.instr == b.inst.instr && a.reads.len() == b.reads.len()
}

/// The operands of two nodes.
fn operands<'a>(a: &'a Node, b: &'a Node) -> impl Iterator<Item = (From, From)> + 'a {
    a.reads.iter().zip(&b.reads).map(|(x, y)| (x.1, y.1))
}

/// The distance at which most nodes have one like themselves.
fn length(nodes: &[Node]) -> Option<usize> {
    let n = nodes.len();
    let count = |by: usize| (0..n - by).filter(|&i| repeats(nodes, i, by)).count();
    let (most, by) = (SHORTEST..=n / FEWEST).map(|by| (count(by), by)).max_by_key(|&(c, by)| (c, n - by))?;
    (100 * most >= LIKE * n).then_some(by)
}

/// Is a node like the one so much farther, and so each operand that is not the same?
fn repeats(nodes: &[Node], i: usize, by: usize) -> bool {
    let same = |(x, y): (From, From)| match (x, y) {
        (From::Node(p, 0), From::Node(q, 0)) => q == p + by || p == q,
        _ => x == y,
    };
    let (a, b) = (&nodes[i], &nodes[i + by]);
    alike(a, b) && operands(a, b).all(same)
}

/// The next of each node.
fn next(nodes: &[Node], length: usize) -> Vec<Option<usize>> {
    let n = nodes.len();
    let mut readers = vec![Vec::new(); n];
    for (i, node) in nodes.iter().enumerate() {
        for (k, r) in node.reads.iter().enumerate() {
            if let From::Node(p, 0) = r.1 {
                readers[p].push((i, k));
            }
        }
    }
    let farther = |(x, y): (From, From)| matches!((x, y), (From::Node(p, 0), From::Node(q, 0)) if q == p + length);
    let moves = |i: usize| repeats(nodes, i, length) && operands(&nodes[i], &nodes[i + length]).any(farther);
    let seed: Vec<bool> = (0..n).map(|i| i + length < n && moves(i)).collect();
    let beside = |i: usize| {
        let reads = nodes[i].reads.iter().any(|r| matches!(r.1, From::Node(p, 0) if seed[p]));
        reads || readers[i].iter().any(|r| seed[r.0])
    };
    let mut pairs = Pairs { nodes, next: vec![None; n], taken: vec![false; n], work: Vec::new() };
    (0..n).filter(|&i| seed[i] && beside(i)).for_each(|i| pairs.add(i, i + length));
    while let Some((i, j)) = pairs.work.pop() {
        for (x, y) in operands(&nodes[i], &nodes[j]) {
            if let (From::Node(p, 0), From::Node(q, 0)) = (x, y)
                && pairs.fit(p, q)
            {
                pairs.add(p, q);
            }
        }
        for &(r, k) in &readers[i] {
            if let Some(&(s, _)) = readers[j].iter().find(|s| s.1 == k && pairs.fit(r, s.0)) {
                pairs.add(r, s);
            }
        }
    }
    pairs.next
}

/// Nodes with their next, as far as they are known, and those whose neighbours are still to be looked at.
struct Pairs<'a> {
    nodes: &'a [Node],
    next: Vec<Option<usize>>,
    taken: Vec<bool>,
    work: Vec<(usize, usize)>,
}

impl Pairs<'_> {
    fn add(&mut self, i: usize, j: usize) {
        self.next[i] = Some(j);
        self.taken[j] = true;
        self.work.push((i, j));
    }

    /// Can a node have this next? Its operands must be the same, or have theirs there, or could have.
    fn fit(&self, i: usize, j: usize) -> bool {
        let (a, b) = (&self.nodes[i], &self.nodes[j]);
        let free = |i: usize, j: usize| i < j && self.next[i].is_none() && !self.taken[j];
        let same = |(x, y): (From, From)| match (x, y) {
            (From::Node(p, 0), From::Node(q, 0)) => {
                let could = || free(p, q) && alike(&self.nodes[p], &self.nodes[q]);
                p == q || self.next[p] == Some(q) || could()
            }
            _ => x == y,
        };
        free(i, j) && alike(a, b) && operands(a, b).all(same)
    }
}

/// The strand of the best window.
fn strand(nodes: &[Node], next: &[Option<usize>], length: usize) -> Option<Period> {
    let mut before = vec![None; nodes.len()];
    next.iter().enumerate().for_each(|(i, next)| next.iter().for_each(|&j| before[j] = Some(i)));
    let one = longest(next, &before, length, 1)?;
    match back(nodes, &one) {
        0 | 1 => Some(one),
        several => longest(next, &before, length, several),
    }
}

/// The window of so many rounds whose nodes have most before and behind them.
fn longest(next: &[Option<usize>], before: &[Option<usize>], length: usize, rounds: usize) -> Option<Period> {
    let n = next.len();
    let step = |from: Option<usize>, way: &[Option<usize>]| (0..rounds).try_fold(from?, |i, _| way[i]);
    let chain = |i: usize, way| std::iter::successors(step(Some(i), way), move |&j| step(Some(j), way));
    let (behind, ahead): (Vec<usize>, Vec<usize>) =
        (0..n).map(|i| (chain(i, before).count(), chain(i, next).count())).unzip();
    let whole = |i: usize| behind[i] + 1 + ahead[i];
    let window = |first: usize| -> Option<(usize, usize, usize)> {
        let end = step(Some(first), next)?;
        Some(((first..end).map(whole).filter(|&c| c >= FEWEST).sum(), first, end))
    };
    let windows = (0..n).step_by((length / STEP).max(1)).filter_map(window);
    // Of several as good the first: its round is searched for more freely, since what the round before it makes is from
    // around. Ascon's hash on the C6201 takes 328 cycles so, 382 with the one in the middle.
    let (_, first, end) = windows.max_by_key(|w| (w.0, Reverse(w.1))).filter(|w| 100 * w.0 >= LIKE * n)?;
    let own = (first..end).map(|i| behind[i]).max()?;
    let most = (first..end).map(whole).max()?;
    let mut out = Period { window: Vec::new(), own: Vec::new(), place: vec![None; n], count: 0 };
    for i in first..end {
        // A node that most rounds do not have is in none.
        if out.place[i].is_some() || 2 * whole(i) < most.max(FEWEST) {
            continue;
        }
        let place = out.window.len();
        out.window.push(i);
        out.own.push(own);
        let earlier = (0..own).rev().zip(chain(i, before));
        let later = (own + 1..).zip(chain(i, next));
        for (round, j) in std::iter::once((own, i)).chain(earlier).chain(later) {
            if out.place[j].is_none() {
                out.place[j] = Some((round, place));
                out.count = out.count.max(round + 1);
            }
        }
    }
    Some(out)
}

/// Rounds back, as far as these count, from which a round reads.
fn back(nodes: &[Node], period: &Period) -> usize {
    let own = period.own.first().copied().unwrap_or(0);
    let reads = period.window.iter().flat_map(|&i| &nodes[i].reads);
    let back = reads.filter_map(|r| match r.1 {
        From::Node(p, 0) => own.checked_sub(period.place[p]?.0),
        _ => None,
    });
    back.filter(|back| *back <= BACK).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::period;
    use crate::body::{Body, From, Node};
    use ciphermill_machine::InstrId;
    use ciphermill_vcode::{VInst, VKind};

    fn node(number: u16, reads: &[From]) -> Node {
        let reads = reads.iter().copied().enumerate().collect();
        let inst = VInst::new(VKind::Normal, InstrId(number), &[], 0);
        Node { inst, reads, writes: Some((2, 1)), tied: false, mem: None }
    }

    /// A state of two words, and rounds of 17 or 18 operations that change it one after the other; in front what loads it,
    /// behind what stores it.
    fn rounds(count: usize, longer: usize) -> Body {
        let mut nodes = vec![node(1, &[]), node(1, &[])];
        let (mut a, mut b) = (0, 1);
        for round in 0..count {
            let first = nodes.len();
            nodes.push(node(7, &[]));
            if round == longer {
                nodes.push(node(8, &[From::Node(first, 0)]));
            }
            let constant = nodes.len() - 1;
            nodes.push(node(2, &[From::Node(a, 0), From::Node(constant, 0)]));
            for k in 0..15 {
                let last = nodes.len() - 1;
                nodes.push(node(3 + k % 4, &[From::Node(last, 0), From::Node(b, 0)]));
            }
            (a, b) = (b, nodes.len() - 1);
        }
        nodes.push(node(9, &[From::Node(a, 0)]));
        nodes.push(node(9, &[From::Node(b, 0)]));
        Body::of(nodes, InstrId(0))
    }

    #[test]
    fn rounds_are_found_and_what_is_around_them_is_not() {
        let body = rounds(8, usize::MAX);
        let found = period(&body).unwrap();
        assert_eq!(found.window.len() % 17, 0);
        let (rounds, each) = (found.count, found.window.len() / 17);
        assert!(rounds * each >= 7, "{rounds} rounds of {each}");
        for (i, place) in found.place.iter().enumerate() {
            let Some((round, m)) = *place else { continue };
            let first = found.window[m];
            assert_eq!(body.nodes[i].inst.instr, body.nodes[first].inst.instr);
            assert_eq!(i as i64 - first as i64, (round as i64 - found.own[m] as i64) * 17 * each as i64);
        }
        let n = body.nodes.len();
        assert!([0, 1, n - 2, n - 1].iter().all(|&i| found.place[i].is_none()));
    }

    #[test]
    fn a_round_that_is_a_node_longer_is_a_round() {
        let body = rounds(8, 3);
        let found = period(&body).unwrap();
        assert!(found.covered() >= 7 * 16, "{}", found.covered());
        let longer = body.nodes.iter().position(|n| n.inst.instr == InstrId(8)).unwrap();
        assert!(found.place[longer].is_none());
    }

    #[test]
    fn a_body_without_rounds_has_none() {
        let nodes = (0..200u16).map(|k| node(k % 97 * (k % 13), &[])).collect();
        assert!(period(&Body::of(nodes, InstrId(0))).is_none());
    }
}
