//! Expressions: operators that leave one value of a wanted type.

use super::{Body, GLOBALS, TABLES_AT, global_type, memarg};
use wasm_encoder::{Instruction as I, MemArg, ValType};

impl Body<'_> {
    pub(super) fn condition(&mut self, depth: u32) {
        let ty = if self.rng.one_in(4) { ValType::I64 } else { ValType::I32 };
        self.expression(ty, depth);
        if self.rng.one_in(5) {
            return self.emit(if ty == ValType::I64 { I::I64Eqz } else { I::I32Eqz });
        }
        self.expression(ty, depth.min(1));
        let wide = [
            I::I64Eq,
            I::I64Ne,
            I::I64LtS,
            I::I64LtU,
            I::I64GtS,
            I::I64GtU,
            I::I64LeS,
            I::I64LeU,
            I::I64GeS,
            I::I64GeU,
        ];
        let narrow = [
            I::I32Eq,
            I::I32Ne,
            I::I32LtS,
            I::I32LtU,
            I::I32GtS,
            I::I32GtU,
            I::I32LeS,
            I::I32LeU,
            I::I32GeS,
            I::I32GeU,
        ];
        let n = self.rng.below(10) as usize;
        self.emit(if ty == ValType::I64 { wide[n].clone() } else { narrow[n].clone() });
    }

    pub(super) fn leaf(&mut self, ty: ValType) {
        let local = self.local(ty);
        match (self.rng.below(5), local) {
            (0, _) | (_, None) => {
                let bits = self.rng.operand();
                self.emit(if ty == ValType::I64 { I::I64Const(bits as i64) } else { I::I32Const(bits as i32) });
            }
            (1, _) if ty == ValType::I32 && !self.counters.is_empty() => {
                let counter = self.rng.pick(&self.counters);
                self.emit(I::LocalGet(counter));
            }
            (1, _) => {
                let fitting: Vec<u32> = (0..GLOBALS).filter(|&g| global_type(g) == ty).collect();
                let global = self.rng.pick(&fitting);
                self.emit(I::GlobalGet(global));
            }
            (_, Some(local)) => self.emit(I::LocalGet(local)),
        }
    }

    pub(super) fn expression(&mut self, ty: ValType, depth: u32) {
        if depth == 0 {
            return self.leaf(ty);
        }
        match self.rng.below(20) {
            0..=3 => self.leaf(ty),
            4..=9 => self.binary(ty, depth),
            10 | 11 => self.load(ty, depth),
            12 => self.lookup(ty, depth),
            13 => {
                self.expression(ty, depth - 1);
                self.unary(ty);
            }
            14 => {
                self.expression(ty, depth - 1);
                self.expression(ty, depth - 1);
                self.condition(depth - 1);
                self.emit(I::Select);
            }
            15 => self.convert(ty, depth),
            16 => self.shift_mask(ty, depth),
            17 => self.call(ty, depth),
            18 => self.division(ty, depth),
            _ => self.bytes_joined(ty, depth),
        }
    }

    pub(super) fn binary(&mut self, ty: ValType, depth: u32) {
        self.expression(ty, depth - 1);
        self.expression(ty, depth - 1);
        let wide = [
            I::I64Add,
            I::I64Sub,
            I::I64Mul,
            I::I64And,
            I::I64Or,
            I::I64Xor,
            I::I64Xor,
            I::I64Shl,
            I::I64ShrU,
            I::I64ShrS,
            I::I64Rotl,
            I::I64Rotr,
        ];
        let narrow = [
            I::I32Add,
            I::I32Sub,
            I::I32Mul,
            I::I32And,
            I::I32Or,
            I::I32Xor,
            I::I32Xor,
            I::I32Shl,
            I::I32ShrU,
            I::I32ShrS,
            I::I32Rotl,
            I::I32Rotr,
        ];
        let n = self.rng.below(12) as usize;
        self.emit(if ty == ValType::I64 { wide[n].clone() } else { narrow[n].clone() });
    }

    pub(super) fn unary(&mut self, ty: ValType) {
        let wide = [I::I64Clz, I::I64Ctz, I::I64Popcnt, I::I64Extend8S, I::I64Extend16S, I::I64Extend32S];
        let narrow = [I::I32Clz, I::I32Ctz, I::I32Popcnt, I::I32Extend8S, I::I32Extend16S];
        let instruction = if ty == ValType::I64 {
            wide[self.rng.below(6) as usize].clone()
        } else {
            narrow[self.rng.below(5) as usize].clone()
        };
        self.emit(instruction);
    }

    pub(super) fn load(&mut self, ty: ValType, depth: u32) {
        let aligned = self.address(depth);
        let wide = ty == ValType::I64;
        let width = if wide { self.rng.pick(&[0, 1, 2, 3, 3]) } else { self.rng.pick(&[0, 1, 2, 2]) };
        let at = self.memarg_for(aligned, width);
        let signed = self.rng.one_in(3);
        self.emit(match (wide, width, signed) {
            (true, 0, false) => I::I64Load8U(at),
            (true, 0, true) => I::I64Load8S(at),
            (true, 1, false) => I::I64Load16U(at),
            (true, 1, true) => I::I64Load16S(at),
            (true, 2, false) => I::I64Load32U(at),
            (true, 2, true) => I::I64Load32S(at),
            (true, ..) => I::I64Load(at),
            (false, 0, false) => I::I32Load8U(at),
            (false, 0, true) => I::I32Load8S(at),
            (false, 1, false) => I::I32Load16U(at),
            (false, 1, true) => I::I32Load16S(at),
            (false, ..) => I::I32Load(at),
        });
    }

    /// A table of words, indexed by one byte of something.
    pub(super) fn lookup(&mut self, ty: ValType, depth: u32) {
        self.expression(ValType::I32, depth - 1);
        if self.rng.one_in(2) {
            self.emit(I::I32Const(8 * self.rng.below(4) as i32));
            self.emit(I::I32ShrU);
            self.emit(I::I32Const(255));
            self.emit(I::I32And);
            self.emit(I::I32Const(2));
            self.emit(I::I32Shl);
        } else {
            self.emit(I::I32Const(self.rng.pick(&[6, 14, 22])));
            self.emit(I::I32ShrU);
            self.emit(I::I32Const(1020));
            self.emit(I::I32And);
        }
        let at = memarg(TABLES_AT as u64, 2);
        if self.rng.one_in(2) {
            self.emit(I::I32Const(TABLES_AT));
            self.emit(I::I32Add);
            self.emit(I::I32Load(MemArg { offset: 0, ..at }));
        } else {
            self.emit(I::I32Load(at));
        }
        if ty == ValType::I64 {
            self.emit(I::I64ExtendI32U);
        }
    }

    pub(super) fn convert(&mut self, ty: ValType, depth: u32) {
        if ty == ValType::I64 {
            self.expression(ValType::I32, depth - 1);
            let signed = self.rng.one_in(2);
            self.emit(if signed { I::I64ExtendI32S } else { I::I64ExtendI32U });
        } else {
            self.expression(ValType::I64, depth - 1);
            if self.rng.one_in(2) {
                self.emit(I::I64Const(32));
                self.emit(I::I64ShrU);
            }
            self.emit(I::I32WrapI64);
        }
    }

    /// `(x >> n) & m` or `x << n | y >> m`.
    pub(super) fn shift_mask(&mut self, ty: ValType, depth: u32) {
        let wide = ty == ValType::I64;
        let n = self.rng.below(if wide { 64 } else { 32 });
        let constant = |v: u64| if wide { I::I64Const(v as i64) } else { I::I32Const(v as i32) };
        self.expression(ty, depth - 1);
        self.emit(constant(n.into()));
        self.emit(if wide { I::I64ShrU } else { I::I32ShrU });
        if self.rng.one_in(2) {
            let mask = self.rng.pick(&[0xFF, 0xFFFF, 0x3FC, 0x8080_8080, 0x7F7F_7F7F]);
            self.emit(constant(mask));
            self.emit(if wide { I::I64And } else { I::I32And });
        } else {
            self.expression(ty, depth - 1);
            self.emit(constant((if wide { 64 } else { 32 } - n).into()));
            self.emit(if wide { I::I64Shl } else { I::I32Shl });
            self.emit(if wide { I::I64Or } else { I::I32Or });
        }
    }

    pub(super) fn call(&mut self, ty: ValType, depth: u32) {
        let fitting: Vec<u32> =
            (0..self.callees.len() as u32).filter(|&f| self.callees[f as usize].results.first() == Some(&ty)).collect();
        // Callees call callees, so few calls in loops keep the whole short.
        if fitting.is_empty() || self.calls + self.weight > 12 {
            return self.leaf(ty);
        }
        self.calls += self.weight;
        let callee = self.rng.pick(&fitting);
        let sig = self.callees[callee as usize].clone();
        for &param in &sig.params {
            self.expression(param, (depth - 1).min(1));
        }
        if self.rng.one_in(3) {
            self.emit(I::I32Const(callee as i32));
            self.emit(I::CallIndirect { type_index: callee, table_index: 0 });
        } else {
            self.emit(I::Call(callee));
        }
        for _ in 1..sig.results.len() {
            self.emit(I::Drop);
        }
    }

    /// A division whose divisor is rarely zero.
    pub(super) fn division(&mut self, ty: ValType, depth: u32) {
        self.expression(ty, depth - 1);
        self.expression(ty, (depth - 1).min(1));
        let wide = ty == ValType::I64;
        if !self.rng.one_in(30) {
            self.emit(if wide { I::I64Const(1) } else { I::I32Const(1) });
            self.emit(if wide { I::I64Or } else { I::I32Or });
        }
        let n = self.rng.below(4) as usize;
        self.emit(match (wide, n) {
            (true, 0) => I::I64DivU,
            (true, 1) => I::I64DivS,
            (true, 2) => I::I64RemU,
            (true, _) => I::I64RemS,
            (false, 0) => I::I32DivU,
            (false, 1) => I::I32DivS,
            (false, 2) => I::I32RemU,
            (false, _) => I::I32RemS,
        });
    }

    /// A word put together from bytes of memory, as portable C does.
    pub(super) fn bytes_joined(&mut self, ty: ValType, depth: u32) {
        if ty == ValType::I64 {
            return self.binary(ty, depth);
        }
        let base = 4 * self.rng.below(200) as i32;
        let big = self.rng.one_in(2);
        for i in 0..4u64 {
            self.emit(I::I32Const(base));
            self.emit(I::I32Load8U(memarg(i, 0)));
            let shift = 8 * if big { 3 - i } else { i };
            if shift > 0 {
                self.emit(I::I32Const(shift as i32));
                self.emit(I::I32Shl);
            }
            if i > 0 {
                self.emit(I::I32Or);
            }
        }
    }
}
