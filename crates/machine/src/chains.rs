//! Instructions for values of several words, where registers are narrower than a word of the semantics.
//!
//! As frame code, such chains are not selected: they are written down, out of the instructions named here. That these mean
//! what they should is what every run is compared for.

use crate::builder::{Builder, nodes, text};
use crate::error::{FileError, near_instruction};
use crate::model::{Chains, InstrId, InstrKind, Operand, OperandKind, Reg};
use crate::tree::{Node, Table as Tree};

/// The section, if the file has it.
pub(crate) fn chains(b: &Builder) -> Result<Option<Chains>, FileError> {
    let Some(whole) = b.top.get("chains") else { return Ok(None) };
    let empty = Tree::default();
    let t = whole.as_table().unwrap_or(&empty);
    let place = |key: &str| t.get(key).map_or(&whole.place, |n| &n.place);
    let one = |key: &str| instr(b, t.get(key).unwrap_or(whole), text(t, key).unwrap_or_default());
    let several = |key: &str| -> Result<Vec<InstrId>, FileError> {
        nodes(t, key).iter().map(|n| instr(b, n, n.as_str().unwrap_or_default())).collect()
    };
    let pair = |key: &str| -> Result<[InstrId; 2], FileError> {
        let list = several(key)?;
        list.try_into().map_err(|_| place(key).error(format!("`{key}` must be two instructions")))
    };
    let branches = several("branches")?;
    if let Some(n) = branches.iter().position(|i| b.instrs[usize::from(i.0)].kind != InstrKind::Branch) {
        let name = &b.instrs[usize::from(branches[n].0)].name;
        return Err(place("branches").error(format!("`{name}` is no conditional branch")));
    }
    let Ok(branches) = <[InstrId; 6]>::try_from(branches) else {
        return Err(place("branches").error("there must be six branches"));
    };
    let reg = |n: &Node| {
        let name = n.as_str().unwrap_or_default();
        b.reg_names.get(name).copied().ok_or_else(|| n.place.error(format!("unknown register `{name}`")))
    };
    let product: Vec<Reg> = nodes(t, "product").iter().map(reg).collect::<Result<_, _>>()?;
    let product = match (t.get("product"), <[Reg; 2]>::try_from(product)) {
        (None, _) => None,
        (Some(_), Ok(product)) => Some(product),
        (Some(n), Err(_)) => return Err(n.place.error("the words of a product are two registers")),
    };
    let mul = match t.get("mul") {
        None => None,
        Some(n) => {
            let id = one("mul")?;
            let made = if product.is_some() { 0 } else { 2 };
            if results(b, id) != made {
                let error = n.place.error(format!("`mul` must write {made} of its operands"));
                return Err(
                    error.mend("the lower word and the upper one; or name in `product` the registers they are in")
                );
            }
            Some((id, product))
        }
    };
    let mul_low = t.get("mul_low").map(|_| one("mul_low")).transpose()?;
    if mul_low.is_some_and(|id| results(b, id) != 1) {
        return Err(place("mul_low").error("`mul_low` must write one of its operands"));
    }
    Ok(Some(Chains {
        add: pair("add")?,
        add_imm: t.get("add_imm").map(|_| pair("add_imm")).transpose()?,
        sub: pair("sub")?,
        sub_imm: t.get("sub_imm").map(|_| pair("sub_imm")).transpose()?,
        compare: pair("compare")?,
        compare_imm: t.get("compare_imm").map(|_| one("compare_imm")).transpose()?,
        compares_all: text(t, "compare_equal") != Some("last"),
        shift_right: pair("shift_right")?,
        shift_sign: one("shift_sign")?,
        borrow: one("borrow")?,
        borrow_is_carry: text(t, "borrow_is") != Some("no carry"),
        mul,
        mul_low,
        swap: one("swap")?,
        branches,
    }))
}

/// Register operands that an instruction writes.
fn results(b: &Builder, id: InstrId) -> usize {
    let written = |o: &&Operand| matches!(o.kind, OperandKind::Reg { def: true, .. });
    b.instrs[usize::from(id.0)].operands.iter().filter(written).count()
}

fn instr(b: &Builder, node: &Node, name: &str) -> Result<InstrId, FileError> {
    b.instr_names.get(name).copied().ok_or_else(|| {
        let error = node.place.error(format!("unknown instruction `{name}`"));
        error.mend_opt(near_instruction(name, b.instr_names.keys().map(String::as_str)))
    })
}
