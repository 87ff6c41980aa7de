//! Clustered machines: one line of a file, many real instructions.
//!
//! A clustered VLIW has the same units several times, each beside a register
//! file of its own. Its file describes an instruction once, with operands of
//! one kind that stands for "a register of my cluster" and with units by
//! family (`l` where the machine has `.L1` and `.L2`). This module writes out
//! the *variants* that the hardware has: for each cluster, for each unit, with
//! all operands at home or with one of them coming over the path from another
//! cluster; loads and stores also with their data in another cluster, by that
//! cluster's memory path. Each variant is an instruction like any other, with
//! one unit, the paths it occupies, registers of definite files, and its own
//! assembly (`{unit}` becomes `l1`, `s2x`, `d1t2`).
//!
//! The first variant stands for all of them in selection; which one is meant
//! is settled when registers and slots are.

use crate::builder::{Builder, Clusters, nodes, text};
use crate::error::{FileError, Place, did_you_mean};
use crate::model::*;
use crate::sem::{Expr, Stmt};
use crate::tree::{Node, Table as Tree};
use ciphermill_ir::CmpOp;
use std::collections::{BTreeMap, BTreeSet};

/// Read the section; `None` when the machine has none.
pub(crate) fn read(b: &Builder) -> Result<Option<Clusters>, FileError> {
    let Some(t) = b.top.table("clusters") else { return Ok(None) };
    let files = nodes(t, "files")
        .iter()
        .map(|n| {
            let name = n.as_str().unwrap_or_default();
            b.files.iter().position(|f| f.name == name).ok_or_else(|| {
                let error = n.place.error(format!("unknown register file `{name}`"));
                error.mend_opt(did_you_mean(name, b.files.iter().map(|f| f.name.as_str())))
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let paths = |key: &str| {
        let list = nodes(t, key).iter().map(|n| b.unit_named(n)).collect::<Result<Vec<_>, _>>()?;
        if !list.is_empty() && list.len() != files.len() {
            let place = b.last_stated([t.get(key), t.get("files")]).unwrap_or(&b.merged.tree.place);
            let error = place.error(format!("{} `{key}` for {} clusters, which `files` says", list.len(), files.len()));
            return Err(error.mend("one for each register file of `files`, please"));
        }
        Ok(list)
    };
    let mut cross = BTreeMap::new();
    for entry in t.table("cross").into_iter().flat_map(Tree::iter) {
        let of = |unit: &str| {
            unit.strip_prefix(entry.key.as_str())
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|c| c.is_ascii_digit()))
        };
        if !b.units.iter().any(|u| of(&u.name)) {
            let names: BTreeSet<&str> =
                b.units.iter().map(|u| u.name.trim_end_matches(|c: char| c.is_ascii_digit())).collect();
            let error = entry.place.error(format!("no units are called `{0}1`, `{0}2` ...", entry.key));
            return Err(error.mend_opt(did_you_mean(&entry.key, names)));
        }
        let list = entry.node.as_list().unwrap_or_default();
        for node in list {
            let name = node.as_str().unwrap_or_default();
            let sections = ["formats", "instructions"].into_iter().flat_map(|s| b.section(s));
            let names: BTreeSet<&str> =
                sections.filter_map(|(_, _, t)| t.table("operands")).flat_map(Tree::keys).collect();
            if !names.contains(name) {
                let error = node.place.error(format!("no instruction or format has an operand `{name}`"));
                return Err(error.mend_opt(did_you_mean(name, names)));
            }
        }
        cross.insert(entry.key.clone(), list.iter().filter_map(|n| n.as_str().map(str::to_owned)).collect());
    }
    Ok(Some(Clusters {
        operand: text(t, "operand").unwrap_or_default().to_owned(),
        cross,
        cross_paths: paths("cross_paths")?,
        data: text(t, "data").map(str::to_owned),
        data_paths: paths("data_paths")?,
        files,
    }))
}

/// What is left out at `gone` is named at `node`: whoever takes it away has to see to that.
pub(crate) fn still_needed(node: &Node, gone: &Place, what: &str) -> FileError {
    let there = node.place.error("");
    let error = gone.error(format!("{what}, and {} line {} names it", there.file, there.line));
    error.mend("keep it, or say something else in the place of that line")
}

/// A unit as a timing names it: one unit, or one in each cluster.
pub(crate) enum Family {
    One(UnitId),
    Each(String, Vec<UnitId>),
}

impl Builder<'_> {
    pub(crate) fn unit_named(&self, node: &Node) -> Result<UnitId, FileError> {
        let name = node.as_str().unwrap_or_default();
        self.units.iter().position(|u| u.name == name).ok_or_else(|| {
            let family = |unit: &str| {
                let number = unit.strip_prefix(name).unwrap_or("-");
                number.is_empty() || self.clusters.is_some() && number.bytes().all(|c| c.is_ascii_digit())
            };
            if let Some((unit, gone)) = self.merged.removed_units.iter().find(|(unit, _)| family(unit)) {
                return still_needed(node, gone, &format!("the unit `{unit}` is left out"));
            }
            let names = || self.units.iter().map(|u| u.name.as_str());
            let error = node.error_within(
                0..name.len(),
                format!("unknown unit `{name}`; this machine has {}", crate::error::list(names())),
            );
            error.mend_opt(did_you_mean(name, names()))
        })
    }

    /// The units of a timing.
    pub(crate) fn families(&self, timing: &Tree) -> Result<Vec<Family>, FileError> {
        let family = |node: &Node| {
            let name = node.as_str().unwrap_or_default();
            if let Some(c) = &self.clusters {
                let of = |i: usize| self.units.iter().position(|u| u.name == format!("{name}{i}"));
                let units: Option<Vec<UnitId>> = (1..=c.files.len()).map(of).collect();
                if let Some(units) = units {
                    return Ok(Family::Each(name.to_owned(), units));
                }
            }
            Ok(Family::One(self.unit_named(node)?))
        };
        nodes(timing, "units").iter().map(family).collect()
    }

    /// Units of a timing's further micro-operations.
    pub(crate) fn uop_units(&self, timing: &Tree) -> Result<Vec<UnitId>, FileError> {
        nodes(timing, "uop_units").iter().map(|node| self.unit_named(node)).collect()
    }

    /// All variants of an instruction whose operands of the cluster's kind are
    /// `own`; the instruction itself when it has no unit in every cluster.
    pub(crate) fn variants(&self, instr: Instr, families: &[Family], own: &[usize]) -> Vec<Instr> {
        let Some(clusters) = &self.clusters else { return vec![instr] };
        let each: Vec<(&String, &Vec<UnitId>)> =
            families.iter().filter_map(|f| if let Family::Each(n, u) = f { Some((n, u)) } else { None }).collect();
        if each.is_empty() {
            return vec![instr];
        }
        let index = |name: &String| instr.operands.iter().position(|o| o.name == *name);
        let memory = matches!(instr.kind, InstrKind::Load | InstrKind::Store);
        let data = clusters.data.as_ref().filter(|_| memory).and_then(index).filter(|i| own.contains(i));
        let mut out = Vec::new();
        for cluster in 0..clusters.files.len() {
            for &(family, units) in &each {
                let at_home = |i: &mut Instr| {
                    for &o in own {
                        set_file(i, o, clusters.files[cluster]);
                    }
                    i.units = vec![units[cluster]];
                    i.cluster = cluster as u8 + 1;
                };
                for data_cluster in 0..clusters.files.len() {
                    if data.is_none() && data_cluster != cluster {
                        continue;
                    }
                    let mut v = instr.clone();
                    at_home(&mut v);
                    let mut mark = self.units[units[cluster]].name.clone();
                    if let (Some(d), Some(&path)) = (data, clusters.data_paths.get(data_cluster)) {
                        set_file(&mut v, d, clusters.files[data_cluster]);
                        v.paths.push((path, d));
                        if instr.unaligned {
                            v.paths.extend(clusters.data_paths.iter().filter(|p| **p != path).map(|&p| (p, d)));
                        }
                        mark += &self.units[path].name;
                    }
                    finish(&mut v, &mark);
                    out.push(v);
                }
                let crossing = clusters.cross.get(family).map_or(&[][..], |v| v);
                let straight = crossing.iter().filter_map(index).filter(|o| own.contains(o)).map(|o| (o, None));
                // What commutes has its other source cross when it is written
                // the other way round.
                let turned = straight.clone().filter_map(|(o, _)| Some((partner(&instr, o)?, Some(o))));
                let turned: Vec<_> = turned
                    .filter(|(o, with)| own.contains(o) && !straight.clone().any(|s| s.0 == *o) && *with != Some(*o))
                    .collect();
                for (o, with) in straight.chain(turned) {
                    let reads = matches!(instr.operands[o].kind, OperandKind::Reg { used: true, def: false, .. });
                    let Some(&path) = clusters.cross_paths.get(cluster).filter(|_| reads) else { continue };
                    for from in (0..clusters.files.len()).filter(|&from| from != cluster) {
                        let mut v = instr.clone();
                        at_home(&mut v);
                        set_file(&mut v, o, clusters.files[from]);
                        v.paths.push((path, o));
                        if let Some(with) = with {
                            swap(&mut v, o, with);
                        }
                        let mark = format!("{}x", self.units[units[cluster]].name);
                        finish(&mut v, &mark);
                        out.push(v);
                    }
                }
            }
        }
        if let Some(first) = out.first_mut() {
            first.name = instr.name.clone();
            first.selectable = instr.selectable;
        }
        out
    }
}

/// The operand that changes places with `o` when the instruction's sources are
/// swapped without changing what it computes.
fn partner(instr: &Instr, o: usize) -> Option<usize> {
    let [Stmt::Assign { value, .. }] = instr.semantics.as_slice() else { return None };
    let (a, b) = match value {
        Expr::Bin { op, a, b, .. } if op.commutes() => (a, b),
        Expr::Cmp { op: CmpOp::Eq | CmpOp::Ne, a, b, .. } => (a, b),
        _ => return None,
    };
    let other = sources(a).into_iter().chain(sources(b)).find(|x| *x != o)?;
    let turned = |e: &Expr| renamed(e, o, other);
    (turned(a)? == **b && turned(b)? == **a).then_some(other)
}

/// Register operands of a half of a product, or the operand itself.
fn sources(e: &Expr) -> Vec<usize> {
    match e {
        Expr::Operand(i) => vec![*i],
        Expr::Bin { a, b, .. } => sources(a).into_iter().chain(sources(b)).collect(),
        _ => Vec::new(),
    }
}

fn renamed(e: &Expr, i: usize, j: usize) -> Option<Expr> {
    Some(match e {
        Expr::Operand(k) if *k == i => Expr::Operand(j),
        Expr::Operand(k) if *k == j => Expr::Operand(i),
        Expr::Const(c) => Expr::Const(*c),
        Expr::Bin { op, bits, a, b } => {
            Expr::Bin { op: *op, bits: *bits, a: Box::new(renamed(a, i, j)?), b: Box::new(renamed(b, i, j)?) }
        }
        _ => return None,
    })
}

/// Print two operands in each other's place.
fn swap(v: &mut Instr, i: usize, j: usize) {
    let (a, b) = (format!("{{{}}}", v.operands[i].name), format!("{{{}}}", v.operands[j].name));
    v.asm = v.asm.replace(&a, "\u{0}").replace(&b, &a).replace('\u{0}', &b);
}

fn set_file(instr: &mut Instr, operand: usize, to: FileId) {
    if let OperandKind::Reg { file, .. } = &mut instr.operands[operand].kind {
        *file = to;
    }
}

/// Name and assembly of a variant on the unit so marked. Variants that differ
/// only in a crossing operand have one name: the operands' files tell them
/// apart.
fn finish(v: &mut Instr, mark: &str) {
    v.asm = v.asm.replace("{unit}", mark);
    v.name = format!("{}.{mark}", v.name);
    v.selectable = false;
}
