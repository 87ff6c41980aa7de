//! Certificates that were tampered with prove nothing that is false.

mod exact;

use ciphermill_bounds::certificate::{Certificate, Circuit, Joint, Lifetimes, Reason, Relaxation, Resources};
use ciphermill_bounds::model::{Edge, File, Kind, Loop, Operation, Resource, Use, Value, Why};
use ciphermill_bounds::{all, check};
use exact::{Random, possible, random};

/// Three operations on one unit: a chain whose last is read by the first, an iteration later.
fn chain() -> Loop {
    let operation = |name: &str| Operation { name: name.into(), ways: vec![vec![Use { resource: 0, cycles: 1 }]] };
    let edge = |from, to, latency, distance| Edge { from, to, latency, distance, why: Why::Value };
    let value = |operation, reader, distance| Value { operation, file: 0, lands: 1, readers: vec![(reader, distance)] };
    Loop {
        operations: ["a", "b", "c"].map(operation).to_vec(),
        resources: vec![Resource { name: "A".into(), count: 1, kind: Kind::Unit }],
        edges: vec![edge(0, 1, 4, 0), edge(1, 2, 1, 0), edge(2, 0, 1, 1)],
        values: vec![value(0, 1, 0), value(1, 2, 0), value(2, 0, 1)],
        files: vec![File { name: "r".into(), count: 1, outside: 0 }],
    }
}

fn refused(certificate: &Certificate) -> bool {
    check::least(&chain(), certificate).is_err()
}

#[test]
fn resources() {
    let of = |set: &[usize]| Certificate::Resources(Resources { set: set.to_vec() });
    assert_eq!(check::least(&chain(), &of(&[0])), Ok(3));
    // One that is not there, one twice, none.
    assert!(refused(&of(&[1])) && refused(&of(&[0, 0])) && refused(&of(&[])));
}

#[test]
fn circuit() {
    let of = |edges: &[usize]| Certificate::Circuit(Circuit { edges: edges.to_vec() });
    assert_eq!(check::least(&chain(), &of(&[0, 1, 2])), Ok(6));
    assert_eq!(check::least(&chain(), &of(&[1, 2, 0])), Ok(6));
    // An edge less, another order, one that is not there, none, twice round: that is the same.
    assert!(refused(&of(&[0, 1])) && refused(&of(&[0, 2, 1])) && refused(&of(&[0, 1, 3])) && refused(&of(&[])));
    assert_eq!(check::least(&chain(), &of(&[0, 1, 2, 0, 1, 2])), Ok(6));
    // A faster unit proves less.
    let mut faster = chain();
    faster.edges[0].latency = 2;
    assert_eq!(check::least(&faster, &of(&[0, 1, 2])), Ok(4));
}

#[test]
fn joint() {
    let step = |operation, iteration, cycle, edge| ciphermill_bounds::certificate::Step {
        operation,
        iteration,
        cycle,
        reason: Reason::Edge(edge),
    };
    let good = Joint { operation: 0, iterations: 1, steps: vec![step(1, 0, 4, 0), step(2, 0, 5, 1), step(0, 1, 6, 2)] };
    assert_eq!(check::least(&chain(), &Certificate::Joint(good.clone())), Ok(6));
    let tampered = |change: &dyn Fn(&mut Joint)| {
        let mut other = good.clone();
        change(&mut other);
        refused(&Certificate::Joint(other))
    };
    // A cycle that comes too late, a step that is missing, an edge to another operation, twice the same
    // step, an iteration that nothing leads to, more iterations than the steps go through.
    assert!(tampered(&|j| j.steps[1].cycle = 6));
    assert!(tampered(&|j| _ = j.steps.remove(0)));
    assert!(tampered(&|j| j.steps[1].reason = Reason::Edge(0)));
    assert!(tampered(&|j| j.steps.insert(1, j.steps[0].clone())));
    assert!(tampered(&|j| j.steps[2].iteration = 2));
    assert!(tampered(&|j| j.iterations = 2));
    assert!(tampered(&|j| j.iterations = 0));
    // Before c stand a and b on one unit, from cycle 0 on and each at least a cycle before: cycle 2.
    let crowd = |set: Vec<usize>, from, tail| Reason::Crowd { set, from, tail };
    assert!(tampered(&|j| j.steps[1].reason = crowd(vec![0], 0, 1)));
    assert!(!tampered(&|j| {
        j.steps[1].reason = crowd(vec![0], 0, 1);
        j.steps[1].cycle = 2;
        j.steps[2].cycle = 3;
    }));
    assert!(tampered(&|j| (j.steps[1].reason, j.steps[1].cycle) = (crowd(vec![0], 0, 9), 2)));
    assert!(tampered(&|j| (j.steps[1].reason, j.steps[1].cycle) = (crowd(vec![1], 0, 1), 2)));
}

#[test]
fn lifetimes() {
    // At 6 the first lives from 1 to 4, the second and the third for a cycle each: 6 cells, which one
    // register has. In reach of a proof is 5, by the edges themselves: 4 + 1 + 1.
    let flow = vec![(0, 1), (1, 1), (2, 1)];
    let of = |ii, ends: &[Option<usize>], flow: &[(usize, u64)]| {
        let (ends, flow) = (ends.to_vec(), flow.to_vec());
        check::least(&chain(), &Certificate::Lifetimes(Lifetimes { ii, file: 0, ends, flow }))
    };
    assert_eq!(of(5, &[Some(0); 3], &flow), Ok(6));
    // At the II that is possible; with a flow that ends nowhere; with what is not there.
    assert!(of(6, &[Some(0); 3], &flow).is_err());
    assert!(of(5, &[Some(0); 3], &flow[..2]).is_err());
    assert!(of(5, &[Some(0); 3], &[(0, 2), (1, 1), (2, 1)]).is_err());
    assert!(of(5, &[None, Some(0), Some(0)], &flow).is_err());
    assert!(of(5, &[Some(1), Some(0), Some(0)], &flow).is_err());
    assert!(of(5, &[Some(0); 2], &flow).is_err());
    assert!(of(5, &[Some(0); 3], &[(0, 1), (1, 1), (9, 1)]).is_err());
    assert!(of(0, &[Some(0); 3], &flow).is_err());
    let other = Lifetimes { ii: 5, file: 1, ends: vec![Some(0); 3], flow };
    assert!(refused(&Certificate::Lifetimes(other)), "another file");
}

#[test]
fn relaxation() {
    // No multipliers prove nothing, and so do rows of what is not there.
    let none = Relaxation { ii: 6, ..Relaxation::default() };
    assert!(refused(&Certificate::Relaxation(none.clone())));
    assert!(refused(&Certificate::Relaxation(Relaxation { resources: vec![(vec![4], 0, 1)], ..none.clone() })));
    assert!(refused(&Certificate::Relaxation(Relaxation { edges: vec![(7, 0, 1)], ..none.clone() })));
    assert!(refused(&Certificate::Relaxation(Relaxation { registers: vec![(3, 0, 1)], ..none.clone() })));
    assert!(refused(&Certificate::Relaxation(Relaxation { anchor: 9, ..none })));
}

/// Changes of each certificate of each loop.
const CHANGES: u64 = 12;

/// A certificate with something in it changed at random.
fn changed(certificate: &Certificate, random: &mut Random) -> Certificate {
    let mut other = certificate.clone();
    let more = random.below(4) as i64 - 1;
    match &mut other {
        Certificate::Resources(c) => c.set = (0..3).filter(|_| random.below(2) == 0).collect(),
        Certificate::Circuit(c) => {
            let k = random.below(c.edges.len() as u64) as usize;
            c.edges[k] = c.edges[k].wrapping_add_signed(more as isize);
        }
        Certificate::Joint(c) => {
            let k = random.below(c.steps.len() as u64) as usize;
            let step = &mut c.steps[k];
            match (&mut step.reason, random.below(4)) {
                (_, 0) => step.cycle += more,
                (_, 1) => c.iterations = 1 + random.below(4) as usize,
                (Reason::Crowd { from, tail, .. }, 2) => (*from, *tail) = (*from + more, *tail - more),
                (Reason::Edge(e), _) => *e = e.wrapping_add_signed(more as isize),
                (Reason::Crowd { set, .. }, _) => *set = vec![random.below(3) as usize],
            }
        }
        Certificate::Relaxation(c) => match random.below(3) {
            0 => c.ii += 1,
            1 => c.resources.iter_mut().for_each(|r| r.1 += more),
            _ => c.edges.iter_mut().for_each(|r| r.1 += more),
        },
        Certificate::Lifetimes(c) => match (random.below(3), c.flow.len()) {
            (0, _) | (_, 0) => c.ii += 1,
            (1, n) => c.flow[random.below(n as u64) as usize].1 += 1,
            (_, n) => c.flow[random.below(n as u64) as usize].0 += 1,
        },
    }
    other
}

#[test]
fn no_change_proves_what_is_false() {
    let first = 1_000;
    println!("seeds from {first}");
    let (mut held, mut fell) = (0, 0);
    for seed in first..first + 60 {
        let l = random(seed);
        let mut random = Random(seed | 1);
        let free = (1..10).find(|&ii| possible(&l, ii, false)).expect("a long II has a schedule");
        for bound in all(&l, free + 2) {
            for _ in 0..CHANGES {
                let other = changed(&bound.certificate, &mut random);
                let Ok(least) = check::least(&l, &other) else {
                    fell += 1;
                    continue;
                };
                held += 1;
                match other.needs_registers() {
                    true => assert!((1..least.min(9)).all(|ii| !possible(&l, ii, true)), "seed {seed}: {other:?}"),
                    false => assert!(least <= free, "seed {seed}: {other:?} above {free}"),
                }
            }
        }
    }
    println!("{held} still prove something, {fell} nothing");
    assert!(held > 100 && fell > 500, "{held} {fell}");
}
