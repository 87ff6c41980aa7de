//! Copies of groups of blocks.

use ciphermill_ir::cfg::Edge;
use ciphermill_ir::{Block, Func, Inst, Type, Value};
use std::collections::HashMap;

/// What became of the blocks and values of the original in one copy. The maps
/// are only looked up, never walked.
#[derive(Clone, Default)]
pub(crate) struct Copy {
    pub blocks: HashMap<Block, Block>,
    pub values: HashMap<Value, Value>,
}

impl Copy {
    /// The copy of a value, or the value itself when it was made outside.
    pub(crate) fn value(&self, func: &Func, v: Value) -> Value {
        let v = func.resolve(v);
        self.values.get(&v).copied().unwrap_or(v)
    }

    /// The copy of a block and of a value that the block defines.
    pub(crate) fn definition(&self, v: Value, home: Block) -> (Block, Value) {
        (self.block(home), self.values.get(&v).copied().unwrap_or(v))
    }

    /// The copy of a block, or the block itself when it was not copied.
    pub(crate) fn block(&self, block: Block) -> Block {
        self.blocks.get(&block).copied().unwrap_or(block)
    }
}

/// Copy blocks to the end of the layout. Branches between them lead to the
/// copies, branches elsewhere where the originals lead.
pub(crate) fn blocks(func: &mut Func, originals: &[Block]) -> Copy {
    let mut copy = Copy::default();
    for &old in originals {
        let new = func.add_block();
        copy.blocks.insert(old, new);
        for i in 0..func.blocks[old].params.len() {
            let param = func.blocks[old].params[i];
            let ty = func.ty(param);
            copy.values.insert(param, func.add_param(new, ty));
        }
    }
    // Results before operands, since blocks may come in any order.
    for &old in originals {
        for i in 0..func.blocks[old].insts.len() {
            let inst = func.blocks[old].insts[i];
            inst_into(func, copy.block(old), inst, &mut copy);
        }
    }
    for &old in originals {
        let new = copy.block(old);
        for i in 0..func.blocks[new].insts.len() {
            let inst = func.blocks[new].insts[i];
            map_operands(func, inst, &copy);
        }
        let mut term = func.blocks[old].term.clone();
        term.map_values(|v| copy.value(func, v));
        for target in term.targets_mut() {
            target.block = copy.block(target.block);
        }
        func.blocks[new].term = term;
    }
    copy
}

/// A new block with the same parameters as another.
pub(crate) fn same_params(func: &mut Func, like: Block) -> Block {
    let types: Vec<Type> = func.blocks[like].params.iter().map(|&v| func.ty(v)).collect();
    let block = func.add_block();
    for ty in types {
        func.add_param(block, ty);
    }
    block
}

/// Append a copy of an instruction to a block, operands still the original's.
pub(crate) fn inst_into(func: &mut Func, block: Block, inst: Inst, copy: &mut Copy) -> Inst {
    let data = func.insts[inst].clone();
    let types: Vec<_> = data.results.iter().map(|&v| func.ty(v)).collect();
    let new = func.append(block, data.op, &data.args, &types, data.loc);
    for (i, &result) in data.results.iter().enumerate() {
        copy.values.insert(result, func.insts[new].results[i]);
    }
    new
}

/// Turn the operands of a copied instruction into the copy's.
pub(crate) fn map_operands(func: &mut Func, inst: Inst, copy: &Copy) {
    for i in 0..func.insts[inst].args.len() {
        func.insts[inst].args[i] = copy.value(func, func.insts[inst].args[i]);
    }
}

/// Move the blocks of the layout from position `from` on to just before
/// `block`.
pub(crate) fn place_before(func: &mut Func, from: usize, block: Block) {
    let new = func.layout.split_off(from);
    let at = func.layout.iter().position(|&b| b == block).unwrap_or(func.layout.len());
    func.layout.splice(at..at, new);
}

/// Lead edges to another block, with the same arguments.
pub(crate) fn redirect(func: &mut Func, edges: &[Edge], to: Block) {
    for edge in edges {
        func.blocks[edge.from].term.targets_mut()[edge.index as usize].block = to;
    }
}
