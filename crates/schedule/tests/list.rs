//! The list scheduler of machines that issue in order, on blocks of a few instructions worked out by hand.

use ciphermill_ir::Space;
use ciphermill_schedule::list::{PressureLimit, order, order_with};
use ciphermill_schedule::verified;
use ciphermill_vcode::{MemRef, Node, Resource};

const LOAD: u32 = 3;

/// An instruction that reads some registers and writes one after so many cycles.
fn node(reads: &[Resource], writes: Resource, latency: u32) -> Node {
    Node { reads: reads.to_vec(), writes: vec![(writes, latency)], issue_cycles: 1, ..Node::default() }
}

fn access(store: bool, offset: i64, reads: &[Resource], writes: Option<Resource>) -> Node {
    Node {
        reads: reads.to_vec(),
        writes: writes.map(|r| (r, LOAD)).into_iter().collect(),
        mem: Some(MemRef::own(Space::Linear, store, offset, 4)),
        issue_cycles: 1,
        ..Node::default()
    }
}

/// The order, which the checker has accepted, and the cycles it takes.
#[track_caller]
fn scheduled(nodes: &[Node], limit: Option<&PressureLimit>, soft_edges: &[(usize, usize)]) -> (Vec<usize>, u64) {
    let (order, cycles) = order_with(nodes, limit, soft_edges);
    assert_eq!(verified::order(nodes, &order), Ok(()), "{order:?}");
    (order, cycles)
}

#[test]
fn a_load_s_latency_is_filled_with_what_does_not_wait_for_it() {
    let nodes = [access(false, 0, &[0], Some(1)), node(&[1], 2, 1), node(&[0], 3, 1), node(&[0], 4, 1)];
    assert_eq!(scheduled(&nodes, None, &[]), (vec![0, 2, 3, 1], 4));
}

#[test]
fn an_order_that_costs_nothing_stays() {
    let nodes = [node(&[0], 1, 1), node(&[1], 2, 1), node(&[0], 3, 1), node(&[3], 4, 1)];
    assert_eq!(order(&nodes, None), [0, 1, 2, 3]);
}

#[test]
fn a_store_stays_before_a_load_of_the_same_word_and_not_of_another() {
    let block = |offset| {
        let late = access(false, 0, &[0], Some(1));
        [late, access(true, 8, &[1], None), access(false, offset, &[0], Some(2)), node(&[2], 3, 1)]
    };
    assert_eq!(scheduled(&block(8), None, &[]).0, [0, 1, 2, 3]);
    assert_eq!(scheduled(&block(12), None, &[]).0, [0, 2, 1, 3]);
}

/// A load behind which another one may issue in the next cycle, and anything else in the one after it.
fn pairing(offset: i64, reads: Resource, writes: Resource) -> Node {
    Node {
        writes: vec![(writes, 1)],
        issue_cycles: 2,
        timing: 7,
        issue_before: vec![(7, 1)],
        ..access(false, offset, &[reads], None)
    }
}

#[test]
fn what_may_follow_sooner_does() {
    let nodes = [pairing(0, 0, 1), node(&[5], 3, 1), pairing(4, 0, 2), node(&[1, 2], 4, 1)];
    // Loads in cycles 0 and 1, the others in 3 and 4.
    assert_eq!(scheduled(&nodes, None, &[]), (vec![0, 2, 1, 3], 5));
}

#[test]
fn an_instruction_sinks_to_one_that_may_follow_it_sooner() {
    let nodes = [pairing(0, 0, 1), node(&[5], 2, 1), pairing(4, 2, 3), node(&[1, 3], 4, 1)];
    assert_eq!(scheduled(&nodes, None, &[]).0, [1, 0, 2, 3]);
    // Not past what waits for it.
    let nodes = [pairing(0, 0, 1), node(&[1], 2, 1), pairing(4, 2, 3), node(&[1, 3], 4, 1)];
    assert_eq!(scheduled(&nodes, None, &[]).0, [0, 1, 2, 3]);
}

#[test]
fn what_is_read_early_is_made_earlier() {
    let early = Node { early: vec![(1, 1)], ..access(false, 0, &[1], Some(2)) };
    let nodes = [node(&[0], 1, 1), early, node(&[5], 6, 1)];
    // The load cannot issue in cycle 1.
    assert_eq!(scheduled(&nodes, None, &[]), (vec![0, 2, 1], 3));
}

#[test]
fn nothing_moves_across_a_barrier() {
    let call = Node { barrier: true, issue_cycles: 1, ..Node::default() };
    let nodes = [access(false, 0, &[0], Some(1)), node(&[1], 2, 1), call, node(&[0], 3, 1)];
    assert_eq!(scheduled(&nodes, None, &[]).0, [0, 1, 2, 3]);
}

#[test]
fn an_old_value_is_read_before_its_register_is_written_again() {
    let nodes = [access(false, 0, &[0], Some(1)), node(&[1, 2], 3, 1), node(&[0], 2, 1)];
    // The last would fill the latency, but the second still wants the old value of register 2.
    assert_eq!(scheduled(&nodes, None, &[]).0, [0, 1, 2]);
}

#[test]
fn what_would_raise_the_pressure_above_the_registers_waits() {
    // Three loads and their sum; a register each, and nothing else to do while the first is under way.
    let nodes = [
        access(false, 0, &[0], Some(10)),
        node(&[10], 11, 1),
        access(false, 4, &[0], Some(12)),
        node(&[11, 12], 13, 1),
        access(false, 8, &[0], Some(14)),
        node(&[13, 14], 15, 1),
    ];
    let out = |r| r == 15;
    let limit = |registers| PressureLimit { registers, values: 10, live_out: &out, live_through: 1 };
    assert_eq!(scheduled(&nodes, Some(&limit(8)), &[]).0, [0, 2, 4, 1, 3, 5]);
    assert_eq!(scheduled(&nodes, Some(&limit(2)), &[]).0, [0, 2, 1, 3, 4, 5]);
    assert_eq!(scheduled(&nodes, Some(&limit(1)), &[]).0, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_soft_edge_orders_what_is_free_and_gives_way_to_a_dependence() {
    let nodes = [node(&[0], 1, 1), node(&[0], 2, 1), node(&[1], 3, 1)];
    assert_eq!(scheduled(&nodes, None, &[(1, 0)]).0, [1, 0, 2]);
    assert_eq!(scheduled(&nodes, None, &[(2, 0)]).0, [0, 1, 2]);
}
