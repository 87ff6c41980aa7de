//! Random modules before and after optimisation, run by an interpreter.
//!
//! `CIPHERMILL_OPT_SEEDS=from..to` chooses other seeds than the usual ones.

mod support;

use ciphermill_ir::Module;
use ciphermill_ir::verify::verify;
use ciphermill_opt::{IndexForm, LoopTrips, Options, PASSES, Steady, Unroll, optimise, run_pass};
use support::random::{Rng, arguments, module};
use support::same;

fn seeds(default: u64) -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("CIPHERMILL_OPT_SEEDS") else { return 0..default };
    let parsed = text.split_once("..").and_then(|(a, b)| Some(a.parse().ok()?..b.parse().ok()?));
    parsed.expect("CIPHERMILL_OPT_SEEDS is written from..to")
}

fn inputs(seed: u64) -> Vec<Vec<u64>> {
    let mut rng = Rng::new(seed ^ 0x5EED);
    (0..4).map(|_| arguments(&mut rng)).collect()
}

#[test]
fn every_level_keeps_the_meaning() {
    for seed in seeds(400) {
        let before = module(seed);
        verify(&before).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{before}"));
        let inputs = inputs(seed);
        for level in 0..=2 {
            for word_bits in [32, 64] {
                for strict_traps in [true, false] {
                    let options = Options { level, word_bits, strict_traps, ..Options::default() };
                    let mut after = before.clone();
                    optimise(&mut after, &options).expect("no 64-bit division");
                    verify(&after).unwrap_or_else(|e| panic!("seed {seed}, {options:?}: {e}\n{before}\n{after}"));
                    same(&before, &after, strict_traps, &inputs, &format!("seed {seed}, {options:?}"));
                }
            }
        }
    }
}

/// A random module some of whose instructions stand somewhere, for what a run says of conditions.
fn located(seed: u64) -> Module {
    let mut module = module(seed);
    for data in module.funcs.values_mut().flat_map(|f| f.insts.values_mut()) {
        data.loc = u32::from(!data.args.is_empty());
    }
    module
}

/// Unrolling as much as there can be, in several mixtures.
fn unrollings() -> Vec<Unroll> {
    // Instructions of the generator come from nowhere: this is every loop.
    let all = |trips| LoopTrips { first: 0, last: u32::MAX, trips };
    let most = Unroll {
        full_budget: 2000,
        jam: 2,
        inline_budget: 60,
        profile: vec![all(2), all(4), all(5)],
        promote: true,
        if_convert: 8,
        meld: 30,
        steady: [1, 0].into_iter().zip(0..).map(|(value, loc)| Steady { loc, value }).collect(),
        ..Unroll::default()
    };
    vec![
        Unroll { jam: 3, loop_size: 60, promote: true, keep_loads: true, ..Unroll::default() },
        Unroll { full_budget: 300, if_convert: 3, steady: vec![Steady { loc: 1, value: 1 }], ..Unroll::default() },
        Unroll { full_budget: 40, loop_size: 30, jam: 2, ..most.clone() },
        most,
    ]
}

#[test]
fn unrolling_keeps_the_meaning() {
    for seed in seeds(400) {
        let before = located(seed);
        let inputs = inputs(seed);
        for unroll in unrollings() {
            for (word_bits, strict_traps) in [(32, false), (32, true), (64, false)] {
                let options = Options { word_bits, strict_traps, unroll: unroll.clone(), ..Options::default() };
                let mut after = before.clone();
                optimise(&mut after, &options).expect("no 64-bit division");
                verify(&after).unwrap_or_else(|e| panic!("seed {seed}, {options:?}: {e}\n{before}\n{after}"));
                same(&before, &after, strict_traps, &inputs, &format!("seed {seed}, {options:?}"));
            }
        }
    }
}

const UNROLLING: [&str; 12] = [
    "rom",
    "if_convert",
    "meld",
    "distances",
    "iterations",
    "specialise",
    "full_unroll",
    "split",
    "trace",
    "one_exit",
    "promote",
    "jam",
];

#[test]
fn every_unrolling_pass_alone_keeps_the_meaning() {
    for seed in seeds(400) {
        let before = located(seed);
        let inputs = inputs(seed);
        for unroll in unrollings() {
            let options = Options { unroll, ..Options::default() };
            for pass in UNROLLING {
                let mut after = before.clone();
                run_pass(&mut after, &options, pass);
                let what = format!("seed {seed}, {pass}, {options:?}");
                verify(&after).unwrap_or_else(|e| panic!("{what}: {e}\n{before}\n{after}"));
                same(&before, &after, false, &inputs, &what);
            }
        }
    }
}

#[test]
fn every_pass_alone_keeps_the_meaning() {
    for seed in seeds(400) {
        let before = module(seed);
        let inputs = inputs(seed);
        for index_form in [IndexForm::ExtractThenScale, IndexForm::ShiftThenMask] {
            for strict_traps in [true, false] {
                let options = Options { strict_traps, index_form, ..Options::default() };
                for pass in PASSES {
                    let mut after = before.clone();
                    run_pass(&mut after, &options, pass.name);
                    let what = format!("seed {seed}, {}, {options:?}", pass.name);
                    verify(&after).unwrap_or_else(|e| panic!("{what}: {e}\n{before}\n{after}"));
                    same(&before, &after, strict_traps, &inputs, &what);
                }
            }
        }
    }
}

/// After a full run nothing should be left that one pass alone would change,
/// or passes work against each other.
#[test]
fn cleaning_up_settles() {
    let mut unsettled = Vec::new();
    for seed in seeds(400) {
        let mut after = module(seed);
        let options = Options::default();
        optimise(&mut after, &options).expect("no 64-bit division");
        for name in ["fold", "gvn", "dce", "address", "globals", "loads", "licm"] {
            let mut again = after.clone();
            if run_pass(&mut again, &options, name) {
                unsettled.push((seed, name));
            }
        }
    }
    assert!(unsettled.len() * 50 <= seeds(400).count(), "{unsettled:?}");
}
