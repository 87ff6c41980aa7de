//! What kind of work an instruction does, in one word, told by its semantics.
//!
//! For people who look at a schedule: an instruction that does several things
//! has the word of the one that says most about its cost. Nothing is decided by
//! it anywhere else.

use ciphermill_ir::BinOp;
use ciphermill_machine::sem::{Expr, Stmt};
use ciphermill_machine::{Instr, InstrKind};

/// `branch`, `load`, `store`, `multiply`, `special` (constant tables and
/// matrices), `arithmetic`, `shift`, `logic` or `move`.
pub fn class(instr: &Instr) -> &'static str {
    match instr.kind {
        InstrKind::Load => return "load",
        InstrKind::Store => return "store",
        InstrKind::Compute | InstrKind::Frame => {}
        _ => return "branch",
    }
    let values = instr.semantics.iter().filter_map(|s| match s {
        Stmt::Let { value, .. } | Stmt::Assign { value, .. } => Some(value),
        _ => None,
    });
    let most = values.map(of).max().unwrap_or(0);
    ["move", "logic", "shift", "arithmetic", "special", "multiply"][most]
}

/// A place in the list of words above.
fn of(value: &Expr) -> usize {
    let own = match value {
        Expr::Bin { op, .. } => match op {
            BinOp::Mul | BinOp::MulHiU | BinOp::MulHiS | BinOp::DivU | BinOp::DivS | BinOp::RemU | BinOp::RemS => 5,
            BinOp::Add | BinOp::Sub => 3,
            BinOp::Shl | BinOp::ShrU | BinOp::ShrS | BinOp::RotL | BinOp::RotR => 2,
            BinOp::And | BinOp::Or | BinOp::Xor => 1,
        },
        Expr::Table { .. } | Expr::Linear { .. } | Expr::MatVec { .. } => 4,
        Expr::Cmp { .. } | Expr::FlagsSub { .. } | Expr::FlagsAdd { .. } => 3,
        Expr::Un { .. } | Expr::Slice { .. } => 2,
        Expr::FlagsLogic { .. } => 1,
        // Whether it happens is not what it does.
        Expr::Select { then, els, .. } => return of(then).max(of(els)),
        _ => 0,
    };
    let mut most = own;
    value.children(|child| most = most.max(of(child)));
    most
}
