//! Loads and stores of limbs.

use super::Lower;
use super::width::{ADDRESS_BITS, Limbs};
use crate::error::OptError;
use ciphermill_ir::{BinOp, Chain, InstData, MemAccess, Op, Space, Value, mask};

/// One access of a word or a part of one: its bytes, and where it lies behind the first.
struct Piece {
    bytes: u8,
    at: u32,
}

impl Lower<'_> {
    /// An access in pieces that a word holds, lowest first. Where it is less aligned than a word, single bytes.
    fn pieces(&self, access: MemAccess) -> Vec<Piece> {
        let word = (self.narrow.bits / 8) as u8;
        let step = if access.align >= word { access.bytes.min(word) } else { 1 };
        (0..access.bytes).step_by(usize::from(step)).map(|at| Piece { bytes: step, at: at.into() }).collect()
    }

    /// The address of a piece: an operand and the access.
    fn address(&mut self, addr: Value, access: MemAccess, piece: &Piece) -> Result<(Value, MemAccess), OptError> {
        let new = MemAccess { bytes: piece.bytes, signed: false, align: piece.bytes, offset: 0, ..access };
        let count = (ADDRESS_BITS / self.narrow.bits) as usize;
        if let Some(c) = self.old.as_const(addr) {
            let whole = (c as u32).wrapping_add(access.offset).wrapping_add(piece.at);
            if access.space != Space::System && whole >> ADDRESS_BITS != 0 {
                return Err(self.refused(
                    "has something beyond the first 64 KB of memory, or a stack that grows below its beginning",
                ));
            }
            if access.space == Space::Flash {
                let limbs = self.emit.number(whole);
                return Ok((self.pointer(&limbs[..count]), new));
            }
            return Ok((self.emit.constant(u64::from(whole)), new));
        }
        let mut limbs: Limbs = self.limbs(addr)[..count].iter().copied().collect();
        if access.space == Space::System {
            // The lower half of an address there is a place in the area; where that begins, the area itself says.
            let start = self.system_start();
            limbs = self.emit.add(&limbs, &start);
        }
        if access.space == Space::Flash {
            return Ok((self.in_flash(addr, access, piece, limbs), new));
        }
        // What displacements do not reach is added, the same for neighbours.
        let last = access.offset.saturating_add(u32::from(access.bytes) - 1);
        let mut offset = access.offset;
        if last > self.narrow.reach {
            let near = self.narrow.reach + 1;
            let rest = access.offset % near;
            let near = if near > rest + u32::from(access.bytes) - 1 { rest } else { 0 };
            let far = self.emit.number(access.offset - near);
            limbs = self.emit.add(&limbs, &far[..count]);
            offset = near;
        }
        let new = MemAccess { offset: offset + piece.at, ..new };
        Ok((self.pointer(&limbs), new))
    }

    /// The address of a piece in flash, whose loads have no displacement. Inside an aligned entry the lowest limb alone
    /// differs, and in bits that are zero.
    fn in_flash(&mut self, addr: Value, access: MemAccess, piece: &Piece, mut limbs: Limbs) -> Value {
        let mut add = |limbs: &mut Limbs, offset: u32| {
            if offset != 0 {
                let far = self.emit.number(offset);
                *limbs = self.emit.add(limbs, &far[..limbs.len()]);
            }
        };
        let low = u64::from(access.bytes.next_power_of_two() - 1);
        let aligned = (self.masks.possible(&self.old, addr) | u64::from(access.offset)) & low == 0;
        if aligned {
            add(&mut limbs, access.offset);
            let at = self.emit.constant(piece.at.into());
            limbs[0] = self.emit.bitwise(BinOp::Or, limbs[0], at);
        } else {
            add(&mut limbs, access.offset + piece.at);
        }
        self.pointer(&limbs)
    }

    /// An address of several limbs as one operand, for one access: a pattern of that access takes it in.
    pub(super) fn pointer(&mut self, limbs: &[Value]) -> Value {
        let (func, block, loc) = (&mut self.emit.func, self.emit.block, self.emit.loc);
        let ty = ciphermill_ir::Type::I32;
        let mut whole = limbs[0];
        for (k, &limb) in limbs.iter().enumerate().skip(1) {
            let by = func.append1(block, Op::Const(u64::from(k as u32 * self.narrow.bits)), &[], ty, loc);
            let above = func.append1(block, Op::Bin(BinOp::Shl), &[limb, by], ty, loc);
            whole = func.append1(block, Op::Bin(BinOp::Or), &[whole, above], ty, loc);
        }
        whole
    }

    pub(super) fn load(&mut self, addr: Value, access: MemAccess, result: Value) -> Result<Limbs, OptError> {
        let zero = self.emit.constant(0);
        let mut limbs: Limbs = std::iter::repeat_n(zero, self.count()).collect();
        let read = 8 * u32::from(access.bytes);
        let above =
            self.demand.of(result) as u64 & !mask(read.div_ceil(self.narrow.bits)) != 0 || read < self.narrow.bits;
        let signed = access.signed && read < 32 && above;
        for piece in self.pieces(access) {
            let (limb, shift) = self.place(&piece);
            // The last limb read has the sign.
            let has_sign = signed && piece.at + u32::from(piece.bytes) == u32::from(access.bytes);
            if !self.wanted(result, limb) && !has_sign {
                continue;
            }
            let (at, new) = self.address(addr, access, &piece)?;
            let part = self.emit.one(Op::Load(new), &[at]);
            let part = if shift == 0 { part } else { self.emit.shift(BinOp::Shl, &[part], shift, 0..1)[0] };
            limbs[limb] = self.emit.bitwise(BinOp::Or, limbs[limb], part);
        }
        Ok(if signed { self.emit.extended(&limbs, read) } else { limbs })
    }

    pub(super) fn store(&mut self, data: &InstData, access: MemAccess) -> Result<(), OptError> {
        let value = self.limbs(data.args[1]);
        // The highest first: where all of it does not fit, nothing is written.
        for piece in self.pieces(access).iter().rev() {
            let (limb, shift) = self.place(piece);
            let part = match shift {
                0 => value[limb],
                // A store of half a word looks at no more than that half.
                _ if 2 * shift == self.narrow.bits => self.emit.chain(Chain::Swap, &[value[limb]])[0],
                _ => self.emit.shift(BinOp::ShrU, &[value[limb]], shift, 0..1)[0],
            };
            let (at, new) = self.address(data.args[0], access, piece)?;
            self.emit.results(Op::Store(new), &[at, part], 0);
        }
        Ok(())
    }

    /// The limb a piece is part of, and how far up in it.
    fn place(&self, piece: &Piece) -> (usize, u32) {
        let bit = 8 * piece.at;
        ((bit / self.narrow.bits) as usize, bit % self.narrow.bits)
    }
}
