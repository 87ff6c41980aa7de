//! Recurrence circuits of a loop, through registers and through memory, as a run shows them.

mod common;

use ciphermill_sim::circuits::{ObservedLoop, loops};
use ciphermill_sim::{SimOptions, Simulator};
use common::{assemble, real, toy, tune};
use std::sync::Arc;

/// What a call of function 0 shows of its only loop, with these words in memory.
fn seen(text: &str, interlock: bool, args: &[u64], words: &[(usize, u32)]) -> ObservedLoop {
    let mut m = toy();
    m.issue.interlock = interlock;
    tune(&mut m, "ldw", |i| i.latency = 3);
    tune(&mut m, "mul", |i| i.latency = 4);
    let program = assemble(m, text);
    let found = loops(&program);
    assert_eq!(found, [(0, 1)]);
    let mut s = Simulator::new(Arc::new(program), SimOptions::default()).unwrap();
    for &(at, word) in words {
        s.memory_mut()[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    let seen = s.circuits(0, args, &found).unwrap();
    assert_eq!(s.stats().cycles, 0, "looking does not count");
    seen[0].clone()
}

/// Ten passes that square a word and store it so many bytes behind where it was.
fn squares(behind: u32) -> ObservedLoop {
    let text = format!(
        "
        func f 2 0
        again:
            ldw r3, r1, 0
            mul r3, r3, r3
            stw r3, r1, {behind}
            addi r1, r1, 4
            subi r2, r2, 1
            bne r2, r0, again
        out:
            ret
    "
    );
    seen(&text, true, &[64, 10], &[])
}

#[test]
fn what_was_stored_is_loaded_some_passes_later() {
    // 3 for the load, 4 for the product, 1 to be in memory.
    let next = squares(4);
    assert_eq!((next.entries, next.passes, next.ran.clone()), (1, 10, vec![10; 6]));
    let circuit = next.circuit().unwrap();
    assert_eq!((circuit.cycles, circuit.passes, circuit.memory()), (8, 1, true));
    let dependences: Vec<(usize, usize)> = circuit.dependences.iter().map(|d| (d.from, d.to)).collect();
    assert_eq!(dependences.len(), 3);
    assert!(dependences.contains(&(2, 0)), "{dependences:?}");
    // Three passes later, and never: what is left is a counter.
    let third = squares(12).circuit().unwrap();
    assert_eq!((third.cycles, third.passes), (8, 3));
    let never = squares(400).circuit().unwrap();
    assert_eq!((never.cycles, never.passes, never.memory()), (1, 1, false));
}

#[test]
fn one_meeting_holds_every_pass() {
    let text = "
        func f 3 0
        again:
            ldw r4, r1, 0
            mul r4, r4, r4
            ldw r5, r3, 0
            stw r4, r5, 0
            addi r1, r1, 4
            addi r3, r3, 4
            subi r2, r2, 1
            bne r2, r0, again
        out:
            ret
    ";
    // Where results go: far away, but the sixth to the seventh load.
    let mut to: Vec<(usize, u32)> = (0..10).map(|i| (512 + 4 * i, 1000)).collect();
    let apart = seen(text, true, &[64, 10, 512], &to);
    assert!(!apart.circuit().unwrap().memory());
    to[5].1 = 64 + 4 * 6;
    let circuit = seen(text, true, &[64, 10, 512], &to).circuit().unwrap();
    assert_eq!((circuit.cycles, circuit.passes, circuit.memory()), (8, 1, true));
}

#[test]
fn entries_are_told_apart() {
    // Two entries of one pass each: what the first stored, the second loads, and there is no circuit.
    let text = "
        func f 2 0
            li r6, 2
        again:
            ldw r3, r1, 64
            addi r3, r3, 1
            stw r3, r1, 64
            subi r2, r2, 1
            bne r2, r0, again
        next:
            mov r2, r7
            subi r6, r6, 1
            bne r6, r0, again
        out:
            ret
    ";
    let text = |turns: &str| text.replace("mov r2, r7", &format!("li r2, {turns}"));
    let once = seen(&text("1"), true, &[0, 1], &[]);
    assert_eq!((once.entries, once.passes, once.circuit()), (2, 2, None));
    // With a second pass there is: 3 + 1 + 1.
    let twice = seen(&text("2"), true, &[0, 1], &[]);
    assert_eq!((twice.entries, twice.passes), (2, 3));
    let circuit = twice.circuit().unwrap();
    assert_eq!((circuit.cycles, circuit.passes, circuit.memory()), (5, 1, true));
}

#[test]
fn what_a_false_guard_passes_over_depends_on_nothing() {
    // Two stages, five words: the kernel runs six times, each instruction five.
    let text = "
        func sum 2 1
            loop_enter 2 || mov r65, r32 || mov r81, r33 || mov r90, r0
        again:
            (p16) ld4 r70, r65 || (p16) adds r64, r65, 4 || (p16) adds r80, r81, -1 || (p17) add r90, r91, r71
            br_wtop r80, again
        out:
            mov r8, r91
            br_ret
    ";
    let mut s = Simulator::new(Arc::new(assemble(real("epic", &[]), text)), SimOptions::default()).unwrap();
    let seen = &s.circuits(0, &[64, 4], &[(0, 1)]).unwrap()[0];
    assert_eq!(seen.entries, 1);
    assert!(seen.ran[..4].iter().all(|&n| n == seen.passes - 1), "{:?} of {}", seen.ran, seen.passes);
    // The load of one stage, in the next pass's sum.
    assert!(
        seen.dependences.iter().any(|d| (d.from, d.to, d.cycles, d.passes) == (0, 3, 2, 1)),
        "{:?}",
        seen.dependences
    );
    // A word less, then the branch that makes the next pass's predicate of it.
    let circuit = seen.circuit().unwrap();
    assert_eq!((circuit.cycles, circuit.passes, circuit.memory()), (2, 1, false));
}
