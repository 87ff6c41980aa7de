//! Instructions that store or load a run of registers at the stack pointer and move it: for frame code.

use crate::builder::{Builder, nodes};
use crate::error::{FileError, near_instruction};
use crate::model::{Instr, InstrId, Reg};
use crate::sem::{Dest, Expr, Stmt};
use crate::tree::Table as Tree;
use ciphermill_ir::BinOp;

/// What a list of such instructions is about.
pub(crate) struct Run {
    pub stack_pointer: Reg,
    pub word_bytes: u8,
    /// They store, downwards; else they load, upwards.
    pub push: bool,
}

/// The instructions of the list `key`, for one register, for two and so on.
///
/// # Errors
/// One that is not there, or that means something else.
pub(crate) fn list(b: &Builder, t: &Tree, key: &str, run: &Run) -> Result<Vec<InstrId>, FileError> {
    let one = |(n, node): (usize, &crate::tree::Node)| {
        let name = node.as_str().unwrap_or_default();
        let Some(&id) = b.instr_names.get(name) else {
            let error = node.place.error(format!("unknown instruction `{name}`"));
            return Err(error.mend_opt(near_instruction(name, b.instr_names.keys().map(String::as_str))));
        };
        if run.is(&b.instrs[usize::from(id.0)], n as i64 + 1) {
            return Ok(id);
        }
        let (what, way) = if run.push { ("stores", "below") } else { ("loads", "from") };
        Err(node.place.error(format!(
            "`{name}` cannot be number {} of `{key}`: that must be an instruction that {what} its operands, as many and the first \
             at the lowest address, {way} the stack pointer, and moves that",
            n + 1
        )))
    };
    nodes(t, key).iter().enumerate().map(one).collect()
}

impl Run {
    /// Is it the one for `count` registers?
    fn is(&self, instr: &Instr, count: i64) -> bool {
        let word = i64::from(self.word_bytes);
        let first = if self.push { -count * word } else { 0 };
        let place = |k: usize, addr: &Expr| self.offset(addr) == Some(first + k as i64 * word);
        let access = |s: &Stmt| match s {
            Stmt::Store { bytes, addr, value: Expr::Operand(k) } => {
                self.push && *bytes == self.word_bytes && place(*k, addr)
            }
            Stmt::Assign { dest: Dest::Operand(k), value: Expr::Load { bytes, addr, .. } } => {
                !self.push && *bytes == self.word_bytes && place(*k, addr)
            }
            _ => false,
        };
        let by = if self.push { -count * word } else { count * word };
        let moves = |s: &Stmt| matches!(s, Stmt::Assign { dest: Dest::Fixed(r), value } if *r == self.stack_pointer && self.offset(value) == Some(by));
        let (accesses, others): (Vec<&Stmt>, Vec<&Stmt>) = instr.semantics.iter().partition(|s| access(s));
        let all = instr.operands.len() == accesses.len() && accesses.len() as i64 == count;
        all && matches!(others[..], [s] if moves(s))
    }

    /// How far behind the stack pointer.
    fn offset(&self, e: &Expr) -> Option<i64> {
        match e {
            Expr::Fixed(r) => (*r == self.stack_pointer).then_some(0),
            Expr::Bin { op: op @ (BinOp::Add | BinOp::Sub), bits, a, b } => match (&**a, &**b) {
                (Expr::Fixed(r), Expr::Const(c)) if *r == self.stack_pointer => {
                    let c = ciphermill_ir::ops::sext(*c, u32::from(*bits));
                    Some(if *op == BinOp::Add { c } else { -c })
                }
                _ => None,
            },
            _ => None,
        }
    }
}
