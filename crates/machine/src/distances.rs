//! How far an instruction reaches in the code: jumps to their targets, loads to literal pools.

use crate::builder::{int, text};
use crate::error::{FileError, list};
use crate::model::{Literal, Operand, OperandKind};
use crate::tree::{Node, Table as Tree};

/// Distances of a jump's target from the jump's end; None where it reaches everywhere.
pub(crate) fn reach(t: &Tree, format: &Tree) -> Option<(i64, i64)> {
    let one = |key| int::<i64>(t, key).or(int(format, key));
    let (from, to) = (one("reach_from"), one("reach_to"));
    (from.is_some() || to.is_some()).then(|| (from.unwrap_or(i64::MIN), to.unwrap_or(i64::MAX)))
}

/// The operand that stands in a literal pool.
pub(crate) fn literal(
    t: &Tree,
    format: &Tree,
    whole: &Node,
    operands: &[Operand],
) -> Result<Option<Literal>, FileError> {
    let Some(name) = text(t, "literal").or(text(format, "literal")) else { return Ok(None) };
    let place = || t.get("literal").or(format.get("literal")).map_or(&whole.place, |n| &n.place);
    let immediates = || operands.iter().filter(|o| matches!(o.kind, OperandKind::Imm { .. }));
    if !immediates().any(|o| o.name == name) {
        let error = place().error(format!("`{name}` is no immediate of the instruction"));
        return Err(error.mend(format!("its immediates are {}", list(immediates().map(|o| o.name.as_str())))));
    }
    let reach = int(t, "literal_reach").or(int(format, "literal_reach"));
    let Some(reach) = reach else {
        let error = place().error("a literal needs a distance within which it stands".to_owned());
        return Err(error.mend("say with `literal_reach` how many bytes behind the instruction it can begin"));
    };
    Ok(operands.iter().position(|o| o.name == name).map(|operand| Literal { operand, reach }))
}
