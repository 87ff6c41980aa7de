//! Every timing rule of the Cortex-M machines, worked out by hand, and the rules of the format that they
//! need, on the toy machine.
//!
//! The number before each instruction is the cycle it issues in; the total is the first cycle in which
//! one after it could. `ret` takes 1 cycle and 2 on the M3, the M4 and the M0, 1 and 1 on the M0+.

mod common;

use ciphermill_sim::{SimOptions, Simulator};
use common::{assemble, real, toy, tune};
use std::sync::Arc;

fn cycles(machine: ciphermill_machine::Machine, text: &str, args: &[u64]) -> u64 {
    let mut s = Simulator::new(Arc::new(assemble(machine, text)), SimOptions::default()).unwrap();
    s.call(0, args).unwrap();
    let stats = s.stats();
    assert_eq!(stats.cycles, stats.issue_cycles + stats.stalls.total());
    stats.cycles
}

fn m4(text: &str, args: &[u64]) -> u64 {
    cycles(real("cortex-m4", &[]), text, args)
}

#[test]
fn a_load_behind_a_load_is_a_cycle_cheaper() {
    // 0 ldr, 2 add, 3 ret: 6.
    assert_eq!(m4("func f 1 0\n ldr_i5 r1, r0, 0\n add_r r1, r1, r1\n ret", &[64]), 6);
    // 0 ldr, 1 ldr, 2 ldrb, 4 add, 5 ret: 8.
    let text = "
        func f 1 0
            ldr_i5 r1, r0, 0
            ldr_i5 r2, r0, 4
            ldrb_i5 r3, r0, 8
            add_r r1, r1, r2
            ret
    ";
    assert_eq!(m4(text, &[64]), 8);
    // What was loaded is the address: 0 ldr, 2 ldr, 4 ret: 7.
    assert_eq!(m4("func f 1 0\n ldr_i5 r1, r0, 0\n ldr_i5 r2, r1, 0\n ret", &[64]), 7);
    // A store with an index follows as soon, and holds the pipeline: 0 ldr, 1 str, 3 ret: 6.
    assert_eq!(m4("func f 2 0\n ldr_i5 r2, r0, 0\n str_x r2, r0, r1\n ret", &[64, 4]), 6);
    // Alone: 0 str, 2 ret: 5. With a displacement: 0 str, 1 ret: 4; behind a load 0 ldr, 2 str, 3 ret: 6.
    assert_eq!(m4("func f 2 0\n str_x r1, r0, r1\n ret", &[64, 4]), 5);
    assert_eq!(m4("func f 2 0\n str_i5 r1, r0, 4\n ret", &[64, 4]), 4);
    assert_eq!(m4("func f 1 0\n ldr_i5 r2, r0, 0\n str_i5 r2, r0, 4\n ret", &[64]), 6);
}

#[test]
fn addresses_have_to_be_ready_a_cycle_before() {
    // 0 addw, 2 ldr, 4 ret: 7; with another between: 0 addw, 1 mov, 2 ldr, 4 ret: 7.
    assert_eq!(m4("func f 1 0\n addw r0, r0, 4\n ldr_i5 r1, r0, 0\n ret", &[64]), 7);
    assert_eq!(m4("func f 1 0\n addw r0, r0, 4\n mov r2, r0\n ldr_i5 r1, r0, 0\n ret", &[64]), 7);
    // The value that is stored does not: 0 mov, 1 str, 2 ret: 5.
    assert_eq!(m4("func f 1 0\n mov r1, r0\n str_i5 r1, r0, 0\n ret", &[64]), 5);
}

#[test]
fn taken_branches_pay_for_split_targets() {
    let rounds =
        |before: &str| format!("func f 1 0\n {before}\n again:\n subw r0, r0, 1\n cmp_i8 r0, 0\n bne again\n ret");
    // 4 rounds of 3, three taken (+1), ret 3: 18.
    assert_eq!(m4(&rounds(""), &[4]), 18);
    // Two bytes before it: the target of four lies in two words, +1 each time. 1 + 12 + 6 + 3.
    assert_eq!(m4(&rounds("nop"), &[4]), 22);
    assert_eq!(cycles(real("cortex-m4", &[("branch.split_target_cycles", "0")]), &rounds("nop"), &[4]), 19);
}

#[test]
fn products_and_moves() {
    // 0 mul, 1 mla, 2 umull, 3 ret: 6.
    let text = "func f 2 1\n mul r2, r0, r1\n mla r3, r0, r1, r2\n umull r0, r2, r3, r1\n ret";
    assert_eq!(m4(text, &[3, 5]), 6);
    // A product and two words: 0 umaal, 1 ret: 4.
    let both = "func f 2 2\n umaal r0, r1, r0, r1\n ret";
    assert_eq!(m4(both, &[3, 5]), 4);
    // With the largest words the sum just fits two: all ones.
    let mut s = Simulator::new(Arc::new(assemble(real("cortex-m4", &[]), both)), SimOptions::default()).unwrap();
    assert_eq!(s.call(0, &[0xffff_ffff, 0xffff_ffff]).unwrap(), [0xffff_ffff, 0xffff_ffff]);
    assert_eq!(s.call(0, &[3, 5]).unwrap(), [23, 0]);
    // The M3: 0 mul, 1 mla (2), 3 umull (5), 8 ret: 11.
    assert_eq!(cycles(real("cortex-m3", &[]), text, &[3, 5]), 11);
    // 0 cmp, 1 it and mov (2), 3 ret: 6.
    assert_eq!(m4("func f 2 1\n cmp_i8 r0, 3\n moveq r0, r1\n ret", &[3, 5]), 6);
}

#[test]
fn runs_of_registers_take_a_cycle_more_than_they_have_registers() {
    // 0 push, 3 mov, 4 pop, 7 ret: 10; on the M0+ ret takes 2: 9.
    let two = "func f 2 1\n push2 r0, r1 !stack\n mov r0, r1\n pop2 r0, r1 !stack\n ret";
    assert_eq!(m4(two, &[3, 5]), 10);
    assert_eq!(cycles(real("cortex-m0plus", &[]), two, &[3, 5]), 9);
    // What was pushed is back, the first at the lowest address: 3 and not 5.
    let mut s = Simulator::new(Arc::new(assemble(real("cortex-m4", &[]), two)), SimOptions::default()).unwrap();
    assert_eq!(s.call(0, &[3, 5]).unwrap(), [3]);
    // 0 push of four, 5 pop, 10 ret: 13.
    let four = "func f 0 0\n push4 r4, r5, r6, r7 !stack\n pop4 r4, r5, r6, r7 !stack\n ret";
    assert_eq!(m4(four, &[]), 13);
}

#[test]
fn several_words_take_a_cycle_more_than_there_are_and_overlap_with_nothing() {
    // 0 ldm (3), 3 add, 4 ret: 7.
    assert_eq!(m4("func f 1 0\n ldm2 r1, r2, r0\n add_r r1, r1, r2\n ret", &[64]), 7);
    // 0 ldm (3), 3 ldr (2), 5 ret: 8; the other way round 0 ldr (2), 2 ldm (3), 5 ret: 8.
    assert_eq!(m4("func f 1 0\n ldm2 r1, r2, r0\n ldr_i5 r3, r0, 8\n ret", &[64]), 8);
    assert_eq!(m4("func f 1 0\n ldr_i5 r3, r0, 8\n ldm2 r1, r2, r0\n ret", &[64]), 8);
    // 0 ldrd (3), 3 strd (3), 6 stm of three (4), 10 ldm of four (5), 15 ret: 18.
    let text = "
        func f 3 0
            ldrd r3, r12, r0, 8
            strd r1, r2, r0, 16
            stm3 r1, r2, r3, r0
            ldm4 r1, r2, r3, r12, r0
            ret
    ";
    assert_eq!(m4(text, &[64, 1, 2]), 18);
    // The M0+ moves the base: 0 stm of three (4), 4 subs, 5 ldm of three (4), 9 ret: 11.
    let text = "
        func f 4 1
            stm3 r1, r2, r3, r0
            subs_i8 r0, 12
            ldm3 r1, r2, r3, r0
            ret
    ";
    assert_eq!(cycles(real("cortex-m0plus", &[]), text, &[64, 7, 8, 9]), 11);
    let mut s = Simulator::new(Arc::new(assemble(real("cortex-m0plus", &[]), text)), SimOptions::default()).unwrap();
    assert_eq!(s.call(0, &[64, 7, 8, 9]).unwrap(), [76]);
}

#[test]
fn words_are_in_the_order_of_their_registers() {
    // Stored at 64: 7, 8, 9; the sum of the first loaded and twice the second: 23.
    let text = "
        func f 3 1
            addw r3, r2, 1
            stm3 r1, r2, r3, r0
            ldm3 r1, r3, r12, r0
            ldrd r2, r12, r0, 4
            add_r r0, r1, r3
            add_r r0, r0, r2
            ret
    ";
    let mut s = Simulator::new(Arc::new(assemble(real("cortex-m4", &[]), text)), SimOptions::default()).unwrap();
    assert_eq!(s.call(0, &[64, 7, 8]).unwrap(), [23]);
}

fn m0(machine: &str, text: &str, args: &[u64]) -> u64 {
    cycles(real(machine, &[]), text, args)
}

#[test]
fn two_stages_and_three() {
    // 0 ldr (2), 2 adds, 3 str (2), 5 ret: 7, and 8 on three stages.
    let text = "func f 1 0\n ldr_i5 r1, r0, 0\n adds r1, r1, r1\n str_i5 r1, r0, 4\n ret";
    assert_eq!(m0("cortex-m0plus", text, &[64]), 7);
    assert_eq!(m0("cortex-m0", text, &[64]), 8);
    // Loads do not overlap: 0 ldr, 2 ldrb, 4 ret: 6.
    assert_eq!(m0("cortex-m0plus", "func f 1 0\n ldr_i5 r1, r0, 0\n ldrb_i5 r2, r0, 8\n ret", &[64]), 6);
    // With its sign and a displacement, a load and an extension: 0 ldrb (2) and sxtb, 3 ret: 5.
    assert_eq!(m0("cortex-m0plus", "func f 1 0\n ldrsb_i r1, r0, 3\n ret", &[64]), 5);
    // A literal is a load: 0 ldr, 2 eors, 3 ret: 5.
    assert_eq!(m0("cortex-m0plus", "func f 1 0\n ldr_literal r1, 305419896\n eors r0, r1\n ret", &[64]), 5);
    // 0 muls, 1 ret: 3; with the small multiplier 0 muls, 32 ret: 34.
    let text = "func f 2 1\n muls r0, r1\n ret";
    assert_eq!(m0("cortex-m0plus", text, &[3, 5]), 3);
    let small = [("timings.mul.latency", "32"), ("timings.mul.issue_cycles", "32")];
    assert_eq!(cycles(real("cortex-m0plus", &small), text, &[3, 5]), 34);
}

#[test]
fn jumps_of_a_core_without_prediction() {
    // 4 rounds of 3, three of them taken (+1, +2), ret 2 and 3.
    let rounds = "func f 1 0\n again:\n subs_i8 r0, 1\n cmp_i8 r0, 0\n bne again\n ret";
    assert_eq!(m0("cortex-m0plus", rounds, &[4]), 12 + 3 + 2);
    assert_eq!(m0("cortex-m0", rounds, &[4]), 12 + 6 + 3);
    // 0 b (2), 2 ret: 4. The far jump is a BL: 0 bl (3), 3 ret. On three stages 3 and 4 cycles.
    let jump = |name: &str| format!("func f 1 0\n mov r1, lr\n {name} on\n on:\n bx r1");
    assert_eq!(m0("cortex-m0plus", &jump("b"), &[1]), 1 + 2 + 2);
    assert_eq!(m0("cortex-m0plus", &jump("b_far"), &[1]), 1 + 3 + 2);
    assert_eq!(m0("cortex-m0", &jump("b"), &[1]), 1 + 3 + 3);
    assert_eq!(m0("cortex-m0", &jump("b_far"), &[1]), 1 + 4 + 3);
}

#[test]
fn some_instructions_let_some_follow_sooner() {
    let mut m = toy();
    for name in ["ldw", "ldb"] {
        tune(&mut m, name, |i| {
            (i.timing, i.issue_cycles) = ("load".into(), 3);
            i.issue_before = vec![("load".into(), 1)];
        });
    }
    // 0 ldw, 1 ldb, 4 add, 5 ret: 6. Each by itself: 0 ldw, 3 add, 4 ldb, 7 ret: 8.
    assert_eq!(cycles(m.clone(), "func f 1 0\n ldw r2, r1, 0\n ldb r3, r1, 4\n add r2, r2, r3\n ret", &[64]), 6);
    assert_eq!(cycles(m, "func f 1 0\n ldw r2, r1, 0\n add r2, r2, r2\n ldb r3, r1, 4\n ret", &[64]), 8);
}

#[test]
fn what_is_read_early_is_remembered_over_a_jump() {
    let mut m = toy();
    tune(&mut m, "mul", |i| i.latency = 2);
    let text = "
        func f 1 0
            mul r2, r1, r1
            j on
        on:
            ldw r3, r2, 0
            ret
    ";
    // 0 mul, 1 j, 2 ldw, 3 ret: 4. Where the address has to be there a cycle before: 3 ldw, 4 ret: 5.
    assert_eq!(cycles(m.clone(), text, &[8]), 4);
    tune(&mut m, "ldw", |i| i.early = vec![(1, 1)]);
    assert_eq!(cycles(m, text, &[8]), 5);
}

#[test]
fn a_target_in_two_pieces_of_code() {
    let mut m = toy();
    tune(&mut m, "nop", |i| i.bytes = 2);
    m.branch.split_target_cycles = 3;
    let text = |before: &str| format!("func f 1 0\n j on\n skipped:\n {before}\n on:\n add r2, r1, r1\n ret");
    // 0 j, 1 add, 2 ret: 3. Behind two bytes `add` lies in two words of four: 0 j (+3), 4 add, 5 ret: 6.
    assert_eq!(cycles(m.clone(), &text("nop\n nop"), &[1]), 3);
    assert_eq!(cycles(m.clone(), &text("nop"), &[1]), 6);
    // Of pieces of 16 bytes the first holds it.
    m.branch.fetch_bytes = 16;
    assert_eq!(cycles(m, &text("nop"), &[1]), 3);
}
