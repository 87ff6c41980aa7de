//! What accesses to memory touch, for alias analysis.

use ciphermill_ir::{Space, Value};

/// Whose bytes an access touches, as far as callers promise it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Object {
    Anything,
    /// The buffer that this parameter points to, which no other access touches.
    Buffer(u8),
    /// None of these buffers: a table, a local array.
    Own,
}

/// What an access touches, for alias analysis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemRef {
    pub space: Space,
    pub store: bool,
    /// Address as a value of the function plus an offset; without a value it
    /// is absolute, or on the stack relative to the stack pointer.
    pub base: Option<Value>,
    pub offset: i64,
    pub bytes: u8,
    /// Its address is a multiple of its size.
    pub aligned: bool,
    pub object: Object,
    /// First and last byte that it may touch, where these are known.
    pub span: Option<(u32, u32)>,
    /// In data that is never written.
    pub constant: bool,
    /// Banks of memory it may touch; none where the machine has none.
    pub banks: crate::banks::Set,
}

impl MemRef {
    /// An access of the function's own at an absolute address, or on the stack relative to the
    /// stack pointer, of which nothing else is known.
    pub fn own(space: Space, store: bool, offset: i64, bytes: u8) -> MemRef {
        let object = Object::Own;
        MemRef { space, store, base: None, offset, bytes, aligned: true, object, span: None, constant: false, banks: 0 }
    }

    /// Both accesses as one, the second right behind the first.
    pub fn joined(&self, next: &MemRef) -> MemRef {
        MemRef {
            bytes: self.bytes + next.bytes,
            object: if self.object == next.object { self.object } else { Object::Anything },
            span: self.span.zip(next.span).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1))),
            constant: self.constant && next.constant,
            banks: self.banks | next.banks,
            ..*self
        }
    }

    /// Can the two never touch the same byte, whatever their addresses are
    /// when they happen?
    pub fn apart_always(&self, other: &MemRef) -> bool {
        let objects = match (self.object, other.object) {
            (Object::Buffer(a), Object::Buffer(b)) => a != b,
            (Object::Buffer(_), Object::Own) | (Object::Own, Object::Buffer(_)) => true,
            _ => false,
        };
        let spans = matches!((self.span, other.span), (Some(a), Some(b)) if a.1 < b.0 || b.1 < a.0);
        self.space != other.space || objects || spans || self.constant || other.constant
    }

    /// May the two touch the same byte, one of them writing? Both belong to
    /// one execution of one block, where a base has one value.
    pub fn conflicts(&self, other: &MemRef) -> bool {
        if !(self.store || other.store) || self.apart_always(other) {
            return false;
        }
        self.base != other.base
            || (self.offset < other.offset + i64::from(other.bytes)
                && other.offset < self.offset + i64::from(self.bytes))
    }
}
