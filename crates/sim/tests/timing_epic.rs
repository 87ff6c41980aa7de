//! What issues together waits together: bundles put together by the compiler on
//! a machine that waits for operands, and registers that rotate.
//!
//! The number before an instruction is the cycle it issues in, worked out by hand;
//! the total is the first cycle at which an instruction after the last could issue.

mod common;

use ciphermill_sim::{SimOptions, Simulator, Stats, Stop};
use common::{assemble, real};
use std::sync::Arc;

fn simulator(set: &[(&str, &str)], text: &str) -> Simulator {
    Simulator::new(Arc::new(assemble(real("epic", set), text)), SimOptions::default()).unwrap()
}

/// Run function 0 once: its result and all counts.
fn run(set: &[(&str, &str)], text: &str, args: &[u64]) -> (u64, Stats) {
    let mut s = simulator(set, text);
    let result = s.call(0, args).unwrap();
    (result.first().copied().unwrap_or(0), s.stats())
}

#[test]
fn a_bundle_reads_before_it_writes() {
    // 0 both moves, 1 sub, 2 br_ret.
    let (result, s) = run(
        &[],
        "
        func f 2 1
            mov r32, r33 || mov r33, r32
            sub r8, r32, r33
            br_ret
    ",
        &[5, 7],
    );
    assert_eq!((result, s.cycles, s.instructions, s.bundles), (2, 3, 4, 3));
}

#[test]
fn a_bundle_waits_for_the_last_operand_of_any_of_its_instructions() {
    // 0 ld4 (r2 ready at 2) and add, 2 both adds, though r3 was ready at 1, 3 br_ret.
    let text = "
        func f 1 0
            ld4 r2, r32 || add r3, r32, r32
            add r4, r3, r3 || add r5, r2, r2
            br_ret
    ";
    let (_, s) = run(&[], text, &[64]);
    assert_eq!((s.cycles, s.stalls.load_wait), (4, 1));
    let (_, s) = run(&[("timings.load.latency", "5")], text, &[64]);
    assert_eq!((s.cycles, s.stalls.load_wait), (7, 4));
}

#[test]
fn what_is_under_way_at_the_end_of_a_block_stays_so() {
    // 0 mul (r8 ready at 3) and the branch, which costs nothing, 3 add, 4 br_ret.
    let (result, s) = run(
        &[],
        "
        func f 1 1
            mul r8, r32, r32 || br next
        next:
            add r8, r8, r8
            br_ret
    ",
        &[6],
    );
    assert_eq!((result, s.cycles, s.stalls.operand_wait), (72, 5, 2));
}

#[test]
fn a_bundle_has_as_many_instructions_and_units_as_the_machine() {
    let loads = |n: usize| {
        let list: Vec<String> = (0..n).map(|i| format!("ld4 r{}, r32", 2 + i)).collect();
        format!("func f 1 0\n{}\nbr_ret", list.join(" || "))
    };
    let mut s = simulator(&[], &loads(3));
    assert!(matches!(s.call(0, &[64]), Err(Stop::Internal(e)) if e.contains("more units")));
    let (_, three) = run(&[("units.mem", "3")], &loads(3), &[64]);
    assert_eq!(three.cycles, 2);
    let mut s = simulator(&[("units.mem", "5")], &loads(5));
    assert!(matches!(s.call(0, &[64]), Err(Stop::Internal(e)) if e.contains("width 4")));
}

/// The sum of some words: an iteration loads a word, counts, and one interval of
/// two cycles later adds it. Two stages.
///
/// The pointer is written as r64 and is r65 in the next iteration; so are r80 and
/// r81 the words left, r90 and r91 the sum. What is loaded as r70 in the first
/// stage is r71 in the second.
const SUM: &str = "
    func sum 2 1
        loop_enter 2 || mov r65, r32 || mov r81, r33 || mov r90, r0
    again:
        (p16) ld4 r70, r65 || (p16) adds r64, r65, 4 || (p16) adds r80, r81, -1 || (p17) add r90, r91, r71
        br_wtop r80, again
    done:
        mov r8, r91
        br_ret
    func put 2 0
        st4 r32, r33
        br_ret
";

/// The sum of 3, 4, 5, ... in the last words of a page, and the counts of adding.
fn sum(words: u64, set: &[(&str, &str)]) -> (u64, Stats) {
    let mut s = simulator(set, SUM);
    let first = 65536 - 4 * words;
    (0..words).for_each(|i| drop(s.call(1, &[first + 4 * i, 3 + i]).unwrap()));
    s.reset_stats();
    let result = s.call(0, &[first, words]).unwrap();
    (result[0], s.stats())
}

#[test]
fn stages_of_a_rotating_loop_overlap() {
    // 0 loop_enter, then so many iterations and one more interval for the last
    // one's second stage, 2 cycles each, mov, br_ret.
    for words in 1..=6 {
        let (result, s) = sum(words, &[]);
        assert_eq!(result, (3..3 + words).sum::<u64>());
        assert_eq!((s.cycles, s.stalls.total()), (1 + 2 * (words + 1) + 2, 0), "{words} words");
        // Those whose predicate is 0 take their slots too.
        assert_eq!(s.instructions, 4 + 5 * (words + 1) + 2);
    }
}

#[test]
fn an_instruction_whose_predicate_is_0_does_nothing() {
    // In the last interval the load of the first stage would be behind the page.
    assert_eq!(sum(3, &[]).0, 12);
    let mut s = simulator(&[], &SUM.replace("(p16) ld4", "ld4"));
    assert!(s.call(0, &[65536 - 12, 3]).is_err());
    // And without its own predicate the sum would begin an interval too early.
    let mut s = simulator(&[], &SUM.replace("(p17) add", "add").replace("mov r90, r0", "mov r90, r32"));
    assert_ne!(s.call(0, &[64, 3]).unwrap()[0], 64);
}

#[test]
fn what_is_waited_for_rotates_with_its_register() {
    // A load takes 4 cycles, so the second stage waits 2 in each interval but
    // the first: its load was under way as r70 when it became r71.
    let (result, s) = sum(3, &[("timings.load.latency", "4")]);
    assert_eq!((result, s.cycles, s.stalls.load_wait), (12, 11 + 6, 6));
}
