//! Values kept in memory while a loop runs.
//!
//! A pointer that the loop reads twice in an iteration occupies a register
//! throughout. In the frame it occupies one only from a reload to the readers
//! that follow soon after. A value that is carried round is stored once its last reader has what it
//! was; and one that is wanted behind the loop is loaded again there.

use super::body::{Body, From, Node};
use super::framed::access;
use ciphermill_machine::Machine;
use ciphermill_vcode::VReg;
use std::collections::{BTreeMap, BTreeSet};

/// Readers that stand no farther behind the first one share its reload.
const NEAR: usize = 16;

/// What can be kept in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spilled {
    /// A value from outside.
    Outside(VReg),
    /// Any node whose result the next iteration reads, or what comes behind the loop.
    Held(usize),
}

/// Values from outside beyond so many: those that the fewest nodes read.
pub fn surplus(body: &Body, registers: usize) -> Vec<Spilled> {
    let mut readers: BTreeMap<VReg, usize> = BTreeMap::new();
    for (_, from) in body.nodes.iter().flat_map(|n| &n.reads) {
        if let From::Outside(v) = from {
            *readers.entry(*v).or_default() += 1;
        }
    }
    let mut values: Vec<(usize, VReg)> = readers.into_iter().map(|(v, n)| (n, v)).collect();
    values.sort_unstable();
    values.truncate(values.len().saturating_sub(registers));
    values.into_iter().map(|(_, v)| Spilled::Outside(v)).collect()
}

/// Where values that are carried round or wanted behind the loop are more than so many: all that are only wanted behind
/// it, which cost a store there and a register to the end of the iteration otherwise; and of the others those beyond so
/// many that the fewest nodes read, but for those that no more than themselves and values from outside make.
pub fn held(body: &Body, most: usize) -> Vec<Spilled> {
    let readers = |p: usize| body.nodes.iter().flat_map(|n| &n.reads).filter(|r| r.1 == From::Node(p, 1)).count();
    let all: BTreeSet<usize> = body.initial.keys().copied().chain(body.live_out.iter().map(|l| l.0)).collect();
    let mut values: Vec<(usize, usize)> = all.iter().filter(|&&p| !own(body, p)).map(|&p| (readers(p), p)).collect();
    values.sort_unstable();
    let only_behind = all.iter().filter(|p| !body.initial.contains_key(p)).count();
    let beyond = all.len().saturating_sub(most);
    values.truncate(if beyond > 0 { beyond.max(only_behind) } else { 0 });
    values.into_iter().map(|(_, p)| Spilled::Held(p)).collect()
}

/// Is a node a function of its own last result and values from outside?
fn own(body: &Body, p: usize) -> bool {
    let known = |r: &(usize, From)| matches!(r.1, From::Outside(_)) || r.1 == From::Node(p, 1);
    let node = &body.nodes[p];
    node.writes.is_some() && node.reads.iter().all(known) && body.initial.contains_key(&p)
}

/// The body with some values in memory, each in a word of its own from
/// `offset` of the stack pointer on; and what is to be stored there before the
/// loop. `None` where neither the machine's load and store nor its addition reach.
pub fn spill(body: &Body, machine: &Machine, values: &[Spilled], offset: i64) -> Option<(Body, Vec<(VReg, i64)>)> {
    let mut out = body.clone();
    let mut before = Vec::new();
    for (k, &value) in values.iter().enumerate() {
        let offset = offset + k as i64 * i64::from(machine.word_bits / 8);
        let (initial, store) = match value {
            Spilled::Outside(v) => (Some(v), None),
            // Nodes are numbered anew with each value: found by its register.
            Spilled::Held(p) => match body.initial.get(&p) {
                Some(v) => (Some(*v), out.initial.iter().find(|x| x.1 == v).map(|x| *x.0)),
                None => {
                    let v = body.live_out.iter().find(|l| l.0 == p)?.1;
                    (None, out.live_out.iter().find(|l| l.1 == v).map(|l| l.0))
                }
            },
        };
        let store = store.map(|node| Stored { node, behind: last_reader(&out, node).max(node) });
        out = one(&out, machine, initial, store, offset)?;
        match initial {
            Some(v) => before.push((v, offset)),
            None => out.parked += 1,
        }
    }
    Some((out, before))
}

/// The last node that reads what another made in the iteration before.
fn last_reader(body: &Body, p: usize) -> usize {
    let reads = |n: &Node| n.reads.iter().any(|r| r.1 == From::Node(p, 1));
    body.nodes.iter().rposition(reads).unwrap_or(p)
}

/// A node whose result is stored in each iteration.
#[derive(Clone, Copy)]
struct Stored {
    node: usize,
    /// Its store stands behind this one.
    behind: usize,
}

/// The body with a value from outside or that of a node in memory.
fn one(body: &Body, machine: &Machine, outside: Option<VReg>, stored: Option<Stored>, offset: i64) -> Option<Body> {
    let meant = match stored {
        Some(s) => From::Node(s.node, 1),
        None => From::Outside(outside?),
    };
    let mut out = Body { nodes: Vec::new(), ..body.clone() };
    let mut index = Vec::with_capacity(body.nodes.len());
    let mut loads: Vec<usize> = Vec::new();
    let mut since = 0;
    let mut store = None;
    // Reads of the iteration before: node, place, node of the body.
    let mut later = Vec::new();
    for (i, node) in body.nodes.iter().enumerate() {
        let reads = node.reads.iter().any(|r| r.1 == meant);
        if reads && (loads.is_empty() || i - since > NEAR) {
            since = i;
            out.nodes.extend(access(machine, machine.abi.ops.load, offset, None, out.nodes.len())?);
            loads.push(out.nodes.len() - 1);
        }
        let at = out.nodes.len();
        index.push(at);
        let mut node = node.clone();
        for (k, (_, from)) in node.reads.iter_mut().enumerate() {
            match *from {
                _ if *from == meant => *from = From::Node(*loads.last()?, 0),
                From::Node(p, 0) => *from = From::Node(index[p], 0),
                From::Node(p, _) => later.push((at, k, p)),
                From::Outside(_) => {}
            }
        }
        out.nodes.push(node);
        if let Some(s) = stored.filter(|s| s.behind == i) {
            let value = Some(From::Node(index[s.node], 0));
            out.nodes.extend(access(machine, machine.abi.ops.store, offset, value, at + 1)?);
            store = Some(out.nodes.len() - 1);
        }
    }
    for (n, k, p) in later {
        out.nodes[n].reads[k].1 = From::Node(index[p], 1);
    }
    let here = |n: usize| stored.is_some_and(|s| s.node == n);
    out.initial = body.initial.iter().filter(|x| !here(*x.0)).map(|(&n, &v)| (index[n], v)).collect();
    out.live_out = body.live_out.iter().filter(|x| !here(x.0)).map(|&(n, v)| (index[n], v)).collect();
    out.restored.extend(body.live_out.iter().filter(|x| here(x.0)).map(|x| (x.1, offset)));
    out.memory = body.memory.iter().map(|&(a, b, c, d)| (index[a], index[b], c, d)).collect();
    if let Some(s) = store {
        for &l in &loads {
            out.memory.push((l, s, 0, 0));
            out.memory.push((s, l, 1, 1));
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{Spilled, held, spill, surplus};
    use crate::body::{Body, From, Node};
    use crate::framed::instructions;
    use ciphermill_machine::{InstrId, Machine};
    use ciphermill_vcode::{VInst, VKind, VOp, VReg};
    use std::path::Path;

    fn machine() -> Machine {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        ciphermill_machine::load_from_dir(&root, "c6201", &[], &[], &[]).unwrap()
    }

    /// `x = load p; p = p + 4`, and the branch, which reads nothing here.
    fn body(m: &Machine) -> Body {
        let named = |name: &str| InstrId(m.instrs.iter().position(|i| i.name == name).unwrap() as u16);
        let mut load = instructions(m, m.abi.ops.load, 0, VReg(1), || VReg(9)).unwrap().remove(0);
        load.ops[0] = VOp::Use(VReg(0));
        let add = VInst::new(VKind::Normal, named("add_imm"), &[VOp::Imm(4), VOp::Use(VReg(0)), VOp::Def(VReg(2))], 0);
        let branch = VInst::new(VKind::Normal, named("b"), &[], 0);
        let node = |inst: VInst, reads, writes| Node { mem: inst.mem, inst, reads, writes, tied: false };
        let nodes = vec![
            node(load, vec![(0, From::Node(1, 1))], Some((2, 5))),
            node(add, vec![(1, From::Node(1, 1))], Some((2, 1))),
            node(branch, vec![], None),
        ];
        let initial = [(1, VReg(0))].into_iter().collect();
        Body { initial, live_out: vec![(1, VReg(2))], ..Body::of(nodes, named("b")) }
    }

    #[test]
    fn a_pointer_goes_to_the_frame_and_back() {
        let m = machine();
        let body = body(&m);
        let (spilled, before) = spill(&body, &m, &[Spilled::Held(1)], 8).unwrap();
        // Reload, load, add, store, branch; one reload serves both readers.
        assert_eq!(before, [(VReg(0), 8)]);
        let instrs: Vec<InstrId> = spilled.nodes.iter().map(|n| n.inst.instr).collect();
        let (load, store) = (m.abi.ops.load, m.abi.ops.store);
        assert_eq!(instrs, [load, load, body.nodes[1].inst.instr, store, body.nodes[2].inst.instr]);
        assert_eq!(spilled.nodes[1].reads, [(0, From::Node(0, 0))]);
        assert_eq!(spilled.nodes[2].reads, [(1, From::Node(0, 0))]);
        assert_eq!(spilled.nodes[3].reads[0].1, From::Node(2, 0));
        assert!(spilled.initial.is_empty());
        assert_eq!((spilled.restored, spilled.live_out), (vec![(VReg(2), 8)], vec![]));
        assert_eq!(spilled.memory, [(0, 3, 0, 0), (3, 0, 1, 1)]);
        // Out of the load's reach.
        assert!(spill(&body, &m, &[Spilled::Held(1)], 131_072).is_none());
    }

    /// `x = y; y = x + 4`, the two changing places, where `y` is wanted behind the loop: `x` is
    /// read before it is made anew, and `y` is made from it.
    #[test]
    fn a_value_that_is_carried_round_or_wanted_behind_the_loop_waits_in_the_frame() {
        let m = machine();
        let mut body = body(&m);
        // The load reads the sum of the iteration before, and the sum what was loaded before.
        body.nodes[0].reads = vec![(0, From::Node(1, 1))];
        body.nodes[1].reads = vec![(1, From::Node(0, 1))];
        body.initial = [(0, VReg(3)), (1, VReg(0))].into_iter().collect();
        assert_eq!(held(&body, 2), []);
        assert_eq!(held(&body, 0), [Spilled::Held(0), Spilled::Held(1)]);
        let (spilled, before) = spill(&body, &m, &held(&body, 0), 8).unwrap();
        assert_eq!(before, [(VReg(3), 8), (VReg(0), 12)]);
        let (load, store) = (m.abi.ops.load, m.abi.ops.store);
        let (own, add) = (body.nodes[0].inst.instr, body.nodes[1].inst.instr);
        let instrs: Vec<InstrId> = spilled.nodes.iter().map(|n| n.inst.instr).collect();
        // Each store stands behind the last reader of what the word held before.
        assert_eq!(instrs, [load, own, load, add, store, store, body.nodes[2].inst.instr]);
        assert_eq!(spilled.nodes[1].reads, [(0, From::Node(0, 0))]);
        assert_eq!(spilled.nodes[3].reads, [(1, From::Node(2, 0))]);
        let stored: Vec<From> = spilled.nodes[4..6].iter().map(|n| n.reads[0].1).collect();
        assert_eq!(stored, [From::Node(3, 0), From::Node(1, 0)]);
        assert!(spilled.initial.is_empty() && spilled.live_out.is_empty());
        assert_eq!(spilled.restored, [(VReg(2), 12)]);
        // A load of the old value comes before its store, and the next load behind that.
        let orders = [(2, 5, 0, 0), (5, 2, 1, 1), (0, 4, 0, 0), (4, 0, 1, 1)];
        assert_eq!(spilled.memory, orders);
    }

    #[test]
    fn where_no_displacement_reaches_a_word_its_address_is_made() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let m = ciphermill_machine::load_from_dir(&root, "epic", &[], &[], &[]).unwrap();
        let ops = &m.abi.ops;
        let node = |instr, reads, writes| {
            let inst = VInst::new(VKind::Normal, instr, &[], 0);
            Node { mem: None, inst, reads, writes, tied: false }
        };
        let nodes = vec![node(ops.add, vec![(1, From::Node(0, 1))], Some((0, 1))), node(ops.jump, vec![], None)];
        let initial = [(0, VReg(0))].into_iter().collect();
        let body = Body { initial, ..Body::of(nodes, ops.jump) };
        let made = |offset| {
            let (spilled, _) = spill(&body, &m, &[Spilled::Held(0)], offset).unwrap();
            let instrs: Vec<_> = spilled.nodes.iter().map(|n| n.inst.instr).collect();
            (instrs, spilled.nodes.iter().map(|n| n.reads.clone()).collect::<Vec<_>>(), spilled.memory)
        };
        let (near, _, _) = made(0);
        assert_eq!(near, [ops.load, ops.add, ops.store, ops.jump]);
        let (far, reads, memory) = made(16);
        assert_eq!(far, [ops.add_imm, ops.load, ops.add, ops.add_imm, ops.store, ops.jump]);
        let from = |n: usize| reads[n].iter().map(|r| r.1).collect::<Vec<_>>();
        assert_eq!([from(0), from(1), from(2)], [vec![], vec![From::Node(0, 0)], vec![From::Node(1, 0)]]);
        assert_eq!([from(3), from(4)], [vec![], vec![From::Node(2, 0), From::Node(3, 0)]]);
        assert_eq!(memory, [(1, 4, 0, 0), (4, 1, 1, 1)]);
    }

    #[test]
    fn what_only_leaves_the_loop_is_stored_and_has_no_word_before() {
        let m = machine();
        let mut body = body(&m);
        body.live_out = vec![(0, VReg(1)), (1, VReg(2))];
        assert_eq!(held(&body, 1), [Spilled::Held(0)]);
        let (spilled, before) = spill(&body, &m, &[Spilled::Held(0)], 8).unwrap();
        assert_eq!((before, spilled.parked), (vec![], 1));
        assert_eq!(spilled.nodes[1].inst.instr, m.abi.ops.store);
        assert_eq!((spilled.restored, spilled.live_out), (vec![(VReg(1), 8)], vec![(2, VReg(2))]));
    }

    #[test]
    fn of_values_from_outside_those_read_seldom_are_too_many() {
        let m = machine();
        let mut body = body(&m);
        body.nodes[0].reads = vec![(0, From::Outside(VReg(7))), (1, From::Outside(VReg(8)))];
        body.nodes[1].reads = vec![(1, From::Outside(VReg(8))), (2, From::Outside(VReg(6)))];
        assert!(surplus(&body, 3).is_empty());
        assert_eq!(surplus(&body, 1), [Spilled::Outside(VReg(6)), Spilled::Outside(VReg(7))]);
    }
}
