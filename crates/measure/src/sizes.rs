//! Memory that a direction of a cipher takes: code, tables, stack.
//!
//! Counted is what the measured function needs, with everything it can call:
//! the other direction and the key set-up are left out, as in published
//! tables. A function that calls through a pointer can reach every function.
//!
//! The C compiler merges all constant tables into one segment, so where one
//! ends and the next begins has to be recovered. Every table's address is a
//! constant somewhere in the module, as an operand or as a load's offset; the
//! constants in a read-only segment cut it into pieces, and a piece belongs to
//! what names its start.

use ciphermill_ir::{FuncId, Module, Op};
use ciphermill_program::layout::Layout;
use ciphermill_program::{Operand, Program};
use std::collections::BTreeSet;

/// Code bytes of a function and all it can reach, what pads bundles included.
pub fn code_bytes(program: &Program, root: u32) -> u64 {
    let insts = |f: u32| program.funcs[f as usize].blocks.iter().flat_map(|b| &b.bundles).flat_map(|b| &b.insts);
    let mut seen = BTreeSet::from([root]);
    let mut todo = vec![root];
    while let Some(f) = todo.pop() {
        for inst in insts(f) {
            let indirect =
                program.machine.instrs[usize::from(inst.instr.0)].kind == ciphermill_machine::InstrKind::CallIndirect;
            let called = inst.operands.iter().filter_map(|o| match o {
                Operand::Func(f) => Some(*f),
                _ => None,
            });
            let every = 0..if indirect { program.funcs.len() as u32 } else { 0 };
            todo.extend(called.chain(every).filter(|f| seen.insert(*f)));
        }
    }
    let layout = Layout::new(program);
    seen.iter().map(|&f| u64::from(layout.bytes(f))).sum()
}

/// Bytes of constant tables that a function and all it can reach refer to.
/// `module` is as it was loaded, before functions were merged or removed.
pub fn table_bytes(module: &Module, root: FuncId) -> u64 {
    let mut cuts: BTreeSet<u32> = module.funcs.keys().flat_map(|f| references(module, f)).collect();
    let constant: Vec<_> = module.data.iter().filter(|d| d.readonly && !d.bytes.is_empty()).collect();
    let end = |d: &ciphermill_ir::DataSegment| d.addr + d.bytes.len() as u32;
    cuts.extend(constant.iter().flat_map(|d| [d.addr, end(d)]));
    let used: BTreeSet<u32> = reachable(module, root).into_iter().flat_map(|f| references(module, f)).collect();
    let mut total = 0;
    for d in constant {
        for &at in used.range(d.addr..end(d)) {
            let next = cuts.range(at + 1..).next().copied().unwrap_or(end(d));
            total += u64::from(next.min(end(d)) - at);
        }
    }
    total
}

/// Constants of a function that may be addresses.
fn references(module: &Module, func: FuncId) -> Vec<u32> {
    let func = &module.funcs[func];
    let mut found = Vec::new();
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            match data.op {
                Op::Const(c) => found.extend(u32::try_from(c)),
                Op::Load(access) | Op::Store(access) => {
                    // A table indexed by a constant: base and index are both known.
                    let base = func.as_const(data.args[0]).unwrap_or(0) as u32;
                    found.push(base.wrapping_add(access.offset));
                }
                _ => {}
            }
        }
    }
    found
}

fn reachable(module: &Module, root: FuncId) -> BTreeSet<FuncId> {
    let mut seen = BTreeSet::from([root]);
    let mut todo = vec![root];
    while let Some(f) = todo.pop() {
        let func = &module.funcs[f];
        for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
            match func.insts[inst].op {
                Op::Call(callee) if seen.insert(callee) => todo.push(callee),
                Op::CallPtr(_) => todo.extend(module.funcs.keys().filter(|&f| seen.insert(f))),
                _ => {}
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(body: &str) -> Module {
        let text = format!(
            r#"(module (memory 2)
                (data $.rodata (i32.const 65536) "{}")
                (func $a (export "a") (param i32) (result i32) {body})
                (func $b (export "b") (param i32) (result i32)
                    local.get 0 i32.load8_u offset=65536
                    local.get 0 i32.load8_u offset=65792 i32.add))"#,
            "x".repeat(1024)
        );
        ciphermill_load::load(&wat::parse_str(text).unwrap()).unwrap()
    }

    #[test]
    fn a_table_ends_where_the_next_one_begins() {
        let module = loaded("local.get 0 i32.load8_u offset=65792");
        assert_eq!(table_bytes(&module, module.export("a").unwrap()), 768);
        assert_eq!(table_bytes(&module, module.export("b").unwrap()), 1024);
    }

    #[test]
    fn what_a_callee_uses_counts() {
        let module = loaded("local.get 0 call $b");
        assert_eq!(table_bytes(&module, module.export("a").unwrap()), 1024);
        let module = loaded("local.get 0");
        assert_eq!(table_bytes(&module, module.export("a").unwrap()), 0);
    }
}
