//! Loop-carried values and the order of a loop's body.
//!
//! The new value can be coalesced with the old one if it is made after the old one's last use. Else
//! each iteration costs a move. So the body is scheduled twice: as it is, and with soft edges that put
//! each new value after the last use of the old one. The order that takes fewer cycles, moves counted,
//! is taken.
//!
//! In a loop with calls, a loop-carried parameter of the function is copied once at its start. The
//! parameter arrives in a register that calls clobber, and the allocator would return to that register
//! in every iteration.

use crate::list::{PressureLimit, order_with};
use ciphermill_vcode::Node;
use ciphermill_vcode::Registers;
use ciphermill_vcode::liveness::Set;
use ciphermill_vcode::{VFunc, VInst, VKind, VOp, VReg};
use std::collections::HashMap;

/// A loop-carried value: the instructions that use the old one, and the one that makes the new one.
struct Carried {
    uses: Vec<usize>,
    made: usize,
}

/// The order of block `b` with these nodes; `out` are its live-out values.
pub fn order(func: &VFunc, b: usize, nodes: &[Node], limit: &PressureLimit<'_>, out: &Set) -> Vec<usize> {
    let (plain, cycles) = order_with(nodes, Some(limit), &[]);
    let carried = carried(func, b, out);
    let moves = moves(&carried, &plain);
    if moves == 0 {
        return plain;
    }
    let soft_edges: Vec<(usize, usize)> = carried.iter().flat_map(|c| c.uses.iter().map(|&u| (u, c.made))).collect();
    let (other, other_cycles) = order_with(nodes, Some(limit), &soft_edges);
    let other_moves = self::moves(&carried, &other);
    if other_cycles + other_moves < cycles + moves { other } else { plain }
}

/// Copies every parameter of the function that is an argument of an edge.
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

/// Loop-carried values of block `b`, except those whose old value is live out.
fn carried(func: &VFunc, b: usize, out: &Set) -> Vec<Carried> {
    let block = &func.blocks[b];
    // The back edge may have a block of its own that only jumps.
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

/// How many loop-carried values need a move in an order.
fn moves(carried: &[Carried], order: &[usize]) -> u64 {
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &i)| place[i] = at);
    carried.iter().filter(|c| c.uses.iter().any(|&u| place[u] > place[c.made])).count() as u64
}
