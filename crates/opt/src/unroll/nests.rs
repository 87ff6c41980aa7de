//! Two loops that share a header, told apart.
//!
//! What stands behind an inner loop and leads back to its start may lead to the inner loop's own
//! header, and compilers let it where nothing has to be done in between:
//!
//! ```text
//! head(x, i, n):  ...  branch i' ? head(x', i', n) : tail
//! tail:           ...  branch n' ? head(x'', 5, n') : out
//! ```
//!
//! As one loop it has no trip count. But a parameter that some edges back hand on as it is, and
//! others do not, is the outer loop's: the others get a header of their own, from which the
//! inner loop is entered. That is done where the outer loop then iterates a constant number of
//! times.

use super::copy;
use super::graph::{Graph, size};
use super::trips;
use crate::edit;
use ciphermill_ir::cfg::{Edge, LoopId};
use ciphermill_ir::{Block, Cfg, Func, Target, Terminator, Value};

/// Separate loops whose outer part then iterates a constant number of times, in at most `budget`
/// instructions.
pub(crate) fn separate(func: &mut Func, budget: u32) {
    loop {
        let graph = Graph::new(func);
        let several = |id: &LoopId| graph.back_edges(*id).len() > 1;
        let counted = |func: &Func, id| turns(func, &graph, id, budget);
        let shared: Vec<LoopId> = graph.loops.loops.keys().filter(several).filter(|&id| !counted(func, id)).collect();
        let Some(separated) = shared.into_iter().find_map(|id| separated(func, &graph, id, budget)) else { return };
        *func = separated;
    }
}

/// The function with the loop's outer part separated, if that gives it a trip count.
fn separated(func: &Func, graph: &Graph, id: LoopId, budget: u32) -> Option<Func> {
    let header = graph.data(id).header;
    let backs = graph.back_edges(id);
    func.blocks[header].params.iter().enumerate().find_map(|(i, &param)| {
        let own = |edge: &Edge| graph.argument(func, *edge, i) != param;
        let (mut outer, inner): (Vec<Edge>, Vec<Edge>) = backs.iter().copied().partition(own);
        if outer.is_empty() || inner.is_empty() {
            return None;
        }
        outer.extend(graph.entries(id));
        let through = |(i, &v): (usize, &Value)| inner.iter().all(|&e| graph.argument(func, e, i) == v);
        let through: Vec<bool> = func.blocks[header].params.iter().enumerate().map(through).collect();
        let mut new = func.clone();
        let front = enter(&mut new, header, &outer, &through);
        let graph = Graph::new(&mut new);
        let id = graph.loops.loops.keys().find(|&id| graph.data(id).header == front)?;
        turns(&new, &graph, id, budget).then_some(new)
    })
}

/// Has the loop a number of iterations within the budget?
fn turns(func: &Func, graph: &Graph, id: LoopId, budget: u32) -> bool {
    let limit = budget / size(func, &graph.data(id).blocks).max(1);
    trips::constant(func, graph, id, limit, &[]).is_some()
}

/// A block that the edges lead to, and that leads to the header. Its parameters serve for those
/// of the header that are handed `through` the inner loop.
fn enter(func: &mut Func, header: Block, edges: &[Edge], through: &[bool]) -> Block {
    let end = func.layout.len();
    let front = func.add_block();
    for i in 0..func.blocks[header].params.len() {
        let ty = func.ty(func.blocks[header].params[i]);
        func.add_param(front, ty);
    }
    let params = func.blocks[front].params.clone();
    func.blocks[front].term = Terminator::Jump(Target::new(header, params.clone()));
    copy::redirect(func, edges, front);
    copy::place_before(func, end, header);
    let old = func.blocks[header].params.clone();
    let keep: Vec<bool> = through.iter().map(|t| !t).collect();
    let cfg = Cfg::new(func);
    edit::retain_params(func, &cfg, header, &keep);
    for i in (0..old.len()).filter(|&i| through[i]) {
        func.replace(old[i], params[i]);
    }
    func.resolve_all();
    front
}
