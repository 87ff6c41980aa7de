//! Instructions that load or store a run of words at one base, read off their semantics.
//!
//! A *run* is one or more words that lie one behind the other. What `base` and the others are is an index among the
//! instruction's operands.

use ciphermill_ir::BinOp;
use ciphermill_ir::ops::sext;
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Instr, InstrId, Machine, OperandKind};
use std::collections::HashMap;

/// An instruction that loads or stores a run.
#[derive(Clone, Debug)]
pub struct RunInstr {
    pub instr: InstrId,
    pub store: bool,
    pub base: usize,
    /// What is loaded or stored, by address.
    pub values: Vec<usize>,
    /// Its immediate, added to the base.
    pub displacement: Option<usize>,
    /// The base is behind the run afterwards.
    pub moves: bool,
}

/// An instruction that adds an immediate to a register, and may set flags.
#[derive(Clone, Copy, Debug)]
pub struct AddImm {
    pub dest: usize,
    pub source: usize,
    pub imm: usize,
}

/// All that a machine has of them.
pub struct Runs {
    word: i64,
    /// Of one word.
    singles: HashMap<InstrId, RunInstr>,
    /// Of several; the longest first.
    several: Vec<RunInstr>,
    adds: HashMap<InstrId, AddImm>,
}

impl Runs {
    pub fn new(machine: &Machine) -> Runs {
        let word = machine.value_bits() / 8;
        let all = || machine.instrs.iter().enumerate().map(|(i, instr)| (InstrId(i as u16), instr));
        let plain = |i: &Instr| !i.flash && i.literal.is_none();
        let found: Vec<RunInstr> =
            all().filter(|(_, i)| plain(i)).filter_map(|(id, instr)| run(id, instr, word)).collect();
        let (singles, mut several): (Vec<_>, Vec<_>) = found.into_iter().partition(|r| r.values.len() == 1);
        several.sort_by_key(|r| (std::cmp::Reverse(r.values.len()), r.instr.0));
        Runs {
            word: word.into(),
            singles: singles.into_iter().filter(|s| !s.moves).map(|s| (s.instr, s)).collect(),
            several,
            adds: all().filter_map(|(id, instr)| Some((id, add_imm(instr)?))).collect(),
        }
    }

    /// Bytes of a word.
    pub fn word(&self) -> i64 {
        self.word
    }

    /// Those of several words, the longest first.
    pub fn several(&self) -> &[RunInstr] {
        &self.several
    }

    /// What an instruction is that loads or stores one word.
    pub fn single(&self, instr: InstrId) -> Option<&RunInstr> {
        self.singles.get(&instr)
    }

    pub fn add_imm(&self, instr: InstrId) -> Option<AddImm> {
        self.adds.get(&instr).copied()
    }
}

/// Base, displacement, and a constant.
type Address = (usize, Option<usize>, i64);

fn address(addr: &Expr) -> Option<Address> {
    let (mut base, mut displacement, mut constant) = (None, None, 0i64);
    let mut todo = vec![addr];
    while let Some(e) = todo.pop() {
        match e {
            Expr::Bin { op: BinOp::Add, a, b, .. } => todo.extend([&**a, &**b]),
            Expr::Operand(i) if base.is_none() => base = Some(*i),
            Expr::Imm(i) if displacement.is_none() => displacement = Some(*i),
            Expr::Const(c) => constant += sext(*c, 32),
            _ => return None,
        }
    }
    Some((base?, displacement, constant))
}

fn run(id: InstrId, instr: &Instr, word: u8) -> Option<RunInstr> {
    let mut accesses = Vec::new();
    let mut moved = None;
    for stmt in &instr.semantics {
        match stmt {
            Stmt::Store { bytes, addr, value: Expr::Operand(v) } if *bytes == word => {
                accesses.push((address(addr)?, true, *v));
            }
            Stmt::Assign { dest: Dest::Operand(v), value: Expr::Load { bytes, addr, .. } } if *bytes == word => {
                accesses.push((address(addr)?, false, *v));
            }
            Stmt::Assign { dest: Dest::Operand(d), value } if moved.is_none() => match address(value)? {
                (base, None, by) if base == *d => moved = Some((base, by)),
                _ => return None,
            },
            _ => return None,
        }
    }
    accesses.sort_by_key(|a| a.0.2);
    let &((base, displacement, _), store, _) = accesses.first()?;
    let follows = |(n, a): (usize, &(Address, bool, usize))| {
        a.0 == (base, displacement, n as i64 * i64::from(word)) && a.1 == store && a.2 != base
    };
    let by = accesses.len() as i64 * i64::from(word);
    let whole = instr.operands.len() == accesses.len() + 1 + usize::from(displacement.is_some());
    let fits = accesses.iter().enumerate().all(follows) && moved.is_none_or(|m| m == (base, by));
    (whole && fits).then(|| RunInstr {
        instr: id,
        store,
        base,
        values: accesses.iter().map(|a| a.2).collect(),
        displacement,
        moves: moved.is_some(),
    })
}

fn add_imm(instr: &Instr) -> Option<AddImm> {
    let mut found = None;
    for stmt in &instr.semantics {
        match stmt {
            Stmt::Assign { dest: Dest::Operand(dest), value: Expr::Bin { op: BinOp::Add, a, b, .. } } => {
                match (&**a, &**b) {
                    (Expr::Operand(source), Expr::Imm(imm)) if found.is_none() => {
                        found = Some(AddImm { dest: *dest, source: *source, imm: *imm });
                    }
                    _ => return None,
                }
            }
            Stmt::Assign { dest: Dest::Fixed(_), .. } => {}
            _ => return None,
        }
    }
    let immediate = |a: &AddImm| matches!(instr.operands[a.imm].kind, OperandKind::Imm { .. });
    found.filter(immediate)
}
