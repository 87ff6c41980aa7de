//! Words of the frame that a pipelined loop keeps values in: like registers, what is stored there is what is loaded.

use crate::code::{Arg, Fault, Inst, Storage};
use crate::exec::{Exec, destination};
use crate::rules::Effect;
use crate::state::State;
use crate::terms::{Map, Term};
use ciphermill_ir::Space;
use ciphermill_machine::OperandKind;
use ciphermill_machine::sem::Expr;

impl Exec<'_> {
    /// The offset of a word of the frame that is like a register, where an instruction is its load or store.
    pub fn framed(&mut self, state: &State, inst: &Inst, effect: &Effect) -> Result<Option<i64>, Fault> {
        if inst.space != Space::Stack || self.frame.words.is_empty() || effect.loads == effect.stores {
            return Ok(None);
        }
        let offset = inst.args.iter().find_map(|a| if let Arg::Imm(v) = a { Some(*v) } else { None });
        if inst.args.contains(&Arg::Reg(self.frame.stack_pointer)) {
            return Ok(offset.filter(|o| self.frame.words.contains(o)));
        }
        let (Some(base), Some(offset)) = (base(effect), offset) else { return Ok(None) };
        let Some(at) = self.operand(state, inst, base) else { return Ok(None) };
        if self.rules.machine.word_bits <= 32 {
            // Sums are modulo 2^32.
            let sp = self.read(state, self.frame.stack_pointer);
            let [at, sp] = [at, sp].map(|term| self.sums.of(&self.terms, term));
            let far = at.plus(&sp.times(u32::MAX)).known().map(|far| i64::from(far as i32) + offset);
            return Ok(far.filter(|far| self.frame.words.contains(far)));
        }
        if offset != 0 {
            return Ok(None);
        }
        if self.frame.addresses.is_none() {
            self.frame.addresses = Some(self.addresses(state)?);
        }
        Ok(self.frame.addresses.as_ref().and_then(|known| known.get(&at).copied()))
    }

    /// What the machine's addition makes of the stack pointer and each word's offset, where it reaches that.
    fn addresses(&mut self, state: &State) -> Result<Map<Term, i64>, Fault> {
        let (sp, words) = (self.frame.stack_pointer, self.frame.words.clone());
        let rules = self.rules;
        let add = rules.machine.abi.ops.add_imm;
        let mut found = Map::default();
        for offset in words {
            let arg = |kind: &OperandKind| match kind {
                OperandKind::Reg { .. } => Some(Arg::Reg(sp)),
                _ => kind.imm_for(offset as u64, rules.machine.word_bits).map(Arg::Imm),
            };
            let args: Option<_> = rules.instr(add).operands.iter().map(|o| arg(&o.kind)).collect();
            let Some(args) = args else { continue };
            let inst = Inst { instr: add, args, predicate: None, space: Space::System, access: None, traps: false };
            let at = self.whole(state, &inst, rules.effect(add), None)?;
            found.insert(at, offset);
        }
        Ok(found)
    }

    pub fn word(
        &mut self,
        state: &State,
        inst: &Inst,
        offset: i64,
        effect: &Effect,
        writes: &mut Vec<(Storage, Term, u32)>,
        stored: &mut Vec<(i64, Term)>,
    ) -> Result<(), Fault> {
        let sp = self.frame.stack_pointer;
        if effect.loads {
            let [r] = effect.results.as_slice() else {
                return Err(self.fault(inst, "it loads two words of the frame"));
            };
            let register = destination(inst, &r.dest).ok_or_else(|| self.fault(inst, "its result has no register"))?;
            let value = state.word(&mut self.terms, offset);
            writes.push((register, value, r.latency));
            return Ok(());
        }
        let beside = |o: usize| inst.args.contains(&Arg::Reg(sp)) || base(effect) != Some(o);
        let values = effect.reads.iter().filter_map(|&o| match inst.args.get(o) {
            Some(Arg::Reg(r)) if *r != sp && beside(o) => Some(*r),
            _ => None,
        });
        let [value] = values.collect::<Vec<_>>()[..] else {
            return Err(self.fault(inst, "it stores no word of the frame"));
        };
        if stored.iter().any(|k| k.0 == offset) {
            return Err(self.fault(inst, "two stores to one word of the frame stand in one cycle"));
        }
        let value = self.read(state, value);
        stored.push((offset, value));
        Ok(())
    }
}

/// The register in an address that is a register and a displacement.
fn base(effect: &Effect) -> Option<usize> {
    match &effect.address.as_ref()?.0 {
        Expr::Operand(o) => Some(*o),
        Expr::Bin { a, b, .. } => match (&**a, &**b) {
            (Expr::Operand(o), Expr::Imm(_)) | (Expr::Imm(_), Expr::Operand(o)) => Some(*o),
            _ => None,
        },
        _ => None,
    }
}
