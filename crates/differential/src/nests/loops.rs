//! Loops by the ways in which they count.

use super::Nest;
use wasm_encoder::{BlockType, Instruction as I, ValType};

/// Of a loop with loops in it, and of one without.
const OUTER_TRIPS: u32 = 8;
const INNER_TRIPS: u32 = 40;

/// When a loop ends.
#[derive(Clone, Copy)]
enum Bound {
    Constant(i32),
    /// A local, whose value is at most so much.
    Data(u32, i32),
}

impl Bound {
    fn most(self) -> i32 {
        match self {
            Bound::Constant(n) | Bound::Data(_, n) => n,
        }
    }
}

impl Nest<'_> {
    /// A loop, with others in it up to a depth of so many altogether.
    pub(super) fn counted(&mut self, depth: u32) {
        let trips = if depth > 1 { OUTER_TRIPS } else { INNER_TRIPS };
        let left = (super::MOST_ITERATIONS / self.weight).clamp(1, trips);
        let bound = self.bound(left);
        self.weight *= bound.most().max(1) as u32;
        match self.rng.below(8) {
            0..=2 => self.upwards(bound, depth),
            3 => self.downwards(bound, depth),
            4 | 5 => self.tested_first(bound, depth),
            6 => self.left_in_the_middle(bound, depth),
            _ => self.two_words(bound, depth),
        }
        self.weight /= bound.most().max(1) as u32;
    }

    /// Known when compiling, or from data; at least 1.
    fn bound(&mut self, most: u32) -> Bound {
        if !self.rng.one_in(3) {
            return Bound::Constant(1 + self.rng.below(most) as i32);
        }
        // A power of two below what is allowed: the count is masked.
        let mask = (most.next_power_of_two() / 2).max(1) as i32;
        let local = self.fresh(ValType::I32);
        self.expression(ValType::I32, 1);
        self.emit_all([I::I32Const(mask - 1), I::I32And, I::I32Const(1), I::I32Add, I::LocalSet(local)]);
        Bound::Data(local, mask)
    }

    fn push(&mut self, bound: Bound) {
        self.emit(match bound {
            Bound::Constant(n) => I::I32Const(n),
            Bound::Data(local, _) => I::LocalGet(local),
        });
    }

    fn body(&mut self, counter: u32, depth: u32) {
        self.counters.push(counter);
        self.statements(depth - 1);
        self.counters.pop();
    }

    fn starts_at(&mut self, start: I<'static>) -> u32 {
        let counter = self.fresh(ValType::I32);
        self.emit_all([start, I::LocalSet(counter)]);
        counter
    }

    /// `do { ... } while ((i += s) != n * s)`, or compared by order.
    fn upwards(&mut self, bound: Bound, depth: u32) {
        let step = match bound {
            Bound::Constant(n) if n < 16 => self.rng.pick(&[1, 1, 1, 2, 4]),
            _ => 1,
        };
        let counter = self.starts_at(I::I32Const(0));
        self.emit(I::Loop(BlockType::Empty));
        self.body(counter, depth);
        self.emit_all([I::LocalGet(counter), I::I32Const(step), I::I32Add, I::LocalTee(counter)]);
        match bound {
            Bound::Constant(n) => self.emit(I::I32Const(n * step)),
            Bound::Data(local, _) => self.emit(I::LocalGet(local)),
        }
        let n = self.rng.below(3) as usize;
        self.emit_all([[I::I32Ne, I::I32LtU, I::I32LtS][n].clone(), I::BrIf(0), I::End]);
    }

    /// `do { ... } while (--i)`.
    fn downwards(&mut self, bound: Bound, depth: u32) {
        let counter = self.fresh(ValType::I32);
        self.push(bound);
        self.emit_all([I::LocalSet(counter), I::Loop(BlockType::Empty)]);
        self.body(counter, depth);
        self.emit_all([I::LocalGet(counter), I::I32Const(-1), I::I32Add, I::LocalTee(counter), I::BrIf(0), I::End]);
    }

    /// `for (i = 0; i < n; i++)` with the test at the top, from a start that may be the end. At
    /// times an iteration is cut short.
    fn tested_first(&mut self, bound: Bound, depth: u32) {
        let start = self.rng.pick(&[0, 0, 1]);
        let counter = self.starts_at(I::I32Const(start));
        self.emit_all([I::Block(BlockType::Empty), I::Loop(BlockType::Empty), I::LocalGet(counter)]);
        self.push(bound);
        self.emit_all([if self.rng.one_in(2) { I::I32GeU } else { I::I32GeS }, I::BrIf(1)]);
        let cut_short = self.rng.one_in(3);
        if cut_short {
            self.emit(I::Block(BlockType::Empty));
            self.counters.push(counter);
            self.statements(0);
            self.condition();
            self.counters.pop();
            self.emit(I::BrIf(0));
        }
        self.body(counter, depth);
        if cut_short {
            self.emit(I::End);
        }
        self.emit_all([I::LocalGet(counter), I::I32Const(1), I::I32Add, I::LocalSet(counter)]);
        self.emit_all([I::Br(0), I::End, I::End]);
    }

    /// A loop that is left by its middle on a condition of data, and what was found is seen behind it.
    fn left_in_the_middle(&mut self, bound: Bound, depth: u32) {
        let counter = self.starts_at(I::I32Const(0));
        self.emit_all([I::Block(BlockType::Empty), I::Loop(BlockType::Empty)]);
        self.body(counter, depth);
        self.counters.push(counter);
        self.expression(ValType::I32, 2);
        let mask = self.rng.pick(&[7, 15, 31, 0xF0]);
        let value = self.rng.pick(&[0, mask, mask & 0x35]);
        self.emit_all([I::I32Const(mask), I::I32And, I::I32Const(value), I::I32Eq, I::BrIf(1)]);
        if self.rng.one_in(2) {
            self.statements(0);
        }
        self.counters.pop();
        self.emit_all([I::LocalGet(counter), I::I32Const(1), I::I32Add, I::LocalTee(counter)]);
        self.push(bound);
        self.emit_all([I::I32LtU, I::BrIf(0), I::End, I::End]);
        let into = self.some(ValType::I32);
        self.emit_all([I::LocalGet(into), I::LocalGet(counter), I::I32Add, I::LocalSet(into)]);
    }

    /// A counter of two words: it starts shortly below where the low one is full.
    fn two_words(&mut self, bound: Bound, depth: u32) {
        let (counter, long) = (self.starts_at(I::I32Const(0)), self.fresh(ValType::I64));
        let start = 0xFFFF_FFFF - i64::from(self.rng.below(6));
        let last = self.fresh(ValType::I64);
        self.emit_all([I::I64Const(start), I::LocalSet(long)]);
        self.push(bound);
        self.emit_all([I::I64ExtendI32U, I::I64Const(start), I::I64Add, I::LocalSet(last)]);
        self.emit(I::Loop(BlockType::Empty));
        self.body(counter, depth);
        let into = self.some(ValType::I64);
        self.emit_all([I::LocalGet(into), I::LocalGet(long), I::I64Xor, I::LocalSet(into)]);
        self.emit_all([I::LocalGet(counter), I::I32Const(1), I::I32Add, I::LocalSet(counter)]);
        self.emit_all([I::LocalGet(long), I::I64Const(1), I::I64Add, I::LocalTee(long), I::LocalGet(last)]);
        self.emit_all([if self.rng.one_in(2) { I::I64Ne } else { I::I64LtU }, I::BrIf(0), I::End]);
    }
}
