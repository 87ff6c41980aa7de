//! What loaded modules look like, on modules small enough to see through.

use ciphermill_ir::{Func, Module, Op, SYSTEM_BASE, Space, Terminator, TrapCode, verify::verify};
use ciphermill_load::load;

/// Load a module in text form and verify it.
fn loaded(text: &str) -> Module {
    let wasm = wat::parse_str(text).expect("the text is valid");
    let module = load(&wasm).unwrap_or_else(|e| panic!("{e}"));
    if let Err(e) = verify(&module) {
        panic!("{e}\n{module}");
    }
    module
}

/// The function of that export in a loaded module.
fn function(text: &str, export: &str) -> Func {
    let module = loaded(text);
    module.funcs[module.export(export).expect("it is exported")].clone()
}

fn count(func: &Func, wanted: impl Fn(Op) -> bool) -> usize {
    func.layout.iter().flat_map(|&b| &func.blocks[b].insts).filter(|&&i| wanted(func.insts[i].op)).count()
}

fn params(func: &Func) -> usize {
    func.layout[1..].iter().map(|&b| func.blocks[b].params.len()).sum()
}

#[test]
fn straight_code_is_one_block() {
    let f = function(
        r#"(module (func (export "f") (param i32 i32) (result i32) (local i32)
             (local.set 2 (i32.add (local.get 0) (local.get 1)))
             (block (block (nop)))
             (local.get 2)))"#,
        "f",
    );
    assert_eq!(f.layout.len(), 1);
    assert_eq!(f.size(), 2, "an add and a return");
}

#[test]
fn a_loop_gets_parameters_for_what_it_changes_only() {
    let f = function(
        r#"(module (func (export "f") (param i32 i32) (result i32) (local i32)
             (loop
               (local.set 2 (i32.add (local.get 2) (local.get 1)))
               (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
             (local.get 2)))"#,
        "f",
    );
    assert_eq!(params(&f), 2, "the counter and the sum, not the step");
}

#[test]
fn a_variable_set_on_both_sides_is_a_parameter_behind_them() {
    let text = |els: &str| {
        format!(
            r#"(module (func (export "f") (param i32) (result i32) (local i32)
                 (if (local.get 0) (then (local.set 1 (i32.const 5))) {els})
                 (local.get 1)))"#
        )
    };
    assert_eq!(params(&function(&text("(else (local.set 1 (i32.const 6)))"), "f")), 1);
    let f = function(&text(""), "f");
    assert_eq!(params(&f), 1);
    assert_eq!(f.layout.len(), 3, "an if without else has no block for the else");
}

#[test]
fn dead_code_makes_nothing() {
    let f = function(
        r#"(module (func (export "f") (param i32) (result i32)
             (block (result i32)
               (br 0 (i32.const 1))
               (loop (br 0)) (if (then (unreachable)) (else (nop)))
               (i32.add)
               (block (br_table 0 0 (i32.const 0))))))"#,
        "f",
    );
    assert_eq!(f.size(), 3, "a constant, a jump and a return behind it");
}

#[test]
fn what_follows_an_endless_loop_is_dead() {
    let f = function(r#"(module (func (export "f") (result i32) (loop (br 0)) (i32.const 1)))"#, "f");
    assert_eq!(count(&f, |op| matches!(op, Op::Const(_))), 0);
}

#[test]
fn multi_value_blocks_loops_and_functions() {
    let f = function(
        r#"(module (func (export "f") (param i32 i64) (result i64 i32)
             (local.get 0) (local.get 1)
             (block (param i32 i64) (result i32 i64) (br_if 0 (local.get 0)))
             (loop (param i32 i64) (result i64 i32)
               (drop) (br_if 1 (i64.const 3) (i32.const 4) (i32.const 1)) (drop) (drop) (drop)
               (local.get 1) (local.get 0))
             (return)))"#,
        "f",
    );
    assert_eq!(f.sig.results.len(), 2);
}

#[test]
fn a_table_branch_is_a_switch_with_arguments() {
    let f = function(
        r#"(module (func (export "f") (param i32) (result i32)
             (block (result i32) (block (result i32)
               (br_table 0 1 0 (i32.const 7) (local.get 0)))
               (i32.const 1) (i32.add))))"#,
        "f",
    );
    let switch = f.layout.iter().find_map(|&b| match &f.blocks[b].term {
        Terminator::Switch { targets, default, .. } => Some((targets.clone(), default.clone())),
        _ => None,
    });
    let (targets, default) = switch.expect("there is a switch");
    assert_eq!(targets.len(), 2);
    assert_eq!(targets[0].block, default.block);
    assert_ne!(targets[1].block, default.block);
}

#[test]
fn a_table_branch_without_cases_is_a_jump() {
    let f = function(r#"(module (func (export "f") (param i32) (block (br_table 0 (local.get 0)))))"#, "f");
    assert!(f.layout.iter().all(|&b| !matches!(f.blocks[b].term, Terminator::Switch { .. })));
}

#[test]
fn greater_than_is_less_than_with_exchanged_operands() {
    let f = function(
        r#"(module (func (export "f") (param i32 i32) (result i32) (i32.gt_u (local.get 0) (local.get 1))))"#,
        "f",
    );
    let inst = f.blocks[f.entry].insts[0];
    let params = &f.blocks[f.entry].params;
    assert_eq!(f.insts[inst].op, Op::Cmp(ciphermill_ir::CmpOp::LtU));
    assert_eq!(f.insts[inst].args[..], [params[1], params[0]]);
}

#[test]
fn every_operator_knows_where_it_stood() {
    let f = function(r#"(module (func (export "f") (param i32) (result i32) (i32.clz (local.get 0))))"#, "f");
    let loc = f.insts[f.blocks[f.entry].insts[0]].loc as usize;
    let wasm = wat::parse_str(r#"(module (func (export "f") (param i32) (result i32) (i32.clz (local.get 0))))"#);
    assert_eq!(wasm.expect("the text is valid")[loc], 0x67);
}

#[test]
fn alignments_are_those_the_module_states() {
    let f = function(
        r#"(module (memory 1) (func (export "f") (param i32) (result i64)
             (i64.load offset=6 align=2 (local.get 0))))"#,
        "f",
    );
    let access = f.blocks[f.entry].insts.iter().find_map(|&i| match f.insts[i].op {
        Op::Load(access) => Some(access),
        _ => None,
    });
    let access = access.expect("there is a load");
    assert_eq!((access.bytes, access.align, access.offset, access.space), (8, 2, 6, Space::Linear));
}

#[test]
fn the_system_area_holds_sizes_globals_and_table() {
    let m = loaded(
        r#"(module (memory 2 40000) (global $a (mut i64) (i64.const -2)) (global $b i32 (i32.const 5))
             (table 3 funcref) (type $t (func (param i32)))
             (func $f (type $t)) (elem (i32.const 1) $f))"#,
    );
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| m.system.bytes[at + i]));
    assert_eq!((word(0), word(4)), (2, ciphermill_load::MAX_MEMORY_PAGES));
    assert_eq!((word(8), word(12), word(16)), (u32::MAX - 1, u32::MAX, 5));
    assert_eq!([24, 28, 32, 36, 40, 44].map(word), [0, 0, 1, 0, 0, 0], "entries: null, the function, null");
    assert_eq!(m.system.func_refs.iter().map(|r| r.offset).collect::<Vec<_>>(), [36]);
    assert_eq!(m.globals.values().map(|g| g.name.clone()).collect::<Vec<_>>(), [Some("a".into()), Some("b".into())]);
}

#[test]
fn memory_size_reads_the_system_area() {
    let f = function(r#"(module (memory 1) (func (export "f") (result i32) (memory.size)))"#, "f");
    assert_eq!(count(&f, |op| op == Op::Const(u64::from(SYSTEM_BASE))), 1);
    assert_eq!(count(&f, |op| matches!(op, Op::Load(a) if a.space == Space::System)), 1);
}

#[test]
fn only_the_runtime_that_is_used_is_linked() {
    let names = |text: &str| loaded(text).funcs.values().map(|f| f.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(r#"(module (func $f))"#), ["f"]);
    let grow = names(r#"(module (memory 1) (func $f (drop (memory.grow (i32.const 1)))))"#);
    assert_eq!(grow, ["f", "rt_memory_grow"]);
    let divide = names(r#"(module (func $f (param i64) (result i64) (i64.div_u (local.get 0) (i64.const 3))))"#);
    for name in ["rt_div_u64", "rt_div_s64", "rt_rem_u64", "rt_rem_s64"] {
        assert!(divide.iter().any(|n| n == name), "{name}");
    }
    assert!(!divide.iter().any(|n| n.contains("memory")));
}

#[test]
fn a_user_function_cannot_take_a_runtime_name() {
    let m = loaded(r#"(module (func $rt_div_u64) (func $rt_div_u64.2) (func (export "x") (call 0) (call 1)))"#);
    let names: Vec<_> = m.funcs.values().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["rt_div_u64.2", "rt_div_u64.2.2", "x"]);
}

#[test]
fn a_small_aligned_copy_is_all_loads_then_all_stores_from_the_top() {
    let f = function(
        r#"(module (memory 1) (func (export "f")
             (memory.copy (i32.const 64) (i32.const 128) (i32.const 14))))"#,
        "f",
    );
    let accesses: Vec<(bool, u32, u8)> = f.blocks[f.entry]
        .insts
        .iter()
        .filter_map(|&i| match f.insts[i].op {
            Op::Load(a) => Some((false, a.offset, a.bytes)),
            Op::Store(a) => Some((true, a.offset, a.bytes)),
            _ => None,
        })
        .collect();
    let pieces = [(12, 2), (8, 4), (0, 8)];
    let expected: Vec<_> = [false, true].iter().flat_map(|&s| pieces.map(|(o, n)| (s, o, n))).collect();
    assert_eq!(accesses, expected);
}

#[test]
fn a_small_copy_of_unknown_alignment_is_words_or_the_runtime() {
    let f = function(
        r#"(module (memory 1) (func (export "f") (param i32 i32)
             (memory.copy (local.get 0) (local.get 1) (i32.const 16))))"#,
        "f",
    );
    assert_eq!(count(&f, |op| matches!(op, Op::Call(_))), 1);
    assert_eq!(count(&f, |op| matches!(op, Op::Load(a) if a.bytes == 4 && a.align == 4)), 4);
    assert_eq!(count(&f, |op| matches!(op, Op::Store(a) if a.bytes == 4 && a.align == 4)), 4);
}

#[test]
fn copies_of_no_bytes_or_many_go_to_the_runtime() {
    for n in [0, 65] {
        let f = function(
            &format!(
                r#"(module (memory 1) (func (export "f")
                     (memory.copy (i32.const 64) (i32.const 128) (i32.const {n}))))"#
            ),
            "f",
        );
        assert_eq!(count(&f, |op| matches!(op, Op::Call(_))), 1, "{n} bytes");
    }
}

#[test]
fn an_indirect_call_is_checked_in_order() {
    let f =
        function(r#"(module (table 2 funcref) (func (export "f") (param i32) (call_indirect (local.get 0))))"#, "f");
    let traps: Vec<TrapCode> = f
        .layout
        .iter()
        .filter_map(|&b| match f.blocks[b].term {
            Terminator::Trap(code) => Some(code),
            _ => None,
        })
        .collect();
    assert_eq!(traps, [TrapCode::TableOutOfBounds, TrapCode::IndirectCallToNull, TrapCode::BadSignature]);
    assert_eq!(count(&f, |op| matches!(op, Op::CallPtr(_))), 1);
}

#[test]
fn equal_signatures_have_equal_numbers() {
    let m = loaded(
        r#"(module (table 1 funcref) (type $a (func (param i32))) (type $b (func (param i32)))
             (func (export "f") (call_indirect (type $a) (i32.const 1) (i32.const 0))
                                (call_indirect (type $b) (i32.const 1) (i32.const 0))))"#,
    );
    assert_eq!(m.sigs.len(), 1);
}

#[test]
fn active_segments_are_data_and_rodata_is_read_only() {
    let m = loaded(
        r#"(module (memory 1) (global $at i32 (i32.const 100))
             (data $.rodata.sbox (global.get $at) "abc") (data $.data (i32.const 8) "d") (data (i32.const 9) ""))"#,
    );
    let seen: Vec<_> = m.data.iter().map(|d| (d.addr, &d.bytes[..], d.readonly, d.name.as_deref())).collect();
    assert_eq!(seen, [(100, &b"abc"[..], true, Some(".rodata.sbox")), (8, &b"d"[..], false, Some(".data"))]);
    assert!(m.start.is_none());
}

#[test]
fn a_segment_that_does_not_fit_traps_at_the_start() {
    let starts_with = |text: &str| {
        let m = loaded(text);
        let start = &m.funcs[m.start.expect("there is a start function")];
        start.blocks[start.entry].term.clone()
    };
    let memory = r#"(module (memory 1) (data (i32.const 65535) "ab") (func $s) (start $s))"#;
    assert_eq!(starts_with(memory), Terminator::Trap(TrapCode::MemoryOutOfBounds));
    let both = r#"(module (memory 1) (table 1 funcref) (data (i32.const 65536) "a") (func $f)
        (elem (i32.const 1) $f))"#;
    assert_eq!(starts_with(both), Terminator::Trap(TrapCode::TableOutOfBounds), "elements come first");
}

#[test]
fn a_deeply_nested_module_does_not_exhaust_the_stack() {
    let depth = 20_000;
    let text = format!(
        r#"(module (func (export "f") (param i32) (result i32) (local i32) {}
             (local.set 1 (i32.add (local.get 1) (i32.const 1))) {} (local.get 1)))"#,
        "block local.get 0 br_if 0 loop ".repeat(depth),
        "local.get 0 br_if 0 end end ".repeat(depth),
    );
    let f = function(&text, "f");
    assert!(f.layout.len() > depth);
}
