//! A machine as JSON: what a person wants to read of it.

use crate::gf2::BitMatrix;
use crate::model::*;
use crate::print::{self, Names};
use crate::sem::Expr;
use crate::shape::join;
use crate::{keys, shape};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// JSON schemas of the three kinds of file, made of the tables the loader
/// checks with: `machine`, `extension`, `rules`.
pub fn schema() -> Json {
    json!({
        "machine": shape::schema("ciphermill machine", keys::MACHINE),
        "extension": shape::schema("ciphermill extension", keys::EXTENSION),
        "rules": shape::schema("ciphermill rules", keys::RULES),
    })
}

impl Machine {
    /// Names to print semantics of `operands` with.
    pub fn names<'a>(&'a self, operands: &'a [Operand]) -> Names<'a> {
        Names { word: self.word_bits, operands, regs: &self.regs, tables: &self.tables }
    }

    /// Does it compute in 32 bits, with zeros above, where its words have 64?
    pub fn computes_narrow(&self) -> bool {
        self.word_bits == 64 && self.narrow == Narrow::Zero
    }

    /// An instruction by name.
    pub fn instr_named(&self, name: &str) -> Option<InstrId> {
        self.instrs.iter().position(|i| i.name == name).map(|i| InstrId(i as u16))
    }

    /// The matrices that semantics multiply by, each once, in the order of
    /// the instructions.
    pub fn linear_maps(&self) -> Vec<Arc<BitMatrix>> {
        let mut maps: Vec<Arc<BitMatrix>> = Vec::new();
        for instr in &self.instrs {
            crate::kind::for_each_expr(&instr.semantics, &mut |e| {
                if let Expr::Linear { matrix, .. } = e
                    && !maps.contains(matrix)
                {
                    maps.push(matrix.clone());
                }
            });
        }
        maps
    }

    /// Are there loads that read flash, and nothing else?
    pub fn reads_flash(&self) -> bool {
        self.instrs.iter().any(|i| i.flash)
    }

    /// A register by name.
    pub fn reg_named(&self, name: &str) -> Option<Reg> {
        self.regs.iter().position(|r| r.name == name).map(|i| Reg(i as u16))
    }

    /// Bits of the registers that values are in: those of a word, or fewer ([`Machine::chains`]).
    pub fn value_bits(&self) -> u8 {
        let file = self.abi.allocatable.first().and_then(|r| self.regs.get(usize::from(r.0))).map(|r| r.file);
        file.filter(|_| self.chains.is_some()).map_or(self.word_bits, |file| self.files[file].bits)
    }

    /// Values of 32 bits that a machine takes as arguments, in the words that its registers hold.
    pub fn in_words(&self, values: &[u64]) -> Vec<u64> {
        let bits = self.value_bits();
        if bits >= 32 {
            return values.to_vec();
        }
        let words = |&v: &u64| (0..32 / bits).map(move |k| v >> (k * bits) & ((1 << bits) - 1));
        values.iter().flat_map(words).collect()
    }

    /// The other way round.
    pub fn from_words(&self, words: &[u64]) -> Vec<u64> {
        let bits = self.value_bits();
        if bits >= 32 {
            return words.to_vec();
        }
        words.chunks(usize::from(32 / bits)).map(|w| w.iter().rev().fold(0, |all, w| all << bits | w)).collect()
    }

    pub fn instr(&self, id: InstrId) -> &Instr {
        &self.instrs[usize::from(id.0)]
    }

    pub fn reg(&self, reg: Reg) -> &RegInfo {
        &self.regs[usize::from(reg.0)]
    }

    /// Where the number at a dotted path comes from: the source of the path
    /// itself, or of what stands nearest above it.
    pub fn source(&self, path: &str) -> Option<&str> {
        let below =
            |p: &str| self.sources.keys().find(|k| k.starts_with(&format!("{p}."))).and_then(|k| self.sources.get(k));
        let mut at = path;
        loop {
            if let Some(source) = self.sources.get(at).or_else(|| below(at)) {
                return Some(source);
            }
            at = at.rsplit_once('.')?.0;
        }
    }

    /// Everything a person wants to know of a machine.
    pub fn to_json(&self) -> Json {
        let name = |r: &Reg| json!(self.reg(*r).name);
        let names = |rs: &[Reg]| rs.iter().map(name).collect::<Vec<_>>();
        let files: Vec<Json> = self
            .files
            .iter()
            .map(|f| {
                let regs: Vec<Reg> = (f.first.0..f.first.0 + f.count).map(Reg).collect();
                let zero = regs.iter().find(|r| self.reg(**r).zero).map(name);
                json!({"name": f.name, "bits": f.bits, "cluster": f.cluster, "registers": names(&regs), "zero": zero})
            })
            .collect();
        let units: Vec<Json> = self.units.iter().map(|u| {
            json!({"name": u.name, "count": u.count, "cluster": u.cluster, "source": self.source(&join("units", &u.name))})
        }).collect();
        // Variants are shown with the instruction they are variants of.
        let others: BTreeSet<InstrId> = self.variants.iter().flat_map(|v| v.iter().skip(1).copied()).collect();
        let shown = (0..self.instrs.len()).filter(|&i| !others.contains(&InstrId(i as u16)));
        let instrs: Vec<Json> = shown.map(|i| self.instr_json(i)).collect();
        let compounds: Vec<Json> = self
            .compounds
            .iter()
            .map(|c| {
                json!({
                    "name": c.name,
                    "operands": self.operands_json(&c.operands),
                    "semantics": print::statements(&c.semantics, self.names(&c.operands)),
                    "parts": c.parts.iter().map(|p| self.part_text(c, p)).collect::<Vec<_>>(),
                    "scratch": c.scratch,
                })
            })
            .collect();
        let tables: Vec<Json> =
            self.tables.iter().map(|t| json!({"name": t.name, "bits": t.bits, "entries": t.values.len()})).collect();
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "word_bits": self.word_bits,
            "narrow": match self.narrow { Narrow::Signed => "signed", Narrow::Zero => "zero" },
            "endian": match self.endian { Endian::Little => "little", Endian::Big => "big" },
            "clock_mhz": self.clock_mhz,
            "power_mw": self.power_mw,
            "extensions": self.extensions,
            "registers": files,
            "units": units,
            "instructions": instrs,
            "compounds": compounds,
            "tables": tables,
            "rules": self.rules.iter().map(|r| json!({"name": r.name})).collect::<Vec<_>>(),
            "issue": {"width": self.issue.width, "interlock": self.issue.interlock, "explicit": self.issue.explicit, "source": self.source("issue")},
            "branch": self.branch_json(),
            "memory": {
                "unaligned": self.memory.unaligned,
                "flash_from": self.memory.flash_from,
                "flash_bytes": self.memory.flash_bytes,
                "banks": self.memory.banks.as_ref().map(|b| json!({
                    "blocks": b.blocks, "block_bytes": b.block_bytes, "banks": b.banks, "bank_bytes": b.bank_bytes,
                    "source": self.source("memory.banks"),
                })),
                "icache": self.memory.icache.as_ref().map(|c| self.cache_json(c, "memory.icache")),
                "dcache": self.memory.dcache.as_ref().map(|c| self.cache_json(c, "memory.dcache")),
            },
            "abi": self.abi_json(),
            "asm": {"reg_prefix": self.asm.reg_prefix, "comment": self.asm.comment, "prologue": self.asm.prologue},
            "sources": self.sources,
            "hash": self.hash,
        })
    }

    fn branch_json(&self) -> Json {
        let mut out = match self.branch.predictor {
            Predictor::None => json!({"predictor": "none"}),
            Predictor::BackwardTaken => json!({"predictor": "backward_taken"}),
            Predictor::Dynamic(l) => json!({
                "predictor": "dynamic", "btb_entries": l.btb_entries, "bht_entries": l.bht_entries,
                "bht_bits": l.bht_bits, "return_stack": l.return_stack, "source": self.source("branch"),
            }),
        };
        if self.branch.split_target_cycles > 0 {
            out["fetch_bytes"] = json!(self.branch.fetch_bytes);
            out["split_target_cycles"] = json!(self.branch.split_target_cycles);
        }
        out
    }

    fn abi_json(&self) -> Json {
        let abi = &self.abi;
        let ops = &abi.ops;
        let op = |id: InstrId| json!(self.instr(id).name);
        let name = |r: &Reg| json!(self.reg(*r).name);
        let names = |rs: &[Reg]| rs.iter().map(name).collect::<Vec<_>>();
        json!({
            "args": names(&abi.args),
            "results": names(&abi.results),
            "callee_args": names(&abi.callee_args),
            "callee_results": names(&abi.callee_results),
            "allocatable": names(&abi.allocatable),
            "callee_saved": names(&abi.callee_saved),
            "call_preserved": names(&abi.call_preserved),
            "stack_pointer": name(&abi.stack_pointer),
            "return_address": abi.return_address.as_ref().map(name),
            "return_bytes": abi.return_bytes,
            "code_unit": abi.code_unit,
            "scratch": names(&abi.scratch),
            "spill": names(&abi.spill),
            "globals": names(&abi.globals),
            "stack_align": abi.stack_align,
            "frame_reserve": abi.frame_reserve,
            "ops": {
                "mov": op(ops.mov), "add_imm": op(ops.add_imm), "add": op(ops.add), "load": op(ops.load),
                "store": op(ops.store), "jump": op(ops.jump), "call": op(ops.call),
                "call_indirect": op(ops.call_indirect), "ret": op(ops.ret), "trap": op(ops.trap), "nop": op(ops.nop),
            },
            "windows": abi.windows.as_ref().map(|w| json!({
                "count": w.count,
                "ins": names(&w.ins), "locals": names(&w.locals), "outs": names(&w.outs),
                "save": op(w.save), "save_reg": op(w.save_reg), "restore": op(w.restore), "ret": op(w.ret),
                "return_address": name(&w.return_address),
                "overflow_cycles": w.overflow_cycles, "underflow_cycles": w.underflow_cycles,
            })),
        })
    }

    fn instr_json(&self, index: usize) -> Json {
        let i = &self.instrs[index];
        let variants = self.variants.get(index).map_or(&[][..], |v| v);
        let mut units: Vec<UnitId> = i.units.clone();
        for u in variants.iter().flat_map(|&v| &self.instr(v).units) {
            if !units.contains(u) {
                units.push(*u);
            }
        }
        let asm = if variants.len() > 1 { without_unit(&i.asm) } else { i.asm.clone() };
        let dest = |d: &crate::sem::Dest| match d {
            crate::sem::Dest::Operand(o) => i.operands[*o].name.clone(),
            crate::sem::Dest::Fixed(r) => self.reg(*r).name.clone(),
        };
        let special: serde_json::Map<String, Json> = i.dest_latency.iter().map(|(d, n)| (dest(d), json!(n))).collect();
        let mut out = json!({
            "name": i.name,
            "asm": asm,
            "semantics": print::statements(&i.semantics, self.names(&i.operands)),
            "kind": format!("{:?}", i.kind),
            "operands": self.operands_json(&i.operands),
            "units": units.iter().map(|&u| self.units[u].name.as_str()).collect::<Vec<_>>(),
            "latency": i.latency,
            "dest_latency": special,
            "issue_cycles": i.issue_cycles,
            "unit_cycles": i.unit_cycles,
            "taken_cycles": i.taken_cycles,
            "untaken_cycles": i.untaken_cycles,
            "varies_with": i.varies_with.iter().map(dest).collect::<Vec<_>>(),
            "delay_slots": i.delay_slots,
            "annul": i.annul,
            "bytes": i.bytes,
            "extension": i.extension,
            "selectable": i.selectable,
            "timing": i.timing,
            "source": self.source(&format!("{}.latency", join("timings", &i.timing))),
        });
        // What few machines have.
        if !i.issue_before.is_empty() {
            out["issue_before"] = i.issue_before.iter().map(|(t, n)| (t.clone(), json!(n))).collect();
        }
        if !i.ascending.is_empty() {
            out["ascending"] = i.ascending.iter().map(|&o| json!(i.operands[o].name)).collect();
        }
        if !i.early.is_empty() {
            out["early"] = i.early.iter().map(|&(o, n)| (i.operands[o].name.clone(), json!(n))).collect();
        }
        out
    }

    fn operands_json(&self, operands: &[Operand]) -> Vec<Json> {
        let one = |o: &Operand| match &o.kind {
            OperandKind::Reg { file, def, used } => {
                json!({"name": o.name, "kind": "register", "file": self.files[*file].name, "written": def, "read": used})
            }
            OperandKind::Imm { min, max, step, values } => {
                json!({"name": o.name, "kind": "immediate", "min": min, "max": max, "step": step, "values": values})
            }
            OperandKind::Label => json!({"name": o.name, "kind": "label"}),
        };
        operands.iter().map(one).collect()
    }

    fn cache_json(&self, c: &Cache, path: &str) -> Json {
        json!({
            "bytes": c.bytes, "ways": c.ways, "line_bytes": c.line_bytes,
            "replacement": format!("{:?}", c.replacement).to_lowercase(),
            "write": format!("{:?}", c.write).to_lowercase(),
            "miss_cycles": c.miss_cycles, "writeback_cycles": c.writeback_cycles,
            "source": self.source(path),
        })
    }

    /// A part of a compound as its file writes it.
    fn part_text(&self, c: &Compound, part: &CompoundPart) -> String {
        let arg = |a: &PartArg| match a {
            PartArg::Operand(i) => c.operands[*i].name.clone(),
            PartArg::Scratch(n) => format!("${n}"),
            PartArg::Reg(r) => format!("%{}", self.reg(*r).name),
            PartArg::Imm(e) => print::expression(e, self.names(&c.operands)),
        };
        let args: Vec<String> = part.args.iter().map(arg).collect();
        format!("{} {}", self.instr(part.instr).name, args.join(", ")).trim_end().to_owned()
    }
}

/// A variant's assembly without the mark of its unit.
fn without_unit(asm: &str) -> String {
    match asm.split_once(" .") {
        Some((before, after)) => format!("{before} {}", after.split_once(' ').map_or("", |x| x.1)),
        None => asm.to_owned(),
    }
}
