//! A toy machine for tests, and programs for it from text ([`ciphermill_program::lines`]).
#![allow(dead_code, reason = "each test takes some of it")]

use ciphermill_ir::{BinOp, CmpOp};
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::*;
use ciphermill_program::Program;
use std::sync::Arc;

pub fn bin(op: BinOp, a: Expr, b: Expr) -> Expr {
    Expr::Bin { op, bits: 32, a: Box::new(a), b: Box::new(b) }
}

pub fn cmp(op: CmpOp, a: Expr, b: Expr) -> Expr {
    Expr::Cmp { op, bits: 32, a: Box::new(a), b: Box::new(b) }
}

pub fn op(i: usize) -> Expr {
    Expr::Operand(i)
}

pub fn imm(i: usize) -> Expr {
    Expr::Imm(i)
}

pub fn set(i: usize, value: Expr) -> Stmt {
    Stmt::Assign { dest: Dest::Operand(i), value }
}

pub fn load(bytes: u8, signed: bool, addr: Expr) -> Expr {
    Expr::Load { bytes, signed, addr: Box::new(addr) }
}

/// An instruction: `d` defines, `u` uses, `i` an immediate, `l` a label.
pub fn instr(name: &str, operands: &str, kind: InstrKind, semantics: Vec<Stmt>) -> Instr {
    let operand = |(n, c): (usize, char)| Operand {
        name: format!("o{n}"),
        kind: match c {
            'd' => OperandKind::Reg { file: 0, def: true, used: false },
            'u' => OperandKind::Reg { file: 0, def: false, used: true },
            'i' => OperandKind::Imm { min: -2048, max: 2047, step: 1, values: None },
            _ => OperandKind::Label,
        },
    };
    Instr {
        name: name.into(),
        asm: name.into(),
        operands: operands.chars().enumerate().map(operand).collect(),
        semantics,
        temps: 4,
        units: vec![],
        issue_cycles: 1,
        issue_before: vec![],
        early: vec![],
        unit_cycles: 1,
        uops: 1,
        uop_units: vec![],
        latency: 1,
        dest_latency: vec![],
        taken_cycles: 0,
        untaken_cycles: 0,
        far_cycles: [0; 2],
        far_asm: None,
        varies_with: vec![],
        delay_slots: 0,
        timing: String::new(),
        paths: vec![],
        cluster: 0,
        only: vec![],
        annul: false,
        bytes: 4,
        short_bytes: None,
        short_reach: (-128, 127),
        reach: None,
        literal: None,
        sizes: vec![],
        kind,
        extension: None,
        selectable: true,
        unaligned: false,
        flash: false,
        ports: vec![],
        ascending: vec![],
    }
}

/// A little machine: 16 registers `r0` (zero) to `r15`, single issue,
/// interlocked, every latency 1. Tests change what they are about.
pub fn toy() -> Machine {
    use BinOp::*;
    use InstrKind::*;
    let mut instrs = Vec::new();
    for (name, o) in [
        ("add", Add),
        ("sub", Sub),
        ("and", And),
        ("or", Or),
        ("xor", Xor),
        ("mul", Mul),
        ("divs", DivS),
        ("divu", DivU),
        ("shl", Shl),
        ("shru", ShrU),
        ("rotl", RotL),
    ] {
        instrs.push(instr(name, "duu", Compute, vec![set(0, bin(o, op(1), op(2)))]));
        instrs.push(instr(&format!("{name}i"), "dui", Compute, vec![set(0, bin(o, op(1), imm(2)))]));
    }
    let at = || bin(Add, op(1), imm(2));
    for (name, bytes, signed) in
        [("ldw", 4, false), ("ldb", 1, false), ("ldbs", 1, true), ("ldh", 2, false), ("ldhs", 2, true)]
    {
        instrs.push(instr(name, "dui", Load, vec![set(0, load(bytes, signed, at()))]));
    }
    for (name, bytes) in [("stw", 4), ("stb", 1), ("sth", 2)] {
        instrs.push(instr(name, "uui", Store, vec![Stmt::Store { bytes, addr: at(), value: op(0) }]));
    }
    for (name, o) in [("beq", CmpOp::Eq), ("bne", CmpOp::Ne), ("bltu", CmpOp::LtU), ("blt", CmpOp::LtS)] {
        let go = Stmt::Goto { cond: Some(cmp(o, op(0), op(1))), target: imm(2) };
        instrs.push(instr(name, "uul", Branch, vec![go]));
    }
    instrs.push(instr("j", "l", Jump, vec![Stmt::Goto { cond: None, target: imm(0) }]));
    let link = |after: u64| Stmt::Assign { dest: Dest::Fixed(Reg(15)), value: bin(Add, Expr::Pc, Expr::Const(after)) };
    instrs.push(instr("call", "l", Call, vec![link(4), Stmt::Goto { cond: None, target: imm(0) }]));
    instrs.push(instr("calli", "u", CallIndirect, vec![link(4), Stmt::Goto { cond: None, target: op(0) }]));
    instrs.push(instr("ret", "", JumpIndirect, vec![Stmt::Goto { cond: None, target: Expr::Fixed(Reg(15)) }]));
    instrs.push(instr("li", "di", Compute, vec![set(0, imm(1))]));
    instrs.push(instr("mov", "du", Compute, vec![set(0, op(1))]));
    instrs.push(instr("trap", "", Trap, vec![Stmt::Trap]));
    instrs.push(instr("nop", "", Compute, vec![]));
    let id = |name: &str| InstrId(instrs.iter().position(|i| i.name == name).unwrap() as u16);
    let ops = FrameOps {
        mov: id("mov"),
        add_imm: id("addi"),
        add: id("add"),
        load: id("ldw"),
        store: id("stw"),
        load_far: None,
        store_far: None,
        push: Vec::new(),
        pop: Vec::new(),
        jump: id("j"),
        far_jump: None,
        call: id("call"),
        call_indirect: id("calli"),
        ret: id("ret"),
        trap: id("trap"),
        nop: id("nop"),
    };
    let reg = |n: std::ops::Range<u16>| n.map(Reg).collect::<Vec<_>>();
    Machine {
        name: "toy".into(),
        title: String::new(),
        description: String::new(),
        word_bits: 32,
        narrow: Narrow::Signed,
        endian: Endian::Little,
        clock_mhz: 1.0,
        power_mw: None,
        files: vec![RegFile {
            name: "r".into(),
            bits: 32,
            first: Reg(0),
            count: 16,
            cluster: 0,
            state: false,
            reset: 0,
            prefixed: vec![],
            prefix_bytes: 1,
            rotating: (Reg(0), 0),
        }],
        regs: (0..16).map(|n| RegInfo { name: format!("r{n}"), file: 0, zero: n == 0, views: vec![] }).collect(),
        units: vec![],
        instrs,
        compounds: vec![],
        rules: vec![],
        narrow_rules: vec![],
        variants: vec![],
        tables: vec![],
        matrices: vec![],
        issue: Issue { width: 1, interlock: true, packet_bytes: 0, cross_stall: 0, register_reads: 0, explicit: false },
        core: None,
        branch: BranchModel { predictor: Predictor::None, fetch_bytes: 4, split_target_cycles: 0 },
        memory: MemorySystem {
            icache: None,
            dcache: None,
            unaligned: true,
            ram: None,
            flash_from: 0,
            flash_bytes: None,
            tables_in_flash: None,
            banks: None,
        },
        abi: Abi {
            args: reg(1..5),
            results: reg(1..3),
            callee_args: reg(1..5),
            callee_results: reg(1..3),
            allocatable: reg(1..14),
            callee_saved: reg(10..14),
            call_preserved: vec![],
            stack_pointer: Reg(14),
            return_address: Some(Reg(15)),
            return_bytes: 4,
            code_unit: 1,
            return_stack: None,
            scratch: vec![],
            globals: vec![],
            spill: vec![],
            stack_align: 16,
            frame_reserve: 0,
            ops,
            link: None,
            windows: None,
            rotation: None,
        },
        chains: None,
        codegen: Codegen { select: Selection::Straight },
        asm: AsmSyntax {
            reg_prefix: String::new(),
            guard: String::new(),
            comment: "#".into(),
            prologue: vec![],
            function_type: None,
            code_pointer: None,
        },
        extensions: vec![],
        sources: Default::default(),
        hash: String::new(),
    }
}

/// A machine of `machines/`, with settings.
pub fn real(name: &str, set: &[(&str, &str)]) -> Machine {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let set: Vec<_> = set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    load_from_dir(&root, name, &[], &[], &set).unwrap_or_else(|e| panic!("{name}: {e:?}"))
}

/// Change one instruction.
pub fn tune(m: &mut Machine, name: &str, f: impl Fn(&mut Instr)) {
    let i = m.instrs.iter_mut().find(|i| i.name == name).unwrap_or_else(|| panic!("no instruction {name}"));
    f(i);
}

/// Assemble a program; panics on bad text.
pub fn assemble(machine: Machine, text: &str) -> Program {
    ciphermill_program::lines::assemble(Arc::new(machine), text).unwrap_or_else(|e| panic!("{e}"))
}

/// A program without functions and with one page of memory.
pub fn empty(machine: Arc<Machine>) -> Program {
    ciphermill_program::lines::empty(machine)
}
