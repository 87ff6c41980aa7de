//! Operators that become several operations: bulk memory, the table, indirect
//! calls, and the size of the memory.
//!
//! # Copies of known length
//!
//! C compilers write `memory.copy` for every small `memcpy`, so one of at most
//! [`INLINE_BYTES`] constant bytes is written out. All loads come before all
//! stores, which makes overlap harmless, and each goes from the highest address
//! down: the one access that can leave the memory while others do not is then
//! the first, and a copy that traps has written nothing. `memory.fill` likewise.
//!
//! The operator says nothing about alignment. Where the addresses are visibly
//! multiples of four (constants, the stack pointer, sums of such), words are
//! moved without asking; else a test chooses between the words and the runtime
//! function. Lengths below four are moved as they are.

use crate::error;
use crate::runtime;
use crate::translator::{Refused, Translator};
use ciphermill_ir::{BinOp, CmpOp, MemAccess, Op, SYSTEM_BASE, Space, Target, Terminator, TrapCode, Type, Value};
use wasmparser::Operator;

/// Copies and fills of at most so many bytes are written out.
const INLINE_BYTES: u64 = 64;

/// A word of the system area; the address is the whole address.
const SYSTEM_WORD: MemAccess = MemAccess { bytes: 4, signed: false, align: 4, offset: 0, space: Space::System };

impl Translator<'_, '_, '_> {
    /// The operators this file is about; anything else is refused.
    pub fn bulk(&mut self, op: &Operator<'_>) -> Result<(), Refused> {
        match *op {
            Operator::MemorySize { .. } => {
                let pages = self.system_word(SYSTEM_BASE);
                self.push(pages);
            }
            Operator::MemoryGrow { .. } => self.call_runtime("rt_memory_grow"),
            Operator::MemoryCopy { .. } => self.memory_copy(),
            Operator::MemoryFill { .. } => self.memory_fill(),
            Operator::MemoryInit { data_index, .. } => {
                let segment = self.cx.linker.data_segment(self.cx.source, data_index);
                self.push_constant(segment.content_at);
                let length = self.system_word(segment.length_at);
                self.push(length);
                self.call_runtime("rt_memory_init");
            }
            Operator::DataDrop { data_index } => {
                let segment = self.cx.linker.data_segment(self.cx.source, data_index);
                self.clear_word(segment.length_at);
            }
            Operator::TableInit { elem_index, .. } => {
                let segment = self.cx.linker.element_segment(self.cx.source, elem_index);
                self.push_constant(self.cx.linker.table.address);
                self.push_constant(self.cx.linker.table.entries);
                self.push_constant(segment.content_at);
                let length = self.system_word(segment.length_at);
                self.push(length);
                self.call_runtime("rt_table_init");
            }
            Operator::ElemDrop { elem_index } => {
                let segment = self.cx.linker.element_segment(self.cx.source, elem_index);
                self.clear_word(segment.length_at);
            }
            Operator::TableCopy { .. } => {
                self.push_constant(self.cx.linker.table.address);
                self.push_constant(self.cx.linker.table.entries);
                self.call_runtime("rt_table_copy");
            }
            Operator::TableSize { .. } => self.push_constant(self.cx.linker.table.entries),
            _ => return Err(Refused { what: None, reason: error::refusal(op) }),
        }
        Ok(())
    }

    fn push_constant(&mut self, value: u32) {
        let value = self.constant(value);
        self.push(value);
    }

    fn system_word(&mut self, address: u32) -> Value {
        let address = self.constant(address);
        self.load(address, SYSTEM_WORD, Type::I32)
    }

    fn clear_word(&mut self, address: u32) {
        let (address, zero) = (self.constant(address), self.constant(0));
        self.emit_effect(Op::Store(SYSTEM_WORD), &[address, zero]);
    }

    /// Call an exported function of the runtime with operands off the stack.
    fn call_runtime(&mut self, name: &'static str) {
        // The exports are a closed list, tested to be complete.
        let index = runtime::export(self.cx.runtime, name).expect("the runtime exports it");
        let id = self.cx.linker.runtime(self.cx.runtime, index, name);
        let sig = self.cx.linker.module.funcs[id].sig.clone();
        self.emit_call(Op::Call(id), None, sig);
    }

    /// Link the division functions in, for the optimiser to find.
    pub fn want_division(&mut self, names: [&'static str; 4]) {
        for name in names {
            if let Some(index) = runtime::export(self.cx.runtime, name) {
                self.cx.linker.runtime(self.cx.runtime, index, name);
            }
        }
    }

    /// The call through the table, with WebAssembly's three checks in its order.
    pub fn call_indirect(&mut self, type_index: u32) -> Result<(), Refused> {
        let (id, sig) = self.signature(type_index)?;
        let index = self.pop();
        let table = self.cx.linker.table;
        let entries = self.constant(table.entries);
        let outside = self.emit(Op::Cmp(CmpOp::LeU), &[entries, index], Type::I32);
        self.trap_if(outside, TrapCode::TableOutOfBounds);

        let three = self.constant(3);
        let offset = self.bin(BinOp::Shl, index, three);
        let base = self.constant(table.address);
        let entry = self.bin(BinOp::Add, offset, base);
        let found = self.load(entry, SYSTEM_WORD, Type::I32);
        let wanted = self.constant(id.as_u32() + 1);
        let wrong = self.emit(Op::Cmp(CmpOp::Ne), &[found, wanted], Type::I32);

        // Which of the two traps it is matters only once it is one.
        let (which, right) = (self.ssa.block(&[]), self.ssa.block(&[]));
        self.terminate(Terminator::Branch {
            cond: wrong,
            then: Target::new(which, Vec::new()),
            els: Target::new(right, Vec::new()),
        });
        self.enter(which);
        let zero = self.constant(0);
        let null = self.emit(Op::Cmp(CmpOp::Eq), &[found, zero], Type::I32);
        self.trap_if(null, TrapCode::IndirectCallToNull);
        self.jump_to_trap(TrapCode::BadSignature);

        self.enter(right);
        let code = self.load(entry, MemAccess { offset: 4, ..SYSTEM_WORD }, Type::I32);
        self.emit_call(Op::CallPtr(id), Some(code), sig);
        Ok(())
    }

    fn memory_copy(&mut self) {
        let (n, src, dst) = (self.pop(), self.pop(), self.pop());
        let bytes = self.ssa.func.as_const(n).filter(|n| (1..=INLINE_BYTES).contains(n));
        let Some(bytes) = bytes else {
            return self.call_with("rt_memory_copy", [dst, src, n]);
        };
        self.words_or_runtime(bytes as u32, &[dst, src], ("rt_memory_copy", [dst, src, n]), |t, align| {
            let pieces = pieces(bytes as u32, align);
            let loaded: Vec<Value> = pieces.iter().rev().map(|&piece| t.load(src, piece, piece_type(piece))).collect();
            for (&piece, &value) in pieces.iter().rev().zip(&loaded) {
                t.emit_effect(Op::Store(piece), &[dst, value]);
            }
        });
    }

    fn memory_fill(&mut self) {
        let (n, byte, dst) = (self.pop(), self.pop(), self.pop());
        let bytes = self.ssa.func.as_const(n).filter(|n| (1..=INLINE_BYTES).contains(n));
        let Some(bytes) = bytes else {
            return self.call_with("rt_memory_fill", [dst, byte, n]);
        };
        self.words_or_runtime(bytes as u32, &[dst], ("rt_memory_fill", [dst, byte, n]), |t, align| {
            let pieces = pieces(bytes as u32, align);
            let mask = t.constant(0xFF);
            let low = t.bin(BinOp::And, byte, mask);
            let ones = t.constant(0x0101_0101);
            let word = t.bin(BinOp::Mul, low, ones);
            let wide = pieces.iter().any(|piece| piece.bytes == 8).then(|| {
                let upper = t.emit(Op::ZExt, &[word], Type::I64);
                let n = t.emit(Op::Const(32), &[], Type::I64);
                let shifted = t.bin(BinOp::Shl, upper, n);
                t.bin(BinOp::Or, shifted, upper)
            });
            for &piece in pieces.iter().rev() {
                let value = wide.filter(|_| piece.bytes == 8).unwrap_or(word);
                t.emit_effect(Op::Store(piece), &[dst, value]);
            }
        });
    }

    fn call_with(&mut self, name: &'static str, args: [Value; 3]) {
        for arg in args {
            self.push(arg);
        }
        self.call_runtime(name);
    }

    /// Write out words when all addresses are multiples of four, which is
    /// decided now or when the code runs.
    fn words_or_runtime(
        &mut self,
        bytes: u32,
        addresses: &[Value],
        call: (&'static str, [Value; 3]),
        inline: impl Fn(&mut Self, u32),
    ) {
        let known = addresses.iter().map(|&v| self.known_alignment(v, 8)).min().unwrap_or(1);
        if known >= 4 || bytes < 4 {
            return inline(self, known);
        }
        let mut low = addresses[0];
        for &address in &addresses[1..] {
            low = self.bin(BinOp::Or, low, address);
        }
        let three = self.constant(3);
        let low = self.bin(BinOp::And, low, three);
        let (odd, words, after) = (self.ssa.block(&[]), self.ssa.block(&[]), self.ssa.block(&[]));
        self.terminate(Terminator::Branch {
            cond: low,
            then: Target::new(odd, Vec::new()),
            els: Target::new(words, Vec::new()),
        });
        self.enter(words);
        inline(self, 4);
        self.terminate(Terminator::Jump(Target::new(after, Vec::new())));
        self.enter(odd);
        self.call_with(call.0, call.1);
        self.terminate(Terminator::Jump(Target::new(after, Vec::new())));
        self.enter(after);
    }

    /// A power of two up to 8 that visibly divides a value.
    fn known_alignment(&self, v: Value, depth: u32) -> u32 {
        let func = &self.ssa.func;
        if depth == 0 {
            return 1;
        }
        let Some(inst) = func.def_inst(v) else { return 1 };
        let args = &func.insts[inst].args;
        let of = |i: usize| self.known_alignment(args[i], depth - 1);
        match func.insts[inst].op {
            Op::Const(c) => 1 << c.trailing_zeros().min(3),
            Op::Bin(BinOp::Add | BinOp::Sub | BinOp::Or | BinOp::Xor) => of(0).min(of(1)),
            Op::Bin(BinOp::And) => of(0).max(of(1)),
            Op::Bin(BinOp::Mul) => (of(0) * of(1)).min(8),
            Op::Bin(BinOp::Shl) => {
                let n = func.as_const(args[1]).unwrap_or(0) & 31;
                (of(0) << n.min(3)).min(8)
            }
            // The C ABI of WebAssembly keeps the stack pointer a multiple of 16.
            Op::GlobalGet(id) => {
                let name = self.cx.linker.module.globals[id].name.as_deref();
                if name == Some("__stack_pointer") { 8 } else { 1 }
            }
            _ => 1,
        }
    }
}

/// The accesses that cover so many bytes, from the lowest address up: as wide
/// as the alignment of the first byte allows.
fn pieces(bytes: u32, align: u32) -> Vec<MemAccess> {
    let mut pieces = Vec::new();
    let mut offset = 0;
    while offset < bytes {
        let width = 1 << (bytes - offset).ilog2().min(align.ilog2());
        pieces.push(MemAccess { bytes: width as u8, signed: false, align: width as u8, offset, space: Space::Linear });
        offset += width;
    }
    pieces
}

fn piece_type(piece: MemAccess) -> Type {
    if piece.bytes == 8 { Type::I64 } else { Type::I32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_byte_once_and_aligned() {
        for align in [1, 2, 4, 8] {
            for bytes in 1..=64 {
                let mut at = 0;
                for piece in pieces(bytes, align) {
                    assert_eq!(piece.offset, at);
                    assert_eq!(at % u32::from(piece.bytes), 0);
                    assert!(u32::from(piece.bytes) <= align);
                    at += u32::from(piece.bytes);
                }
                assert_eq!(at, bytes);
            }
        }
    }
}
