//! Literal pools and jumps that do not reach, on the Cortex-M0+: a branch reaches 256 bytes, a jump 2 KB, a load
//! of a literal 1 KB.

use ciphermill_codegen::{Options, compile};
use ciphermill_machine::{Machine, load_from_dir};
use ciphermill_program::layout::Layout;
use ciphermill_program::{Operand, Program};
use std::path::Path;
use std::sync::Arc;

/// A loop whose body mixes a word with `n` constants that are no byte anywhere.
fn made(n: u32, change: impl Fn(&mut Machine)) -> Result<Program, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut machine = load_from_dir(&root, "cortex-m0plus", &[], &[], &[]).map_err(|e| e.to_string())?;
    change(&mut machine);
    let mix = |i: u32| {
        let c = i.wrapping_mul(0x9e37_79b9) | 0x0101_0101;
        format!(
            "(local.set $x (i32.add (i32.mul (local.get $x) (i32.const {})) (i32.load offset={} (local.get $p))))",
            c as i32,
            4 * (i % 16)
        )
    };
    let body: String = (1..=n).map(mix).collect();
    let text = format!(
        "(module (memory 1) (func (export \"f\") (param $p i32) (param $n i32) (result i32) (local $x i32)
           (loop $next {body} (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
           (local.get $x)))"
    );
    let wasm = wat::parse_str(text).map_err(|e| e.to_string())?;
    let mut module = ciphermill_load::load(&wasm).map_err(|e| e.to_string())?;
    ciphermill_opt::optimise(&mut module, &ciphermill_opt::Options::default()).map_err(|e| e.to_string())?;
    compile(&module, Arc::new(machine), &Options { level: 2, ..Options::default() }).map_err(|e| e.to_string())
}

fn program(n: u32) -> Program {
    made(n, |_| ()).unwrap()
}

fn names(program: &Program) -> Vec<&str> {
    let insts = program.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.bundles).flat_map(|b| &b.insts);
    insts.map(|i| program.machine.instrs[usize::from(i.instr.0)].name.as_str()).collect()
}

#[test]
fn a_short_loop_needs_nothing() {
    let p = program(4);
    let found = names(&p);
    assert!(found.contains(&"ldr_literal") && !found.contains(&"b_far"));
    let pools: Vec<usize> = p.funcs[0].blocks.iter().map(|b| b.literals.len()).filter(|&n| n > 0).collect();
    assert_eq!(pools, [4]);
    assert!(p.funcs[0].blocks.last().is_some_and(|b| !b.literals.is_empty()));
    assert_eq!(Layout::unreached(&p), None);
}

#[test]
fn a_long_loop_has_pools_inside_and_ends_in_a_jump() {
    // Some 40 * 8 bytes: the branch is reversed over a jump.
    let p = program(40);
    assert!(names(&p).contains(&"b") && !names(&p).contains(&"b_far"));
    // Over 2 KB: the jump is a far one, and the return address is saved.
    let p = program(400);
    assert!(names(&p).contains(&"b_far") && p.funcs[0].frame_bytes > 0);
    let pools = p.funcs[0].blocks.iter().filter(|b| !b.literals.is_empty()).count();
    assert!(pools >= 3, "{pools} pools");
    assert_eq!(Layout::unreached(&p), None);
    // A pool stands where nothing falls into it.
    for block in p.funcs[0].blocks.iter().filter(|b| !b.literals.is_empty()) {
        let last = block.bundles.last().and_then(|b| b.insts.last()).unwrap();
        let name = &p.machine.instrs[usize::from(last.instr.0)].name;
        assert!(["b", "b_far", "ret"].contains(&name.as_str()), "{name}");
    }
}

#[test]
fn what_does_not_reach_is_found() {
    let mut p = program(40);
    let blocks = &mut p.funcs[0].blocks;
    let at = blocks.iter().position(|b| !b.literals.is_empty()).unwrap();
    let kept = std::mem::take(&mut blocks[at].literals);
    assert!(Layout::unreached(&p).is_some_and(|w| w.contains("`ldr_literal`")));
    p.funcs[0].blocks[at].literals = kept;
    assert_eq!(Layout::unreached(&p), None);
    let mut p = program(400);
    let jump = p.machine.instr_named("b").unwrap();
    let insts = p.funcs[0].blocks.iter_mut().flat_map(|b| &mut b.bundles).flat_map(|b| &mut b.insts);
    let far = p.machine.abi.ops.far_jump;
    let mut changed = 0;
    for inst in insts.filter(|i| Some(i.instr) == far && matches!(i.operands[..], [Operand::Block(_)])) {
        inst.instr = jump;
        changed += 1;
    }
    assert!(changed > 0 && Layout::unreached(&p).is_some_and(|w| w.contains("`b`")));
}

#[test]
fn a_machine_without_a_far_jump_says_so() {
    let said = made(400, |m| m.abi.ops.far_jump = None);
    assert!(said.is_err_and(|e| e.contains("`far_jump` in `[abi.ops]`")));
}
