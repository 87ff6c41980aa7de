//! Every timing rule of `machines/avr.toml`, worked out by hand: the cycles are those of Microchip's instruction set manual.
//!
//! The number before each instruction is the cycle it issues in; `ret` takes 4 cycles.

mod common;

use ciphermill_sim::{SimOptions, Simulator};
use common::{assemble, real};
use std::sync::Arc;

/// A program that has tables in flash.
fn simulator(text: &str) -> Simulator {
    let mut program = assemble(real("avr", &[]), text);
    program.flash = program.machine.memory.flash();
    // Return addresses and frames are on the stacks.
    let machine = program.machine.clone();
    let insts =
        program.funcs.iter_mut().flat_map(|f| &mut f.blocks).flat_map(|b| &mut b.bundles).flat_map(|b| &mut b.insts);
    for inst in insts {
        let name = &machine.instrs[usize::from(inst.instr.0)].name;
        if name == "lpm" {
            inst.space = ciphermill_ir::Space::Flash;
        }
        if ["call", "icall", "ret", "frame_load", "frame_store", "far_load", "far_store"].contains(&name.as_str()) {
            inst.space = ciphermill_ir::Space::Stack;
        }
    }
    Simulator::new(Arc::new(program), SimOptions::default()).unwrap()
}

fn run(text: &str, args: &[u64]) -> (u64, Vec<u64>) {
    let mut s = simulator(text);
    let results = s.call(0, args).unwrap();
    let stats = s.stats();
    assert_eq!(stats.cycles, stats.issue_cycles + stats.stalls.total());
    (stats.cycles, results)
}

fn cycles(text: &str) -> u64 {
    run(text, &[]).0
}

#[test]
fn sums_hand_a_carry_on() {
    // 0 add, 1 adc, 2 adc, 3 adc, 4 ret: 8. Arguments and results are of 32 bits, in four registers each.
    let sum =
        |a: u64, b: u64| run("func f 8 4\n add r22, r18\n adc r23, r19\n adc r24, r20\n adc r25, r21\n ret", &[a, b]);
    assert_eq!(sum(0x00ff_ffff, 1), (8, vec![0x0100_0000]));
    assert_eq!(sum(0xffff_ffff, 2), (8, vec![1]));
    let less = |a: u64, b: u64| {
        run("func f 8 4\n sub r22, r18\n sbc r23, r19\n sbc r24, r20\n sbc r25, r21\n ret", &[a, b]).1[0]
    };
    assert_eq!(less(0x0100_0000, 1), 0x00ff_ffff);
    // Right by one bit, from the top down.
    let half = |a: u64| run("func f 4 4\n lsr r25\n ror r24\n ror r23\n ror r22\n ret", &[a]);
    assert_eq!(half(0x8765_4321), (8, vec![0x43b2_a190]));
}

#[test]
fn memory_and_products_take_two_cycles() {
    // 0 ldi, 1 ldi, 2 std, 4 ldd, 6 sts, 8 lds, 10 ret: 14.
    let text = "func f 0 0\n ldi r30, 0\n ldi r31, 4\n std r18, r30, r31, 1\n ldd r19, r30, r31, 1\n sts r19, 1024\n lds r19, 1024\n ret";
    assert_eq!(cycles(text), 14);
    // 0 mul, 2 mov, 3 mov, 4 ret: 8.
    let (taken, product) = run("func f 8 4\n mul r22, r18\n mov r22, r0\n mov r23, r1\n ret", &[200, 100]);
    assert_eq!((taken, product[0] & 0xffff), (8, 20_000));
    // Two registers at once: 0 movw, 1 ret: 5.
    assert_eq!(cycles("func f 0 0\n movw r18, r19, r20, r21\n ret"), 5);
}

#[test]
fn branches_take_a_cycle_more_when_taken() {
    // 0 ldi; three rounds of subi and brne, two of them taken (+1); 9 ret: 13.
    assert_eq!(cycles("func f 0 0\n ldi r18, 3\n again:\n subi r18, 1\n brne again\n ret"), 13);
    // 0 rjmp (2), 2 ret: 6.
    assert_eq!(cycles("func f 0 0\n rjmp on\n on:\n ret"), 6);
    // A call and its return take 4 each: 0 call, 4 ret, 8 ret: 12.
    assert_eq!(cycles("func f 0 0\n call @g\n ret\n func g 0 0\n ret"), 12);
}

#[test]
fn far_targets_are_jumped_to() {
    let over = |branch: &str, words: usize| {
        format!("func f 0 0\n cp r18, r18\n {branch} over\n {} over:\n ret", "nop\n".repeat(words))
    };
    // 0 cp, 1 breq (2), 3 ret: 7. Out of reach: the opposite branch (1) and a jump (3): 0 cp, 1, 5 ret: 9.
    assert_eq!(cycles(&over("breq", 63)), 7);
    assert_eq!(cycles(&over("breq", 64)), 9);
    // Not taken: 0 cp, 1 brne, 2 to 64 nop, 65 ret: 69; out of reach the opposite branch is (2): 1 + 2 + 64 + 4.
    assert_eq!(cycles(&over("brne", 63)), 69);
    assert_eq!(cycles(&over("brne", 64)), 71);
    // 0 rjmp (2), 2 ret: 6; beyond 2 K words a jump (3), 3 ret: 7.
    let jump = |words: usize| format!("func f 0 0\n rjmp over\n {} over:\n ret", "nop\n".repeat(words));
    assert_eq!(cycles(&jump(2047)), 6);
    assert_eq!(cycles(&jump(2048)), 7);
}

#[test]
fn long_frames_are_reached_by_moving_the_pointer() {
    // 0 frame_add (2), 2 frame_store (2), 4 far_load (8), 12 frame_add, 14 ret: 18.
    let text =
        "func f 0 0\n frame_add Y, Y, -100\n frame_store r18, Y, 5\n far_load r18, Y, 90\n frame_add Y, Y, 100\n ret";
    assert_eq!(cycles(text), 18);
}

#[test]
fn a_call_by_pointer_takes_three_cycles_and_the_pointer_counts_words() {
    // f has 8 bytes, so g begins 16 behind it. 0 ldi, 1 ldi, 2 icall, 5 ldi, 6 ret, 10 ret: 14.
    let text = "func f 0 4\n ldi r30, 8\n ldi r31, 0\n icall r30, r31\n ret\nfunc g 0 4\n ldi r22, 7\n ret";
    let (taken, results) = run(text, &[]);
    assert_eq!((taken, results[0] & 0xff), (14, 7));
}

#[test]
fn loads_from_flash_take_three_cycles_and_find_nothing_else() {
    // 0 ldi, 1 ldi, 2 lpm, 5 ret: 9.
    let load = |name: &str, high: u32| format!("func f 0 0\n ldi r30, 0\n ldi r31, {high}\n {name}\n ret");
    assert_eq!(cycles(&load("lpm r18, r30, r31", 0x40)), 9);
    // RAM ends at 2304.
    for wrong in [load("lpm r18, r30, r31", 8), load("ldd r18, r30, r31, 0", 9)] {
        let stop = simulator(&wrong).call(0, &[]).unwrap_err();
        assert!(stop.to_string().contains("a table in flash"), "{stop}");
    }
    assert_eq!(cycles(&load("ldd r18, r30, r31, 0", 8)), 8);
}
