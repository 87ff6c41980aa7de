//! Sides: which cluster each node runs on, and where its result goes.
//!
//! A node has the side of the unit that runs it and the side of its result;
//! they differ only for loads whose data crosses over the memory path. Once
//! sides are chosen, [`settle`] makes every node possible: a tied operand gets
//! a copy of its own where its value is needed again, and an operand that no
//! variant can read from where it is gets a copy on the right side. What comes
//! out is the list of [`Op`]s to be scheduled, each with the variants that fit.

use super::body::{Body, From, Node};
use ciphermill_machine::{FileId, Instr, InstrId, Machine, OperandKind, Reg, UnitId};
use ciphermill_vcode::CompileError;
use ciphermill_vcode::{VInst, VKind, VOp, VReg};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The clusters as the scheduler sees them.
pub struct Sides<'m> {
    pub machine: &'m Machine,
    /// Register file of each side.
    pub files: Vec<FileId>,
    /// Registers that a kernel may use, by side.
    pub pool: Vec<Vec<Reg>>,
    /// Side of the unit that each instruction runs on.
    side: Vec<usize>,
    /// Units that each instruction may run on, a bit each.
    pub units: Vec<u64>,
    /// What each instruction takes of a row.
    pub takes: Vec<Takes>,
}

/// What an instruction takes of a row: what [`Instr`] says of it, close together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Takes {
    /// The only unit that it can run on, and paths that carry one value at a time, a
    /// bit each: the row must have none of them full.
    pub bits: u64,
    /// Its only unit.
    pub unit: Option<UnitId>,
    /// Nothing beyond `bits` has to be looked at but reads of registers.
    pub alone: bool,
    /// Paths that it takes.
    pub paths: usize,
    /// Does it read registers through ports?
    pub ports: bool,
}

impl Takes {
    fn of(machine: &Machine, instr: &Instr) -> Takes {
        let single = |u: UnitId| machine.units[u].shared <= machine.units[u].count && u < 64;
        let (unit, one) = match instr.units.as_slice() {
            [] => (None, true),
            [u] => (Some(*u), *u < 64),
            _ => (None, false),
        };
        let paths = instr.paths.iter().map(|p| p.0);
        let taken = unit.filter(|u| *u < 64).into_iter().chain(paths.clone().filter(|&u| single(u)));
        Takes {
            bits: taken.fold(0, |m, u| m | bit(u)),
            unit,
            alone: one && paths.clone().all(single),
            paths: instr.paths.len(),
            ports: !instr.ports.is_empty(),
        }
    }
}

/// The bit of a unit or path; 0 for those beyond the width of a word.
pub fn bit(unit: UnitId) -> u64 {
    1u64.checked_shl(unit as u32).unwrap_or(0)
}

impl<'m> Sides<'m> {
    /// The files that `free` are of, each a side.
    pub fn new(machine: &'m Machine, free: &[Reg]) -> Sides<'m> {
        let mut files: Vec<FileId> = free.iter().map(|r| machine.regs[usize::from(r.0)].file).collect();
        files.sort_unstable();
        files.dedup();
        let of = |f: &FileId| free.iter().copied().filter(|r| machine.regs[usize::from(r.0)].file == *f).collect();
        let pool = files.iter().map(of).collect();
        let side = |cluster| files.iter().position(|&f| machine.files[f].cluster == cluster).unwrap_or(0);
        let side = machine.instrs.iter().map(|i| side(i.cluster)).collect();
        let units = machine.instrs.iter().map(|i| i.units.iter().fold(0, |m, &u| m | 1 << u.min(63))).collect();
        let takes = machine.instrs.iter().map(|i| Takes::of(machine, i)).collect();
        Sides { machine, files, pool, side, units, takes }
    }

    /// The same on a machine that differs in how much may start together.
    pub fn on<'n>(&self, machine: &'n Machine) -> Sides<'n> {
        Sides {
            machine,
            files: self.files.clone(),
            pool: self.pool.clone(),
            side: self.side.clone(),
            units: self.units.clone(),
            takes: machine.instrs.iter().map(|i| Takes::of(machine, i)).collect(),
        }
    }

    pub fn of_file(&self, file: FileId) -> Option<usize> {
        self.files.iter().position(|f| *f == file)
    }

    pub fn of_reg(&self, r: Reg) -> Option<usize> {
        self.of_file(self.machine.regs[usize::from(r.0)].file)
    }

    /// The side of the unit that an instruction has to run on for a certain register among its operands.
    pub fn certain(&self, inst: &VInst) -> Option<usize> {
        let certain = inst.ops.iter().find_map(|op| if let VOp::Phys(r) = op { Some(*r) } else { None });
        certain.and_then(|r| self.of_reg(r))
    }

    /// Side of the unit a variant runs on.
    pub fn of_variant(&self, v: InstrId) -> usize {
        self.side[usize::from(v.0)]
    }
}

/// Where a node runs and where its result is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    pub unit: usize,
    pub result: usize,
}

/// A node with its sides settled.
#[derive(Clone, Debug)]
pub struct Op {
    pub inst: VInst,
    pub reads: SmallVec<[(usize, From); 3]>,
    pub writes: Option<(usize, u32)>,
    pub tied: bool,
    pub at: At,
    pub variants: SmallVec<[InstrId; 8]>,
    /// Operands read over a path on which a value that has just landed makes
    /// the machine wait.
    pub stalling: Vec<usize>,
}

impl Op {
    /// The operands that travel over a path are those of the variants that it has now: all variants
    /// read an operand over a path or none does, since where it stands and the unit's side say so.
    pub fn follow_paths(&mut self, sides: &Sides<'_>) {
        let machine = sides.machine;
        let paths = self.variants.first().map(|v| machine.instrs[usize::from(v.0)].paths.iter());
        self.stalling = paths.into_iter().flatten().filter(|p| machine.units[p.0].shared > 1).map(|p| p.1).collect();
    }
}

/// What an operation is of the body.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    Node(usize),
    /// The copy on a side of a node's value, of an iteration so far back, for all who want it.
    Copy(usize, u32, usize),
    /// A copy for one operation.
    Own,
}

/// Words of the frame that nothing uses.
#[derive(Clone, Copy, Debug)]
pub struct Free {
    /// The first one's offset from the stack pointer.
    pub first: i64,
    /// Accesses to the frame say which banks they touch.
    pub banks: bool,
}

/// All that is to be scheduled.
#[derive(Clone, Debug, Default)]
pub struct Ops {
    pub ops: Vec<Op>,
    pub origins: Vec<Origin>,
    /// Initial values, as in the body.
    pub initial: BTreeMap<usize, VReg>,
    pub live_out: Vec<(usize, VReg)>,
    pub memory: Vec<(usize, usize, u32, u32)>,
    /// The sides of the body's nodes that all this was made possible for; some operations may
    /// have others by now.
    pub settled: Vec<At>,
    /// Where values may go that have no register, and the words that they have there.
    pub frame: Option<Free>,
    pub spilled: usize,
    /// The machine waits for operands: a register's old value is gone with the
    /// cycle in which its new one is started.
    pub interlock: bool,
    /// Cycles the machine stands still when a path reads a register that was
    /// written in the cycle before.
    pub cross_stall: i64,
}

impl Ops {
    /// The sides of so many nodes of a body.
    pub fn at(&self, nodes: usize) -> Vec<At> {
        let mut at = vec![At { unit: 0, result: 0 }; nodes];
        for (op, origin) in self.ops.iter().zip(&self.origins) {
            if let Origin::Node(n) = origin {
                at[*n] = op.at;
            }
        }
        at
    }

    /// Cycles by which a result is read later than it lands, so that the
    /// machine does not wait for it.
    pub fn crossing(&self, reader: usize, operand: usize) -> i64 {
        if self.ops[reader].stalling.contains(&operand) { self.cross_stall } else { 0 }
    }

    /// Side on which `from` is read by an operation whose unit is on `unit`:
    /// values from outside are wherever they are wanted.
    pub fn side(&self, from: From, unit: usize) -> usize {
        match from {
            From::Node(n, _) => self.ops[n].at.result,
            From::Outside(_) => unit,
        }
    }
}

/// Variants of `inst` on `at.unit` that read and write where they should.
fn fitting(sides: &Sides<'_>, inst: &VInst, at: At, side: &dyn Fn(usize) -> Option<usize>) -> SmallVec<[InstrId; 8]> {
    let all = &sides.machine.variants[usize::from(inst.instr.0)];
    let there = |v: InstrId| sides.of_variant(v) == at.unit || sides.units[usize::from(v.0)] == 0;
    let fits = |v: &InstrId| there(*v) && wrong(sides, inst, *v, side).next().is_none();
    all.iter().copied().filter(fits).collect()
}

/// Variants of an operation that read and write where they should, with all sides as they
/// are now.
pub fn fit(sides: &Sides<'_>, ops: &Ops, i: usize) -> SmallVec<[InstrId; 8]> {
    let op = &ops.ops[i];
    let side = |o: usize| {
        if op.writes.is_some_and(|w| w.0 == o) {
            return Some(op.at.result);
        }
        op.reads.iter().find(|r| r.0 == o).map(|r| ops.side(r.1, op.at.unit))
    };
    fitting(sides, &op.inst, op.at, &side)
}

/// Operands that a variant wants on another side: `(operand, side)`.
fn wrong<'a>(
    sides: &'a Sides<'_>,
    inst: &'a VInst,
    v: InstrId,
    side: &'a dyn Fn(usize) -> Option<usize>,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let instr = &sides.machine.instrs[usize::from(v.0)];
    inst.ops.iter().enumerate().filter_map(move |(o, op)| {
        let OperandKind::Reg { file, .. } = instr.operands[o].kind else { return None };
        if let VOp::Phys(r) = op {
            let elsewhere = sides.machine.regs[usize::from(r.0)].file != file;
            return elsewhere.then(|| (o, sides.of_file(file).unwrap_or(0)));
        }
        if !matches!(op, VOp::Use(_) | VOp::Def(_) | VOp::Tied { .. }) {
            return None;
        }
        // An operand of certain registers may be on any of their sides.
        let certain = instr.only.iter().find(|p| p.0 == o);
        let wanted = sides.of_file(file);
        match (side(o), certain, wanted) {
            (Some(s), Some((_, regs)), _) => {
                let none = !regs.iter().any(|r| sides.pool[s].contains(r));
                none.then(|| (o, wanted.unwrap_or(0)))
            }
            (Some(s), None, Some(w)) if s != w => Some((o, w)),
            _ => None,
        }
    })
}

/// Settle the sides of all nodes.
///
/// # Errors
/// When some node has no variant, whatever is copied.
pub fn settle(body: &Body, sides: &Sides<'_>, at: &[At]) -> Result<Ops, CompileError> {
    let mut s = Settler { sides, out: Ops::default(), index: Vec::new(), copies: BTreeMap::new(), later: Vec::new() };
    let mut readers = vec![0usize; body.nodes.len()];
    for (_, from) in body.nodes.iter().flat_map(|n| &n.reads) {
        if let From::Node(n, 0) = from {
            readers[*n] += 1;
        }
    }
    let leaves = |n: usize| body.live_out.iter().any(|l| l.0 == n) || body.initial.contains_key(&n);
    for (i, node) in body.nodes.iter().enumerate() {
        let alone = |from: From| match from {
            From::Node(n, 0) => readers[n] == 1 && !leaves(n),
            From::Node(n, _) => n == i,
            From::Outside(_) => false,
        };
        s.node((i, node), at[i], &alone, at)?;
    }
    // A value of the iteration before has no number while its node is still
    // to come; all have one now.
    for (op, k, old) in std::mem::take(&mut s.later) {
        s.out.ops[op].reads[k].1 = From::Node(s.index[old], 1);
    }
    let mut out = s.out;
    out.settled = at.to_vec();
    out.interlock = sides.machine.issue.interlock;
    out.cross_stall = i64::from(sides.machine.issue.cross_stall);
    out.initial = body.initial.iter().map(|(&n, &v)| (s.index[n], v)).collect();
    out.live_out = body.live_out.iter().map(|&(n, v)| (s.index[n], v)).collect();
    out.memory = body.memory.iter().map(|&(a, b, c, d)| (s.index[a], s.index[b], c, d)).collect();
    Ok(out)
}

struct Settler<'a> {
    sides: &'a Sides<'a>,
    out: Ops,
    /// Number of each node of the body among the operations.
    index: Vec<usize>,
    /// Copies made: value (as the body numbers it) and side.
    copies: BTreeMap<(usize, u32, usize), usize>,
    /// Reads of the iteration before: operation, place, node of the body.
    later: Vec<(usize, usize, usize)>,
}

impl Settler<'_> {
    fn node(
        &mut self,
        (own, node): (usize, &Node),
        at: At,
        alone: &dyn Fn(From) -> bool,
        all: &[At],
    ) -> Result<(), CompileError> {
        let mut inst = node.inst.clone();
        let at = At { unit: self.sides.certain(&inst).unwrap_or(at.unit), ..at };
        let mut reads: SmallVec<[(usize, Read); 4]> = node
            .reads
            .iter()
            .map(|&(o, from)| {
                let read = match from {
                    From::Node(n, d) => Read::Body(n, d),
                    From::Outside(v) => Read::Outside(v),
                };
                (o, read)
            })
            .collect();
        // What a tied operand overwrites must be nobody else's.
        if let (true, Some((tied, _))) = (node.tied, node.writes) {
            for (k, (o, from)) in node.reads.iter().enumerate() {
                let home = match reads[k].1 {
                    Read::Body(n, _) => all[n].result == at.result,
                    _ => false,
                };
                if *o == tied && !(alone(*from) && home) {
                    let copy = self.copy(reads[k].1, at.result, all, false)?;
                    reads[k].1 = Read::Op(copy);
                }
            }
        }
        // What it reads of its own last result is there no more when the operand it overwrites, which
        // has the same register, has come.
        if let (true, Some((tied, _))) = (node.tied, node.writes) {
            let old = |(o, from): (usize, From)| o != tied && matches!(from, From::Node(n, d) if n == own && d > 0);
            let replaced = node.reads.iter().any(|&(o, from)| o == tied && matches!(from, From::Node(_, 0)));
            for (k, _) in node.reads.iter().enumerate().filter(|r| replaced && old(*r.1)) {
                reads[k].1 = Read::Op(self.copy(reads[k].1, at.result, all, false)?);
            }
        }
        let mut variants = fitting(self.sides, &inst, at, &|o| self.side(node, at, all, &reads, o));
        if variants.is_empty() {
            let choices = self.sides.machine.variants[usize::from(inst.instr.0)].iter().copied();
            let here = |v: &InstrId| self.sides.of_variant(*v) == at.unit;
            let repaired = choices
                .filter(here)
                .map(|v| wrong(self.sides, &inst, v, &|o| self.side(node, at, all, &reads, o)).collect::<Vec<_>>())
                .filter(|w| w.iter().all(|&(o, _)| node.writes.is_none_or(|d| d.0 != o)))
                .min_by_key(Vec::len);
            let Some(repaired) = repaired else { return Err(self.impossible(&inst)) };
            for (o, to) in repaired {
                if let Some(k) = reads.iter().position(|r| r.0 == o) {
                    let copy = self.copy(reads[k].1, to, all, true)?;
                    reads[k].1 = Read::Op(copy);
                }
            }
            variants = fitting(self.sides, &inst, at, &|o| self.side(node, at, all, &reads, o));
            if variants.is_empty() {
                return Err(self.impossible(&inst));
            }
        }
        inst.kind = VKind::Normal;
        self.index.push(self.out.ops.len());
        let origin = Origin::Node(self.index.len() - 1);
        let op = Op {
            inst,
            reads: SmallVec::new(),
            writes: node.writes,
            tied: node.tied,
            at,
            variants,
            stalling: Vec::new(),
        };
        self.push(op, origin, &reads);
        Ok(())
    }

    /// Side of the register that operand `o` of a node on `at` has.
    fn side(&self, node: &Node, at: At, all: &[At], reads: &[(usize, Read)], o: usize) -> Option<usize> {
        if node.writes.is_some_and(|w| w.0 == o) {
            return Some(at.result);
        }
        Some(match reads.iter().find(|r| r.0 == o)?.1 {
            Read::Body(n, _) => all[n].result,
            Read::Op(n) => self.out.ops[n].at.result,
            Read::Outside(_) => at.unit,
        })
    }

    fn push(&mut self, mut op: Op, origin: Origin, reads: &[(usize, Read)]) {
        let at = self.out.ops.len();
        op.follow_paths(self.sides);
        for (k, &(o, read)) in reads.iter().enumerate() {
            let from = match read {
                Read::Op(n) => From::Node(n, 0),
                Read::Outside(v) => From::Outside(v),
                Read::Body(n, 0) => From::Node(self.index[n], 0),
                Read::Body(n, d) => {
                    self.later.push((at, k, n));
                    From::Node(usize::MAX, d)
                }
            };
            op.reads.push((o, from));
        }
        self.out.ops.push(op);
        self.out.origins.push(origin);
    }

    /// A copy of a value on a side; one for all who want it, if `shared`.
    fn copy(&mut self, read: Read, to: usize, all: &[At], shared: bool) -> Result<usize, CompileError> {
        let key = match read {
            Read::Body(n, d) => Some((n, d, to)),
            _ => None,
        };
        if let Some(&c) = key.filter(|_| shared).and_then(|k| self.copies.get(&k)) {
            return Ok(c);
        }
        let from = match read {
            Read::Body(n, _) => all[n].result,
            Read::Op(n) => self.out.ops[n].at.result,
            Read::Outside(_) => to,
        };
        let (op, used) = copy(self.sides, from, to);
        if op.variants.is_empty() {
            return Err(self.impossible(&op.inst));
        }
        let n = self.out.ops.len();
        let key = key.filter(|_| shared);
        self.push(op, key.map_or(Origin::Own, |(of, distance, to)| Origin::Copy(of, distance, to)), &[(used, read)]);
        if let Some(k) = key {
            self.copies.insert(k, n);
        }
        Ok(n)
    }

    fn impossible(&self, inst: &VInst) -> CompileError {
        let name = &self.sides.machine.instrs[usize::from(inst.instr.0)].name;
        CompileError::Internal(format!("no unit can run `{name}` in a pipelined loop"))
    }
}

/// An instruction that copies a value, the operand that it writes and the one that it reads.
pub fn mov(machine: &Machine) -> (VInst, usize, usize) {
    let mov = machine.abi.ops.mov;
    let operands = &machine.instrs[usize::from(mov.0)].operands;
    let is_def = |o: &usize| matches!(operands[*o].kind, OperandKind::Reg { def: true, .. });
    // Operands are told apart by their places, not by these names.
    let all = 0..operands.len();
    let ops: Vec<VOp> = all.clone().map(|o| if is_def(&o) { VOp::Def(VReg(0)) } else { VOp::Use(VReg(0)) }).collect();
    let mut inst = VInst::new(VKind::Normal, mov, &ops, 0);
    inst.role = ciphermill_program::Role::Overhead;
    let (def, used) = (all.clone().find(is_def).unwrap_or(0), all.clone().find(|o| !is_def(o)).unwrap_or(1));
    (inst, def, used)
}

/// A copy of a value of one side on another, or the same; it reads nothing yet. And
/// the operand that it is to read.
fn copy(sides: &Sides<'_>, from: usize, to: usize) -> (Op, usize) {
    let (inst, def, used) = mov(sides.machine);
    let at = At { unit: to, result: to };
    let variants = fitting(sides, &inst, at, &|o| Some(if o == def { to } else { from }));
    let writes = Some((def, sides.machine.instrs[usize::from(inst.instr.0)].latency));
    (Op { inst, reads: SmallVec::new(), writes, tied: false, at, variants, stalling: Vec::new() }, used)
}

/// A source while nodes are being numbered anew.
#[derive(Clone, Copy, Debug)]
enum Read {
    /// A node of the body and a distance.
    Body(usize, u32),
    /// An operation already made.
    Op(usize),
    Outside(VReg),
}

#[cfg(test)]
mod tests {
    use super::{At, Origin, Sides, settle};
    use crate::body::{From, Node};
    use crate::search::tests::{addition, machine, named, with_branch};
    use ciphermill_machine::Reg;
    use ciphermill_vcode::{VInst, VKind, VOp, VReg};

    /// `x = c ? x : y`, where `y` is made anew and `x` is what the iteration before left: the register
    /// of `y` becomes that of `x`, so the old `x` has to be in another by then.
    #[test]
    fn what_chooses_between_its_last_result_and_a_new_value_reads_a_copy() {
        let m = machine();
        let desc = &m.instrs[usize::from(named(&m, "mv_nz").0)];
        let condition = desc.only[0].0;
        let other = (0..desc.operands.len()).find(|&o| o != condition && desc.operands[o].name == "src2").unwrap();
        let result = (0..desc.operands.len()).find(|o| *o != condition && *o != other).unwrap();
        let mut ops = vec![VOp::Use(VReg(0)); desc.operands.len()];
        ops[result] = VOp::Tied { used: VReg(0), def: VReg(2) };
        let inst = VInst::new(VKind::Normal, named(&m, "mv_nz"), &ops, 0);
        let reads = vec![(condition, From::Outside(VReg(0))), (other, From::Node(1, 1)), (result, From::Node(0, 0))];
        let choice = Node { mem: None, inst, reads, writes: Some((result, 1)), tied: true };
        let mut body = with_branch(&m, vec![addition(&m, From::Outside(VReg(0))), choice]);
        body.initial.insert(1, VReg(5));
        let free: Vec<Reg> = (0..m.regs.len() as u16).map(Reg).collect();
        let settled = settle(&body, &Sides::new(&m, &free), &[At { unit: 0, result: 0 }; 3]).unwrap();
        let of = |node: usize| settled.origins.iter().position(|o| *o == Origin::Node(node)).unwrap();
        let copy = settled.origins.iter().position(|o| *o == Origin::Own).unwrap();
        assert_eq!(settled.ops.len(), 4);
        assert_eq!(settled.ops[copy].reads.iter().map(|r| r.1).collect::<Vec<_>>(), [From::Node(of(1), 1)]);
        let reads: Vec<From> = settled.ops[of(1)].reads.iter().map(|r| r.1).collect();
        assert_eq!(reads, [From::Outside(VReg(0)), From::Node(copy, 0), From::Node(of(0), 0)]);
    }
}
