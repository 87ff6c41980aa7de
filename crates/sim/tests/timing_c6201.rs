//! Every timing rule of `machines/c6201.toml`, worked out by hand.
//!
//! One line is one execute packet. The number before a packet is the cycle it
//! issues in. A function ends with `ret`, whose five delay slots are filled
//! here by `nop5`: it returns six cycles after `ret` issued.

mod common;

use ciphermill_sim::{SimOptions, Simulator, Stats};
use common::{assemble, real};
use std::sync::Arc;

fn simulator(text: &str) -> Simulator {
    let program = Arc::new(assemble(real("c6201", &[]), text));
    Simulator::new(program, SimOptions { caches: true, ..SimOptions::default() }).unwrap()
}

fn run(text: &str, args: &[u64]) -> (Vec<u64>, Stats) {
    let mut s = simulator(text);
    let results = s.call(0, args).unwrap();
    let stats = s.stats();
    assert_eq!(stats.cycles, stats.issue_cycles + stats.stalls.total());
    (results, stats)
}

/// Results and cycles.
fn cycles(text: &str, args: &[u64]) -> (Vec<u64>, u64) {
    let (results, stats) = run(text, args);
    (results, stats.cycles)
}

/// Why a program cannot run.
fn refused(text: &str) -> String {
    simulator(text).call(0, &[64]).unwrap_err().to_string()
}

#[test]
fn single_cycle_instructions_and_a_return() {
    // 0 add and ret, 1 to 5 nop: 6. The sum is there in the next cycle.
    let text = "
        func f 1 1
            add a4, a4, a4 || ret
            nop5
    ";
    assert_eq!(cycles(text, &[21]), (vec![42], 6));
    // 0 add, 1 add, 2 ret, 3 to 7: 8.
    let text = "
        func f 1 1
            add a4, a4, a4
            add a4, a4, a4
            ret
            nop5
    ";
    assert_eq!(cycles(text, &[21]), (vec![84], 8));
}

#[test]
fn a_packet_reads_before_it_writes() {
    // Both read the old values: a swap. 0, 1 ret, 2 to 6: 7.
    let text = "
        func f 2 1
            mv.l1x b4, a4 || mv.l2x a4, b4
            sub a4, b4, a4 || ret
            nop5
    ";
    let text = text.replace("sub a4, b4, a4", "sub.l1x a4, b4, a4");
    assert_eq!(cycles(&text, &[3, 10]), (vec![7], 7));
}

#[test]
fn a_load_lands_after_four_more_cycles() {
    // 0 mvk, 1 ldw (lands at 6), 2 to 4 nop, 5 reads the old 7, 6 reads the 0
    // that was loaded, 7 add and ret, 8 to 12: 13.
    let text = "
        func f 1 1
            mvk 7, a5
            ldw a4, 0, a5
            nop3
            add a5, a5, a6
            add a5, a5, a7
            add a6, a7, a4 || ret
            nop5
    ";
    assert_eq!(cycles(text, &[64]), (vec![14], 13));
}

#[test]
fn of_two_loads_under_way_into_one_register_the_later_stays() {
    // 0 mvk, 1 stw, 2 ldw (lands at 7), 3 ldw the 0 (lands at 8), 4 ldw the 9 (lands at 9),
    // 5 to 9 nop, 10 mv and ret, 11 to 15: 16. All three land while nothing issues.
    let text = "
        func f 1 1
            mvk 9, a7
            stw a7, a4, 0
            ldw a4, 8, a6
            ldw a4, 4, a5
            ldw a4, 0, a5
            nop5
            mv a5, a4 || ret
            nop5
    ";
    assert_eq!(cycles(text, &[64]), (vec![9], 16));
}

#[test]
fn a_product_lands_after_one_more_cycle() {
    // 0 mvk, 1 mpyu (lands at 3), 2 reads the old 5, 3 reads 36, 4 add and
    // ret, 5 to 9: 10.
    let text = "
        func f 1 1
            mvk 5, a5
            mpyu a4, a4, a5
            add a5, a5, a6
            mv a5, a7
            add a6, a7, a4 || ret
            nop5
    ";
    assert_eq!(cycles(text, &[6]), (vec![46], 10));
}

#[test]
fn a_load_sees_the_store_of_the_cycle_before() {
    // 0 store beside a load that sees the old 0; 1 load that sees 9; both have
    // landed at 6. 2 to 5 nop, 6 add and ret, 7 to 11: 12.
    let text = "
        func f 2 1
            stw.d2t2 b4, b5, 0 || ldw a4, 0, a6
            ldw a4, 0, a7
            nop4
            add a6, a7, a4 || ret
            nop5
    ";
    let text = text.replace("stw.d2t2 b4, b5, 0", "stw.d2t2 b4, b4, 0");
    // The word stored is its own address: 64.
    let (results, stats) = run(&text, &[64, 64]);
    // Both accesses of cycle 0 are to one word: its banks are used twice.
    assert_eq!((results, stats.stalls.bank, stats.cycles), (vec![64], 1, 13));
}

#[test]
fn five_delay_slots() {
    // 0 b, 1 to 5 add, 6 ret (the block in between is passed by), 7 to 11: 12.
    let text = "
        func f 1 1
            b over
            add a4, a4, a4
            add a4, a4, a4
            add a4, a4, a4
            add a4, a4, a4
            add a4, a4, a4
            mvk 0, a4
        over:
            ret
            nop5
    ";
    assert_eq!(cycles(text, &[1]), (vec![32], 12));
}

#[test]
fn a_branch_not_taken_costs_its_cycle_only() {
    // 0 mvk, 1 b_nz, 2 mvk, 3 ret, 4 to 8: 9.
    let text = "
        func f 1 1
            mvk 0, a1
            b_nz a1, over
            mvk 5, a4
            ret
            nop5
        over:
            nop
    ";
    assert_eq!(cycles(text, &[1]), (vec![5], 9));
}

#[test]
fn moves_that_depend_on_a_register() {
    // 0 mvk, 1 both moves (one of them happens), 2 ret, 3 to 7: 8.
    let text = "
        func f 2 1
            mvk 1, a1
            mv_nz a1, a6, a4 || mv_z.s1 a1, a6, a5
            ret
            nop5
    ";
    assert_eq!(cycles(text, &[1, 2]).1, 8);
}

#[test]
fn several_no_operations_in_one_word() {
    // 0 to 8 nop9, 9 ret, 10 to 14: 15 cycles, of which 3 issue a packet.
    let (_, stats) = run(
        "
        func f 1 0
            nop9
            ret
            nop5
    ",
        &[0],
    );
    assert_eq!((stats.cycles, stats.bundles), (15, 3));
}

#[test]
fn banks() {
    let two = |offset: u32| {
        format!(
            "
        func f 2 0
            ldw a4, 0, a6 || ldw.d2t2 b4, {offset}, b6
            nop4
            ret
            nop5
        "
        )
    };
    // 0 loads, 1 to 4, 5 ret, 6 to 10: 11. The same word: one more.
    assert_eq!(run(&two(0), &[64, 64]).1.cycles, 12);
    // The next word is in the other two banks.
    assert_eq!(run(&two(4), &[64, 64]).1.cycles, 11);
    // Two words on: the same banks again.
    assert_eq!(run(&two(8), &[64, 64]).1.cycles, 12);
    // The same banks of the other block.
    assert_eq!(run(&two(0), &[64, 64 + 32768]).1.cycles, 11);
}

#[test]
fn what_the_hardware_cannot_issue() {
    let twice = refused(
        "
        func f 1 1
            add a4, a4, a4 || sub a4, a4, a5
            ret
            nop5
    ",
    );
    assert!(twice.contains("more units than the machine has"), "{twice}");
    let path = refused(
        "
        func f 1 1
            add.l1x a4, b4, a5 || add.s1x a4, b5, a6
            ret
            nop5
    ",
    );
    assert!(path.contains("two instructions of a bundle use the path `x1`"), "{path}");
    let file = refused(
        "
        func f 1 1
            add a4, b4, a5
            ret
            nop5
    ",
    );
    assert!(file.contains("cannot have the register"), "{file}");
    let writes = refused(
        "
        func f 1 1
            add a4, a4, a5 || add.s1 a4, a4, a5
            ret
            nop5
    ",
    );
    assert!(writes.contains("two writes of one register in one cycle"), "{writes}");
}
