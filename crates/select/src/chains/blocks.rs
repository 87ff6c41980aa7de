//! The blocks that circuits are shortened in, and what is left of them.

use ciphermill_ir::low_bits::use_counts;
use ciphermill_ir::{Block, Func, Value};

/// Instructions up to which a loop is looked at. Longer ones are unrolled further than a circuit
/// is of interest.
const MOST_INSTRUCTIONS: usize = 6000;

/// Loops of one block: where code is pipelined, and iterations follow each other at intervals.
pub fn loops(func: &Func) -> Vec<Block> {
    let itself = |&b: &Block| func.blocks[b].term.targets().iter().any(|t| t.block == b);
    let short = |b: &Block| func.blocks[*b].insts.len() <= MOST_INSTRUCTIONS;
    func.layout.iter().copied().filter(itself).filter(short).collect()
}

/// Take out of a block what nothing uses any more.
pub fn sweep(func: &mut Func, block: Block) {
    func.resolve_all();
    let mut uses = use_counts(func);
    let mut insts = std::mem::take(&mut func.blocks[block].insts);
    let mut kept = Vec::with_capacity(insts.len());
    while let Some(inst) = insts.pop() {
        let data = &func.insts[inst];
        let used = |v: &Value| uses.get(v).is_some_and(|&n| n > 0);
        if !data.op.is_pure() || data.results.iter().any(used) {
            kept.push(inst);
            continue;
        }
        for a in &data.args {
            if let Some(n) = uses.get_mut(a) {
                *n -= 1;
            }
        }
    }
    kept.reverse();
    func.blocks[block].insts = kept;
}
