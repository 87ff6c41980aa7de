//! The analyses of a function that every transformation here starts from, and
//! questions about one loop.

use crate::edit;
use ciphermill_ir::cfg::{Edge, LoopData, LoopId};
use ciphermill_ir::{Block, Cfg, Dominators, Func, Loops, Terminator, Value, ValueDef};
use cranelift_entity::SecondaryMap;
use std::collections::BTreeSet;

/// Edges, dominators and loops of a function, and where its values are made.
/// Goes stale with any change of edges.
pub(crate) struct Graph {
    pub cfg: Cfg,
    pub doms: Dominators,
    pub loops: Loops,
    /// The block that defines a value, by the instruction or parameter.
    home: SecondaryMap<Value, Option<Block>>,
}

impl Graph {
    /// Takes unreachable blocks out of the layout first.
    pub(crate) fn new(func: &mut Func) -> Graph {
        edit::remove_unreachable(func);
        let cfg = Cfg::new(func);
        let doms = Dominators::new(func, &cfg);
        let loops = Loops::new(func, &cfg, &doms);
        let mut home: SecondaryMap<Value, Option<Block>> = SecondaryMap::new();
        for &block in &cfg.rpo {
            for &param in &func.blocks[block].params {
                home[param] = Some(block);
            }
            for &inst in &func.blocks[block].insts {
                for &result in &func.insts[inst].results {
                    home[result] = Some(block);
                }
            }
        }
        Graph { cfg, doms, loops, home }
    }

    pub(crate) fn data(&self, id: LoopId) -> &LoopData {
        &self.loops.loops[id]
    }

    /// Is the value made outside the loop? It is then the same in every iteration,
    /// and at hand wherever the loop is entered from.
    pub(crate) fn invariant(&self, id: LoopId, v: Value) -> bool {
        self.home[v].is_some_and(|b| !self.loops.contains(id, b))
    }

    /// The block that defines the value.
    pub(crate) fn home(&self, v: Value) -> Option<Block> {
        self.home[v]
    }

    /// Edges that enter the loop.
    pub(crate) fn entries(&self, id: LoopId) -> Vec<Edge> {
        let edges = self.cfg.preds(self.data(id).header).iter().copied();
        edges.filter(|e| !self.loops.contains(id, e.from)).collect()
    }

    /// Edges that lead back to the header.
    pub(crate) fn back_edges(&self, id: LoopId) -> Vec<Edge> {
        let edges = self.cfg.preds(self.data(id).header).iter().copied();
        edges.filter(|e| self.loops.contains(id, e.from)).collect()
    }

    /// Edges that leave the loop, in reverse postorder of their sources.
    pub(crate) fn exits(&self, id: LoopId) -> Vec<Edge> {
        let mut exits = Vec::new();
        for &from in &self.data(id).blocks {
            for (index, &to) in self.cfg.succs(from).iter().enumerate() {
                if !self.loops.contains(id, to) {
                    exits.push(Edge { from, index: index as u32 });
                }
            }
        }
        exits
    }

    /// Does the block run exactly once in every iteration of the loop that is not
    /// the last?
    pub(crate) fn every_turn(&self, id: LoopId, block: Block) -> bool {
        self.loops.innermost(block) == Some(id)
            && self.data(id).latches.iter().all(|&latch| self.doms.dominates(block, latch))
    }

    /// Blocks that a block leads to, and itself, by edges from one block to another that `goes` says yes to.
    pub(crate) fn reached(&self, from: Block, goes: impl Fn(Block, Block) -> bool) -> BTreeSet<Block> {
        let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
        while let Some(b) = open.pop() {
            open.extend(self.cfg.succs(b).iter().copied().filter(|&s| goes(b, s) && seen.insert(s)));
        }
        seen
    }

    /// The value an edge hands to a parameter of its target.
    pub(crate) fn argument(&self, func: &Func, edge: Edge, param: usize) -> Value {
        func.resolve(func.blocks[edge.from].term.targets()[edge.index as usize].args[param])
    }

    /// The value that all the edges hand to a parameter, if they agree.
    pub(crate) fn agreed(&self, func: &Func, edges: &[Edge], param: usize) -> Option<Value> {
        let first = self.argument(func, *edges.first()?, param);
        edges.iter().all(|&e| self.argument(func, e, param) == first).then_some(first)
    }

    /// The value itself, past block parameters that get the same on all edges.
    pub(crate) fn origin(&self, func: &Func, v: Value) -> Value {
        let mut v = func.resolve(v);
        for _ in 0..self.cfg.rpo.len() {
            let ValueDef::Param(block, i) = func.values[v].def else { break };
            match self.agreed(func, self.cfg.preds(block), usize::from(i)) {
                Some(from) if from != v => v = from,
                _ => break,
            }
        }
        v
    }

    /// Number of the header's parameter that the value is, if it is one.
    pub(crate) fn header_param(&self, func: &Func, id: LoopId, v: Value) -> Option<usize> {
        match func.values[v].def {
            ValueDef::Param(block, i) if block == self.data(id).header => Some(usize::from(i)),
            _ => None,
        }
    }
}

/// A branch that may leave the loop, on which the number of iterations depends.
#[derive(Clone, Copy)]
pub(crate) struct Exit {
    pub block: Block,
    pub cond: Value,
    /// The loop is left when the condition is not zero.
    pub when_true: bool,
}

impl Exit {
    /// Branches out of the loop that run once in every iteration.
    pub(crate) fn of(func: &Func, graph: &Graph, id: LoopId) -> Vec<Exit> {
        let mut found = Vec::new();
        for &block in &graph.data(id).blocks {
            if !graph.every_turn(id, block) {
                continue;
            }
            if let Terminator::Branch { cond, then, els } = &func.blocks[block].term {
                let (a, b) = (graph.loops.contains(id, then.block), graph.loops.contains(id, els.block));
                if a != b {
                    found.push(Exit { block, cond: func.resolve(*cond), when_true: b });
                }
            }
        }
        found
    }
}

/// Instructions of some blocks, by which budgets are counted: constants cost
/// nothing, a terminator counts as one.
pub(crate) fn size(func: &Func, blocks: &[Block]) -> u32 {
    let of = |&b: &Block| {
        let insts = func.blocks[b].insts.iter();
        insts.filter(|&&i| !matches!(func.insts[i].op, ciphermill_ir::Op::Const(_))).count() as u32 + 1
    };
    blocks.iter().map(of).sum()
}
