//! From a merged tree to a [`Machine`]: registers, units, instructions.
//!
//! Everything a later stage would have to doubt is checked here: that names
//! exist, that an operand is used and printed, that a branch goes to a label.
//! What an instruction *is* ([`InstrKind`]) is worked out from what it does,
//! never declared.

mod registers;

use crate::builder::{Builder, identifier, int, text};
use crate::clusters::{self, Family};
use crate::distances;
use crate::error::{FileError, did_you_mean, list};
use crate::kind::{kind, matches_programs};
use crate::merged::Merged;
use crate::model::*;
use crate::modes;
use crate::operands;
use crate::parse;
use crate::parser::Scope;
use crate::sem::{Dest, Stmt};
use crate::tables;
use crate::tree::{Node, Table as Tree};
use std::collections::BTreeMap;

pub(crate) fn machine(merged: &Merged) -> Result<Machine, FileError> {
    let empty = Tree::default();
    let top = merged.tree.as_table().unwrap_or(&empty);
    let head = top.table("machine").unwrap_or(&empty);
    let word = match int::<u8>(head, "word_bits") {
        Some(w @ (32 | 64)) => w,
        _ => {
            let place = head.get("word_bits").map_or(&merged.tree.place, |n| &n.place);
            return Err(place.error("a word has 32 or 64 bits"));
        }
    };
    check_name(head)?;
    let mut b = Builder {
        merged,
        top,
        word,
        files: Vec::new(),
        regs: Vec::new(),
        reg_names: BTreeMap::new(),
        units: Vec::new(),
        tables: Vec::new(),
        matrices: Vec::new(),
        instrs: Vec::new(),
        instr_names: BTreeMap::new(),
        variants: Vec::new(),
        clusters: None,
        classes: BTreeMap::new(),
    };
    b.registers()?;
    b.units()?;
    b.classes()?;
    b.clusters = clusters::read(&b)?;
    b.matrices = tables::matrices(&b)?;
    b.tables = tables::tables(&b)?;
    b.formats()?;
    b.instructions()?;
    let core = crate::core::read::core(&b)?;
    if let Some(core) = &core {
        crate::core::loads::settle(&mut b, core)?;
    }
    let mut machine = Machine {
        name: text(head, "name").unwrap_or_default().to_owned(),
        title: text(head, "title").unwrap_or_default().to_owned(),
        description: text(head, "description").unwrap_or_default().to_owned(),
        word_bits: word,
        narrow: if text(head, "narrow") == Some("zero") { Narrow::Zero } else { Narrow::Signed },
        endian: if text(head, "endian") == Some("big") { Endian::Big } else { Endian::Little },
        clock_mhz: head.get("clock_mhz").and_then(Node::as_number).unwrap_or(1.0),
        power_mw: head.get("power_mw").and_then(Node::as_number),
        issue: crate::system::issue(top),
        core,
        branch: crate::system::branch(top)?,
        memory: crate::system::memory(top)?,
        abi: crate::abi::abi(&b)?,
        chains: crate::chains::chains(&b)?,
        codegen: crate::system::codegen(top),
        asm: crate::system::asm(top)?,
        extensions: merged.extensions.clone(),
        sources: merged.sources.clone(),
        hash: String::new(),
        compounds: Vec::new(),
        rules: Vec::new(),
        narrow_rules: Vec::new(),
        files: b.files.clone(),
        regs: b.regs.clone(),
        units: b.units.clone(),
        instrs: b.instrs.clone(),
        variants: b.variants.clone(),
        tables: b.tables.clone(),
        matrices: b.matrices.clone(),
    };
    // Settings and `--without` can leave sources of things that are gone.
    machine.sources.retain(|path, _| exists(top, path));
    crate::compounds::add(&b, &mut machine)?;
    Ok(machine)
}

/// A name that can be typed and printed in one line.
fn check_name(head: &Tree) -> Result<(), FileError> {
    let Some(node) = head.get("name") else { return Ok(()) };
    let name = node.as_str().unwrap_or_default();
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/') {
        let error = node.place.error(format!("`{}` cannot name a machine", name.escape_debug()));
        return Err(error.mend("use letters, digits and signs such as - and _, without spaces"));
    }
    Ok(())
}

fn exists(top: &Tree, path: &str) -> bool {
    let Ok(keys) = toml_edit::Key::parse(path) else { return false };
    let mut table = Some(top);
    for (i, key) in keys.iter().enumerate() {
        let Some(node) = table.and_then(|t| t.get(key.get())) else { return false };
        if i + 1 == keys.len() {
            return true;
        }
        table = node.as_table();
    }
    false
}

impl Builder<'_> {
    /// Statements of an instruction or compound, and the number of its `let`s.
    pub fn statements(&self, t: &Tree, whole: &Node, operands: &[Operand]) -> Result<(Vec<Stmt>, usize), FileError> {
        let node = t.get("semantics").unwrap_or(whole);
        let bound = modes::values(self, t, operands)?;
        let parsed =
            parse::statements(node.as_str().unwrap_or_default(), &Scope { bound: &bound, ..self.scope(operands) });
        parsed.map_err(|e| node.error_within(e.span, e.message).mend_opt(e.mend))
    }

    fn units(&mut self) -> Result<(), FileError> {
        for entry in self.top.table("units").into_iter().flat_map(Tree::iter) {
            let (count, cluster, shared) = match entry.node.as_table() {
                Some(t) => {
                    (int(t, "count").unwrap_or(1), int(t, "cluster").unwrap_or(0), int(t, "shared").unwrap_or(1))
                }
                None => (entry.node.as_int().and_then(|i| u16::try_from(i).ok()).unwrap_or(1), 0, 1),
            };
            self.units.push(Unit { name: entry.key.clone(), count, cluster, shared });
        }
        Ok(())
    }

    fn classes(&mut self) -> Result<(), FileError> {
        let mut classes = BTreeMap::new();
        for entry in self.top.table("classes").into_iter().flat_map(Tree::iter) {
            let mut regs = Vec::new();
            for (name, node) in operands::expand(entry.node.as_list().unwrap_or_default())? {
                let Some(&reg) = self.reg_names.get(&name) else {
                    let error = node.place.error(format!("unknown register `{name}`"));
                    return Err(error.mend_opt(did_you_mean(&name, self.reg_names.keys().map(String::as_str))));
                };
                regs.push(reg);
            }
            let Some(&first) = regs.first() else {
                return Err(entry.place.error(format!("the class `{}` has no registers", entry.key)));
            };
            let file = |r: &Reg| self.regs[usize::from(r.0)].file;
            // Each cluster has a file for the same kind.
            let clustered = |r: &Reg| self.files[file(r)].cluster != 0;
            if let Some(other) = regs.iter().find(|r| file(r) != file(&first) && !(clustered(r) && clustered(&first))) {
                let names = [first, *other].map(|r| &self.regs[usize::from(r.0)].name);
                let error =
                    entry.place.error(format!("`{}` and `{}` are not of one register file", names[0], names[1]));
                return Err(error.mend("make a class for each file"));
            }
            classes.insert(entry.key.clone(), (self.regs[usize::from(first.0)].file, regs));
        }
        self.classes = classes;
        Ok(())
    }

    /// Formats are checked even where no instruction uses them.
    fn formats(&self) -> Result<(), FileError> {
        for (_, _, t) in self.section("formats") {
            operands::read(self, None, t.get("operands"))?;
        }
        for (_, _, t) in self.section("timings") {
            self.families(t)?;
        }
        Ok(())
    }

    /// An entry of `section` that `node` names.
    pub fn named<'t>(&'t self, section: &str, node: &Node) -> Result<&'t Tree, FileError> {
        let name = node.as_str().unwrap_or_default();
        self.top.table(section).and_then(|s| s.table(name)).ok_or_else(|| {
            let names = || self.top.table(section).into_iter().flat_map(Tree::keys);
            let kind = section.trim_end_matches('s');
            let error =
                node.error_within(0..name.len(), format!("unknown {kind} `{name}`; there are {}", list(names())));
            error.mend_opt(did_you_mean(name, names()))
        })
    }

    fn instructions(&mut self) -> Result<(), FileError> {
        let (mut instrs, mut variants): (Vec<Instr>, Vec<Vec<InstrId>>) = (Vec::new(), Vec::new());
        for (name, entry, t) in self.section("instructions") {
            if !identifier(name) {
                let error = entry.place.error(format!("`{name}` cannot name an instruction"));
                return Err(error.mend("use letters, digits and _; what the assembler calls it goes into `mnemonic`"));
            }
            let first = instrs.len();
            instrs.extend(self.instruction(name, &entry.node, t)?);
            let all: Vec<InstrId> = (first..instrs.len()).map(|i| InstrId(i as u16)).collect();
            variants.push(all.clone());
            variants.extend(all.iter().skip(1).map(|&i| vec![i]));
        }
        if instrs.len() > usize::from(u16::MAX) {
            return Err(self.merged.tree.place.error("more than 65535 instructions"));
        }
        let name = |(i, instr): (usize, &Instr)| (instr.name.clone(), InstrId(i as u16));
        self.instr_names = instrs.iter().enumerate().map(name).collect();
        self.instrs = instrs;
        self.variants = variants;
        Ok(())
    }

    /// An instruction, in all its variants.
    fn instruction(&self, name: &str, whole: &Node, t: &Tree) -> Result<Vec<Instr>, FileError> {
        let empty = Tree::default();
        let format = t.get("format").map(|n| self.named("formats", n)).transpose()?.unwrap_or(&empty);
        if let Some(e) = t.entry("timing_at") {
            return Err(e
                .place
                .error(format!("`{name}` has no operand with forms, so `timing_at` says nothing; give `timing`")));
        }
        let timing_node = t.get("timing").unwrap_or(whole);
        let timing = self.named("timings", timing_node)?;
        let mut operands = operands::read(self, format.get("operands"), t.get("operands"))?;

        let semantics_node = t.get("semantics").unwrap_or(whole);
        let (semantics, temps) = self.statements(t, whole, &operands)?;
        operands::mark_uses(&mut operands, &semantics);
        let wrong = |message: String| semantics_node.place.error(format!("`{name}`: {message}"));
        operands::check_used(&operands, &semantics).map_err(wrong)?;
        let kind = kind(&operands, &semantics).map_err(wrong)?;

        let asm_node = t.get("asm").or(format.get("asm"));
        let Some(asm_node) = asm_node else {
            return Err(whole.place.error(format!("`{name}` has no `asm`, and no format that has one")));
        };
        let mnemonic = text(t, "mnemonic").unwrap_or(name);
        let families = self.families(timing)?;
        let clustered = families.iter().any(|f| matches!(f, Family::Each(..)));
        let (own, only) = operands::places(self, format.get("operands"), t.get("operands"), &operands);
        let implied: Vec<usize> = only.iter().filter(|o| o.1.len() == 1).map(|o| o.0).collect();
        let views = |kind: &OperandKind, view: &str| match kind {
            OperandKind::Reg { file, .. } => {
                let first = usize::from(self.files[*file].first.0);
                self.regs[first].views.iter().any(|v| v.0 == view)
            }
            OperandKind::Imm { .. } => view == "pow2",
            OperandKind::Label => false,
        };
        let asm = operands::template(asm_node, mnemonic, &operands, clustered, &implied, &views).map_err(|e| {
            e.mend(format!("the operands of `{name}` are {}", list(operands.iter().map(|o| o.name.as_str()))))
        })?;

        let far = t.get("far_asm").or(format.get("far_asm"));
        let far = far.map(|node| operands::template(node, mnemonic, &operands, clustered, &implied, &views));
        let far_asm = far.transpose()?;
        let bytes = int(t, "bytes").or(int(format, "bytes"));
        let Some(bytes) = bytes else {
            return Err(whole.place.error(format!("`{name}` has no size: neither it nor its format gives `bytes`")));
        };
        let delay_slots = int(t, "delay_slots").or(int(format, "delay_slots")).unwrap_or(0);
        let annul = t.get("annul").or(format.get("annul")).and_then(Node::as_bool).unwrap_or(false);
        let transfers = !matches!(
            kind,
            InstrKind::Compute | InstrKind::Load | InstrKind::Store | InstrKind::Frame | InstrKind::Trap
        );
        if (delay_slots > 0 || annul) && !transfers {
            let key = if annul { "annul" } else { "delay_slots" };
            let place = t.get(key).map_or(&semantics_node.place, |n| &n.place);
            return Err(place.error(format!("`{name}`: {}", "only a branch, jump or call has delay slots")));
        }
        let sizes = self.sizes(format, t, &operands)?;
        let one = |f: &Family| if let Family::One(u) = f { Some(*u) } else { None };
        let brought = self.merged.brought.get(&format!("instructions.{name}")).and_then(|by| by.first());
        let instr = Instr {
            name: name.to_owned(),
            unaligned: t.get("unaligned").and_then(Node::as_bool).unwrap_or(false),
            flash: t.get("flash").and_then(Node::as_bool).unwrap_or(false),
            ascending: operands::ascending(t, &operands)?,
            ports: ports(&asm, &operands, &only),
            asm,
            units: families.iter().filter_map(one).collect(),
            paths: Vec::new(),
            cluster: 0,
            only,
            issue_cycles: int(timing, "issue_cycles").unwrap_or(1),
            issue_before: self.issue_before(timing)?,
            early: self.early(timing, &operands)?,
            unit_cycles: int(timing, "unit_cycles").unwrap_or(1),
            uops: int(timing, "uops").unwrap_or(1),
            uop_units: self.uop_units(timing)?,
            latency: int(timing, "latency").unwrap_or(1),
            dest_latency: self.dest_latency(timing, &operands, &semantics)?,
            taken_cycles: int(timing, "taken_cycles").unwrap_or(0),
            untaken_cycles: int(timing, "untaken_cycles").unwrap_or(0),
            far_cycles: ["far_taken_cycles", "far_untaken_cycles"].map(|key| int(timing, key).unwrap_or(0)),
            far_asm,
            varies_with: self.varies_with(timing, &operands)?,
            delay_slots,
            annul,
            bytes,
            short_bytes: int(t, "short_bytes").or(int(format, "short_bytes")),
            short_reach: (
                int(t, "short_from").or(int(format, "short_from")).unwrap_or(-128),
                int(t, "short_to").or(int(format, "short_to")).unwrap_or(127),
            ),
            reach: distances::reach(t, format),
            literal: distances::literal(t, format, whole, &operands)?,
            sizes,
            kind,
            timing: timing_node.as_str().unwrap_or_default().to_owned(),
            extension: brought.map(String::as_str).or(text(t, "extension")).map(str::to_owned),
            selectable: t
                .get("selectable")
                .and_then(Node::as_bool)
                .unwrap_or_else(|| matches_programs(kind, &semantics)),
            operands,
            semantics,
            temps,
        };
        Ok(self.variants(instr, &families, &own))
    }

    /// What makes the encoding longer or shorter.
    fn sizes(&self, format: &Tree, t: &Tree, operands: &[Operand]) -> Result<Vec<SizeRule>, FileError> {
        let mut out = Vec::new();
        let of_prefix = self.files.iter().map(|f| f.prefix_bytes as i8).max().unwrap_or(1);
        for (key, bytes) in [("longer", 1), ("shorter", -1), ("prefixed", of_prefix)] {
            let entries = [format, t].into_iter().filter_map(|t| t.table(key)).flat_map(Tree::iter);
            for entry in entries {
                let Some(operand) = operands.iter().position(|o| o.name == entry.key) else {
                    let error = entry.place.error(format!("`{}` is no operand here", entry.key));
                    return Err(error.mend_opt(did_you_mean(&entry.key, operands.iter().map(|o| o.name.as_str()))));
                };
                let mut rule =
                    SizeRule { operand, regs: Vec::new(), values: Vec::new(), bytes, prefix: key == "prefixed" };
                for node in entry.node.as_list().unwrap_or_default() {
                    let name = node.as_str().unwrap_or_default();
                    match (self.reg_names.get(name), name.parse()) {
                        (Some(&r), _) => rule.regs.push(r),
                        (None, Ok(v)) => rule.values.push(v),
                        (None, Err(_)) => {
                            return Err(node.place.error(format!("`{name}` is neither a register nor a number")));
                        }
                    }
                }
                out.push(rule);
            }
        }
        let prefix = t.get("prefix").or(format.get("prefix")).and_then(Node::as_bool).unwrap_or(true);
        for (operand, o) in operands.iter().enumerate().filter(|_| prefix) {
            if let OperandKind::Reg { file, .. } = o.kind
                && let regs = &self.files[file].prefixed
                && !regs.is_empty()
            {
                let bytes = self.files[file].prefix_bytes as i8;
                out.push(SizeRule { operand, regs: regs.clone(), values: Vec::new(), bytes, prefix: true });
            }
        }
        Ok(out)
    }

    fn dest_latency(&self, timing: &Tree, operands: &[Operand], stmts: &[Stmt]) -> Result<Vec<(Dest, u32)>, FileError> {
        let mut out = Vec::new();
        for entry in timing.table("dest_latency").into_iter().flat_map(Tree::iter) {
            let cycles = entry.node.as_int().and_then(|i| u32::try_from(i).ok()).unwrap_or(1);
            let file = self.files.iter().position(|f| f.name == entry.key);
            let reg = self.reg_names.get(&entry.key);
            let is_operand = operands.iter().any(|o| o.name == entry.key);
            // A timing serves many formats: an operand of another one is fine.
            let known = file.is_some() || reg.is_some() || is_operand || self.some_format_has(&entry.key);
            if !known {
                let message = format!("`{}` is no register, register file or operand", entry.key);
                let names = self.reg_names.keys().chain(self.files.iter().map(|f| &f.name)).map(String::as_str);
                return Err(entry.place.error(message).mend_opt(did_you_mean(&entry.key, names)));
            }
            for stmt in stmts {
                let Stmt::Assign { dest, .. } = stmt else { continue };
                let hit = match dest {
                    Dest::Fixed(r) => Some(r) == reg || Some(self.regs[usize::from(r.0)].file) == file,
                    Dest::Operand(i) => {
                        operands[*i].name == entry.key
                            || matches!(operands[*i].kind, OperandKind::Reg { file: f, .. } if Some(f) == file)
                    }
                };
                if hit && !out.iter().any(|(d, _)| d == dest) {
                    out.push((dest.clone(), cycles));
                }
            }
        }
        Ok(out)
    }

    /// Issue cycles in front of instructions of other timings.
    fn issue_before(&self, timing: &Tree) -> Result<Vec<(String, u32)>, FileError> {
        let most: u32 = int(timing, "issue_cycles").unwrap_or(1);
        let mut out = Vec::new();
        for entry in timing.table("issue_before").into_iter().flat_map(Tree::iter) {
            let timings = || self.top.table("timings").into_iter().flat_map(Tree::keys);
            if !timings().any(|t| t == entry.key) {
                let error = entry.place.error(format!("`{}` is no timing", entry.key));
                return Err(error.mend_opt(did_you_mean(&entry.key, timings())));
            }
            let cycles = entry.node.as_int().and_then(|i| u32::try_from(i).ok()).unwrap_or(1);
            if cycles > most {
                let error =
                    entry.node.place.error(format!("{cycles} cycles are more than the {most} of `issue_cycles`"));
                return Err(error.mend("what comes behind can only issue earlier than others"));
            }
            out.push((entry.key.clone(), cycles));
        }
        Ok(out)
    }

    /// Operands of an instruction of this timing that have to be ready before it issues.
    fn early(&self, timing: &Tree, operands: &[Operand]) -> Result<Vec<(usize, u32)>, FileError> {
        let mut out = Vec::new();
        for entry in timing.table("early").into_iter().flat_map(Tree::iter) {
            let cycles = entry.node.as_int().and_then(|i| u32::try_from(i).ok()).unwrap_or(1);
            match operands.iter().position(|o| o.name == entry.key) {
                Some(i) => out.push((i, cycles)),
                // A timing serves many instructions: an operand of another one is fine.
                None if self.some_instruction_has(&entry.key) => {}
                None => {
                    let error = entry.place.error(format!("`{}` is no operand", entry.key));
                    return Err(error.mend_opt(did_you_mean(&entry.key, operands.iter().map(|o| o.name.as_str()))));
                }
            }
        }
        Ok(out)
    }

    /// What an instruction of this timing takes longer or shorter for.
    fn varies_with(&self, timing: &Tree, operands: &[Operand]) -> Result<Vec<Dest>, FileError> {
        let mut out = Vec::new();
        for node in timing.get("varies_with").and_then(Node::as_list).unwrap_or_default() {
            let name = node.as_str().unwrap_or_default();
            match (operands.iter().position(|o| o.name == name), self.reg_names.get(name)) {
                (Some(i), _) => out.push(Dest::Operand(i)),
                (None, Some(&r)) => out.push(Dest::Fixed(r)),
                // A timing serves many instructions: an operand of another one is fine.
                (None, None) if self.some_instruction_has(name) => {}
                (None, None) => {
                    let known =
                        operands.iter().map(|o| o.name.as_str()).chain(self.reg_names.keys().map(String::as_str));
                    let error = node.place.error(format!("`{name}` is no operand and no register"));
                    return Err(error.mend_opt(did_you_mean(name, known)));
                }
            }
        }
        Ok(out)
    }

    fn some_instruction_has(&self, operand: &str) -> bool {
        let has = |t: &Tree| t.table("operands").is_some_and(|o| o.get(operand).is_some());
        self.some_format_has(operand) || self.section("instructions").any(|(_, _, t)| has(t))
    }

    fn some_format_has(&self, operand: &str) -> bool {
        self.section("formats").any(|(_, _, t)| t.table("operands").is_some_and(|o| o.get(operand).is_some()))
    }
}

/// Sources read through ports: once for each time they are written.
fn ports(asm: &str, operands: &[Operand], only: &[(usize, Vec<Reg>)]) -> Vec<(usize, u16)> {
    let source = |o: &Operand| matches!(o.kind, OperandKind::Reg { used: true, def: false, .. });
    let list = operands.iter().enumerate().filter(|(i, o)| source(o) && only.iter().all(|p| p.0 != *i));
    list.map(|(i, o)| (i, asm.matches(&format!("{{{}}}", o.name)).count() as u16)).collect()
}
