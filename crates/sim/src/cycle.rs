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

/// A circuit whose cycles are more than `ratio` times its passes (Bellman and Ford).
fn above(nodes: usize, dependences: &[Dependence], (cycles, passes): (u64, u64)) -> Option<Vec<Dependence>> {
    let length = |d: &Dependence| d.cycles as i64 * passes as i64 - d.passes as i64 * cycles as i64;
    let mut far = vec![0i64; nodes];
    let mut by: Vec<Option<&Dependence>> = vec![None; nodes];
    let mut last = None;
    for _ in 0..=nodes {
        last = None;
        for d in dependences {
            let way = far[d.from] + length(d);
            if way > far[d.to] {
                (far[d.to], by[d.to], last) = (way, Some(d), Some(d.to));
            }
        }
        last?;
    }
    // After so many steps back one stands on the circuit.
    let mut at = last?;
    for _ in 0..nodes {
        at = by[at]?.from;
    }
    let (start, mut way) = (at, Vec::new());
    loop {
        let d = by[at]?;
        way.push(*d);
        at = d.from;
        if at == start {
            way.reverse();
            return Some(way);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Dependence, longest};

    fn found(edges: &[(usize, usize, u64, u64)]) -> Option<(u64, u64)> {
        let edge = |&(from, to, cycles, passes)| Dependence { from, to, cycles, passes, memory: false };
        let edges: Vec<_> = edges.iter().map(edge).collect();
        longest(4, &edges).map(|c| (c.cycles, c.passes))
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
