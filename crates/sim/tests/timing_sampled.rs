//! Long runs of which only windows are timed.

mod common;
#[path = "common/dynamic.rs"]
mod machine;

use ciphermill_ooo::{Counts, Sampling};
use ciphermill_sim::{SimOptions, Simulator};
use common::assemble;
use machine::dynamic;
use std::sync::Arc;

const SAMPLING: Sampling = Sampling { period: 4_000, warm: 200, window: 400 };

/// A table walk with a branch on its data: 10 or 11 instructions a turn.
const WALK: &str = "
    func f 2 0
    top:
        andi r3, r2, 252
        ldw r4, r3, 256
        add r4, r4, r2
        stw r4, r3, 256
        muli r2, r2, 5
        addi r2, r2, 1
        andi r5, r2, 64
        beq r5, r0, skip
        mul r6, r6, r2
    skip:
        addi r1, r1, -1
        bne r1, r0, top
        ret
";

fn simulator() -> Simulator {
    Simulator::new(Arc::new(assemble(dynamic(|_| ()), WALK)), SimOptions::default()).unwrap()
}

fn call(s: &mut Simulator, turns: u64) -> Counts {
    s.call(0, &[turns, 1]).unwrap();
    s.stats().core.unwrap()
}

fn whole(turns: u64) -> Counts {
    call(&mut simulator(), turns)
}

/// What is counted of a sample beside what is counted of all.
fn compare(whole: &Counts, sampled: &Counts) {
    for exact in ["instructions", "branches", "conditional_mispredicted", "loads_retired", "stores_retired"] {
        assert_eq!(whole.get(exact), sampled.get(exact), "{exact}");
    }
    assert_eq!(sampled.places.iter().sum::<u64>(), sampled.get("cycles") * sampled.retire_width);
    for near in ["cycles", "uops_dispatched", "uops_retired"] {
        let ratio = sampled.get(near) as f64 / whole.get(near) as f64;
        assert!((ratio - 1.0).abs() < 0.02, "{near} {ratio} {:?}", sampled.sample);
    }
}

#[test]
fn a_sample_is_close_and_counts_exactly_what_it_can() {
    // Long enough for some hundred windows.
    let turns = 40_000;
    let mut s = simulator();
    s.pipeline().unwrap().sample(Some(SAMPLING));
    let sampled = call(&mut s, turns);
    let sample = sampled.sample.unwrap();
    assert!(sample.windows > 90 && sample.timed > 90 * 380, "{sample:?}");
    compare(&whole(turns), &sampled);
    assert!(sample.interval > 0.0 && sample.interval < 0.02, "{sample:?}");
}

#[test]
fn what_the_core_has_done_before_is_not_sampled() {
    let turns = 200_000;
    let mut s = simulator();
    s.pipeline().unwrap().sample_what_is_new(SAMPLING);
    let counts = call(&mut s, turns);
    assert!(counts.sample.is_none() && s.pipeline().unwrap().recalled() > 100_000);
    assert_eq!(counts, whole(turns));
}

#[test]
fn what_is_new_is_sampled_after_a_while() {
    let turns = 200_000;
    let mut s = simulator();
    s.pipeline().unwrap().set_memo(false);
    s.pipeline().unwrap().sample_what_is_new(SAMPLING);
    let sampled = call(&mut s, turns);
    let sample = sampled.sample.unwrap();
    // Of two million instructions the first is timed as a whole, and a tenth of the others.
    assert!(sample.instructions > 2_000_000 && sample.windows > 200, "{sample:?}");
    assert!(sample.timed > (1 << 20) && sample.timed < 5 << 18, "{sample:?}");
    compare(&whole(turns), &sampled);
    assert!(sample.interval > 0.0 && sample.interval < 0.01, "{sample:?}");

    // Counts begin anew, and a short call is timed as a whole.
    s.pipeline().unwrap().reset();
    assert!(call(&mut s, 1_000).sample.is_none());
    // One that ends in the first period says how little it knows.
    let mut s = simulator();
    s.pipeline().unwrap().set_memo(false);
    s.pipeline().unwrap().sample_what_is_new(Sampling { period: 1 << 22, ..SAMPLING });
    let sample = call(&mut s, 101_000).sample.unwrap();
    let left = 1.0 - (1 << 20) as f64 / sample.instructions as f64;
    assert!(sample.windows == 1 && sample.interval > 0.8 * left && sample.interval < 1.2 * left, "{sample:?}");
}
