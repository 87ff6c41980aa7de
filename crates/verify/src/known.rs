//! What is known of the values that a symbolic run makes, beside that they are terms: sums and bits.

use crate::bits;
use crate::code::Inst;
use crate::exec::Exec;
use crate::rules;
use crate::state::State;
use crate::sums::{self, Sum};
use crate::terms::Term;
use ciphermill_machine::sem::{Dest, Expr};
use smallvec::SmallVec;

/// The terms in an instruction's register operands.
type Operands = SmallVec<[Option<Term>; 4]>;

impl Exec<'_> {
    /// What is known of the term that is an instruction's result.
    pub fn made(&mut self, state: &State, inst: &Inst, result: &rules::Result, value: Term) {
        let read = self.operands(state, inst);
        let sum = result.sum.as_ref().and_then(|form| self.sum(inst, form, &read));
        let bits = self.with_bits(inst, &read, |reader| {
            let whole = if let Dest::Operand(o) = result.dest { reader.register(o) } else { u64::MAX };
            reader.of(&result.meaning) & whole
        });
        if let Some(sum) = sum {
            self.sums.say(value, sum);
        }
        self.sums.say_bits(value, bits);
    }

    /// The terms in an instruction's register operands.
    pub fn operands(&mut self, state: &State, inst: &Inst) -> Operands {
        (0..inst.args.len()).map(|o| self.operand(state, inst, o)).collect()
    }

    fn with_bits<T>(&self, inst: &Inst, read: &Operands, f: impl FnOnce(&bits::Reader<'_>) -> T) -> T {
        let held = |o: usize| read.get(o).copied().flatten().map_or(u64::MAX, |t| self.sums.bits(&self.terms, t));
        let (machine, instr) = (&*self.rules.machine, self.rules.instr(inst.instr));
        f(&bits::Reader::new(machine, instr, inst, &held))
    }

    /// The sum that an expression of an instruction is.
    pub fn sum(&self, inst: &Inst, form: &Expr, read: &Operands) -> Option<Sum> {
        let held = |o: usize| Some(self.sums.of(&self.terms, read.get(o).copied()??));
        self.with_bits(inst, read, |reader| sums::sum(inst, form, &held, reader))
    }
}
