//! Immediate operands: the value that an expression gives one, and values to try.

use crate::eval::{Env, eval};
use crate::model::OperandKind;
use crate::random::Random;
use crate::sem::Expr;

/// The immediate a part's argument `expr` gives for the compound's immediates
/// (`imm(i)` for operand `i`), as the part's operand `kind` wants it. None: an
/// immediate is missing, or the value is out of the operand's range.
pub fn part_imm(expr: &Expr, imm: impl Fn(usize) -> Option<i64>, kind: &OperandKind, word: u8) -> Option<i64> {
    kind.imm_for(eval(expr, word, &Imms(imm))?, word)
}

pub(crate) fn sample_imm(kind: &OperandKind, random: &mut Random) -> i64 {
    match kind {
        OperandKind::Imm { values: Some(values), .. } => values[random.bits() as usize % values.len().max(1)],
        OperandKind::Imm { min, max, step, .. } => {
            let v = random.between(*min, *max);
            (v as i128 - (v as i128 - *min as i128) % (*step).max(1) as i128) as i64
        }
        OperandKind::Reg { .. } | OperandKind::Label => 0,
    }
}

/// Immediates of a compound by operand, for evaluating a part's.
pub(crate) struct Imms<F>(pub F);

impl<F: Fn(usize) -> Option<i64>> Env for Imms<F> {
    fn imm(&self, index: usize) -> Option<i64> {
        (self.0)(index)
    }
}
