//! Every timing rule on the toy machine, worked out by hand.
//!
//! A table beside each program gives the issue cycle of every instruction. The
//! total is the first cycle at which an instruction after the last could issue.

mod common;

use ciphermill_machine::sem::Stmt;
use ciphermill_machine::{Cache, InstrId, Machine, Predictor, Reg, RegInfo, Replacement, Unit, Windows, WritePolicy};
use ciphermill_sim::{SimOptions, Simulator, Stats, Stop};
use common::{assemble, imm, instr, op, toy, tune};
use std::sync::Arc;

/// Run function 0 once; all counts.
fn run(m: Machine, text: &str, args: &[u64]) -> Stats {
    let mut s = Simulator::new(Arc::new(assemble(m, text)), SimOptions::default()).unwrap();
    s.call(0, args).unwrap();
    check(&s.stats());
    s.stats()
}

/// The parts sum to the whole, whatever ran.
fn check(s: &Stats) {
    assert_eq!(s.cycles, s.issue_cycles + s.stalls.total());
    assert_eq!(s.issue_cycles, s.bundles);
    assert_eq!(s.roles.other + s.roles.lookup + s.roles.overhead, s.instructions);
    assert_eq!(s.per_instr.iter().sum::<u64>(), s.instructions);
    assert_eq!(s.per_func.iter().sum::<u64>(), s.instructions);
}

#[test]
fn one_a_cycle() {
    // 0 add, 1 add, 2 ret: 3 cycles.
    let s = run(
        toy(),
        "
        func f 0 0
            addi r1, r0, 1
            add r1, r1, r1
            ret
    ",
        &[],
    );
    assert_eq!((s.cycles, s.instructions), (3, 3));
}

#[test]
fn load_use() {
    let mut m = toy();
    tune(&mut m, "ldw", |i| i.latency = 2);
    // 0 ldw (r1 ready at 2), 2 add, 3 ret: 4 cycles.
    let s = run(
        m.clone(),
        "
        func f 1 0
            ldw r1, r1, 0
            add r1, r1, r1
            ret
    ",
        &[0],
    );
    assert_eq!((s.cycles, s.stalls.load_wait), (4, 1));
    // 0 ldw, 1 add (other registers), 2 add (r1), 3 ret: 4 cycles, no wait.
    let s = run(
        m,
        "
        func f 1 0
            ldw r1, r1, 0
            add r2, r3, r3
            add r1, r1, r1
            ret
    ",
        &[0],
    );
    assert_eq!((s.cycles, s.stalls.total()), (4, 0));
}

#[test]
fn hazards_cross_blocks_and_calls() {
    let mut m = toy();
    tune(&mut m, "ldw", |i| i.latency = 4);
    tune(&mut m, "mul", |i| i.latency = 3);
    // 0 ldw (r1 at 4), 1 beq (not taken: r3 = 1), 4 add, 5 mul (r2 at 8), 6 j, 8 add r2, 9 ret: 10.
    let s = run(
        m.clone(),
        "
        func f 1 0
            ldw r1, r1, 0
            beq r3, r0, out
        next:
            add r1, r1, r1
            mul r2, r1, r1
            j out
        out:
            add r2, r2, r2
            ret
    ",
        &[0],
    );
    assert_eq!((s.cycles, s.stalls.load_wait, s.stalls.operand_wait), (10, 2, 1));
    // Into a callee and back: 0 mov, 1 ldw (r1 at 5), 2 call, 5 mul (r2 at 8), 6 ret, 8 add, 9 mov, 10 ret: 11.
    let s = run(
        m,
        "
        func f 1 0
            mov r9, r15
            ldw r1, r1, 0
            call @g
            add r2, r2, r2
            mov r15, r9
            ret
        func g 0 0
            mul r2, r1, r1
            ret
    ",
        &[0],
    );
    assert_eq!((s.cycles, s.stalls.load_wait, s.stalls.operand_wait), (11, 2, 1));
}

#[test]
fn multi_cycle_issue() {
    let mut m = toy();
    tune(&mut m, "stw", |i| i.issue_cycles = 2);
    tune(&mut m, "mul", |i| i.issue_cycles = 5);
    tune(&mut m, "mul", |i| i.latency = 5);
    // 0 stw, 2 mul, 7 add (ready at 7 too), 8 ret: 9. Extra: 1 + 4.
    let s = run(
        m,
        "
        func f 1 0
            stw r0, r0, 0
            mul r1, r1, r1
            add r1, r1, r1
            ret
    ",
        &[0],
    );
    assert_eq!((s.cycles, s.stalls.unit), (9, 5));
}

#[test]
fn a_busy_unit() {
    let mut m = toy();
    m.units = vec![Unit { name: "M".into(), count: 1, cluster: 0, shared: 1 }];
    tune(&mut m, "mul", |i| (i.units, i.unit_cycles, i.latency) = (vec![0], 4, 4));
    // 0 mul, 1 add, 4 mul (unit free at 4), 5 ret: 6. The unit is still busy then, the next call finds it free.
    let text = "
        func f 2 0
            mul r3, r1, r1
            add r1, r1, r1
            mul r4, r2, r2
            ret
    ";
    let s = run(m.clone(), text, &[1, 2]);
    assert_eq!((s.cycles, s.stalls.unit), (6, 2));
    // Two such units: 0 mul, 1 add, 2 mul, 3 ret.
    m.units[0].count = 2;
    assert_eq!(run(m, text, &[1, 2]).cycles, 4);
}

#[test]
fn units_are_matched_not_grabbed() {
    // `add` runs on A or B, `mul` on A only: both fit one bundle in either order.
    let mut m = toy();
    m.issue.width = 2;
    let unit = |name: &str| Unit { name: name.into(), count: 1, cluster: 0, shared: 1 };
    m.units = vec![unit("A"), unit("B")];
    tune(&mut m, "mul", |i| i.units = vec![0]);
    tune(&mut m, "add", |i| i.units = vec![0, 1]);
    let s = run(
        m.clone(),
        "
        func f 2 0
            add r3, r1, r1 || mul r4, r1, r1
            mul r4, r1, r1 || add r3, r1, r1
            ret
    ",
        &[1, 2],
    );
    assert_eq!((s.cycles, s.instructions, s.bundles), (3, 5, 3));
    let p = assemble(
        m,
        "
        func f 0 0
            mul r3, r1, r1 || mul r4, r1, r1
            ret
    ",
    );
    let stop = Simulator::new(Arc::new(p), SimOptions::default()).unwrap().call(0, &[]);
    assert!(matches!(stop, Err(Stop::Internal(m)) if m.contains("units")));
}

const COUNTDOWN: &str = "
    func f 1 0
    again:
        subi r1, r1, 1
        bne r1, r0, again
        ret
";

#[test]
fn taken_and_untaken_branches() {
    let mut m = toy();
    tune(&mut m, "bne", |i| (i.taken_cycles, i.untaken_cycles) = (2, 1));
    tune(&mut m, "ret", |i| i.taken_cycles = 3);
    // r1 = 3: three rounds of 2, taken twice (+2 each), untaken once (+1), ret 1 + 3: 6 + 4 + 1 + 4 = 15.
    let s = run(m.clone(), COUNTDOWN, &[3]);
    assert_eq!((s.cycles, s.stalls.branch), (15, 8));
    // Predicted backward-taken: taken is free, the last time costs 1: 6 + 1 + 4 = 11.
    m.branch.predictor = Predictor::BackwardTaken;
    assert_eq!(run(m.clone(), COUNTDOWN, &[3]).cycles, 11);
    // Forward branches are guessed untaken. r1 = 0: 0 beq untaken, 1 bne (r2 = 1) taken +2, 4 ret, +3: 8.
    tune(&mut m, "beq", |i| (i.taken_cycles, i.untaken_cycles) = (2, 1));
    let s = run(
        m,
        "
        func f 2 0
            beq r2, r0, out
            bne r2, r0, out
            nop
        out:
            ret
    ",
        &[0, 1],
    );
    assert_eq!((s.cycles, s.stalls.branch), (8, 5));
}

#[test]
fn delay_slots_execute_and_annul() {
    let mut m = toy();
    tune(&mut m, "bne", |i| i.delay_slots = 1);
    let text = "
        func f 1 1
            li r2, 0
        again:
            subi r1, r1, 1
            bne r1, r0, again
            addi r2, r2, 1
            mov r1, r2
            ret
    ";
    // li; three rounds of three; mov, ret: 1 + 9 + 2 = 12.
    let s = run(m.clone(), text, &[3]);
    assert_eq!((s.cycles, s.instructions), (12, 12));
    // Annulled when not taken: the last slot takes its cycle and does nothing.
    tune(&mut m, "bne", |i| i.annul = true);
    let mut sim = Simulator::new(Arc::new(assemble(m, text)), SimOptions::default()).unwrap();
    assert_eq!(sim.call(0, &[3]).unwrap(), [2]);
    let s = sim.stats();
    check(&s);
    assert_eq!((s.cycles, s.instructions, s.stalls.branch), (12, 11, 1));
}

#[test]
fn the_delay_slot_does_not_change_the_decision() {
    let mut m = toy();
    tune(&mut m, "bne", |i| i.delay_slots = 1);
    tune(&mut m, "ret", |i| i.delay_slots = 1);
    // The slots write the registers that the jumps have read.
    let p = assemble(
        m,
        "
        func f 1 1
            bne r1, r0, out
            li r1, 0
            li r1, 99
        out:
            ret
            li r15, 0
    ",
    );
    let mut s = Simulator::new(Arc::new(p), SimOptions::default()).unwrap();
    assert_eq!(s.call(0, &[1]).unwrap(), [0]);
    assert_eq!(s.call(0, &[0]).unwrap(), [99]);
}

fn cache(bytes: u32, ways: u32, write: WritePolicy) -> Cache {
    Cache { bytes, ways, line_bytes: 16, replacement: Replacement::Lru, write, miss_cycles: 10, writeback_cycles: 6 }
}

#[test]
fn instruction_cache() {
    let mut m = toy();
    m.memory.icache = Some(cache(64, 1, WritePolicy::Through));
    // Three instructions in one line: one miss. r1 = 2: 4 + 1 = 5 cycles and 10.
    let s = run(m.clone(), COUNTDOWN, &[2]);
    assert_eq!((s.cycles, s.stalls.icache), (15, 10));
    // The function (aligned to 16 bytes) and its callee 64 bytes later share a
    // line: each call and return misses. 4 + 4 + 5 + 1 + 1 instructions.
    let s = run(
        m,
        "
        func f 0 0
            mov r9, r15
            call @g
            mov r15, r9
            ret
        func pad 0 0
            nop
            nop
            nop
            nop
            nop
            nop
            nop
            nop
            nop
            nop
            nop
            ret
        func g 0 0
            ret
    ",
        &[],
    );
    // Misses: f, g, f again. 5 instructions.
    assert_eq!((s.cycles, s.icache.unwrap().read_misses), (35, 3));
}

#[test]
fn data_cache() {
    let mut m = toy();
    m.memory.dcache = Some(cache(64, 1, WritePolicy::Through));
    // Misses: address 0, 16, then 64 throws 0 out, then 0 again; 4 hits. 5 + 40 cycles.
    let text = "
        func f 0 0
            ldw r1, r0, 0
            ldw r1, r0, 4
            ldw r1, r0, 16
            ldw r1, r0, 64
            stw r1, r0, 128
            ldw r1, r0, 0
            ret
    ";
    let s = run(m.clone(), text, &[]);
    assert_eq!((s.cycles, s.stalls.dcache, s.loads, s.stores), (47, 40, 5, 1));
    // Write-back: the store allocates (64's line goes), and 0 evicts the dirty line: 50 + 6.
    m.memory.dcache = Some(cache(64, 1, WritePolicy::Back));
    let s = run(m.clone(), text, &[]);
    assert_eq!((s.cycles, s.dcache.unwrap().writebacks), (7 + 56, 1));
    // Two ways hold both 0 and 64.
    m.memory.dcache = Some(cache(128, 2, WritePolicy::Through));
    assert_eq!(run(m, text, &[]).stalls.dcache, 30);
}

#[test]
fn caches_keep_their_content_between_calls() {
    let mut m = toy();
    m.memory.dcache = Some(cache(64, 1, WritePolicy::Through));
    let p = assemble(
        m,
        "
        func f 0 0
            ldw r1, r0, 0
            ret
    ",
    );
    let mut s = Simulator::new(Arc::new(p), SimOptions::default()).unwrap();
    s.call(0, &[]).unwrap();
    s.reset_stats();
    s.call(0, &[]).unwrap();
    assert_eq!((s.stats().cycles, s.stats().dcache.unwrap().read_misses), (2, 0));
}

/// The toy with windows: r1 to r2 outs, r3 to r4 locals, r5 to r6 ins; the
/// stack pointer is the out r2 and the return address the out r1.
fn windowed() -> Machine {
    let mut m = toy();
    let id = m.instrs.len() as u16;
    let save = vec![Stmt::WindowSave, common::set(0, common::bin(ciphermill_ir::BinOp::Add, op(1), imm(2)))];
    m.instrs.push(instr("save", "dui", ciphermill_machine::InstrKind::Frame, save));
    m.instrs.push(instr("restore", "", ciphermill_machine::InstrKind::Frame, vec![Stmt::WindowRestore]));
    let regs = |a: u16| vec![Reg(a), Reg(a + 1)];
    m.abi.args = vec![Reg(7)];
    m.abi.results = vec![Reg(7)];
    m.abi.callee_saved.clear();
    m.abi.stack_pointer = Reg(2);
    m.abi.return_address = Some(Reg(15));
    m.abi.windows = Some(Windows {
        count: 4,
        ins: regs(5),
        locals: regs(3),
        outs: regs(1),
        save: InstrId(id),
        save_reg: InstrId(id),
        restore: InstrId(id + 1),
        return_address: Reg(5),
        ret: m.abi.ops.ret,
        overflow_cycles: 20,
        underflow_cycles: 30,
    });
    m.regs.push(RegInfo { name: "unused".into(), file: 0, zero: false, views: vec![] });
    m
}

#[test]
fn window_traps() {
    // Depth n: n saves, then n restores. Each level: subi, save, mov, beq, call / restore, ...
    let text = "
        func f 1 1
            save r2, r2, -64
            mov r3, r15
            mov r4, r7
            beq r7, r0, out
            subi r7, r7, 1
            call @f
        out:
            add r7, r7, r4
            mov r15, r3
            restore
            ret
    ";
    let p = Arc::new(assemble(windowed(), text));
    // n = 2: three windows beside the first, which is what a file of 4 keeps (3): one overflow.
    for (n, traps) in [(0, 0), (1, 0), (2, 1), (3, 2), (9, 8)] {
        let mut s = Simulator::new(p.clone(), SimOptions::default()).unwrap();
        assert_eq!(s.call(0, &[n]).unwrap(), [n * (n + 1) / 2]);
        let st = s.stats();
        check(&st);
        assert_eq!((st.window_overflows, st.window_underflows), (traps, traps), "{n}");
        // Ten instructions a level, but the last has no subi and call.
        assert_eq!(st.cycles, 10 * (n + 1) - 2 + traps * 50);
    }
    // Endless recursion ends with the stack.
    let p = assemble(
        windowed(),
        "
        func f 0 0
            save r2, r2, -64
            call @f
    ",
    );
    // The call would return to the end of the function, were it to return.
    let stop = Simulator::new(Arc::new(p), SimOptions::default()).unwrap().call(0, &[]);
    assert_eq!(stop, Err(Stop::StackOverflow));
}

#[test]
fn hazards_follow_the_window() {
    let mut m = windowed();
    tune(&mut m, "ldw", |i| i.latency = 4);
    // 0 ldw (out r1 at 4), 1 save: the in r5 is ready at 4, 4 mov, 5 restore, 6 ret: 7.
    let s = run(
        m,
        "
        func f 0 0
            ldw r1, r0, 0
            save r2, r2, -64
            mov r3, r5
            restore
            ret
    ",
        &[],
    );
    assert_eq!((s.cycles, s.stalls.load_wait), (7, 2));
}

#[test]
fn exposed_latency_reads_the_old_value() {
    let mut m = toy();
    m.issue.interlock = false;
    tune(&mut m, "mul", |i| i.latency = 3);
    tune(&mut m, "ret", |i| i.delay_slots = 2);
    // r1 = 5: 0 mul (r1 = 25 at 3), 1 add reads 5, 2 add reads 5, 3 add reads 25.
    let text = "
        func f 1 1
            mul r1, r1, r1
            add r2, r1, r0
            add r3, r1, r0
            add r4, r1, r0
            ret
            add r1, r2, r3
            add r1, r1, r4
    ";
    let p = Arc::new(assemble(m.clone(), text));
    let mut s = Simulator::new(p, SimOptions::default()).unwrap();
    assert_eq!(s.call(0, &[5]).unwrap(), [5 + 5 + 25]);
    // Seven bundles; the return takes effect after its two slots.
    assert_eq!(s.stats().cycles, 7);
    check(&s.stats());
    m.issue.interlock = true;
    let p = Arc::new(assemble(m, text));
    let mut s = Simulator::new(p, SimOptions::default()).unwrap();
    assert_eq!(s.call(0, &[5]).unwrap(), [75]);
    assert_eq!(s.stats().cycles, 9);
}

#[test]
fn exposed_branches_take_effect_after_their_slots() {
    let mut m = toy();
    m.issue.interlock = false;
    m.issue.width = 2;
    tune(&mut m, "bne", |i| i.delay_slots = 5);
    tune(&mut m, "ret", |i| i.delay_slots = 5);
    let mut idle = instr("idle5", "", ciphermill_machine::InstrKind::Compute, vec![]);
    idle.issue_cycles = 5;
    m.instrs.push(idle.clone());
    (idle.name, idle.issue_cycles) = ("idle9".into(), 9);
    m.instrs.push(idle);
    // A round: 0 sub and bne (which reads the old r1), 1 to 5 idle: 6 cycles.
    // r1 = 3: taken with 3, 2, 1, not with 0: four rounds. Then ret and an idle
    // that the jump cuts short after 5 of its 9 cycles: 24 + 6 = 30.
    let p = Arc::new(assemble(
        m,
        "
        func f 1 1
        again:
            subi r1, r1, 1 || bne r1, r0, again
            idle5
            ret
            idle9
    ",
    ));
    let mut s = Simulator::new(p, SimOptions::default()).unwrap();
    assert_eq!(s.call(0, &[3]).unwrap(), [0xffff_ffff]);
    assert_eq!((s.stats().cycles, s.stats().branches_taken), (30, 3));
    check(&s.stats());
}

#[test]
fn exposed_faults_are_found() {
    let mut m = toy();
    m.issue.interlock = false;
    m.units = vec![Unit { name: "M".into(), count: 1, cluster: 0, shared: 1 }];
    tune(&mut m, "mul", |i| (i.units, i.unit_cycles, i.latency) = (vec![0], 2, 2));
    let stop = |text: &str| match Simulator::new(Arc::new(assemble(m.clone(), text)), SimOptions::default())
        .unwrap()
        .call(0, &[])
    {
        Err(Stop::Internal(e)) => e,
        other => panic!("{other:?}"),
    };
    assert!(
        stop(
            "
        func f 0 0
            mul r1, r1, r1
            add r1, r1, r1
            ret
    "
        )
        .contains("two writes")
    );
    assert!(
        stop(
            "
        func f 0 0
            mul r1, r1, r1
            mul r2, r2, r2
            ret
    "
        )
        .contains("busy")
    );
}
