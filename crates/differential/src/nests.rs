//! Random loop nests, as ciphers and kernels have them.
//!
//! What pipelines loops and moves code between iterations errs in loops that a cipher-like
//! module seldom has: a store that meets a load of a later iteration, a value of two
//! iterations before, an exit in the middle, a branch that changes sides every few rounds, a
//! count that carries into a second word. A module here is one or two functions of loops nested up to
//! three deep. Each loop ends after a bounded number of iterations, every address is inside
//! memory, and all that is computed flows into the results or into memory.
//!
//! * [`loops`] writes the loops around the work, by the ways in which a loop can count;
//! * [`work`] writes statements and expressions;
//! * [`places`] writes addresses, loads and stores.

mod loops;
mod places;
mod work;

use crate::cipherlike::memarg;
use crate::rng::Rng;
use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, ExportKind, ExportSection, Function, FunctionSection, Instruction as I,
    MemorySection, MemoryType, Module, TypeSection, ValType,
};

/// Where the tables of constants stand, above what arrays reach.
const TABLES_AT: i32 = 0x6000;
/// Parameters of every function: two words and two pointers, and a long word.
const PARAMS: [ValType; 5] = [ValType::I32, ValType::I32, ValType::I32, ValType::I32, ValType::I64];
/// Iterations of a nest, over all its loops. Three calls of two functions stay far below the
/// reference's fuel.
const MOST_ITERATIONS: u32 = 400;
/// Statements of a function, over all its loops: small modules are checked quickly, and show as much.
const MOST_STATEMENTS: u32 = 14;

/// A local that holds where an array begins.
#[derive(Clone, Copy, Debug)]
struct Pointer {
    local: u32,
    /// Logarithm of what it is a multiple of.
    align: u32,
}

/// A function that is being written.
struct Nest<'a> {
    rng: &'a Rng,
    code: Vec<I<'static>>,
    /// Of all locals, parameters among them.
    locals: Vec<ValType>,
    /// Locals that statements read and write.
    narrow: Vec<u32>,
    wide: Vec<u32>,
    /// Counters of the loops around, the innermost last. Statements read them.
    counters: Vec<u32>,
    /// Where arrays begin whose places are known when the function runs only.
    pointers: Vec<Pointer>,
    /// May the function before be called?
    helper: bool,
    /// Iterations that the loops around multiply to.
    weight: u32,
    statements_left: u32,
}

/// A module from random numbers.
pub fn module(rng: &Rng) -> Vec<u8> {
    let (mut types, mut functions, mut code) = (TypeSection::new(), FunctionSection::new(), CodeSection::new());
    let mut exports = ExportSection::new();
    types.ty().function([ValType::I32, ValType::I32], [ValType::I32]);
    types.ty().function(PARAMS, [ValType::I32, ValType::I64]);
    functions.function(0);
    code.function(&helper(rng));
    for i in 0..1 + rng.below(4) / 3 {
        functions.function(1);
        code.function(&nest(rng));
        exports.export(&format!("f{i}"), ExportKind::Func, i + 1);
    }
    exports.export("memory", ExportKind::Memory, 0);
    let mut memories = MemorySection::new();
    memories.memory(MemoryType { minimum: 1, maximum: Some(1), memory64: false, shared: false, page_size_log2: None });
    let mut data = DataSection::new();
    // The arrays' first KB, and tables of 256 words.
    data.active(0, &ConstExpr::i32_const(0x1000), rng.bytes(1024));
    data.active(0, &ConstExpr::i32_const(TABLES_AT), rng.bytes(1024));
    let mut module = Module::new();
    module.section(&types).section(&functions).section(&memories).section(&exports).section(&code).section(&data);
    module.finish()
}

/// A function small enough to be inlined: `f(x, y)` of a round.
fn helper(rng: &Rng) -> Function {
    let mut nest = Nest::new(rng, &[ValType::I32, ValType::I32]);
    nest.expression(ValType::I32, 3);
    nest.finish()
}

fn nest(rng: &Rng) -> Function {
    let mut nest = Nest::new(rng, &PARAMS);
    nest.helper = true;
    nest.pointers_from(&[2, 3]);
    for _ in 0..1 + rng.below(3) {
        let ty = if rng.one_in(4) { ValType::I64 } else { ValType::I32 };
        let local = nest.fresh(ty);
        nest.expression(ty, 1);
        nest.emit(I::LocalSet(local));
        nest.writable(ty).push(local);
    }
    for _ in 0..1 + rng.below(3) / 2 {
        let depth = 1 + rng.below(3);
        nest.counted(depth);
    }
    for ty in [ValType::I32, ValType::I64] {
        nest.all_of(ty);
    }
    nest.finish()
}

impl<'a> Nest<'a> {
    fn new(rng: &'a Rng, params: &[ValType]) -> Nest<'a> {
        let of = |ty: ValType| (0..params.len() as u32).filter(|&i| params[i as usize] == ty).take(2).collect();
        Nest {
            rng,
            code: Vec::new(),
            locals: params.to_vec(),
            narrow: of(ValType::I32),
            wide: of(ValType::I64),
            counters: Vec::new(),
            pointers: Vec::new(),
            helper: false,
            weight: 1,
            statements_left: MOST_STATEMENTS,
        }
    }

    fn emit(&mut self, instruction: I<'static>) {
        self.code.push(instruction);
    }

    fn emit_all<const N: usize>(&mut self, instructions: [I<'static>; N]) {
        self.code.extend(instructions);
    }

    /// A new local, which nothing else uses.
    fn fresh(&mut self, ty: ValType) -> u32 {
        self.locals.push(ty);
        self.locals.len() as u32 - 1
    }

    fn writable(&mut self, ty: ValType) -> &mut Vec<u32> {
        if ty == ValType::I64 { &mut self.wide } else { &mut self.narrow }
    }

    /// A local that may be read and written. Every function has one of each type but a helper,
    /// which asks for none that is wide.
    fn some(&mut self, ty: ValType) -> u32 {
        if self.writable(ty).is_empty() {
            let local = self.fresh(ty);
            self.writable(ty).push(local);
        }
        let from = self.writable(ty).clone();
        self.rng.pick(&from)
    }

    /// All writable locals of a type in one value, in which each counts by its place.
    fn all_of(&mut self, ty: ValType) {
        let (zero, rotate, amount, xor) = if ty == ValType::I64 {
            (I::I64Const(0), I::I64Rotl, I::I64Const(7), I::I64Xor)
        } else {
            (I::I32Const(0), I::I32Rotl, I::I32Const(5), I::I32Xor)
        };
        self.emit(zero);
        for local in self.writable(ty).clone() {
            self.emit_all([amount.clone(), rotate.clone(), I::LocalGet(local), xor.clone()]);
        }
    }

    fn finish(self) -> Function {
        let params = if self.helper { PARAMS.len() } else { 2 };
        let mut function = Function::new_with_locals_types(self.locals[params..].iter().copied());
        for instruction in &self.code {
            function.instruction(instruction);
        }
        function.instruction(&I::End);
        function
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphermill_reference::Reference;

    #[test]
    fn modules_are_valid_and_seeds_decide() {
        for seed in 0..500 {
            let wasm = module(&Rng::new(seed));
            assert_eq!(wasm, module(&Rng::new(seed)));
            if let Err(e) = wasmparser::Validator::new().validate_all(&wasm) {
                panic!("seed {seed}: {e}\n{}", wasmprinter::print_bytes(&wasm).unwrap_or_default());
            }
        }
    }

    /// Whatever the arguments are, as every loop is bounded and every address inside memory.
    #[test]
    fn they_end_and_do_not_trap() {
        for seed in 0..500 {
            let mut reference = Reference::with_fuel(&module(&Rng::new(seed)), 1_000_000).expect("it starts");
            for args in [[0; 5], [u64::from(u32::MAX), 1, 2, 0x7FFF_FFFF, u64::MAX]] {
                let args = [args[0], args[1], args[2], args[3] & 0xFFFF_FFFF, args[4]];
                if let Err(stop) = reference.call("f0", &args) {
                    panic!("seed {seed}: {stop:?}");
                }
            }
        }
    }
}
