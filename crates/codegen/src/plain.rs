//! Loops that are not software-pipelined, and why not.
//!
//! The reason is found in several places: in the loop's control flow, while its body is read, or when a
//! search fails. Here each such loop gets one reason, the first that holds, as a word for programs and
//! as a sentence.

use ciphermill_pipeline::refused::{Reason, Refused};
use ciphermill_vcode::{VFunc, VKind};
use std::collections::{BTreeMap, BTreeSet};

/// Why no loop of a program is.
pub fn of_program(explicit: bool, level: u8, plain: bool) -> Option<Reason> {
    if !explicit {
        let why = "the machine takes instructions one after the other and finds itself which may overlap; loops are pipelined \
                   where the code says what issues together";
        return Some(Reason::new("machine", why));
    }
    match level {
        0 => Some(Reason::new("level", "at level 0 no loop is")),
        _ if plain => {
            Some(Reason::new("size", "the code is to be small, and it would have a prologue and an epilogue"))
        }
        _ => None,
    }
}

/// A loop: its header, and all its blocks in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    pub header: u32,
    pub blocks: Vec<u32>,
}

/// The natural loops of a function.
pub fn loops(func: &VFunc) -> Vec<Loop> {
    let mut preds = vec![Vec::new(); func.blocks.len()];
    for (b, block) in func.blocks.iter().enumerate() {
        block.succs.iter().for_each(|s| preds[s.0 as usize].push(b as u32));
    }
    let mut found: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (header, before) in preds.iter().enumerate() {
        let header = header as u32;
        let mut work: Vec<u32> = before.iter().copied().filter(|&b| func.dominates(header, b)).collect();
        if work.is_empty() {
            continue;
        }
        let members = found.entry(header).or_default();
        members.insert(header);
        while let Some(b) = work.pop() {
            if members.insert(b) {
                work.extend(&preds[b as usize]);
            }
        }
    }
    found.into_iter().map(|(header, blocks)| Loop { header, blocks: blocks.into_iter().collect() }).collect()
}

/// The loops that are left in a function, each with its reason.
pub fn reasons(func: &VFunc, refused: &Refused, all: Option<&Reason>) -> Vec<(Loop, Reason)> {
    let found = loops(func);
    let headers: BTreeSet<u32> = found.iter().map(|l| l.header).collect();
    let reason = |l: &Loop| -> Reason {
        if let Some(r) = all {
            return r.clone();
        }
        if let Some(r) = refused.get(&func.blocks[l.header as usize].params) {
            return r.clone();
        }
        let insts = || l.blocks.iter().flat_map(|&b| &func.blocks[b as usize].insts);
        if insts().any(|i| i.kind == VKind::Call) {
            return Reason::new("calls", "it calls a function");
        }
        let inner =
            l.blocks.iter().any(|b| *b != l.header && headers.contains(b)) || insts().any(|i| i.kind == VKind::Kernel);
        if inner {
            return Reason::new("inner_loop", "another loop stands in it");
        }
        match l.blocks.len() {
            1 => Reason::new("form", "it does not end in a branch back to its beginning"),
            n => Reason::new(
                "blocks",
                format!("it has {n} blocks, because a condition decides inside it, and only loops of one block are"),
            ),
        }
    };
    found.iter().map(|l| (l.clone(), reason(l))).collect()
}

#[cfg(test)]
mod tests {
    use super::{Loop, Reason, Refused, loops, reasons};
    use ciphermill_vcode::{VBlock, VFunc};

    /// Blocks by their successors, with immediate dominators.
    fn func(succs: &[&[u32]], idom: &[Option<u32>]) -> VFunc {
        let block = |s: &&[u32]| VBlock { succs: s.iter().map(|&b| (b, vec![])).collect(), ..VBlock::default() };
        let blocks = succs.iter().map(block).collect();
        VFunc {
            name: "f".into(),
            blocks,
            idom: idom.to_vec(),
            vregs: 0,
            has_calls: false,
            params: 0,
            results: 0,
            files: vec![],
        }
    }

    #[test]
    fn each_loop_has_its_reason() {
        // Blocks 1 to 3 are a loop that may skip 2, block 4 is one by itself, both in 5's loop.
        let f = func(
            &[&[1], &[2, 3], &[3], &[1, 4], &[4, 5], &[1, 6], &[]],
            &[None, Some(0), Some(1), Some(1), Some(3), Some(4), Some(5)],
        );
        assert_eq!(loops(&f)[0], Loop { header: 1, blocks: vec![1, 2, 3, 4, 5] });
        assert_eq!(loops(&f)[1], Loop { header: 4, blocks: vec![4] });
        let words = |all: Option<&Reason>| -> Vec<&str> {
            reasons(&f, &Refused::new(), all).iter().map(|r| r.1.word).collect()
        };
        assert_eq!(words(None), ["inner_loop", "form"]);
        assert_eq!(words(Some(&Reason::new("level", ""))), ["level", "level"]);
        let straight = func(&[&[1], &[2, 3], &[3], &[1, 4], &[]], &[None, Some(0), Some(1), Some(1), Some(3)]);
        let found = reasons(&straight, &Refused::new(), None);
        assert_eq!(found[0].1.word, "blocks");
        assert!(found[0].1.why.contains("3 blocks"), "{}", found[0].1.why);
    }
}
