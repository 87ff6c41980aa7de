//! Analyses of a function's control-flow graph: edges, order, dominators and
//! natural loops.
//!
//! All three are computed from scratch, are plain values, and go stale when
//! the graph changes; a pass that edits edges computes them again. Each is
//! linear or nearly so in the size of the graph, so that costs little.
//!
//! * [`Cfg`] lists predecessors as *edges* (block and position in its
//!   terminator), because a branch may lead to one block twice with different
//!   arguments, and orders the reachable blocks in reverse postorder: a block
//!   stands after its dominators, and after all its predecessors but those of
//!   back edges.
//! * [`Dominators`] follows Cooper, Harvey and Kennedy, "A Simple, Fast
//!   Dominance Algorithm" (2001): intersect the predecessors' dominators in
//!   reverse postorder until nothing changes. Preorder and postorder numbers
//!   of the dominator tree then answer `dominates` in constant time.
//! * [`Loops`] finds natural loops: an edge whose target dominates its source
//!   is a back edge, its target a header, and the loop is all that reaches the
//!   source without passing the header. Loops with one header are one loop.
//!   WebAssembly's control flow is reducible, so every cycle is such a loop;
//!   were a cycle without a dominating header ever made, it would count as no
//!   loop, which is safe for every user of the analysis.

use crate::func::{Block, Func};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityList, ListPool, PrimaryMap, SecondaryMap, entity_impl};
use smallvec::SmallVec;

/// A control-flow edge, named by its source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Edge {
    /// The block the edge leaves.
    pub from: Block,
    /// Position among `Terminator::targets` of `from`.
    pub index: u32,
}

/// Predecessors, successors and order of the blocks reachable from the entry.
#[derive(Clone)]
pub struct Cfg {
    preds: SecondaryMap<Block, SmallVec<[Edge; 2]>>,
    succs: SecondaryMap<Block, SmallVec<[Block; 2]>>,
    /// Reachable blocks in reverse postorder; the entry is first.
    pub rpo: Vec<Block>,
    /// Position in `rpo` plus one, 0 for unreachable blocks.
    order: SecondaryMap<Block, u32>,
}

impl Cfg {
    pub fn new(func: &Func) -> Cfg {
        let blocks = func.blocks.len();
        let mut cfg = Cfg {
            preds: SecondaryMap::with_capacity(blocks),
            succs: SecondaryMap::with_capacity(blocks),
            rpo: Vec::new(),
            order: SecondaryMap::with_capacity(blocks),
        };
        // Depth-first with an explicit stack: input may nest deeply.
        let mut seen: SecondaryMap<Block, bool> = SecondaryMap::with_capacity(blocks);
        let mut stack = vec![(func.entry, 0usize)];
        seen[func.entry] = true;
        cfg.succs[func.entry] = successors(func, func.entry);
        while let Some((block, next)) = stack.last_mut() {
            if let Some(&succ) = cfg.succs[*block].get(*next) {
                *next += 1;
                if !seen[succ] {
                    seen[succ] = true;
                    cfg.succs[succ] = successors(func, succ);
                    stack.push((succ, 0));
                }
            } else {
                cfg.rpo.push(*block);
                stack.pop();
            }
        }
        cfg.rpo.reverse();
        for (i, &block) in cfg.rpo.iter().enumerate() {
            cfg.order[block] = i as u32 + 1;
            for (index, &succ) in cfg.succs[block].iter().enumerate() {
                cfg.preds[succ].push(Edge { from: block, index: index as u32 });
            }
        }
        cfg
    }

    /// Edges into a block from reachable blocks, in reverse postorder of their
    /// sources.
    pub fn preds(&self, block: Block) -> &[Edge] {
        &self.preds[block]
    }

    /// Targets of a block's terminator in its order, repetitions included;
    /// empty for unreachable blocks.
    pub fn succs(&self, block: Block) -> &[Block] {
        &self.succs[block]
    }

    pub fn is_reachable(&self, block: Block) -> bool {
        self.order[block] != 0
    }
}

fn successors(func: &Func, block: Block) -> SmallVec<[Block; 2]> {
    func.blocks[block].term.targets().iter().map(|t| t.block).collect()
}

/// The dominator tree of the reachable blocks.
#[derive(Clone)]
pub struct Dominators {
    idom: SecondaryMap<Block, PackedOption<Block>>,
    children: SecondaryMap<Block, EntityList<Block>>,
    pool: ListPool<Block>,
    /// Preorder and postorder numbers in the tree; (0, 0) when unreachable.
    span: SecondaryMap<Block, (u32, u32)>,
    preorder: Vec<Block>,
}

impl Dominators {
    pub fn new(func: &Func, cfg: &Cfg) -> Dominators {
        let rpo = &cfg.rpo;
        let mut idom: Vec<usize> = vec![usize::MAX; rpo.len()];
        idom[0] = 0;
        let mut changed = true;
        while changed {
            changed = false;
            for i in 1..rpo.len() {
                let mut best = usize::MAX;
                for edge in cfg.preds(rpo[i]) {
                    let p = cfg.order[edge.from] as usize - 1;
                    if idom[p] == usize::MAX {
                        continue;
                    }
                    best = if best == usize::MAX { p } else { intersect(&idom, best, p) };
                }
                if idom[i] != best {
                    idom[i] = best;
                    changed = true;
                }
            }
        }
        let mut doms = Dominators {
            idom: SecondaryMap::with_capacity(func.blocks.len()),
            children: SecondaryMap::with_capacity(func.blocks.len()),
            pool: ListPool::new(),
            span: SecondaryMap::with_capacity(func.blocks.len()),
            preorder: Vec::with_capacity(rpo.len()),
        };
        for i in 1..rpo.len() {
            let parent = rpo[idom[i]];
            doms.idom[rpo[i]] = Some(parent).into();
            doms.children[parent].push(rpo[i], &mut doms.pool);
        }
        doms.number(func.entry);
        doms
    }

    fn number(&mut self, entry: Block) {
        let mut clock = 1;
        let mut stack = vec![(entry, 0usize)];
        self.span[entry].0 = clock;
        self.preorder.push(entry);
        while let Some((block, next)) = stack.last_mut() {
            clock += 1;
            if let Some(child) = self.children[*block].get(*next, &self.pool) {
                *next += 1;
                self.span[child].0 = clock;
                self.preorder.push(child);
                stack.push((child, 0));
            } else {
                self.span[*block].1 = clock;
                stack.pop();
            }
        }
    }

    /// The immediate dominator; none for the entry and unreachable blocks.
    pub fn idom(&self, block: Block) -> Option<Block> {
        self.idom[block].expand()
    }

    /// The blocks whose immediate dominator is `block`, in reverse postorder.
    pub fn children(&self, block: Block) -> &[Block] {
        self.children[block].as_slice(&self.pool)
    }

    /// Reachable blocks in preorder of the tree: each after its dominators.
    pub fn preorder(&self) -> &[Block] {
        &self.preorder
    }

    /// True when every path from the entry to `b` passes `a`; a block
    /// dominates itself. False when either is unreachable.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        let ((a0, a1), (b0, b1)) = (self.span[a], self.span[b]);
        a0 != 0 && b0 != 0 && a0 <= b0 && b1 <= a1
    }
}

fn intersect(idom: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while a > b {
            a = idom[a];
        }
        while b > a {
            b = idom[b];
        }
    }
    a
}

/// A natural loop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoopId(u32);
entity_impl!(LoopId, "loop");

/// One natural loop.
#[derive(Clone, Debug)]
pub struct LoopData {
    pub header: Block,
    /// Sources of the back edges, each once.
    pub latches: Vec<Block>,
    /// Every block of the loop, inner loops included, in reverse postorder.
    pub blocks: Vec<Block>,
    pub parent: Option<LoopId>,
    /// 1 for an outermost loop.
    pub depth: u32,
}

/// The natural loops of a function, outer before inner.
#[derive(Clone)]
pub struct Loops {
    pub loops: PrimaryMap<LoopId, LoopData>,
    innermost: SecondaryMap<Block, PackedOption<LoopId>>,
}

impl Loops {
    pub fn new(func: &Func, cfg: &Cfg, doms: &Dominators) -> Loops {
        let mut found = Loops { loops: PrimaryMap::new(), innermost: SecondaryMap::with_capacity(func.blocks.len()) };
        // Headers in reverse postorder: an outer loop's header dominates the
        // inner one's, so outer loops are found first and inner ones overwrite
        // `innermost`.
        for &header in &cfg.rpo {
            let mut latches: Vec<Block> =
                cfg.preds(header).iter().map(|e| e.from).filter(|&p| doms.dominates(header, p)).collect();
            latches.dedup();
            if latches.is_empty() {
                continue;
            }
            let blocks = body(cfg, header, &latches);
            let parent = found.innermost[header].expand();
            let depth = 1 + parent.map_or(0, |p| found.loops[p].depth);
            let id = found.loops.push(LoopData { header, latches, blocks, parent, depth });
            for &block in &found.loops[id].blocks {
                found.innermost[block] = Some(id).into();
            }
        }
        found
    }

    /// The innermost loop a block is part of.
    pub fn innermost(&self, block: Block) -> Option<LoopId> {
        self.innermost[block].expand()
    }

    /// How many loops surround a block.
    pub fn depth(&self, block: Block) -> u32 {
        self.innermost(block).map_or(0, |id| self.loops[id].depth)
    }

    /// True when the block is in the loop, or in a loop inside it.
    pub fn contains(&self, id: LoopId, block: Block) -> bool {
        let mut at = self.innermost(block);
        while let Some(inner) = at {
            if inner == id {
                return true;
            }
            at = self.loops[inner].parent;
        }
        false
    }
}

/// All blocks that reach a latch without passing the header.
fn body(cfg: &Cfg, header: Block, latches: &[Block]) -> Vec<Block> {
    let mut inside: SecondaryMap<Block, bool> = SecondaryMap::new();
    inside[header] = true;
    let mut blocks = vec![header];
    let mut stack = latches.to_vec();
    while let Some(block) = stack.pop() {
        if !inside[block] {
            inside[block] = true;
            blocks.push(block);
            stack.extend(cfg.preds(block).iter().map(|e| e.from));
        }
    }
    blocks.sort_by_key(|&b| cfg.order[b]);
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::func::{Target, Terminator};
    use crate::ops::Signature;
    use crate::ops::Type;

    /// A function of `n` blocks with the given edges; a block with two
    /// successors branches on the function's parameter.
    fn graph(n: usize, edges: &[(usize, usize)]) -> (Func, Vec<Block>) {
        let mut func = Func::new("g", Signature { params: vec![Type::I32], results: vec![] });
        let cond = func.blocks[func.entry].params[0];
        let mut blocks = vec![func.entry];
        blocks.extend((1..n).map(|_| func.add_block()));
        for (i, &block) in blocks.iter().enumerate() {
            let to = |t: usize| Target::new(blocks[t], vec![]);
            let out: Vec<usize> = edges.iter().filter(|e| e.0 == i).map(|e| e.1).collect();
            func.blocks[block].term = match out[..] {
                [] => Terminator::Return(vec![]),
                [a] => Terminator::Jump(to(a)),
                [a, b] => Terminator::Branch { cond, then: to(a), els: to(b) },
                [.., last] => Terminator::Switch {
                    index: cond,
                    targets: out[..out.len() - 1].iter().map(|&t| to(t)).collect(),
                    default: to(last),
                },
            };
        }
        (func, blocks)
    }

    #[test]
    fn diamond_in_nested_loops() {
        // 0 -> 1 (outer header) -> 2 (inner header) -> {3,4} -> 5 -> 2 | 6 -> 1 | 7
        let edges = [(0, 1), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5), (5, 2), (5, 6), (6, 1), (6, 7)];
        let (func, b) = graph(9, &edges);
        let cfg = Cfg::new(&func);
        let doms = Dominators::new(&func, &cfg);
        let loops = Loops::new(&func, &cfg, &doms);
        assert_eq!(cfg.rpo[0], func.entry);
        assert!(!cfg.is_reachable(b[8]));
        assert_eq!(doms.idom(b[5]), Some(b[2]));
        assert_eq!(doms.idom(b[0]), None);
        assert!(doms.dominates(b[2], b[7]) && !doms.dominates(b[3], b[5]) && doms.dominates(b[5], b[5]));
        assert!(!doms.dominates(b[0], b[8]) && !doms.dominates(b[8], b[8]));
        assert_eq!(loops.loops.len(), 2);
        let inner = loops.innermost(b[3]).unwrap();
        assert_eq!(loops.loops[inner].header, b[2]);
        assert_eq!(loops.loops[inner].latches, [b[5]]);
        assert_eq!(loops.loops[inner].blocks.len(), 4);
        let depths: Vec<u32> = b[..8].iter().map(|&x| loops.depth(x)).collect();
        assert_eq!(depths, [0, 1, 2, 2, 2, 2, 1, 0]);
        let outer = loops.loops[inner].parent.unwrap();
        assert!(loops.contains(outer, b[3]) && !loops.contains(inner, b[6]) && !loops.contains(outer, b[7]));
    }

    #[test]
    fn repeated_edges_are_separate() {
        let (func, b) = graph(2, &[(0, 1), (0, 1), (0, 1)]);
        let cfg = Cfg::new(&func);
        let edges: Vec<u32> = cfg.preds(b[1]).iter().map(|e| e.index).collect();
        assert_eq!(edges, [0, 1, 2]);
        assert_eq!(cfg.succs(b[0]), [b[1], b[1], b[1]]);
    }

    #[test]
    fn reverse_postorder_respects_forward_edges() {
        let (func, b) = graph(6, &[(0, 3), (0, 1), (1, 2), (3, 2), (2, 4), (4, 5), (4, 2)]);
        let cfg = Cfg::new(&func);
        let at = |i: usize| cfg.rpo.iter().position(|&r| r == b[i]).unwrap();
        assert!(at(0) < at(1) && at(0) < at(3) && at(1) < at(2) && at(3) < at(2) && at(4) < at(5));
    }

    /// Dominance by definition: `a` dominates `b` when removing `a` cuts `b`
    /// off from the entry.
    fn dominates_by_definition(cfg: &Cfg, entry: Block, a: Block, b: Block) -> bool {
        if a == b {
            return true;
        }
        let mut seen = vec![entry];
        let mut stack = vec![entry];
        while let Some(x) = stack.pop() {
            if x == a {
                continue;
            }
            for &s in cfg.succs(x) {
                if s != a && !seen.contains(&s) {
                    seen.push(s);
                    stack.push(s);
                }
            }
        }
        entry == a || !seen.contains(&b)
    }

    #[test]
    fn dominators_of_random_graphs_match_the_definition() {
        let mut state = 0x9E37_79B9u32;
        let mut next = move |n: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize % n
        };
        for _ in 0..200 {
            let n = 2 + next(9);
            let edges: Vec<(usize, usize)> = (0..n + next(2 * n)).map(|_| (next(n), 1 + next(n - 1))).collect();
            let (func, b) = graph(n, &edges);
            let cfg = Cfg::new(&func);
            let doms = Dominators::new(&func, &cfg);
            let reachable: Vec<Block> = b.iter().copied().filter(|&x| cfg.is_reachable(x)).collect();
            assert_eq!(doms.preorder().len(), reachable.len());
            for &x in &reachable {
                for &y in &reachable {
                    let want = dominates_by_definition(&cfg, func.entry, x, y);
                    assert_eq!(doms.dominates(x, y), want, "{x} {y} in {edges:?}");
                }
            }
        }
    }
}
