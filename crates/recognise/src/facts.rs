//! What is known of a function before anything is looked for in it.

use super::sums::Sums;
use super::values::Values;
use ciphermill_ir::bits::Masks;
use ciphermill_ir::{DataSegment, Func, Inst, Type, Value};

/// A function and its values.
pub struct Facts<'a> {
    pub func: &'a Func,
    pub masks: Masks,
    pub sums: Sums,
    pub values: Values,
    /// The machine's words.
    pub word: Type,
}

impl<'a> Facts<'a> {
    /// Of a function, if memory holds `data` when its module starts; without data it has no tables.
    pub fn new(func: &'a Func, data: &[DataSegment], word: Type) -> Facts<'a> {
        let masks = Masks::new(func);
        let (sums, values) = (Sums::new(func, &masks), Values::new(func, &masks, data, word.bits()));
        Facts { func, masks, sums, values, word }
    }

    /// A mask of the bits that a value may have.
    pub fn possible(&self, v: Value) -> u64 {
        self.masks.possible(self.func, v)
    }

    pub fn insts(&self) -> impl Iterator<Item = Inst> + use<'a> {
        let func = self.func;
        func.layout.iter().flat_map(|&b| &func.blocks[b].insts).copied()
    }

    /// All that instructions compute.
    pub fn results(&self) -> impl Iterator<Item = Value> + use<'a> {
        let func = self.func;
        self.insts().flat_map(|i| &func.insts[i].results).copied()
    }
}
