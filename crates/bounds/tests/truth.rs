//! No bound is above what trying everything finds, and some meet it.

mod exact;

use ciphermill_bounds::{all, check};
use exact::{possible, random};

/// Loops that are tried; the seed of each is its number and the first.
const LOOPS: u64 = 250;
/// Intervals beyond which nothing is looked for.
const LONGEST: i64 = 9;

#[test]
fn no_bound_is_above_the_least_ii() {
    let first = 1_000;
    println!("seeds {first} to {}", first + LOOPS);
    let (mut met, mut registers, mut kinds) = (0, 0, std::collections::BTreeMap::new());
    for seed in first..first + LOOPS {
        let l = random(seed);
        let free = (1..=LONGEST).find(|&ii| possible(&l, ii, false)).expect("a long II has a schedule");
        let held = (1..=LONGEST).find(|&ii| possible(&l, ii, true));
        let known = held.unwrap_or(LONGEST);
        let bounds = all(&l, known + 1);
        let mut best = 0;
        for bound in &bounds {
            assert_eq!(check::least(&l, &bound.certificate), Ok(bound.least), "seed {seed}");
            assert!(!bound.told(&l).is_empty());
            *kinds.entry(bound.certificate.kind()).or_insert(0) += 1;
            if bound.certificate.needs_registers() {
                // Each smaller one has no schedule that keeps all values in registers.
                let refused = (1..bound.least.min(LONGEST + 1)).all(|ii| !possible(&l, ii, true));
                assert!(refused, "seed {seed}: {bound:?}, found {held:?}");
                registers += i32::from(bound.least > free);
            } else {
                assert!(bound.least <= free, "seed {seed}: {bound:?}, found {free}");
                best = best.max(bound.least);
            }
        }
        met += i32::from(best == free);
    }
    println!("{met} of {LOOPS} met, {registers} raised by registers, {kinds:?}");
    // What would pass without any bounds is no test.
    assert!(met > 200 && registers > 10, "{met} met, {registers} raised by registers");
    assert!(
        ["resources", "circuit", "registers", "relaxation"].iter().all(|kind| kinds.contains_key(kind)),
        "{kinds:?}"
    );
}
