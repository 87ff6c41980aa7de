//! Loop rotation: a loop with its exit in the middle gets it at the end.
//!
//! `for (;;) { a; if (done) break; b; }` has two blocks, and scalar promotion and software pipelining
//! need one. Written `a; while (!done) { b; a; }` it has one, at the price of a second `a`:
//!
//! ```text
//! A: ..  branch done ? out : B          A': ..  branch done ? out : B
//! B: ..  jump A                   ->    B: ..  A: ..  branch done ? out : B
//! ```
//!
//! Loops that are to be unrolled completely have been by now.

use super::copy;
use super::graph::{Graph, size};
use super::repair;
use crate::options::Options;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{Block, Func, Module, Terminator};

/// Instructions that may stand a second time: as many as a loop may have that is pipelined
/// (`crates/pipeline/src/body.rs`).
const TWICE: u32 = 10_000;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    options.unroll.full_budget > 0
        && super::for_each_chosen(module, options, |_, _, func| {
            let mut changed = false;
            // A rotated loop has its exit at the end, so this terminates.
            loop {
                let graph = Graph::new(func);
                let found = graph.loops.loops.keys().find_map(|id| Some((id, middle(func, &graph, id)?)));
                let Some((id, header)) = found else { return changed };
                turn(func, &graph, id, header);
                changed = true;
            }
        })
}

/// The header of a loop of two blocks that is left between them, and there alone.
fn middle(func: &Func, graph: &Graph, id: LoopId) -> Option<Block> {
    let data = graph.data(id);
    let [a, b] = data.blocks[..] else { return None };
    let other = if a == data.header { b } else { a };
    let header = data.header;
    let Terminator::Branch { then, els, .. } = &func.blocks[header].term else { return None };
    let between = (then.block == other) != (els.block == other) && then.block != header && els.block != header;
    let back = matches!(&func.blocks[other].term, Terminator::Jump(to) if to.block == header);
    (between && back && size(func, &[header]) <= TWICE).then_some(header)
}

fn turn(func: &mut Func, graph: &Graph, id: LoopId, header: Block) {
    let escapes = repair::escapes_of(func, graph, |b| b == header);
    let layout_end = func.layout.len();
    let copy = copy::blocks(func, &[header]);
    copy::redirect(func, &graph.entries(id), copy.block(header));
    copy::place_before(func, layout_end, header);
    repair::rejoin(func, &escapes, |v, home| vec![copy.definition(v, home), (home, v)]);
}
