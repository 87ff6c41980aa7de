//! A message that is taken in pieces, all but the last of which have the same length: those become a loop of their
//! own.

mod support;

use ciphermill_ir::{Cfg, CmpOp, Dominators, Func, Loops, Module, Op};
use ciphermill_opt::{LoopTrips, Options, Steady, Unroll, loop_sites, optimise};
use support::same;
use support::text::{func, module};

/// `f(at, n, step)`: in each iteration a word of state goes on, and the bytes of a piece of up to eight are hidden
/// under it; `length` is how long a piece is.
fn pieces(length: &str) -> String {
    format!(
        "(module (memory 1)
           (func (export \"f\") (param $at i32) (param $n i32) (param $step i32) (result i32)
             (local $s i32) (local $m i32) (local $end i32)
             (local.set $at (i32.and (local.get $at) (i32.const 0xfff0)))
             (block $out
               (br_if $out (i32.eqz (local.get $n)))
               (loop $pieces
                 (local.set $s (i32.add (i32.mul (local.get $s) (i32.const 0x01000193)) (i32.const 77)))
                 (i32.store offset=16 (i32.const 0) (local.get $s))
                 (local.set $m {length})
                 (local.set $n (i32.sub (local.get $n) (local.get $m)))
                 (loop $bytes
                   (i32.store8 (local.get $at) (i32.xor (i32.load8_u (local.get $at))
                     (i32.load8_u offset=16 (i32.and (local.get $m) (i32.const 3)))))
                   (local.set $at (i32.add (local.get $at) (i32.const 1)))
                   (br_if $bytes (local.tee $m (i32.sub (local.get $m) (i32.const 1)))))
                 (br_if $pieces (local.get $n))))
             (i32.add (local.get $s) (local.get $at))))"
    )
}

const SMALLER: &str = "(select (local.get $n) (i32.const 8) (i32.lt_u (local.get $n) (i32.const 8)))";

/// Sizes of the function's loops in blocks.
fn loops(func: &Func) -> Vec<usize> {
    let cfg = Cfg::new(func);
    let doms = Dominators::new(func, &cfg);
    Loops::new(func, &cfg, &doms).loops.values().map(|l| l.blocks.len()).collect()
}

/// Stores of a byte.
fn bytes_stored(func: &Func) -> usize {
    let insts = func.layout.iter().flat_map(|&b| &func.blocks[b].insts).map(|&i| func.insts[i].op);
    insts.filter(|op| matches!(op, Op::Store(access) if access.bytes == 1)).count()
}

/// Optimised for a run in which the inner loop turned so often.
fn optimised(before: &Module, trips: u32, full_budget: u32) -> Module {
    let site = loop_sites(before).into_iter().min_by_key(|s| s.last - s.first).expect("it has loops");
    let profile = vec![LoopTrips { first: site.first, last: site.last, trips }];
    let unroll = Unroll { full_budget, profile, promote: true, ..Unroll::default() };
    let mut after = before.clone();
    optimise(&mut after, &Options { unroll, ..Options::default() }).expect("nothing to lower");
    after
}

fn inputs() -> Vec<Vec<u64>> {
    let lengths = [0, 1, 7, 8, 9, 15, 16, 17, 24, 64, 100];
    lengths.iter().flat_map(|&n| [0, 16, 4096].map(|at| vec![at, n, 3])).collect()
}

#[test]
fn whole_pieces_become_a_loop_of_one_block() {
    let before = module(&pieces(SMALLER));
    let after = optimised(&before, 8, 400);
    let f = func(&after, "f");
    // The new loop; around it the old one, with that over the bytes of a piece of another length.
    let mut sizes = loops(f);
    sizes.sort_unstable();
    assert_eq!((sizes.len(), &sizes[..2], bytes_stored(f)), (3, &[1, 1][..], 8 + 1), "{after}");
    same(&before, &after, false, &inputs(), "pieces of eight");
}

#[test]
fn a_count_that_is_rare_means_the_same() {
    let before = module(&pieces(SMALLER));
    for trips in [1, 3, 7, 9] {
        let after = optimised(&before, trips, 400);
        same(&before, &after, false, &inputs(), &format!("{trips} seen"));
    }
}

#[test]
fn the_inner_loop_is_unrolled_in_the_copy_or_there_is_none() {
    let before = module(&pieces(SMALLER));
    let after = optimised(&before, 8, 30);
    assert_eq!(bytes_stored(func(&after, "f")), 2, "{after}");
    same(&before, &after, false, &inputs(), "too large");
    // A length that is loaded is nothing that an iteration begins with: the inner loop alone has a version.
    let before = module(&pieces("(i32.add (i32.and (i32.load offset=32 (i32.const 0)) (i32.const 1)) (i32.const 1))"));
    let after = optimised(&before, 2, 400);
    let f = func(&after, "f");
    assert_eq!((loops(f).len(), bytes_stored(f)), (2, 2 + 1), "{after}");
    same(&before, &after, false, &inputs(), "loaded");
}

/// `f(at, n, used)`: a buffer of eight bytes, of which so many are used up, is filled by a loop when all are; a piece is
/// what is left in it, or of the message.
const BUFFERED: &str = "(module (memory 1)
    (func (export \"f\") (param $at i32) (param $n i32) (param $used i32) (result i32)
      (local $s i32) (local $m i32)
      (local.set $at (i32.add (i32.and (local.get $at) (i32.const 0xfff0)) (i32.const 64)))
      (block $out
        (br_if $out (i32.eqz (local.get $n)))
        (loop $pieces
          (if (i32.eq (local.get $used) (i32.const 8)) (then
            (local.set $m (i32.const 8))
            (loop $fill
              (local.set $m (i32.sub (local.get $m) (i32.const 1)))
              (local.set $s (i32.add (i32.mul (local.get $s) (i32.const 0x01000193)) (i32.const 77)))
              (i32.store8 offset=16 (local.get $m) (local.get $s))
              (br_if $fill (local.get $m)))
            (local.set $used (i32.const 0))))
          (local.set $m (i32.sub (i32.const 8) (local.get $used)))
          (local.set $m (select (local.get $n) (local.get $m) (i32.lt_u (local.get $n) (local.get $m))))
          (local.set $n (i32.sub (local.get $n) (local.get $m)))
          (loop $bytes
            (i32.store8 (local.get $at) (i32.load8_u offset=16 (local.get $used)))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (local.set $used (i32.add (local.get $used) (i32.const 1)))
            (br_if $bytes (local.tee $m (i32.sub (local.get $m) (i32.const 1)))))
          (br_if $pieces (local.get $n))))
      (i32.add (local.get $s) (local.get $at))))";

#[test]
fn iterations_that_fill_a_buffer_become_a_loop_of_one_block() {
    let before = module(BUFFERED);
    let f = func(&before, "f");
    let data = f.layout.iter().flat_map(|&b| &f.blocks[b].insts).map(|&i| &f.insts[i]);
    let loc = data.filter(|i| i.op == Op::Cmp(CmpOp::Eq)).map(|i| i.loc).max().expect("it asks");
    let sites = loop_sites(&before);
    let bytes = sites.iter().max_by_key(|s| s.first).expect("it has loops");
    let inputs: Vec<Vec<u64>> =
        inputs().into_iter().flat_map(|i| [0, 3, 7, 8].map(|used| vec![i[0], i[1], used])).collect();
    for (value, filled) in [(1, true), (0, false)] {
        let unroll = Unroll {
            full_budget: 400,
            if_convert: 8,
            profile: vec![LoopTrips { first: bytes.first, last: bytes.last, trips: 8 }],
            steady: vec![Steady { loc, value }],
            ..Unroll::default()
        };
        let mut after = before.clone();
        optimise(&mut after, &Options { unroll, ..Options::default() }).expect("nothing to lower");
        let f = func(&after, "f");
        let whole = f.layout.iter().any(|&b| {
            let again = f.blocks[b].term.targets().iter().any(|t| t.block == b);
            again && f.blocks[b].insts.iter().filter(|&&i| matches!(f.insts[i].op, Op::Store(_))).count() == 8 + 8
        });
        assert_eq!(whole, filled, "{after}");
        same(&before, &after, false, &inputs, "a buffer");
    }
}
