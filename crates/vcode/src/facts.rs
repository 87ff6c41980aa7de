//! What each instruction reads and writes, as the scheduler wants to know it.

use crate::code::{VInst, VKind, VOp};
use crate::memory::MemRef;
use crate::node::Node;
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Instr, Machine, OperandKind, Reg};
use ciphermill_program as program;
use std::collections::BTreeSet;

/// Registers that an instruction's semantics name themselves.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    pub reads: Vec<Reg>,
    /// With the cycles until the result can be read.
    pub writes: Vec<(Reg, u32)>,
}

/// [`Fixed`] for every instruction of a machine, by its index.
pub struct Facts {
    fixed: Vec<Fixed>,
    /// By instruction: the number of its timing, and its `issue_before` by such numbers.
    timings: Vec<(u16, Vec<(u16, u32)>)>,
}

impl Facts {
    pub fn new(machine: &Machine) -> Facts {
        let names: BTreeSet<&str> = machine.instrs.iter().map(|i| i.timing.as_str()).collect();
        let number = |name: &str| names.iter().position(|n| *n == name).unwrap_or(names.len()) as u16;
        let before = |i: &Instr| i.issue_before.iter().map(|(name, cycles)| (number(name), *cycles)).collect();
        let timings = machine.instrs.iter().map(|i| (number(&i.timing), before(i))).collect();
        Facts { fixed: machine.instrs.iter().map(fixed).collect(), timings }
    }

    /// Registers that an instruction writes without having them as operands.
    pub fn fixed_writes(&self, instr: ciphermill_machine::InstrId) -> impl Iterator<Item = Reg> + '_ {
        self.fixed[usize::from(instr.0)].writes.iter().map(|w| w.0)
    }

    /// The scheduler's view of an instruction before allocation. Virtual
    /// registers are numbered above the physical ones.
    pub fn virtual_node(&self, machine: &Machine, inst: &VInst) -> Node {
        let instr = &machine.instrs[inst.instr.0 as usize];
        let base = machine.regs.len() as u32;
        let mut node = self.start(inst.instr.0 as usize, instr, inst.kind, inst.mem);
        for v in inst.uses() {
            node.reads.push(base + v.0);
        }
        for v in inst.defs() {
            node.writes.push((base + v.0, instr.latency));
        }
        for (op, spec) in inst.ops.iter().zip(&instr.operands) {
            if let VOp::Phys(r) = op {
                physical(&mut node, machine, *r, &spec.kind, instr.latency);
            }
        }
        for &(i, cycles) in &instr.early {
            match inst.ops.get(i) {
                Some(VOp::Use(v) | VOp::Tied { used: v, .. }) => node.early.push((base + v.0, cycles)),
                Some(VOp::Phys(r)) => node.early.push((u32::from(r.0), cycles)),
                _ => {}
            }
        }
        node
    }

    /// The scheduler's view of an instruction after allocation.
    pub fn node(&self, machine: &Machine, inst: &program::Inst, kind: VKind, mem: Option<MemRef>) -> Node {
        let instr = &machine.instrs[inst.instr.0 as usize];
        let mut node = self.start(inst.instr.0 as usize, instr, kind, mem);
        for (op, spec) in inst.operands.iter().zip(&instr.operands) {
            if let program::Operand::Reg(r) = op {
                physical(&mut node, machine, *r, &spec.kind, instr.latency);
            }
        }
        for &(i, cycles) in &instr.early {
            if let Some(program::Operand::Reg(r)) = inst.operands.get(i) {
                node.early.push((u32::from(r.0), cycles));
            }
        }
        node
    }

    fn start(&self, id: usize, instr: &Instr, kind: VKind, mem: Option<MemRef>) -> Node {
        let fixed = &self.fixed[id];
        Node {
            reads: fixed.reads.iter().map(|r| u32::from(r.0)).collect(),
            writes: fixed.writes.iter().map(|&(r, l)| (u32::from(r.0), l)).collect(),
            mem,
            // Behind a window instruction every register has another meaning.
            barrier: kind != VKind::Normal
                || instr.semantics.iter().any(|s| matches!(s, Stmt::Rotate | Stmt::WindowSave | Stmt::WindowRestore)),
            issue_cycles: instr.issue_cycles,
            timing: self.timings[id].0,
            issue_before: self.timings[id].1.clone(),
            early: Vec::new(),
        }
    }
}

fn physical(node: &mut Node, machine: &Machine, r: Reg, kind: &OperandKind, latency: u32) {
    if machine.regs[r.0 as usize].zero {
        return;
    }
    if let OperandKind::Reg { def, used, .. } = kind {
        if *used {
            node.reads.push(u32::from(r.0));
        }
        if *def {
            node.writes.push((u32::from(r.0), latency));
        }
    }
}

fn fixed(instr: &Instr) -> Fixed {
    let mut f = Fixed::default();
    for stmt in &instr.semantics {
        match stmt {
            Stmt::Let { value, .. } => reads(value, &mut f.reads),
            Stmt::Assign { dest, value } => {
                reads(value, &mut f.reads);
                if let Dest::Fixed(r) = dest {
                    let own = instr.dest_latency.iter().find(|(d, _)| d == dest);
                    f.writes.push((*r, own.map_or(instr.latency, |d| d.1)));
                }
            }
            Stmt::Store { addr, value, .. } => {
                reads(addr, &mut f.reads);
                reads(value, &mut f.reads);
            }
            Stmt::Goto { cond, target } => {
                if let Some(c) = cond {
                    reads(c, &mut f.reads);
                }
                reads(target, &mut f.reads);
            }
            Stmt::Trap | Stmt::Rotate | Stmt::WindowSave | Stmt::WindowRestore => {}
        }
    }
    f
}

fn reads(e: &Expr, out: &mut Vec<Reg>) {
    match e {
        Expr::Fixed(r) => out.push(*r),
        Expr::Bin { a, b, .. } | Expr::Cmp { a, b, .. } | Expr::FlagsSub { a, b, .. } | Expr::FlagsAdd { a, b, .. } => {
            reads(a, out);
            reads(b, out);
        }
        Expr::Un { a, .. } | Expr::Slice { a, .. } | Expr::Linear { a, .. } | Expr::FlagsLogic { a, .. } => {
            reads(a, out)
        }
        Expr::MatVec { matrix, a } => {
            out.extend(matrix.registers());
            reads(a, out);
        }
        Expr::Select { cond, then, els } => [cond, then, els].into_iter().for_each(|e| reads(e, out)),
        Expr::Load { addr: a, .. } | Expr::Table { index: a, .. } | Expr::FlagsTest { flags: a, .. } => reads(a, out),
        Expr::Operand(_) | Expr::Imm(_) | Expr::Temp(_) | Expr::Const(_) | Expr::Pc => {}
    }
}
