//! Names that nothing refers to.
//!
//! `[timings.laod]` in a file that inherits makes a new timing and leaves the
//! one that was meant as it is. So a name that a file states must be referred
//! to: by that file, by one that it inherits from, or by one of the extensions
//! that come with the project, some of which use what a machine holds ready
//! for them. Each file is judged by itself, together with its ancestors: what
//! an heir leaves unused of its parent's is no mistake of the heir's.
//!
//! Instructions, compounds and forms of modes are not looked at: they are
//! there without anyone naming them, and a misspelt one lacks its semantics.

use crate::error::{FileError, nearest};
use crate::operands::expand;
use crate::tree::{Entry, Node, Table, Value};
use std::collections::BTreeSet;

/// Sections whose entries must be referred to, and what an entry is called.
const SECTIONS: [(&str, &str); 8] = [
    ("units", "unit"),
    ("formats", "format"),
    ("timings", "timing"),
    ("modes", "mode"),
    ("classes", "class"),
    ("registers", "register file"),
    ("tables", "table"),
    ("matrices", "matrix"),
];

/// Names that some texts refer to.
#[derive(Default)]
struct Names {
    formats: BTreeSet<String>,
    timings: BTreeSet<String>,
    units: BTreeSet<String>,
    /// Kinds of operands: register files, classes, modes.
    kinds: BTreeSet<String>,
    /// Words of semantics and of parts of compounds; names of registers by their roles.
    words: BTreeSet<String>,
    /// What stands in braces behind a dot in assembly.
    views: BTreeSet<String>,
    /// Parts of the predictor.
    parts: BTreeSet<String>,
}

/// The first name that `stated` states and nothing in `whole` (it and its ancestors, merged)
/// refers to, nor anything in the texts that `vocabulary` gives.
pub(crate) fn check(stated: &Table, whole: &Table, vocabulary: impl FnOnce() -> Vec<Table>) -> Result<(), FileError> {
    let mut names = Names::default();
    names.gather(whole);
    let mut lost = names.lost(stated, whole);
    if !lost.is_empty() {
        vocabulary().iter().for_each(|t| names.gather(t));
        lost = names.lost(stated, whole);
    }
    lost.into_iter().next().map_or(Ok(()), Err)
}

impl Names {
    fn gather(&mut self, t: &Table) {
        for format in tables(t, "formats") {
            self.operands(format);
        }
        for section in ["instructions", "compounds"] {
            for i in tables(t, section) {
                self.operands(i);
                self.formats.extend(text(i, "format"));
                self.timings.extend(text(i, "timing"));
                let forms = i.table("timing_at").into_iter().flat_map(Table::iter);
                self.timings.extend(forms.filter_map(|e| e.node.as_str().map(str::to_owned)));
                self.add_words(i.get("semantics"));
                list(i, "parts").iter().for_each(|p| self.add_words(Some(p)));
            }
        }
        for form in tables(t, "modes").flat_map(Table::iter).filter_map(|e| e.node.as_table()) {
            self.operands(form);
            self.add_words(form.get("value"));
        }
        for timing in tables(t, "timings") {
            self.units.extend(texts(timing, "units").chain(texts(timing, "uop_units")));
            self.words.extend(timing.table("dest_latency").into_iter().flat_map(Table::keys).map(str::to_owned));
        }
        for table in tables(t, "tables") {
            self.words.extend(text(table, "inverse_of"));
            self.add_words(table.get("formula"));
        }
        for class in t.table("classes").into_iter().flat_map(Table::iter) {
            self.registers(&class.node);
        }
        for abi in tables(t, "abi").chain(t.table("abi")) {
            abi.iter().for_each(|e| self.registers(&e.node));
        }
        for core in tables(t, "core") {
            self.units.extend(texts(core, "units").chain(texts(core, "through")));
            self.parts.extend(text(core, "direction"));
            for part in tables(core, "parts") {
                self.parts.extend(text(part, "otherwise").into_iter().chain(texts(part, "parts")));
            }
        }
        if let Some(c) = t.table("clusters") {
            self.units.extend(texts(c, "cross_paths").chain(texts(c, "data_paths")));
            self.kinds.extend(text(c, "operand").into_iter().chain(texts(c, "files")));
        }
    }

    /// Kinds of operands, and what the assembly prints of them.
    fn operands(&mut self, t: &Table) {
        let kinds = t.table("operands").into_iter().flat_map(Table::iter);
        self.kinds.extend(kinds.filter_map(|e| e.node.as_str().map(str::to_owned)));
        let asm = t.get("asm").and_then(Node::as_str).unwrap_or_default();
        let braces = asm.split('{').skip(1).filter_map(|s| s.split_once('}'));
        self.views.extend(braces.filter_map(|(s, _)| s.split_once('.')).map(|(_, view)| view.to_owned()));
    }

    fn add_words(&mut self, node: Option<&Node>) {
        let words = node.and_then(Node::as_str).unwrap_or_default();
        let words = words.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|w| !w.is_empty());
        self.words.extend(words.map(str::to_owned));
    }

    /// A register's name, or a list of them with ranges.
    fn registers(&mut self, node: &Node) {
        let list = match &node.value {
            Value::List(list) => list.as_slice(),
            Value::Str(_) => std::slice::from_ref(node),
            _ => return,
        };
        // A wrong range is an error elsewhere.
        self.words.extend(expand(list).unwrap_or_default().into_iter().map(|(name, _)| name));
    }

    /// An error for each entry of `stated` that none of these names means.
    fn lost(&self, stated: &Table, whole: &Table) -> Vec<FileError> {
        let mut out = Vec::new();
        for (section, what) in SECTIONS {
            let merged = whole.table(section);
            let known = |entry: &Entry| match section {
                "units" => {
                    // On machines with clusters a timing names `l` and means `l1` and `l2`.
                    let family = entry.key.trim_end_matches(|c: char| c.is_ascii_digit());
                    let clustered = whole.table("clusters").is_some();
                    self.units.contains(&entry.key) || clustered && self.units.contains(family)
                }
                "formats" => self.formats.contains(&entry.key),
                "timings" => self.timings.contains(&entry.key),
                "modes" | "classes" => self.kinds.contains(&entry.key),
                "registers" => self.kinds.contains(&entry.key) || self.some_register(merged, &entry.key),
                _ => self.words.contains(&entry.key),
            };
            let referred = match section {
                "units" => &self.units,
                "formats" => &self.formats,
                "timings" => &self.timings,
                "modes" | "classes" | "registers" => &self.kinds,
                _ => &self.words,
            };
            // Words are everything that semantics say: only what the section has is near.
            let words = matches!(section, "tables" | "matrices");
            let others: Vec<&str> = merged
                .into_iter()
                .flat_map(Table::keys)
                .chain(referred.iter().map(String::as_str).filter(|_| !words))
                .collect();
            for entry in stated.table(section).into_iter().flat_map(Table::iter).filter(|e| !known(e)) {
                out.push(unused(entry, what, others.iter().copied()));
            }
        }
        for file in tables(stated, "registers") {
            for entry in file.table("views").into_iter().flat_map(Table::iter).filter(|e| !self.views.contains(&e.key))
            {
                out.push(unused(entry, "view of registers", self.views.iter().map(String::as_str)));
            }
        }
        let parts = stated.table("core").and_then(|c| c.table("predictor")).and_then(|p| p.table("parts"));
        for entry in parts.into_iter().flat_map(Table::iter).filter(|e| !self.parts.contains(&e.key)) {
            out.push(unused(entry, "part of the predictor", self.parts.iter().map(String::as_str)));
        }
        out
    }

    /// Does anything name a register of this file?
    fn some_register(&self, files: Option<&Table>, name: &str) -> bool {
        let Some(file) = files.and_then(|f| f.table(name)) else { return false };
        if file.get("names").is_some() {
            return expand(list(file, "names")).unwrap_or_default().iter().any(|(n, _)| self.words.contains(n));
        }
        let Some(count) = file.get("count").and_then(Node::as_int) else { return self.words.contains(name) };
        let prefix = file.get("prefix").and_then(Node::as_str).unwrap_or(name);
        (0..count).any(|i| self.words.contains(&format!("{prefix}{i}")))
    }
}

fn unused<'a>(entry: &Entry, what: &str, names: impl Iterator<Item = &'a str>) -> FileError {
    let key = entry.key.as_str();
    let error = entry.place.error(format!("nothing refers to the {what} `{key}`"));
    match nearest(key, names.filter(|n| *n != key), 1).first() {
        Some(near) => error.mend(format!("did you mean `{near}`? A name that nothing uses is a mistake or can go")),
        None => error.mend("take it out, or use it: a name that nothing uses changes nothing"),
    }
}

/// The tables in a table.
fn tables<'a>(t: &'a Table, section: &str) -> impl Iterator<Item = &'a Table> {
    t.table(section).into_iter().flat_map(Table::iter).filter_map(|e| e.node.as_table())
}

fn list<'a>(t: &'a Table, key: &str) -> &'a [Node] {
    t.get(key).and_then(Node::as_list).unwrap_or_default()
}

fn text(t: &Table, key: &str) -> Option<String> {
    t.get(key).and_then(Node::as_str).map(str::to_owned)
}

fn texts<'a>(t: &'a Table, key: &str) -> impl Iterator<Item = String> + 'a {
    list(t, key).iter().filter_map(|n| n.as_str().map(str::to_owned))
}
