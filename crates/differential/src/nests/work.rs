//! Statements in the loops, and expressions.

use super::{MOST_ITERATIONS, Nest};
use wasm_encoder::{BlockType, Instruction as I, MemArg, ValType};

impl Nest<'_> {
    /// Statements of a loop, of which one may be a loop, so many deep.
    pub(super) fn statements(&mut self, depth: u32) {
        let before = 1 + self.rng.below(4);
        for _ in 0..before {
            self.statement();
        }
        if depth > 0 && self.weight < MOST_ITERATIONS / 4 {
            self.counted(depth);
            for _ in 0..self.rng.below(3) {
                self.statement();
            }
        }
    }

    fn statement(&mut self) {
        let Some(left) = self.statements_left.checked_sub(1) else { return };
        self.statements_left = left;
        match self.rng.below(26) {
            0..=4 => self.update(),
            5..=8 => self.store(),
            9 | 10 => self.remembered(),
            11 | 12 => self.conditional(),
            13 | 14 => self.alternating(),
            15 => self.carried(),
            16 => self.swapped(),
            17 => self.exchange(),
            18 => self.unpacked(),
            19 | 20 => self.round(),
            21 => self.selected(),
            22 => self.long_round(),
            23 | 24 => self.twins(),
            _ => self.walked(),
        }
    }

    fn set(&mut self, ty: ValType) {
        let local = self.some(ty);
        self.emit(I::LocalSet(local));
    }

    fn update(&mut self) {
        let ty = if self.rng.one_in(5) { ValType::I64 } else { ValType::I32 };
        self.expression(ty, 3);
        self.set(ty);
    }

    /// Values of the iteration before and the one before that: `new = f(one, two); two = one; one = new`.
    fn remembered(&mut self) {
        let [one, two] = [0; 2].map(|_| self.fresh(ValType::I32));
        self.emit_all([I::LocalGet(one), I::LocalGet(two)]);
        self.operation(false);
        self.expression(ValType::I32, 1);
        self.operation(false);
        let swapped = self.rng.one_in(3);
        let (first, second) = (self.some(ValType::I32), self.some(ValType::I32));
        self.emit(I::LocalSet(first));
        if !swapped {
            self.emit_all([I::LocalGet(one), I::LocalSet(two), I::LocalGet(first), I::LocalSet(one)]);
        } else {
            // The one before takes what was before the last change.
            self.emit_all([I::LocalGet(two), I::LocalGet(first), I::LocalSet(two)]);
            self.emit_all([I::LocalSet(second), I::LocalGet(two), I::LocalSet(one)]);
        }
    }

    /// What changes on a condition of data, a store among it at times.
    fn conditional(&mut self) {
        self.condition();
        self.emit(I::If(BlockType::Empty));
        self.branch();
        if self.rng.one_in(2) {
            self.emit(I::Else);
            self.branch();
        }
        self.emit(I::End);
    }

    /// A branch that changes sides every so many iterations.
    fn alternating(&mut self) {
        let Some(&counter) = self.counters.last() else { return self.update() };
        self.emit(I::LocalGet(counter));
        match self.rng.below(3) {
            0 => {
                let bit = self.rng.pick(&[1, 2, 4]);
                self.emit_all([I::I32Const(bit), I::I32And]);
            }
            1 => {
                let every = self.rng.pick(&[2, 3, 4, 5]);
                self.emit_all([I::I32Const(every), I::I32RemU]);
            }
            _ => {
                let from = self.rng.below(8) as i32;
                self.emit_all([I::I32Const(from), I::I32LtU]);
            }
        }
        self.emit(I::If(BlockType::Empty));
        self.branch();
        self.emit(I::Else);
        self.branch();
        self.emit(I::End);
    }

    /// Two sides that do the same with other arrays, amounts or words.
    fn twins(&mut self) {
        self.condition();
        self.emit(I::If(BlockType::Empty));
        let start = self.code.len();
        self.branch();
        let side = self.code[start..].to_vec();
        self.emit(I::Else);
        for (at, instruction) in side.iter().enumerate() {
            let rotates = matches!(side.get(at + 1), Some(I::I32Rotl | I::I32Rotr));
            let other = self.otherwise(instruction, rotates);
            self.emit(other);
        }
        self.emit(I::End);
    }

    /// An instruction as it is, or with another constant, place or word.
    fn otherwise(&mut self, instruction: &I<'static>, rotates: bool) -> I<'static> {
        // The array beside, where the offset says which one it is.
        let beside =
            |at: &MemArg| MemArg { offset: if at.offset < 0x1000 { at.offset } else { at.offset ^ 0x100 }, ..*at };
        if self.rng.one_in(3) {
            return instruction.clone();
        }
        match instruction {
            I::I32Const(_) if rotates => I::I32Const(self.rng.below(32) as i32),
            I::LocalGet(v) if self.narrow.contains(v) && self.rng.one_in(3) => I::LocalGet(self.some(ValType::I32)),
            I::I32Load(at) => I::I32Load(beside(at)),
            I::I32Load8U(at) => I::I32Load8U(beside(at)),
            I::I32Store(at) => I::I32Store(beside(at)),
            I::I32Store8(at) => I::I32Store8(beside(at)),
            same => same.clone(),
        }
    }

    fn branch(&mut self) {
        for _ in 0..1 + self.rng.below(2) {
            match self.rng.below(6) {
                0..=2 => self.update(),
                3 => self.swapped(),
                4 => self.round(),
                _ => self.store(),
            }
        }
    }

    /// A count that carries into a second word, and at times into a third.
    fn carried(&mut self) {
        let [low, carry] = [0; 2].map(|_| self.fresh(ValType::I32));
        let step = self.rng.pick(&[1, -1, 0x4000_0001, i32::MIN]);
        // It starts, where the function does, with zero: a large step is soon round.
        self.emit_all([I::LocalGet(low), I::I32Const(step), I::I32Add, I::LocalTee(low)]);
        self.emit_all([I::I32Const(step), I::I32LtU, I::LocalSet(carry)]);
        for _ in 0..1 + self.rng.below(2) {
            let high = self.some(ValType::I32);
            self.emit_all([I::LocalGet(high), I::LocalGet(carry), I::I32Add, I::LocalTee(high)]);
            self.emit_all([I::LocalGet(carry), I::I32LtU, I::LocalSet(carry)]);
        }
        let seen = self.some(ValType::I32);
        self.emit_all([I::LocalGet(seen), I::LocalGet(low), I::I32Xor, I::LocalSet(seen)]);
    }

    /// `(a, b) = (b, a ^ f(b))`: a Feistel round.
    fn swapped(&mut self) {
        let (a, b) = (self.some(ValType::I32), self.some(ValType::I32));
        self.emit(I::LocalGet(b));
        self.emit(I::LocalGet(a));
        self.expression(ValType::I32, 2);
        self.emit_all([I::I32Xor, I::LocalSet(b), I::LocalSet(a)]);
    }

    /// `a = rotl(a ^ b, n) + c`.
    fn round(&mut self) {
        let [a, b, c] = [0; 3].map(|_| self.some(ValType::I32));
        let amount = self.rng.below(32) as i32;
        self.emit_all([I::LocalGet(a), I::LocalGet(b), I::I32Xor]);
        self.emit(if self.rng.one_in(4) { I::LocalGet(c) } else { I::I32Const(amount) });
        self.emit_all([if self.rng.one_in(2) { I::I32Rotl } else { I::I32Rotr }, I::LocalGet(c)]);
        self.emit_all([if self.rng.one_in(2) { I::I32Add } else { I::I32Sub }, I::LocalSet(a)]);
    }

    /// The same on long words, with a product.
    fn long_round(&mut self) {
        let [a, b] = [0; 2].map(|_| self.some(ValType::I64));
        let amount = i64::from(self.rng.below(64));
        self.emit_all([I::LocalGet(a), I::LocalGet(b)]);
        self.emit(if self.rng.one_in(3) { I::I64Mul } else { I::I64Add });
        self.emit_all([I::I64Const(amount), I::I64Rotl]);
        self.expression(ValType::I32, 1);
        self.emit_all([I::I64ExtendI32U, I::I64Xor, I::LocalSet(a)]);
    }

    fn selected(&mut self) {
        self.expression(ValType::I32, 1);
        self.expression(ValType::I32, 1);
        self.condition();
        self.emit(I::Select);
        self.set(ValType::I32);
    }

    /// A pointer goes on by an element: what stands there comes in, and at times something goes out.
    fn walked(&mut self) {
        let Some(pointer) = (!self.pointers.is_empty()).then(|| self.rng.pick(&self.pointers)) else {
            return self.update();
        };
        // Of a pointer that goes round a small buffer, whatever the loops around do.
        let walker = self.fresh(ValType::I32);
        let step = self.rng.pick(&[1, 4, -4]);
        let at = super::memarg(0, 0);
        self.emit_all([I::LocalGet(walker), I::I32Const(step), I::I32Add, I::I32Const(0xFF), I::I32And]);
        self.emit_all([I::LocalTee(walker), I::LocalGet(pointer.local), I::I32Add]);
        let address = self.fresh(ValType::I32);
        self.emit(I::LocalSet(address));
        if self.rng.one_in(2) {
            self.emit(I::LocalGet(address));
            self.expression(ValType::I32, 1);
            self.emit(if step % 4 == 0 { I::I32Store(at) } else { I::I32Store8(at) });
        }
        let into = self.some(ValType::I32);
        self.emit_all([I::LocalGet(into), I::LocalGet(address)]);
        self.emit(if step % 4 == 0 { I::I32Load(at) } else { I::I32Load8U(at) });
        self.emit_all([I::I32Xor, I::LocalSet(into)]);
    }

    pub(super) fn condition(&mut self) {
        self.expression(ValType::I32, 1);
        match self.rng.below(4) {
            0 => {
                let mask = self.rng.pick(&[1, 3, 0x80, i32::MIN]);
                self.emit_all([I::I32Const(mask), I::I32And]);
                if self.rng.one_in(2) {
                    self.emit(I::I32Eqz);
                }
            }
            _ => {
                self.expression(ValType::I32, 1);
                let n = self.rng.below(6) as usize;
                self.emit([I::I32Eq, I::I32Ne, I::I32LtS, I::I32LtU, I::I32GeS, I::I32GtU][n].clone());
            }
        }
    }

    fn operation(&mut self, wide: bool) {
        let long = [I::I64Add, I::I64Sub, I::I64Xor, I::I64And, I::I64Or, I::I64Mul, I::I64Rotl, I::I64Xor];
        let short = [I::I32Add, I::I32Sub, I::I32Xor, I::I32And, I::I32Or, I::I32Mul, I::I32Rotl, I::I32Xor];
        let n = self.rng.below(8) as usize;
        self.emit(if wide { long[n].clone() } else { short[n].clone() });
    }

    fn leaf(&mut self, ty: ValType) {
        let wide = ty == ValType::I64;
        match self.rng.below(6) {
            0 => {
                let bits = self.rng.operand();
                self.emit(if wide { I::I64Const(bits as i64) } else { I::I32Const(bits as i32) });
            }
            1 if !self.counters.is_empty() => {
                let counter = self.rng.pick(&self.counters);
                self.emit(I::LocalGet(counter));
                if wide {
                    self.emit(I::I64ExtendI32U);
                }
            }
            _ => {
                let local = self.some(ty);
                self.emit(I::LocalGet(local));
            }
        }
    }

    pub(super) fn expression(&mut self, ty: ValType, depth: u32) {
        let wide = ty == ValType::I64;
        let Some(below) = depth.checked_sub(1) else { return self.leaf(ty) };
        match self.rng.below(16) {
            0 | 1 => self.leaf(ty),
            2..=6 => {
                self.expression(ty, below);
                self.expression(ty, below);
                self.operation(wide);
            }
            7..=9 => self.load(ty),
            10 | 11 => {
                self.expression(ty, below);
                let n = 1 + self.rng.below(if wide { 63 } else { 31 });
                self.emit(if wide { I::I64Const(n.into()) } else { I::I32Const(n as i32) });
                let long = [I::I64Rotl, I::I64Rotr, I::I64Shl, I::I64ShrU, I::I64ShrS];
                let short = [I::I32Rotl, I::I32Rotr, I::I32Shl, I::I32ShrU, I::I32ShrS];
                let n = self.rng.pick(&[0, 0, 1, 2, 3, 4]);
                self.emit(if wide { long[n].clone() } else { short[n].clone() });
            }
            12 if wide => {
                self.expression(ValType::I32, below);
                self.emit(if self.rng.one_in(2) { I::I64ExtendI32U } else { I::I64ExtendI32S });
            }
            12 => {
                self.expression(ValType::I64, below);
                if self.rng.one_in(2) {
                    self.emit_all([I::I64Const(32), I::I64ShrU]);
                }
                self.emit(I::I32WrapI64);
            }
            13 if !wide => self.lookup(below),
            14 if !wide => self.packed(),
            15 if !wide && self.helper => {
                self.expression(ValType::I32, below.min(1));
                self.expression(ValType::I32, below.min(1));
                self.emit(I::Call(0));
            }
            _ => self.leaf(ty),
        }
    }
}
