//! Traces: a long block, and successors at the same loop depth that have no other predecessor, such
//! as the block on a loop's back edge.

use ciphermill_vcode::VFunc;

pub struct Trace {
    pub blocks: Vec<usize>,
    /// The last block goes back to the first and nowhere else.
    pub is_loop: bool,
}

/// Predecessors of each block.
pub fn predecessors(func: &VFunc) -> Vec<Vec<usize>> {
    let mut preds = vec![Vec::new(); func.blocks.len()];
    for (b, block) in func.blocks.iter().enumerate() {
        block.succs.iter().for_each(|s| preds[s.0 as usize].push(b));
    }
    preds
}

impl Trace {
    pub fn new(func: &VFunc, first: usize, preds: &[Vec<usize>], taken: &[bool]) -> Trace {
        let succs = |b: usize| func.blocks[b].succs.iter().map(|s| s.0 as usize);
        let depth = func.blocks[first].loop_depth;
        let mut blocks = vec![first];
        let mut last = first;
        loop {
            let goes_on = |s: &usize| {
                preds[*s].len() == 1
                    && !taken[*s]
                    && !blocks.contains(s)
                    && *s > 0
                    && func.blocks[*s].loop_depth == depth
            };
            let Some(next) = succs(last).filter(goes_on).min_by_key(|&s| (!succs(s).any(|t| t == first), s)) else {
                break;
            };
            blocks.push(next);
            last = next;
        }
        let is_loop = succs(last).eq([first]) && first > 0;
        Trace { blocks, is_loop }
    }
}
