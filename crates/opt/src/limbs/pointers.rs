//! Loads through one pointer, next to each other.
//!
//! A machine of narrow words has few registers that an address can be in, and so a change from one pointer to another and
//! back costs moves. Where loads through two pointers alternate, as when a block is added to a key, those through the first
//! one are made first. Nothing moves over a store or a call.

use ciphermill_ir::{BinOp, Func, Inst, Op, Value};

/// Loads that are made ahead of another pointer's, at most: as many words as a block of a cipher has.
const AHEAD: usize = 16;

/// Put the loads of each block of a function together.
pub(super) fn gather(func: &mut Func) {
    for block in func.layout.clone() {
        let insts = std::mem::take(&mut func.blocks[block].insts);
        func.blocks[block].insts = gathered(func, insts);
    }
}

/// One access with what makes its address, in order.
struct Piece {
    insts: Vec<Inst>,
    /// The words of its address, if it is a load through a pointer.
    pointer: Option<Vec<Value>>,
    barrier: bool,
    /// Loads that were put behind this one.
    ahead: usize,
}

fn gathered(func: &Func, insts: Vec<Inst>) -> Vec<Inst> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut waiting: Vec<Inst> = Vec::new();
    for inst in insts {
        let op = func.insts[inst].op;
        let (words, nodes) = match op {
            Op::Load(_) => address(func, func.insts[inst].args[0]),
            _ => (Vec::new(), Vec::new()),
        };
        let (words, nodes) = if waiting.ends_with(&nodes) { (words, nodes.len()) } else { (Vec::new(), 0) };
        // The address stands right before the access, as the split wrote it.
        let own = waiting.len().saturating_sub(nodes);
        let before: Vec<Inst> = waiting.drain(..own).collect();
        pieces.extend(before.into_iter().map(|i| Piece { insts: vec![i], pointer: None, barrier: false, ahead: 0 }));
        if is_address(op) {
            waiting.push(inst);
            continue;
        }
        let mut all = std::mem::take(&mut waiting);
        all.push(inst);
        let barrier = op.has_effect();
        let pointer = (words.len() > 1).then_some(words);
        let piece = Piece { insts: all, pointer, barrier, ahead: 0 };
        match place(&pieces, &piece) {
            Some(at) => {
                let ahead = pieces[at - 1].ahead + 1;
                pieces.insert(at, Piece { ahead, ..piece });
            }
            None => pieces.push(piece),
        }
    }
    pieces.into_iter().flat_map(|p| p.insts).chain(waiting).collect()
}

/// Where a load belongs that had better not stand at the end.
fn place(pieces: &[Piece], piece: &Piece) -> Option<usize> {
    let pointer = piece.pointer.as_ref()?;
    let mut other = false;
    for (at, earlier) in pieces.iter().enumerate().rev() {
        if earlier.barrier {
            return None;
        }
        match &earlier.pointer {
            Some(p) if p == pointer => return (other && earlier.ahead < AHEAD).then_some(at + 1),
            Some(_) => other = true,
            None => {}
        }
    }
    None
}

fn is_address(op: Op) -> bool {
    matches!(op, Op::Const(_) | Op::Bin(BinOp::Shl | BinOp::Or))
}

/// The words of an address, and the instructions that put them together.
fn address(func: &Func, v: Value) -> (Vec<Value>, Vec<Inst>) {
    let of = |v: Value, op: BinOp| func.def_inst(v).filter(|&i| func.insts[i].op == Op::Bin(op));
    if let Some(or) = of(v, BinOp::Or)
        && let Some(shl) = of(func.insts[or].args[1], BinOp::Shl)
        && let Some(by) = func.def_inst(func.insts[shl].args[1])
    {
        let (mut words, mut nodes) = address(func, func.insts[or].args[0]);
        words.push(func.insts[shl].args[0]);
        nodes.extend([by, shl, or]);
        return (words, nodes);
    }
    (vec![v], Vec::new())
}
