//! Calls of functions whose parameters and results are limbs, and where the system area with their tables begins.

use super::Lower;
use super::width::{ADDRESS_BITS, Limbs};
use ciphermill_ir::{InstData, Op, SYSTEM_BASE};

impl Lower<'_> {
    /// A call: all limbs of the arguments; of a pointer to code those of an address, as one operand.
    pub(super) fn call(&mut self, data: &InstData) {
        let count = self.count();
        let mut args = Vec::new();
        let mut values = &data.args[..];
        if let (Op::CallPtr(_), [target, rest @ ..]) = (data.op, values) {
            let limbs = self.limbs(*target);
            args.push(self.pointer(&limbs[..(ADDRESS_BITS / self.narrow.bits) as usize]));
            values = rest;
        }
        args.extend(self.all(values));
        let results = self.emit.results(data.op, &args, data.results.len() * count);
        for (n, &result) in data.results.iter().enumerate() {
            self.map[result] = Some(results[n * count..][..count].iter().copied().collect());
        }
    }

    /// Where the system area begins, in the limbs of an address; loaded once in a block.
    pub(super) fn system_start(&mut self) -> Limbs {
        if let Some((block, limbs)) = &self.system_start
            && *block == self.emit.block
        {
            return limbs.clone();
        }
        let from = self.own_address.unwrap_or(SYSTEM_BASE);
        let limbs: Limbs =
            (0..(ADDRESS_BITS / self.narrow.bits) as usize).map(|k| self.emit.load_word(from, k)).collect();
        self.system_start = Some((self.emit.block, limbs.clone()));
        limbs
    }
}
