//! Every timing rule of `machines/e31.toml`, `ibex.toml` and `cv32e40p.toml`, worked out by hand.
//!
//! The number before each instruction is the cycle it issues in; the total is the first cycle in which
//! one after it could. On e31 a jump that has not been seen is guessed wrong, `ret` too: 3 cycles.

mod common;

use ciphermill_sim::{SimOptions, Simulator};
use common::{assemble, real};
use std::sync::Arc;

/// Cycles of each of several calls one after the other.
fn calls(machine: &str, set: &[(&str, &str)], text: &str, args: &[u64], times: usize) -> Vec<u64> {
    let program = Arc::new(assemble(real(machine, set), text));
    let mut s = Simulator::new(program, SimOptions::default()).unwrap();
    let mut before = 0;
    let mut one = |_| {
        s.call(0, args).unwrap();
        let stats = s.stats();
        assert_eq!(stats.cycles, stats.issue_cycles + stats.stalls.total());
        let cycles = stats.cycles - before;
        before = stats.cycles;
        cycles
    };
    (0..times).map(&mut one).collect()
}

fn once(machine: &str, text: &str, args: &[u64]) -> u64 {
    calls(machine, &[], text, args, 1)[0]
}

const USES_A_WORD: &str = "
    func f 1 0
        lw a1, 0, a0
        add a1, a1, a1
        ret
";

const USES_A_BYTE: &str = "
    func f 1 0
        lbu a1, 0, a0
        add a1, a1, a1
        ret
";

const TWO_PRODUCTS: &str = "
    func f 2 2
        mul a2, a0, a1
        mulhu a3, a0, a1
        add a0, a2, a2
        add a1, a3, a3
        ret
";

const STORES: &str = "
    func f 1 0
        sw zero, 0, a0
        addi a0, a0, 4
        ret
";

const DIVIDES: &str = "
    func f 2 1
        divu a0, a0, a1
        addi a1, a1, 1
        add a0, a0, a1
        ret
";

const COUNTDOWN: &str = "
    func f 1 0
    again:
        addi a0, a0, -1
        bnez a0, again
        ret
";

const JUMPS: &str = "
    func f 1 1
        j on
    on:
        mv t0, ra
        call @g
        mv ra, t0
        ret
    func g 1 1
        add a0, a0, a0
        ret
";

#[test]
fn e31_loads() {
    // 0 lw, 2 add, 3 ret and 3: 7. 0 lbu, 3 add, 4 ret and 3: 8.
    assert_eq!(once("e31", USES_A_WORD, &[64]), 7);
    assert_eq!(once("e31", USES_A_BYTE, &[64]), 8);
}

#[test]
fn e31_multiplies_one_at_a_time_and_divides_beside_others() {
    // 0 mul, 5 mulhu, 6 add, 10 add, 11 ret and 3: 15.
    assert_eq!(once("e31", TWO_PRODUCTS, &[3, 5]), 15);
    // 0 divu, 1 addi, 33 add, 34 ret and 3: 38.
    assert_eq!(once("e31", DIVIDES, &[100, 7]), 38);
}

#[test]
fn e31_learns_what_branches_do() {
    // The branch is unknown at first (+3), right twice, wrong at the end (+3); ret is unknown (+3).
    // 4 rounds of 2, 1 ret, 9: 18. Then it is known: only the end is wrong. 8 + 1 + 3.
    assert_eq!(calls("e31", &[], COUNTDOWN, &[4], 3), [18, 12, 12]);
    // With a counter of one bit the first branch of the next call is wrong, too.
    assert_eq!(calls("e31", &[("branch.bht_bits", "1")], COUNTDOWN, &[4], 3), [18, 15, 15]);
}

#[test]
fn e31_remembers_where_calls_come_back_to() {
    // 0 j (+3), 4 mv, 5 jal (+3), [9 add, 10 ret (+3)], 14 mv, 15 ret (+3): 19. Then all is known: 7.
    assert_eq!(calls("e31", &[], JUMPS, &[5], 2), [19, 7]);
    // A stack of one entry has lost where f returns to, and its last target serves: still right.
    assert_eq!(calls("e31", &[("branch.return_stack", "1")], JUMPS, &[5], 2), [19, 7]);
    // A buffer of two entries holds the last two jumps only: j, jal and g's ret are wrong again.
    assert_eq!(calls("e31", &[("branch.btb_entries", "2")], JUMPS, &[5], 2), [19, 19]);
}

#[test]
fn ibex_holds_its_second_stage() {
    // 0 lw (2 cycles), 2 add, 3 ret and 1: 5. A byte takes as long.
    assert_eq!((once("ibex", USES_A_WORD, &[64]), once("ibex", USES_A_BYTE, &[64])), (5, 5));
    // 0 sw (2), 2 addi, 3 ret and 1: 5.
    assert_eq!(once("ibex", STORES, &[64]), 5);
    // 0 mul (3), 3 mulhu (4), 7 add, 8 add, 9 ret and 1: 11.
    assert_eq!(once("ibex", TWO_PRODUCTS, &[3, 5]), 11);
    // 0 divu (38), 38 addi, 39 add, 40 ret and 1: 42.
    assert_eq!(once("ibex", DIVIDES, &[100, 7]), 42);
    // 4 rounds of 2, three branches taken (+2), ret and 1: 16; with the branch target ALU 13.
    assert_eq!(once("ibex", COUNTDOWN, &[4]), 16);
    assert_eq!(calls("ibex", &[("timings.branch.taken_cycles", "1")], COUNTDOWN, &[4], 1), [13]);
    // 0 j (+1), 2 mv, 3 jal (+1), [5 add, 6 ret (+1)], 8 mv, 9 ret (+1): 11.
    assert_eq!(once("ibex", JUMPS, &[5]), 11);
}

#[test]
fn cv32e40p_has_four_stages() {
    // 0 lw, 2 add, 3 ret and 1: 5. 0 sw, 1 addi, 2 ret and 1: 4.
    assert_eq!((once("cv32e40p", USES_A_WORD, &[64]), once("cv32e40p", STORES, &[64])), (5, 4));
    // 0 mul, 1 mulhu (5), 6 add, 7 add, 8 ret and 1: 10.
    assert_eq!(once("cv32e40p", TWO_PRODUCTS, &[3, 5]), 10);
    // 0 divu (35), 35 addi, 36 add, 37 ret and 1: 39.
    assert_eq!(once("cv32e40p", DIVIDES, &[100, 7]), 39);
    // 4 rounds of 2, three branches taken (+2), ret and 1: 16.
    assert_eq!(once("cv32e40p", COUNTDOWN, &[4]), 16);
}
