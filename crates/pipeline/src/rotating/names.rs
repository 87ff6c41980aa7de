//! Names in a ring of rotating registers.
//!
//! With every turn of the loop a value moves on by one name. Seen from outside
//! the hardware's registers stand still and each iteration's values begin one
//! register further back; so a value that is written at a cycle `s` of its
//! iteration and read for the last time at `e` occupies, of a circle of `N` times
//! II cycles, the arc from `s + k II` to `e + k II`, where `k` says which register
//! it begins with. Names are right when no two arcs touch (Rau et al., PLDI
//! 1992). Each value is put where the fewest cycles before it stay empty.
//!
//! An operation that keeps or replaces what is in its register, as a move under a
//! condition does, has its result where that source was: the two are one arc. The
//! source is read by no other operation ([`super::super::place`] makes it so).

use super::super::body::From;
use super::super::circle::Circle;
use super::super::graph::kept;
use super::super::modulo::Schedule;
use super::super::place::{Op, Ops};

/// For each operation with a result, the place of its register in the ring in
/// the stage that writes it.
pub fn names(ops: &Ops, schedule: &Schedule, ring: i64) -> Option<Vec<Option<i64>>> {
    let (n, ii) = (ops.ops.len(), schedule.ii);
    let end = schedule.stages * ii;
    let mut last: Vec<Option<i64>> = vec![None; n];
    for (i, op) in ops.ops.iter().enumerate() {
        for &(_, from) in &op.reads {
            if let From::Node(p, d) = from {
                let read = schedule.time[i] + i64::from(d) * ii;
                last[p] = Some(last[p].map_or(read, |l| l.max(read)));
            }
        }
    }
    for &(i, _) in &ops.live_out {
        last[i] = Some(last[i].map_or(end, |l| l.max(end)));
    }
    let roots: Vec<usize> = (0..n).map(|i| root(ops, i)).collect();
    let mut spans: Vec<Option<(i64, i64)>> = vec![None; n];
    for i in (0..n).filter(|&i| ops.ops[i].writes.is_some()) {
        let mut start = schedule.time[i] + kept(ops, i);
        let stop = last[i].unwrap_or(start).max(start);
        // The value before the first iteration is there from the beginning.
        if ops.initial.contains_key(&i) {
            start = start.min(ii);
        }
        let span = &mut spans[roots[i]];
        *span = Some(span.map_or((start, stop), |(a, b)| (a.min(start), b.max(stop))));
    }
    let arc = |(i, span): (usize, &Option<(i64, i64)>)| span.map(|(start, stop)| (start, stop - start + 1, i));
    let mut arcs: Vec<(i64, i64, usize)> = spans.iter().enumerate().filter_map(arc).collect();
    let around = ring * ii;
    if arcs.iter().any(|a| a.1 > around) || arcs.iter().map(|a| a.1).sum::<i64>() > around {
        return None;
    }
    let mut circle = Circle::new(around);
    let mut first = vec![None; n];
    // One that lives long is hard to place: those that outlive an interval by
    // far first, the others by where they begin.
    arcs.sort_by_key(|a| (std::cmp::Reverse(a.1 / ii), a.0, a.2));
    for (start, len, i) in arcs {
        let at = |k: i64| start + k * ii;
        let k = (0..ring).filter(|&k| circle.empty(at(k), len)).min_by_key(|&k| circle.idle_before(at(k)))?;
        circle.fill(at(k), len);
        first[i] = Some(k);
    }
    let written = |i: usize| ops.ops[i].writes.and(first[roots[i]]);
    Some((0..n).map(|i| Some((written(i)? + schedule.time[i].div_euclid(ii)).rem_euclid(ring))).collect())
}

/// The first of the operations that write an operation's register one after the other.
fn root(ops: &Ops, mut i: usize) -> usize {
    while let Some(From::Node(source, 0)) = replaced(&ops.ops[i]) {
        i = source;
    }
    i
}

/// What an operation finds in the register that it writes, where that matters.
pub fn replaced(op: &Op) -> Option<From> {
    let (operand, _) = op.writes.filter(|_| op.tied)?;
    op.reads.iter().find(|r| r.0 == operand).map(|r| r.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ops(reads: &[&[(usize, u32)]]) -> Ops {
        let mut ops = Ops { interlock: true, ..Ops::default() };
        for list in reads {
            let inst =
                ciphermill_vcode::VInst::new(ciphermill_vcode::VKind::Normal, ciphermill_machine::InstrId(0), &[], 0);
            ops.ops.push(Op {
                inst,
                reads: list.iter().enumerate().map(|(o, &(p, d))| (o + 1, From::Node(p, d))).collect(),
                writes: Some((0, 1)),
                tied: false,
                at: super::super::super::place::At { unit: 0, result: 0 },
                variants: Default::default(),
                stalling: vec![],
            });
        }
        ops
    }

    fn schedule(ii: i64, time: &[i64], stages: i64) -> Schedule {
        Schedule { ii, time: time.to_vec(), variant: vec![ciphermill_machine::InstrId(0); time.len()], stages }
    }

    #[test]
    fn a_value_that_lives_over_three_intervals_needs_as_many_registers() {
        // Made at 0, read at 6, every second cycle: from 1 to 6 it is in its
        // register, three iterations' at once.
        let ops = ops(&[&[], &[(0, 0)]]);
        let s = schedule(2, &[0, 6], 4);
        assert_eq!(names(&ops, &s, 3), None, "the reader's own result needs one too");
        let of = names(&ops, &s, 4).expect("four registers");
        // No two iterations' values meet: register k of iteration j is k - j.
        let mut busy = std::collections::BTreeMap::new();
        for j in 0..20i64 {
            for (i, start, stop) in [(0, 1, 6), (1, 7, 7)] {
                let stage = s.time[i] / 2;
                for c in start..=stop {
                    let register = (of[i].unwrap() - stage - j).rem_euclid(4);
                    assert!(busy.insert((register, c + 2 * j), i).is_none());
                }
            }
        }
    }

    #[test]
    fn what_replaces_a_value_has_its_register() {
        // 0 is made at 0 and replaced by 1 at 5, two stages on, whose result 2 reads at 6.
        let mut ops = ops(&[&[], &[(0, 0)], &[(1, 0)]]);
        ops.ops[1].tied = true;
        ops.ops[1].reads[0].0 = 0;
        let of = names(&ops, &schedule(2, &[0, 5, 6], 4), 5).expect("five registers");
        assert_eq!((of[1].unwrap() - of[0].unwrap()).rem_euclid(5), 2);
        // Together they are in use for six cycles, three iterations' at once; apart they
        // would be for five and one.
        assert_eq!(names(&ops, &schedule(2, &[0, 5, 6], 4), 3), None, "the reader's result needs one too");
    }

    #[test]
    fn more_cycles_than_the_ring_has_are_refused() {
        assert_eq!(names(&ops(&[&[], &[(0, 0)]]), &schedule(1, &[0, 9], 10), 8), None);
    }
}
