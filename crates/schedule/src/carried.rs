//! Values that a loop carries round, and the order of its body.
//!
//! The new value can take the old one's register if it is made when nothing
//! needs the old one any more; else each round costs a move. So the loop's body
//! is ordered twice, as it comes and with every new value behind the last use of
//! the old one, and what takes fewer cycles with the moves counted is kept.
//!
//! A parameter that a loop with calls carries round is best copied once: it
//! comes in a register that calls destroy, and the allocator would go back to
//! that one in every turn.

use ciphermill_vcode::liveness::Set;
use crate::list::{Pressure, order_with};
use ciphermill_vcode::Node;
use ciphermill_vcode::Registers;
use ciphermill_vcode::{VFunc, VInst, VKind, VOp, VReg};
use std::collections::HashMap;

/// A value carried round: the instructions of the body that use the old one,
/// and the one that makes the new one.
struct Carried {
    uses: Vec<usize>,
    made: usize,
}

/// The order of block `b`, whose nodes are `nodes`; `out` are the values that
/// live behind it.
pub fn order(func: &VFunc, b: usize, nodes: &[Node], limit: &Pressure<'_>, out: &Set) -> Vec<usize> {
    let (plain, cycles) = order_with(nodes, Some(limit), &[]);
    let carried = carried(func, b, out);
    let moves = moves(&carried, &plain);
    if moves == 0 {
        return plain;
    }
    let wishes: Vec<(usize, usize)> =
        carried.iter().flat_map(|c| c.uses.iter().map(|&u| (u, c.made))).collect();
    let (other, other_cycles) = order_with(nodes, Some(limit), &wishes);
    let other_moves = self::moves(&carried, &other);
    if other_cycles + other_moves < cycles + moves { other } else { plain }
}

/// Copy every parameter that becomes a block's parameter.
pub fn free_parameters(func: &mut VFunc, registers: &Registers) {
    let entry = &func.blocks[0].insts;
    let Some(at) = entry.iter().position(|i| i.kind == VKind::Params) else { return };
    let handed = |v: VReg| func.blocks.iter().flat_map(|b| &b.succs).any(|(_, args)| args.contains(&v));
    let params: Vec<VReg> = entry[at].fixed_defs.iter().map(|d| d.0).filter(|&v| handed(v)).collect();
    for old in params {
        let new = func.new_vreg();
        let (instr, written) = &registers.mov;
        let operand = |&def: &bool| if def { VOp::Def(new) } else { VOp::Use(old) };
        let ops: Vec<VOp> = written.iter().map(operand).collect();
        func.blocks[0].insts.insert(at + 1, VInst::new(VKind::Normal, *instr, &ops, 0));
        for arg in func.blocks.iter_mut().flat_map(|b| &mut b.succs).flat_map(|s| &mut s.1).filter(|a| **a == old) {
            *arg = new;
        }
    }
}

/// The values that block `b` carries round to itself, but for those whose old
/// value is needed behind it.
fn carried(func: &VFunc, b: usize, out: &Set) -> Vec<Carried> {
    let block = &func.blocks[b];
    // The edge back may have a block of its own, which only jumps.
    let back = |(to, args): &(u32, Vec<VReg>)| {
        let through = &func.blocks[*to as usize];
        match &through.succs[..] {
            _ if *to as usize == b => Some(args.clone()),
            [(next, args)] if *next as usize == b && through.insts.len() == 1 && through.params.is_empty() => {
                Some(args.clone())
            }
            _ => None,
        }
    };
    let Some(args) = block.succs.iter().find_map(back) else { return Vec::new() };
    let made: HashMap<VReg, usize> =
        block.insts.iter().enumerate().flat_map(|(i, inst)| inst.defs().map(move |d| (d, i))).collect();
    let pairs = block.params.iter().zip(args).filter(|(old, new)| *old != new && !out.contains(**old));
    let found = pairs.filter_map(|(old, new)| {
        let uses = |(_, inst): &(usize, &VInst)| inst.uses().any(|u| u == *old);
        let uses: Vec<usize> = block.insts.iter().enumerate().filter(uses).map(|(i, _)| i).collect();
        made.get(&new).map(|&made| Carried { uses, made })
    });
    found.collect()
}

/// The moves that an order leaves to be made.
fn moves(carried: &[Carried], order: &[usize]) -> u64 {
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &i)| place[i] = at);
    carried.iter().filter(|c| c.uses.iter().any(|&u| place[u] > place[c.made])).count() as u64
}
