//! Between which numbers values lie, as far as single operations tell.
//!
//! A loop hands values on from turn to turn: a root of unity that each turn multiplies anew lies between the same
//! numbers in all of them. So what a block's parameter may be is what is handed to it on any edge, the least solution of that.

use super::residue::Range;
use ciphermill_ir::bits::Masks;
use ciphermill_ir::{BinOp, Func, InstData, Op, UnOp, Value, ValueDef, ops};
use std::collections::HashMap;

/// The ranges of a function's values.
pub struct Ranges<'a> {
    func: &'a Func,
    masks: &'a Masks,
    /// Of the parameters that something is handed to.
    params: HashMap<Value, Range>,
}

impl<'a> Ranges<'a> {
    pub fn new(func: &'a Func, masks: &'a Masks) -> Ranges<'a> {
        let mut ranges = Ranges { func, masks, params: HashMap::new() };
        // Each turn widens one of them at least, to one of the few ranges that operations have.
        while ranges.widened() {}
        ranges
    }

    fn widened(&mut self) -> bool {
        let func = self.func;
        let mut changed = false;
        for target in func.layout.iter().flat_map(|&b| func.blocks[b].term.targets()) {
            for (&param, &arg) in func.blocks[target.block].params.iter().zip(&target.args) {
                let Some((from, to)) = self.handed(func.resolve(arg)) else { continue };
                let old = self.params.get(&param).copied();
                let new = old.map_or((from, to), |old| (old.0.min(from), old.1.max(to)));
                changed |= old != Some(new);
                self.params.insert(param, new);
            }
        }
        changed
    }

    /// What is handed on; None where that is a parameter of which nothing is known yet.
    fn handed(&self, v: Value) -> Option<Range> {
        match self.func.values[v].def {
            ValueDef::Param(block, _) if block != self.func.entry => self.params.get(&v).copied(),
            _ => Some(self.of(v)),
        }
    }

    /// What a value may be as a number with a sign.
    pub fn of(&self, v: Value) -> Range {
        let (func, bits) = (self.func, self.func.ty(v).bits());
        if let Some(c) = func.as_const(v) {
            let c = i128::from(ops::sext(c, bits));
            return (c, c);
        }
        let known = match func.def_inst(v) {
            Some(inst) => made(func, &func.insts[inst]).map(signed),
            None => self.params.get(&func.resolve(v)).copied(),
        };
        let possible = self.masks.possible(func, v);
        match known {
            Some(known) if known.0 > signed(bits).0 || known.1 < signed(bits).1 => known,
            _ if possible >> (bits - 1) == 0 => (0, possible.into()),
            _ => signed(bits),
        }
    }
}

/// Of how many bits an operation makes a number with a sign.
fn made(func: &Func, data: &InstData) -> Option<u32> {
    match data.op {
        Op::Load(m) if m.signed => Some(8 * u32::from(m.bytes)),
        Op::Un(UnOp::SExt8) => Some(8),
        Op::Un(UnOp::SExt16) => Some(16),
        Op::Un(UnOp::SExt32) | Op::SExt => Some(32),
        Op::Bin(BinOp::ShrS) => {
            let bits = func.ty(func.resolve(data.args[0])).bits();
            func.as_const(data.args[1]).map(|by| bits - by as u32 % bits)
        }
        _ => None,
    }
}

/// The numbers of words of so many bits.
pub fn signed(bits: u32) -> Range {
    (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
}
