//! Loads or stores that stand one behind the other at neighbouring addresses, as one instruction where that has fewer
//! bytes and takes no more cycles.
//!
//! Spills and reloads get their places only in allocation, so their runs are joined here, where registers happen to
//! suit. Of the program's own those are that were not worth it for their cycles
//! (`ciphermill_regalloc::runs`).

use crate::context::Emitter;
use ciphermill_machine::Reg;
use ciphermill_program::{Inst, Operand};
use ciphermill_schedule::list;
use ciphermill_vcode::runs::RunInstr;
use ciphermill_vcode::{Node, PInst, VKind};
use smallvec::smallvec;

/// One word's load or store.
struct Access {
    store: bool,
    value: Reg,
    base: Reg,
    offset: i64,
}

impl Emitter<'_> {
    /// The block's instructions with runs joined; `end` is the branch behind them.
    pub(super) fn joined(&self, mut body: Vec<PInst>, end: Option<&PInst>) -> Vec<PInst> {
        let longest = self.runs.several().iter().filter(|r| !r.moves).map(|r| r.values.len()).max().unwrap_or(0);
        let node = |p: &PInst| self.facts.node(self.machine, &p.inst, p.kind, p.mem);
        let cycles = |body: &[PInst]| list::cycles(&body.iter().chain(end).map(node).collect::<Vec<Node>>());
        let mut at = 0;
        while longest > 0 && at + 1 < body.len() {
            let most = longest.min(body.len() - at);
            let found = (2..=most).rev().find_map(|n| self.run(&body[at..at + n]).map(|made| (n, made)));
            if let Some((n, made)) = found {
                let mut other = body.clone();
                other.splice(at..at + n, [made]);
                if cycles(&other) <= cycles(&body) {
                    body = other;
                }
            }
            at += 1;
        }
        body
    }

    fn access(&self, p: &PInst) -> Option<Access> {
        let single = self.runs.single(p.inst.instr)?;
        p.mem.filter(|m| m.aligned && p.kind == VKind::Normal && p.inst.trap.is_none())?;
        let offset = match single.displacement.map(|d| p.inst.operands[d]) {
            Some(Operand::Imm(d)) => d,
            Some(_) => return None,
            None => 0,
        };
        match (p.inst.operands[single.base], p.inst.operands[single.values[0]]) {
            (Operand::Reg(base), Operand::Reg(value)) => Some(Access { store: single.store, value, base, offset }),
            _ => None,
        }
    }

    /// These as one instruction of fewer bytes.
    fn run(&self, parts: &[PInst]) -> Option<PInst> {
        let mut words = parts.iter().map(|p| Some((self.access(p)?, p))).collect::<Option<Vec<_>>>()?;
        // Whoever loads its own base loads it last.
        let (_, before) = words.split_last()?;
        let (store, base) = (words[0].0.store, words[0].0.base);
        let together = words.iter().all(|(a, _)| a.store == store && a.base == base);
        let kept = store || before.iter().all(|(a, _)| a.value != base);
        words.sort_by_key(|(a, _)| a.offset);
        let word = self.runs.word();
        let neighbours = words.windows(2).all(|w| w[1].0.offset == w[0].0.offset + word);
        if !(together && kept && neighbours) {
            return None;
        }
        let mem = words[1..].iter().fold(words[0].1.mem, |m, (_, p)| m.zip(p.mem).map(|(m, next)| m.joined(&next)));
        let short = |inst: &Inst| {
            let mut inst = inst.clone();
            self.encodings.shorten(&mut inst);
            inst.bytes(self.machine)
        };
        let bytes: u32 = parts.iter().map(|p| short(&p.inst)).sum();
        let accesses: Vec<&Access> = words.iter().map(|w| &w.0).collect();
        let suits = |r: &&RunInstr| !r.moves && r.store == store && r.values.len() == parts.len();
        let made = self.runs.several().iter().filter(suits).find_map(|r| {
            let inst = self.of(r, &accesses, &parts[0].inst)?;
            (inst.bytes(self.machine) < bytes).then_some(inst)
        });
        made.map(|inst| PInst { inst, mem, kind: VKind::Normal })
    }

    /// The instruction for these words, if their registers and its displacement suit.
    fn of(&self, run: &RunInstr, words: &[&Access], like: &Inst) -> Option<Inst> {
        let spec = &self.machine.instrs[usize::from(run.instr.0)];
        let offset = words[0].offset;
        let reached = match run.displacement {
            Some(d) => spec.operands[d].kind.imm_for(offset as u64, self.machine.word_bits) == Some(offset),
            None => offset == 0,
        };
        let mut operands = smallvec![Operand::Imm(offset); spec.operands.len()];
        operands[run.base] = Operand::Reg(words[0].base);
        run.values.iter().zip(words).for_each(|(&v, w)| operands[v] = Operand::Reg(w.value));
        let register = |at: usize| if let Operand::Reg(r) = operands[at] { Some(r) } else { None };
        let fits = spec.only.iter().all(|(at, list)| register(*at).is_none_or(|r| list.contains(&r)));
        let numbers: Vec<_> = spec.ascending.iter().filter_map(|&at| register(at)).map(|r| r.0).collect();
        let distinct = run.store || (1..words.len()).all(|n| words[..n].iter().all(|w| w.value != words[n].value));
        let suits = reached && fits && distinct && numbers.is_sorted_by(|a, b| a < b);
        suits.then(|| Inst { instr: run.instr, operands, ..like.clone() })
    }
}
