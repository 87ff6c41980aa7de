//! Peephole optimisations on physical code.
//!
//! * [`Encodings`]: an instruction whose immediates and registers fit a shorter one of the same semantics
//!   becomes that one. Offsets of stack slots are known only here.
//! * [`Encodings::spared`]: a comparison of a result with zero goes where the instruction that made the
//!   result has set the same flags, or has a variant that does.

use ciphermill_ir::{BinOp, CmpOp};
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Instr, InstrId, Machine, OperandKind, Reg};
use ciphermill_program::{Block, Bundle, Inst, Operand};
use ciphermill_regalloc::fold::semantics_text;
use ciphermill_vcode::PInst;
use std::collections::HashMap;
use std::sync::Arc;

/// For each instruction the others of the same meaning that can be shorter, shortest first.
pub struct Encodings {
    machine: Arc<Machine>,
    shorter: HashMap<InstrId, Vec<InstrId>>,
    /// Moves two registers at once: `rd = rs; rd2 = rs2`.
    pair: Option<InstrId>,
}

impl Encodings {
    pub fn new(machine: &Arc<Machine>) -> Encodings {
        let mut alike: HashMap<String, Vec<usize>> = HashMap::new();
        // Most machines have one size of instructions, or one for each meaning.
        let compact = machine.instrs.iter().any(|i| !i.sizes.is_empty()) || machine.chains.is_some();
        let with_immediate = |i: &Instr| i.operands.iter().any(|o| matches!(o.kind, OperandKind::Imm { .. }));
        for (i, instr) in machine.instrs.iter().enumerate().filter(|(_, i)| compact && with_immediate(i)) {
            let names: Vec<&str> = instr.operands.iter().map(|o| o.name.as_str()).collect();
            let key = format!("{names:?} {} {}", instr.asm, semantics_text(machine, instr, &|_| None));
            alike.entry(key).or_default().push(i);
        }
        let mut shorter: HashMap<InstrId, Vec<InstrId>> = HashMap::new();
        for list in alike.values() {
            for &i in list {
                // With other registers, one of as many bytes may need no prefix.
                let narrows =
                    |j: usize| machine.instrs[j].bytes == machine.instrs[i].bytes && !machine.instrs[j].only.is_empty();
                let fits = |j: usize| machine.instrs[j].bytes < machine.instrs[i].bytes || j != i && narrows(j);
                let mut below: Vec<usize> = list.iter().copied().filter(|&j| fits(j)).collect();
                below.sort_by_key(|&j| (machine.instrs[j].bytes, j));
                if !below.is_empty() {
                    shorter.insert(InstrId(i as u16), below.into_iter().map(|j| InstrId(j as u16)).collect());
                }
            }
        }
        let moves = |i: &Instr| {
            let moved = |s: &Stmt| matches!(s, Stmt::Assign { dest: Dest::Operand(_), value: Expr::Operand(_) });
            i.semantics.len() == 2 && i.semantics.iter().all(moved)
        };
        let pair = machine.instrs.iter().position(moves).map(|i| InstrId(i as u16));
        Encodings { machine: machine.clone(), shorter, pair }
    }

    /// Take the shortest encoding that holds the immediates.
    pub fn shorten(&self, inst: &mut Inst) {
        let Some(list) = self.shorter.get(&inst.instr) else { return };
        let holds = |id: InstrId| {
            let instr = &self.machine.instrs[usize::from(id.0)];
            instr.operands.iter().zip(&inst.operands).enumerate().all(|(i, (o, given))| match (&o.kind, given) {
                (OperandKind::Imm { .. }, Operand::Imm(v)) => {
                    o.kind.imm_for(*v as u64, self.machine.word_bits) == Some(*v)
                }
                (_, Operand::Reg(r)) => instr.only.iter().all(|(at, regs)| *at != i || regs.contains(r)),
                _ => true,
            })
        };
        let bytes = |id: InstrId| Inst { instr: id, ..inst.clone() }.bytes(&self.machine);
        let shortest = list.iter().copied().filter(|&id| holds(id)).min_by_key(|&id| bytes(id));
        if let Some(id) = shortest.filter(|&id| bytes(id) < inst.bytes(&self.machine)) {
            inst.instr = id;
        }
    }

    /// Make one of two moves that stand one behind the other, where registers are neighbours and one instruction moves both.
    pub fn paired(&self, block: &mut Block) {
        let Some(pair) = self.pair else { return };
        let moved = |b: &Bundle| match &b.insts[..] {
            [inst] if inst.instr == self.machine.abi.ops.mov => {
                let spec = &self.machine.instrs[usize::from(inst.instr.0)].operands;
                let of = |def: bool| {
                    let place =
                        spec.iter().position(|o| matches!(o.kind, OperandKind::Reg { def: d, .. } if d == def))?;
                    if let Some(Operand::Reg(r)) = inst.operands.get(place) { Some(*r) } else { None }
                };
                Some((of(true)?, of(false)?))
            }
            _ => None,
        };
        let only = &self.machine.instrs[usize::from(pair.0)].only;
        let fits = |at: usize, r: Reg| only.iter().all(|o| o.0 != at || o.1.contains(&r));
        let joined = |low: (Reg, Reg), high: (Reg, Reg)| {
            let mut operands: smallvec::SmallVec<[Operand; 4]> = smallvec::smallvec![Operand::Imm(0); 4];
            let mut fit = high.0.0 == low.0.0 + 1 && high.1.0 == low.1.0 + 1;
            for (stmt, (to, from)) in self.machine.instrs[usize::from(pair.0)].semantics.iter().zip([low, high]) {
                if let Stmt::Assign { dest: Dest::Operand(d), value: Expr::Operand(s) } = stmt {
                    fit &= fits(*d, to) && fits(*s, from);
                    (operands[*d], operands[*s]) = (Operand::Reg(to), Operand::Reg(from));
                }
            }
            fit.then_some(operands)
        };
        let mut at = 0;
        while at + 1 < block.bundles.len() {
            if let (Some(a), Some(b)) = (moved(&block.bundles[at]), moved(&block.bundles[at + 1]))
                && let Some(operands) = joined(a, b).or_else(|| joined(b, a))
            {
                block.bundles.remove(at + 1);
                let inst = &mut block.bundles[at].insts[0];
                inst.instr = pair;
                inst.operands = operands.into_iter().collect();
            }
            at += 1;
        }
    }

    /// Leave out the comparison with zero before `branch` if the flags are set
    /// already. Only tests of equality are: zero is zero whatever made it.
    pub fn spared(&self, body: &mut Vec<PInst>, branch: &Inst) {
        let Some((Stmt::Goto { cond: Some(cond), .. }, 1)) =
            self.semantics(branch).first().map(|s| (s, self.semantics(branch).len()))
        else {
            return;
        };
        let Expr::FlagsTest { op: CmpOp::Eq | CmpOp::Ne, flags } = cond else { return };
        let Expr::Fixed(flags) = **flags else { return };
        let Some(at) = body.iter().rposition(|p| self.writes(&p.inst, flags)) else { return };
        let Some(reg) = self.compared_with_zero(&body[at].inst, flags) else { return };
        let Some(made) = body[..at].iter().rposition(|p| self.writes(&p.inst, flags) || self.writes(&p.inst, reg))
        else {
            return;
        };
        if self.sets_zero(&body[made].inst, reg, flags) {
            body.remove(at);
            return;
        }
        let between = &body[made + 1..at];
        if between.iter().any(|p| self.reads(&p.inst, flags)) {
            return;
        }
        if let Some(instr) = self.with_flags(&body[made].inst, reg, flags) {
            body[made].inst.instr = instr;
            body.remove(at);
        }
    }

    /// The instruction that does the same and sets the zero flag by its result.
    fn with_flags(&self, inst: &Inst, reg: Reg, flags: Reg) -> Option<InstrId> {
        let plain = &self.machine.instrs[usize::from(inst.instr.0)];
        let [Stmt::Assign { dest: Dest::Operand(_), .. }] = plain.semantics[..] else { return None };
        let alike = |i: &Instr| {
            i.operands == plain.operands
                && matches!(&i.semantics[..], [first, Stmt::Assign { dest: Dest::Fixed(f), .. }]
                    if *first == plain.semantics[0] && *f == flags)
                && (i.latency, i.issue_cycles) == (plain.latency, plain.issue_cycles)
        };
        let candidates =
            self.machine.instrs.iter().enumerate().filter(|(_, i)| alike(i)).map(|(n, _)| InstrId(n as u16));
        candidates.into_iter().find(|&instr| self.sets_zero(&Inst { instr, ..inst.clone() }, reg, flags))
    }

    /// May it read the register without having it as an operand?
    fn reads(&self, inst: &Inst, reg: Reg) -> bool {
        let mut found = false;
        for s in self.semantics(inst) {
            let exprs: Vec<&Expr> = match s {
                Stmt::Let { value, .. } | Stmt::Assign { value, .. } => vec![value],
                Stmt::Store { addr, value, .. } => vec![addr, value],
                Stmt::Goto { .. } | Stmt::Trap | Stmt::Rotate | Stmt::WindowSave | Stmt::WindowRestore => return true,
            };
            exprs.iter().for_each(|e| e.walk(&mut |e| found |= *e == Expr::Fixed(reg)));
        }
        found
    }

    fn semantics(&self, inst: &Inst) -> &[Stmt] {
        &self.machine.instrs[usize::from(inst.instr.0)].semantics
    }

    fn dest(inst: &Inst, dest: &Dest) -> Option<Reg> {
        match dest {
            Dest::Fixed(r) => Some(*r),
            Dest::Operand(i) => match inst.operands.get(*i) {
                Some(Operand::Reg(r)) => Some(*r),
                _ => None,
            },
        }
    }

    /// May it write the register? A call may write any.
    fn writes(&self, inst: &Inst, reg: Reg) -> bool {
        self.semantics(inst).iter().any(|s| match s {
            Stmt::Assign { dest, .. } => Encodings::dest(inst, dest) == Some(reg),
            Stmt::Goto { .. } | Stmt::Trap | Stmt::Rotate | Stmt::WindowSave | Stmt::WindowRestore => true,
            Stmt::Let { .. } | Stmt::Store { .. } => false,
        })
    }

    /// The register that an instruction does nothing but compare with zero.
    fn compared_with_zero(&self, inst: &Inst, flags: Reg) -> Option<Reg> {
        let [Stmt::Assign { dest: Dest::Fixed(f), value }] = self.semantics(inst) else { return None };
        let reg = |e: &Expr| match e {
            Expr::Operand(i) => Encodings::dest(inst, &Dest::Operand(*i)),
            _ => None,
        };
        let found = match value {
            Expr::FlagsLogic { a, .. } => match &**a {
                Expr::Bin { op: BinOp::And, a, b, .. } => reg(a).filter(|r| reg(b) == Some(*r)),
                _ => None,
            },
            Expr::FlagsSub { a, b, .. } => match **b {
                Expr::Imm(i) if inst.operands.get(i) == Some(&Operand::Imm(0)) => reg(a),
                Expr::Operand(_) if reg(b).is_some_and(|r| self.machine.regs[usize::from(r.0)].zero) => reg(a),
                _ => None,
            },
            _ => None,
        };
        found.filter(|_| *f == flags)
    }

    /// Does it put a value into `reg` and set the zero flag by that value?
    fn sets_zero(&self, inst: &Inst, reg: Reg, flags: Reg) -> bool {
        let mut values = (None, None);
        let mut lets: HashMap<usize, &Expr> = HashMap::new();
        for s in self.semantics(inst) {
            match s {
                Stmt::Let { temp, value } => {
                    lets.insert(*temp, value);
                }
                Stmt::Assign { dest: Dest::Fixed(f), value } if *f == flags => values.1 = Some(value),
                Stmt::Assign { dest, value } if Encodings::dest(inst, dest) == Some(reg) => values.0 = Some(value),
                _ => {}
            }
        }
        let (Some(value), Some(set)) = values else { return false };
        let same = |width: u8, a: &Expr, b: &Expr, op: BinOp| matches!(value, Expr::Bin { op: o, bits, a: x, b: y } if *o == op && *bits == width && **x == *a && **y == *b);
        match set {
            Expr::FlagsLogic { bits, a } => {
                let made = match value {
                    Expr::Temp(t) => lets.get(t).copied().unwrap_or(value),
                    other => other,
                };
                let whole = *bits == self.machine.word_bits || matches!(made, Expr::Bin { bits: b, .. } if b <= bits);
                whole && **a == *value
            }
            Expr::FlagsAdd { bits, a, b } => same(*bits, a, b, BinOp::Add),
            Expr::FlagsSub { bits, a, b } => same(*bits, a, b, BinOp::Sub),
            _ => false,
        }
    }
}
