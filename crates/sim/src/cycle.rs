//! The circuit of a graph that takes longest for its passes.
//!
//! Its ratio of cycles to passes is the maximum cycle ratio, which is found by asking again and
//! again for a circuit that is above the best so far (Lawler, *Combinatorial Optimization*, 1976):
//! each answer is a circuit of the graph, so the ratio is exact.

/// An instruction that needs what another made, at the least so many cycles after that started,
/// and so many passes later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dependence {
    pub from: usize,
    pub to: usize,
    pub cycles: u64,
    pub passes: u64,
    /// Through bytes of memory, not through a register.
    pub memory: bool,
}

/// A way round: each dependence begins where the one before ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circuit {
    pub cycles: u64,
    pub passes: u64,
    pub way: Vec<Dependence>,
}

impl Circuit {
    /// The least cycles of a pass.
    pub fn ratio(&self) -> f64 {
        self.cycles as f64 / self.passes.max(1) as f64
    }

    /// Does it go through memory?
    pub fn memory(&self) -> bool {
        self.way.iter().any(|d| d.memory)
    }
}

/// The circuit with the most cycles a pass; none where nothing goes round.
pub fn longest(nodes: usize, dependences: &[Dependence]) -> Option<Circuit> {
    let mut best: Option<Circuit> = None;
    // One that takes any time at all is above a ratio of 0.
    while let Some(way) = above(nodes, dependences, best.as_ref().map_or((0, 1), |b| (b.cycles, b.passes))) {
        let (cycles, passes) = way.iter().fold((0, 0), |(c, p), d| (c + d.cycles, p + d.passes));
        // Time would stand still: nothing that ran does this.
        if passes == 0 {
            return best;
        }
        best = Some(Circuit { cycles, passes, way });
    }
    best
}

/// A circuit whose cycles are more than `ratio` times its passes. The longest paths are found as by
/// Bellman and Ford. Where there is such a circuit, the last steps of these paths close one after a
/// few rounds, so each round ends with a look for it (Tarjan, *Shortest paths*, 1981).
fn above(nodes: usize, dependences: &[Dependence], (cycles, passes): (u64, u64)) -> Option<Vec<Dependence>> {
    let length = |d: &Dependence| d.cycles as i64 * passes as i64 - d.passes as i64 * cycles as i64;
    let mut far = vec![0i64; nodes];
    let mut by: Vec<Option<&Dependence>> = vec![None; nodes];
    loop {
        let mut grown = false;
        for d in dependences {
            let way = far[d.from] + length(d);
            if way > far[d.to] {
                (far[d.to], by[d.to], grown) = (way, Some(d), true);
            }
        }
        if !grown {
            return None;
        }
        if let Some(circuit) = closed(&by) {
            return Some(circuit);
        }
    }
}

/// A circuit of last steps: `by` has for each node the one that leads to it.
fn closed(by: &[Option<&Dependence>]) -> Option<Vec<Dependence>> {
    // From which node each was met first.
    let mut met: Vec<Option<usize>> = vec![None; by.len()];
    for start in 0..by.len() {
        let mut at = start;
        while met[at].is_none() {
            met[at] = Some(start);
            let Some(d) = by[at] else { break };
            at = d.from;
        }
        if met[at] != Some(start) || by[at].is_none() {
            continue;
        }
        let (first, mut way) = (at, Vec::new());
        loop {
            let d = by[at]?;
            way.push(*d);
            at = d.from;
            if at == first {
                way.reverse();
                return Some(way);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Dependence, longest};

    fn found(edges: &[(usize, usize, u64, u64)]) -> Option<(u64, u64)> {
        let edge = |&(from, to, cycles, passes)| Dependence { from, to, cycles, passes, memory: false };
        let edges: Vec<_> = edges.iter().map(edge).collect();
        longest(4, &edges).map(|c| (c.cycles, c.passes))
    }

    /// The largest ratio of all circuits of a small graph that pass a node at most once.
    fn slowly(nodes: usize, edges: &[Dependence]) -> Option<(u64, u64)> {
        fn walk(at: usize, first: usize, seen: u32, so_far: (u64, u64), edges: &[Dependence], all: &mut Vec<(u64, u64)>) {
            for d in edges.iter().filter(|d| d.from == at) {
                let now = (so_far.0 + d.cycles, so_far.1 + d.passes);
                if d.to == first {
                    all.push(now);
                } else if d.to > first && seen >> d.to & 1 == 0 {
                    walk(d.to, first, seen | 1 << d.to, now, edges, all);
                }
            }
        }
        let mut all = Vec::new();
        (0..nodes).for_each(|n| walk(n, n, 1 << n, (0, 0), edges, &mut all));
        all.into_iter().max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)))
    }

    #[test]
    fn it_is_the_largest_of_all() {
        let mut x = 88_172_645_463_325_252_u64;
        let mut below = |n: u64| {
            // Marsaglia's xorshift.
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x % n
        };
        for _ in 0..300 {
            let edges: Vec<Dependence> = (0..12)
                .map(|_| {
                    let (from, to) = (below(6) as usize, below(6) as usize);
                    // Backwards only into a later pass.
                    let passes = below(3) + u64::from(to <= from);
                    Dependence { from, to, cycles: 1 + below(9), passes, memory: false }
                })
                .collect();
            let ratio = |c: Option<(u64, u64)>| c.map(|(cycles, passes)| cycles as f64 / passes as f64);
            let found = longest(6, &edges);
            assert_eq!(found.as_ref().map(super::Circuit::ratio), ratio(slowly(6, &edges)));
            // And it goes round.
            let way = found.map(|c| c.way).unwrap_or_default();
            assert!((0..way.len()).all(|i| way[i].to == way[(i + 1) % way.len()].from));
        }
    }

    #[test]
    fn the_largest_ratio_wins() {
        assert_eq!(found(&[(0, 1, 5, 0), (1, 2, 4, 0)]), None);
        assert_eq!(found(&[(0, 1, 5, 0), (1, 0, 1, 1)]), Some((6, 1)));
        // 9 cycles in two passes are fewer a pass than 5 in one, and more than 4.
        assert_eq!(found(&[(0, 1, 5, 1), (1, 0, 4, 1), (2, 3, 4, 0), (3, 2, 1, 1)]), Some((5, 1)));
        assert_eq!(found(&[(0, 1, 5, 1), (1, 0, 4, 1), (2, 3, 3, 0), (3, 2, 1, 1)]), Some((9, 2)));
    }
}
