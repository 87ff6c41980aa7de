//! Modes: operands that an instruction set writes in several ways.
//!
//! An operand may stand for a memory address with its base, scaled index and
//! displacement, or for an immediate that has a short and a long encoding. An
//! entry of `[modes]` lists the forms; an instruction or compound with such an
//! operand is written once and stands for one instruction per form. The forms
//! are put in here, in the tree, before anything else looks at it; what an operand
//! stands for is an expression, and is put into those of the instruction as one
//! when they are read ([`values`]). No later stage knows of modes.

use crate::builder::Builder;
use crate::error::{FileError, Place, did_you_mean, list};
use crate::model::Operand;
use crate::parse;
use crate::sem::Expr;
use crate::tree::{Entry, Node, Table, Value};
use std::collections::BTreeMap;

/// Key of an entry that [`expand`] made: what its operands of modes stand for. No file can have it.
const BOUND: &str = "modes";

/// What an instruction's own entry takes over from its format.
const INHERITED: [&str; 9] =
    ["operands", "asm", "bytes", "delay_slots", "annul", "longer", "shorter", "prefixed", "prefix"];

/// The tree with an entry for every form of every instruction and compound;
/// compounds that need one of `removed` are left out.
///
/// # Errors
/// A part of a compound that names no form of the instruction it means.
pub(crate) fn expand(tree: &Node, removed: &BTreeMap<String, Place>) -> Result<Node, FileError> {
    let mut out = tree.clone();
    let Some(top) = tree.as_table().filter(|t| t.table("modes").is_some()) else { return Ok(out) };
    let x = Expander { top, removed };
    for section in ["instructions", "compounds"] {
        let mut all = Table::default();
        for entry in top.table(section).into_iter().flat_map(Table::iter) {
            for made in x.entry(section, entry)? {
                all.insert(made);
            }
        }
        if let Some(there) = out.as_table_mut().and_then(|t| t.get_mut(section)) {
            there.value = Value::Table(all);
        }
    }
    // What uses a format with a mode has been given all that it says.
    let formats = top.table("formats").into_iter().flat_map(Table::iter);
    let used = formats.filter(|e| e.node.as_table().is_some_and(|t| !x.modes(t).is_empty()));
    for key in used.map(|e| e.key.clone()) {
        if let Some(there) = out.as_table_mut().and_then(|t| t.get_mut("formats")).and_then(Node::as_table_mut) {
            there.remove(&key);
        }
    }
    Ok(out)
}

struct Expander<'a> {
    top: &'a Table,
    removed: &'a BTreeMap<String, Place>,
}

/// A mode's operand in an instruction, with the form chosen for it.
struct Choice<'a> {
    operand: &'a str,
    name: &'a str,
    form: &'a Table,
}

impl<'a> Expander<'a> {
    /// The instruction's table with what its format gives, modes unresolved.
    fn whole(&self, t: &'a Table) -> Table {
        let mut out = t.clone();
        let format = t.get("format").and_then(Node::as_str).and_then(|f| self.top.table("formats")?.table(f));
        for key in INHERITED {
            match (format.and_then(|f| f.entry(key)), out.get_mut(key).map(|n| &mut n.value)) {
                (Some(theirs), None) => out.insert(theirs.clone()),
                (Some(theirs), Some(Value::Table(mine))) => {
                    if let Value::Table(first) = &theirs.node.value {
                        let mut both = first.clone();
                        both.merge(std::mem::take(mine));
                        *mine = both;
                    }
                }
                _ => {}
            }
        }
        out
    }

    fn mode(&self, kind: &Node) -> Option<&'a Table> {
        self.top.table("modes")?.table(kind.as_str()?)
    }

    /// Operands of modes in the order of the instruction's own operands.
    fn modes<'t>(&self, whole: &'t Table) -> Vec<(&'t str, &'a Table)> {
        let operands = whole.table("operands").into_iter().flat_map(Table::iter);
        operands.filter_map(|e| Some((e.key.as_str(), self.mode(&e.node)?))).collect()
    }

    fn entry(&self, section: &str, entry: &Entry) -> Result<Vec<Entry>, FileError> {
        let Some(t) = entry.node.as_table() else { return Ok(vec![entry.clone()]) };
        let parts = t.get("parts").and_then(Node::as_list).unwrap_or_default();
        let head = |n: &Node| n.as_str().unwrap_or_default().split_whitespace().next().unwrap_or_default().to_owned();
        if section == "compounds" && parts.iter().any(|p| self.removed.contains_key(&head(p))) {
            return Ok(Vec::new());
        }
        let owned =
            self.top.table(section).and_then(|s| s.table(&entry.key)).map(|t| self.whole(t)).unwrap_or_default();
        let modes = self.modes(&owned);
        if modes.is_empty() {
            return Ok(vec![entry.clone()]);
        }
        let mut out = Vec::new();
        let mut at = vec![0usize; modes.len()];
        loop {
            let choices: Vec<Choice> = modes
                .iter()
                .zip(&at)
                .filter_map(|(&(operand, mode), &i)| {
                    let form = mode.iter().nth(i)?;
                    Some(Choice { operand, name: &form.key, form: form.node.as_table()? })
                })
                .collect();
            out.push(self.chosen(section, entry, &owned, &choices)?);
            let Some(k) = (0..at.len()).rev().find(|&k| at[k] + 1 < modes[k].1.iter().count()) else { return Ok(out) };
            at[k] += 1;
            at[k + 1..].fill(0);
        }
    }

    /// One entry, with its forms put in.
    fn chosen(&self, section: &str, entry: &Entry, whole: &Table, choices: &[Choice]) -> Result<Entry, FileError> {
        let mut out = whole.clone();
        out.remove("format");
        let mut names = vec![entry.key.clone()];
        names.extend(choices.iter().map(|c| c.name.to_owned()));
        let key = names.join("_");
        let text = |value: &str, at: &Node| Node { place: at.place.clone(), value: Value::Str(value.to_owned()) };
        if section == "instructions" && out.get("mnemonic").is_none() {
            out.insert(Entry {
                key: "mnemonic".into(),
                place: entry.place.clone(),
                node: text(&entry.key, &entry.node),
            });
        }
        // Operands, in place.
        let mut operands = Table::default();
        for e in whole.table("operands").into_iter().flat_map(Table::iter) {
            match choices.iter().find(|c| c.operand == e.key) {
                None => operands.insert(e.clone()),
                Some(c) => {
                    for inner in c.form.table("operands").into_iter().flat_map(Table::iter) {
                        operands.insert(Entry { key: format!("{}_{}", c.operand, inner.key), ..inner.clone() });
                    }
                }
            }
        }
        if let Some(n) = out.get_mut("operands") {
            n.value = Value::Table(operands);
        }
        let string = |c: &Choice, key: &str| c.form.get(key).and_then(Node::as_str).unwrap_or_default().to_owned();
        out.insert(Entry { key: BOUND.into(), place: entry.place.clone(), node: bound(entry, choices) });
        if let Some(n) = out.get_mut("asm")
            && let Value::Str(s) = &mut n.value
        {
            for c in choices {
                let asm = string(c, "asm").replace('{', &format!("{{{}_", c.operand));
                *s = s.replace(&format!("{{{}}}", c.operand), &asm);
            }
        }
        if let Some(Node { value: Value::Int(bytes), .. }) = out.get_mut("bytes") {
            *bytes += choices.iter().filter_map(|c| c.form.get("bytes").and_then(Node::as_int)).sum::<i64>();
        }
        self.timing(&mut out, whole, choices)?;
        for key in ["longer", "shorter", "prefixed"] {
            self.sizes(key, &mut out, entry, whole, choices)?;
        }
        if section == "compounds" {
            let parts = out.get("parts").and_then(Node::as_list).unwrap_or_default();
            let parts = parts.iter().map(|p| self.part(p, choices)).collect::<Result<Vec<_>, _>>()?;
            if let Some(n) = out.get_mut("parts") {
                n.value = Value::List(parts);
            }
        }
        let node = Node { place: entry.node.place.clone(), value: Value::Table(out) };
        Ok(Entry { key, place: entry.place.clone(), node })
    }

    /// Registers with which the encoding is a byte longer or shorter, or needs a
    /// prefix: those of
    /// the forms, and those of the instruction that hold for these forms
    /// (`x@form`) or always (`x`).
    fn sizes(
        &self,
        key: &str,
        out: &mut Table,
        entry: &Entry,
        whole: &Table,
        choices: &[Choice],
    ) -> Result<(), FileError> {
        let mut all = Table::default();
        for e in out.table(key).into_iter().flat_map(Table::iter) {
            match e.key.split_once('@') {
                None => all.insert(e.clone()),
                Some((_, form)) if !self.modes(whole).iter().any(|m| m.1.get(form).is_some()) => {
                    let forms: Vec<&str> = self.modes(whole).iter().flat_map(|m| m.1.keys()).collect();
                    let error = e.place.error(format!(
                        "`{form}` is no form of a mode here; there are {}",
                        list(forms.iter().copied())
                    ));
                    return Err(error.mend_opt(did_you_mean(form, forms)));
                }
                Some((operand, form)) if choices.iter().any(|c| c.name == form) => {
                    all.insert(Entry { key: operand.to_owned(), ..e.clone() });
                }
                Some(_) => {}
            }
        }
        for c in choices {
            for e in c.form.table(key).into_iter().flat_map(Table::iter) {
                all.insert(Entry { key: format!("{}_{}", c.operand, e.key), ..e.clone() });
            }
        }
        out.remove(key);
        if all.iter().next().is_some() {
            let node = Node { place: entry.place.clone(), value: Value::Table(all) };
            out.insert(Entry { key: key.to_owned(), place: entry.place.clone(), node });
        }
        Ok(())
    }

    /// The timing of these forms, where the instruction gives them one of their own (`x@form`).
    fn timing(&self, out: &mut Table, whole: &Table, choices: &[Choice]) -> Result<(), FileError> {
        out.remove("timing_at");
        for e in whole.table("timing_at").into_iter().flat_map(Table::iter) {
            let (operand, form) = e.key.split_once('@').unwrap_or((&e.key, ""));
            let modes = self.modes(whole);
            let Some(mode) = modes.iter().find(|m| m.0 == operand) else {
                let error =
                    e.place.error(format!("`{operand}` is no operand with forms; `timing_at` is written OPERAND@FORM"));
                return Err(error.mend_opt(did_you_mean(operand, modes.iter().map(|m| m.0))));
            };
            if mode.1.get(form).is_none() {
                let error = e.place.error(format!("`{operand}` has no form `{form}`"));
                return Err(error.mend_opt(did_you_mean(form, mode.1.keys())));
            }
            if choices.iter().any(|c| c.operand == operand && c.name == form) {
                out.insert(Entry { key: "timing".to_owned(), ..e.clone() });
            }
        }
        Ok(())
    }

    /// A part of a compound: operands of modes as what their forms have, and
    /// the name of the part's instruction in those forms.
    fn part(&self, part: &Node, choices: &[Choice]) -> Result<Node, FileError> {
        let text = part.as_str().unwrap_or_default().trim();
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let Some(t) = self.top.table("instructions").and_then(|s| s.table(name)) else { return Ok(part.clone()) };
        let whole = self.whole(t);
        let modes = self.modes(&whole);
        if modes.is_empty() {
            return Ok(part.clone());
        }
        let operands: Vec<&str> = whole.table("operands").into_iter().flat_map(Table::keys).collect();
        let (mut names, mut args) = (vec![name.to_owned()], Vec::new());
        for (i, arg) in rest.split(',').map(str::trim).enumerate() {
            if !modes.iter().any(|m| operands.get(i) == Some(&m.0)) {
                args.push(arg.to_owned());
                continue;
            }
            let Some(c) = choices.iter().find(|c| c.operand == arg) else {
                let error = part.place.error(format!("`{arg}` is no operand of a mode, which `{name}` takes here"));
                return Err(error.mend("give the compound an operand of that mode"));
            };
            names.push(c.name.to_owned());
            let inner = c.form.table("operands").into_iter().flat_map(Table::keys);
            args.extend(inner.map(|o| format!("{}_{o}", c.operand)));
        }
        let value = Value::Str(format!("{} {}", names.join("_"), args.join(", ")));
        Ok(Node { place: part.place.clone(), value })
    }
}

/// What the operands of modes stand for: by operand, the form's table.
fn bound(entry: &Entry, choices: &[Choice]) -> Node {
    let mut all = Table::default();
    for c in choices {
        let node = Node { place: entry.place.clone(), value: Value::Table(c.form.clone()) };
        all.insert(Entry { key: c.operand.to_owned(), place: entry.place.clone(), node });
    }
    Node { place: entry.place.clone(), value: Value::Table(all) }
}

/// The values that the operands of modes stand for in semantics, as expressions over the
/// `operands` of an entry that [`expand`] made.
///
/// # Errors
/// A form without a good value.
pub(crate) fn values(b: &Builder, t: &Table, operands: &[Operand]) -> Result<Vec<(String, Expr)>, FileError> {
    let mut out = Vec::new();
    for entry in t.table(BOUND).into_iter().flat_map(Table::iter) {
        let Some((form, node)) = entry.node.as_table().and_then(|f| Some((f, f.get("value")?))) else { continue };
        // In the form its operands have their own names.
        let mine = |o: &Operand| {
            let name = o.name.strip_prefix(&entry.key).and_then(|n| n.strip_prefix('_'))?;
            form.table("operands")?.get(name).map(|_| Operand { name: name.to_owned(), ..o.clone() })
        };
        let named: Vec<Operand> = operands.iter().map(|o| mine(o).unwrap_or_else(|| o.clone())).collect();
        let value = parse::expression(node.as_str().unwrap_or_default(), &b.scope(&named))
            .map_err(|e| node.error_within(e.span, e.message).mend_opt(e.mend))?;
        out.push((entry.key.clone(), value));
    }
    Ok(out)
}
