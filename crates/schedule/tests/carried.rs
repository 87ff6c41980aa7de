//! Loop-carried values, and the order that spares their moves.

use ciphermill_machine::{InstrId, Reg};
use ciphermill_schedule::carried;
use ciphermill_schedule::list::PressureLimit;
use ciphermill_vcode::{Node, Registers, VBlock, VFunc, VInst, VKind, VOp, VReg, liveness};

const OLD: VReg = VReg(0);
const NEW: VReg = VReg(1);
const OTHER: VReg = VReg(2);

fn inst(kind: VKind, ops: &[VOp]) -> VInst {
    VInst::new(kind, InstrId(0), ops, 0)
}

/// A loop that makes its carried value anew and then uses the old one.
fn function() -> VFunc {
    let make = inst(VKind::Normal, &[VOp::Def(NEW)]);
    let using = inst(VKind::Normal, &[VOp::Def(OTHER), VOp::Use(OLD)]);
    let block = |insts, params, succs| VBlock { insts, params, succs, ..VBlock::default() };
    let mut params = inst(VKind::Params, &[]);
    params.fixed_defs = vec![(VReg(3), Reg(0))];
    VFunc {
        name: "f".into(),
        blocks: vec![
            block(vec![params, inst(VKind::Jump, &[])], vec![], vec![(1, vec![VReg(3)])]),
            block(vec![make, using, inst(VKind::Branch, &[])], vec![OLD], vec![(1, vec![NEW]), (2, vec![])]),
            block(vec![inst(VKind::Return, &[])], vec![], vec![]),
        ],
        idom: vec![None, Some(0), Some(1)],
        vregs: 4,
        has_calls: true,
        params: 1,
        results: 0,
        files: vec![],
    }
}

fn nodes(latency: u32) -> Vec<Node> {
    let make = Node { writes: vec![(NEW.0, latency)], issue_cycles: 1, ..Node::default() };
    let using = Node { reads: vec![OLD.0], writes: vec![(OTHER.0, 1)], issue_cycles: 1, ..Node::default() };
    let branch = Node { reads: vec![NEW.0], barrier: true, issue_cycles: 1, ..Node::default() };
    vec![make, using, branch]
}

fn order(latency: u32) -> Vec<usize> {
    let func = function();
    let out = &liveness::live_out(&func)[1];
    let live_out = |r: u32| out.contains(VReg(r));
    let limit = PressureLimit { registers: 8, values: 0, live_out: &live_out, live_through: out.len() };
    carried::order(&func, 1, &nodes(latency), &limit, out)
}

#[test]
fn the_new_value_is_made_after_the_last_use_of_the_old_one() {
    assert_eq!(order(1), [1, 0, 2]);
}

#[test]
fn a_move_is_better_than_to_wait_longer() {
    assert_eq!(order(4), [0, 1, 2]);
}

#[test]
fn a_parameter_that_a_loop_takes_is_copied_at_the_start() {
    let mut func = function();
    let registers = Registers {
        allocatable: vec![Reg(0)],
        clobbered: vec![Reg(0)],
        callee_saved: vec![],
        mov: (InstrId(7), vec![false, true]),
        jump: InstrId(0),
        nop: InstrId(0),
    };
    carried::free_parameters(&mut func, &registers);
    let copy = &func.blocks[0].insts[1];
    assert_eq!((copy.instr, &copy.ops[..]), (InstrId(7), &[VOp::Use(VReg(3)), VOp::Def(VReg(4))][..]));
    assert_eq!(func.blocks[0].succs, [(1, vec![VReg(4)])]);
}
