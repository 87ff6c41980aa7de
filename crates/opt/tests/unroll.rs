//! Unrolling of nests, jamming, versions for trip counts, and the passes that
//! serve them, each on the smallest module that shows it.

mod support;

use ciphermill_ir::{BinOp, Block, Cfg, CmpOp, Dominators, Func, Loops, Module, Op, Terminator};
use ciphermill_opt::{LoopTrips, Options, Steady, Unroll, loop_sites, optimise, run_pass};
use support::same;
use support::text::{count, func, module};

fn is_load(op: Op) -> bool {
    matches!(op, Op::Load(_))
}

fn is_store(op: Op) -> bool {
    matches!(op, Op::Store(_))
}

/// Numbers of blocks of the function's loops, outer first.
fn loops(func: &Func) -> Vec<usize> {
    let cfg = Cfg::new(func);
    let doms = Dominators::new(func, &cfg);
    Loops::new(func, &cfg, &doms).loops.values().map(|l| l.blocks.len()).collect()
}

fn optimised(before: &Module, options: &Options) -> Module {
    let mut after = before.clone();
    optimise(&mut after, options).expect("nothing to lower");
    after
}

fn with(unroll: Unroll) -> Options {
    Options { unroll, ..Options::default() }
}

fn disjoint(unroll: Unroll) -> Options {
    Options { disjoint_params: vec![("f".into(), vec![0, 1, 2])], ..with(unroll) }
}

/// `f(ctx, in, out, blocks)`: each word of `in` goes through rounds over the
/// words of `ctx`, as many as `rounds` says, and is stored to `out`.
fn cipher(rounds: &str, before_rounds: &str) -> String {
    format!(
        "(module (memory 1)
           (func $encrypt (export \"e\") (param $ctx i32) (param $in i32) (param $out i32) (local $x i32) (local $n i32)
             (local.set $x (i32.load (local.get $in)))
             {before_rounds}
             (local.set $n {rounds})
             (loop $round
               (local.set $x (i32.rotl (i32.add (local.get $x) (i32.load offset=4 (local.get $ctx))) (local.get $x)))
               (local.set $ctx (i32.add (local.get $ctx) (i32.const 4)))
               (br_if $round (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
             (i32.store (local.get $out) (local.get $x)))
           (func (export \"f\") (param $ctx i32) (param $in i32) (param $out i32) (param $blocks i32)
             (block $o
               (br_if $o (i32.eqz (local.get $blocks)))
               (loop $l
                 (call $encrypt (local.get $ctx) (local.get $in) (local.get $out))
                 (local.set $in (i32.add (local.get $in) (i32.const 4)))
                 (local.set $out (i32.add (local.get $out) (i32.const 4)))
                 (br_if $l (local.tee $blocks (i32.sub (local.get $blocks) (i32.const 1))))))))"
    )
}

const CONSTANT: &str = "(i32.const 5)";
const LOADED: &str = "(i32.sub (i32.load offset=64 (local.get $ctx)) (i32.const 1))";

/// Calls of `f` with buffers apart and every number of blocks up to 9, the
/// context filled so that it asks for `rounds` rounds.
fn check(before: &Module, after: &Module, rounds: u32, what: &str) {
    let fill = |module: &Module| {
        let mut module = module.clone();
        let bytes = (0..1024u32).flat_map(|i| i.wrapping_mul(0x9E37_79B9).to_le_bytes()).collect::<Vec<u8>>();
        let segment = |addr, bytes| ciphermill_ir::DataSegment { addr, bytes, readonly: false, name: None };
        module.data.push(segment(0x1000, bytes));
        module.data.push(segment(0x1000 + 64, rounds.to_le_bytes().to_vec()));
        module
    };
    let arguments: Vec<Vec<u64>> = (0..10).map(|n| vec![0x1000, 0x1100, 0x3000, n]).collect();
    let (mut before, mut after) = (fill(before), fill(after));
    // Only `f` is called with arguments that fit.
    before.exports.retain(|(name, _)| name == "f");
    after.exports.retain(|(name, _)| name == "f");
    same(&before, &after, false, &arguments, what);
}

fn inline() -> Unroll {
    Unroll { inline_budget: 500, ..Unroll::default() }
}

#[test]
fn nests_collapse_and_blocks_stand_side_by_side() {
    let before = module(&cipher(CONSTANT, ""));
    let full = Unroll { full_budget: 200, keep_loads: true, ..inline() };
    let after = optimised(&before, &disjoint(full.clone()));
    assert_eq!(loops(func(&after, "f")), [1]);
    check(&before, &after, 0, "collapsed");
    let after = optimised(&before, &disjoint(Unroll { jam: 3, ..full.clone() }));
    // The jammed loop, and the original for what is left over.
    assert_eq!(loops(func(&after, "f")), [1, 1]);
    // Five round keys and a block; the jammed loop's three share the keys.
    assert_eq!(count(func(&after, "f"), is_load), 5 + 1 + 5 + 3);
    check(&before, &after, 0, "jammed");
    // Without the promise the output may be the key.
    let after = optimised(&before, &with(Unroll { jam: 3, ..full }));
    assert_eq!(count(func(&after, "f"), is_load), 5 + 1 + 3 * (5 + 1));
    check(&before, &after, 0, "jammed without the promise");
}

#[test]
fn a_nest_of_constant_loops_becomes_a_straight_line() {
    let wat = "(module (func (export \"f\") (param i32) (result i32) (local $i i32) (local $j i32)
        (loop $outer
          (local.set $j (i32.const 0))
          (loop $inner
            (local.set 0 (i32.xor (i32.mul (local.get 0) (i32.const 0x9E3779B1))
              (i32.add (i32.mul (local.get $i) (local.get $j)) (i32.const 5))))
            ;; As often as the outer loop's counter says.
            (br_if $inner (i32.le_u (local.tee $j (i32.add (local.get $j) (i32.const 1))) (local.get $i))))
          (br_if $outer (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 4))))
        (local.get 0)))";
    let before = module(wat);
    let after = optimised(&before, &with(Unroll { full_budget: 300, ..Unroll::default() }));
    let f = func(&after, "f");
    assert_eq!((f.layout.len(), count(f, |op| op == Op::Bin(BinOp::Mul))), (1, 1 + 2 + 3 + 4), "{f}");
    same(&before, &after, false, &[vec![1], vec![0xDEAD_BEEF]], "nest");
}

#[test]
fn values_of_a_loop_with_several_ways_out_are_put_together() {
    let wat = "(module (func (export \"f\") (param i32 i32) (result i32) (local $i i32) (local $x i32)
        (block $found
          (loop $l
            (local.set $x (i32.mul (i32.xor (local.get 0) (local.get $i)) (i32.const 0x9E3779B1)))
            (br_if $found (i32.eq (i32.and (local.get $x) (i32.const 7)) (local.get 1)))
            (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 6))))
          (local.set $x (i32.add (local.get $x) (i32.const 1))))
        (i32.add (local.get $x) (local.get $i))))";
    let before = module(wat);
    let after = optimised(&before, &with(Unroll { full_budget: 300, ..Unroll::default() }));
    assert!(loops(func(&after, "f")).is_empty());
    let arguments: Vec<Vec<u64>> = (0..20).flat_map(|a| (0..9).map(move |b| vec![a, b])).collect();
    same(&before, &after, false, &arguments, "several ways out");
}

#[test]
fn inner_loops_are_fused_when_blocks_do_not_touch() {
    let before = module(&cipher("(i32.const 100)", ""));
    let jam = Unroll { jam: 2, keep_loads: true, ..inline() };
    let fused = optimised(&before, &disjoint(jam.clone()));
    // Jammed nest, its inner loop, and the originals of both.
    assert_eq!(loops(func(&fused, "f")), [3, 1, 3, 1]);
    // One load of the round key serves two blocks.
    assert_eq!(count(func(&fused, "f"), |op| op == Op::Bin(BinOp::RotL)), 3);
    assert_eq!(count(func(&fused, "f"), is_load), (2 + 1) + (1 + 1));
    check(&before, &fused, 0, "fused");
    // A store may be what the next block reads: the nest stays alone.
    let alone = optimised(&before, &with(jam.clone()));
    assert_eq!(loops(func(&alone, "f")), [3, 1]);
    let strict = optimised(&before, &Options { strict_traps: true, ..disjoint(jam.clone()) });
    assert_eq!(loops(func(&strict, "f")), [3, 1]);
    // What the last block wrote is what the next one reads.
    let chained = module(&cipher("(i32.const 100)", "").replace(
        "(call $encrypt (local.get $ctx) (local.get $in)",
        "(call $encrypt (local.get $ctx) (local.get $out)",
    ));
    let after = optimised(&chained, &disjoint(jam));
    check(&chained, &after, 0, "chained");
}

#[test]
fn copies_of_inner_loops_that_turn_differently_are_not_fused() {
    let own_count = "(i32.or (i32.and (local.get $x) (i32.const 15)) (i32.const 1))";
    let before = module(&cipher(own_count, ""));
    let after = optimised(&before, &disjoint(Unroll { jam: 2, ..inline() }));
    assert_eq!(loops(func(&after, "f")), [3, 1]);
    check(&before, &after, 0, "own counts");
}

/// The profile of an exported function's loop over rounds: its smallest.
fn rounds_seen(module: &Module, name: &str, trips: &[u32]) -> Vec<LoopTrips> {
    let id = module.export(name).expect("it is exported");
    let sites = loop_sites(module).into_iter().filter(|s| s.func == id);
    let site = sites.min_by_key(|s| s.last - s.first).expect("it has a loop");
    trips.iter().map(|&trips| LoopTrips { first: site.first, last: site.last, trips }).collect()
}

#[test]
fn an_expected_count_has_its_own_version() {
    let before = module(&cipher(LOADED, ""));
    let unroll = |trips: &[u32]| Unroll { full_budget: 300, profile: rounds_seen(&before, "e", trips), ..inline() };
    let after = optimised(&before, &disjoint(unroll(&[9])));
    let f = func(&after, "f");
    // One straight version; the nest as it was.
    let mut sizes = loops(f);
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 1, 3], "{f}");
    assert_eq!(count(f, |op| op == Op::Bin(BinOp::RotL)), 9 + 1);
    for rounds in [2, 9, 10, 11] {
        check(&before, &after, rounds, "one version");
    }
    let after = optimised(&before, &disjoint(unroll(&[9, 11, 13])));
    assert_eq!(count(func(&after, "f"), |op| op == Op::Bin(BinOp::RotL)), 9 + 11 + 13 + 1);
    for rounds in [10, 11, 12, 14] {
        check(&before, &after, rounds, "three versions");
    }
    // Without the promise a block stored may change the number of rounds: the
    // version is then of the loop over rounds alone.
    let after = optimised(&before, &with(unroll(&[9])));
    assert_eq!(count(func(&after, "f"), |op| op == Op::Bin(BinOp::RotL)), 9 + 1);
    for rounds in [9, 10] {
        check(&before, &after, rounds, "version inside");
    }
}

/// `f(ctx, in, out, blocks)`: squares words and turns them, in all as many times as the context says.
const LEFT_BY_EITHER: &str = "(module (memory 1)
    (func (export \"f\") (param $ctx i32) (param $in i32) (param $out i32) (param $n i32) (result i32)
      (local $x i32) (local $i i32)
      (if (i32.eqz (local.get $n)) (then (return (i32.const 0))))
      (loop $blocks
        (local.set $x (i32.load (local.get $in)))
        (local.set $i (i32.const 0))
        (block $done (loop $rounds
          (local.set $x (i32.mul (local.get $x) (local.get $x)))
          (br_if $done (i32.eq (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.load offset=64 (local.get $ctx))))
          (local.set $x (i32.rotl (local.get $x) (i32.const 3)))
          (br_if $done (i32.eq (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.load offset=64 (local.get $ctx))))
          (br $rounds)))
        (i32.store (local.get $out) (local.get $x))
        (local.set $in (i32.add (local.get $in) (i32.const 4)))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (br_if $blocks (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $x)))";

#[test]
fn an_expected_count_is_of_the_branch_that_a_run_left_by() {
    let before = module(LEFT_BY_EITHER);
    let f = func(&before, "f");
    let data = f.layout.iter().flat_map(|&b| &f.blocks[b].insts).map(|&i| &f.insts[i]);
    let asked: Vec<u32> = data.filter(|i| matches!(i.op, Op::Cmp(CmpOp::Eq))).map(|i| i.loc).collect();
    let [_, first, second] = asked[..] else { panic!("{f}") };
    // Eight times: in the fourth iteration, by the second of the two.
    let run = |steady: u32, varied: u32| {
        let (steady, profile) = (vec![Steady { loc: steady, value: 0 }], rounds_seen(&before, "f", &[4]));
        let after = optimised(
            &before,
            &disjoint(Unroll { full_budget: 100, profile, steady, varied: vec![varied], ..Unroll::default() }),
        );
        for rounds in [1, 6, 7, 8, 9] {
            check(&before, &after, rounds, "left by one of two");
        }
        [Op::Bin(BinOp::Mul), Op::Bin(BinOp::RotL)].map(|wanted| count(func(&after, "f"), |op| op == wanted))
    };
    assert_eq!(run(first, second), [4 + 1, 4 + 1]);
    assert_eq!(run(second, first), [4 + 1, 3 + 1]);
}

/// `f(ctx, in, out, blocks)`: two rounds at a time, and one more where the number of rounds in the context is odd.
fn two_at_a_time(go_on: &str, odd: &str) -> String {
    format!(
        "(module (memory 1)
          (func (export \"f\") (param $ctx i32) (param $in i32) (param $out i32) (param $n i32) (result i32)
            (local $x i32) (local $i i32) (local $r i32)
            (if (i32.eqz (local.get $n)) (then (return (i32.const 0))))
            (loop $blocks
              (local.set $x (i32.load (local.get $in)))
              (local.set $r (i32.load offset=64 (local.get $ctx)))
              (local.set $i (i32.const 0))
              (loop $rounds
                (local.set $x (i32.mul (local.get $x) (local.get $x)))
                (local.set $x (i32.rotl (i32.mul (local.get $x) (local.get $x)) (i32.const 3)))
                (local.set $i (i32.add (local.get $i) (i32.const 2)))
                (br_if $rounds {go_on}))
              (if {odd} (then (local.set $x (i32.mul (local.get $x) (local.get $x)))))
              (i32.store (local.get $out) (local.get $x))
              (local.set $in (i32.add (local.get $in) (i32.const 4)))
              (local.set $out (i32.add (local.get $out) (i32.const 4)))
              (br_if $blocks (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
            (local.get $x)))"
    )
}

#[test]
fn of_several_numbers_with_one_count_it_is_the_one_that_conditions_ask_for() {
    let masked =
        ("(i32.ne (local.get $i) (i32.and (local.get $r) (i32.const -2)))", "(i32.and (local.get $r) (i32.const 1))");
    let compared = (
        "(i32.lt_u (i32.add (local.get $i) (i32.const 1)) (local.get $r))",
        "(i32.lt_u (local.get $i) (local.get $r))",
    );
    for (go_on, odd) in [masked, compared] {
        let before = module(&two_at_a_time(go_on, odd));
        let f = func(&before, "f");
        let outside = f.layout.iter().filter_map(|&b| match &f.blocks[b].term {
            Terminator::Branch { cond, then, .. } => Some((f.resolve(*cond), then.block)),
            _ => None,
        });
        // The question is the one whose answer squares once more.
        let squares = |b: Block| f.blocks[b].insts.iter().filter(|&&i| f.insts[i].op == Op::Bin(BinOp::Mul)).count();
        let (cond, _) = outside.into_iter().find(|&(_, then)| squares(then) == 1).expect("it asks");
        let loc = f.insts[f.def_inst(cond).expect("it is computed")].loc;
        for value in [0, 1] {
            let (profile, steady) = (rounds_seen(&before, "f", &[4]), vec![Steady { loc, value }]);
            let unroll = Unroll { full_budget: 200, profile, steady, ..Unroll::default() };
            let after = optimised(&before, &disjoint(unroll));
            let f = func(&after, "f");
            // A version of one block, with all its rounds, and the nest as it was.
            assert_eq!(loops(f).into_iter().filter(|&blocks| blocks == 1).count(), 2, "{go_on}: {f}");
            assert_eq!(count(f, |op| op == Op::Bin(BinOp::Mul)), 8 + value as usize + 3, "{go_on}: {f}");
            for rounds in [2, 8, 9, 10] {
                check(&before, &after, rounds, "two at a time");
            }
        }
    }
}

#[test]
fn a_pointer_that_counts_is_as_good_as_a_number() {
    // The loop over rounds ends where its pointer into the context has come to
    // ctx + 4 (rounds - 1).
    let counting = "(br_if $round (local.tee $n (i32.sub (local.get $n) (i32.const 1))))";
    let end = format!("(local.set $n (i32.add (local.get $ctx) (i32.shl {LOADED} (i32.const 2))))");
    let text =
        cipher("(local.get $n)", &end).replace(counting, "(br_if $round (i32.ne (local.get $ctx) (local.get $n)))");
    let before = module(&text);
    let unroll = Unroll { full_budget: 300, profile: rounds_seen(&before, "e", &[9]), ..inline() };
    let options = disjoint(unroll);
    let after = optimised(&before, &options);
    let f = func(&after, "f");
    let mut sizes = loops(f);
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 1, 3], "{f}");
    assert_eq!(count(f, |op| op == Op::Bin(BinOp::RotL)), 9 + 1);
    for rounds in [2, 9, 10, 11] {
        check(&before, &after, rounds, "counted by distance");
    }
    let without = optimised(&before, &Options { disable: vec!["distances"], ..options });
    assert_eq!(count(func(&without, "f"), |op| op == Op::Bin(BinOp::RotL)), 1);
}

#[test]
fn a_profile_of_other_loops_changes_nothing() {
    let before = module(&cipher(LOADED, ""));
    let elsewhere = vec![LoopTrips { first: 1, last: 2, trips: 9 }];
    let mut after = before;
    let options = with(Unroll { profile: elsewhere, ..Unroll::default() });
    assert!(!run_pass(&mut after, &options, "specialise"));
}

/// `f(ctx, in, out, blocks)`: to each word of `in` three is added, twice, where the first word
/// of the context is 4, and seven where it is not.
const ASKING: &str = "(module (memory 1) (data (i32.const 4) \"\\04\")
    (func (export \"f\") (param $ctx i32) (param $in i32) (param $out i32) (param $n i32) (result i32)
      (local $x i32)
      (loop $blocks
        (local.set $x (i32.load (local.get $in)))
        (if (i32.ne (i32.load (local.get $ctx)) (i32.const 4))
          (then (local.set $x (i32.add (local.get $x) (i32.const 7))))
          (else (local.set $x (i32.add (local.get $x) (i32.const 3)))))
        (local.set $x (i32.rotl (local.get $x) (i32.const 5)))
        (if (i32.ne (i32.load (local.get $ctx)) (i32.const 4))
          (then (local.set $x (i32.mul (local.get $x) (i32.const 7))))
          (else (local.set $x (i32.add (local.get $x) (i32.const 3)))))
        (i32.store (local.get $out) (local.get $x))
        (local.set $in (i32.add (local.get $in) (i32.const 4)))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (br_if $blocks (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $x)))";

#[test]
fn a_condition_that_was_always_the_same_is_asked_before_the_loop() {
    let before = module(ASKING);
    let all = func(&before, "f").layout.iter().flat_map(|&b| &func(&before, "f").blocks[b].insts);
    let asked = all.map(|&i| &func(&before, "f").insts[i]).find(|i| matches!(i.op, Op::Cmp(_))).expect("it asks");
    let seen = |value| Unroll { full_budget: 300, steady: vec![Steady { loc: asked.loc, value }], ..Unroll::default() };
    let sizes = |module: &Module| {
        let mut sizes = loops(func(module, "f"));
        sizes.sort_unstable();
        sizes
    };
    let alone = sizes(&optimised(&before, &disjoint(Unroll::default())));
    let [original] = alone[..] else { panic!("{alone:?}") };
    for (value, multiplications) in [(1, 2), (0, 1)] {
        // One version without branches, of both questions, and the loop as it was.
        let after = optimised(&before, &disjoint(seen(value)));
        assert_eq!(sizes(&after), [1, original], "{}", func(&after, "f"));
        assert_eq!(count(func(&after, "f"), |op| op == Op::Bin(BinOp::Mul)), multiplications);
        let arguments: Vec<Vec<u64>> = [0, 4, 64].iter().map(|&ctx| vec![ctx, 128, 256, 3]).collect();
        same(&before, &after, false, &arguments, "asked before");
    }
    // What is stored may be what is asked for; and a loop too large is not written twice.
    assert_eq!(sizes(&optimised(&before, &with(seen(1)))), alone);
    assert_eq!(sizes(&optimised(&before, &disjoint(Unroll { full_budget: 5, ..seen(1) }))), alone);
}

/// Squares and adds until a key, of unknown length, is used up.
const LEFT_BETWEEN: &str = "(module (memory 1)
  (func (export \"f\") (param $x i32) (param $n i32) (result i32)
    (local $y i32)
    (block $out (loop $rounds
      (local.set $y (i32.rotl (i32.mul (local.get $x) (local.get $x)) (i32.const 3)))
      (br_if $out (i32.eqz (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.set $x (i32.add (local.get $y) (local.get $n)))
      (br $rounds)))
    (i32.xor (local.get $y) (local.get $x))))";

#[test]
fn a_loop_that_is_left_between_its_blocks_becomes_one_block() {
    let before = module(LEFT_BETWEEN);
    assert_eq!(loops(func(&optimised(&before, &with(Unroll { keep_loads: true, ..Unroll::default() })), "f")), [2]);
    let after = optimised(&before, &with(Unroll { full_budget: 300, ..Unroll::default() }));
    assert_eq!(loops(func(&after, "f")), [1], "{}", func(&after, "f"));
    assert_eq!(count(func(&after, "f"), |op| op == Op::Bin(BinOp::Mul)), 2);
    same(&before, &after, false, &[vec![7, 1], vec![7, 2], vec![7, 9]], "turned");
    // What is longer than any loop that is pipelined stays.
    let squares = |n: usize| "(local.set $x (i32.mul (local.get $x) (local.get $x)))".repeat(n);
    for (n, blocks) in [(9_000, 1), (10_000, 2)] {
        let first = "(block $out (loop $rounds";
        let before = module(&LEFT_BETWEEN.replace(first, &format!("{first}{}", squares(n))));
        let after = optimised(&before, &with(Unroll { full_budget: 300, ..Unroll::default() }));
        assert_eq!(loops(func(&after, "f")), [blocks]);
    }
}

/// Rotates words, unless a buffer is not there.
const CAREFUL: &str = "(module (memory 1)
  (func (export \"f\") (param $ctx i32) (param $in i32) (param $out i32) (param $n i32) (result i32)
    (loop $blocks
      (block $skip
        (br_if $skip (i32.eqz (local.get $in)))
        (br_if $skip (i32.eq (i32.const 0) (local.get $out)))
        (i32.store (local.get $out) (i32.rotl (i32.load (local.get $in)) (i32.load (local.get $ctx)))))
      (local.set $in (i32.add (local.get $in) (i32.const 4)))
      (local.set $out (i32.add (local.get $out) (i32.const 4)))
      (br_if $blocks (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $in)))";

#[test]
fn a_buffer_that_is_promised_is_there() {
    let before = module(CAREFUL);
    let unroll = || Unroll { keep_loads: true, ..Unroll::default() };
    assert!(loops(func(&optimised(&before, &disjoint(unroll())), "f"))[0] > 1);
    let promised = Options { no_buffer_at_zero: true, ..disjoint(unroll()) };
    let after = optimised(&before, &promised);
    assert_eq!(loops(func(&after, "f")), [1], "{}", func(&after, "f"));
    same(&before, &after, false, &[vec![64, 128, 256, 3]], "no questions");
}

/// Which of three things is done to a block is said by the context.
const CHOOSING: &str = "(module (memory 1)
  (data (i32.const 0) \"\\0b\\00\\00\\00\\0c\\00\\00\\00\\0d\\00\\00\\00\\0e\\00\\00\\00\")
  (func (export \"f\") (param $ctx i32) (param $in i32) (param $out i32) (param $n i32) (result i32)
    (local $x i32)
    (loop $blocks
      (local.set $x (i32.load (local.get $in)))
      (block $done (block $two (block $one (block $none
        (br_table $none $one $two $done (i32.sub (i32.load (local.get $ctx)) (i32.const 11))))
        (local.set $x (i32.mul (local.get $x) (i32.const 7))) (br $done))
        (local.set $x (i32.add (local.get $x) (i32.const 3))) (br $done))
        (local.set $x (i32.rotl (local.get $x) (i32.const 3))))
      (i32.store (local.get $out) (local.get $x))
      (local.set $in (i32.add (local.get $in) (i32.const 4)))
      (local.set $out (i32.add (local.get $out) (i32.const 4)))
      (br_if $blocks (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $x)))";

#[test]
fn a_switch_that_always_went_the_same_way_is_asked_before_the_loop() {
    let before = module(CHOOSING);
    let source = func(&before, "f");
    let is_index = |i: &&ciphermill_ir::InstData| matches!(i.op, Op::Bin(BinOp::Sub));
    let loc = source.insts.values().find(is_index).expect("what it hangs on").loc;
    for (value, multiplications) in [(0, 2), (1, 1), (2, 1)] {
        let steady = vec![Steady { loc, value }];
        let after = optimised(&before, &disjoint(Unroll { full_budget: 300, steady, ..Unroll::default() }));
        let sizes = loops(func(&after, "f"));
        assert!(sizes.len() == 2 && sizes.contains(&1), "{sizes:?}\n{}", func(&after, "f"));
        assert_eq!(count(func(&after, "f"), |op| op == Op::Bin(BinOp::Mul)), multiplications);
        let arguments: Vec<Vec<u64>> = [0, 4, 8, 12].iter().map(|&ctx| vec![ctx, 128, 256, 3]).collect();
        same(&before, &after, false, &arguments, "chosen before");
    }
}

/// Five iterations, six, five; between them something is done, and all lead to one header.
const ONE_HEADER: &str = "(module
  (func (export \"f\") (param $x i32) (result i32)
    (local $i i32) (local $n i32)
    (local.set $i (i32.const 5))
    (local.set $n (i32.const 3))
    (loop $head
      (local.set $x (i32.rotl (i32.mul (local.get $x) (i32.const 77)) (local.get $i)))
      (br_if $head (local.tee $i (i32.sub (local.get $i) (i32.const 1))))
      (if (local.tee $n (i32.sub (local.get $n) (i32.const 1)))
        (then
          (local.set $i (select (i32.const 6) (i32.const 5) (i32.eq (local.get $n) (i32.const 2))))
          (local.set $x (i32.add (local.get $x) (i32.const 99)))
          (br $head))))
    (local.get $x)))";

#[test]
fn two_loops_of_one_header_are_told_apart() {
    let before = module(ONE_HEADER);
    let after = optimised(&before, &with(Unroll { full_budget: 400, ..Unroll::default() }));
    assert_eq!(loops(func(&after, "f")), [0; 0]);
    assert_eq!(count(func(&after, "f"), |op| op == Op::Bin(BinOp::Mul)), 16);
    same(&before, &after, false, &[vec![1], vec![0xdead_beef]], "unrolled from both sides");
    // As one loop it has no count, and what is too large stays as it was.
    let after = optimised(&before, &with(Unroll { full_budget: 20, ..Unroll::default() }));
    assert_eq!(loops(func(&after, "f")).len(), 1);
}

#[test]
fn a_promise_does_not_hold_for_calls_from_inside() {
    // `f` itself is called with one buffer for both.
    let wat = "(module (memory 1)
        (func $f (export \"f\") (param i32 i32 i32) (result i32)
          (i32.store (local.get 1) (i32.add (i32.load (local.get 0)) (i32.const 1)))
          (i32.load (local.get 0)))
        (func (export \"g\") (param i32) (result i32) (call $f (local.get 0) (local.get 0) (local.get 0))))";
    let alone = wat.replace("(call $f (local.get 0) (local.get 0) (local.get 0))", "(i32.const 0)");
    let left = |wat: &str| {
        let mut module = module(wat);
        run_pass(&mut module, &disjoint(Unroll::default()), "loads");
        count(func(&module, "f"), is_load)
    };
    assert_eq!((left(&alone), left(wat)), (1, 2));
}

#[test]
fn only_sums_are_based_on_a_parameter() {
    let left = |addr: &str| {
        let wat = format!(
            "(module (memory 1) (func (export \"f\") (param i32 i32 i32) (result i32)
               (i32.store {addr} (i32.add (i32.load (local.get 0)) (i32.const 1)))
               (i32.load (local.get 0))))"
        );
        let mut module = module(&wat);
        run_pass(&mut module, &disjoint(Unroll::default()), "loads");
        count(func(&module, "f"), is_load) - usize::from(addr.contains("load"))
    };
    assert_eq!(left("(i32.add (local.get 1) (i32.const 8))"), 1);
    assert_eq!(left("(i32.add (local.get 1) (i32.load (i32.const 64)))"), 1);
    assert_eq!(left("(i32.const 64)"), 1);
    assert_eq!(left("(i32.add (local.get 0) (i32.and (local.get 1) (i32.const 12)))"), 2);
    assert_eq!(left("(i32.sub (local.get 1) (local.get 0))"), 2);
    assert_eq!(left("(i32.and (local.get 1) (i32.const -4))"), 2);
}

#[test]
fn tables_of_constants_are_looked_up() {
    let wat = "(module (memory 1) (data (i32.const 16) \"\\01\\00\\00\\00\\02\\00\\00\\00\\80\\ff\\00\\00\")
        (func (export \"f\") (param i32) (result i32) (local $i i32)
          (loop $l
            (local.set 0 (i32.rotl (local.get 0) (i32.load offset=16 (local.get $i))))
            (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 12))))
          (i32.add (local.get 0) (i32.load8_s (i32.const 24)))))";
    let mut before = module(wat);
    before.data[0].readonly = true;
    let after = optimised(&before, &with(Unroll { full_budget: 50, ..Unroll::default() }));
    assert_eq!(count(func(&after, "f"), is_load), 0);
    same(&before, &after, false, &[vec![0x1234_5678]], "constants");
}

#[test]
fn a_block_fed_back_stays_in_values() {
    let wat = "(module (memory 1) (func (export \"f\") (param $ctx i32) (param $in i32) (param $out i32) (param $n i32)
        (loop $l
          (i32.store (local.get $out) (i32.rotl (i32.load (local.get $out)) (i32.load (local.get $ctx))))
          (i32.store offset=4 (local.get $out) (local.get $n))
          (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))";
    let before = module(wat);
    let in_loop = |options: &Options, wanted: fn(Op) -> bool| {
        let after = optimised(&before, options);
        let arguments: Vec<Vec<u64>> = [1, 2, 7].iter().map(|&n| vec![0x1000, 0, 0x2000, n]).collect();
        same(&before, &after, options.strict_traps, &arguments, "fed back");
        let f = func(&after, "f");
        let cfg = Cfg::new(f);
        let doms = Dominators::new(f, &cfg);
        let found = Loops::new(f, &cfg, &doms);
        let insts = f.layout.iter().filter(|&&b| found.depth(b) > 0).flat_map(|&b| &f.blocks[b].insts);
        insts.filter(|&&i| wanted(f.insts[i].op)).count()
    };
    let promote = Unroll { promote: true, keep_loads: true, ..Unroll::default() };
    assert_eq!(in_loop(&disjoint(promote.clone()), is_store), 0);
    assert_eq!(in_loop(&disjoint(promote.clone()), is_load), 1);
    // The context may be the block, or a trap may show what is in memory.
    assert_eq!(in_loop(&with(promote.clone()), is_store), 2);
    assert_eq!(in_loop(&Options { strict_traps: true, ..disjoint(promote) }, is_store), 2);
}

#[test]
fn short_branches_become_selections() {
    let select = |body: &str, most: u32, strict_traps: bool| {
        let wat = format!("(module (memory 1) (func (export \"f\") (param i32 i32) (result i32) {body}))");
        let before = module(&wat);
        let options = Options { strict_traps, ..with(Unroll { if_convert: most, ..Unroll::default() }) };
        let after = optimised(&before, &options);
        let arguments: Vec<Vec<u64>> =
            [0, 1, 100, 0x8000_0000].iter().flat_map(|&a| [vec![a, 3], vec![a, 64]]).collect();
        same(&before, &after, strict_traps, &arguments, body);
        func(&after, "f").layout.len()
    };
    let diamond = "(if (result i32) (local.get 0) (then (i32.mul (local.get 1) (i32.const 7))) (else (i32.add (local.get 1) (i32.const 9))))";
    assert_eq!(select(diamond, 3, false), 1);
    assert!(select(diamond, 2, false) > 1);
    let around = "(if (i32.lt_s (local.get 0) (i32.const 0)) (then (local.set 1 (i32.xor (local.get 1) (i32.const 0x11b))))) (local.get 1)";
    assert_eq!(select(around, 2, true), 1);
    // A load that is not certain to be in bounds, and one that is.
    let load =
        |addr: &str| format!("(if (i32.eqz (local.get 0)) (then (local.set 1 (i32.load {addr})))) (local.get 1)");
    assert!(select(&load("(local.get 1)"), 9, false) > 1);
    assert_eq!(select(&load("(i32.and (local.get 1) (i32.const 255))"), 9, true), 1);
    // A counter's carry: its bytes lie between bytes that are accessed.
    let carry = |hull: &str| {
        format!(
            "(local.set 0 (i32.add (i32.load (local.get 1)) (i32.const 1))) (i32.store (local.get 1) (local.get 0)) {hull}
             (if (i32.eqz (local.get 0)) (then
               (i32.store offset=4 (local.get 1) (i32.add (i32.load offset=4 (local.get 1)) (i32.const 1)))))
             (i32.load offset=4 (local.get 1))"
        )
    };
    let hull = "(i32.store8 offset=9 (local.get 1) (i32.const 1))";
    assert_eq!(select(&carry(hull), 9, false), 1);
    assert!(select(&carry(hull), 9, true) > 1);
    assert!(select(&carry(""), 9, false) > 1);
}

#[test]
fn promised_bytes_can_be_accessed() {
    let wat = "(module (memory 1) (func (export \"f\") (param i32 i32) (result i32)
        (if (local.get 1) (then (i32.store offset=8 (local.get 0) (local.get 1)))) (local.get 1)))";
    let blocks = |bytes: u32| {
        let options = Options {
            buffer_bytes: vec![("f".into(), 0, bytes)],
            ..with(Unroll { if_convert: 8, ..Unroll::default() })
        };
        let before = module(wat);
        let after = optimised(&before, &options);
        same(&before, &after, false, &[vec![64, 0], vec![64, 9]], "promised bytes");
        func(&after, "f").layout.len()
    };
    assert_eq!(blocks(12), 1);
    assert!(blocks(11) > 1);
}

#[test]
fn only_the_functions_asked_for_change() {
    let wat = "(module (func (export \"f\") (param i32) (result i32) (local $i i32)
        (loop $l
          (local.set 0 (i32.rotl (local.get 0) (local.get $i)))
          (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 5))))
        (local.get 0)))";
    let after = |only: &str| {
        let options = with(Unroll { full_budget: 100, only: vec![only.into()], ..Unroll::default() });
        loops(func(&optimised(&module(wat), &options), "f")).len()
    };
    assert_eq!((after("f"), after("g")), (0, 1));
}

#[test]
fn nothing_happens_without_being_asked() {
    let before = module(&cipher(LOADED, ""));
    for pass in ["rom", "if_convert", "meld", "distances", "specialise", "full_unroll", "promote", "jam"] {
        assert!(!run_pass(&mut before.clone(), &Options::default(), pass), "{pass}");
    }
}
