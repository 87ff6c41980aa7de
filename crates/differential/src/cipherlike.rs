//! Random modules that look like ciphers.
//!
//! Structured programs of the kind C compilers make of block and stream
//! ciphers: counted loops, rotates and xors, byte-wise loads and stores, table
//! lookups with masked indices, 64-bit arithmetic, calls (some through the
//! table), `br_table`, small copies and fills. Everything computed flows into
//! the result or into memory, loops have fixed bounds and calls go only to
//! functions made before, so modules end by themselves and hardly ever trap:
//! an error anywhere shows in the output.
//!
//! Code is generated as operators in stack order. [`Body`] keeps the types of
//! what it may use; an expression is generated for a type and a depth.

mod expressions;
mod statements;

use crate::rng::Rng;
use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, ElementSection, Elements, ExportKind, ExportSection, Function,
    FunctionSection, GlobalSection, GlobalType, Instruction as I, MemArg, MemArgTarget, MemorySection, MemoryType,
    Module, RefType, TableSection, TableType, TypeSection, ValType,
};

/// Bytes of memory that addresses are masked to, so that none is out of bounds.
const ADDRESS_MASK: i32 = 0x3FFF;
/// Where the lookup tables stand, above what stores can reach but for the one
/// in eight that may hit them.
const TABLES_AT: i32 = 0x5000;
const GLOBALS: u32 = 4;

/// How large a module is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub functions: u32,
    pub statements: u32,
    pub depth: u32,
}

impl Size {
    pub const NORMAL: Size = Size { functions: 4, statements: 8, depth: 4 };
}

#[derive(Clone)]
struct Signature {
    params: Vec<ValType>,
    results: Vec<ValType>,
}

struct Body<'a> {
    rng: &'a Rng,
    /// Signatures of the functions that may be called.
    callees: &'a [Signature],
    locals: Vec<ValType>,
    /// Locals that count loops: read but never written.
    counters: Vec<u32>,
    code: Vec<I<'static>>,
    /// Iterations that the loops around multiply to.
    weight: u32,
    /// Calls made, weighted by the loops around them.
    calls: u32,
}

/// A module from random numbers.
pub fn module(rng: &Rng, size: Size) -> Vec<u8> {
    let mut sigs: Vec<Signature> = Vec::new();
    let mut bodies: Vec<Function> = Vec::new();
    for _ in 0..1 + rng.below(size.functions) {
        let ty = |rng: &Rng| if rng.one_in(3) { ValType::I64 } else { ValType::I32 };
        let params: Vec<ValType> = (0..rng.below(5)).map(|_| ty(rng)).collect();
        let results: Vec<ValType> = (0..1 + rng.below(5) / 3).map(|_| ty(rng)).collect();
        let sig = Signature { params, results };
        bodies.push(function(rng, &sigs, &sig, size));
        sigs.push(sig);
    }
    assemble(rng, &sigs, bodies)
}

fn assemble(rng: &Rng, sigs: &[Signature], bodies: Vec<Function>) -> Vec<u8> {
    let (mut types, mut functions, mut code) = (TypeSection::new(), FunctionSection::new(), CodeSection::new());
    let mut exports = ExportSection::new();
    for (i, (sig, body)) in sigs.iter().zip(bodies).enumerate() {
        types.ty().function(sig.params.clone(), sig.results.clone());
        functions.function(i as u32);
        exports.export(&format!("f{i}"), ExportKind::Func, i as u32);
        code.function(&body);
    }
    // Machines may keep globals in registers, so functions show them.
    for global in 0..GLOBALS {
        let index = types.len();
        types.ty().function([], [global_type(global)]);
        functions.function(index);
        exports.export(&format!("get{global}"), ExportKind::Func, index);
        let mut get = Function::new([]);
        get.instruction(&I::GlobalGet(global));
        get.instruction(&I::End);
        code.function(&get);
    }
    let mut memories = MemorySection::new();
    memories.memory(MemoryType { minimum: 1, maximum: Some(2), memory64: false, shared: false, page_size_log2: None });
    exports.export("memory", ExportKind::Memory, 0);
    let mut globals = GlobalSection::new();
    for i in 0..GLOBALS {
        let (val_type, init) = if global_type(i) == ValType::I64 {
            (ValType::I64, ConstExpr::i64_const(rng.next() as i64))
        } else {
            (ValType::I32, ConstExpr::i32_const(rng.next() as i32))
        };
        globals.global(GlobalType { val_type, mutable: true, shared: false }, &init);
        exports.export(&format!("g{i}"), ExportKind::Global, i);
    }
    let mut tables = TableSection::new();
    let entries = sigs.len() as u64;
    tables.table(TableType {
        element_type: RefType::FUNCREF,
        minimum: entries,
        maximum: Some(entries),
        table64: false,
        shared: false,
    });
    let mut elements = ElementSection::new();
    let all: Vec<u32> = (0..sigs.len() as u32).collect();
    elements.active(None, &ConstExpr::i32_const(0), Elements::Functions(all.into()));
    let mut data = DataSection::new();
    data.active(0, &ConstExpr::i32_const(TABLES_AT), rng.bytes(1024));
    data.active(0, &ConstExpr::i32_const(64), rng.bytes(256));

    let mut module = Module::new();
    module
        .section(&types)
        .section(&functions)
        .section(&tables)
        .section(&memories)
        .section(&globals)
        .section(&exports)
        .section(&elements)
        .section(&code)
        .section(&data);
    module.finish()
}

fn global_type(global: u32) -> ValType {
    if global == GLOBALS - 1 { ValType::I64 } else { ValType::I32 }
}

fn function(rng: &Rng, callees: &[Signature], sig: &Signature, size: Size) -> Function {
    let mut locals = sig.params.clone();
    let first = locals.len() as u32;
    for _ in 0..2 + rng.below(6) {
        let ty = if rng.one_in(4) { ValType::I64 } else { ValType::I32 };
        locals.push(ty);
    }
    let counters = 3;
    let counter_locals: Vec<u32> = (0..counters).map(|i| locals.len() as u32 + i).collect();
    locals.extend((0..counters).map(|_| ValType::I32));
    let mut body =
        Body { rng, callees, locals: locals.clone(), counters: Vec::new(), code: Vec::new(), weight: 1, calls: 0 };
    let statements = 1 + body.rng.below(size.statements);
    body.statements(statements, size.depth, &counter_locals);
    for &ty in &sig.results {
        body.expression(ty, size.depth);
    }
    let mut function = Function::new_with_locals_types(locals[first as usize..].iter().copied());
    for instruction in &body.code {
        function.instruction(instruction);
    }
    function.instruction(&I::End);
    function
}

pub(crate) fn memarg(offset: u64, align: u32) -> MemArg {
    MemArg { offset, align, target: MemArgTarget::Memory(0), ordering: None }
}

/// The offsets of structures and arrays.
fn some_memarg(rng: &Rng) -> MemArg {
    memarg(rng.pick(&[0, 0, 4, 16, 64, 255, 1024]), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_valid_and_seeds_decide() {
        for seed in 0..200 {
            let wasm = module(&Rng::new(seed), Size::NORMAL);
            assert_eq!(wasm, module(&Rng::new(seed), Size::NORMAL));
            if let Err(e) = wasmparser::Validator::new().validate_all(&wasm) {
                panic!("seed {seed}: {e}");
            }
        }
    }
}
