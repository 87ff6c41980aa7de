//! Loops whose bounds are worked out in the comments.

use ciphermill_bounds::certificate::Certificate;
use ciphermill_bounds::model::{Edge, File, Kind, Loop, Operation, Resource, Use, Value, Why};
use ciphermill_bounds::{Bound, all, quick, refusal};

/// Units A (one), B (one) and C (two), and four issue slots.
fn resources() -> Vec<Resource> {
    let unit = |name: &str, count| Resource { name: name.into(), count, kind: Kind::Unit };
    vec![unit("A", 1), unit("B", 1), unit("C", 2), Resource { name: "issue".into(), count: 4, kind: Kind::Issue }]
}

/// An operation that may run on some units for so many cycles.
fn on(name: &str, units: &[usize], cycles: u32) -> Operation {
    let way = |&resource: &usize| vec![Use { resource, cycles }, Use { resource: 3, cycles: 1 }];
    Operation { name: name.into(), ways: units.iter().map(way).collect() }
}

fn edge(from: usize, to: usize, latency: i64, distance: i64) -> Edge {
    Edge { from, to, latency, distance, why: Why::Value }
}

fn of_kind<'a>(bounds: &'a [Bound], kind: &str) -> Option<&'a Bound> {
    bounds.iter().filter(|b| b.certificate.kind() == kind).max_by_key(|b| b.least)
}

#[test]
fn units_that_operations_cannot_leave() {
    // Four run on A only, one on B only, one on either: A needs 4 cycles; A and B together have six
    // operations, which are 3.
    let mut l = Loop { resources: resources(), ..Loop::default() };
    l.operations = vec![on("mul", &[0], 1); 4];
    l.operations.extend([on("load", &[1], 1), on("add", &[0, 1], 1)]);
    let bounds = quick(&l);
    let bound = of_kind(&bounds, "resources").unwrap();
    assert_eq!(bound.least, 4);
    assert_eq!(bound.told(&l), "4 operations (4 `mul`) need A for 4 cycles");
    // Three more that run on either: A and B have nine, which are 5.
    l.operations.extend(vec![on("add", &[0, 1], 1); 3]);
    assert_eq!(of_kind(&quick(&l), "resources").unwrap().least, 5);
    // One that takes A for 6 cycles: 4 + 6.
    l.operations.push(on("div", &[0], 6));
    assert_eq!(of_kind(&quick(&l), "resources").unwrap().least, 10);
}

#[test]
fn issue_slots() {
    // Nine operations on C, which has two: 5; with A and B for four more, 13 in four slots: 4.
    let mut l = Loop { resources: resources(), ..Loop::default() };
    l.operations = vec![on("load", &[2], 1); 9];
    l.operations.extend(vec![on("add", &[0, 1], 1); 4]);
    assert_eq!(of_kind(&quick(&l), "resources").unwrap().least, 5);
    // Two slots: 7.
    l.resources[3].count = 2;
    let bounds = quick(&l);
    assert_eq!(of_kind(&bounds, "resources").unwrap().told(&l), "13 operations need 7 cycles at 2 an issue");
}

#[test]
fn the_slowest_circuit() {
    // 5 + 4 + 1 cycles in two iterations are 5 an iteration, 5 + 2 in one are 7.
    let mut l = Loop { resources: resources(), operations: vec![on("op", &[2], 1); 3], ..Loop::default() };
    l.edges = vec![edge(0, 1, 5, 0), edge(1, 2, 4, 0), edge(2, 0, 1, 2)];
    assert_eq!(of_kind(&quick(&l), "circuit").unwrap().least, 5);
    l.edges.push(edge(1, 0, 2, 1));
    let bounds = quick(&l);
    let bound = of_kind(&bounds, "circuit").unwrap();
    assert_eq!(bound.least, 7);
    assert_eq!(bound.told(&l), "a recurrence circuit (`op`, `op`) takes 7 cycles in 1 iteration");
    // Without a way round there is no bound.
    l.edges.truncate(2);
    assert_eq!(of_kind(&quick(&l), "circuit"), None);
}

#[test]
fn the_branch_and_what_it_waits_for() {
    // An iteration begins with the count, a cycle later the comparison, another later the branch, and
    // the next iteration 6 cycles behind that: 8.
    let mut l = Loop { resources: resources(), ..Loop::default() };
    l.operations = ["count", "compare", "branch"].map(|name| on(name, &[2], 1)).to_vec();
    l.operations.push(Operation { name: "start".into(), ways: Vec::new() });
    let branch = |from, to, latency, distance| Edge { from, to, latency, distance, why: Why::Branch };
    l.edges = vec![edge(0, 1, 1, 0), edge(1, 2, 1, 0), edge(0, 0, 1, 1), branch(3, 0, 0, 0), branch(2, 3, 6, 1)];
    let bounds = quick(&l);
    let bound = of_kind(&bounds, "circuit").unwrap();
    assert_eq!(bound.least, 8);
    assert_eq!(bound.told(&l), "what the branch waits for, and the branch itself, take 8 cycles");
}

/// A value `a` that is read behind a chain of two others, each result in its register when it lands.
fn chain(registers: u32) -> Loop {
    let mut l = Loop { resources: resources(), operations: vec![on("op", &[2], 1); 4], ..Loop::default() };
    l.edges = vec![edge(0, 1, 1, 0), edge(1, 2, 3, 0), edge(2, 3, 2, 0), edge(0, 3, 1, 0)];
    let value = |operation, lands, readers: &[usize]| Value {
        operation,
        file: 0,
        lands,
        readers: readers.iter().map(|&r| (r, 0)).collect(),
    };
    l.values = vec![value(0, 1, &[1, 3]), value(1, 3, &[2]), value(2, 2, &[3]), value(3, 1, &[])];
    l.files = vec![File { name: "r".into(), count: registers + 1, outside: 1 }];
    l
}

#[test]
fn values_that_live_for_longer_than_registers_are_there() {
    // The first lands in cycle 1 and is read last in 1 + 3 + 2 = 6: 6 cycles. Each of the others is
    // read when it lands, or never: 1 cycle. 9 in all: with two registers 2 * 4 are too few and 2 * 5
    // enough, with one 9.
    let bounds = all(&chain(2), 6);
    let bound = of_kind(&bounds, "registers").unwrap();
    assert_eq!(bound.least, 5);
    assert_eq!(
        bound.told(&chain(2)),
        "4 values live for 9 cycles together, and 2 registers of r beside 1 for values from outside have 8 at 4"
    );
    assert_eq!(of_kind(&all(&chain(1), 10), "registers").unwrap().least, 9);
    assert!(bound.certificate.needs_registers());
    // With nine there is nothing to refuse: four operations on two units need 2 cycles.
    assert_eq!(of_kind(&all(&chain(9), 6), "registers"), None);
    assert_eq!(all(&chain(9), 6).iter().map(|b| b.least).max(), Some(2));
}

/// `x`, four operations that read it, and one that reads these and is read by `x` in the next
/// iteration: a circuit of 1 + 4 + 1 cycles.
fn fan(registers: u32) -> Loop {
    let mut l = Loop { resources: resources(), ..Loop::default() };
    l.operations = vec![Operation { name: "op".into(), ways: Vec::new() }; 6];
    l.edges = (1..5).flat_map(|i| [edge(0, i, 1, 0), edge(i, 5, 4, 0)]).collect();
    l.edges.push(edge(5, 0, 1, 1));
    let value = |operation, readers: Vec<(usize, i64)>| Value { operation, file: 0, lands: 1, readers };
    l.values = vec![value(0, (1..5).map(|i| (i, 0)).collect()), value(5, vec![(0, 1)])];
    l.values.extend((1..5).map(|i| value(i, vec![(5, 0)])));
    l.files = vec![File { name: "r".into(), count: registers, outside: 0 }];
    l
}

#[test]
fn values_that_are_alive_together() {
    // At 6 the four issue in cycle 1 and are read in 5: each lives from 2 to 5, 16 cycles in all; `x` in 1
    // and the last in 6 are 2 more. Three registers have 18 cells, so the sum does not refuse it, and
    // all four are alive in cycle 2.
    let bound = refusal(&fan(3), 6, true).unwrap();
    assert_eq!((bound.certificate.kind(), bound.least), ("relaxation", 7));
    assert!(bound.certificate.needs_registers());
    assert_eq!(refusal(&fan(3), 6, false), None);
    assert_eq!(refusal(&fan(4), 6, true), None);
    // Two registers have 12.
    let sum = all(&fan(2), 7);
    assert_eq!(of_kind(&sum, "registers").unwrap().least, 7);
}

/// Eight operations on C between one and itself an iteration later, by way of another.
fn round(units: u32) -> Loop {
    let mut l = Loop { resources: resources(), ..Loop::default() };
    l.resources[2].count = units;
    l.resources[3].count = 10;
    let outer = Operation { name: "op".into(), ways: Vec::new() };
    l.operations = [vec![outer.clone()], vec![on("look up", &[2], 1); 8], vec![outer]].concat();
    l.edges = (1..9).flat_map(|i| [edge(0, i, 1, 0), edge(i, 9, 1, 0)]).collect();
    l.edges.push(edge(9, 0, 1, 1));
    l
}

#[test]
fn circuits_and_units_together() {
    // 0, the eight in cycles 1 to 4, 9 in 5, 0 again in 6. Units alone need 4, the circuit 3.
    let bounds = quick(&round(2));
    let bound = of_kind(&bounds, "joint").unwrap();
    assert_eq!(bound.least, 6);
    assert_eq!(
        bound.told(&round(2)),
        "from `op` to itself 4 iterations later, what stands between on C takes 24 cycles"
    );
    // The linear program says so too: at 5 the eight have cycles 1 to 3, which is room for six.
    let Some(Bound { certificate: Certificate::Relaxation(_), least: 6 }) = ciphermill_bounds::relaxed(&round(2), 5)
    else {
        panic!("not refused")
    };
    assert_eq!(ciphermill_bounds::relaxed(&round(2), 6), None);
}
