//! What programs do: values, memory, calls, and every way to stop.

mod common;

use ciphermill_ir::{SYSTEM_BASE, TrapCode};
use ciphermill_machine::Endian;
use ciphermill_sim::{SimOptions, Simulator, Stop};
use common::{assemble, toy, tune};
use std::sync::Arc;

fn sim(text: &str) -> Simulator {
    Simulator::new(Arc::new(assemble(toy(), text)), SimOptions::default()).unwrap()
}

#[test]
fn loop_sums() {
    let mut s = sim("
        func sum 1 1
            li r2, 0
        again:
            add r2, r2, r1
            subi r1, r1, 1
            bne r1, r0, again
            mov r1, r2
            ret
    ");
    assert_eq!(s.call(0, &[10]).unwrap(), [55]);
    assert_eq!(s.call(0, &[1000]).unwrap(), [500_500]);
    // Ten rounds of three, then a thousand; three instructions around each.
    assert_eq!(s.stats().instructions, 3 * 1010 + 2 * 3);
    assert_eq!((s.stats().branches_taken, s.stats().branches_untaken), (1008, 2));
    assert_eq!(s.stats().jumps, 2);
}

#[test]
fn calls_nest_and_return() {
    let mut s = sim("
        func main 1 1
            addi r14, r14, -16
            stw r15, r14, 0 !stack
            call @double
            call @double
            ldw r15, r14, 0 !stack
            addi r14, r14, 16
            ret
        func double 1 1
            add r1, r1, r1
            ret
    ");
    assert_eq!(s.call_export("main", &[5]).unwrap(), [20]);
    assert_eq!(s.stats().stack_bytes, 16);
    assert_eq!(s.stats().per_func, [7, 4]);
}

#[test]
fn indirect_calls_reach_functions() {
    let mut p = assemble(
        toy(),
        "
        func main 0 1
            mov r9, r15
            ldw r2, r0, -268435448 !system
            calli r2
            mov r15, r9
            ret
        func seven 0 1
            li r1, 7
            ret
    ",
    );
    p.system_func_refs = vec![ciphermill_ir::FuncRef { offset: 8, func: ciphermill_ir::FuncId::from_u32(1) }];
    let mut s = Simulator::new(Arc::new(p), SimOptions::default()).unwrap();
    assert_eq!(s.call(0, &[]).unwrap(), [7]);
}

#[test]
fn memory_in_both_byte_orders() {
    let text = "
        func f 1 4
            ldw r3, r1, 0
            ldhs r2, r1, 2
            sth r3, r1, 4
            ldb r4, r1, 0
            stb r4, r1, 8
            stw r4, r0, -268435424 !system
            mov r1, r3
            ret
    ";
    // A word is what WebAssembly says it is, on either machine. The big-endian
    // machine's halfword 2 is the lower one, and its byte 0 the uppermost.
    for (endian, half, byte, stored, at) in
        [(Endian::Little, 0xffff_8403, 1, 104, 108), (Endian::Big, 0x0201, 0x84, 106, 111)]
    {
        let mut m = toy();
        m.endian = endian;
        let mut s = Simulator::new(Arc::new(assemble(m, text)), SimOptions::default()).unwrap();
        s.memory_mut()[100..104].copy_from_slice(&[1, 2, 3, 0x84]);
        assert_eq!(s.call(0, &[100]).unwrap(), [0x8403_0201, half, byte, 0]);
        assert_eq!(s.memory()[stored..stored + 2], [1, 2]);
        assert_eq!(u64::from(s.memory()[at]), byte);
    }
}

#[test]
fn promises_hold_for_the_bytes_that_change() {
    // The big-endian machine's byte 103 is the module's 100.
    let mut m = toy();
    m.endian = Endian::Big;
    let mut p = assemble(
        m,
        "
        func f 1 0
            stb r0, r1, 0
            ret
    ",
    );
    p.readonly.push(100..101);
    let mut s = Simulator::new(Arc::new(p), SimOptions::default()).unwrap();
    assert!(s.call(0, &[100]).is_ok());
    assert!(matches!(s.call(0, &[103]), Err(Stop::PromiseBroken(_))));
}

#[test]
fn linear_accesses_trap_at_the_mathematical_address() {
    let mut s = sim("
        func f 1 1
            ldw r1, r1, 4
            ret
        func g 1 1
            ldw r1, r1, -4
            ret
    ");
    assert!(s.call(0, &[65528]).is_ok());
    let oob = |func| Stop::Trap { code: TrapCode::MemoryOutOfBounds, func, loc: 7 };
    assert_eq!(s.call(0, &[65529]), Err(oob(0)));
    // 2^32 - 4 + 4 does not wrap to 0, and 0 - 4 does not wrap to 2^32 - 4.
    assert_eq!(s.call(0, &[0xffff_fffc]), Err(oob(0)));
    assert_eq!(s.call(1, &[0]), Err(oob(1)));
    let lax = SimOptions { strict_addresses: false, ..SimOptions::default() };
    let mut s = Simulator::new(s.program().clone(), lax).unwrap();
    assert!(s.call(0, &[0xffff_fffc]).is_ok());
}

#[test]
fn memory_grows_by_a_store() {
    let mut s = sim("
        func f 2 1
            stw r1, r0, -268435456 !system
            stw r1, r2, 0
            ldw r1, r2, 0
            ret
    ");
    assert_eq!(s.call(0, &[2, 131068]).unwrap(), [2]);
    assert_eq!(s.memory().len(), 131072);
    assert!(matches!(s.call(0, &[1, 70000]), Err(Stop::Trap { .. })));
    assert!(matches!(s.call(0, &[3, 0]), Err(Stop::Internal(_))));
    assert_eq!(SYSTEM_BASE.wrapping_neg(), 268435456);
}

#[test]
fn divisions_trap_by_operands() {
    let mut s = sim("
        func f 2 1
            divs r1, r1, r2
            ret
    ");
    let trap = |code| Err(Stop::Trap { code, func: 0, loc: 7 });
    assert_eq!(s.call(0, &[7, 0]), trap(TrapCode::IntegerDivisionByZero));
    assert_eq!(s.call(0, &[0x8000_0000, 0xffff_ffff]), trap(TrapCode::IntegerOverflow));
    assert_eq!(s.call(0, &[0xffff_fff9, 2]).unwrap(), [0xffff_fffd]);
}

#[test]
fn stops() {
    let mut s = sim("
        func forever 0 0
        again:
            j again
        func traps 0 0
            trap
        func clobbers 0 0
            li r10, 1
            ret
        func lost 0 0
            li r15, 12
            ret
        func deep 0 0
        again:
            addi r14, r14, -1024
            stw r0, r14, 0 !stack
            j again
        func falls 0 0
            nop
    ");
    let p = s.program().clone();
    let mut short = Simulator::new(p, SimOptions { max_instructions: 1000, ..SimOptions::default() }).unwrap();
    assert_eq!(short.call_export("forever", &[]), Err(Stop::OutOfFuel));
    assert_eq!(s.call_export("traps", &[]), Err(Stop::Trap { code: TrapCode::Unreachable, func: 1, loc: 7 }));
    let internal = |r: Result<Vec<u64>, Stop>, word: &str| match r {
        Err(Stop::Internal(m)) => assert!(m.contains(word), "{m}"),
        other => panic!("{other:?}"),
    };
    internal(s.call_export("clobbers", &[]), "r10");
    internal(s.call_export("lost", &[]), "0xc");
    internal(s.call_export("falls", &[]), "falls");
    assert_eq!(s.call_export("deep", &[]), Err(Stop::StackOverflow));
}

#[test]
fn promises_are_checked() {
    let mut m = toy();
    m.memory.unaligned = false;
    let mut p = assemble(
        m,
        "
        func f 1 0
            stw r0, r1, 0
            ret
    ",
    );
    p.readonly = vec![100..110, 200..204];
    let mut s = Simulator::new(Arc::new(p), SimOptions::default()).unwrap();
    for (at, fine) in
        [(96, true), (100, false), (108, false), (112, true), (150, false), (152, true), (200, false), (204, true)]
    {
        match s.call(0, &[at]) {
            Ok(_) => assert!(fine, "{at}"),
            Err(Stop::PromiseBroken(_)) => assert!(!fine && at != 150, "{at}"),
            Err(Stop::Misaligned(_)) => assert_eq!(at, 150),
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn arguments_and_results_overflow_into_the_system_area() {
    // Four argument registers and two results; the rest at system offset 32.
    let mut s = sim("
        func f 6 3
            ldw r5, r0, -268435424 !system
            ldw r6, r0, -268435420 !system
            sub r5, r5, r6
            stw r5, r0, -268435424 !system
            ret
    ");
    assert_eq!(s.call(0, &[1, 2, 3, 4, 50, 8]).unwrap(), [1, 2, 42]);
}

#[test]
fn bundles_read_before_they_write() {
    let mut m = toy();
    m.issue.width = 4;
    let mut s = Simulator::new(
        Arc::new(assemble(
            m,
            "
        func swap 2 2
            mov r1, r2 || mov r2, r1
            stw r1, r0, 0 || ldw r3, r0, 0
            add r1, r1, r3
            ret
    ",
        )),
        SimOptions::default(),
    )
    .unwrap();
    // Memory held 0 when the bundle with the store read it.
    assert_eq!(s.call(0, &[5, 9]).unwrap(), [9, 5]);
    assert_eq!(s.memory()[0], 9);
    assert_eq!(s.stats().bundles, 4);
}

#[test]
fn selects_run_only_the_arm_they_take() {
    use ciphermill_ir::{BinOp, CmpOp};
    use ciphermill_machine::sem::Expr;
    use common::{bin, cmp, op, set};
    // RISC-V's division: -1 for a zero divisor, no trap.
    let mut m = toy();
    tune(&mut m, "divu", |i| {
        let div = Expr::Select {
            cond: Box::new(cmp(CmpOp::Eq, op(2), Expr::Const(0))),
            then: Box::new(Expr::Const(0xffff_ffff)),
            els: Box::new(bin(BinOp::DivU, op(1), op(2))),
        };
        i.semantics = vec![set(0, div)];
    });
    let mut s = Simulator::new(
        Arc::new(assemble(
            m,
            "
        func f 2 1
            divu r1, r1, r2
            ret
    ",
        )),
        SimOptions::default(),
    )
    .unwrap();
    assert_eq!(s.call(0, &[100, 7]).unwrap(), [14]);
    assert_eq!(s.call(0, &[100, 0]).unwrap(), [0xffff_ffff]);
}

#[test]
fn start_runs_once_and_first() {
    let mut p = assemble(
        toy(),
        "
        func start 0 0
            ldw r1, r0, 0
            addi r1, r1, 1
            stw r1, r0, 0
            ret
        func get 0 1
            ldw r1, r0, 0
            ret
    ",
    );
    p.start = Some(0);
    p.data = vec![ciphermill_program::Segment { addr: 0, bytes: vec![41] }];
    let mut s = Simulator::new(Arc::new(p), SimOptions::default()).unwrap();
    assert_eq!(s.call(1, &[]).unwrap(), [42]);
    assert_eq!(s.call(1, &[]).unwrap(), [42]);
}

#[test]
fn a_wrong_operand_is_an_error() {
    let mut p = assemble(
        toy(),
        "
        func f 0 0
            add r1, r2, 3
            ret
    ",
    );
    let s = |p| Simulator::new(Arc::new(p), SimOptions::default()).unwrap().call(0, &[]);
    assert!(matches!(s(p.clone()), Err(Stop::Internal(m)) if m.contains("operand 2")));
    p.funcs[0].blocks[0].bundles[0].insts[0].instr = ciphermill_machine::InstrId(999);
    assert!(Simulator::new(Arc::new(p), SimOptions::default()).is_err());
}
