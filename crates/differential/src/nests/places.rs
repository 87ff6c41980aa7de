//! Places in arrays: what is read and written in one iteration, and meets what another reads.

use super::{Nest, Pointer, TABLES_AT, memarg};
use wasm_encoder::{Instruction as I, MemArg, ValType};

/// Arrays begin in steps of so many bytes from here on. What a counter of at most 64 in steps of
/// four long words reaches, and a row, stays below the tables; what runs downwards stays above 0.
const ARRAYS_AT: u32 = 0x1000;
const APART: u32 = 0x100;
const ARRAYS: u32 = 16;
/// Bytes in a row of an array of two dimensions.
const ROW: i32 = 32;

/// Where an access is: an address on the stack, and what is added to it.
struct Place {
    offset: u64,
    /// Logarithm of what the address is a multiple of.
    align: u32,
}

impl Nest<'_> {
    /// Pointers into the arrays from any words. Two of them may point to one array, or a few bytes apart.
    pub(super) fn pointers_from(&mut self, words: &[u32]) {
        for &word in words {
            let align = self.rng.pick(&[0, 2, 2, 3]);
            let local = self.fresh(ValType::I32);
            let near = self.rng.one_in(3);
            let mask = (if near { 0x1F } else { 0x7FF }) & !((1 << align) - 1);
            self.emit_all([I::LocalGet(word), I::I32Const(mask), I::I32And, I::I32Const(ARRAYS_AT as i32)]);
            self.emit_all([I::I32Add, I::LocalSet(local)]);
            self.pointers.push(Pointer { local, align });
        }
    }

    /// A place of `1 << width` bytes, the address on the stack.
    fn place(&mut self, width: u32) -> Place {
        // Elements are as wide as what is accessed, or it is an unaligned word in an array of bytes.
        let element = if self.rng.one_in(8) { 0 } else { width };
        let mut align = element;
        self.index();
        if element > 0 {
            self.emit_all([I::I32Const(element as i32), I::I32Shl]);
        }
        if self.rng.one_in(5) && self.counters.len() > 1 {
            let row = self.counters[self.rng.below(self.counters.len() as u32 - 1) as usize];
            self.emit_all([I::LocalGet(row), I::I32Const(ROW), I::I32Mul, I::I32Add]);
        }
        // So many elements from where the index is: what one iteration writes another reads.
        let distance = self.rng.pick(&[0_u64, 0, 0, 1, 2, 3, 4]) << element;
        if self.rng.one_in(3) && !self.pointers.is_empty() {
            let pointer = self.rng.pick(&self.pointers);
            align = align.min(pointer.align);
            self.emit_all([I::LocalGet(pointer.local), I::I32Add]);
            return Place { offset: distance, align };
        }
        // Few arrays, so that accesses meet.
        let array = self.rng.pick(&[0, 0, 0, 1, 1, ARRAYS - 1]);
        let base = ARRAYS_AT + APART * array;
        if self.rng.one_in(2) {
            return Place { offset: u64::from(base) + distance, align };
        }
        self.emit_all([I::I32Const(base as i32), I::I32Add]);
        Place { offset: distance, align }
    }

    /// Which element: an affine function of the counters, or nearly. Never below 0 nor above 256.
    fn index(&mut self) {
        let Some(&inner) = self.counters.last() else {
            let at = self.rng.below(16) as i32;
            return self.emit(I::I32Const(at));
        };
        let outer = self.rng.pick(&self.counters);
        match self.rng.below(12) {
            0..=3 => self.emit(I::LocalGet(inner)),
            4 => self.emit_all([I::LocalGet(inner), I::I32Const(2), I::I32Shl]),
            5 | 6 => self.emit_all([I::I32Const(64), I::LocalGet(inner), I::I32Sub]),
            7 => {
                let with = self.rng.pick(&[1, 2, 3, 7, 15]);
                self.emit_all([I::LocalGet(inner), I::I32Const(with), I::I32Xor]);
            }
            8 => self.emit_all([I::LocalGet(inner), I::LocalGet(outer), I::I32Xor]),
            9 => {
                let mask = self.rng.pick(&[1, 3, 7, 15]);
                let step = self.rng.below(4) as i32;
                self.emit_all([I::LocalGet(inner), I::I32Const(step), I::I32Add, I::I32Const(mask), I::I32And]);
            }
            10 => self.emit(I::LocalGet(outer)),
            _ => {
                let any = self.some(ValType::I32);
                self.emit_all([I::LocalGet(any), I::I32Const(31), I::I32And]);
            }
        }
    }

    /// The alignment that is stated: true, and not always all that is.
    fn stated(&self, place: &Place, width: u32) -> MemArg {
        let align = place.align.min(width).min(place.offset.trailing_zeros());
        memarg(place.offset, if self.rng.one_in(8) { 0 } else { align })
    }

    pub(super) fn load(&mut self, ty: ValType) {
        let wide = ty == ValType::I64;
        let width = if wide { self.rng.pick(&[0, 2, 3, 3]) } else { self.rng.pick(&[0, 0, 1, 2, 2, 2]) };
        let place = self.place(width);
        let at = self.stated(&place, width);
        let signed = self.rng.one_in(4);
        self.emit(match (wide, width, signed) {
            (true, 0, false) => I::I64Load8U(at),
            (true, 0, true) => I::I64Load8S(at),
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

    pub(super) fn store(&mut self) {
        let ty = if self.rng.one_in(5) { ValType::I64 } else { ValType::I32 };
        let wide = ty == ValType::I64;
        let width = if wide { self.rng.pick(&[0, 2, 3, 3]) } else { self.rng.pick(&[0, 0, 1, 2, 2, 2]) };
        let place = self.place(width);
        self.expression(ty, 2);
        let at = self.stated(&place, width);
        self.emit(match (wide, width) {
            (true, 0) => I::I64Store8(at),
            (true, 2) => I::I64Store32(at),
            (true, _) => I::I64Store(at),
            (false, 0) => I::I32Store8(at),
            (false, 1) => I::I32Store16(at),
            (false, _) => I::I32Store(at),
        });
    }

    /// Four bytes of an array as a word, in either order.
    pub(super) fn packed(&mut self) {
        let base = self.word_at();
        let big = self.rng.one_in(2);
        for i in 0..4u64 {
            self.emit_all([I::LocalGet(base), I::I32Load8U(memarg(i, 0))]);
            let shift = 8 * if big { 3 - i } else { i };
            if shift > 0 {
                self.emit_all([I::I32Const(shift as i32), I::I32Shl]);
            }
            if i > 0 {
                self.emit(I::I32Or);
            }
        }
    }

    /// A word into four bytes of an array, in either order.
    pub(super) fn unpacked(&mut self) {
        let base = self.word_at();
        let word = self.some(ValType::I32);
        let big = self.rng.one_in(2);
        for i in 0..4u64 {
            let shift = 8 * if big { 3 - i } else { i };
            self.emit_all([I::LocalGet(base), I::LocalGet(word), I::I32Const(shift as i32), I::I32ShrU]);
            self.emit(I::I32Store8(memarg(i, 0)));
        }
    }

    /// A new local with the address of a word in an array of bytes.
    fn word_at(&mut self) -> u32 {
        let local = self.fresh(ValType::I32);
        let place = self.place(2);
        self.emit_all([I::I32Const(place.offset as i32), I::I32Add, I::LocalSet(local)]);
        local
    }

    /// A table of words indexed by a byte of something, or of bytes.
    pub(super) fn lookup(&mut self, depth: u32) {
        self.expression(ValType::I32, depth);
        let at = TABLES_AT as u64;
        if self.rng.one_in(2) {
            self.emit_all([I::I32Const(8 * self.rng.below(4) as i32), I::I32ShrU, I::I32Const(255), I::I32And]);
            if self.rng.one_in(2) {
                return self.emit(I::I32Load8U(memarg(at, 0)));
            }
            self.emit_all([I::I32Const(2), I::I32Shl]);
        } else {
            self.emit_all([I::I32Const(self.rng.pick(&[6, 14, 22])), I::I32ShrU, I::I32Const(1020), I::I32And]);
        }
        self.emit(I::I32Load(memarg(at, 2)));
    }

    /// Two entries of a state of bytes change places, as RC4's do: `t = S[x]; S[x] = S[y]; S[y] = t`.
    pub(super) fn exchange(&mut self) {
        let [x, y, t] = [0; 3].map(|_| self.fresh(ValType::I32));
        for index in [x, y] {
            self.expression(ValType::I32, 1);
            self.emit_all([I::I32Const(255), I::I32And, I::LocalSet(index)]);
        }
        let at = || memarg(ARRAYS_AT.into(), 0);
        self.emit_all([I::LocalGet(x), I::I32Load8U(at()), I::LocalSet(t)]);
        self.emit_all([I::LocalGet(x), I::LocalGet(y), I::I32Load8U(at()), I::I32Store8(at())]);
        self.emit_all([I::LocalGet(y), I::LocalGet(t), I::I32Store8(at())]);
        let kept = self.some(ValType::I32);
        self.emit_all([I::LocalGet(kept), I::LocalGet(t), I::I32Add, I::LocalSet(kept)]);
    }
}
