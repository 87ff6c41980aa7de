//! Every timing rule of cores that schedule at run time, worked out by hand.
//!
//! A call begins with a fetch in cycle 0. With the core of `common::dynamic`
//! an instruction fetched in cycle f is renamed in f + 2 and starts in f + 3 at
//! the earliest; the cycle in which its user can start is its end, and it
//! retires in that cycle. Four instructions of 4 bytes are fetched a cycle.

mod common;
#[path = "common/dynamic.rs"]
mod machine;

use ciphermill_ir::BinOp;
use ciphermill_machine::core::*;
use ciphermill_machine::sem::{Expr, Stmt};
use ciphermill_machine::{InstrId, Machine, OperandKind};
use ciphermill_ooo::log::{Log, Row};
use ciphermill_ooo::{Cause, Counts};
use ciphermill_sim::{SimOptions, Simulator};
use common::assemble;
use machine::dynamic;
use std::sync::Arc;

/// Run function 0 once: counts, and the micro-operations with cycles from 0.
fn run(m: Machine, text: &str, args: &[u64]) -> (Counts, Vec<Row>) {
    let mut s = Simulator::new(Arc::new(assemble(m, text)), SimOptions::default()).unwrap();
    s.pipeline().unwrap().log = Some(Log::new(0, 100_000));
    s.call(0, args).unwrap();
    let counts = s.stats().core.unwrap();
    let width = s.pipeline().unwrap().core().retire.width;
    assert_eq!(counts.places.iter().sum::<u64>(), counts.get("cycles") * u64::from(width), "every place has a cause");
    let mut rows = s.pipeline().unwrap().log.take().unwrap().rows;
    let first = rows[0].fetched;
    for r in &mut rows {
        for t in [&mut r.fetched, &mut r.decoded, &mut r.renamed, &mut r.start, &mut r.end, &mut r.retired] {
            *t = t.saturating_sub(first);
        }
    }
    (counts, rows)
}

fn cycles(m: Machine, text: &str, args: &[u64]) -> u64 {
    run(m, text, args).0.get("cycles")
}

fn starts(rows: &[Row]) -> Vec<u64> {
    rows.iter().map(|r| r.start).collect()
}

/// A function of one block: the lines and a return.
fn body(lines: &[&str]) -> String {
    format!("func f 4 0\n{}\nret\n", lines.join("\n"))
}

#[test]
fn a_chain_starts_one_after_the_other() {
    let (counts, rows) =
        run(dynamic(|_| ()), &body(&["add r1, r1, r1", "add r1, r1, r1", "mul r1, r1, r1", "add r1, r1, r1"]), &[1; 4]);
    // 3, 4, 5 and its result after three cycles: 8; the return, in the next block, is not kept waiting: 4.
    assert_eq!(starts(&rows), [3, 4, 5, 8, 4]);
    assert_eq!(rows.iter().map(|r| r.retired).collect::<Vec<_>>(), [4, 5, 8, 9, 9]);
    assert_eq!(counts.get("cycles"), 10);
    assert_eq!(counts.get("uops_retired"), 5);
}

#[test]
fn ports_are_shared_the_oldest_first() {
    // Two ports for six independent additions: 3 3 4 4, and those of the second block 5 5.
    let lines =
        ["add r5, r1, r1", "add r6, r1, r1", "add r7, r1, r1", "add r8, r1, r1", "add r9, r1, r1", "add r4, r1, r1"];
    let (counts, rows) = run(dynamic(|_| ()), &body(&lines), &[1; 4]);
    assert_eq!(starts(&rows), [3, 3, 4, 4, 5, 5, 4]);
    assert!(counts.cycles(Cause::Ports) > 0.0);
    // A divider that is not pipelined: the second waits ten cycles, on one port;
    // with two of them both run.
    let one = |m: &mut Core| m.rename.binds_port = false;
    let (_, rows) = run(dynamic(one), &body(&["divu r5, r1, r2", "divu r6, r1, r2", "divu r7, r1, r2"]), &[8; 4]);
    assert_eq!(starts(&rows), [3, 3, 13, 3]);
}

#[test]
fn a_unit_ends_one_computation_a_cycle() {
    // On one unit: the product starts in 3 and ends in 6, so that no addition starts in 5.
    let mut m = dynamic(|c| c.result_bus = true);
    m.units[0].count = 1;
    let lines = ["mul r5, r1, r1", "add r6, r1, r1", "add r7, r1, r1"];
    assert_eq!(starts(&run(m, &body(&lines), &[1; 4]).1), [3, 4, 6, 3]);
}

#[test]
fn a_younger_one_overtakes_and_retires_in_order() {
    let (_, rows) = run(dynamic(|_| ()), &body(&["mul r5, r1, r1", "add r6, r5, r5", "add r7, r1, r1"]), &[1; 4]);
    assert_eq!(starts(&rows), [3, 6, 3, 3]);
    assert_eq!(rows[2].retired, 7);
    // In order the third waits for the second's start.
    let (_, rows) =
        run(dynamic(|c| c.in_order = true), &body(&["mul r5, r1, r1", "add r6, r5, r5", "add r7, r1, r1"]), &[1; 4]);
    assert_eq!(starts(&rows), [3, 6, 6, 6]);
}

#[test]
fn the_width_of_renaming_and_of_retiring() {
    let lines = ["nop"; 8];
    // Eight that take no port, and the return: 4 a cycle renamed in 2, 3, 4.
    let (_, rows) = run(dynamic(|_| ()), &body(&lines), &[0; 4]);
    assert_eq!(rows.iter().map(|r| r.renamed).collect::<Vec<_>>(), [2, 2, 2, 2, 3, 3, 3, 3, 4]);
    let (_, rows) = run(dynamic(|c| c.rename.width = 3), &body(&lines), &[0; 4]);
    assert_eq!(rows.iter().map(|r| r.renamed).collect::<Vec<_>>(), [2, 2, 2, 3, 3, 3, 4, 4, 4]);
    let (_, rows) = run(dynamic(|c| c.retire.width = 2), &body(&lines), &[0; 4]);
    assert_eq!(rows.iter().map(|r| r.retired).collect::<Vec<_>>(), [2, 2, 3, 3, 4, 4, 5, 5, 6]);
}

#[test]
fn the_reorder_buffer_stops_renaming() {
    // The load's chain keeps the buffer of four full: the fifth is renamed the
    // cycle after the first has retired.
    let lines = ["mul r1, r1, r1", "nop", "nop", "nop", "nop", "nop"];
    let (_, rows) = run(dynamic(|c| c.reorder_buffer = 4), &body(&lines), &[1; 4]);
    assert_eq!(rows.iter().map(|r| r.renamed).collect::<Vec<_>>(), [2, 2, 2, 2, 7, 7, 7]);
}

#[test]
fn the_reservation_stations_stop_renaming() {
    // Two stations: the third is renamed the cycle after the first has started,
    // the return that after the third has.
    let lines = ["mul r1, r1, r1", "add r1, r1, r1", "add r2, r2, r2", "nop"];
    let (_, rows) = run(dynamic(|c| c.reservation_stations = 2), &body(&lines), &[1; 4]);
    assert_eq!(rows.iter().map(|r| r.renamed).collect::<Vec<_>>(), [2, 2, 4, 4, 6]);
    assert_eq!(starts(&rows)[..3], [3, 6, 5]);
}

#[test]
fn a_full_queue_stops_renaming_and_no_other_one() {
    // Two places for the ALUs: the third is renamed the cycle after the first has started. The return has another queue.
    let lines = ["mul r1, r1, r1", "add r1, r1, r1", "add r2, r2, r2", "nop"];
    let queue = |c: &mut Core| {
        c.queues = vec![Queue { name: "alu".into(), units: vec![0], entries: 2, kept_cycles: 0, shares: None }]
    };
    let (_, rows) = run(dynamic(queue), &body(&lines), &[1; 4]);
    assert_eq!(rows.iter().map(|r| r.renamed).collect::<Vec<_>>(), [2, 2, 4, 4, 4]);
    assert_eq!(starts(&rows)[..3], [3, 6, 5]);
}

#[test]
fn a_queue_is_chosen_when_registers_are_renamed() {
    let go = |choice, queues: &[Vec<usize>]| {
        let mut m = dynamic(|c| {
            c.rename.queue_choice = choice;
            c.queues = queues
                .iter()
                .map(|q| Queue { name: "q".into(), units: q.clone(), entries: 8, kept_cycles: 0, shares: None })
                .collect();
        });
        // Additions on the two ALUs and on the branch unit.
        common::tune(&mut m, "add", |i| i.units = vec![0, 4]);
        starts(&run(m, &body(&["mul r5, r1, r1", "mul r6, r1, r1", "mul r7, r1, r1", "add r8, r1, r1"]), &[1; 4]).1)
    };
    // Products have one queue. Fewest for each unit: the branch unit's is empty.
    assert_eq!(go(QueueChoice::Fewest, &[vec![0], vec![4]]), [3, 3, 4, 3, 4]);
    // In turn: the ALUs', where the third product and the addition start a cycle later.
    assert_eq!(go(QueueChoice::InTurn, &[vec![0], vec![4]]), [3, 3, 4, 4, 4]);
}

#[test]
fn decoders_take_what_they_can_make() {
    // 4-1-1-1: a store is two micro-operations unless they are fused.
    let lines = ["nop", "stw r1, r2, 0", "nop", "nop"];
    let split = |c: &mut Core| (c.decode.pattern, c.decode.micro_fusion) = (vec![4, 1, 1, 1], false);
    let (_, rows) = run(dynamic(split), &body(&lines), &[0, 64, 0, 0]);
    assert_eq!(rows.iter().map(|r| r.decoded).collect::<Vec<_>>(), [2, 3, 3, 3, 3, 3]);
    let fused = |c: &mut Core| c.decode.pattern = vec![4, 1, 1, 1];
    let (counts, rows) = run(dynamic(fused), &body(&lines), &[0, 64, 0, 0]);
    assert_eq!(rows.iter().map(|r| r.decoded).collect::<Vec<_>>(), [2, 2, 2, 2, 2, 3]);
    assert_eq!(
        (counts.get("uops_retired"), counts.get("uops_retired_fused"), counts.get("uops_fused_pairs")),
        (6, 5, 1)
    );
    // One that the first decoder cannot make takes it three cycles.
    let mut m = dynamic(|_| ());
    common::tune(&mut m, "add", |i| i.uops = 3);
    let (_, rows) = run(m, &body(&["add r1, r1, r1", "nop"]), &[0; 4]);
    assert_eq!(rows.iter().map(|r| r.decoded).collect::<Vec<_>>(), [4, 4, 4, 5, 5]);
}

#[test]
fn further_micro_operations_take_their_units() {
    // The multiplication is two: one for a cycle on the port of loads, where the load then
    // starts a cycle later, and one that has the result. The return is the fifth to be renamed.
    let mut m = dynamic(|c| c.decode.pattern = vec![4, 1, 1, 1]);
    common::tune(&mut m, "mul", |i| i.uop_units = vec![1]);
    let (counts, rows) = run(m, &body(&["mul r5, r1, r1", "ldw r6, r2, 0", "add r7, r5, r5"]), &[0, 64, 0, 0]);
    assert_eq!(starts(&rows), [3, 3, 4, 6, 4]);
    assert_eq!(rows.iter().map(|r| r.end).collect::<Vec<_>>()[..2], [4, 6]);
    assert_eq!(counts.get("uops_retired"), 5);
}

#[test]
fn what_is_needed_before_the_rest_has_a_micro_operation_of_its_own() {
    // The addition is two: its first source is taken in by the first, and the last adds the second. By the first
    // source a chain takes two cycles a step, by the second one.
    let m = || {
        let mut m = dynamic(|c| c.decode.pattern = vec![2; 4]);
        common::tune(&mut m, "add", |i| (i.uops, i.early) = (2, vec![(1, 1)]));
        m
    };
    let chain = |step: &str| starts(&run(m(), &body(&[step, step, step]), &[1; 4]).1);
    assert_eq!(chain("add r1, r1, r2")[..6], [3, 4, 5, 6, 7, 8]);
    assert_eq!(chain("add r1, r2, r1")[..6], [3, 4, 3, 5, 4, 6]);
    // One micro-operation cannot be in two places.
    let mut one = dynamic(|_| ());
    common::tune(&mut one, "add", |i| i.early = vec![(1, 1)]);
    let program = Arc::new(assemble(one, &body(&["add r1, r1, r2"])));
    let refused = Simulator::new(program, SimOptions::default()).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(refused.contains("`uops = 2`"), "{refused}");
}

#[test]
fn fetch_takes_a_block_a_cycle() {
    let (_, rows) = run(dynamic(|c| c.fetch.bytes = 8), &body(&["nop"; 4]), &[0; 4]);
    assert_eq!(rows.iter().map(|r| r.fetched).collect::<Vec<_>>(), [0, 0, 1, 1, 2]);
    let (_, rows) = run(dynamic(|c| c.fetch.predecode = 3), &body(&["nop"; 4]), &[0; 4]);
    assert_eq!(rows.iter().map(|r| r.fetched).collect::<Vec<_>>(), [0, 0, 0, 1, 2]);
    // A queue of two, decoded one a cycle.
    let slow = |c: &mut Core| (c.fetch.queue, c.decode.pattern) = (2, vec![1]);
    let (_, rows) = run(dynamic(slow), &body(&["nop"; 4]), &[0; 4]);
    assert_eq!(rows.iter().map(|r| r.fetched).collect::<Vec<_>>(), [0, 0, 1, 2, 3]);
}

#[test]
fn entries_of_the_op_cache_are_read_in_pairs() {
    // A block of 16, entries of three: two are read at once, two in cycle 2, and in cycle 4 the fifth and the sixth, which
    // begins in this block and has the return of the next one.
    let core = |c: &mut Core| (c.fetch.bytes, c.fetch.entry, c.fetch.queue, c.decode.pattern) = (64, 3, 64, vec![1; 4]);
    let (_, rows) = run(dynamic(core), &body(&["nop"; 16]), &[0; 4]);
    let fetched = rows.iter().map(|r| r.fetched).collect::<Vec<_>>();
    assert_eq!(fetched, [0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4]);
    // Of blocks of two the second entry begins in the one behind.
    let core = |c: &mut Core| (c.fetch.bytes, c.fetch.entry, c.decode.pattern) = (8, 3, vec![1; 4]);
    let (_, rows) = run(dynamic(core), &body(&["nop"; 4]), &[0; 4]);
    assert_eq!(rows.iter().map(|r| r.fetched).collect::<Vec<_>>(), [0, 0, 0, 0, 0]);
}

#[test]
fn a_prefix_that_changes_a_length_is_noticed_late() {
    // Found six cycles late, it and what stands behind; the return is in the next block.
    let li = InstrId(common::toy().instrs.iter().position(|i| i.name == "li").unwrap() as u16);
    let change = |c: &mut Core| (c.fetch.length_changing, c.fetch.length_change_cycles) = (vec![li], 6);
    let (_, rows) = run(dynamic(change), &body(&["nop", "li r5, 1", "nop", "nop"]), &[0; 4]);
    assert_eq!(rows.iter().map(|r| r.fetched).collect::<Vec<_>>(), [0, 6, 6, 6, 7]);
}

#[test]
fn a_part_of_a_register_and_the_whole() {
    // `or` replaces the low byte of its result here and keeps the rest.
    let machine = |reads, cycles| {
        let mut m = dynamic(|c| (c.rename.partial_reads, c.rename.partial_cycles) = (reads, cycles));
        let and = |e, mask| common::bin(BinOp::And, e, Expr::Const(mask));
        let value = common::bin(BinOp::Or, and(common::op(0), 0xffff_ff00), and(common::op(1), 0xff));
        common::tune(&mut m, "or", |i| {
            i.semantics = vec![common::set(0, value.clone())];
            i.operands[0].kind = OperandKind::Reg { file: 0, def: true, used: true };
        });
        m
    };
    let lines = ["or r5, r1, r0", "add r6, r5, r5", "stb r5, r2, 0"];
    let go = |reads, cycles| run(machine(reads, cycles), &body(&lines), &[1, 64, 0, 0]).1;
    // The sum and the store's data wait for the byte alone: 4.
    assert_eq!(starts(&go(PartialReads::Free, 2)), [3, 4, 3, 4, 3]);
    // Put together in two cycles: the sum starts in 6. The store needs the byte only.
    assert_eq!(starts(&go(PartialReads::Late, 2)), [3, 6, 3, 4, 3]);
    // `or` retires in 4: the sum is renamed in 5, and all behind it.
    let rows = go(PartialReads::Stall, 0);
    assert_eq!(rows.iter().map(|r| r.renamed).collect::<Vec<_>>(), [2, 5, 5, 5, 5]);
    assert_eq!(starts(&rows), [3, 6, 6, 6, 6]);
    assert_eq!(go(PartialReads::Stall, 2)[1].renamed, 7);
    // Written whole, it is whole.
    let whole = ["or r5, r1, r0", "add r5, r1, r1", "add r6, r5, r5"];
    for reads in [PartialReads::Late, PartialReads::Stall] {
        assert_eq!(starts(&run(machine(reads, 2), &body(&whole), &[1; 4]).1), [3, 3, 4, 3]);
    }
}

#[test]
fn a_load_takes_its_latency() {
    // Load 3, its user 6, another load beside it waits for the one port: 4.
    let (_, rows) = run(dynamic(|_| ()), &body(&["ldw r5, r1, 0", "ldw r6, r1, 4", "add r7, r5, r5"]), &[64; 4]);
    assert_eq!(starts(&rows), [3, 4, 6, 3]);
}

#[test]
fn stores_forward_to_loads() {
    // The store's address and data start in 3, the address is known in 4. The load starts
    // in 3 too, on its own port, and finds out in 4: its user starts five cycles later.
    let lines = ["stw r1, r2, 0", "ldw r5, r2, 0", "add r6, r5, r5"];
    let (counts, rows) = run(dynamic(|_| ()), &body(&lines), &[64; 4]);
    assert_eq!(starts(&rows), [3, 3, 3, 9, 3]);
    assert_eq!(counts.get("loads_forwarded"), 1);
    // A byte of it does as well.
    let lines = ["stw r1, r2, 0", "ldb r5, r2, 1", "add r6, r5, r5"];
    assert_eq!(starts(&run(dynamic(|_| ()), &body(&lines), &[64; 4]).1), [3, 3, 3, 9, 3]);
    // A word over a stored byte waits: it retires in 4, is in the cache in 5, then 7 and 3 more.
    let lines = ["stb r1, r2, 0", "ldw r5, r2, 0", "add r6, r5, r5"];
    let (counts, rows) = run(dynamic(|_| ()), &body(&lines), &[64; 4]);
    assert_eq!(starts(&rows), [3, 3, 3, 15, 3]);
    assert_eq!(counts.get("forwards_failed"), 1);
    // Data that comes late holds the load back.
    let lines = ["mul r1, r1, r1", "stw r1, r2, 0", "ldw r5, r2, 0", "add r6, r5, r5"];
    assert_eq!(starts(&run(dynamic(|_| ()), &body(&lines), &[64; 4]).1), [3, 3, 6, 3, 11, 4]);
}

#[test]
fn a_renamed_load_has_its_value_from_the_store() {
    let form = |c: &mut Core| {
        (c.load.renaming, c.load.renamed_cycles, c.load.renaming_bytes) = (Renaming::Form, 1, 4);
    };
    let go = |lines: &[&str]| starts(&run(dynamic(form), &body(lines), &[64; 4]).1);
    // The data starts in 3, its user a cycle later.
    assert_eq!(go(&["stw r1, r2, 0", "ldw r5, r2, 0", "add r6, r5, r5"]), [3, 3, 3, 4, 3]);
    // Another register with the same value, a byte, and a word over a stored byte go the long way.
    assert_eq!(go(&["stw r1, r2, 0", "ldw r5, r3, 0", "add r6, r5, r5"])[3], 9);
    assert_eq!(go(&["stw r1, r2, 0", "ldb r5, r2, 0", "add r6, r5, r5"])[3], 9);
    assert_eq!(go(&["stb r1, r2, 0", "ldw r5, r2, 0", "add r6, r5, r5"])[3], 15);
    // Data that comes in 6.
    assert_eq!(go(&["mul r1, r1, r1", "stw r1, r2, 0", "ldw r5, r2, 0", "add r6, r5, r5"])[4], 7);
}

#[test]
fn a_load_is_renamed_to_the_store_that_it_had_the_last_time() {
    // A counter in memory, by a register that is another one for the load.
    let text = "
        func f 3 0
        top:
            stw r1, r2, 0
            ldw r5, r3, 0
            addi r1, r5, -1
            bne r1, r0, top
            ret
    ";
    let turn = |renaming| {
        let change = |c: &mut Core| (c.load.renaming, c.load.renamed_cycles) = (renaming, 1);
        let at = |n| cycles(dynamic(change), text, &[n, 64, 64]);
        (at(60) - at(20)) as f64 / 40.0
    };
    // Forwarding, five, and the addition; renaming, one, and the addition.
    assert_eq!([Renaming::No, Renaming::Form, Renaming::Distance].map(turn), [6.0, 6.0, 2.0]);
    // The longest chain is no longer than that.
    let change = |c: &mut Core| (c.load.renaming, c.load.renamed_cycles) = (Renaming::Distance, 1);
    let mut s = Simulator::new(Arc::new(assemble(dynamic(change), text)), SimOptions::default()).unwrap();
    s.pipeline().unwrap().follow_chains();
    s.call(0, &[60, 64, 64]).unwrap();
    let longest = s.pipeline().unwrap().longest_chain();
    assert!((119..=cycles(dynamic(change), text, &[60, 64, 64])).contains(&longest), "{longest}");
}

/// Two loads are known, in one set.
fn misnames(shadow: u32) -> impl Fn(&mut Core) {
    move |c| {
        c.load.misnamed =
            Some(Misnamed { word_bytes: 4, alias_bytes: 64, distance: 2, entries: 2, ways: 2, cycles: 4, shadow })
    }
}

#[test]
fn a_load_taken_to_read_a_store_to_other_bytes_of_its_word() {
    let go = |lines: &[&str]| {
        let (counts, rows) = run(dynamic(misnames(0)), &body(lines), &[64; 4]);
        let last = rows.last().unwrap();
        (counts.get("loads_misnamed"), last.fetched)
    };
    // It starts in 3, and ends and retires in 6: what is behind it is fetched in 10.
    assert_eq!(go(&["sth r1, r2, 0", "ldhs r5, r2, 2"]), (1, 10));
    // A byte of what was stored: the store's address is known in 4, forwarding takes five.
    assert_eq!(go(&["stw r1, r2, 0", "ldbs r5, r2, 3"]), (1, 13));
    // Zeros before what is loaded; other registers, and the same one written between; another word; the store's bytes.
    for load in ["ldh r5, r2, 2", "ldhs r5, r3, 2", "ldhs r5, r2, 4", "ldhs r5, r2, 0"] {
        assert_eq!(go(&["sth r1, r2, 0", load]), (0, 0), "{load}");
    }
    assert_eq!(go(&["sth r1, r2, 0", "addi r2, r2, 0", "ldhs r5, r2, 2"]).0, 0);
    // A word, too, 64 bytes away, but no half of one with zeros before it.
    assert_eq!(go(&["stw r1, r2, 0", "ldw r5, r2, 64"]).0, 1);
    assert_eq!(go(&["stw r1, r2, 0", "ldw r5, r2, 32"]).0, 0);
    assert_eq!(go(&["stw r1, r2, 0", "ldh r5, r2, 64"]).0, 0);
    // A store of fewer bytes; one to its own bytes between; two others between.
    assert_eq!(go(&["stb r1, r2, 0", "ldhs r5, r2, 2"]).0, 0);
    assert_eq!(go(&["sth r1, r2, 0", "sth r1, r2, 2", "ldhs r5, r2, 2"]).0, 0);
    assert_eq!(go(&["sth r1, r2, 0", "stw r1, r3, 8", "ldhs r5, r2, 2"]).0, 1);
    assert_eq!(go(&["sth r1, r2, 0", "stw r1, r3, 8", "stw r1, r3, 12", "ldhs r5, r2, 2"]).0, 0);
}

#[test]
fn loads_that_were_misnamed_are_known_as_long_as_there_is_room() {
    let go = |pairs: usize, shadow| {
        let lines = "sth r4, r2, 0\nldhs r5, r2, 2\n".repeat(pairs);
        let text = format!("func f 3 0\ntop:\n{lines}\naddi r1, r1, -1\nbne r1, r0, top\nret\n");
        let mut s =
            Simulator::new(Arc::new(assemble(dynamic(misnames(shadow)), &text)), SimOptions::default()).unwrap();
        s.call(0, &[10, 64, 64]).unwrap();
        s.stats().core.unwrap().get("loads_misnamed")
    };
    // Two are known from the first turn on. Of three each is forgotten before its next turn.
    assert_eq!([1, 2, 3].map(|pairs| go(pairs, 0)), [1, 2, 30]);
    // The second one is known with the first, two instructions before it. Of three, the third makes the first forgotten,
    // and the first, with the second, the third.
    assert_eq!([1, 2, 3].map(|pairs| go(pairs, 2)), [1, 1, 20]);
}

#[test]
fn stores_to_one_line_reach_the_cache_together() {
    // All four can start in 3 and 4: the first two retire in 4. With two places the third is renamed
    // when the first is in the cache, in 5, and the fourth when the second is, in 5 or, in another line, in 6.
    let fourth = |second: &str, one_line| {
        let mut m = dynamic(|c| (c.store.buffers, c.store.commits, c.store.one_line) = (2, 2, one_line));
        (m.units[2].count, m.units[3].count) = (2, 2);
        let lines = ["stw r1, r2, 0", second, "stw r1, r2, 8", "stw r1, r2, 12"];
        run(m, &body(&lines), &[64; 4]).1[6].renamed
    };
    assert_eq!(fourth("stw r1, r2, 4", true), 6);
    assert_eq!(fourth("stw r1, r2, 64", true), 7);
    assert_eq!(fourth("stw r1, r2, 64", false), 6);
}

#[test]
fn loads_and_unknown_addresses() {
    // The store's address comes from a product: it starts in 6 and is known in 7.
    let lines = ["mul r1, r1, r1", "stw r2, r1, 0", "ldw r5, r3, 0"];
    let start = |d| starts(&run(dynamic(|c| c.load.disambiguation = d), &body(&lines), &[8, 0, 128, 0]).1)[3];
    assert_eq!(start(Disambiguation::Wait), 7);
    assert_eq!(start(Disambiguation::Perfect), 3);
    assert_eq!(start(Disambiguation::Predict { entries: 16 }), 3);
    // With the same address the prediction is wrong: known in 7, and two cycles
    // later fetch starts again behind the load.
    let (counts, rows) = run(
        dynamic(|c| c.load.disambiguation = Disambiguation::Predict { entries: 16 }),
        &body(&lines),
        &[8, 0, 64, 0],
    );
    assert_eq!(counts.get("memory_order_violations"), 1);
    assert_eq!((rows[3].start, rows[3].end), (3, 12));
    assert_eq!(rows[4].fetched, 9);
}

#[test]
fn a_store_a_page_away_holds_a_load_back() {
    // The product is over in 6, and the store behind it in the cache in 7; its address is known in 4.
    let lines = ["mul r7, r1, r1", "stw r1, r2, 0", "ldw r5, r3, 0", "add r6, r5, r5"];
    let go = |alias, d, at| {
        let change = |c: &mut Core| (c.load.alias_bytes, c.load.disambiguation) = (alias, d);
        let (counts, rows) = run(dynamic(change), &body(&lines), &[1, 64, at, 0]);
        (counts.get("loads_aliased"), starts(&rows)[3..5].to_vec())
    };
    // It starts in 4, once the address is known, and looks again in 7.
    assert_eq!(go(4096, Disambiguation::Wait, 64 + 8192), (1, vec![4, 10]));
    assert_eq!(go(0, Disambiguation::Wait, 64 + 8192), (0, vec![4, 7]));
    assert_eq!(go(4096, Disambiguation::Wait, 68 + 8192), (0, vec![4, 7]));
    // Started before the address is known it is not compared.
    assert_eq!(go(4096, Disambiguation::Perfect, 64 + 8192), (0, vec![3, 6]));
}

#[test]
fn load_and_store_buffers() {
    let loads = ["mul r1, r1, r1", "ldw r5, r2, 0", "ldw r6, r2, 4", "ldw r7, r2, 8"];
    // Two buffers: the third load is renamed after the first has retired, in 6.
    let (_, rows) = run(dynamic(|c| c.load.buffers = 2), &body(&loads), &[64; 4]);
    assert_eq!(rows[3].renamed, 7);
    let stores = ["stw r1, r2, 0", "stw r1, r2, 4", "stw r1, r2, 8"];
    // Two buffers: the first is in the cache in 5.
    let (_, rows) = run(dynamic(|c| c.store.buffers = 2), &body(&stores), &[64; 4]);
    assert_eq!(rows[4].renamed, 6);
}

const COUNT: &str = "
    func f 1 0
    top:
        addi r1, r1, -1
        bne r1, r0, top
        ret
";

#[test]
fn a_wrong_guess_costs_the_front_end() {
    // One iteration: 0 addi, bne guessed taken. addi starts 3, bne 4 and is known in 5; the
    // return is fetched then, starts in 8 and retires in 9.
    let (counts, rows) = run(dynamic(|_| ()), COUNT, &[1]);
    let ret = rows.iter().rfind(|r| !r.wrong).unwrap();
    assert_eq!((ret.fetched, ret.start, ret.retired), (5, 8, 9));
    assert_eq!(counts.get("cycles"), 10);
    assert_eq!((counts.get("branches_mispredicted"), counts.get("branches")), (1, 2));
    // The wrong path: the loop is fetched again from cycle 1 on, and what is
    // ready before cycle 5 starts: its addi in 4; its bne waits.
    let wrong: Vec<u64> = rows.iter().filter(|r| r.wrong && r.started).map(|r| r.start).collect();
    assert_eq!(wrong, [4]);
    assert_eq!((counts.get("uops_wrong_path"), counts.get("uops_dispatched")), (1, 4));
    // Recovery at retirement is no later here: the branch retires as it ends.
    let (counts, _) = run(dynamic(|c| c.retire.recovers = true), COUNT, &[1]);
    assert_eq!((counts.get("cycles"), counts.get("branch_recovery_stalls")), (10, 0));
}

#[test]
fn a_log_of_some_instructions() {
    // Three iterations, then the return: instruction 5 is the bne that is guessed wrong, 6 the return.
    let of = |first, count| {
        let mut s = Simulator::new(Arc::new(assemble(dynamic(|_| ()), COUNT)), SimOptions::default()).unwrap();
        s.pipeline().unwrap().log = Some(Log::new(first, count));
        s.call(0, &[3]).unwrap();
        let rows = s.pipeline().unwrap().log.take().unwrap().rows;
        rows.iter().map(|r| (r.retired_before, r.wrong, r.started)).collect::<Vec<_>>()
    };
    assert_eq!(of(1, 2), [(1, false, true), (2, false, true)]);
    // A wrong path is in it if what is before and behind it is. Its addi starts before the branch is known, the
    // next bne and all behind it do not.
    let rows = of(5, 2);
    assert_eq!((rows[0], rows[rows.len() - 1]), ((5, false, true), (6, false, true)));
    let wrong = &rows[1..rows.len() - 1];
    assert!(wrong.iter().all(|r| (r.0, r.1) == (6, true)));
    assert_eq!(wrong.iter().filter(|r| r.2).count(), 1);
    assert_eq!((of(5, 1).len(), of(6, 9), of(7, 9)), (1, vec![(6, false, true)], vec![]));
}

#[test]
fn recovery_at_retirement_waits_for_what_is_older() {
    let text = "
        func f 3 0
            divu r5, r1, r2
            beq r3, r0, out
            nop
        out:
            ret
    ";
    // Backward taken: guessed not taken. divu 3 to 13; beq known in 4, retires in 13.
    let late = |c: &mut Core| c.retire.recovers = true;
    let (counts, rows) = run(dynamic(late), text, &[8, 2, 0]);
    let ret = rows.iter().rfind(|r| !r.wrong).unwrap();
    // Fetched in 4 and there in 6, renamed in 14. From 4 to 13 the branch was known to be wrong.
    assert_eq!((ret.fetched, ret.decoded, ret.renamed), (4, 6, 14));
    assert_eq!(counts.get("branch_recovery_stalls"), 9);
    let (_, rows) = run(dynamic(|_| ()), text, &[8, 2, 0]);
    assert_eq!(rows.iter().rfind(|r| !r.wrong).unwrap().renamed, 6);
}

#[test]
fn the_loop_counter_knows_sixty_four_turns() {
    let nest = "
        func f 2 0
        outer:
            add r3, r2, r0
        inner:
            addi r3, r3, -1
            bne r3, r0, inner
            addi r1, r1, -1
            bne r1, r0, outer
            ret
    ";
    let counter = |c: &mut Core| {
        let bimodal = Part { name: "bimodal".into(), kind: PartKind::Bimodal { entries: 64, bits: 2 } };
        let loops =
            Part { name: "loop".into(), kind: PartKind::Loop { entries: 64, trips: 64, sure: 2, otherwise: 0 } };
        (c.predictor.parts, c.predictor.direction) = (vec![bimodal, loops], 1);
    };
    let wrong = |turns: u64| run(dynamic(counter), nest, &[20, turns]).0.get("branches_mispredicted");
    // Missed for certain: the first iteration of both loops, the way out of the outer one.
    // Of 64 turns the way out is missed until it has been seen twice.
    assert_eq!(wrong(64), 3 + 2);
    // Of 65 turns it is missed all twenty times.
    assert_eq!(wrong(65), 3 + 20);
}

#[test]
fn calls_and_returns_are_foreseen() {
    let text = "
        func f 0 0
            addi r9, r15, 0
            call @g
            addi r15, r9, 0
            ret
        func g 0 0
            ret
    ";
    assert_eq!(run(dynamic(|_| ()), text, &[]).0.get("branches_mispredicted"), 0);
    assert_eq!(run(dynamic(|c| c.predictor.return_stack = 0), text, &[]).0.get("branches_mispredicted"), 1);
}

#[test]
fn taken_branches_and_the_loop_stream() {
    // Three instructions an iteration: without branches' delays one iteration a cycle, or
    // with the chain of the counter: one cycle an iteration.
    let turns = |c: &dyn Fn(&mut Core)| {
        let m = |n: u64| cycles(dynamic(c), COUNT, &[n]);
        m(60) - m(50)
    };
    assert_eq!(turns(&|_| ()), 10);
    assert_eq!(turns(&|c| c.fetch.taken_cycles = 2), 30);
    assert_eq!(turns(&|c| (c.fetch.taken_cycles, c.fetch.loop_instructions, c.fetch.loop_blocks) = (2, 18, 4)), 10);
    assert_eq!(turns(&|c| (c.fetch.taken_cycles, c.fetch.loop_instructions, c.fetch.loop_blocks) = (2, 1, 4)), 30);
}

#[test]
fn compare_and_branch_fuse() {
    let fuse = |m: &mut Machine| {
        let id = |name: &str| InstrId(m.instrs.iter().position(|i| i.name == name).unwrap() as u16);
        let rule = MacroFusion { first: vec![id("addi")], second: vec![id("bne")] };
        m.core.as_mut().unwrap().decode.macro_fusion.push(rule);
    };
    let mut m = dynamic(|_| ());
    fuse(&mut m);
    let (counts, rows) = run(m, COUNT, &[10]);
    assert_eq!((counts.get("macro_fused"), counts.get("instructions"), counts.get("uops_retired")), (10, 21, 11));
    // The addition is done where the branch is: an iteration is one micro-operation.
    assert_eq!(rows.iter().filter(|r| !r.wrong).count(), 11);
    assert_eq!(counts.get("uops_fused_pairs"), 10);
}

#[test]
fn idioms() {
    let lines = ["mul r5, r1, r1", "xor r5, r5, r5", "add r6, r5, r5"];
    let zero = |idiom| starts(&run(dynamic(|c| c.rename.zero_idioms = idiom), &body(&lines), &[1; 4]).1);
    assert_eq!(zero(Idiom::Plain), [3, 6, 7, 3]);
    assert_eq!(zero(Idiom::Independent), [3, 3, 4, 3]);
    assert_eq!(zero(Idiom::Eliminated), [3, 2, 3, 3]);
    let lines = ["mul r5, r1, r1", "mov r6, r5", "add r7, r6, r6"];
    let moves = |idiom| starts(&run(dynamic(|c| c.rename.moves = idiom), &body(&lines), &[1; 4]).1);
    assert_eq!(moves(Idiom::Plain), [3, 6, 7, 3]);
    assert_eq!(moves(Idiom::Eliminated), [3, 6, 6, 3]);
    // A move of the lower half, with zeros above it.
    let low = |bits| {
        let mut m = dynamic(|c| (c.rename.moves, c.rename.low_move_bits) = (Idiom::Eliminated, bits));
        common::tune(&mut m, "mov", |i| {
            if let Stmt::Assign { value, .. } = &mut i.semantics[0] {
                *value = Expr::Slice { a: Box::new(value.clone()), lo: 0, width: 16 };
            }
        });
        starts(&run(m, &body(&lines), &[1; 4]).1)
    };
    assert_eq!([low(0), low(8), low(16)], [[3, 6, 7, 3], [3, 6, 7, 3], [3, 6, 6, 3]]);
}

#[test]
fn written_registers_are_read_through_few_ports() {
    // Four additions of eight different registers, three of them a cycle.
    let lines = ["add r5, r1, r2", "add r6, r3, r4", "add r7, r1, r3"];
    let renamed = |ports, lines: &[&str]| {
        let (_, rows) = run(dynamic(|c| c.rename.written_reads = ports), &body(lines), &[1; 4]);
        rows.iter().map(|r| r.renamed).collect::<Vec<_>>()
    };
    assert_eq!(renamed(3, &lines), [2, 3, 3, 4]);
    // r7 and r8 are there in 5 at the latest, r9 in 6, and nothing retires before. In 5 the first
    // two are written and r9 is on its way still, which takes no port; in 6 it is written too.
    let first = ["mul r9, r1, r1", "add r7, r1, r1", "add r8, r1, r1", "nop"];
    let then = ["add r4, r9, r7", "add r6, r8, r8", "add r3, r9, r9"];
    let lines = [&first[..], &["nop"; 8], &then].concat();
    let last = |ports| renamed(ports, &lines)[12..15].to_vec();
    assert_eq!([last(1), last(2)], [[5, 6, 7], [5, 5, 5]]);
}

#[test]
fn misses_take_the_latency_of_where_the_line_is() {
    use ciphermill_machine::{Cache, Replacement, WritePolicy};
    let cache = |bytes| Cache {
        bytes,
        ways: 2,
        line_bytes: 64,
        replacement: Replacement::Lru,
        write: WritePolicy::Back,
        miss_cycles: 0,
        writeback_cycles: 0,
    };
    let with = |change: &dyn Fn(&mut Core)| {
        let mut m = dynamic(|c| {
            c.l2 = Some(L2 { cache: cache(4096), latency: 15, interval: 1 });
            change(c);
        });
        m.memory.dcache = Some(cache(256));
        m
    };
    // A chain of loads: each word of memory is 0, so that addresses are known here.
    // 3 from memory: 53. The same line: 56. Line 2 and 4 from memory; line 0 then is in the second cache only.
    let lines =
        ["ldw r5, r1, 0", "ldw r5, r5, 4", "ldw r5, r5, 128", "ldw r5, r5, 256", "ldw r5, r5, 8", "ldw r5, r5, 12"];
    let (counts, rows) = run(with(&|_| ()), &body(&lines), &[0; 4]);
    let ends: Vec<u64> = rows[..6].iter().map(|r| r.end - r.start).collect();
    assert_eq!(ends, [50, 3, 50, 50, 15, 3]);
    assert_eq!((counts.get("l1d_misses"), counts.get("l2_misses"), counts.get("l1d_lines_in")), (4, 3, 4));
    // Independent misses are under way together, a bus slot of four cycles apart.
    let lines = ["ldw r5, r1, 0", "ldw r6, r1, 64", "ldw r7, r1, 128", "ldw r8, r1, 68"];
    let (_, rows) = run(with(&|_| ()), &body(&lines), &[0; 4]);
    assert_eq!(rows[..4].iter().map(|r| (r.start, r.end)).collect::<Vec<_>>(), [(3, 53), (4, 57), (5, 61), (6, 57)]);
    // One fill buffer: one after the other.
    let (_, rows) = run(with(&|c| c.load.fill_buffers = 1), &body(&lines), &[0; 4]);
    assert_eq!(rows[..3].iter().map(|r| r.end).collect::<Vec<_>>(), [53, 100, 147]);
    // A second cache of four lines gives line 0 up, to a third one or to nobody.
    let lines = ["ldw r5, r1, 0", "ldw r5, r5, 128", "ldw r5, r5, 256", "ldw r5, r5, 8", "ldw r5, r5, 12"];
    for (third, back) in [(true, 30), (false, 50)] {
        let small = |c: &mut Core| {
            c.l2 = Some(L2 { cache: cache(256), latency: 15, interval: 1 });
            c.l3 = third.then(|| L2 { cache: cache(4096), latency: 30, interval: 1 });
        };
        let (counts, rows) = run(with(&small), &body(&lines), &[0; 4]);
        assert_eq!(rows[..5].iter().map(|r| r.end - r.start).collect::<Vec<_>>(), [50, 50, 50, back, 3]);
        assert_eq!(counts.get("l2_misses"), 4);
    }
    // The next line comes along.
    let (counts, rows) =
        run(with(&|c| c.prefetch.next_line = true), &body(&["ldw r5, r1, 0", "ldw r5, r5, 64"]), &[0; 4]);
    assert_eq!(rows[..2].iter().map(|r| r.end).collect::<Vec<_>>(), [53, 57]);
    assert!(counts.get("prefetches") >= 1);
    // A page walk before it.
    let tlb = Dtlb { page_bytes: 4096, entries: 4, ways: 4, l2_entries: 0, l2_ways: 1, l2_cycles: 0, walk_cycles: 20 };
    let (counts, rows) = run(with(&|c| c.dtlb = Some(tlb.clone())), &body(&["ldw r5, r1, 0"]), &[0; 4]);
    assert_eq!((rows[0].end, counts.get("dtlb_misses")), (73, 1));
}

#[test]
fn cycles_are_never_below_the_longest_chain() {
    let m = dynamic(|_| ());
    let text = body(&["mul r1, r1, r2", "stw r1, r3, 0", "ldw r2, r3, 0", "mul r2, r2, r1", "add r1, r2, r2"]);
    let mut s = Simulator::new(Arc::new(assemble(m, &text)), SimOptions::default()).unwrap();
    s.pipeline().unwrap().follow_chains();
    s.call(0, &[3, 5, 64, 0]).unwrap();
    // 3 of the product, 3 through memory (the shorter of two ways), 3 and 1.
    assert_eq!(s.pipeline().unwrap().longest_chain(), 10);
    assert!(s.stats().cycles >= 10);
}

#[test]
fn results_do_not_depend_on_the_core() {
    let text = "
        func f 2 1
        top:
            add r2, r2, r1
            addi r1, r1, -1
            bne r1, r0, top
            add r1, r2, r0
            ret
    ";
    for change in [|_: &mut Core| (), |c: &mut Core| c.in_order = true] {
        let mut s = Simulator::new(Arc::new(assemble(dynamic(change), text)), SimOptions::default()).unwrap();
        assert_eq!(s.call(0, &[10, 5]).unwrap(), [60]);
        let stats = s.stats();
        assert_eq!((stats.instructions, stats.branches_taken, stats.branches_untaken), (32, 9, 1));
        assert_eq!(stats.core.unwrap().get("instructions"), 32);
    }
}

/// A table walk with a branch on its data.
const WALK: &str = "
    func f 2 0
    top:
        andi r3, r2, 252
        ldw r4, r3, 256
        add r4, r4, r2
        stw r4, r3, 256
        ldw r7, r3, 512
        stb r7, r3, 513
        ldw r8, r3, 512
        muli r2, r2, 5
        addi r2, r2, 1
        andi r5, r2, 64
        beq r5, r0, skip
        mul r6, r6, r2
    skip:
        addi r1, r1, -1
        bne r1, r0, top
        ret
";

#[test]
fn what_is_recalled_counts_as_what_is_worked_out() {
    use ciphermill_machine::{Cache, Replacement, WritePolicy};
    let cache = |bytes| Cache {
        bytes,
        ways: 2,
        line_bytes: 64,
        replacement: Replacement::Lru,
        write: WritePolicy::Back,
        miss_cycles: 0,
        writeback_cycles: 0,
    };
    let part = |name: &str, kind| Part { name: name.into(), kind };
    let changes: [&dyn Fn(&mut Core); 11] = [
        &|_| (),
        &|c| c.retire.recovers = true,
        &|c| (c.rename.written_reads, c.reorder_buffer, c.reservation_stations) = (2, 12, 6),
        &|c| (c.load.disambiguation, c.store.buffers) = (Disambiguation::Predict { entries: 16 }, 3),
        &|c| c.load.alias_bytes = 4096,
        &|c| {
            (c.load.renaming, c.load.renamed_cycles) = (Renaming::Distance, 1);
            (c.store.commits, c.store.one_line, c.result_bus) = (2, true, true);
            c.result_patience = 2;
            c.store.data_through = vec![0];
        },
        &|c| {
            let rule =
                Misnamed { word_bytes: 4, alias_bytes: 64, distance: 2, entries: 1, ways: 1, cycles: 4, shadow: 0 };
            (c.load.misnamed, c.load.disambiguation) = (Some(rule), Disambiguation::Predict { entries: 16 });
        },
        &|c| {
            let queue = |units, entries| Queue { name: "q".into(), units, entries, kept_cycles: 0, shares: None };
            (c.rename.binds_port, c.load.renaming) = (false, Renaming::Form);
            (c.rename.queue_choice, c.queues) = (QueueChoice::InTurn, vec![queue(vec![0, 1], 6), queue(vec![2, 3], 3)]);
        },
        // An op cache that has no room for the loop.
        &|c| {
            (c.fetch.bytes, c.fetch.entry, c.fetch.entries, c.fetch.entry_ways) = (16, 2, 4, 1);
            (c.fetch.missed_bytes, c.fetch.missed_instructions, c.fetch.queue) = (8, 3, 9);
            c.fetch.entry_breaks = true;
            c.prefetch.code_lines = 2;
        },
        // Two queues with places together; a store's data passes through a unit that nothing else has.
        &|c| {
            let queue =
                |unit, shares| Queue { name: "q".into(), units: vec![unit], entries: 5, kept_cycles: 3, shares };
            (c.rename.binds_port, c.queues) = (false, vec![queue(0, None), queue(4, Some(0))]);
            c.store.data_through = std::mem::replace(&mut c.store.data_units, vec![0]);
        },
        &|c| {
            (c.in_order, c.fetch.loop_instructions, c.fetch.loop_blocks, c.fetch.queue) = (true, 18, 4, 5);
            c.predictor.parts = vec![
                part("bimodal", PartKind::Bimodal { entries: 64, bits: 2 }),
                part("history", PartKind::Gshare { entries: 64, bits: 2, history: 6 }),
                part("choice", PartKind::Chooser { entries: 64, bits: 2, parts: [0, 1] }),
            ];
            (c.predictor.direction, c.predictor.btb_entries) = (2, 4);
        },
    ];
    for (i, change) in changes.iter().enumerate() {
        for small in [false, true] {
            let count = |memo: bool, sampling: Option<ciphermill_ooo::Sampling>| {
                let mut m = dynamic(|c| {
                    c.rename.binds_port = true;
                    if small {
                        c.l2 = Some(L2 { cache: cache(1024), latency: 15, interval: 2 });
                        c.dtlb = Some(Dtlb {
                            page_bytes: 64,
                            entries: 2,
                            ways: 2,
                            l2_entries: 4,
                            l2_ways: 2,
                            l2_cycles: 2,
                            walk_cycles: 9,
                        });
                        c.prefetch.next_line = true;
                        c.prefetch.stride_entries = 8;
                    }
                    change(c);
                });
                m.memory.dcache = small.then(|| cache(256));
                m.memory.icache = small.then(|| cache(256));
                // Two pages of table where that matters.
                let aliases = m.core.as_ref().is_some_and(|c| c.load.alias_bytes > 0);
                let walk = if aliases { WALK.replace("252", "4348") } else { WALK.to_owned() };
                // The next bytes, and their signs, where such loads matter.
                let misnames = m.core.as_ref().is_some_and(|c| c.load.misnamed.is_some());
                let walk =
                    if misnames { walk.replace("ldw r8, r3, 512", "ldbs r8, r3, 514\nldbs r9, r3, 515") } else { walk };
                let mut s = Simulator::new(Arc::new(assemble(m, &walk)), SimOptions::default()).unwrap();
                s.pipeline().unwrap().set_memo(memo);
                s.pipeline().unwrap().sample(sampling);
                for (turns, seed) in [(3000, 1), (50, 7), (700, 1)] {
                    s.call(0, &[turns, seed]).unwrap();
                }
                let counts = s.stats().core.unwrap();
                assert_eq!(aliases && sampling.is_none(), counts.get("loads_aliased") > 0 && sampling.is_none());
                assert_eq!(misnames && sampling.is_none(), counts.get("loads_misnamed") > 3000 && sampling.is_none());
                (counts, s.pipeline().unwrap().recalled())
            };
            for sampling in [None, Some(ciphermill_ooo::Sampling { period: 4_000, warm: 200, window: 400 })] {
                let (worked, none) = count(false, sampling);
                let (recalled, some) = count(true, sampling);
                assert_eq!(worked, recalled, "core {i}, small caches {small}, {sampling:?}");
                assert_eq!(none, 0);
                assert!(
                    some > if sampling.is_none() { 2000 } else { 50 },
                    "core {i}, small caches {small}: {some} recalled"
                );
            }
        }
    }
}
