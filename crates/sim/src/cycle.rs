//! The recurrence circuit with the most cycles a pass: the maximum cycle ratio of a graph.
//!
//! It is found by looking for a circuit above the best so far until there is none (Lawler,
//! *Combinatorial Optimization*, 1976). Each is a circuit of the graph, so the ratio is exact.

/// A dependence: `to` issues at least `cycles` after `from`, `passes` later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dependence {
    pub from: usize,
    pub to: usize,
    pub cycles: u64,
    pub passes: u64,
    /// Through bytes of memory, not through a register.
    pub memory: bool,
}

/// A recurrence circuit: each dependence begins where the one before ends, the first where the last does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circuit {
    pub cycles: u64,
    pub passes: u64,
    pub dependences: Vec<Dependence>,
}

impl Circuit {
    /// Lower bound on the cycles of a pass.
    pub fn ratio(&self) -> f64 {
        self.cycles as f64 / self.passes.max(1) as f64
    }

    /// Does it go through memory?
    pub fn memory(&self) -> bool {
        self.dependences.iter().any(|d| d.memory)
    }
}

/// The circuit with the most cycles a pass; None if there is none.
pub fn longest(nodes: usize, dependences: &[Dependence]) -> Option<Circuit> {
    let mut best: Option<Circuit> = None;
    // Any circuit of a positive length is above a ratio of 0.
    while let Some(circuit) = above(nodes, dependences, best.as_ref().map_or((0, 1), |b| (b.cycles, b.passes))) {
        let (cycles, passes) = circuit.iter().fold((0, 0), |(c, p), d| (c + d.cycles, p + d.passes));
        // A circuit within one pass is a contradiction; no run shows one.
        if passes == 0 {
            return best;
        }
        best = Some(Circuit { cycles, passes, dependences: circuit });
    }
    best
}

/// A circuit with a ratio above `cycles / passes`: longest paths by Bellman and Ford. If there is such
/// a circuit, the predecessor graph closes one after a few sweeps, so each sweep ends with a search for
/// it (Tarjan, *Shortest paths*, 1981).
fn above(nodes: usize, dependences: &[Dependence], (cycles, passes): (u64, u64)) -> Option<Vec<Dependence>> {
    let length = |d: &Dependence| d.cycles as i64 * passes as i64 - d.passes as i64 * cycles as i64;
    let mut far = vec![0i64; nodes];
    let mut by: Vec<Option<&Dependence>> = vec![None; nodes];
    loop {
        let mut grown = false;
        for d in dependences {
            let longer = far[d.from] + length(d);
            if longer > far[d.to] {
                (far[d.to], by[d.to], grown) = (longer, Some(d), true);
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

/// A circuit of the predecessor graph: `by` has for each node the dependence that leads to it.
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
        let (first, mut circuit) = (at, Vec::new());
        loop {
            let d = by[at]?;
            circuit.push(*d);
            at = d.from;
            if at == first {
                circuit.reverse();
                return Some(circuit);
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
        fn walk(
            at: usize,
            first: usize,
            seen: u32,
            so_far: (u64, u64),
            edges: &[Dependence],
            all: &mut Vec<(u64, u64)>,
        ) {
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
            // And it is a circuit.
            let circuit = found.map(|c| c.dependences).unwrap_or_default();
            assert!((0..circuit.len()).all(|i| circuit[i].to == circuit[(i + 1) % circuit.len()].from));
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
