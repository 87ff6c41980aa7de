//! Register files, as a machine file has them.

use crate::builder::{Builder, good_name, int, nodes, text};
use crate::error::{FileError, did_you_mean};
use crate::model::*;
use crate::operands;
use crate::tree::{Node, Table as Tree};

impl Builder<'_> {
    pub(super) fn registers(&mut self) -> Result<(), FileError> {
        let mut files = Vec::new();
        for (name, entry, t) in self.section("registers") {
            if !good_name(name) {
                return Err(entry
                    .place
                    .error(format!("`{name}` cannot name a register file"))
                    .mend("use letters, digits and _"));
            }
            files.push((name.to_owned(), entry.clone(), t.clone()));
        }
        for (name, entry, t) in files {
            let count: Option<usize> = int(&t, "count");
            let names: Vec<(String, &Node)> = match (t.get("names"), count) {
                (Some(list), None) => operands::expand(list.as_list().unwrap_or_default())?,
                (None, Some(n)) => {
                    let prefix = text(&t, "prefix").unwrap_or(&name);
                    (0..n).map(|i| (format!("{prefix}{i}"), &entry.node)).collect()
                }
                (None, None) => vec![(name.clone(), &entry.node)],
                (Some(_), Some(_)) => {
                    let error = entry.place.error(format!("`{name}` has both `names` and `count`"));
                    return Err(error.mend("give one of them"));
                }
            };
            let first = self.regs.len();
            let file = self.files.len();
            let zero = text(&t, "zero");
            for (reg, node) in &names {
                if !good_name(reg) {
                    return Err(node
                        .place
                        .error(format!("`{reg}` cannot name a register"))
                        .mend("use letters, digits and _"));
                }
                let Ok(id) = u16::try_from(self.regs.len()) else {
                    return Err(node.place.error("more than 65535 registers"));
                };
                if self.reg_names.insert(reg.clone(), Reg(id)).is_some() {
                    return Err(node.place.error(format!("two registers are called `{reg}`")));
                }
                self.regs.push(RegInfo {
                    name: reg.clone(),
                    file,
                    zero: zero == Some(reg.as_str()),
                    views: Vec::new(),
                });
            }
            if let Some(node) = t.get("zero")
                && !names.iter().any(|(n, _)| Some(n.as_str()) == zero)
            {
                let error =
                    node.place.error(format!("no register of `{name}` is called `{}`", zero.unwrap_or_default()));
                return Err(
                    error.mend_opt(did_you_mean(zero.unwrap_or_default(), names.iter().map(|(n, _)| n.as_str())))
                );
            }
            for view in t.table("views").into_iter().flat_map(Tree::iter) {
                let parts = operands::expand(view.node.as_list().unwrap_or_default())?;
                if parts.len() > names.len() {
                    return Err(view.place.error(format!("`{name}` has fewer registers than this view names")));
                }
                for (info, (part, _)) in self.regs[first..].iter_mut().zip(parts) {
                    info.views.push((view.key.clone(), part));
                }
            }
            let rotating = match t.get("rotating") {
                Some(node) => self.rotating(node, &names, first)?,
                None => (Reg(first as u16), 0),
            };
            let state = t.get("state").and_then(Node::as_bool).unwrap_or(false);
            let reset = t.get("reset").and_then(Node::as_int).unwrap_or(0) as u64;
            if let (Some(node), false) = (t.get("reset"), state) {
                return Err(node.place.error(format!(
                    "`{name}` has a value after a reset and is not kept between calls; add `state = true`"
                )));
            }
            let (bits, cluster) = (int(&t, "bits").unwrap_or(self.word), int(&t, "cluster").unwrap_or(0));
            if bits > self.word {
                let place = t.get("bits").map_or(&entry.place, |n| &n.place);
                return Err(place.error(format!("registers of {bits} bits on a machine of {} bits", self.word)));
            }
            let mut prefixed = Vec::new();
            for (reg, node) in operands::expand(nodes(&t, "prefixed"))? {
                let mine = self.reg_names.get(&reg).filter(|r| usize::from(r.0) >= first);
                let Some(&reg) = mine else {
                    let error = node.place.error(format!("no register of `{name}` is called `{reg}`"));
                    return Err(error.mend_opt(did_you_mean(&reg, names.iter().map(|(n, _)| n.as_str()))));
                };
                prefixed.push(reg);
            }
            self.files.push(RegFile {
                name,
                bits,
                prefixed,
                prefix_bytes: int(&t, "prefix_bytes").unwrap_or(1),
                first: Reg(first as u16),
                count: names.len() as u16,
                cluster,
                state,
                reset,
                rotating,
            });
        }
        Ok(())
    }

    /// The rotating registers of a file: several, one after the other.
    pub(super) fn rotating(
        &self,
        node: &Node,
        names: &[(String, &Node)],
        first: usize,
    ) -> Result<(Reg, u16), FileError> {
        let list = operands::expand(node.as_list().unwrap_or_default())?;
        let at = |name: &str| names.iter().position(|n| n.0 == name);
        let start = list.first().and_then(|l| at(&l.0));
        let whole = start.is_some_and(|s| list.iter().enumerate().all(|(i, l)| at(&l.0) == Some(s + i)));
        match start {
            Some(s) if whole && list.len() > 1 => Ok((Reg((first + s) as u16), list.len() as u16)),
            _ => Err(node
                .place
                .error("these are not registers of this file, one after the other")
                .mend("write `[\"r64..r127\"]`")),
        }
    }
}
