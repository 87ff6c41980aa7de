//! The loop to be pipelined, as a graph.
//!
//! A candidate is a loop of one block that ends in its only branch. (The edge
//! back may be a block of its own that does not touch memory.) Each
//! instruction is a node, the branch the last of them. A value comes from a node of the same
//! iteration, from a node of the iteration before (what other compilers call a
//! phi: the first iteration finds its initial value in the same register), or
//! from outside.

use super::affine::{self, Address, Meeting};
use ciphermill_machine::sem::{Expr, Stmt};
use ciphermill_machine::{Instr, InstrId, Machine, OperandKind};
use ciphermill_vcode::Facts;
use ciphermill_vcode::{MemRef, VFunc, VInst, VKind, VOp, VReg};
use std::collections::{BTreeMap, BTreeSet};

/// Loops of more instructions are left as they are, since the time that a search takes grows with them. With 4,000 and
/// 10,000 Magenta, which looks up 1,152 bytes a block, takes 2,208 and 1,489 cycles on the EPIC machine, 1,974 and 1,153
/// on the Itanium 2, and 2 and 8 seconds to compile.
const MOST_NODES: usize = 10_000;
/// And those with more orders between accesses to memory.
const MOST_ORDERS: usize = 100_000;

/// Where an operand's value comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum From {
    /// A node's result; the second number is 1 when it is that of the
    /// iteration before.
    Node(usize, u32),
    /// The value of a virtual register from before the loop.
    Outside(VReg),
}

/// One instruction of the loop.
#[derive(Clone, Debug)]
pub struct Node {
    pub inst: VInst,
    /// `(operand, where from)`, a tied operand's source included.
    pub reads: Vec<(usize, From)>,
    /// Operand that is written, and the cycles until it can be read.
    pub writes: Option<(usize, u32)>,
    /// The operand written is also read: both are one register.
    pub tied: bool,
    pub mem: Option<MemRef>,
}

/// The loop.
#[derive(Clone, Debug)]
pub struct Body {
    /// What runs before the loop.
    pub before: Vec<VInst>,
    /// Words of the frame that its nodes keep values in.
    pub parked: usize,
    /// Values that are in the frame when the loop ends, and the offsets of their words from the
    /// stack pointer.
    pub restored: Vec<(VReg, i64)>,
    /// Names for addresses of words of the frame, which the loop may have in registers; and those that it has: these
    /// words' offsets from the stack pointer.
    pub bases: Vec<VReg>,
    pub based: Vec<(VReg, i64)>,
    pub nodes: Vec<Node>,
    /// For a node whose result the next iteration reads: its value before the
    /// first iteration.
    pub initial: BTreeMap<usize, VReg>,
    /// Nodes whose results of the last iteration are used behind the loop, and
    /// the register they are known by there.
    pub live_out: Vec<(usize, VReg)>,
    /// The instruction that branches when the last node does not.
    pub skip: InstrId,
    /// Block that runs behind the loop, and what it is given.
    pub exit: (u32, Vec<VReg>),
    pub loop_depth: u8,
    /// Nodes before which others must have stood, at the least so many cycles:
    /// `(first, second, cycles, distance)`, for accesses to memory.
    pub memory: Vec<(usize, usize, u32, u32)>,
}

impl Body {
    /// The same with accesses in order as if their addresses said nothing; none where that changes
    /// nothing, or makes too many orders. It leaves a scheduler less to choose from, and with the choice
    /// one that goes wrong may come to no schedule at all.
    pub fn in_order(&self) -> Option<Body> {
        let memory = memory(&self.nodes, &vec![None; self.nodes.len()]).filter(|m| *m != self.memory)?;
        Some(Body { memory, ..self.clone() })
    }
}

#[cfg(test)]
impl Body {
    /// A loop of these nodes from which nothing goes round or out, for tests.
    pub fn of(nodes: Vec<Node>, skip: InstrId) -> Body {
        Body {
            before: vec![],
            parked: 0,
            restored: vec![],
            bases: vec![],
            based: vec![],
            nodes,
            initial: BTreeMap::new(),
            live_out: vec![],
            skip,
            exit: (0, vec![]),
            loop_depth: 1,
            memory: vec![],
        }
    }
}

/// Blocks of a candidate.
pub struct Candidate {
    pub header: u32,
    /// Edge block of the way back, if it has one.
    pub back: Option<u32>,
}

/// Loops of one block, and their edges back.
pub fn candidates(func: &VFunc) -> Vec<Candidate> {
    let mut out = Vec::new();
    let mut preds = vec![0usize; func.blocks.len()];
    func.blocks.iter().flat_map(|b| &b.succs).for_each(|s| preds[s.0 as usize] += 1);
    for (b, block) in func.blocks.iter().enumerate() {
        let b = b as u32;
        let ends = block.insts.last().is_some_and(|i| i.kind == VKind::Branch);
        if !ends || block.insts.iter().rev().skip(1).any(|i| i.kind != VKind::Normal) {
            continue;
        }
        for (s, _) in &block.succs {
            if *s == b {
                out.push(Candidate { header: b, back: None });
                break;
            }
            let e = &func.blocks[*s as usize];
            // It runs before the loop is known to go on: once too often.
            let plain = e.insts.iter().all(|i| match i.kind {
                VKind::Normal => i.mem.is_none() && i.trap.is_none(),
                kind => kind == VKind::Jump,
            });
            if plain && preds[*s as usize] == 1 && e.succs.len() == 1 && e.succs[0].0 == b && e.params.is_empty() {
                out.push(Candidate { header: b, back: Some(*s) });
                break;
            }
        }
    }
    out
}

/// The body of a candidate, or why it cannot be pipelined.
pub fn read(func: &VFunc, machine: &Machine, facts: &Facts, c: &Candidate) -> Result<Body, &'static str> {
    let block = &func.blocks[c.header as usize];
    let Some((branch, insts)) = block.insts.split_last() else { return Err("it is empty") };
    if insts.len() > MOST_NODES {
        return Err("it is too long");
    }
    let way_back = c.back.unwrap_or(c.header);
    let Some(exit) = block.succs.iter().find(|s| s.0 != way_back) else { return Err("it has no way out") };
    let mut insts: Vec<VInst> = insts.to_vec();
    let back_args = match c.back {
        Some(e) => {
            let e = &func.blocks[e as usize];
            // It would happen once more than it should, behind the last turn.
            if e.insts.iter().any(|i| i.mem.is_some_and(|m| m.store)) {
                return Err("its way back stores");
            }
            insts.extend(e.insts.iter().filter(|i| i.kind == VKind::Normal).cloned());
            &e.succs[0].1
        }
        None => &block.succs.iter().find(|s| s.0 == c.header).ok_or("it does not come back")?.1,
    };
    // A register that only its own instructions write, and none of these, is as good as a number.
    let steady = |r: &u32| machine.files[machine.regs[*r as usize].file].state;
    let fixed = |i: &VInst| {
        let n = facts.node(machine, &bare(i), VKind::Normal, None);
        !n.reads.iter().all(steady) || !n.writes.is_empty()
    };
    // A register that always reads as zero is as good as a number.
    let certain = |o: &VOp| match o {
        VOp::Phys(r) => !machine.regs[usize::from(r.0)].zero,
        o => matches!(o, VOp::Const(_)),
    };
    if insts.iter().any(|i| i.ops.iter().any(certain) || fixed(i) || i.trap.is_some()) {
        return Err("one of its instructions may trap, or uses a register that is always the same");
    }

    let taken_back = block.succs[0].0 == way_back;
    let again =
        if taken_back { branch.instr } else { opposite(machine, branch.instr).ok_or("its branch has no opposite")? };

    let mut def: BTreeMap<VReg, usize> = BTreeMap::new();
    for (i, inst) in insts.iter().enumerate() {
        for d in inst.defs() {
            def.insert(d, i);
        }
    }
    // Each value carried round needs a node of its own: a move where two
    // parameters would share one, or where none makes it.
    let phis: Vec<(VReg, VReg)> = block.params.iter().copied().zip(back_args.iter().copied()).collect();
    let mut taken = BTreeSet::new();
    let mut carried: BTreeMap<VReg, usize> = BTreeMap::new();
    let mut moves = Vec::new();
    for &(p, arg) in &phis {
        let node = match def.get(&arg) {
            Some(&n) if taken.insert(n) => n,
            _ => {
                moves.push((insts.len() + moves.len(), arg));
                insts.len() + moves.len() - 1
            }
        };
        carried.insert(p, node);
    }
    // A value of the last iteration but one that is wanted behind the loop.
    let outside = used_outside(func, c);
    let mut out_moves = Vec::new();
    for &(p, _) in phis.iter().filter(|p| outside.contains(&p.0)) {
        out_moves.push((insts.len() + moves.len() + out_moves.len(), p));
    }

    let from = |v: VReg, at: usize| match (def.get(&v), carried.get(&v)) {
        (Some(&n), _) if n < at => Ok(From::Node(n, 0)),
        (Some(_), _) => Err("a value is used before it is made"),
        (None, Some(&n)) => Ok(From::Node(n, 1)),
        (None, None) => Ok(From::Outside(v)),
    };
    let mut nodes = Vec::new();
    for (i, inst) in insts.iter().enumerate() {
        nodes.push(node(machine, inst, &|v| from(v, i))?);
    }
    let mov = machine.abi.ops.mov;
    for &(_, v) in moves.iter().chain(&out_moves) {
        let spec = &machine.instrs[usize::from(mov.0)].operands;
        let ops: Vec<VOp> = spec
            .iter()
            .map(|o| if matches!(o.kind, OperandKind::Reg { def: true, .. }) { VOp::Def(v) } else { VOp::Use(v) })
            .collect();
        let inst = VInst::new(VKind::Normal, mov, &ops, 0);
        let at = nodes.len();
        nodes.push(node(machine, &inst, &|v| from(v, at))?);
    }
    let mut test = branch.clone();
    test.instr = again;
    test.kind = VKind::Normal;
    let at = nodes.len();
    nodes.push(node(machine, &test, &|v| from(v, at))?);

    let initial: BTreeMap<usize, VReg> = carried.iter().map(|(&p, &n)| (n, p)).collect();
    let mut live_out: Vec<(usize, VReg)> =
        def.iter().filter(|(v, _)| outside.contains(v)).map(|(&v, &n)| (n, v)).collect();
    live_out.extend(out_moves.iter().map(|&(n, v)| (n, v)));
    live_out.sort_unstable();
    let addresses = affine::addresses(func, machine, (c.header, way_back), &nodes, &initial);
    let Some(memory) = memory(&nodes, &addresses) else {
        return Err("too many of its accesses to memory wait for others");
    };
    Ok(Body {
        before: Vec::new(),
        parked: 0,
        restored: Vec::new(),
        bases: Vec::new(),
        based: Vec::new(),
        nodes,
        initial,
        live_out,
        skip: opposite(machine, again).ok_or("its branch has no opposite")?,
        exit: exit.clone(),
        loop_depth: block.loop_depth,
        memory,
    })
}

/// The instruction alone, for asking which registers it names itself.
fn bare(i: &VInst) -> ciphermill_program::Inst {
    ciphermill_program::Inst {
        instr: i.instr,
        operands: Default::default(),
        space: ciphermill_ir::Space::Linear,
        trap: None,
        role: i.role,
        predicate: None,
        loc: i.loc,
    }
}

fn node(
    machine: &Machine,
    inst: &VInst,
    from: &dyn Fn(VReg) -> Result<From, &'static str>,
) -> Result<Node, &'static str> {
    let instr = &machine.instrs[usize::from(inst.instr.0)];
    let (mut reads, mut writes, mut tied) = (Vec::new(), None, false);
    for (o, op) in inst.ops.iter().enumerate() {
        match op {
            VOp::Use(v) => reads.push((o, from(*v)?)),
            VOp::Def(_) if writes.is_some() => return Err("an instruction has two results"),
            VOp::Def(_) => writes = Some((o, instr.latency)),
            VOp::Tied { used, .. } => {
                reads.push((o, from(*used)?));
                writes = Some((o, instr.latency));
                tied = true;
            }
            _ => {}
        }
    }
    Ok(Node { inst: inst.clone(), reads, writes, tied, mem: inst.mem })
}

/// Values of the loop that blocks outside it use.
fn used_outside(func: &VFunc, c: &Candidate) -> BTreeSet<VReg> {
    let mut used = BTreeSet::new();
    for (b, block) in func.blocks.iter().enumerate() {
        let inside = b as u32 == c.header || Some(b as u32) == c.back;
        if !inside {
            used.extend(block.insts.iter().flat_map(|i| i.uses().collect::<Vec<_>>()));
        }
        for (s, args) in &block.succs {
            if !inside || (*s != c.header && Some(*s) != c.back) {
                used.extend(args.iter().copied());
            }
        }
    }
    used
}

/// Does a branch jump when its register is not zero (true) or when it is (false)?
pub fn tests_nonzero(instr: &Instr) -> Option<bool> {
    use ciphermill_ir::CmpOp;
    match instr.semantics.as_slice() {
        [Stmt::Goto { cond: Some(Expr::Cmp { op, a, b, .. }), .. }]
            if matches!((&**a, &**b), (Expr::Operand(_), Expr::Const(0))) =>
        {
            match op {
                CmpOp::Ne => Some(true),
                CmpOp::Eq => Some(false),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The instruction that jumps under the opposite condition, on any unit.
pub fn opposite(machine: &Machine, branch: InstrId) -> Option<InstrId> {
    let wanted = !tests_nonzero(&machine.instrs[usize::from(branch.0)])?;
    machine
        .variants
        .iter()
        .filter_map(|v| v.first().copied())
        .find(|i| tests_nonzero(&machine.instrs[usize::from(i.0)]) == Some(wanted))
}

/// Orders between accesses that may touch the same bytes. Addresses are values of this function, so
/// within an iteration two of one base compare by their offsets. From one iteration to a later one
/// different memories, buffers and known addresses are apart, and others as their sums say
/// ([`super::affine`]): of the distances at which two meet the least says all.
fn memory(nodes: &[Node], addresses: &[Option<Address>]) -> Option<Vec<(usize, usize, u32, u32)>> {
    let mut out = Vec::new();
    let accesses: Vec<(usize, MemRef)> = nodes.iter().enumerate().filter_map(|(i, n)| Some((i, n.mem?))).collect();
    let meeting = |i: usize, j: usize, least: u32| match (&addresses[i], &addresses[j]) {
        (Some(a), Some(b)) => a.meets(b, least),
        _ => Meeting::Unknown,
    };
    let apart_now = |i: usize, j: usize| matches!((&addresses[i], &addresses[j]), (Some(a), Some(b)) if a.apart(b));
    for (k, &(i, a)) in accesses.iter().enumerate() {
        if out.len() > MOST_ORDERS {
            return None;
        }
        for n in (k + 1..accesses.len()).chain(0..=k) {
            let (j, b) = accesses[n];
            if !(a.store || b.store) || a.apart_always(&b) {
                continue;
            }
            // Of one base and apart in this iteration: the next one's may be where this one's was.
            let now = k < n && a.conflicts(&b) && !apart_now(i, j);
            let distance = match meeting(i, j, 1) {
                _ if now => 0,
                Meeting::Unknown => 1,
                Meeting::After(distance) => distance,
                Meeting::Never => continue,
            };
            out.push((i, j, u32::from(a.store), distance));
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{Body, Node};
    use ciphermill_ir::Space;
    use ciphermill_machine::InstrId;
    use ciphermill_vcode::{MemRef, VInst, VKind};

    #[test]
    fn accesses_in_order_wait_for_each_other_whatever_their_addresses_say() {
        let access = |store, offset| {
            let mem = MemRef::own(Space::Linear, store, offset, 4);
            let inst = VInst::new(VKind::Normal, InstrId(0), &[], 0);
            Node { inst, reads: vec![], writes: None, tied: false, mem: Some(MemRef { base: None, ..mem }) }
        };
        let body = Body::of(vec![access(true, 0), access(false, 0)], InstrId(0));
        let in_order = body.in_order().unwrap();
        // The load behind the store of its iteration, and before that of the next; stores one by one.
        let orders: Vec<(usize, usize)> = in_order.memory.iter().map(|m| (m.0, m.1)).collect();
        assert_eq!(orders, [(0, 1), (0, 0), (1, 0)]);
        assert!(in_order.in_order().is_none());
    }
}
