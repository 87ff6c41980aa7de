//! The scheduler and its checker, on nodes written by hand.

use ciphermill_ir::Space;
use ciphermill_schedule::list::{PressureLimit, order, order_with};
use ciphermill_schedule::verified::order as check;
use ciphermill_vcode::MemRef;
use ciphermill_vcode::Node;

fn node(reads: &[u32], writes: &[(u32, u32)]) -> Node {
    Node { reads: reads.to_vec(), writes: writes.to_vec(), issue_cycles: 1, ..Node::default() }
}

fn access(store: bool, offset: i64, reads: &[u32], writes: &[(u32, u32)]) -> Node {
    let mem = MemRef::own(Space::Linear, store, offset, 4);
    Node { mem: Some(mem), ..node(reads, writes) }
}

#[test]
fn a_load_use_gap_is_filled_with_independent_work() {
    // r1 = load; r2 = r1 + ..; r3 = ..: the third goes into the gap.
    let nodes = [access(false, 0, &[], &[(1, 2)]), node(&[1], &[(2, 1)]), node(&[], &[(3, 1)])];
    assert_eq!(order(&nodes, None), [0, 2, 1]);
}

#[test]
fn without_a_stall_the_given_order_stays() {
    let nodes = [node(&[], &[(1, 1)]), node(&[1], &[(2, 1)]), node(&[], &[(3, 1)])];
    assert_eq!(order(&nodes, None), [0, 1, 2]);
}

#[test]
fn a_value_is_not_overwritten_before_it_is_read() {
    // The load into r1 must not be drawn in front of the read of the old r1.
    let nodes = [access(false, 0, &[], &[(2, 2)]), node(&[2, 1], &[(3, 1)]), node(&[], &[(1, 1)])];
    assert_eq!(order(&nodes, None), [0, 1, 2]);
}

#[test]
fn accesses_that_may_touch_the_same_bytes_keep_their_order() {
    let same = [
        access(false, 0, &[], &[(1, 2)]),
        node(&[1], &[(2, 1)]),
        access(true, 8, &[5], &[]),
        access(false, 8, &[], &[(3, 2)]),
    ];
    assert_eq!(order(&same, None), [0, 2, 1, 3]);
    let apart = [access(true, 8, &[1], &[]), access(false, 12, &[], &[(3, 2)]), node(&[3], &[(4, 1)])];
    assert_eq!(check(&apart, &[1, 0, 2]), Ok(()));
    assert!(check(&same, &[0, 1, 3, 2]).is_err());
}

#[test]
fn nothing_crosses_a_barrier() {
    let call = Node { barrier: true, ..node(&[], &[]) };
    let nodes = [access(false, 0, &[], &[(1, 2)]), node(&[1], &[(2, 1)]), call, node(&[], &[(3, 1)])];
    assert_eq!(order(&nodes, None), [0, 1, 2, 3]);
    assert!(check(&nodes, &[0, 3, 1, 2]).is_err());
}

#[test]
fn pressure_holds_loads_back() {
    // Four loads, each used once. With registers to spare they are interleaved
    // so that none waits; with one register each is used before the next.
    let nodes: Vec<Node> =
        (0..4).flat_map(|i| [access(false, 4 * i64::from(i), &[], &[(i, 2)]), node(&[i], &[])]).collect();
    let dead = |_| false;
    let plenty = order(&nodes, Some(&PressureLimit { registers: 8, values: 0, live_out: &dead, live_through: 0 }));
    assert_ne!(plenty[1], 1);
    let one = order(&nodes, Some(&PressureLimit { registers: 1, values: 0, live_out: &dead, live_through: 0 }));
    assert_eq!(one, (0..8).collect::<Vec<_>>());
}

#[test]
fn wishes_are_granted_where_nothing_speaks_against_them() {
    let nodes = [node(&[1], &[(2, 1)]), node(&[1], &[(3, 1)]), node(&[3], &[(4, 1)])];
    assert_eq!(order_with(&nodes, None, &[(1, 0)]), (vec![1, 0, 2], 3));
    // The second contradicts the first, the third a dependence.
    assert_eq!(order_with(&nodes, None, &[(1, 0), (0, 1), (2, 1)]).0, [1, 0, 2]);
}

#[test]
fn the_checker_sees_every_kind_of_fault() {
    let nodes = [node(&[], &[(1, 1)]), node(&[1], &[(2, 1)]), node(&[], &[(1, 1)])];
    assert_eq!(check(&nodes, &[0, 1, 2]), Ok(()));
    for (wrong, why) in [
        (vec![1, 0, 2], "a read before its write"),
        (vec![0, 2, 1], "a read of a later write"),
        (vec![2, 1, 0], "both, and another last write"),
        (vec![0, 1], "one missing"),
        (vec![0, 1, 1], "one twice"),
        (vec![0, 1, 3], "one that does not exist"),
    ] {
        assert!(check(&nodes, &wrong).is_err(), "{why}");
    }
}

/// Random blocks: whatever order the scheduler gives, the checker agrees, and
/// the order never takes longer than the given one.
#[test]
fn random_blocks_are_scheduled_soundly() {
    let seed = 0x5eed_0001u64;
    println!("seed {seed:#x}");
    let mut state = seed;
    let mut random = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % n
    };
    for _ in 0..2000 {
        let n = 1 + random(40) as usize;
        let nodes: Vec<Node> = (0..n)
            .map(|_| {
                let reads: Vec<u32> = (0..random(3)).map(|_| random(10) as u32).collect();
                let latency = 1 + random(4) as u32;
                let writes = if random(5) == 0 { vec![] } else { vec![(random(10) as u32, latency)] };
                match random(6) {
                    0 => access(true, 4 * random(4) as i64, &reads, &[]),
                    1 => access(false, 4 * random(4) as i64, &reads, &writes),
                    2 if random(6) == 0 => Node { barrier: true, ..node(&reads, &writes) },
                    _ => node(&reads, &writes),
                }
            })
            .collect();
        let found = order(&nodes, None);
        check(&nodes, &found).unwrap_or_else(|e| panic!("{e}\n{nodes:?}\n{found:?}"));
    }
}
