//! Which keys a file may have.
//!
//! One description of every table, its keys, their types and meaning. The
//! checker walks a file with it, so no unknown key and no value of a wrong
//! type gets past; [`schema`] turns the same description into a JSON schema
//! for editors. They cannot disagree.

use crate::error::{FileError, did_you_mean, list};
use crate::tree::{Node, Table, Value};
use serde_json::{Map as JsonMap, Value as Json, json};

/// What a value must be.
#[derive(Debug)]
pub enum Kind {
    Text,
    /// Inclusive bounds.
    Int(i64, i64),
    /// Inclusive bounds.
    Number(f64, f64),
    Bool,
    Texts,
    Ints,
    OneOf(&'static [&'static str]),
    Table(&'static [Key]),
    /// A table whose keys the author chooses; the text says what they name.
    Map(&'static str, &'static Kind),
    /// A list of tables (`[[rule]]`).
    Tables(&'static [Key]),
    /// The first alternative whose TOML type fits.
    Either(&'static [Kind]),
}

/// One key of a table.
#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
    pub doc: &'static str,
}

pub(crate) const fn need(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, kind, required: true, doc }
}

pub(crate) const fn may(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, kind, required: false, doc }
}

/// Check types and names of keys; with `complete`, also that nothing required
/// is missing (a file that inherits is complete only once merged).
pub fn check(table: &Table, keys: &'static [Key], path: &str, complete: bool, whole: &Node) -> Result<(), FileError> {
    for entry in table.iter() {
        let Some(key) = keys.iter().find(|k| k.name == entry.key) else {
            let place = if path.is_empty() { "the top level".to_owned() } else { format!("`{path}`") };
            let names = || keys.iter().map(|k| k.name);
            let error =
                entry.place.error(format!("unknown key `{}` in {place}; known here: {}", entry.key, list(names())));
            return Err(error.mend_opt(did_you_mean(&entry.key, names())));
        };
        check_kind(&entry.node, &key.kind, &join(path, &entry.key), complete)?;
    }
    if complete && let Some(key) = keys.iter().find(|k| k.required && table.get(k.name).is_none()) {
        let place = if path.is_empty() { "the file".to_owned() } else { format!("`{path}`") };
        let error = whole.place.error(format!("{place} lacks `{}`", key.name));
        return Err(error.mend(format!("add `{}`: {}", key.name, key.doc)));
    }
    Ok(())
}

fn check_kind(node: &Node, kind: &'static Kind, path: &str, complete: bool) -> Result<(), FileError> {
    let wrong = |wanted: &str| Err(node.place.error(format!("`{path}` must be {wanted}, here is {}", node.kind())));
    match (kind, &node.value) {
        (Kind::Text, Value::Str(_)) | (Kind::Bool, Value::Bool(_)) => Ok(()),
        (Kind::Int(min, max), Value::Int(i)) if i < min || i > max => {
            Err(node.place.error(format!("`{path}` must be from {min} to {max}, here is {i}")))
        }
        (Kind::Int(..), Value::Int(_)) => Ok(()),
        (Kind::Number(min, max), Value::Int(_) | Value::Float(_)) => {
            let x = node.as_number().unwrap_or(f64::NAN);
            if x >= *min && x <= *max {
                Ok(())
            } else {
                Err(node.place.error(format!("`{path}` must be from {min} to {max}, here is {x}")))
            }
        }
        (Kind::Texts, Value::List(items)) => match items.iter().find(|n| n.as_str().is_none()) {
            Some(bad) => Err(bad.place.error(format!("`{path}` must be a list of strings, here is {}", bad.kind()))),
            None => Ok(()),
        },
        (Kind::Ints, Value::List(items)) => match items.iter().find(|n| n.as_int().is_none()) {
            Some(bad) => Err(bad.place.error(format!("`{path}` must be a list of integers, here is {}", bad.kind()))),
            None => Ok(()),
        },
        (Kind::OneOf(names), Value::Str(s)) if !names.contains(&s.as_str()) => {
            let error = node.place.error(format!("`{path}` is one of {}, not `{s}`", list(names.iter().copied())));
            Err(error.mend_opt(did_you_mean(s, names.iter().copied())))
        }
        (Kind::OneOf(_), Value::Str(_)) => Ok(()),
        (Kind::Table(keys), Value::Table(t)) => check(t, keys, path, complete, node),
        (Kind::Map(_, inner), Value::Table(t)) => t.iter().try_for_each(|e| {
            // A misspelt name makes an entry of its own, which has little of what it needs.
            let lacks = |keys: &[Key], t: &Table| keys.iter().any(|k| k.required && t.get(k.name).is_none());
            let others = t.keys().filter(|k| *k != e.key);
            match (inner, e.node.as_table()) {
                (Kind::Table(keys), Some(own)) if complete && lacks(keys, own) => {
                    check_kind(&e.node, inner, &join(path, &e.key), complete).map_err(|error| {
                        match (did_you_mean(&e.key, others), &error.mend) {
                            (Some(near), Some(mend)) => {
                                let mend = format!("{near} Or {mend}");
                                error.mend(mend)
                            }
                            _ => error,
                        }
                    })
                }
                _ => check_kind(&e.node, inner, &join(path, &e.key), complete),
            }
        }),
        (Kind::Tables(keys), Value::List(items)) => items.iter().try_for_each(|item| match &item.value {
            Value::Table(t) => check(t, keys, path, complete, item),
            _ => Err(item.place.error(format!("`{path}` must be a list of tables, here is {}", item.kind()))),
        }),
        (Kind::Either(kinds), _) => match kinds.iter().find(|k| fits(node, k)) {
            Some(kind) => check_kind(node, kind, path, complete),
            None => {
                let words: Vec<&str> = kinds.iter().map(noun).collect();
                wrong(&words.join(" or "))
            }
        },
        _ => wrong(noun(kind)),
    }
}

fn noun(kind: &Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::OneOf(_) => "a string",
        Kind::Int(..) => "an integer",
        Kind::Number(..) => "a number",
        Kind::Bool => "true or false",
        Kind::Texts => "a list of strings",
        Kind::Ints => "a list of integers",
        Kind::Table(_) | Kind::Map(..) => "a table",
        Kind::Tables(_) => "a list of tables",
        Kind::Either(_) => "something else",
    }
}

fn fits(node: &Node, kind: &Kind) -> bool {
    match node.value {
        Value::Str(_) => matches!(kind, Kind::Text | Kind::OneOf(_)),
        Value::Int(_) => matches!(kind, Kind::Int(..) | Kind::Number(..)),
        Value::Float(_) => matches!(kind, Kind::Number(..)),
        Value::Bool(_) => matches!(kind, Kind::Bool),
        Value::List(_) => matches!(kind, Kind::Texts | Kind::Ints | Kind::Tables(_)),
        Value::Table(_) => matches!(kind, Kind::Table(_) | Kind::Map(..)),
    }
}

/// `a.b`, with quotes where a key has other characters than words have.
pub fn join(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let key = if bare { key.to_owned() } else { format!("{key:?}") };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// A JSON schema (draft 2020-12) for files with these keys.
pub fn schema(title: &str, keys: &'static [Key]) -> Json {
    let mut top = object(keys);
    top.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    top.insert("title".into(), json!(title));
    Json::Object(top)
}

fn object(keys: &'static [Key]) -> JsonMap<String, Json> {
    let mut properties = JsonMap::new();
    for key in keys {
        let mut value = of(&key.kind);
        value.insert("description".into(), json!(key.doc));
        properties.insert(key.name.into(), Json::Object(value));
    }
    properties.insert("source".into(), json!({"type": "string", "description": SOURCE_DOC}));
    let mut map = JsonMap::new();
    map.insert("type".into(), json!("object"));
    map.insert("properties".into(), Json::Object(properties));
    map.insert("additionalProperties".into(), json!(false));
    // Files that inherit may leave out what the parent says.
    map
}

const SOURCE_DOC: &str = "Where the numbers in this table come from.";

fn of(kind: &'static Kind) -> JsonMap<String, Json> {
    let value = match kind {
        Kind::Text => json!({"type": "string"}),
        Kind::Int(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Number(min, max) => json!({"type": "number", "minimum": min, "maximum": max}),
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Ints => json!({"type": "array", "items": {"type": "integer"}}),
        Kind::OneOf(names) => json!({"type": "string", "enum": names}),
        Kind::Table(keys) => Json::Object(object(keys)),
        Kind::Map(_, inner) => json!({
            "type": "object",
            "properties": {"source": {"type": "string", "description": SOURCE_DOC}},
            "additionalProperties": Json::Object(of(inner)),
        }),
        Kind::Tables(keys) => json!({"type": "array", "items": Json::Object(object(keys))}),
        Kind::Either(kinds) => json!({"anyOf": kinds.iter().map(|k| Json::Object(of(k))).collect::<Vec<_>>()}),
    };
    match value {
        Json::Object(map) => map,
        other => JsonMap::from_iter([("const".to_owned(), other)]),
    }
}
