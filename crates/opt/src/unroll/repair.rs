//! Values of a loop that are used behind it, once the loop has copies.
//!
//! A value defined in a loop and used outside is defined several times after
//! the loop has been copied, and which definition counts depends on where the
//! run came from. Where paths from different definitions meet, a block
//! parameter has to choose. Every block on the way from the definitions to the
//! uses is looked at; each of them that several edges lead to gets a
//! parameter, and the rest take their predecessor's value. That makes more
//! parameters than needed, which `simplify_cfg` takes out again.

use super::graph::Graph;
use ciphermill_ir::cfg::LoopId;
use ciphermill_ir::{Block, Cfg, Func, Value};
use cranelift_entity::SecondaryMap;
use std::collections::HashMap;

/// A value of a loop, or of other blocks, and the blocks outside that use it.
pub(crate) struct Escape {
    value: Value,
    /// Where it is defined.
    home: Block,
    users: Vec<Block>,
}

impl Escape {
    pub(crate) fn value(&self) -> Value {
        self.value
    }

    pub(crate) fn users(&self) -> &[Block] {
        &self.users
    }
}

/// The values of a loop that are used outside. To be asked before any edge is
/// changed.
pub(crate) fn escapes(func: &Func, graph: &Graph, id: LoopId) -> Vec<Escape> {
    escapes_of(func, graph, |b| graph.loops.contains(id, b))
}

/// The same of some blocks.
pub(crate) fn escapes_of(func: &Func, graph: &Graph, inside: impl Fn(Block) -> bool) -> Vec<Escape> {
    let mut found: Vec<Escape> = Vec::new();
    let mut at: SecondaryMap<Value, Option<u32>> = SecondaryMap::new();
    for &user in graph.cfg.rpo.iter().filter(|&&b| !inside(b)) {
        let mut note = |v: Value| {
            let v = func.resolve(v);
            let Some(home) = graph.home(v).filter(|&b| inside(b)) else { return };
            let i = *at[v].get_or_insert_with(|| {
                found.push(Escape { value: v, home, users: Vec::new() });
                found.len() as u32 - 1
            });
            let users = &mut found[i as usize].users;
            if users.last() != Some(&user) {
                users.push(user);
            }
        };
        for &inst in &func.blocks[user].insts {
            func.insts[inst].args.iter().for_each(|&v| note(v));
        }
        func.blocks[user].term.for_each_value(note);
    }
    found
}

/// Give every use outside the definition that reaches it. `definitions` names
/// blocks and the value an escaped one has at their end, given the value and
/// its block; every path to a use passes one of them. Edges are final.
pub(crate) fn rejoin(func: &mut Func, escapes: &[Escape], definitions: impl Fn(Value, Block) -> Vec<(Block, Value)>) {
    if escapes.is_empty() {
        return;
    }
    let cfg = Cfg::new(func);
    for escape in escapes {
        let ends: HashMap<Block, Value> = definitions(escape.value, escape.home).into_iter().collect();
        rejoin_one(func, &cfg, escape, &ends);
    }
}

fn rejoin_one(func: &mut Func, cfg: &Cfg, escape: &Escape, ends: &HashMap<Block, Value>) {
    // Blocks at whose start the value is wanted, and what it is there.
    let mut wanted: Vec<Block> = Vec::new();
    let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut at_start: SecondaryMap<Block, Option<Value>> = SecondaryMap::new();
    let ty = func.ty(escape.value);
    let mut work: Vec<Block> = escape.users.iter().rev().copied().filter(|&b| cfg.is_reachable(b)).collect();
    while let Some(block) = work.pop() {
        if std::mem::replace(&mut seen[block], true) {
            continue;
        }
        wanted.push(block);
        if cfg.preds(block).len() > 1 {
            at_start[block] = Some(func.add_param(block, ty));
        }
        work.extend(cfg.preds(block).iter().map(|e| e.from).filter(|b| !ends.contains_key(b)));
    }
    for &block in &wanted {
        let mut chain = Vec::new();
        let mut at = block;
        let value = loop {
            if let Some(v) = at_start[at] {
                break v;
            }
            chain.push(at);
            let Some(edge) = cfg.preds(at).first() else { break escape.value };
            if let Some(&v) = ends.get(&edge.from) {
                break v;
            }
            at = edge.from;
        };
        for b in chain {
            at_start[b] = Some(value);
        }
    }
    for &block in &wanted {
        if cfg.preds(block).len() < 2 {
            continue;
        }
        for edge in cfg.preds(block) {
            let value = ends.get(&edge.from).copied().or(at_start[edge.from]).unwrap_or(escape.value);
            func.blocks[edge.from].term.targets_mut()[edge.index as usize].args.push(value);
        }
    }
    for &user in &escape.users {
        let Some(value) = at_start[user] else { continue };
        substitute(func, user, escape.value, value);
    }
}

/// Replace a value in one block.
pub(crate) fn substitute(func: &mut Func, block: Block, old: Value, new: Value) {
    if old == new {
        return;
    }
    for i in 0..func.blocks[block].insts.len() {
        let inst = func.blocks[block].insts[i];
        for arg in &mut func.insts[inst].args {
            if *arg == old {
                *arg = new;
            }
        }
    }
    func.blocks[block].term.map_values(|v| if v == old { new } else { v });
}
