//! Inlining: the body of a called function in place of the call.
//!
//! Callees come before callers (postorder of the call graph from what can be
//! entered from outside), so a body is final when it is copied. Copied are
//! bodies that are small (a caller may say how small), and bodies with a single call in all live code,
//! unless the outside needs the function as well and it is large. A function
//! that can reach itself through calls is never copied, so this ends; bounds on
//! the size of the caller keep the result in proportion.
//!
//! The call's block is cut in two. The callee's blocks are copied between, its
//! parameters are the entry copy's block parameters, and each of its returns is
//! a jump to the second half, whose parameters are the call's results. Traps
//! stay traps. The copies keep the callee's source locations.

use crate::edit;
use crate::options::Options;
use crate::reachable::reachable_functions;
use ciphermill_ir::{Block, Func, FuncId, Inst, Module, Op, Target, Terminator, Value};
use cranelift_entity::SecondaryMap;

/// A body called once is copied up to this size.
const ONCE: usize = 4000;
/// A caller does not grow past this.
const CALLER: usize = 20_000;

pub(crate) fn run(module: &mut Module, options: &Options) -> bool {
    let small = options.inline_up_to.max(options.unroll.inline_budget) as usize;
    let graph = CallGraph::new(module);
    let mut sizes: SecondaryMap<FuncId, usize> = SecondaryMap::new();
    let mut changed = false;
    for &id in &graph.postorder {
        changed |= run_func(module, &graph, &sizes, small, id);
        sizes[id] = module.funcs[id].size();
    }
    changed
}

struct CallGraph {
    /// Live functions, callees first.
    postorder: Vec<FuncId>,
    /// Calls in live code, by callee.
    calls: SecondaryMap<FuncId, u32>,
    /// Can be entered other than by a direct call.
    outside: SecondaryMap<FuncId, bool>,
    /// Part of a cycle of calls.
    recursive: SecondaryMap<FuncId, bool>,
}

fn callees(func: &Func) -> Vec<FuncId> {
    let insts = func.layout.iter().flat_map(|&b| &func.blocks[b].insts);
    insts.filter_map(|&i| if let Op::Call(f) = func.insts[i].op { Some(f) } else { None }).collect()
}

impl CallGraph {
    fn new(module: &Module) -> CallGraph {
        let reached = reachable_functions(module);
        let mut graph = CallGraph {
            postorder: Vec::new(),
            calls: SecondaryMap::new(),
            outside: SecondaryMap::new(),
            recursive: SecondaryMap::new(),
        };
        let entries = module.exports.iter().map(|&(_, f)| f).chain(module.start);
        for id in entries.chain(module.system.func_refs.iter().map(|r| r.func)) {
            graph.outside[id] = true;
        }
        let mut out: SecondaryMap<FuncId, Vec<FuncId>> = SecondaryMap::new();
        for id in module.funcs.keys().filter(|&f| reached[f]) {
            out[id] = callees(&module.funcs[id]);
            for &callee in &out[id] {
                graph.calls[callee] += 1;
            }
        }
        graph.order(module, &reached, &out);
        graph
    }

    /// Tarjan's strongly connected components, with an explicit stack: gives
    /// postorder and cycles at once.
    fn order(
        &mut self,
        module: &Module,
        reached: &SecondaryMap<FuncId, bool>,
        out: &SecondaryMap<FuncId, Vec<FuncId>>,
    ) {
        let mut index: SecondaryMap<FuncId, u32> = SecondaryMap::new();
        let mut low: SecondaryMap<FuncId, u32> = SecondaryMap::new();
        let mut open: SecondaryMap<FuncId, bool> = SecondaryMap::new();
        let mut component: Vec<FuncId> = Vec::new();
        let mut count = 0;
        for root in module.funcs.keys().filter(|&f| reached[f]) {
            if index[root] != 0 {
                continue;
            }
            let mut stack = vec![(root, 0usize)];
            while let Some(&mut (f, ref mut next)) = stack.last_mut() {
                if *next == 0 {
                    count += 1;
                    (index[f], low[f], open[f]) = (count, count, true);
                    component.push(f);
                }
                if let Some(&callee) = out[f].get(*next) {
                    *next += 1;
                    if index[callee] == 0 {
                        stack.push((callee, 0));
                    } else if open[callee] {
                        low[f] = low[f].min(index[callee]);
                    }
                    continue;
                }
                stack.pop();
                if let Some(&(parent, _)) = stack.last() {
                    low[parent] = low[parent].min(low[f]);
                }
                if low[f] == index[f] {
                    let start = component.iter().rposition(|&c| c == f).unwrap_or(0);
                    let cycle = component.len() - start > 1 || out[f].contains(&f);
                    for c in component.drain(start..) {
                        open[c] = false;
                        self.recursive[c] = cycle;
                        self.postorder.push(c);
                    }
                }
            }
        }
    }

    fn wanted(&self, callee: FuncId, size: usize, small: usize) -> bool {
        let once = self.calls[callee] == 1 && !self.outside[callee];
        !self.recursive[callee] && (size <= small || (once && size <= ONCE))
    }
}

fn run_func(
    module: &mut Module,
    graph: &CallGraph,
    sizes: &SecondaryMap<FuncId, usize>,
    small: usize,
    id: FuncId,
) -> bool {
    let mut changed = false;
    let mut size = module.funcs[id].size();
    // Blocks that copying adds stand after the one copied into, and their
    // calls, which were not copied before, are not looked at: a callee is
    // final. So the list of blocks to look at grows by second halves only.
    let mut work: Vec<Block> = module.funcs[id].layout.iter().rev().copied().collect();
    while let Some(block) = work.pop() {
        let found = module.funcs[id].blocks[block].insts.iter().position(|&inst| {
            let Op::Call(callee) = module.funcs[id].insts[inst].op else { return false };
            // Only a recursive callee has no size yet.
            graph.wanted(callee, sizes[callee], small) && size + sizes[callee] <= CALLER
        });
        let Some(at) = found else { continue };
        let inst = module.funcs[id].blocks[block].insts[at];
        let Op::Call(callee) = module.funcs[id].insts[inst].op else { continue };
        let body = module.funcs[callee].clone();
        size += body.size();
        work.push(copy(&mut module.funcs[id], block, at, inst, &body));
        changed = true;
    }
    if changed {
        module.funcs[id].resolve_all();
    }
    changed
}

/// Replace the call at position `at` of `block` with `body`; gives the block
/// that holds what came after it.
fn copy(func: &mut Func, block: Block, at: usize, call: Inst, body: &Func) -> Block {
    let layout_end = func.layout.len();
    let place = func.layout.iter().position(|&b| b == block).map_or(layout_end, |i| i + 1);
    // Blocks and parameters first, so that branches have where to go.
    let mut blocks: SecondaryMap<Block, Block> = SecondaryMap::with_default(Block::from_u32(0));
    let mut values: SecondaryMap<Value, Value> = SecondaryMap::with_default(Value::from_u32(0));
    for &old in &body.layout {
        blocks[old] = func.add_block();
        for &param in &body.blocks[old].params {
            values[param] = func.add_param(blocks[old], body.ty(param));
        }
    }
    let rest = func.add_block();
    for result in func.insts[call].results.clone() {
        let param = func.add_param(rest, func.ty(result));
        func.replace(result, param);
    }
    // Results before operands: a use may stand in the layout above its
    // definition.
    for &old in &body.layout {
        for &inst in &body.blocks[old].insts {
            let data = &body.insts[inst];
            let types: Vec<_> = data.results.iter().map(|&v| body.ty(v)).collect();
            let new = func.append(blocks[old], data.op, &data.args, &types, data.loc);
            for (&from, &to) in data.results.iter().zip(&func.insts[new].results) {
                values[from] = to;
            }
        }
    }
    for &old in &body.layout {
        for i in 0..func.blocks[blocks[old]].insts.len() {
            let inst = func.blocks[blocks[old]].insts[i];
            for arg in &mut func.insts[inst].args {
                *arg = values[body.resolve(*arg)];
            }
        }
        let mut term = body.blocks[old].term.clone();
        term.map_values(|v| values[body.resolve(v)]);
        for target in term.targets_mut() {
            target.block = blocks[target.block];
        }
        if let Terminator::Return(results) = term {
            term = Terminator::Jump(Target::new(rest, results));
        }
        func.blocks[blocks[old]].term = term;
    }
    let mut tail = func.blocks[block].insts.split_off(at);
    tail.remove(0);
    func.blocks[rest].insts = tail;
    func.blocks[rest].term = edit::take_term(func, block);
    let args = func.insts[call].args.to_vec();
    func.blocks[block].term = Terminator::Jump(Target::new(blocks[body.entry], args));
    let new: Vec<Block> = func.layout.split_off(layout_end);
    func.layout.splice(place..place, new);
    rest
}
