//! The modulo scheduler.
//!
//! Operations are placed backwards in time, from the end of an iteration to
//! its beginning, into a table of II rows that all iterations share. Backwards
//! because values are then made as late as their readers allow: a round key is
//! loaded just before its use, and not when its address is first known.
//!
//! At each cycle the operations whose readers all stand are candidates. Those
//! with the longest way back to the iteration's beginning come first, unless
//! registers run short: then only those may come that end as many values as
//! they begin (seen backwards: whose result dies here and whose sources live
//! on already). A register is occupied from the cycle a result lands to its
//! last read; what iterations further on occupy in the same row counts too.
//!
//! Inductions (`p = p + 16`), which depend on nothing but themselves, are set
//! last, where their readers leave room. A value the next iteration reads must
//! have landed by then, and no value may live longer than II cycles, since its
//! register is written again every II cycles.

use super::place::{Op, Ops, Sides};
use super::body::From;
use ciphermill_machine::{InstrId, UnitId};

/// A finished schedule.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub ii: i64,
    /// Issue time of each operation, from 0.
    pub time: Vec<i64>,
    pub variant: Vec<InstrId>,
    /// Stages an iteration passes through.
    pub stages: i64,
}

/// Things to prefer when several operations could come next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// The longest way back first.
    Depth,
    /// What frees registers first, then the longest way back.
    Frugal,
}

/// What the rows hold.
struct Table<'a> {
    sides: &'a Sides<'a>,
    ii: i64,
    units: Vec<Vec<u16>>,
    paths: Vec<Vec<(UnitId, From)>>,
    count: Vec<u16>,
    /// Operations in each row.
    held: Vec<Vec<usize>>,
    /// How many want each unit, for choosing the one least wanted.
    demand: Vec<f64>,
}

impl<'a> Table<'a> {
    fn new(sides: &'a Sides<'a>, ops: &Ops, ii: i64) -> Table<'a> {
        let n = sides.machine.units.len();
        Table {
            sides,
            ii,
            units: vec![vec![0; n]; ii as usize],
            paths: vec![Vec::new(); ii as usize],
            count: vec![0; ii as usize],
            held: vec![Vec::new(); ii as usize],
            demand: demand(sides, ops),
        }
    }

    fn row(&self, time: i64) -> usize {
        time.rem_euclid(self.ii) as usize
    }

    /// The unit a variant would run on in a row, if it is free with its paths.
    fn free(&self, row: usize, op: &Op, v: InstrId) -> Option<Option<UnitId>> {
        let machine = self.sides.machine;
        let instr = &machine.instrs[usize::from(v.0)];
        let unit = match instr.units.as_slice() {
            [] => None,
            units => Some(*units.iter().find(|u| self.units[row][**u] < machine.units[**u].count)?),
        };
        for &(path, o) in &instr.paths {
            let value = travels(op, o);
            let on = self.paths[row].iter().filter(|p| p.0 == path);
            let (n, same) = on.fold((0u16, true), |(n, same), p| (n + 1, same && Some(p.1) == value));
            if n >= machine.units[path].count && !(machine.units[path].shared && same && value.is_some()) {
                return None;
            }
        }
        Some(unit)
    }

    /// The free variant whose unit is least in demand.
    fn best(&self, row: usize, op: &Op) -> Option<(InstrId, Option<UnitId>)> {
        let fits = op.variants.iter().filter_map(|&v| Some((v, self.free(row, op, v)?)));
        let weight = |u: Option<UnitId>| u.map_or(0.0, |u| self.demand[u]);
        let crossing = |v: InstrId| self.sides.machine.instrs[usize::from(v.0)].paths.len();
        fits.min_by(|a, b| {
            let key = |x: &(InstrId, Option<UnitId>)| (crossing(x.0), weight(x.1));
            key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal).then(a.0.cmp(&b.0))
        })
    }

    fn put(&mut self, row: usize, i: usize, op: &Op, v: InstrId, unit: Option<UnitId>) {
        if let Some(u) = unit {
            self.units[row][u] += 1;
        }
        for &(path, o) in &self.sides.machine.instrs[usize::from(v.0)].paths {
            if let Some(value) = travels(op, o) {
                self.paths[row].push((path, value));
            } else {
                self.paths[row].push((path, From::Node(i, 0)));
            }
        }
        self.count[row] += 1;
        self.held[row].push(i);
    }

    fn take(&mut self, row: usize, i: usize, op: &Op, v: InstrId) {
        if let [u] = self.sides.machine.instrs[usize::from(v.0)].units.as_slice() {
            self.units[row][*u] -= 1;
        }
        for &(path, o) in &self.sides.machine.instrs[usize::from(v.0)].paths {
            let value = travels(op, o).unwrap_or(From::Node(i, 0));
            if let Some(k) = self.paths[row].iter().position(|p| *p == (path, value)) {
                self.paths[row].swap_remove(k);
            }
        }
        self.count[row] -= 1;
        self.held[row].retain(|&x| x != i);
    }
}

/// The value that an operand carries over a path; none for one that is written.
fn travels(op: &Op, operand: usize) -> Option<From> {
    op.reads.iter().find(|r| r.0 == operand).map(|r| r.1)
}

/// For each unit, how many operations would run on it if each chose evenly.
fn demand(sides: &Sides<'_>, ops: &Ops) -> Vec<f64> {
    let mut out = vec![0.0; sides.machine.units.len()];
    for op in &ops.ops {
        let mut units: Vec<UnitId> =
            op.variants.iter().flat_map(|v| sides.machine.instrs[usize::from(v.0)].units.iter().copied()).collect();
        units.sort_unstable();
        units.dedup();
        for &u in &units {
            out[u] += 1.0 / units.len() as f64;
        }
    }
    out
}

/// An order between two operations of one iteration: the second issues at
/// least so many cycles after the first.
struct Edges {
    preds: Vec<Vec<(usize, i64)>>,
    succs: Vec<Vec<(usize, i64)>>,
}

/// Is the operation an induction: a function of its own last result and of
/// values from outside?
fn induction(ops: &Ops, i: usize) -> bool {
    let op = &ops.ops[i];
    op.writes.is_some()
        && op.reads.iter().all(|r| matches!(r.1, From::Outside(_)) || r.1 == From::Node(i, 1))
        && ops.initial.contains_key(&i)
        && !ops.ops.iter().any(|o| o.reads.iter().any(|r| r.1 == From::Node(i, 0)))
        && !ops.live_out.iter().any(|l| l.0 == i)
}

fn edges(ops: &Ops, lazy: &[bool]) -> Edges {
    let n = ops.ops.len();
    let mut e = Edges { preds: vec![Vec::new(); n], succs: vec![Vec::new(); n] };
    let mut add = |a: usize, b: usize, w: i64| {
        e.succs[a].push((b, w));
        e.preds[b].push((a, w));
    };
    for (i, op) in ops.ops.iter().enumerate() {
        for &(_, from) in &op.reads {
            match from {
                From::Node(p, 0) => add(p, i, latency(ops, p)),
                // Read before this iteration's result lands in its place.
                From::Node(p, _) if p != i && !lazy[p] => add(i, p, 1 - latency(ops, p)),
                _ => {}
            }
        }
    }
    for &(a, b, cycles, distance) in &ops.memory {
        if distance == 0 {
            add(a, b, i64::from(cycles));
        }
    }
    e
}

fn latency(ops: &Ops, i: usize) -> i64 {
    ops.ops[i].writes.map_or(1, |w| i64::from(w.1))
}

/// Longest way from the iteration's beginning to each operation.
fn depths(ops: &Ops, e: &Edges) -> Vec<i64> {
    let order = topological(ops, e);
    let mut depth = vec![0i64; ops.ops.len()];
    for i in order {
        depth[i] = e.preds[i].iter().map(|&(p, w)| depth[p] + w).max().unwrap_or(0).max(0);
    }
    depth
}

fn topological(ops: &Ops, e: &Edges) -> Vec<usize> {
    let n = ops.ops.len();
    let mut left: Vec<usize> = e.preds.iter().map(Vec::len).collect();
    let mut ready: Vec<usize> = (0..n).filter(|&i| left[i] == 0).collect();
    let mut out = Vec::with_capacity(n);
    while let Some(i) = ready.pop() {
        out.push(i);
        for &(s, _) in &e.succs[i] {
            left[s] -= 1;
            if left[s] == 0 {
                ready.push(s);
            }
        }
    }
    out
}

/// Length of the longest chain of one iteration, in cycles.
pub fn chain(ops: &Ops) -> i64 {
    let lazy: Vec<bool> = (0..ops.ops.len()).map(|i| induction(ops, i)).collect();
    let e = edges(ops, &lazy);
    let depth = depths(ops, &e);
    (0..ops.ops.len()).map(|i| depth[i] + latency(ops, i)).max().unwrap_or(1)
}

/// The least II that units allow: for every set of units that some operations
/// cannot leave, their number.
pub fn res_mii(sides: &Sides<'_>, ops: &Ops) -> i64 {
    let machine = sides.machine;
    let of = |op: &Op| -> u64 {
        op.variants.iter().flat_map(|v| &machine.instrs[usize::from(v.0)].units).fold(0u64, |m, &u| m | 1 << u.min(63))
    };
    let masks: Vec<u64> = ops.ops.iter().map(of).filter(|m| *m != 0).collect();
    let mut sets: Vec<u64> = masks.clone();
    sets.sort_unstable();
    sets.dedup();
    let mut unions = sets.clone();
    if sets.len() <= 14 {
        for &s in &sets {
            let more: Vec<u64> = unions.iter().map(|u| u | s).collect();
            unions.extend(more);
            unions.sort_unstable();
            unions.dedup();
        }
    }
    let capacity = |set: u64| -> u64 {
        machine.units.iter().enumerate().filter(|(u, _)| set >> (*u).min(63) & 1 == 1).map(|(_, x)| u64::from(x.count)).sum()
    };
    let bound = |set: u64| {
        let work = masks.iter().filter(|m| **m & !set == 0).count() as u64;
        work.div_ceil(capacity(set).max(1))
    };
    let issue = masks.len() as u64;
    let most = unions.into_iter().map(bound).max().unwrap_or(1);
    most.max(issue.div_ceil(u64::from(machine.issue.width.max(1)))).max(1) as i64
}

/// The least II that each value carried round needs by itself: from the
/// operation that reads it to the one that makes its successor.
pub fn rec_mii(ops: &Ops) -> i64 {
    let n = ops.ops.len();
    let lazy: Vec<bool> = (0..n).map(|i| induction(ops, i)).collect();
    let e = edges(ops, &lazy);
    let order = topological(ops, &e);
    let mut best = 1;
    for (&p, _) in &ops.initial {
        let mut dist: Vec<Option<i64>> = vec![None; n];
        for &i in &order {
            let reads = ops.ops[i].reads.iter().any(|r| r.1 == From::Node(p, 1));
            let way = e.preds[i].iter().filter_map(|&(q, w)| Some(dist[q]? + w)).max();
            dist[i] = if reads { Some(way.unwrap_or(0).max(0)) } else { way };
        }
        if let Some(d) = dist[p] {
            best = best.max(d + latency(ops, p));
        }
    }
    best
}

/// A value while it is being followed backwards.
#[derive(Clone, Copy, Default)]
struct Life {
    side: usize,
    /// Last cycle it is read (or held), and the first cycle known to be needed.
    last: i64,
    low: i64,
    readers_left: usize,
    open: bool,
    closed: bool,
}

/// Try to schedule at an II and in so many stages, with at most so many
/// registers on each side. The last operation is the branch back: it stands in
/// the first stage, so that its delay slots end with it.
pub fn schedule(
    sides: &Sides<'_>,
    ops: &Ops,
    ii: i64,
    policy: Policy,
    registers: &[i64],
    stages: i64,
) -> Option<Schedule> {
    let n = ops.ops.len();
    let lazy: Vec<bool> = (0..n).map(|i| induction(ops, i)).collect();
    let e = edges(ops, &lazy);
    let depth = depths(ops, &e);
    let mut table = Table::new(sides, ops, ii);
    let mut time: Vec<Option<i64>> = vec![None; n];
    let mut variant = vec![InstrId(0); n];
    let hold = (0..n).map(|i| latency(ops, i)).max().unwrap_or(1);

    let mut lives = vec![Life::default(); n];
    let mut occupied: Vec<Vec<i64>> = vec![vec![0; ii as usize]; sides.files.len()];
    for (i, op) in ops.ops.iter().enumerate() {
        lives[i].side = op.at.result;
    }
    for op in &ops.ops {
        for &(_, from) in &op.reads {
            if let From::Node(p, 0) = from {
                lives[p].readers_left += 1;
            }
        }
    }
    // Inductions and what the next iteration reads hold a register throughout.
    let mut limit: Vec<i64> = registers.to_vec();
    for i in (0..n).filter(|&i| lazy[i]) {
        limit[ops.ops[i].at.result] -= 1;
    }
    // Time runs from -1, the last row of the last stage, downwards.
    let mut t = -1i64;
    for &(i, _) in &ops.live_out {
        lives[i].open = true;
        (lives[i].last, lives[i].low) = (hold - 1, 0);
        for k in 0..hold {
            occupied[lives[i].side][(k.rem_euclid(ii)) as usize] += 1;
        }
    }
    // A value for the next iteration must live on to its readers there, which
    // are not placed yet: from the end of this iteration on it is held.
    for &i in ops.initial.keys().filter(|&&i| !lazy[i]) {
        if !lives[i].open {
            lives[i].open = true;
            (lives[i].last, lives[i].low) = (-1, 0);
        }
    }
    // The same values while their readers in this iteration have them from the
    // one before: from the reader back to where they landed, II earlier.
    let mut carried: Vec<Option<i64>> = vec![None; n];
    let mut late: Vec<i64> = vec![-1; n];
    let mut waiting: Vec<usize> = vec![0; n];
    for i in 0..n {
        waiting[i] = e.succs[i].iter().filter(|s| !lazy[s.0]).count();
    }
    let back = n.checked_sub(1)?;
    let mut ready: Vec<usize> = (0..n).filter(|&i| waiting[i] == 0 && !lazy[i] && i != back).collect();
    let mut left = lazy.iter().filter(|l| !**l).count() - 1;
    let lowest = -(stages * ii);
    let branch = &ops.ops[back];
    let delay = branch.variants.first().map_or(0, |v| sides.machine.instrs[usize::from(v.0)].delay_slots);
    let branch_time = lowest + ii - 1 - i64::from(delay);
    let row = table.row(branch_time);
    let (v, unit) = table.best(row, branch)?;
    table.put(row, back, branch, v, unit);
    time[back] = Some(branch_time);
    variant[back] = v;
    for r in &branch.reads {
        match r.1 {
            From::Node(p, 0) => {
                lives[p].readers_left -= 1;
                if !lives[p].open {
                    lives[p].open = true;
                    (lives[p].last, lives[p].low) = (branch_time, branch_time + 1);
                }
            }
            From::Node(..) => return None,
            From::Outside(_) => {}
        }
    }
    for &(p, w) in &e.preds[back] {
        late[p] = late[p].min(branch_time - w);
        waiting[p] -= 1;
        if waiting[p] == 0 && !lazy[p] {
            ready.push(p);
        }
    }

    // Values that are open, and values carried round.
    let mut following: Vec<usize> = (0..n).filter(|&i| lives[i].open).collect();
    let phis: Vec<usize> = ops.initial.keys().copied().filter(|&p| !lazy[p]).collect();
    while left > 0 {
        if t < lowest {
            return None;
        }
        // Values read further on reach down to this cycle.
        following.retain(|&i| !lives[i].closed);
        for &i in &following {
            if lives[i].open {
                let reach = if lives[i].readers_left > 0 || time[i].is_some() { t } else { t + latency(ops, i) };
                // What only the branch reads is not needed behind it.
                if reach > lives[i].last {
                    continue;
                }
                while lives[i].low > reach {
                    lives[i].low -= 1;
                    occupied[lives[i].side][lives[i].low.rem_euclid(ii) as usize] += 1;
                }
            }
        }
        for &p in &phis {
            let Some(low) = carried[p] else { continue };
            let reach = time[p].map_or(t, |tp| t.max(tp + latency(ops, p) - ii));
            for k in (reach..low).rev() {
                occupied[lives[p].side][k.rem_euclid(ii) as usize] += 1;
            }
            carried[p] = Some(low.min(reach));
        }
        let row = table.row(t);
        let mut candidates: Vec<usize> = ready.iter().copied().filter(|&i| late[i] >= t).collect();
        let opens = |i: usize, lives: &[Life]| -> Vec<usize> {
            let mut list: Vec<usize> = ops.ops[i]
                .reads
                .iter()
                .filter_map(|r| match r.1 {
                    From::Node(p, 0) if !lives[p].open => Some(p),
                    _ => None,
                })
                .collect();
            list.sort_unstable();
            list.dedup();
            list
        };
        let gain = |i: usize, lives: &[Life]| -> i64 { i64::from(lives[i].open) - opens(i, lives).len() as i64 };
        match policy {
            Policy::Depth => candidates.sort_by_key(|&i| (std::cmp::Reverse(depth[i]), i)),
            Policy::Frugal => {
                candidates.sort_by_key(|&i| (std::cmp::Reverse(gain(i, &lives).signum()), std::cmp::Reverse(depth[i]), i));
            }
        }
        for i in candidates {
            if table.count[row] >= sides.machine.issue.width {
                break;
            }
            // A result the next iteration reads: its readers there must not be
            // too early.
            let op = &ops.ops[i];
            let too_early = op.reads.iter().any(|r| match r.1 {
                From::Node(p, 1) if p != i => time[p].is_some_and(|tp| t < tp + latency(ops, p) - ii),
                _ => false,
            });
            if too_early {
                return None;
            }
            let new = opens(i, &lives);
            let short = new.iter().any(|&p| {
                let side = lives[p].side;
                let more = new.iter().filter(|&&q| lives[q].side == side).count() as i64;
                let ends = i64::from(lives[i].open && lives[i].side == side);
                let here = occupied[side][row];
                more > ends && here + more > limit[side]
            });
            if short {
                continue;
            }
            let choice = table.best(row, op).or_else(|| shuffle(&mut table, ops, &mut variant, row, i));
            let Some((v, unit)) = choice else { continue };
            table.put(row, i, op, v, unit);
            time[i] = Some(t);
            variant[i] = v;
            left -= 1;
            ready.retain(|&x| x != i);
            // Its own value, seen backwards, ends where it lands.
            if lives[i].open {
                let landing = t + latency(ops, i);
                lives[i].closed = true;
                while lives[i].low > landing {
                    lives[i].low -= 1;
                    occupied[lives[i].side][lives[i].low.rem_euclid(ii) as usize] += 1;
                }
                if lives[i].last - landing >= ii && !ops.initial.contains_key(&i) {
                    return None;
                }
            }
            for p in new {
                following.push(p);
                lives[p].open = true;
                (lives[p].last, lives[p].low) = (t, t);
                occupied[lives[p].side][row] += 1;
            }
            for r in &op.reads {
                match r.1 {
                    From::Node(p, 0) => lives[p].readers_left -= 1,
                    From::Node(p, _) if p != i && !lazy[p] && carried[p].is_none() => {
                        occupied[lives[p].side][row] += 1;
                        carried[p] = Some(t);
                    }
                    _ => {}
                }
            }
            for &(p, w) in &e.preds[i] {
                late[p] = late[p].min(t - w);
                waiting[p] -= 1;
                if waiting[p] == 0 && !lazy[p] {
                    ready.push(p);
                }
            }
        }
        t -= 1;
    }

    let first = time.iter().flatten().copied().min().unwrap_or(-1);
    if first < lowest {
        return None;
    }
    let first = lowest;
    // Inductions, between their last and their first readers.
    for i in (0..n).filter(|&i| lazy[i]) {
        let readers: Vec<i64> = ops
            .ops
            .iter()
            .enumerate()
            .filter(|(r, o)| *r != i && o.reads.iter().any(|x| x.1 == From::Node(i, 1)))
            .filter_map(|(r, _)| time[r])
            .collect();
        let lat = latency(ops, i);
        let low = readers.iter().map(|r| r - lat + 1).max().unwrap_or(first).max(first);
        let high = readers.iter().map(|r| r + ii - lat).min().unwrap_or(-1).min(-1);
        let placed = (low..=high.min(low + ii - 1)).find_map(|t| {
            let row = table.row(t);
            if table.count[row] >= sides.machine.issue.width {
                return None;
            }
            let (v, unit) = table.best(row, &ops.ops[i]).or_else(|| shuffle(&mut table, ops, &mut variant, row, i))?;
            Some((t, row, v, unit))
        });
        let (t, row, v, unit) = placed?;
        table.put(row, i, &ops.ops[i], v, unit);
        time[i] = Some(t);
        variant[i] = v;
    }
    let time: Vec<i64> = time.into_iter().map(|t| t.unwrap_or(-1) - first).collect();
    let orders = ops.memory.iter().all(|&(a, b, cycles, d)| time[b] + i64::from(d) * ii >= time[a] + i64::from(cycles));
    let carried = ops.ops.iter().enumerate().all(|(i, op)| {
        op.reads.iter().all(|r| match r.1 {
            From::Node(p, d) => {
                let d = i64::from(d);
                let read = time[i] + d * ii;
                let landing = time[p] + latency(ops, p);
                read >= landing && read < landing + ii
            }
            From::Outside(_) => true,
        })
    });
    (orders && carried).then_some(Schedule { ii, time, variant, stages })
}

/// Make room for operation `i` in a row by moving one that stands there to
/// another of its units.
fn shuffle(table: &mut Table<'_>, ops: &Ops, variant: &mut [InstrId], row: usize, i: usize) -> Option<(InstrId, Option<UnitId>)> {
    for q in table.held[row].clone() {
        let other = &ops.ops[q];
        if other.variants.len() < 2 {
            continue;
        }
        let old = variant[q];
        table.take(row, q, other, old);
        for &v in other.variants.iter().filter(|v| **v != old) {
            let Some(unit) = table.free(row, other, v) else { continue };
            table.put(row, q, other, v, unit);
            if let Some(found) = table.best(row, &ops.ops[i]) {
                variant[q] = v;
                return Some(found);
            }
            table.take(row, q, other, v);
        }
        let unit = table.free(row, other, old)?;
        table.put(row, q, other, old, unit);
    }
    None
}
