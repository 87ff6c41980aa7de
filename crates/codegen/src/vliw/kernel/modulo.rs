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

use super::body::From;
use super::graph::{depths, edges, induction, latency};
use super::place::{Ops, Sides};
use super::table::{Table, shuffle};
use ciphermill_machine::InstrId;

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
