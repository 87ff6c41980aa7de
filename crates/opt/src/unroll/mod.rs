//! Loops unrolled: completely, by a factor, or jammed; and the versions of
//! loops that are written for trip counts seen in a run.
//!
//! A cipher spends its time in a loop over blocks around a loop over rounds. A processor that issues
//! several instructions at once needs independent operations, of many rounds or of several blocks.
//! Software pipelining needs a loop whose body is a single block. The passes here make both:
//!
//! * `distances` gives a loop that counts with a pointer a counter of its own;
//! * `spans` gives one to a loop from a value of the loop around to the same and a constant;
//! * `iterations` makes a loop of those iterations in which a condition is what it always was in a run;
//! * `specialise` writes a loop nest once more for a trip count that is not
//!   known but expected (the number of rounds by key size), behind a test, or those iterations
//!   of a loop around that have that count;
//! * `full_unroll` replaces a loop of a constant number of iterations by copies of
//!   its body;
//! * `split` makes of a loop whose two sides a condition that lasts divides a loop for either side (a branch, or
//!   [`selections`] of addresses), and
//!   `one_exit` makes one question of the two at the end of such a loop;
//! * `trace` makes a loop of their own of the iterations that take the usual way through a loop;
//! * `rotate` turns a loop of two blocks that is left between them into one of one block;
//! * `factor` makes small loops of a constant number of turns larger;
//! * `jam` makes one iteration of `k` of an outermost loop (unroll and jam), with the original loop
//!   behind it for the rest; inner loops still there are fused.
//!
//! Between them the clean-up passes run, see `lib.rs`. All of them copy code
//! in SSA form; what is used behind a loop is put together again by
//! [`repair`]. Nothing here weighs cost against gain: budgets come from the
//! caller ([`options::Unroll`]).
//!
//! How often a loop iterates is asked in two ways. [`trips`] runs the loop's
//! counters from constant starts, which is exact whatever they do. [`counted`]
//! takes a counter with a constant step and a bound that is not known, and
//! finds a single comparison that promises the next few iterations.

mod copy;
mod counted;
mod counter;
pub(crate) mod distances;
pub(crate) mod factor;
pub(crate) mod full;
pub(crate) mod graph;
mod halves;
pub(crate) mod iterations;
pub(crate) mod jam;
mod lasting;
mod nests;
pub(crate) mod one_exit;
pub mod options;
mod partial;
mod repair;
pub(crate) mod rotate;
mod selections;
pub mod sites;
pub(crate) mod spans;
pub(crate) mod specialise;
pub(crate) mod split;
pub(crate) mod trace;
pub(crate) mod trips;

use crate::edit;
use crate::options::Options;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{Func, FuncId, Module, Value};
use graph::Graph;

/// Run `f` on the functions that the options choose.
pub(crate) fn for_each_chosen(
    module: &mut Module,
    options: &Options,
    mut f: impl FnMut(&Module, FuncId, &mut Func) -> bool,
) -> bool {
    let only = &options.unroll.only;
    let chosen: Vec<FuncId> = only.iter().filter_map(|name| module.export(name)).collect();
    edit::for_each_func_id(module, |module, id, func| (only.is_empty() || chosen.contains(&id)) && f(module, id, func))
}

/// The same on each of their loops, none of which takes blocks or edges away.
fn for_each_loop(module: &mut Module, options: &Options, mut f: impl FnMut(&mut Func, &Graph, LoopId) -> bool) -> bool {
    for_each_chosen(module, options, |_, _, func| {
        let graph = Graph::new(func);
        graph.loops.loops.keys().fold(false, |changed, id| f(func, &graph, id) | changed)
    })
}

/// Other values in the place of a loop's own, behind the loop and on the edges out of it.
fn replace_behind(func: &mut Func, graph: &Graph, id: LoopId, new: impl Fn(Value) -> Value) {
    for block in func.layout.clone() {
        let inside = graph.loops.contains(id, block);
        let mut term = edit::take_term(func, block);
        let change = |v: Value| new(func.resolve(v));
        if inside {
            for target in term.targets_mut().into_iter().filter(|t| !graph.loops.contains(id, t.block)) {
                target.args.iter_mut().for_each(|a| *a = change(*a));
            }
        } else {
            term.map_values(change);
            for inst in func.blocks[block].insts.clone() {
                let args = func.insts[inst].args.iter().map(|&a| new(func.resolve(a))).collect();
                func.insts[inst].args = args;
            }
        }
        func.blocks[block].term = term;
    }
}
