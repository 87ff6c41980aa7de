//! Every number has a source.
//!
//! A `source = "..."` in a table covers every number in it and below it, and
//! so does an entry of `[sources]` for its dotted path; the longest path wins.
//! Each file is checked by itself, before it is merged with others: a number
//! that a machine changes cannot hide behind its parent's source.

use crate::error::{FileError, Place, nearest};
use crate::shape::join;
use crate::tree::{Node, Table, Value};
use std::collections::BTreeMap;

/// Dotted path of a number (or a list of numbers) to its citation.
pub type Sources = BTreeMap<String, String>;

/// Citations by the path of what they cover.
pub type Citations = BTreeMap<Vec<String>, String>;

/// Take the `source` keys and `[sources]` out of a file's tree.
pub fn take(table: &mut Table) -> Result<Citations, FileError> {
    let mut given = Citations::new();
    if let Some(entries) = table.table("sources") {
        for entry in entries.iter() {
            let citation = citation(&entry.node)?;
            let path = split(&entry.key, &entry.place)?;
            if !exists(table, &path) {
                let mut paths = Vec::new();
                all_paths(table, "", 2, &mut paths);
                let close = nearest(&entry.key, paths.iter().map(String::as_str), 1)
                    .first()
                    .map(|n| format!("did you mean `{n}`?"));
                let error = entry.place.error(format!("there is no `{}` in this file", entry.key));
                return Err(error.mend_opt(close));
            }
            given.insert(path, citation.to_owned());
        }
    }
    table.remove("sources");
    strip(table, &mut Vec::new(), &mut given)?;
    Ok(given)
}

/// A citation is words.
fn citation(node: &Node) -> Result<&str, FileError> {
    match node.as_str() {
        Some(words) if !words.trim().is_empty() => Ok(words),
        Some(_) => Err(node
            .place
            .error("an empty source")
            .mend("say where the numbers come from; \"assumption: ...\" will do")),
        None => Err(node.place.error(format!("a source must be a string, here is {}", node.kind()))),
    }
}

/// Find for each number of a file the citation that covers it.
pub fn cover(table: &Table, given: &Citations) -> Result<Sources, FileError> {
    let mut sources = Sources::new();
    cover_table(table, &mut Vec::new(), given, &mut sources)?;
    Ok(sources)
}

/// The keys of a dotted path.
pub fn split(path: &str, place: &Place) -> Result<Vec<String>, FileError> {
    match toml_edit::Key::parse(path) {
        Ok(keys) => Ok(keys.iter().map(|k| k.get().to_owned()).collect()),
        Err(_) => {
            Err(place.error(format!("`{path}` is not a dotted path")).mend("write it like `timings.load.latency`"))
        }
    }
}

fn exists(table: &Table, path: &[String]) -> bool {
    match path {
        [] => false,
        [last] => table.get(last).is_some(),
        [first, rest @ ..] => table.table(first).is_some_and(|t| exists(t, rest)),
    }
}

/// Dotted paths of everything in a table down to `depth` levels.
fn all_paths(table: &Table, at: &str, depth: usize, out: &mut Vec<String>) {
    for entry in table.iter() {
        let path = join(at, &entry.key);
        if let Value::Table(t) = &entry.node.value
            && depth > 1
        {
            all_paths(t, &path, depth - 1, out);
        }
        out.push(path);
    }
}

fn strip(table: &mut Table, path: &mut Vec<String>, out: &mut Citations) -> Result<(), FileError> {
    if let Some(citation) =
        table.get("source").filter(|n| n.as_table().is_none()).map(citation).transpose()?.map(str::to_owned)
    {
        table.remove("source");
        out.insert(path.clone(), citation);
    }
    let keys: Vec<String> = table.keys().map(str::to_owned).collect();
    for key in keys {
        if let Some(inner) = table.get_mut(&key).and_then(|n| n.as_table_mut()) {
            path.push(key);
            strip(inner, path, out)?;
            path.pop();
        }
    }
    Ok(())
}

fn cover_table(table: &Table, path: &mut Vec<String>, given: &Citations, out: &mut Sources) -> Result<(), FileError> {
    for entry in table.iter() {
        path.push(entry.key.clone());
        let number = match &entry.node.value {
            Value::Int(_) | Value::Float(_) => true,
            Value::List(items) => items.iter().any(|n| n.as_number().is_some()),
            Value::Table(t) => {
                cover_table(t, path, given, out)?;
                false
            }
            Value::Str(_) | Value::Bool(_) => false,
        };
        if number {
            let dotted = path.iter().fold(String::new(), |at, key| join(&at, key));
            let citation = (0..=path.len()).rev().find_map(|n| given.get(&path[..n]));
            let Some(citation) = citation else {
                let table = path[..path.len() - 1].iter().fold(String::new(), |at, key| join(&at, key));
                let error = entry.place.error(format!("`{dotted}` is a number without a source"));
                return Err(
                    error.mend(format!("add `source = \"...\"` to [{table}], or `\"{table}\" = \"...\"` to [sources]"))
                );
            };
            out.insert(dotted, citation.clone());
        }
        path.pop();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NamedText;
    use std::sync::Arc;

    fn read(text: &str) -> Result<Sources, FileError> {
        let mut table = crate::tree::parse(&Arc::new(NamedText::new("t", text)))?;
        let citations = take(&mut table)?;
        cover(&table, &citations)
    }

    #[test]
    fn longest_path_wins() {
        let s = read("[sources]\n\"t.b\" = \"B\"\n[t]\nsource = \"T\"\n[t.a]\nx = 1\n[t.b]\nx = 2\ny = { z = 1, source = \"Z\" }\n").unwrap();
        assert_eq!((s["t.a.x"].as_str(), s["t.b.x"].as_str(), s["t.b.y.z"].as_str()), ("T", "B", "Z"));
    }

    #[test]
    fn a_number_without_source_is_an_error() {
        let e = read("[t]\nname = \"n\"\nx = 1\n").unwrap_err();
        assert_eq!((e.line, e.message.as_str()), (3, "`t.x` is a number without a source"));
        assert!(read("[t]\nname = \"n\"\n").is_ok());
    }

    #[test]
    fn sources_must_name_something() {
        let e = read("[sources]\nunitz = \"a\"\n[units]\nalu = 1\n").unwrap_err();
        assert_eq!((e.line, e.mend.as_deref()), (2, Some("did you mean `units`?")));
    }
}
