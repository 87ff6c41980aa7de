//! Every timing rule of `machines/leon2.toml`, worked out by hand.
//!
//! The number before each instruction is the cycle it issues in; the total is
//! the first cycle in which one after it could. A leaf function ends with
//! `retl` (2 cycles: jmpl) and its delay slot (1): 3 cycles.

mod common;

use ciphermill_sim::{SimOptions, Simulator, Stats};
use common::{assemble, real};
use std::sync::Arc;

fn run_with(set: &[(&str, &str)], text: &str, args: &[u64]) -> (Vec<u64>, Stats) {
    let program = Arc::new(assemble(real("leon2", set), text));
    let mut s = Simulator::new(program, SimOptions::default()).unwrap();
    let results = s.call(0, args).unwrap();
    let stats = s.stats();
    assert_eq!(stats.cycles, stats.issue_cycles + stats.stalls.total());
    (results, stats)
}

fn cycles(text: &str, args: &[u64]) -> u64 {
    run_with(&[], text, args).1.cycles
}

#[test]
fn alu_one_cycle() {
    // 0 sethi, 1 or, 2 sll, 3 retl, 5 xor in its slot: 6.
    let (results, stats) = run_with(
        &[],
        "
        func f 1 1
            sethi 1024, o1
            or_imm o1, 7, o1
            sll_imm o1, 1, o1
            retl
            xor o0, o1, o0
    ",
        &[1],
    );
    assert_eq!((results[0], stats.cycles), (1 ^ 2062, 6));
}

#[test]
fn load_one_cycle_and_one_of_delay() {
    // 0 ld, 1 ld (nothing waits), 2 add of the first, 3 add of the second, 4 retl, 6 nop: 7.
    assert_eq!(
        cycles(
            "
        func f 1 0
            ld o0, 0, o1
            ld o0, 4, o2
            add o1, o1, o1
            add o2, o2, o2
            retl
            nop
    ",
            &[64]
        ),
        7
    );
    // 0 ld, 2 add (one cycle of delay), 3 retl, 5 nop: 6.
    assert_eq!(
        cycles(
            "
        func f 1 0
            ld o0, 0, o1
            add o1, o1, o1
            retl
            nop
    ",
            &[64]
        ),
        6
    );
    // The same for an address: 0 ld, 2 ldub, 3 retl, 5 nop: 6.
    assert_eq!(
        cycles(
            "
        func f 1 0
            ld o0, 0, o1
            ldub_reg o0, o1, o1
            retl
            nop
    ",
            &[64]
        ),
        6
    );
}

#[test]
fn store_two_cycles() {
    // 0 st, 2 stb, 4 sth, 6 retl, 8 nop: 9.
    assert_eq!(
        cycles(
            "
        func f 1 0
            st g0, o0, 0
            stb g0, o0, 4
            sth g0, o0, 6
            retl
            nop
    ",
            &[64]
        ),
        9
    );
}

#[test]
fn multiply_five_divide_thirty_five() {
    // 0 umul, 5 rd %y, 6 retl, 8 nop: 9.
    let (results, stats) = run_with(
        &[],
        "
        func f 2 1
            umul o0, o1, o2
            rdy o0
            retl
            nop
    ",
        &[0x8000_0000, 6],
    );
    assert_eq!((results[0], stats.cycles, stats.stalls.unit), (3, 9, 5));
    // 0 wr %y (with its three nops 4), 4 udiv, 39 retl, 41 nop: 42.
    let (results, stats) = run_with(
        &[],
        "
        func f 2 1
            wry g0
            udiv o0, o1, o0
            retl
            nop
    ",
        &[100, 7],
    );
    assert_eq!((results[0], stats.cycles), (14, 42));
    // 0 sra, 1 wr %y, 5 sdiv, 40 retl, 42 nop: 43.
    let (results, stats) = run_with(
        &[],
        "
        func f 2 1
            sra_imm o0, 31, o2
            wry o2
            sdiv o0, o1, o0
            retl
            nop
    ",
        &[0xffff_ff9c, 7],
    );
    assert_eq!((results[0], stats.cycles), (0xffff_fff2, 43));
}

#[test]
fn branch_one_cycle_and_its_slot() {
    // A round: subcc, bne, add in the slot: 3, taken or not; then retl and nop 3.
    let text = "
        func f 1 1
            mov g0, o1
        again:
            subcc_imm o0, 1, o0
            bne again
            add_imm o1, 1, o1
            retl
            mov o1, o0
    ";
    let (results, stats) = run_with(&[], text, &[4]);
    assert_eq!((results[0], stats.cycles), (4, 1 + 4 * 3 + 3));
    assert_eq!((stats.branches_taken, stats.branches_untaken), (3, 1));
    // Annulled: the slot executes only when taken, and takes its cycle anyway.
    let (results, stats) = run_with(&[], &text.replace("bne again", "bne_a again"), &[4]);
    assert_eq!((results[0], stats.cycles, stats.stalls.branch), (3, 1 + 4 * 3 + 3, 1));
}

#[test]
fn condition_codes_at_once_or_held() {
    // 0 cmp, 1 be (untaken), 2 nop, 3 retl, 5 nop: 6. With ICCHOLD the branch waits for 2: 7.
    let text = "
        func f 1 0
            cmp_imm o0, 5
            be out
            nop
        out:
            retl
            nop
    ";
    assert_eq!(cycles(text, &[4]), 6);
    assert_eq!(cycles(text, &[5]), 6);
    let held = run_with(&[("timings.alu.dest_latency.icc", "2")], text, &[4]).1;
    assert_eq!((held.cycles, held.stalls.operand_wait), (7, 1));
}

#[test]
fn carry_chains() {
    // 64-bit addition: 0 addcc, 1 addx, 2 retl, 4 mov: 5.
    let (results, stats) = run_with(
        &[],
        "
        func f 4 2
            addcc o0, o2, o0
            addx o1, o3, o1
            retl
            nop
    ",
        &[0xffff_ffff, 1, 2, 3],
    );
    assert_eq!((results, stats.cycles), (vec![1, 5], 5));
}

#[test]
fn call_and_return() {
    // 0 mov, 1 call, 2 slot, [callee: 3 retl, 5 add], 6 mov, 7 retl, 9 nop: 10.
    let (results, stats) = run_with(
        &[],
        "
        func f 1 1
            mov o7, g1
            call @g
            add_imm o0, 1, o0
            mov g1, o7
            retl
            nop
        func g 1 1
            retl
            add o0, o0, o0
    ",
        &[5],
    );
    assert_eq!((results[0], stats.cycles, stats.jumps), (12, 10, 3));
}

#[test]
fn windows() {
    // A level: 0 save, 1 cmp, 2 be, 3 sub (slot), 4 call, 5 mov (slot), callee, then ret (2) and
    // restore (1): 9. The last level takes the branch: save, cmp, be, sub, ret (2), restore: 7.
    let text = "
        func f 1 1
            save -96
            cmp_imm i0, 0
            be out
            sub_imm i0, 1, o0
            call @f
            nop
        out:
            ret
            restore
    ";
    let program = Arc::new(assemble(real("leon2", &[]), text));
    // Eight windows, one kept for the trap handler: seven in use. The caller has one, so
    // n + 1 activations overflow n + 1 - 6 times, and underflow as often on the way back.
    for (n, traps) in [(0, 0), (5, 0), (6, 1), (20, 15)] {
        let mut s = Simulator::new(program.clone(), SimOptions::default()).unwrap();
        s.call(0, &[n]).unwrap();
        let stats = s.stats();
        assert_eq!((stats.window_overflows, stats.window_underflows), (traps, traps), "{n}");
        assert_eq!(stats.cycles, 9 * n + 7 + (44 + 36) * traps);
        assert_eq!(stats.stalls.window, (44 + 36) * traps);
    }
}

#[test]
fn window_registers_turn() {
    // The callee sees the caller's outs as ins, has locals of its own, and hands back through ins.
    let (results, _) = run_with(
        &[],
        "
        func f 2 2
            save -96
            mov i0, l0
            mov i1, o0
            call @g
            mov_imm 9, o1
            add l0, o0, i0
            ret
            restore
        func g 2 1
            save -96
            mov_imm 1000, l0
            sub i0, i1, i0
            ret
            restore
    ",
        &[5, 30],
    );
    // i0 = 5 + (30 - 9); o1 of the caller is f's i1, unchanged.
    assert_eq!(results, [26, 30]);
}

#[test]
fn caches() {
    let icache = ("memory.icache.enabled", "true");
    let dcache = ("memory.dcache.enabled", "true");
    let text = "
        func f 1 0
            ld o0, 0, o1
            ld o0, 4, o2
            ld o0, 32, o3
            st o1, o0, 64
            ld o0, 64, o3
            retl
            nop
    ";
    // 0 ld, 1 ld, 2 ld, 3 st, 5 ld, 6 retl, 8 nop: 9.
    assert_eq!(cycles(text, &[4096]), 9);
    // Seven instructions, 28 bytes: one line of 32, a fill of 24.
    assert_eq!(run_with(&[icache], text, &[4096]).1.cycles, 9 + 24);
    // Lines of 32: addresses 0 and 4 one fill, 32 one, 64 one (the store allocates nothing): 3 of 24.
    let stats = run_with(&[dcache], text, &[4096]).1;
    assert_eq!((stats.cycles, stats.stalls.dcache), (9 + 72, 72));
    let d = stats.dcache.unwrap();
    assert_eq!((d.reads, d.read_misses, d.writes, d.write_misses), (4, 3, 1, 1));
    let both = run_with(&[icache, dcache], text, &[4096]).1;
    assert_eq!(both.cycles, 9 + 24 + 72);
}
