//! Calls of functions whose parameters and results are limbs, and where the tables of functions are.

use super::Lower;
use super::width::{ADDRESS_BITS, Limbs};
use ciphermill_ir::{InstData, Module, Op, SYSTEM_BASE, Space};

/// Bytes of the word that holds the system area's own address.
const ADDRESS_BYTES: usize = 4;

/// The address of a word that holds the system area's own address, if some function computes addresses in that area.
///
/// The printed program's linker fills it in. What is computed with here is the lower half of an address, and that of
/// [`SYSTEM_BASE`] is zero, as the word is.
pub(super) fn own_address(module: &mut Module) -> Option<u32> {
    module.funcs.values().find(|func| {
        let mut insts = func.layout.iter().flat_map(|&b| &func.blocks[b].insts).map(|&i| &func.insts[i]);
        insts.any(|data| match data.op {
            Op::Load(m) | Op::Store(m) => m.space == Space::System && func.as_const(data.args[0]).is_none(),
            _ => false,
        })
    })?;
    let system = &mut module.system;
    let at = system.bytes.len().next_multiple_of(ADDRESS_BYTES);
    system.bytes.resize(at + ADDRESS_BYTES, 0);
    system.own_address = Some(at as u32);
    Some(SYSTEM_BASE + at as u32)
}

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
