//! The timing rules in which `machines/c64x.toml` differs from the C6201,
//! worked out by hand. One line is one execute packet; a function returns six
//! cycles after `ret` issued.

mod common;

use ciphermill_program::layout::Layout;
use ciphermill_sim::{SimOptions, Simulator, Stats};
use common::{assemble, real};
use std::sync::Arc;

fn simulator(machine: &str, text: &str) -> Simulator {
    let program = Arc::new(assemble(real(machine, &[]), text));
    Simulator::new(program, SimOptions { caches: true, ..SimOptions::default() }).unwrap()
}

fn run(text: &str, args: &[u64]) -> (Vec<u64>, Stats) {
    let mut s = simulator("c64x", text);
    let results = s.call(0, args).unwrap();
    let stats = s.stats();
    assert_eq!(stats.cycles, stats.issue_cycles + stats.stalls.total());
    (results, stats)
}

/// Result and cycles of packets followed by a return of six cycles.
fn body(packets: &str, args: &[u64]) -> (u64, u64) {
    let (results, stats) = run(&format!("func f 2 1\n{packets}\nret\nnop5\n"), args);
    (results[0], stats.cycles - 6)
}

fn refused(machine: &str, packets: &str) -> String {
    let text = format!("func f 2 1\n{packets}\nret\nnop5\n");
    simulator(machine, &text).call(0, &[64, 64]).unwrap_err().to_string()
}

#[test]
fn a_rotate_lands_after_one_more_cycle() {
    // 0 rotl, 1 reads the old value, 2 reads the new one, 3 adds.
    let packets = "rotl_imm a4, 8, a4 \n mv a4, a5 \n mv a4, a6 \n add a5, a6, a4";
    assert_eq!(body(packets, &[0x1234_5678, 0]), (0x1234_5678 + 0x3456_7812, 4));
    // By a register: five bits of it count.
    assert_eq!(body("rotl a4, a4, a4 \n nop", &[0x8000_0041, 0]), (0x0000_0083, 2));
}

#[test]
fn products_of_bytes_land_after_three_more_cycles() {
    // 0 dotpu4, 1 to 3, 4 moves: 1*4 + 2*3 + 3*2 + 4*1.
    let packets = |wait: &str| format!("mv.l1x b4, a6 \n dotpu4 a4, a6, a5 \n {wait} \n mv a5, a4");
    assert_eq!(body(&packets("nop3"), &[0x0102_0304, 0x0403_0201]), (20, 6));
    // A cycle too early the register holds what it held.
    let early = format!("mvk 7, a5 \n {}", packets("nop2"));
    assert_eq!(body(&early, &[0x0102_0304, 0x0403_0201]), (7, 6));
}

#[test]
fn products_in_a_field() {
    // The example of FIPS 197, 4.2: {57} times {83}, {13}, {02} and {01}.
    let packets = "
        mvk.s2 27, b5
        mvc_gfpgfr gfpgfr, b5
        mv.l1x b4, a6
        nop2
        gmpy4 a4, a6, a4
        nop3
    ";
    assert_eq!(body(packets, &[0x5757_5757, 0x8313_0201]), (0xc1fe_ae57, 9));
}

#[test]
fn a_register_that_crosses_in_the_cycle_after_it_was_written() {
    // 0 add writes b4, 1 reads it over the path and waits: 2 and a stall.
    assert_eq!(body("add.l2 b4, b4, b4 \n mv.l1x b4, a4", &[0, 21]), (42, 3));
    // Two cycles after: no stall.
    assert_eq!(body("add.l2 b4, b4, b4 \n nop \n mv.l1x b4, a4", &[0, 21]), (42, 3));
    // Both clusters at once: one stall.
    let both = "add.l2 b4, b4, b4 || add a4, a4, a4 \n mv.l1x b4, a4 || mv.l2x a4, b4";
    assert_eq!(body(both, &[1, 21]), (42, 3));
    // The C6201 has no such stall.
    let mut s = simulator("c6201", "func f 2 1\nadd.l2 b4, b4, b4 \n mv.l1x b4, a4 \n ret \n nop5");
    s.call(0, &[0, 21]).unwrap();
    assert_eq!(s.stats().cycles, 8);
}

#[test]
fn a_loaded_register_crosses_at_once() {
    // 0 ldw (lands at 5), 1 to 4, 5 mv.
    assert_eq!(body("ldw.d2t2 b4, 0, b5 \n nop4 \n mv.l1x b5, a4", &[0, 64]), (0, 6));
}

#[test]
fn two_units_share_a_register_over_the_cross_path() {
    let two = "add.l1x a4, b4, a5 || add.d1x a4, b4, a6 \n add a5, a6, a4";
    assert_eq!(body(two, &[1, 10]), (22, 2));
    let different = "add.l1x a4, b4, a5 || add.d1x a4, b5, a6";
    assert!(refused("c64x", different).contains("use the path `x1`"));
    let three = "add.l1x a4, b4, a5 || add.d1x a6, b4, a6 || add.s1x a7, b4, a7";
    assert!(refused("c64x", three).contains("use the path `x1`"));
    let c62 = two.replace(".d1x", ".s1x");
    assert!(refused("c6201", &c62).contains("use the path `x1`"));
}

#[test]
fn a_register_is_read_four_times_in_a_cycle() {
    let four = "add a4, a4, a5 || add.s1 a4, a4, a6";
    assert_eq!(body(&format!("{four} \n add a5, a6, a4"), &[3, 0]), (12, 2));
    for machine in ["c6201", "c64x"] {
        assert!(refused(machine, &format!("{four} || add.d1 a4, a7, a7")).contains("more than 4 times"));
    }
}

#[test]
fn words_at_any_address_take_both_data_paths() {
    // 0 stnw, 1 ldnw (lands at 6), 2 to 5.
    let packets = "stnw a4, a4, 0 \n ldnw a4, 0, a4 \n nop4";
    assert_eq!(body(packets, &[67, 0]), (67, 6));
    assert!(refused("c64x", "ldnw a4, 0, a5 || ldw.d2t2 b4, 0, b5").contains("use the path `t2`"));
    // A load that wants alignment still does.
    let odd = simulator("c64x", "func f 2 1\nldw a4, 0, a4 \n ret \n nop5").call(0, &[65, 0]).unwrap_err().to_string();
    assert!(odd.contains("0x41"), "{odd}");
}

#[test]
fn execute_packets_cross_fetch_packets_here_and_not_on_the_c6201() {
    // Five words and five words: on the C6201 three words of padding between.
    let five = "add a4, a4, a5 || sub.s1 a4, a4, a6 || add.d1 a6, a6, a7 || add.l2 b4, b4, b5 || sub.s2 b4, b4, b6";
    let text = format!("func f 2 1\n{five}\n{five}\nret\nnop5\n");
    let bytes = |machine: &str| Layout::new(&assemble(real(machine, &[]), &text)).bytes(0);
    assert_eq!(bytes("c64x"), 4 * (5 + 5 + 1 + 1));
    assert_eq!(bytes("c6201"), 4 * (8 + 5 + 1 + 1));
}
