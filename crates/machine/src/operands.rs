//! Operands: their kinds, whether they are read or written, how they print.

use crate::builder::{Builder, good_name, int};
use crate::error::{FileError, did_you_mean, list};
use crate::kind::for_each_expr;
use crate::model::{Operand, OperandKind, Reg};
use crate::sem::{Dest, Expr, Stmt};
use crate::tree::{Node, Table as Tree, Value};

/// Operands of a format, changed and extended by those of an instruction.
pub(crate) fn read(b: &Builder, format: Option<&Node>, own: Option<&Node>) -> Result<Vec<Operand>, FileError> {
    let mut out = Vec::new();
    for entry in entries(format, own) {
        if !good_name(&entry.key) || b.reg_names.contains_key(&entry.key) {
            let error = entry.place.error(format!("`{}` cannot name an operand", entry.key));
            return Err(error.mend("use letters, digits and _, and no register's name"));
        }
        out.push(Operand { name: entry.key.clone(), kind: kind(b, &entry.node)? });
    }
    if out.len() > 16 {
        let place = own.or(format).map_or(&b.merged.tree.place, |n| &n.place);
        return Err(place.error("more than 16 operands"));
    }
    Ok(out)
}

/// The format's entries with the instruction's own instead of or behind them.
fn entries<'t>(format: Option<&'t Node>, own: Option<&'t Node>) -> Vec<&'t crate::tree::Entry> {
    let mut entries: Vec<&crate::tree::Entry> = Vec::new();
    for table in [format, own].into_iter().flatten().filter_map(Node::as_table) {
        for entry in table.iter() {
            match entries.iter_mut().find(|e| e.key == entry.key) {
                Some(there) => *there = entry,
                None => entries.push(entry),
            }
        }
    }
    entries
}

/// Which operands are registers of the instruction's own cluster, and which
/// can only be certain registers.
pub(crate) fn places(
    b: &Builder,
    format: Option<&Node>,
    own: Option<&Node>,
    operands: &[Operand],
) -> (Vec<usize>, Vec<(usize, Vec<Reg>)>) {
    let (mut home, mut only) = (Vec::new(), Vec::new());
    for entry in entries(format, own) {
        let Some(i) = operands.iter().position(|o| o.name == entry.key) else { continue };
        let name = entry.node.as_str().unwrap_or_default();
        if b.clusters.as_ref().is_some_and(|c| c.operand == name) {
            home.push(i);
        } else if let Some((_, regs)) = b.classes.get(name) {
            only.push((i, regs.clone()));
        }
    }
    (home, only)
}

fn kind(b: &Builder, node: &Node) -> Result<OperandKind, FileError> {
    let name = match &node.value {
        Value::Table(t) => return limits(t, node),
        _ => node.as_str().unwrap_or_default(),
    };
    if let Some(file) = b.files.iter().position(|f| f.name == name) {
        return Ok(OperandKind::Reg { file, def: false, used: false });
    }
    if let Some(c) = b.clusters.as_ref().filter(|c| c.operand == name && !c.files.is_empty()) {
        return Ok(OperandKind::Reg { file: c.files[0], def: false, used: false });
    }
    if let Some(&(file, _)) = b.classes.get(name) {
        return Ok(OperandKind::Reg { file, def: false, used: false });
    }
    if name == "label" {
        return Ok(OperandKind::Label);
    }
    let bits =
        |prefix: &str| name.strip_prefix(prefix).and_then(|n| n.parse::<u32>().ok()).filter(|n| (1..=63).contains(n));
    if let Some(n) = bits("simm") {
        let half = 1i64 << (n - 1);
        return Ok(OperandKind::Imm { min: -half, max: half - 1, step: 1, values: None });
    }
    if let Some(n) = bits("uimm") {
        return Ok(OperandKind::Imm { min: 0, max: ((1u64 << n) - 1) as i64, step: 1, values: None });
    }
    let files = b.files.iter().map(|f| f.name.as_str());
    let own = b.clusters.iter().map(|c| c.operand.as_str()).chain(b.classes.keys().map(String::as_str));
    let names: Vec<&str> = own.chain(files).chain(["label", "simmN", "uimmN"]).collect();
    let error = node.error_within(
        0..name.len(),
        format!("unknown kind of operand `{name}`; there are {}", list(names.iter().copied())),
    );
    Err(error.mend_opt(did_you_mean(name, names)))
}

fn limits(t: &Tree, node: &Node) -> Result<OperandKind, FileError> {
    let mut values = None;
    let (mut min, mut max) = (int(t, "min"), int(t, "max"));
    if let (Some(values), Some(_)) = (t.get("values"), t.get("min").or(t.get("max")).or(t.get("step"))) {
        return Err(values.place.error("an immediate has `min`, `max` and `step`, or a list of `values`, not both"));
    }
    if let Some(list) = t.get("values").and_then(Node::as_list) {
        let list: Vec<i64> = list.iter().filter_map(Node::as_int).collect();
        (min, max) = (list.iter().min().copied(), list.iter().max().copied());
        values = Some(list);
    }
    match (min, max) {
        (Some(min), Some(max)) if min <= max => {
            Ok(OperandKind::Imm { min, max, step: int(t, "step").unwrap_or(1), values })
        }
        (Some(_), Some(_)) => Err(node.place.error("`min` is greater than `max`")),
        _ => Err(node.place.error("an immediate needs `min` and `max`, or a list of `values`")),
    }
}

/// Operands of an instruction whose registers rise.
///
/// # Errors
/// One that is no register operand of it.
pub(crate) fn ascending(t: &Tree, operands: &[Operand]) -> Result<Vec<usize>, FileError> {
    let register = |o: &Operand| matches!(o.kind, OperandKind::Reg { .. });
    let one = |node: &Node| {
        let name = node.as_str().unwrap_or_default();
        operands.iter().position(|o| o.name == name && register(o)).ok_or_else(|| {
            let error = node.place.error(format!("`{name}` is no register operand of this instruction"));
            error.mend_opt(did_you_mean(name, operands.iter().filter(|o| register(o)).map(|o| o.name.as_str())))
        })
    };
    t.get("ascending").and_then(Node::as_list).unwrap_or_default().iter().map(one).collect()
}

/// Set `def` and `used` of register operands from what the statements do.
pub(crate) fn mark_uses(operands: &mut [Operand], stmts: &[Stmt]) {
    let mut read = vec![false; operands.len()];
    for_each_expr(stmts, &mut |e| {
        if let Expr::Operand(i) = e {
            read[*i] = true;
        }
    });
    for (operand, read) in operands.iter_mut().zip(read) {
        if let OperandKind::Reg { used, .. } = &mut operand.kind {
            *used = read;
        }
    }
    for stmt in stmts {
        if let Stmt::Assign { dest: Dest::Operand(i), .. } = stmt
            && let OperandKind::Reg { def, .. } = &mut operands[*i].kind
        {
            *def = true;
        }
    }
}

/// Every operand must mean something.
pub(crate) fn check_used(operands: &[Operand], stmts: &[Stmt]) -> Result<(), String> {
    let mut mentioned = vec![false; operands.len()];
    for_each_expr(stmts, &mut |e| {
        if let Expr::Imm(i) = e {
            mentioned[*i] = true;
        }
    });
    for (operand, mentioned) in operands.iter().zip(mentioned) {
        if !mentioned && !matches!(operand.kind, OperandKind::Reg { def, used, .. } if def || used) {
            return Err(format!("the semantics never mention operand `{}`", operand.name));
        }
    }
    Ok(())
}

/// The assembly template with the mnemonic filled in. Every operand must be in
/// it, and every `{x}` must be an operand.
///
/// `{{` and `}}` stand for braces of the assembler, here and in what is returned.
///
/// With `unit`, `{unit}` may stand in it, for the unit of each variant.
///
/// `{x.view}` prints the part of a register that `views` of its file names, and
/// `{x.pow2}` two to the power of an immediate. An operand that can only be one
/// register (`implied`) need not occur.
pub(crate) fn template(
    node: &Node,
    mnemonic: &str,
    operands: &[Operand],
    unit: bool,
    implied: &[usize],
    views: &dyn Fn(&OperandKind, &str) -> bool,
) -> Result<String, FileError> {
    let text = node.as_str().unwrap_or_default();
    let mut out = String::new();
    let mut seen = vec![false; operands.len()];
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let at = text.len() - rest.len() + open;
        out.push_str(&rest[..open]);
        if rest[open + 1..].starts_with('{') {
            out.push_str("{{");
            rest = &rest[open + 2..];
            continue;
        }
        let Some(close) = rest[open..].find('}') else {
            return Err(node.error_within(at..at + 1, "`{` without `}`"));
        };
        let name = &rest[open + 1..open + close];
        if name == "name" {
            out.push_str(mnemonic);
        } else if name == "unit" && unit {
            out.push_str("{unit}");
        } else if let Some((whole, view)) = name.split_once('.')
            && let Some(i) = operands.iter().position(|o| o.name == whole)
            && views(&operands[i].kind, view)
        {
            seen[i] = true;
            out.push_str(&rest[open..=open + close]);
        } else if let Some(i) = operands.iter().position(|o| o.name == name) {
            seen[i] = true;
            out.push_str(&rest[open..=open + close]);
        } else {
            return Err(node.error_within(at..at + close + 1, format!("`{{{name}}}` is no operand")));
        }
        rest = &rest[open + close + 1..];
    }
    out.push_str(rest);
    if out.contains(['\n', '\r']) || mnemonic.contains(['{', '}']) {
        return Err(node.place.error("assembly is one line, and a mnemonic has no braces"));
    }
    match operands.iter().zip(seen).enumerate().find(|(i, (_, seen))| !seen && !implied.contains(i)) {
        Some((_, (o, _))) => {
            Err(node.place.error(format!("operand `{}` does not appear in the assembly `{text}`", o.name)))
        }
        None => Ok(out),
    }
}

/// Names with ranges written out: `g0..g3` is g0, g1, g2, g3.
pub(crate) fn expand(list: &[Node]) -> Result<Vec<(String, &Node)>, FileError> {
    let mut out = Vec::new();
    for node in list {
        let text = node.as_str().unwrap_or_default();
        let Some((from, to)) = text.split_once("..") else {
            out.push((text.to_owned(), node));
            continue;
        };
        let split = |s: &str| {
            let stem = s.trim_end_matches(|c: char| c.is_ascii_digit());
            s[stem.len()..].parse::<u16>().ok().map(|n| (stem.to_owned(), n))
        };
        match (split(from), split(to)) {
            (Some((stem, a)), Some((other, b))) if stem == other && a.abs_diff(b) < 1024 => {
                let forwards: Vec<u16> = if a <= b { (a..=b).collect() } else { (b..=a).rev().collect() };
                out.extend(forwards.into_iter().map(|n| (format!("{stem}{n}"), node)));
            }
            _ => {
                return Err(node
                    .place
                    .error(format!("`{text}` is no range of registers"))
                    .mend("write it like `g0..g7`"));
            }
        }
    }
    Ok(out)
}
