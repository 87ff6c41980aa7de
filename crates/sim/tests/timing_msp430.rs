//! Every timing rule of `machines/msp430.toml`, worked out by hand: the cycles are those of TI's user's guide (SLAU049).
//!
//! The number before each instruction is the cycle it issues in; `ret` takes 3 cycles.

mod common;

use ciphermill_sim::{SimOptions, Simulator};
use common::{assemble, real};
use std::sync::Arc;

fn run(text: &str, args: &[u64]) -> (u64, Vec<u64>) {
    let mut program = assemble(real("msp430", &[]), text);
    // Return addresses and frames are on the stack.
    let machine = program.machine.clone();
    let insts =
        program.funcs.iter_mut().flat_map(|f| &mut f.blocks).flat_map(|b| &mut b.bundles).flat_map(|b| &mut b.insts);
    for inst in insts {
        let name = &machine.instrs[usize::from(inst.instr.0)].name;
        if ["call", "ret"].contains(&name.as_str()) || name.starts_with("frame_") {
            inst.space = ciphermill_ir::Space::Stack;
        }
    }
    let mut s = Simulator::new(Arc::new(program), SimOptions::default()).unwrap();
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
    // 0 add, 1 addc, 2 ret: 5. Arguments and results are of 32 bits, in two registers each.
    let sum = |a: u64, b: u64| run("func f 4 2\n add r12, r14\n addc r13, r15\n ret", &[a, b]);
    assert_eq!(sum(0x0000_ffff, 1), (5, vec![0x0001_0000]));
    assert_eq!(sum(0xffff_ffff, 2), (5, vec![1]));
    // The carry of a difference is no borrow: 0 sub, 1 subc, 2 borrow (ones, if there was one), 3 ret: 6.
    let less = |a: u64, b: u64| {
        let (taken, found) = run("func f 4 2\n sub r12, r14\n subc r13, r15\n borrow r12\n ret", &[a, b]);
        (taken, found[0] & 0xffff)
    };
    assert_eq!(less(0x0001_0000, 1), (6, 0));
    assert_eq!(less(1, 0x0001_0000), (6, 0xffff));
    // Right by one bit, the carry cleared first: 0 lsr (2), 2 rrc, 3 ret: 6. With the sign: 0 rra, 1 rrc, 2 ret: 5.
    assert_eq!(run("func f 2 2\n lsr r13\n rrc r12\n ret", &[0x8765_4321]), (6, vec![0x43b2_a190]));
    assert_eq!(run("func f 2 2\n rra r13\n rrc r12\n ret", &[0x8765_4321]), (5, vec![0xc3b2_a190]));
    assert_eq!(run("func f 2 2\n swpb r12\n swpb r13\n ret", &[0x8765_4321]), (5, vec![0x6587_2143]));
}

#[test]
fn six_constants_are_free() {
    // 0 mov #1, 1 xor #-1, 2 mov #3 (2), 4 and #12 (2), 6 ret: 9.
    assert_eq!(
        cycles("func f 0 0\n mov_imm_c r12, 1\n xor_imm_n r12, 65535\n mov_imm_w r13, 3\n and_imm_w r13, 12\n ret"),
        9
    );
    // 0 frame_add #-8 (2), 2 frame_add #8, 3 ret: 6.
    assert_eq!(cycles("func f 0 0\n frame_add r1, r1, -8\n frame_add_c r1, r1, 8\n ret"), 6);
}

#[test]
fn operands_in_memory_take_cycles_by_their_mode() {
    // 0 mov #0x1200 (2), 2 mov #7 to x(Rm) (5), 7 mov @Rn (2), 9 mov x(Rn) (3), 12 xor &EDE (3), 15 ret: 18.
    let text = "func f 0 2\n mov_imm_w r13, 4608\n store_imm_w_d 7, r13, 2\n load_i r12, r13\n load_d r12, r13, 2\n xor_m_a r12, 4608\n ret";
    assert_eq!(cycles(text), 18);
    // 0 mov #0x1200 (2), 2 mov Rn to x(Rm) (4), 6 xor Rn to &EDE (4), 10 mov.b @Rn (2), 12 ret: 15.
    let text = "func f 0 2\n mov_imm_w r13, 4608\n store_d r13, r13, 0\n xor_t_a r13, 4610\n load_b_i r12, r13\n ret";
    assert_eq!(cycles(text), 15);
    // A spilled operand: 0 frame_add (2), 2 frame_store (4), 6 frame_sum (3), 9 frame_add_c, 10 ret: 13.
    let text = "func f 2 2\n frame_add r1, r1, -4\n frame_store r12, r1, 2\n frame_sum r12, r1, 2\n frame_add_c r1, r1, 4\n ret";
    let (taken, twice) = run(text, &[0x1234]);
    assert_eq!((taken, twice[0] & 0xffff), (13, 0x2468));
}

#[test]
fn products_go_through_the_multiplier() {
    // 0 mul (14), 14 ret: 17; the lower word alone: 0 mul_low (11), 11 ret: 14.
    assert_eq!(run("func f 4 2\n mul r12, r13, r12, r14\n ret", &[60_000, 50_000]), (17, vec![3_000_000_000]));
    let (taken, low) = run("func f 4 2\n mul_low r12, r12, r14\n ret", &[300, 300]);
    assert_eq!((taken, low[0] & 0xffff), (14, 90_000 & 0xffff));
}

#[test]
fn jumps_take_two_cycles_taken_or_not() {
    // 0 mov #3 (2); three rounds of sub #1 (1) and jne (2); 11 ret: 14.
    assert_eq!(cycles("func f 0 0\n mov_imm_w r12, 3\n again:\n sub_imm_c r12, 1\n jne again\n ret"), 14);
    // 0 jmp (2), 2 ret: 5.
    assert_eq!(cycles("func f 0 0\n jmp on\n on:\n ret"), 5);
    // A thousand rounds of call (5), ret (3), sub #1 (1) and jne (2), after mov (2) and before ret (3).
    let rounds =
        "func f 0 0\n mov_imm_w r12, 1000\n again:\n call @g\n sub_imm_c r12, 1\n jne again\n ret\n func g 0 0\n ret";
    assert_eq!(cycles(rounds), 2 + 1000 * 11 + 3);
    // 0 call (5), 5 ret (3), 8 ret: 11.
    assert_eq!(cycles("func f 0 0\n call @g\n ret\n func g 0 0\n ret"), 11);
}

#[test]
fn far_targets_are_branched_to() {
    let over = |jump: &str, words: usize| {
        format!("func f 0 0\n cmp r12, r12\n {jump} over\n {} over:\n ret", "nop\n".repeat(words))
    };
    // 0 cmp, 1 jeq (2), 3 ret: 6. Out of reach: the opposite jump (2) and BR (3): 0 cmp, 1, 6 ret: 9.
    assert_eq!(cycles(&over("jeq", 511)), 6);
    assert_eq!(cycles(&over("jeq", 512)), 9);
    // Not taken: 0 cmp, 1 jne (2), 3 to 513 nop, 514 ret: 517; out of reach the opposite jump is: 1 + 2 + 512 + 3.
    assert_eq!(cycles(&over("jne", 511)), 517);
    assert_eq!(cycles(&over("jne", 512)), 518);
    // 0 jmp (2), 2 ret: 5; out of reach BR (3), 3 ret: 6.
    let jump = |words: usize| format!("func f 0 0\n jmp over\n {} over:\n ret", "nop\n".repeat(words));
    assert_eq!(cycles(&jump(511)), 5);
    assert_eq!(cycles(&jump(512)), 6);
}
