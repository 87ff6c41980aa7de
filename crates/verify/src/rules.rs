//! A machine as the checks know it: what each instruction reads, writes and means, worked out
//! from its semantics by code of this crate's own.

use crate::sums;
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Instr, InstrId, InstrKind, Machine, OperandKind, Reg};
use std::sync::Arc;

/// A result of an instruction.
#[derive(Clone, Debug)]
pub(crate) struct Result {
    pub dest: Dest,
    /// Cycles until it is in its register.
    pub latency: u32,
    pub value: Value,
    /// Where it is made of what sums are made of.
    pub sum: Option<Expr>,
    pub meaning: Expr,
}

/// What is known of a result beside that it follows from what is read.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// It is what an operand is.
    Copy(usize),
    Imm(usize),
    Const(u64),
    Other,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Effect {
    /// Instructions of equal semantics have equal numbers.
    pub meaning: u32,
    /// Operands of which the register is read.
    pub reads: Vec<usize>,
    /// Registers that the semantics read by name.
    pub fixed: Vec<Reg>,
    pub results: Vec<Result>,
    /// Where its one access to memory begins, if that is a sum, and its bytes.
    pub address: Option<(Expr, u8)>,
    pub loads: bool,
    pub stores: bool,
    /// Goes on elsewhere, or turns the registers: evaluated statement by statement.
    pub control: bool,
    pub jumps: bool,
    pub conditional: bool,
    pub rotates: bool,
    /// A call, or one behind which every register has another meaning.
    pub fence: bool,
    /// Nothing but time passes.
    pub idle: bool,
}

/// What there is to know of a machine. Made once for any number of checks.
pub struct Rules {
    pub(crate) machine: Arc<Machine>,
    pub(crate) effects: Vec<Effect>,
}

impl Rules {
    pub fn new(machine: Arc<Machine>) -> Rules {
        let mut effects: Vec<Effect> = machine.instrs.iter().map(|i| effect(&machine, i)).collect();
        let mut meaning: Vec<u32> = (0..machine.instrs.len() as u32).collect();
        for list in &machine.variants {
            let Some(first) = list.first() else { continue };
            let same = |v: &&InstrId| {
                machine.instrs[usize::from(v.0)].semantics == machine.instrs[usize::from(first.0)].semantics
            };
            for v in list.iter().skip(1).filter(same) {
                meaning[usize::from(v.0)] = u32::from(first.0);
            }
        }
        effects.iter_mut().zip(meaning).for_each(|(e, m)| e.meaning = m);
        Rules { machine, effects }
    }

    /// Is the pipeline exposed: does an instruction that reads too early get what was there?
    pub(crate) fn exposed(&self) -> bool {
        !self.machine.issue.interlock
    }

    pub(crate) fn instr(&self, id: InstrId) -> &Instr {
        &self.machine.instrs[usize::from(id.0)]
    }

    pub(crate) fn effect(&self, id: InstrId) -> &Effect {
        &self.effects[usize::from(id.0)]
    }

    pub(crate) fn name(&self, id: InstrId) -> &str {
        self.machine.instrs.get(usize::from(id.0)).map_or("?", |i| &i.name)
    }

    pub(crate) fn register(&self, r: u32) -> String {
        self.machine.regs.get(r as usize).map_or_else(|| format!("v{r}"), |i| i.name.clone())
    }
}

fn effect(machine: &Machine, instr: &Instr) -> Effect {
    let mut e = Effect::default();
    for (o, operand) in instr.operands.iter().enumerate() {
        if matches!(operand.kind, OperandKind::Reg { used: true, .. }) {
            e.reads.push(o);
        }
    }
    let whole = |o: usize| match instr.operands.get(o).map(|o| &o.kind) {
        Some(OperandKind::Reg { file, .. }) => machine.files[*file].bits >= machine.word_bits,
        _ => false,
    };
    let whole_dest = |d: &Dest| match d {
        Dest::Operand(o) => whole(*o),
        Dest::Fixed(r) => {
            machine.regs.get(usize::from(r.0)).is_some_and(|r| machine.files[r.file].bits >= machine.word_bits)
        }
    };
    // All of the 32 bits that sums are made of.
    let file = |d: &Dest| match d {
        Dest::Operand(o) => match instr.operands.get(*o).map(|o| &o.kind) {
            Some(OperandKind::Reg { file, .. }) => Some(*file),
            _ => None,
        },
        Dest::Fixed(r) => machine.regs.get(usize::from(r.0)).map(|r| r.file),
    };
    let full = |d: &Dest| file(d).is_some_and(|f| machine.files[f].bits >= 32);
    for stmt in &instr.semantics {
        match stmt {
            Stmt::Let { value, .. } => look(value, &mut e),
            Stmt::Assign { dest, value } => {
                look(value, &mut e);
                let own = instr.dest_latency.iter().find(|d| d.0 == *dest);
                let latency = own.map_or(instr.latency, |d| d.1);
                let sum = Some(value).filter(|_| full(dest)).and_then(|value| sums::form(machine, instr, value));
                let meaning = value.clone();
                let value = match value {
                    Expr::Operand(o) if whole(*o) && whole_dest(dest) => Value::Copy(*o),
                    Expr::Imm(o) => Value::Imm(*o),
                    Expr::Const(c) => Value::Const(*c),
                    _ => Value::Other,
                };
                e.results.push(Result { dest: dest.clone(), latency, value, sum, meaning });
            }
            Stmt::Store { addr, value, .. } => {
                look(addr, &mut e);
                look(value, &mut e);
                e.stores = true;
            }
            Stmt::Goto { cond, target } => {
                if let Some(c) = cond {
                    look(c, &mut e);
                }
                look(target, &mut e);
                (e.jumps, e.control, e.conditional) = (true, true, cond.is_some());
            }
            Stmt::Rotate => (e.rotates, e.control) = (true, true),
            Stmt::WindowSave | Stmt::WindowRestore => e.fence = true,
            Stmt::Trap => {}
        }
    }
    if e.loads || e.stores {
        e.address = sums::address(machine, instr);
    }
    e.fixed.sort_unstable();
    e.fixed.dedup();
    if matches!(instr.kind, InstrKind::Call | InstrKind::CallIndirect) {
        (e.fence, e.jumps, e.control) = (true, false, false);
    }
    e.idle = instr.semantics.is_empty();
    e
}

fn look(e: &Expr, out: &mut Effect) {
    match e {
        Expr::Fixed(r) => out.fixed.push(*r),
        Expr::MatVec { matrix, a } => {
            out.fixed.extend(matrix.registers());
            look(a, out);
        }
        Expr::Load { addr, .. } => {
            out.loads = true;
            look(addr, out);
        }
        Expr::Bin { a, b, .. } | Expr::Cmp { a, b, .. } | Expr::FlagsSub { a, b, .. } | Expr::FlagsAdd { a, b, .. } => {
            look(a, out);
            look(b, out);
        }
        Expr::Un { a, .. } | Expr::Slice { a, .. } | Expr::Linear { a, .. } | Expr::FlagsLogic { a, .. } => {
            look(a, out)
        }
        Expr::Table { index: a, .. } | Expr::FlagsTest { flags: a, .. } => look(a, out),
        Expr::Select { cond, then, els } => [cond, then, els].into_iter().for_each(|e| look(e, out)),
        Expr::Operand(_) | Expr::Imm(_) | Expr::Temp(_) | Expr::Const(_) | Expr::Pc => {}
    }
}
