//! What has been built of a machine so far, and what every section reads its keys with.

use crate::error::Place;
use crate::gf2::BitMatrix;
use crate::merged::Merged;
use crate::model::*;
use crate::parser::Scope;
use crate::tree::{Node, Table as Tree};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What has been built so far; later sections look names up in it.
pub(crate) struct Builder<'a> {
    pub merged: &'a Merged,
    pub top: &'a Tree,
    pub word: u8,
    pub files: Vec<RegFile>,
    pub regs: Vec<RegInfo>,
    pub reg_names: BTreeMap<String, Reg>,
    pub units: Vec<Unit>,
    pub tables: Vec<Table>,
    pub matrices: Vec<Arc<BitMatrix>>,
    pub instrs: Vec<Instr>,
    pub instr_names: BTreeMap<String, InstrId>,
    pub variants: Vec<Vec<InstrId>>,
    pub clusters: Option<Clusters>,
    /// Operand kinds that are a choice of registers of one file.
    pub classes: BTreeMap<String, (FileId, Vec<Reg>)>,
}

/// The string under a key.
pub(crate) fn text<'a>(table: &'a Tree, key: &str) -> Option<&'a str> {
    table.get(key).and_then(Node::as_str)
}

/// The number under a key. Bounds were checked with the keys.
pub(crate) fn int<T: TryFrom<i64>>(table: &Tree, key: &str) -> Option<T> {
    table.get(key).and_then(Node::as_int).and_then(|i| T::try_from(i).ok())
}

/// The nodes of a list of strings; nothing when the key is absent.
pub(crate) fn nodes<'a>(table: &'a Tree, key: &str) -> &'a [Node] {
    table.get(key).and_then(Node::as_list).unwrap_or_default()
}

/// Names that semantics and compounds can tell from signs and keywords.
pub(crate) fn good_name(name: &str) -> bool {
    const RESERVED: [&str; 9] = ["pc", "W", "let", "goto", "if", "trap", "rotate", "window_save", "window_restore"];
    identifier(name) && !RESERVED.contains(&name)
}

/// Letters, digits and `_`: all it takes to name what semantics never name.
pub(crate) fn identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The section `[clusters]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clusters {
    /// Operand kind that means a register of the instruction's own cluster.
    pub operand: String,
    /// Register file of each cluster, the first being cluster 1.
    pub files: Vec<FileId>,
    /// By unit family: operands that may come from another cluster.
    pub(crate) cross: BTreeMap<String, Vec<String>>,
    pub(crate) cross_paths: Vec<UnitId>,
    pub(crate) data: Option<String>,
    pub(crate) data_paths: Vec<UnitId>,
}

impl Builder<'_> {
    pub fn section(&self, name: &str) -> impl Iterator<Item = (&str, &crate::tree::Entry, &Tree)> {
        let entries = self.top.table(name).into_iter().flat_map(Tree::iter);
        entries.filter_map(|e| e.node.as_table().map(|t| (e.key.as_str(), e, t)))
    }

    /// Which file, of all that were read, states this; later ones have higher numbers.
    pub fn layer(&self, node: &Node) -> Option<usize> {
        self.merged.layers.iter().position(|file| Arc::ptr_eq(file, &node.place.file))
    }

    /// Where the last of several things that do not fit together was stated: that one is at fault.
    pub fn last_stated<'n>(&self, nodes: impl IntoIterator<Item = Option<&'n Node>>) -> Option<&'n Place> {
        nodes.into_iter().flatten().max_by_key(|n| self.layer(n)).map(|n| &n.place)
    }

    /// The scope semantics are parsed in.
    pub fn scope<'s>(&'s self, operands: &'s [Operand]) -> Scope<'s> {
        Scope {
            word: self.word,
            operands,
            regs: &self.reg_names,
            reg_infos: &self.regs,
            files: &self.files,
            tables: &self.tables,
            matrices: &self.matrices,
            bound: &[],
        }
    }
}
