//! The pattern that an expression of the program must have.

use ciphermill_ir::{BinOp, CmpOp, UnOp};
use std::sync::Arc;

/// What a leaf or node of the program must look like. A graph, of which [`crate::graph`] says how to go through it.
#[derive(Clone, Eq, Debug)]
pub enum Pat {
    /// Any value, in a register: operand of this index.
    Reg(usize),
    /// A constant within the operand's range.
    Imm(usize),
    Const(u64),
    Bin(BinOp, Arc<Pat>, Arc<Pat>),
    Un(UnOp, Arc<Pat>),
    Cmp(CmpOp, Arc<Pat>, Arc<Pat>),
    Select(Arc<Pat>, Arc<Pat>, Arc<Pat>),
    Load {
        bytes: u8,
        signed: bool,
        addr: Arc<Pat>,
    },
    /// The lower half of a word, or 32 bits as a word.
    Low(Arc<Pat>),
    /// A function that recognition found, of these values.
    Apply(u16, Vec<Arc<Pat>>),
}
