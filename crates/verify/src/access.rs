//! Accesses to memory, and which may touch the same byte.

use ciphermill_ir::Space;

/// Whose bytes an access touches, as far as callers promise it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Object {
    Anything,
    /// The buffer that this parameter points to, which no other access touches.
    Buffer(u8),
    /// None of these buffers.
    Own,
}

/// What an access touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    pub space: Space,
    pub store: bool,
    /// A value that is the same for all accesses of one iteration that name it, plus an offset; without
    /// one the address is absolute, or relative to the stack pointer.
    pub base: Option<u32>,
    pub offset: i64,
    pub bytes: u8,
    pub object: Object,
    /// First and last byte that it may touch, where these are known.
    pub span: Option<(u32, u32)>,
    /// In data that is never written.
    pub constant: bool,
    /// Banks of memory that it may touch, a bit each; none where the machine has none.
    pub banks: u64,
}

impl Access {
    /// A load of which nothing is known.
    pub fn anywhere(space: Space) -> Access {
        let (object, constant) = (Object::Anything, false);
        Access { space, store: false, base: None, offset: 0, bytes: 0, object, span: None, constant, banks: 0 }
    }

    /// Can they touch the same byte at no time, in whatever iterations of a loop?
    pub fn never_meets(&self, other: &Access) -> bool {
        let foreign = match (self.object, other.object) {
            (Object::Buffer(a), Object::Buffer(b)) => a != b,
            (Object::Buffer(_), Object::Own) | (Object::Own, Object::Buffer(_)) => true,
            (Object::Anything, _) | (_, Object::Anything) | (Object::Own, Object::Own) => false,
        };
        let beside = match (self.span, other.span) {
            (Some((a, b)), Some((c, d))) => b < c || d < a,
            _ => false,
        };
        self.space != other.space || self.constant || other.constant || foreign || beside
    }

    /// Could both touch one byte in the same iteration?
    pub fn overlaps(&self, other: &Access) -> bool {
        let (a, b) = (self.offset, other.offset);
        !self.never_meets(other)
            && (self.base != other.base || a < b + i64::from(other.bytes) && b < a + i64::from(self.bytes))
    }

    /// Does it matter which of two accesses of one iteration comes first?
    pub fn ordered(&self, other: &Access) -> bool {
        (self.store || other.store) && self.overlaps(other)
    }
}

/// Would two accesses of one cycle be slower in banks of which each may touch some? As the
/// machine's memory has them; what is hardly likely does not count.
pub fn share_a_bank(a: u64, b: u64) -> bool {
    let both = (a & b).count_ones();
    both > 0 && 4 * both >= a.count_ones() * b.count_ones()
}
