//! Statements: what changes locals, globals and memory, and the control flow
//! around it.

use super::{ADDRESS_MASK, Body, GLOBALS, global_type, some_memarg};
use wasm_encoder::{BlockType, Instruction as I, MemArg, ValType};

impl Body<'_> {
    pub(super) fn emit(&mut self, instruction: I<'static>) {
        self.code.push(instruction);
    }

    /// A local of a type that may be written; the counters of loops may not.
    pub(super) fn local(&mut self, ty: ValType) -> Option<u32> {
        let reserved = self.locals.len() - 3;
        let fitting: Vec<u32> = (0..reserved as u32).filter(|&i| self.locals[i as usize] == ty).collect();
        (!fitting.is_empty()).then(|| self.rng.pick(&fitting))
    }

    pub(super) fn statements(&mut self, n: u32, depth: u32, free_counters: &[u32]) {
        for _ in 0..n {
            self.statement(depth, free_counters);
        }
    }

    pub(super) fn statement(&mut self, depth: u32, free_counters: &[u32]) {
        let ty = if self.rng.one_in(4) { ValType::I64 } else { ValType::I32 };
        match self.rng.below(if depth > 1 { 16 } else { 9 }) {
            0..=3 => {
                self.expression(ty, depth);
                match self.local(ty) {
                    Some(local) => self.emit(I::LocalSet(local)),
                    None => self.emit(I::Drop),
                }
            }
            4 | 5 => self.store(ty, depth),
            6 => {
                let global = self.rng.below(GLOBALS);
                self.expression(global_type(global), depth);
                self.emit(I::GlobalSet(global));
            }
            7 => self.bulk(),
            8 => self.round(),
            9..=11 => self.counted_loop(depth, free_counters),
            12 | 13 => self.conditional(depth, free_counters),
            14 => self.table_branch(depth, free_counters),
            _ => self.early_exit(depth, free_counters),
        }
    }

    /// `do { ... } while (++i != n)`, or counting down, over a few iterations.
    pub(super) fn counted_loop(&mut self, depth: u32, free_counters: &[u32]) {
        let Some((&counter, rest)) = free_counters.split_first() else { return self.round() };
        let iterations = 1 + self.rng.below(7);
        if self.weight * iterations > 200 {
            return self.round();
        }
        let down = self.rng.one_in(2);
        let (start, step, stop) = if down { (iterations as i32, -1, 0) } else { (0, 1, iterations as i32) };
        self.emit(I::I32Const(start));
        self.emit(I::LocalSet(counter));
        self.emit(I::Loop(BlockType::Empty));
        self.counters.push(counter);
        self.weight *= iterations;
        let n = 1 + self.rng.below(4);
        self.statements(n, depth - 1, rest);
        self.weight /= iterations;
        self.emit(I::LocalGet(counter));
        self.emit(I::I32Const(step));
        self.emit(I::I32Add);
        self.emit(I::LocalTee(counter));
        if stop != 0 {
            self.emit(I::I32Const(stop));
            self.emit(I::I32Ne);
        }
        self.emit(I::BrIf(0));
        self.emit(I::End);
    }

    pub(super) fn conditional(&mut self, depth: u32, free_counters: &[u32]) {
        self.condition(depth - 1);
        self.emit(I::If(BlockType::Empty));
        let n = 1 + self.rng.below(2);
        self.statements(n, depth - 1, free_counters);
        if self.rng.one_in(2) {
            self.emit(I::Else);
            self.statements(1, depth - 1, free_counters);
        }
        self.emit(I::End);
    }

    pub(super) fn table_branch(&mut self, depth: u32, free_counters: &[u32]) {
        let cases = 2 + self.rng.below(3);
        for _ in 0..=cases {
            self.emit(I::Block(BlockType::Empty));
        }
        self.expression(ValType::I32, depth - 1);
        self.emit(I::I32Const(7));
        self.emit(I::I32And);
        let targets: Vec<u32> = (0..cases + self.rng.below(2)).map(|_| self.rng.below(cases + 1)).collect();
        let default = self.rng.below(cases + 1);
        self.emit(I::BrTable(targets.into(), default));
        for case in (0..=cases).rev() {
            self.emit(I::End);
            self.statements(1, depth - 1, free_counters);
            if case > 0 && self.rng.one_in(2) {
                self.emit(I::Br(self.rng.below(case)));
                self.dead_code();
            }
        }
    }

    /// What follows a branch is never run, but must be read.
    pub(super) fn dead_code(&mut self) {
        if self.rng.one_in(3) {
            self.emit(I::I32Add);
            self.emit(I::Drop);
        }
    }

    /// A block left in the middle, with a value.
    pub(super) fn early_exit(&mut self, depth: u32, free_counters: &[u32]) {
        let ty = if self.rng.one_in(3) { ValType::I64 } else { ValType::I32 };
        self.emit(I::Block(BlockType::Result(ty)));
        self.expression(ty, depth - 1);
        self.condition(depth - 1);
        self.emit(I::BrIf(0));
        self.emit(I::Drop);
        self.statements(1, depth - 1, free_counters);
        self.expression(ty, depth - 1);
        self.emit(I::End);
        match self.local(ty) {
            Some(local) => self.emit(I::LocalSet(local)),
            None => self.emit(I::Drop),
        }
    }

    /// `a = rotl(a ^ b, n) + c`: a step of a round function.
    pub(super) fn round(&mut self) {
        let ty = if self.rng.one_in(4) { ValType::I64 } else { ValType::I32 };
        let (Some(a), Some(b), Some(c)) = (self.local(ty), self.local(ty), self.local(ty)) else { return };
        let wide = ty == ValType::I64;
        let amount = self.rng.below(64);
        let rotate = self.rng.one_in(2);
        self.emit(I::LocalGet(a));
        self.emit(I::LocalGet(b));
        self.emit(if wide { I::I64Xor } else { I::I32Xor });
        if self.rng.one_in(4) {
            // A rotation by a variable amount, as in RC6.
            self.emit(I::LocalGet(c));
        } else {
            self.emit(if wide { I::I64Const(amount.into()) } else { I::I32Const(amount as i32) });
        }
        self.emit(match (wide, rotate) {
            (true, true) => I::I64Rotl,
            (true, false) => I::I64Rotr,
            (false, true) => I::I32Rotl,
            (false, false) => I::I32Rotr,
        });
        self.emit(I::LocalGet(c));
        self.emit(match (wide, self.rng.below(3)) {
            (true, 0) => I::I64Add,
            (true, 1) => I::I64Sub,
            (true, _) => I::I64Mul,
            (false, 0) => I::I32Add,
            (false, 1) => I::I32Sub,
            (false, _) => I::I32Mul,
        });
        self.emit(I::LocalSet(a));
    }

    /// An address in the stores' half of memory; true when it is a multiple of
    /// four.
    pub(super) fn address(&mut self, depth: u32) -> bool {
        if self.rng.one_in(3) {
            // A place in an array that a loop walks along.
            if let Some(counter) = (!self.counters.is_empty()).then(|| self.rng.pick(&self.counters)) {
                let scale = self.rng.below(4);
                self.emit(I::LocalGet(counter));
                self.emit(I::I32Const(scale as i32));
                self.emit(I::I32Shl);
                self.emit(I::I32Const(64 * self.rng.below(8) as i32));
                self.emit(I::I32Add);
                return scale >= 2;
            }
        }
        if self.rng.one_in(3) {
            self.emit(I::I32Const(4 * self.rng.below(300) as i32));
            return true;
        }
        self.expression(ValType::I32, depth.saturating_sub(1));
        let words = self.rng.one_in(2);
        self.emit(I::I32Const(if words { ADDRESS_MASK & !3 } else { ADDRESS_MASK }));
        self.emit(I::I32And);
        words
    }

    /// An offset, and the alignment that may be stated for an access of `1 <<
    /// width` bytes there. What is stated is true, as it is of compiled C.
    pub(super) fn memarg_for(&mut self, aligned: bool, width: u32) -> MemArg {
        let mut at = some_memarg(self.rng);
        if aligned && at.offset.is_multiple_of(4) {
            at.align = self.rng.below(3).min(width);
        }
        at
    }

    pub(super) fn store(&mut self, ty: ValType, depth: u32) {
        let aligned = self.address(depth);
        self.expression(ty, depth);
        let wide = ty == ValType::I64;
        let width = if wide { self.rng.below(4) } else { self.rng.pick(&[0, 1, 2, 2]) };
        let mut at = self.memarg_for(aligned, width);
        // One store in many has an offset that may leave the memory.
        if self.rng.one_in(200) {
            at = MemArg { offset: 65536 - u64::from(self.rng.below(0x4000)), align: 0, ..at };
        }
        self.emit(match (wide, width) {
            (true, 0) => I::I64Store8(at),
            (true, 1) => I::I64Store16(at),
            (true, 2) => I::I64Store32(at),
            (true, _) => I::I64Store(at),
            (false, 0) => I::I32Store8(at),
            (false, 1) => I::I32Store16(at),
            (false, _) => I::I32Store(at),
        });
    }

    pub(super) fn bulk(&mut self) {
        let length = match self.rng.below(4) {
            0 => 1 + self.rng.below(8),
            1 => 4 * (1 + self.rng.below(16)),
            2 => self.rng.below(100),
            _ => self.rng.below(40),
        };
        self.address(1);
        if self.rng.one_in(2) {
            self.address(1);
            self.length(length);
            self.emit(I::MemoryCopy { src_mem: 0, dst_mem: 0 });
        } else {
            self.expression(ValType::I32, 1);
            self.length(length);
            self.emit(I::MemoryFill(0));
        }
    }

    /// A length known when compiling, or not.
    pub(super) fn length(&mut self, length: u32) {
        if self.rng.one_in(3) {
            self.expression(ValType::I32, 1);
            self.emit(I::I32Const(63));
            self.emit(I::I32And);
        } else {
            self.emit(I::I32Const(length as i32));
        }
    }
}
