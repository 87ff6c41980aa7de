//! From texts to a machine: inheritance, extensions, removals, settings.
//!
//! Every file is read and checked by itself first (keys, types, sources), so
//! that each error shows the file it belongs to. Then the layers are merged in
//! order: the oldest ancestor, its heirs, the extensions, and last the
//! settings of this run. What comes out is one tree, which [`crate::build`]
//! makes a [`Machine`] of.
//!
//! The crate never opens a file on its own account: texts are handed in.
//! [`load_from_dir`] is the thin helper that fetches them from a folder.

use crate::error::{FileError, NamedText, Place, did_you_mean, list, nearest};
use crate::keys;
use crate::merged::Merged;
use crate::model::Machine;
use crate::shape::{Key, Kind, check, join};
use crate::sources::{self, Sources};
use crate::tree::{self, Entry, Node, Table, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Longest chain of `inherits`.
const MAX_ANCESTORS: usize = 16;

/// What to load.
pub struct Request<'a> {
    pub machine: NamedText,
    /// The file of a machine that another inherits from, by name; or, for a name that
    /// ends in `.toml`, by the path that [`beside`] gives.
    pub parents: &'a dyn Fn(&str) -> Option<NamedText>,
    pub extensions: Vec<NamedText>,
    /// All extensions that there are: what one of them uses of a machine is not there for nothing.
    pub vocabulary: &'a dyn Fn() -> Vec<NamedText>,
    /// Extensions, instructions or compounds to leave out.
    pub without: Vec<String>,
    /// Dotted path and value: changes to the file for this run.
    pub settings: Vec<(String, String)>,
    pub rules: NamedText,
}

/// Load a machine.
///
/// # Errors
/// Anything wrong with any of the texts, or with how they fit together; the
/// error says where and how to mend it.
pub fn load(request: &Request) -> Result<Machine, FileError> {
    let mut hash = Sha256::new();
    let mut add = |label: &str, text: &str| {
        hash.update((label.len() as u64).to_le_bytes());
        hash.update(label);
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    let vocabulary = || (request.vocabulary)().into_iter().chain(request.extensions.clone()).collect();
    let (mut merged, ancestors) = inherit(request, &vocabulary, &mut add)?;
    for text in &request.extensions {
        add("extension", &text.text);
        extend(&mut merged, text, &ancestors, &vocabulary)?;
    }
    for name in &request.without {
        add("without", name);
        let file = Arc::new(NamedText::new("--without", name.clone()));
        leave_out(&mut merged, name, &Place { span: 0..name.len(), file })?;
    }
    for (path, value) in &request.settings {
        add(path, value);
        set(&mut merged, path, value)?;
    }
    add("rules", &request.rules.text);
    let tree = merged.tree.clone();
    if let Some(table) = tree.as_table() {
        check(table, keys::MACHINE, "", true, &tree)?;
    }
    merged.tree = crate::modes::expand(&tree, &merged.removed)?;
    let mut machine = crate::build::machine(&merged)?;
    machine.rules = crate::rules::parse(&request.rules, machine.word_bits)?;
    if machine.computes_narrow() {
        machine.narrow_rules = crate::rules::parse(&request.rules, 32)?;
    }
    if let Some(unused) = merged.unused {
        return Err(unused);
    }
    machine.hash = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    Ok(machine)
}

/// Read one file: keys, types, sources.
fn read(text: &NamedText, keys: &'static [Key]) -> Result<(Node, Sources), FileError> {
    let file = Arc::new(text.clone());
    let mut table = tree::parse(&file)?;
    let citations = sources::take(&mut table)?;
    let node = Node { place: Place { file, span: 0..0 }, value: Value::Table(table) };
    let Some(table) = node.as_table() else { return Ok((node, Sources::new())) };
    check(table, keys, "", false, &node)?;
    let sources = sources::cover(table, &citations)?;
    Ok((node, sources))
}

fn head<'a>(node: &'a Node, table: &str) -> Option<&'a Table> {
    node.as_table()?.table(table)
}

/// The machine's file over its ancestors', and the names of all of them.
fn inherit(
    request: &Request,
    vocabulary: &dyn Fn() -> Vec<NamedText>,
    add: &mut impl FnMut(&str, &str),
) -> Result<(Merged, Vec<String>), FileError> {
    let mut layers = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut files: Vec<String> = Vec::new();
    let mut text = request.machine.clone();
    loop {
        files.push(text.name.clone());
        add("machine", &text.text);
        let (node, sources) = read(&text, keys::MACHINE)?;
        let machine = head(&node, "machine");
        names.extend(machine.and_then(|m| m.get("name")).and_then(Node::as_str).map(str::to_owned));
        let parent = machine.and_then(|m| m.get("inherits")).cloned();
        layers.push((node, sources));
        let Some(parent) = parent else { break };
        let name = parent.as_str().unwrap_or_default().to_owned();
        let path = if is_path(&name) { beside(&text.name, &name) } else { name.clone() };
        if names.contains(&name) || files.contains(&path) || layers.len() > MAX_ANCESTORS {
            return Err(parent.place.error(format!("`{name}` is among its own ancestors")).mend("break the circle"));
        }
        text = (request.parents)(&path).ok_or_else(|| {
            if is_path(&name) {
                let error = parent.place.error(format!("there is no file `{path}` to inherit from"));
                return error.mend("a path is taken from the folder of this file");
            }
            let error = parent.place.error(format!("there is no machine `{name}` to inherit from"));
            error.mend("name one that comes with the project, a file beside this one without its `.toml`, or a path: \"./base.toml\"")
        })?;
    }
    let mut merged: Option<Merged> = None;
    for (node, sources) in layers.into_iter().rev() {
        let stated = node.as_table().cloned().unwrap_or_default();
        let without = head(&node, "machine").and_then(|m| m.get("without")).cloned();
        match &mut merged {
            None => {
                let (extensions, brought, removed, removed_units) = Default::default();
                let layers = vec![node.place.file.clone()];
                merged = Some(Merged {
                    tree: node,
                    sources,
                    extensions,
                    brought,
                    removed,
                    removed_units,
                    unused: None,
                    layers,
                });
            }
            Some(m) => {
                for name in without.as_ref().and_then(Node::as_list).unwrap_or_default() {
                    leave_out(m, name.as_str().unwrap_or_default(), &name.place)?;
                }
                m.sources.extend(sources);
                m.layers.push(node.place.file.clone());
                m.tree.place = node.place;
                if let (Value::Table(mine), Value::Table(theirs)) = (&mut m.tree.value, node.value) {
                    mine.merge(theirs);
                }
            }
        }
        if let Some(m) = &mut merged {
            m.look_for_unused(&stated, vocabulary);
        }
    }
    merged.map(|m| (m, names)).ok_or_else(|| FileError::nowhere(&request.machine.name, "nothing to load"))
}

impl Merged {
    fn look_for_unused(&mut self, stated: &Table, vocabulary: &dyn Fn() -> Vec<NamedText>) {
        // Every text was, or will be, read for its own sake: what cannot be read refers to nothing.
        let texts = || vocabulary().into_iter().filter_map(|t| tree::parse(&Arc::new(t)).ok()).collect();
        if let (None, Some(whole)) = (&self.unused, self.tree.as_table()) {
            self.unused = crate::unused::check(stated, whole, texts).err();
        }
    }
}

/// Is what a file inherits from named by a path?
pub fn is_path(name: &str) -> bool {
    name.ends_with(".toml")
}

/// The path of a file that another, at the path `from`, names: taken from its folder, without
/// `.` and without a folder followed by `..`.
pub fn beside(from: &str, name: &str) -> String {
    let mut out = PathBuf::new();
    let whole = Path::new(from).parent().unwrap_or(Path::new("")).join(name);
    for part in whole.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out.display().to_string()
}

/// Add an extension's entries.
fn extend(
    merged: &mut Merged,
    text: &NamedText,
    ancestors: &[String],
    vocabulary: &dyn Fn() -> Vec<NamedText>,
) -> Result<(), FileError> {
    let (node, sources) = read(text, keys::EXTENSION)?;
    let Value::Table(table) = &node.value else { return Ok(()) };
    check(table, keys::EXTENSION, "", true, &node)?;
    let header = table.table("extension");
    let name = header.and_then(|h| h.get("name")).and_then(Node::as_str).unwrap_or_default().to_owned();
    if let Some(fits) = header.and_then(|h| h.get("for")) {
        let wanted: Vec<&str> = fits.as_list().unwrap_or_default().iter().filter_map(Node::as_str).collect();
        if !wanted.iter().any(|w| ancestors.iter().any(|a| a == w)) {
            let this = ancestors.first().map_or("this machine", String::as_str);
            let error = fits.place.error(format!("extension `{name}` is for {}, not for {this}", list(wanted)));
            return Err(error.mend(format!("leave it out, or add \"{this}\" to the list if it fits")));
        }
    }
    if let Some(bits) = header.and_then(|h| h.get("word_bits")) {
        let machine = head(&merged.tree, "machine").and_then(|m| m.get("word_bits")).and_then(Node::as_int);
        if bits.as_int() != machine {
            let error = format!("extension `{name}` is for words of {} bits", bits.as_int().unwrap_or(0));
            let other = machine.unwrap_or(0);
            return Err(bits
                .place
                .error(error)
                .mend(format!("take one for words of {other} bits; `ciphermill list extensions` has them")));
        }
    }
    if merged.extensions.contains(&name) {
        return Ok(());
    }
    let Value::Table(machine) = &mut merged.tree.value else { return Ok(()) };
    for section in ["registers", "formats", "timings", "instructions", "compounds", "tables", "matrices"] {
        let Some(added) = table.table(section) else { continue };
        for entry in added.iter() {
            if machine.table(section).is_none() {
                let node = Node { place: node.place.clone(), value: Value::Table(Table::default()) };
                machine.insert(Entry { key: section.to_owned(), place: node.place.clone(), node });
            }
            let Some(Value::Table(mine)) = machine.get_mut(section).map(|n| &mut n.value) else { continue };
            match mine.get(&entry.key) {
                // Extensions overlap (Zbb and Zbkb do): the same line twice is no conflict.
                Some(there) if there.same(&entry.node) => {}
                Some(there) => {
                    let from = &there.place.file.name;
                    let error =
                        entry.place.error(format!("{section} `{}` exists already, in {from}, and differs", entry.key));
                    return Err(error.mend("give it another name, or leave one of the two out"));
                }
                None => mine.insert(entry.clone()),
            }
            merged.brought.entry(format!("{section}.{}", entry.key)).or_default().push(name.clone());
        }
    }
    for (path, citation) in sources {
        merged.sources.entry(path).or_insert(citation);
    }
    merged.extensions.push(name);
    merged.layers.push(node.place.file.clone());
    merged.look_for_unused(table, vocabulary);
    Ok(())
}

/// Remove an extension, a part of the instruction set, or one instruction.
fn leave_out(merged: &mut Merged, name: &str, place: &Place) -> Result<(), FileError> {
    let Value::Table(machine) = &mut merged.tree.value else { return Ok(()) };
    // What still runs on the unit is an error of its own, at that place.
    if let Some(unit) = name.strip_prefix("units.")
        && let Some(Value::Table(units)) = machine.get_mut("units").map(|n| &mut n.value)
        && units.remove(unit)
    {
        merged.removed_units.insert(unit.to_owned(), place.clone());
        return Ok(());
    }
    let mut doomed = Vec::new();
    if let Some(at) = merged.extensions.iter().position(|e| e == name) {
        merged.extensions.remove(at);
        merged.brought.retain(|path, by| {
            by.retain(|e| e != name);
            if by.is_empty() {
                doomed.push(path.clone());
            }
            !by.is_empty()
        });
        doomed.retain(|d| d.starts_with("instructions.") || d.starts_with("compounds."));
    }
    let mut parts = BTreeSet::new();
    for section in ["instructions", "compounds"] {
        for entry in machine.table(section).into_iter().flat_map(Table::iter) {
            let part = entry.node.as_table().and_then(|t| t.get("extension")).and_then(Node::as_str);
            parts.extend(part.map(str::to_owned));
            if entry.key == name || part == Some(name) {
                doomed.push(format!("{section}.{}", entry.key));
            }
        }
    }
    if doomed.is_empty() {
        let mut names: Vec<&str> = merged.extensions.iter().chain(&parts).map(String::as_str).collect();
        let shown = list(names.iter().copied());
        names.extend(["instructions", "compounds"].iter().filter_map(|s| machine.table(s)).flat_map(Table::keys));
        let error =
            place.error(format!("nothing here is called `{name}`: no extension or part ({shown}), no instruction"));
        return Err(error.mend_opt(did_you_mean(name, names)));
    }
    for path in doomed {
        if let Some((section, key)) = path.split_once('.')
            && let Some(Value::Table(t)) = machine.get_mut(section).map(|n| &mut n.value)
        {
            t.remove(key);
            merged.removed.insert(key.to_owned(), place.clone());
        }
    }
    Ok(())
}

/// Change one value of the merged file.
fn set(merged: &mut Merged, path: &str, value: &str) -> Result<(), FileError> {
    let file = Arc::new(NamedText::new("--set", format!("{path}={value}")));
    let place = Place { file, span: 0..path.len() };
    let value_place = Place { span: path.len() + 1..path.len() + 1 + value.len(), ..place.clone() };
    let keys = sources::split(path, &place)?;
    merged.layers.push(place.file.clone());
    let mut given = tree::parse_value(&Arc::new(NamedText::new("--set", value)))?;
    let is_list = matches!(given.value, Value::List(_) | Value::Table(_));
    given.place = value_place.clone();
    let near = nearby(&merged.tree, path);
    let missing = || {
        let error = place.error(format!("there is no `{path}` in this machine"));
        if near.is_empty() { error } else { error.mend(format!("near it: {}", near.join(", "))) }
    };
    let Some((last, parents)) = keys.split_last() else { return Err(missing()) };
    let mut table = merged.tree.as_table_mut();
    for key in parents {
        table = table.and_then(|t| t.get_mut(key)).and_then(Node::as_table_mut);
    }
    let Some(table) = table else { return Err(missing()) };
    match table.get(last).map(|n| &n.value) {
        None if !known_number(&keys) => return Err(missing()),
        Some(Value::Table(_) | Value::List(_)) => {
            let error = place.error(format!("`{path}` is not a single value"));
            return Err(if near.is_empty() { error } else { error.mend(format!("in it: {}", near.join(", "))) });
        }
        _ if is_list => return Err(value_place.error("only single values can be set")),
        // The check of the whole tree that follows tells the types apart.
        _ => table.insert(Entry { key: last.clone(), place: place.clone(), node: given }),
    }
    let dotted = keys.iter().fold(String::new(), |at, key| join(&at, key));
    merged.sources.insert(dotted, format!("set for this run: {path}={value}"));
    Ok(())
}

/// Is this path a number or flag that files may state, but need not?
fn known_number(path: &[String]) -> bool {
    let mut keys = keys::MACHINE;
    let mut steps = path.iter();
    while let Some(step) = steps.next() {
        let Some(key) = keys.iter().find(|k| k.name == *step) else { return false };
        let kind = match &key.kind {
            Kind::Map(_, inner) if steps.next().is_some() => inner,
            other => other,
        };
        match kind {
            Kind::Table(inner) => keys = inner,
            Kind::Int(..) | Kind::Number(..) | Kind::Bool | Kind::OneOf(_) => {
                return steps.next().is_none() && !matches!(key.kind, Kind::Map(..));
            }
            _ => return false,
        }
    }
    false
}

/// Paths of values that look like `path`, or stand in the same table.
fn nearby(tree: &Node, path: &str) -> Vec<String> {
    fn leaves(table: &Table, at: &str, out: &mut Vec<String>) {
        for entry in table.iter() {
            let path = join(at, &entry.key);
            match &entry.node.value {
                Value::Table(t) => leaves(t, &path, out),
                Value::Int(_) | Value::Float(_) | Value::Bool(_) => out.push(path),
                Value::Str(_) | Value::List(_) => {}
            }
        }
    }
    let mut all = Vec::new();
    if let Some(table) = tree.as_table() {
        leaves(table, "", &mut all);
    }
    // What stands below or beside it, or else what looks like it.
    let parent = path.rsplit_once('.').map_or("", |(up, _)| up);
    for table in [path, parent] {
        let inside = |p: &&String| p.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
        let close: Vec<String> = all.iter().filter(inside).take(8).cloned().collect();
        if !table.is_empty() && !close.is_empty() {
            return close;
        }
    }
    nearest(path, all.iter().map(String::as_str), 3).into_iter().map(str::to_owned).collect()
}

/// Load machine `name` from `root/machines`, with extensions from
/// `root/extensions`. A name that ends in `.toml` is taken as a path.
///
/// # Errors
/// As [`load`]; and when a file cannot be read.
pub fn load_from_dir(
    root: &Path,
    name: &str,
    with: &[String],
    without: &[String],
    set: &[(String, String)],
) -> Result<Machine, FileError> {
    let fetch = |folder: &str, name: &str| -> Result<NamedText, FileError> {
        let path = if name.ends_with(".toml") { name.into() } else { root.join(folder).join(format!("{name}.toml")) };
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(NamedText::new(shown, text)),
            Err(_) if !path.exists() => {
                let names = names_in(&root.join(folder));
                let kind = folder.trim_end_matches('s');
                let message =
                    format!("there is no {kind} `{name}`; there are {}", list(names.iter().map(String::as_str)));
                Err(FileError::nowhere(shown, message).mend_opt(did_you_mean(name, names.iter().map(String::as_str))))
            }
            Err(e) => Err(FileError::nowhere(shown, format!("cannot be read: {e}"))),
        }
    };
    // What a path is taken from is a file's name in messages, which leaves out the root.
    let parents = |name: &str| {
        let path = if is_path(name) { root.join(name).display().to_string() } else { name.to_owned() };
        fetch("machines", &path).ok()
    };
    let vocabulary = || names_in(&root.join("extensions")).iter().filter_map(|n| fetch("extensions", n).ok()).collect();
    let request = Request {
        machine: fetch("machines", name)?,
        parents: &parents,
        extensions: with.iter().map(|n| fetch("extensions", n)).collect::<Result<_, _>>()?,
        vocabulary: &vocabulary,
        without: without.to_vec(),
        settings: set.to_vec(),
        rules: fetch("machines", "rules")?,
    };
    load(&request)
}

/// Names of the machines or extensions in a folder, sorted.
pub fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(|e| e.ok()?.file_name().into_string().ok()?.strip_suffix(".toml").map(str::to_owned))
        .filter(|n| n != "rules")
        .collect();
    names.sort();
    names
}
