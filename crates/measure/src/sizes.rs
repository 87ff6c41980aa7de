//! Memory that a direction of a cipher takes: code, tables, stack.
//!
//! Counted is what the measured function needs, with everything it can call:
//! the other direction and the key set-up are left out, as in published
//! tables. A function that calls through a pointer can reach every function.
//!
//! The C compiler merges all constant tables into one segment, so where one
//! ends and the next begins has to be recovered. Every table's address is a
//! constant somewhere in the module, as an operand or as the offset of a load
//! with an index; these constants cut a read-only segment into pieces, and a
//! piece belongs to what names its start. A load whose whole address is
//! constant reads one entry of a table: it cuts nothing, and takes its own bytes
//! where nothing else of the function takes the piece.

use ciphermill_ir::{FuncId, Module, Op};
use ciphermill_program::layout::Layout;
use ciphermill_program::{Operand, Program};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What one direction of a cipher takes.
#[derive(Clone, Debug, Serialize)]
pub struct OfDirection {
    pub direction: &'static str,
    pub code_bytes: u64,
    pub table_bytes: u64,
    /// The calls that take most stack, the outermost first.
    pub stack: Vec<Frame>,
}

/// The stack of a function while it is called: its frame, and the return address where a call puts it there.
#[derive(Clone, Debug, Serialize)]
pub struct Frame {
    pub function: String,
    pub bytes: u32,
}

/// What each of some directions takes, by the function that it calls; `module` is as it was loaded.
pub fn of_directions(
    program: &Program,
    module: &Module,
    directions: impl IntoIterator<Item = (&'static str, Arc<str>)>,
) -> Vec<OfDirection> {
    let of = |(direction, export): (&'static str, Arc<str>)| {
        let root = program.export(&export)?;
        Some(OfDirection {
            direction,
            code_bytes: code_bytes(program, root),
            table_bytes: module.export(&export).map_or(0, |f| table_bytes(module, f)),
            stack: deepest(program, root),
        })
    };
    directions.into_iter().filter_map(of).collect()
}

/// The calls from a function on that take most stack. A function that comes to call itself counts once.
fn deepest(program: &Program, root: u32) -> Vec<Frame> {
    let mut known = BTreeMap::new();
    deep(program, root, &mut known);
    let calls = std::iter::successors(Some(root), |f| known.get(f).and_then(|k| k.1));
    calls.map(|f| Frame { function: program.funcs[f as usize].name.clone(), bytes: frame(program, f) }).collect()
}

fn frame(program: &Program, func: u32) -> u32 {
    let abi = &program.machine.abi;
    let returns = if abi.return_address.is_none() && abi.return_stack.is_none() { abi.return_bytes } else { 0 };
    program.funcs[func as usize].frame_bytes + returns
}

/// Bytes of stack from a function on; `known` has them of functions, with the call that takes most.
fn deep(program: &Program, func: u32, known: &mut BTreeMap<u32, (u64, Option<u32>)>) -> u64 {
    if let Some(&(bytes, _)) = known.get(&func) {
        return bytes;
    }
    // Of a circle of calls none goes on to one above it.
    known.insert(func, (0, None));
    let mut most = (0, None);
    for callee in callees(program, func).into_iter().filter(|&f| f != func) {
        let circle = known.get(&callee).is_some_and(|k| k.0 == 0);
        let bytes = deep(program, callee, known);
        if !circle && (most.1.is_none() || bytes > most.0) {
            most = (bytes, Some(callee));
        }
    }
    // At least 1, as what is not under way any more.
    let bytes = (u64::from(frame(program, func)) + most.0).max(1);
    known.insert(func, (bytes, most.1));
    bytes
}

/// The functions that one calls; through a pointer it may be any.
fn callees(program: &Program, func: u32) -> BTreeSet<u32> {
    let mut called = BTreeSet::new();
    for inst in program.funcs[func as usize].blocks.iter().flat_map(|b| &b.bundles).flat_map(|b| &b.insts) {
        if program.machine.instrs[usize::from(inst.instr.0)].kind == ciphermill_machine::InstrKind::CallIndirect {
            called.extend(0..program.funcs.len() as u32);
        }
        called.extend(inst.operands.iter().filter_map(|o| match o {
            Operand::Func(f) => Some(*f),
            _ => None,
        }));
    }
    called
}

/// Code bytes of a function and all it can reach, what pads bundles included.
pub fn code_bytes(program: &Program, root: u32) -> u64 {
    let mut seen = BTreeSet::from([root]);
    let mut todo = vec![root];
    while let Some(f) = todo.pop() {
        todo.extend(callees(program, f).into_iter().filter(|f| seen.insert(*f)));
    }
    let layout = Layout::new(program);
    seen.iter().map(|&f| u64::from(layout.bytes(f))).sum()
}

/// Code bytes of all functions together.
pub fn all_code_bytes(program: &Program) -> u64 {
    let layout = Layout::new(program);
    (0..program.funcs.len() as u32).map(|f| u64::from(layout.bytes(f))).sum()
}

/// Bytes of constant tables that a function and all it can reach refer to.
/// `module` is as it was loaded, before functions were merged or removed.
pub fn table_bytes(module: &Module, root: FuncId) -> u64 {
    let all = references(module, module.funcs.keys());
    let used = references(module, reachable(module, root));
    let constant: Vec<_> = module.data.iter().filter(|d| d.readonly && !d.bytes.is_empty()).collect();
    let end = |d: &ciphermill_ir::DataSegment| d.addr + d.bytes.len() as u32;
    let mut cuts = all.starts;
    cuts.extend(constant.iter().flat_map(|d| [d.addr, end(d)]));
    let mut total = 0;
    for d in constant {
        for &at in used.starts.range(d.addr..end(d)) {
            let next = cuts.range(at + 1..).next().copied().unwrap_or(end(d));
            total += u64::from(next.min(end(d)) - at);
        }
        let alone = |at: u32| cuts.range(..=at).next_back().is_none_or(|start| !used.starts.contains(start));
        total += used.entries.range(d.addr..end(d)).filter(|&&at| alone(at)).count() as u64;
    }
    total
}

/// Bytes of all constant data of a module: the tables of the whole cipher,
/// both directions and key set-up.
pub fn cipher_table_bytes(module: &Module) -> u64 {
    module.data.iter().filter(|d| d.readonly).map(|d| d.bytes.len() as u64).sum()
}

/// The range of a module's constant data; None where it has none.
pub fn constants(module: &Module) -> Option<(u32, u32)> {
    let constant = || module.data.iter().filter(|d| d.readonly && !d.bytes.is_empty());
    let end = constant().map(|d| d.addr + d.bytes.len() as u32).max()?;
    Some((constant().map(|d| d.addr).min()?, end))
}

/// Constants that may be addresses.
#[derive(Default)]
struct References {
    /// Where something with an index may begin.
    starts: BTreeSet<u32>,
    /// Bytes at constant addresses.
    entries: BTreeSet<u32>,
}

fn references(module: &Module, funcs: impl IntoIterator<Item = FuncId>) -> References {
    let mut found = References::default();
    funcs.into_iter().for_each(|f| refer(&module.funcs[f], &mut found));
    found
}

fn refer(func: &ciphermill_ir::Func, found: &mut References) {
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            match data.op {
                Op::Const(c) => found.starts.extend(u32::try_from(c)),
                Op::Load(access) | Op::Store(access) => match func.as_const(data.args[0]) {
                    Some(base) => {
                        let at = (base as u32).wrapping_add(access.offset);
                        found.entries.extend((0..u32::from(access.bytes)).map(|b| at.wrapping_add(b)));
                    }
                    None => {
                        found.starts.insert(access.offset);
                    }
                },
                _ => {}
            }
        }
    }
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
    fn an_entry_is_not_a_table() {
        // The entry at 66000 lies in what `b` indexes: no table ends there.
        let module = loaded("i32.const 0 i32.load offset=66000");
        assert_eq!(table_bytes(&module, module.export("a").unwrap()), 4);
        assert_eq!(table_bytes(&module, module.export("b").unwrap()), 1024);
        assert_eq!(cipher_table_bytes(&module), 1024);
    }

    #[test]
    fn what_a_callee_uses_counts() {
        let module = loaded("local.get 0 call $b");
        assert_eq!(table_bytes(&module, module.export("a").unwrap()), 1024);
        let module = loaded("local.get 0");
        assert_eq!(table_bytes(&module, module.export("a").unwrap()), 0);
    }
}
