//! TOML as a tree in which every node knows its place in its file.
//!
//! Inheritance, extensions and `--set` merge several files into one tree; a
//! node keeps pointing at the file it came from, so an error found after the
//! merge still shows the right line. Order of keys is kept, because the order
//! of registers, operands and instructions means something.

use crate::error::{FileError, NamedText, Place};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use toml_edit::{Array, Document, Item, TableLike};

#[derive(Clone, Debug)]
pub struct Node {
    pub place: Place,
    pub value: Value,
}

#[derive(Clone, Debug)]
pub enum Value {
    Str(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    List(Vec<Node>),
    Table(Table),
}

/// Keys in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Table {
    entries: Vec<Entry>,
    index: BTreeMap<String, usize>,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub key: String,
    /// Where the key stands.
    pub place: Place,
    pub node: Node,
}

impl Table {
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|e| e.key.as_str())
    }

    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.index.get(key).map(|&i| &self.entries[i])
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|e| &e.node)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.index.get(key).map(|&i| &mut self.entries[i].node)
    }

    /// The table under `key`, if it is one.
    pub fn table(&self, key: &str) -> Option<&Table> {
        self.get(key).and_then(Node::as_table)
    }

    /// Add or replace.
    pub fn insert(&mut self, entry: Entry) {
        match self.index.get(&entry.key) {
            Some(&i) => self.entries[i] = entry,
            None => {
                self.index.insert(entry.key.clone(), self.entries.len());
                self.entries.push(entry);
            }
        }
    }

    pub fn remove(&mut self, key: &str) -> bool {
        let Some(at) = self.index.remove(key) else { return false };
        self.entries.remove(at);
        for i in self.index.values_mut().filter(|i| **i > at) {
            *i -= 1;
        }
        true
    }

    /// Lay `over` onto this table: tables are merged key by key, anything else
    /// is replaced.
    pub fn merge(&mut self, over: Table) {
        for entry in over.entries {
            match (self.get_mut(&entry.key), entry.node.value) {
                (Some(Node { value: Value::Table(mine), .. }), Value::Table(theirs)) => mine.merge(theirs),
                (_, value) => self.insert(Entry { node: Node { place: entry.node.place, value }, ..entry }),
            }
        }
    }
}

impl Node {
    pub fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(t) => Some(t),
            _ => None,
        }
    }

    pub fn as_table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.value {
            Value::Table(t) => Some(t),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Str(s) => Some(s),
            _ => None,
        }
    }

    pub fn as_int(&self) -> Option<i64> {
        match self.value {
            Value::Int(i) => Some(i),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(b) => Some(b),
            _ => None,
        }
    }

    /// Integers too.
    pub fn as_number(&self) -> Option<f64> {
        match self.value {
            Value::Int(i) => Some(i as f64),
            Value::Float(x) => Some(x),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(l) => Some(l),
            _ => None,
        }
    }

    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Str(_) => "a string",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a number with a fraction",
            Value::Bool(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// Equal but for places.
    pub fn same(&self, other: &Node) -> bool {
        match (&self.value, &other.value) {
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b)),
            (Value::Table(a), Value::Table(b)) => {
                a.entries.len() == b.entries.len()
                    && a.entries.iter().zip(&b.entries).all(|(a, b)| a.key == b.key && a.node.same(&b.node))
            }
            _ => false,
        }
    }

    /// An error at `range` (bytes) of the text of a string node. Points inside
    /// the quotes when the string is written without escapes, at the whole
    /// string otherwise.
    pub fn error_within(&self, range: Range<usize>, message: impl Into<String>) -> FileError {
        let Some(value) = self.as_str() else { return self.place.error(message) };
        let raw = self.place.file.text.get(self.place.span.clone()).unwrap_or("");
        let quotes = if raw.starts_with("\"\"\"") || raw.starts_with("'''") { 3 } else { 1 };
        for skip in [quotes, quotes + 1, quotes + 2] {
            // A newline right after the opening quotes is not part of the value.
            if raw.get(skip..).is_some_and(|rest| rest.starts_with(value)) {
                let start = self.place.span.start + skip;
                return Place { file: self.place.file.clone(), span: start + range.start..start + range.end }
                    .error(message);
            }
        }
        self.place.error(message)
    }
}

/// Read a TOML text.
pub fn parse(file: &Arc<NamedText>) -> Result<Table, FileError> {
    let document = Document::parse(file.text.as_str()).map_err(|e| {
        let message = e.message().trim().replace('\n', "; ");
        FileError::at(file, e.span().unwrap_or(0..0), format!("not TOML: {message}"))
    })?;
    table(file, document.as_table())
}

fn place(file: &Arc<NamedText>, span: Option<Range<usize>>) -> Place {
    Place { file: file.clone(), span: span.unwrap_or(0..0) }
}

fn table(file: &Arc<NamedText>, from: &dyn TableLike) -> Result<Table, FileError> {
    let mut to = Table::default();
    for (name, item) in from.iter() {
        let key_span = from.get_key_value(name).and_then(|(k, _)| k.span());
        let place = place(file, key_span.or_else(|| item.span()));
        to.insert(Entry { key: name.to_owned(), node: node(file, item, &place)?, place });
    }
    Ok(to)
}

/// `near`: where to point when the item itself has no place (tables that only
/// dotted keys imply).
fn node(file: &Arc<NamedText>, item: &Item, near: &Place) -> Result<Node, FileError> {
    let here = item.span().map_or_else(|| near.clone(), |s| place(file, Some(s)));
    let value = match item {
        Item::None => return Err(here.error("a key without a value")),
        Item::Value(v) => return value(file, v, &here),
        Item::Table(t) => Value::Table(table(file, t)?),
        Item::ArrayOfTables(tables) => {
            let mut nodes = Vec::new();
            for t in tables {
                let place = t.span().map_or_else(|| here.clone(), |s| place(file, Some(s)));
                nodes.push(Node { place, value: Value::Table(table(file, t)?) });
            }
            Value::List(nodes)
        }
    };
    Ok(Node { place: here, value })
}

fn value(file: &Arc<NamedText>, from: &toml_edit::Value, near: &Place) -> Result<Node, FileError> {
    let here = from.span().map_or_else(|| near.clone(), |s| place(file, Some(s)));
    let value = match from {
        toml_edit::Value::String(s) => Value::Str(s.value().clone()),
        toml_edit::Value::Integer(i) => Value::Int(*i.value()),
        toml_edit::Value::Float(x) => Value::Float(*x.value()),
        toml_edit::Value::Boolean(b) => Value::Bool(*b.value()),
        toml_edit::Value::Datetime(_) => {
            return Err(here.error("a date has no meaning here").mend("put it in quotes if it is a text"));
        }
        toml_edit::Value::Array(a) => Value::List(list(file, a, &here)?),
        toml_edit::Value::InlineTable(t) => Value::Table(table(file, t)?),
    };
    Ok(Node { place: here, value })
}

fn list(file: &Arc<NamedText>, from: &Array, near: &Place) -> Result<Vec<Node>, FileError> {
    from.iter().map(|v| value(file, v, near)).collect()
}

/// Read one TOML value (`--set`); a text that is no TOML value is a string.
pub fn parse_value(file: &Arc<NamedText>) -> Result<Node, FileError> {
    let here = Place { file: file.clone(), span: 0..file.text.len() };
    match file.text.trim().parse::<toml_edit::Value>() {
        Ok(v) => value(file, &v, &here).map(|n| Node { place: here, ..n }),
        Err(_) => Ok(Node { place: here, value: Value::Str(file.text.trim().to_owned()) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Table {
        parse(&Arc::new(NamedText::new("t", text))).unwrap()
    }

    #[test]
    fn merges_by_key_and_keeps_order() {
        let mut a = read("[x]\nb = 1\na = 2\n[y]\nk = [1]\n");
        a.merge(read("[x]\na = 3\nc = 4\n[y]\nk = [2, 3]\n"));
        let x = a.table("x").unwrap();
        assert_eq!(x.keys().collect::<Vec<_>>(), ["b", "a", "c"]);
        assert_eq!(x.get("a").unwrap().as_int(), Some(3));
        assert_eq!(a.table("y").unwrap().get("k").unwrap().as_list().unwrap().len(), 2);
        assert!(a.remove("x"));
        assert_eq!(a.table("y").unwrap().keys().count(), 1);
    }

    #[test]
    fn points_inside_strings() {
        let t = read("k = \"abc def\"\nm = '''\nxy'''\n");
        assert_eq!(t.get("k").unwrap().error_within(4..7, "").column, 10);
        let e = t.get("m").unwrap().error_within(1..2, "");
        assert_eq!((e.line, e.column), (3, 2));
    }

    #[test]
    fn bad_toml_names_the_place() {
        let e = parse(&Arc::new(NamedText::new("t", "a = 1\nb = = 2\n"))).unwrap_err();
        assert_eq!(e.line, 2);
    }
}
