//! The linear relaxation of modulo scheduling in the structured form (Eichenberger and Davidson,
//! *Efficient formulation for optimal modulo schedulers*, PLDI 1997).
//!
//! A variable says with which weight an operation issues in a cycle. Whole, it says when; in parts, the
//! same loop shifted by one cycle is as good, and so is the mean of all II shifts: there each operation
//! issues in every row alike, dependences are as long as they are, and units are full on the mean. So
//! without more the relaxation refuses an II only where ResMII, RecMII or the sum of lives does, and
//! on a machine whose clusters are alike half of each operation on either needs no path. One operation
//! is therefore set in cycle 0, as any may be, and the others get the cycles that ways from it and back
//! to it leave. Those that a circuit ties to it have few, and there the relaxation is stronger.
//!
//! Operations that no circuit ties to it are left out: they could be shifted, and say nothing.

use crate::certificate::Relaxation;
use crate::model::Loop;
use crate::sets::Crowd;
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, ZeroConeT};

/// Variables and entries of the largest program that is solved.
const VARIABLES: usize = 6_000;
const ENTRIES: usize = 120_000;
/// Steps of the solver.
const STEPS: u32 = 60;
/// Multipliers are whole parts of the greatest one.
const PARTS: f64 = 1e7;

/// Multipliers that may refuse an II, with one operation in cycle 0, and with the rows of registers or
/// without. None where the program is too large, or can be satisfied.
pub fn refuse(l: &Loop, crowds: &[Crowd], ii: i64, anchor: usize, registers: bool) -> Option<Relaxation> {
    let windows = windows(l, ii, anchor)?;
    let first = offsets(&windows);
    if first.last().is_none_or(|n| *n > VARIABLES) {
        return None;
    }
    let mut rows = Rows { windows: &windows, first: &first, entries: Vec::new(), right: Vec::new(), most: ENTRIES };
    let mut made = Relaxation { ii, anchor, ..Relaxation::default() };
    // An operation issues once.
    for (i, w) in windows.iter().enumerate() {
        if let Some((a, b)) = *w {
            rows.add((a..=b).map(|t| (i, t, 1.0)), 1.0)?;
        }
    }
    let once = rows.right.len();
    for crowd in crowds {
        for slot in 0..ii {
            let here = |i: usize| {
                let (a, b) = windows[i].filter(|_| crowd.cycles[i] > 0)?;
                Some((a..=b).filter(move |t| (t - slot).rem_euclid(ii) == 0).map(move |t| (i, t, 1.0)))
            };
            let entries: Vec<_> = (0..windows.len()).filter_map(here).flatten().collect();
            if entries.len() as u64 > crowd.capacity {
                rows.add(entries.into_iter(), crowd.capacity as f64)?;
                made.resources.push((crowd.set.clone(), slot, 0));
            }
        }
    }
    let edges_from = rows.right.len();
    for (k, e) in l.edges.iter().enumerate().filter(|(_, e)| e.from != e.to) {
        let (Some((a, b)), Some((c, d))) = (windows[e.from], windows[e.to]) else { continue };
        let way = e.latency - e.distance * ii;
        // In these cycles neither sum is empty, and the windows do not say it already.
        for cycle in (a + 1).max(c + 1 - way)..=b {
            let late = (cycle..=b).map(|t| (e.from, t, 1.0));
            rows.add(late.chain((c..=d.min(cycle + way - 1)).map(|t| (e.to, t, 1.0))), 1.0)?;
            made.edges.push((k, cycle, 0));
        }
    }
    let lives_from = rows.right.len();
    if registers {
        made.readers = readers(l, &windows, ii);
        for (file, slot) in (0..l.files.len()).flat_map(|f| (0..ii).map(move |slot| (f, slot))) {
            let mut entries = Vec::new();
            for &(v, r) in made.readers.iter().filter(|r| l.values[r.0].file == file) {
                let value = &l.values[v];
                let (reader, distance) = value.readers[r];
                let (Some((a, b)), Some((c, d))) = (windows[value.operation], windows[reader]) else { continue };
                let last = d + distance * ii;
                let rows = |from: i64| (from..=last).filter(|t| (t - slot).rem_euclid(ii) == 0).count() as f64;
                entries.extend((a..=b).map(|t| (value.operation, t, rows(t + value.lands))));
                entries.extend((c..=d).map(|t| (reader, t, -rows(t + distance * ii + 1))));
            }
            entries.retain(|e| e.2 != 0.0);
            rows.add(entries.into_iter(), l.files[file].left() as f64)?;
            made.registers.push((file, slot, 0));
        }
    }
    let multipliers = rows.solve(once, edges_from, lives_from)?;
    let most = multipliers.iter().copied().fold(0.0, f64::max);
    let whole = |m: f64| if most > 0.0 { (m / most * PARTS).round().max(0.0) as u64 } else { 0 };
    let (units, rest) = multipliers.split_at(edges_from - once);
    let (orders, lives) = rest.split_at(lives_from - edges_from);
    made.resources.iter_mut().zip(units).for_each(|(row, m)| row.2 = whole(*m));
    made.edges.iter_mut().zip(orders).for_each(|(row, m)| row.2 = whole(*m));
    made.registers.iter_mut().zip(lives).for_each(|(row, m)| row.2 = whole(*m));
    made.resources.retain(|row| row.2 > 0);
    made.edges.retain(|row| row.2 > 0);
    made.registers.retain(|row| row.2 > 0);
    Some(made)
}

/// For each value that an operation with a window makes, the reader with one that comes last.
fn readers(l: &Loop, windows: &[Option<(i64, i64)>], ii: i64) -> Vec<(usize, usize)> {
    let last = |(v, value): (usize, &crate::model::Value)| {
        windows[value.operation]?;
        let there = value.readers.iter().enumerate().filter_map(|(r, &(i, d))| Some((windows[i]?.0 + d * ii, r)));
        there.max().map(|(_, r)| (v, r))
    };
    l.values.iter().enumerate().filter_map(last).collect()
}

/// The number of the first variable of each operation, and of all.
fn offsets(windows: &[Option<(i64, i64)>]) -> Vec<usize> {
    let mut first = vec![0];
    let mut next = 0;
    for w in windows {
        next += w.map_or(0, |(a, b)| (b - a + 1) as usize);
        first.push(next);
    }
    first
}

/// The earliest and the latest cycle of the operations that ways tie to one in cycle 0; none where the
/// ways have no end.
fn windows(l: &Loop, ii: i64, anchor: usize) -> Option<Vec<Option<(i64, i64)>>> {
    let ways: Vec<(usize, usize, i64)> = l.edges.iter().map(|e| (e.from, e.to, e.latency - e.distance * ii)).collect();
    let back: Vec<(usize, usize, i64)> = ways.iter().map(|&(a, b, w)| (b, a, w)).collect();
    let (from, to) = (longest(l.operations.len(), &ways, anchor)?, longest(l.operations.len(), &back, anchor)?);
    Some(from.iter().zip(&to).map(|(a, b)| Some((((*a)?), -((*b)?)))).collect())
}

/// The longest way from one operation to each; none where it has no end.
fn longest(n: usize, ways: &[(usize, usize, i64)], from: usize) -> Option<Vec<Option<i64>>> {
    let mut length: Vec<Option<i64>> = vec![None; n];
    length[from] = Some(0);
    for _ in 0..=n {
        let mut changed = false;
        for &(a, b, cycles) in ways {
            let next = length[a].map(|w| w + cycles);
            if next > length[b] {
                (length[b], changed) = (next, true);
            }
        }
        if !changed {
            return Some(length);
        }
    }
    None
}

/// Rows `sum <= right`, the first of them equations.
struct Rows<'a> {
    windows: &'a [Option<(i64, i64)>],
    first: &'a [usize],
    /// `(row, variable, factor)`.
    entries: Vec<(usize, usize, f64)>,
    right: Vec<f64>,
    most: usize,
}

impl Rows<'_> {
    /// A row of `(operation, cycle, factor)`; none where the program gets too large.
    fn add(&mut self, entries: impl Iterator<Item = (usize, i64, f64)>, right: f64) -> Option<()> {
        let row = self.right.len();
        for (i, t, factor) in entries {
            self.entries.push((row, self.first[i] + (t - self.windows[i]?.0) as usize, factor));
        }
        self.right.push(right);
        (self.entries.len() <= self.most).then_some(())
    }

    /// The multipliers of the rows behind the equations where these and the orders can only be kept
    /// if units or registers are more than there are.
    fn solve(&self, once: usize, edges_from: usize, lives_from: usize) -> Option<Vec<f64>> {
        let variables = *self.first.last()?;
        let rows = self.right.len();
        let mut entries = self.entries.clone();
        // By so many more than there are: what is made least.
        let short = |row: &usize| (once..edges_from).contains(row) || *row >= lives_from;
        entries.extend((0..rows).filter(short).map(|row| (row, variables, -1.0)));
        // Nothing is negative.
        entries.extend((0..=variables).map(|x| (rows + x, x, -1.0)));
        let mut right = self.right.clone();
        right.resize(rows + variables + 1, 0.0);
        let (mut is, mut js, mut vs) = (Vec::new(), Vec::new(), Vec::new());
        for (i, j, v) in entries {
            is.push(i);
            js.push(j);
            vs.push(v);
        }
        let matrix = CscMatrix::new_from_triplets(right.len(), variables + 1, is, js, vs);
        let mut cost = vec![0.0; variables];
        cost.push(1.0);
        let cones = [ZeroConeT(once), NonnegativeConeT(right.len() - once)];
        let settings = DefaultSettings { verbose: false, max_iter: STEPS, ..DefaultSettings::default() };
        let none = CscMatrix::zeros((variables + 1, variables + 1));
        let mut solver = DefaultSolver::new(&none, &cost, &matrix, &right, &cones, settings).ok()?;
        solver.solve();
        let solved = matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved);
        let short = *solver.solution.x.last()?;
        (solved && short > 1e-6).then(|| solver.solution.z[once..rows].to_vec())
    }
}
