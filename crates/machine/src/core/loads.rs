//! One latency for loads.
//!
//! On a machine with `[core]` the simulator goes by `core.load.latency`, while
//! the code generator looks at each instruction's own. Two numbers for one
//! thing would let a change of either go unnoticed, so an instruction that
//! does nothing but load takes the core's; and a timing that says something
//! else is an error, unless the core's number was stated later than it.

use super::Core;
use crate::builder::Builder;
use crate::error::FileError;
use crate::model::{Instr, InstrKind};
use crate::sem::{Dest, Expr, Stmt};
use crate::tree::{Node, Table};

/// Give the instructions that only load the core's latency.
///
/// # Errors
/// A timing of theirs that was stated with the core's latency or after it, and differs.
pub(crate) fn settle(b: &mut Builder<'_>, core: &Core) -> Result<(), FileError> {
    let latency = core.load.latency;
    let stated = b.top.table("core").and_then(|c| c.table("load")).and_then(|l| l.get("latency"));
    let timings = b.top.table("timings");
    let later = |a: &Node, than: &Node| b.layer(a) >= b.layer(than);
    for instr in b.instrs.iter().filter(|i| only_loads(i) && i.latency != latency) {
        let node = timings.and_then(|t| t.table(&instr.timing)).and_then(|t: &Table| t.get("latency"));
        let Some((node, stated)) = node.zip(stated).filter(|(node, stated)| later(node, stated)) else { continue };
        let error = node.place.error(format!(
            "`timings.{}.latency` is {}, but `{}` only loads, and this machine's loads take `core.load.latency`, {latency}",
            instr.timing, instr.latency, instr.name
        ));
        let there = stated.place.error("");
        return Err(error.mend(format!(
            "change `core.load.latency` ({} line {}) instead, or both; an instruction that does more than load can have a timing of its own",
            there.file, there.line
        )));
    }
    for instr in b.instrs.iter_mut().filter(|i| only_loads(i)) {
        instr.latency = latency;
    }
    Ok(())
}

fn only_loads(instr: &Instr) -> bool {
    instr.kind == InstrKind::Load
        && matches!(instr.semantics.as_slice(), [Stmt::Assign { dest: Dest::Operand(_), value: Expr::Load { .. } }])
}
