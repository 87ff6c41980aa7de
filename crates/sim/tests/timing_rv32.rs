//! Every timing rule of `machines/rv32.toml`, worked out by hand.
//!
//! The number before each instruction is the cycle it issues in; the total is
//! the first cycle in which one after it could. A function ends with `ret`:
//! 1 cycle and 2 of flushed instructions.

mod common;

use ciphermill_sim::{SimOptions, Simulator, Stats};
use common::{assemble, real};
use std::sync::Arc;

fn run_with(set: &[(&str, &str)], text: &str, args: &[u64]) -> (Vec<u64>, Stats) {
    run_on("rv32", set, text, args)
}

fn run_on(machine: &str, set: &[(&str, &str)], text: &str, args: &[u64]) -> (Vec<u64>, Stats) {
    let program = Arc::new(assemble(real(machine, set), text));
    let mut s = Simulator::new(program, SimOptions::default()).unwrap();
    let results = s.call(0, args).unwrap();
    let stats = s.stats();
    assert_eq!(stats.cycles, stats.issue_cycles + stats.stalls.total());
    (results, stats)
}

fn run(text: &str, args: &[u64]) -> (Vec<u64>, u64) {
    let (results, stats) = run_with(&[], text, args);
    (results, stats.cycles)
}

#[test]
fn alu_one_cycle() {
    // 0 lui, 1 addi, 2 xor, 3 ret: 3 + 3.
    let text = "
        func f 1 1
            lui a1, 4096
            addi a1, a1, -1
            xor a0, a0, a1
            ret
    ";
    assert_eq!(run(text, &[1]), (vec![0xfff ^ 1], 6));
}

#[test]
fn load_use_bubble() {
    // 0 lw, 2 add, 3 ret: 6.
    assert_eq!(
        run(
            "
        func f 1 0
            lw a1, 0, a0
            add a1, a1, a1
            ret
    ",
            &[64]
        )
        .1,
        6
    );
    // 0 lw, 1 lbu, 2 add, 3 add, 4 ret: 7, no bubble.
    assert_eq!(
        run(
            "
        func f 1 0
            lw a1, 0, a0
            lbu a2, 4, a0
            add a1, a1, a1
            add a2, a2, a2
            ret
    ",
            &[64]
        )
        .1,
        7
    );
    // A store's value counts as a use: 0 lw, 2 sw, 3 ret: 6.
    assert_eq!(
        run(
            "
        func f 1 0
            lw a1, 0, a0
            sw a1, 4, a0
            ret
    ",
            &[64]
        )
        .1,
        6
    );
}

#[test]
fn store_one_cycle() {
    // 0 sw, 1 sb, 2 sh, 3 ret: 6.
    assert_eq!(
        run(
            "
        func f 1 0
            sw zero, 0, a0
            sb zero, 4, a0
            sh zero, 6, a0
            ret
    ",
            &[64]
        )
        .1,
        6
    );
}

#[test]
fn multiplier_is_pipelined() {
    // 0 mul, 3 add: result after 3; 4 ret: 7.
    assert_eq!(
        run(
            "
        func f 2 1
            mul a0, a0, a1
            add a0, a0, a0
            ret
    ",
            &[3, 5]
        ),
        (vec![30], 7)
    );
    // 0 mul, 1 mulhu, 3 add of the first, 4 add of the second, 5 ret: 8.
    assert_eq!(
        run(
            "
        func f 2 2
            mul a2, a0, a1
            mulhu a3, a0, a1
            add a0, a2, a2
            add a1, a3, a3
            ret
    ",
            &[0x8000_0000, 6]
        ),
        (vec![0, 6], 8)
    );
}

#[test]
fn divider_stops_the_pipeline() {
    // 0 divu, 34 addi (though independent), 35 ret: 38.
    assert_eq!(
        run(
            "
        func f 2 1
            divu a0, a0, a1
            addi a1, a1, 1
            ret
    ",
            &[100, 7]
        ),
        (vec![14], 38)
    );
    let rem = "
        func f 2 2
            rem a2, a0, a1
            div a1, a0, a1
            mv a0, a2
            ret
    ";
    // RISC-V's answers to what traps elsewhere.
    assert_eq!(run(rem, &[7, 0]).0, [7, 0xffff_ffff]);
    assert_eq!(run(rem, &[0x8000_0000, 0xffff_ffff]).0, [0, 0x8000_0000]);
    assert_eq!(run(rem, &[0xffff_fff9, 2]), (vec![0xffff_ffff, 0xffff_fffd], 34 + 34 + 1 + 3));
}

const COUNTDOWN: &str = "
    func f 1 0
    again:
        addi a0, a0, -1
        bnez a0, again
        ret
";

#[test]
fn taken_branches_flush_two() {
    // Four rounds of 2, three of them taken (+2), ret 3: 8 + 6 + 3.
    let (_, stats) = run_with(&[], COUNTDOWN, &[4]);
    assert_eq!((stats.cycles, stats.stalls.branch), (17, 8));
    assert_eq!((stats.branches_taken, stats.branches_untaken), (3, 1));
}

/// Machine scarv sends changes of control flow from its last stage.
#[test]
fn scarv_loses_five_cycles() {
    // Four rounds of 2, three of them taken (+5), ret 6: 8 + 15 + 6.
    assert_eq!(run_on("scarv", &[], COUNTDOWN, &[4]).1.cycles, 29);
    // 0 j (+5), 6 mv, 7 jal (+5), [13 add, 14 ret (+5)], 20 mv, 21 ret: 27.
    let (results, stats) = run_on("scarv", &[], JUMPS, &[5]);
    assert_eq!((results, stats.cycles), (vec![10], 27));
}

#[test]
fn backward_taken_when_asked_for() {
    // Guessed taken: three times right, once wrong, and `untaken_cycles` is 0: 8 + 3. With it 2: + 2.
    let set = [("branch.predictor", "backward_taken")];
    assert_eq!(run_with(&set, COUNTDOWN, &[4]).1.cycles, 11);
    let set = [set[0], ("timings.branch.untaken_cycles", "2")];
    assert_eq!(run_with(&set, COUNTDOWN, &[4]).1.cycles, 13);
}

#[test]
fn jumps_calls_and_returns() {
    // 0 j (+1), 2 mv, 3 jal (+1), [5 add, 6 ret (+2)], 9 mv, 10 ret: 13.
    assert_eq!(run(JUMPS, &[5]), (vec![10], 13));
}

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
fn indirect_calls_cost_like_returns() {
    // 0 mv, 1 jalr (+2), [4 addi, 5 ret (+2)], 8 mv, 9 ret (+2): 12. The callee's address comes in.
    let program = Arc::new(assemble(
        real("rv32", &[]),
        "
        func f 1 1
            mv t0, ra
            call_reg a0
            mv ra, t0
            ret
        func g 0 1
            li a0, 77
            ret
    ",
    ));
    let address = u64::from(ciphermill_program::layout::Layout::new(&program).func(1));
    let mut s = Simulator::new(program, SimOptions::default()).unwrap();
    assert_eq!(s.call(0, &[address]).unwrap(), [77]);
    assert_eq!(s.stats().cycles, 12);
}

#[test]
fn caches() {
    let text = "
        func f 1 0
            lw a1, 0, a0
            lw a2, 4, a0
            lw a3, 32, a0
            sw a1, 64, a0
            lw a3, 64, a0
            ret
    ";
    // Six instructions and 2: 8 cycles; one line of code (24), three of data (24 each).
    assert_eq!(run(text, &[4096]).1, 8);
    let set = [("memory.icache.enabled", "true"), ("memory.dcache.enabled", "true")];
    let (_, stats) = run_with(&set, text, &[4096]);
    assert_eq!((stats.cycles, stats.stalls.icache, stats.stalls.dcache), (8 + 24 + 72, 24, 72));
    // Write-back: the store allocates, the load after it hits.
    let set = [("memory.dcache.enabled", "true"), ("memory.dcache.write", "back")];
    let (_, stats) = run_with(&set, text, &[4096]);
    assert_eq!((stats.cycles, stats.dcache.unwrap().write_misses), (8 + 72, 1));
}
