//! Loads that are taken to read an older store which they do not read.
//!
//! A core that gives loads the names of older stores' data may compare no more than how the two addresses are written:
//! the registers, and some bits of the word that the displacement lies in. Then a short load behind a store to other bytes
//! of the same word is misnamed (`[core.load.misnamed]`), and one behind a store a multiple of `alias_bytes` away.
//!
//! Which loads can be misnamed the program says: as long as no register of the address is written between the two, their
//! addresses differ by their displacements. So both stand in one block here; a store in another block is not seen.

use crate::parts::{dest_of, register};
use ciphermill_ir::BinOp;
use ciphermill_machine::core::{Core, Misnamed};
use ciphermill_machine::sem::{Expr, Stmt};
use ciphermill_machine::{Machine, Reg, for_each_expr};
use ciphermill_program::{Inst, Operand};

/// How an address is written: registers, each with what it is shifted by, and the displacement.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Form {
    registers: Vec<(Reg, i64)>,
    displacement: i64,
}

/// A store that a load can be taken to read.
struct Seen {
    form: Form,
    bytes: u8,
    /// Stores before it.
    number: u32,
}

/// Numbers of the instructions whose loads are misnamed where the core does not know them; each place with the function
/// and the block that it is in.
pub fn loads<'i>(
    machine: &Machine,
    core: &Core,
    places: impl Iterator<Item = (Option<&'i Inst>, (u32, u32))>,
) -> Vec<usize> {
    let Some(rule) = core.load.misnamed else { return vec![] };
    let (mut found, mut seen, mut stores) = (Vec::new(), Vec::<Seen>::new(), 0);
    let mut before = None;
    for (n, (inst, block)) in places.enumerate() {
        if before.replace(block) != Some(block) {
            seen.clear();
        }
        let Some(inst) = inst else { continue };
        let semantics = &machine.instrs[usize::from(inst.instr.0)].semantics;
        let plain = plain(semantics);
        for_each_expr(semantics, &mut |e| {
            if let Expr::Load { addr, bytes, .. } = e
                && !(plain && u32::from(*bytes) < rule.word_bytes)
                && let Some(form) = form(inst, addr)
                && misnamed(rule, &seen, stores, &form, *bytes)
            {
                found.push(n);
            }
        });
        for stmt in semantics {
            if let Stmt::Store { addr, bytes, .. } = stmt {
                seen.extend(form(inst, addr).map(|form| Seen { form, bytes: *bytes, number: stores }));
                stores += 1;
            }
        }
        for stmt in semantics {
            if let Stmt::Assign { dest, .. } = stmt
                && let Some(written) = dest_of(inst, dest)
            {
                seen.retain(|s| s.form.registers.iter().all(|r| r.0 != written));
            }
        }
    }
    found.dedup();
    found
}

/// Is the youngest store whose word is written alike one of the last few that has as many bytes, and begins elsewhere?
/// Where a load is a word or more, elsewhere is in another word.
fn misnamed(rule: Misnamed, seen: &[Seen], stores: u32, load: &Form, bytes: u8) -> bool {
    let word = |form: &Form| form.displacement.div_euclid(i64::from(rule.word_bytes));
    let compared = |form: &Form| match rule.alias_bytes {
        0 => word(form),
        alias => word(form).rem_euclid(i64::from((alias / rule.word_bytes).max(1))),
    };
    let alike = |s: &&Seen| s.form.registers == load.registers && compared(&s.form) == compared(load);
    seen.iter().rev().find(alike).is_some_and(|s| {
        let near = stores - s.number <= rule.distance;
        let elsewhere = s.form.displacement != load.displacement;
        near && bytes <= s.bytes && elsewhere && (u32::from(bytes) < rule.word_bytes || word(&s.form) != word(load))
    })
}

/// Does it only load, with zeros before what is loaded?
fn plain(semantics: &[Stmt]) -> bool {
    let [Stmt::Assign { value, .. }] = semantics else { return false };
    let mut value = value;
    while let Expr::Slice { a, lo: 0, .. } = value {
        value = a;
    }
    matches!(value, Expr::Load { signed: false, .. })
}

/// The form of an address of at least one register; none: it is made otherwise.
fn form(inst: &Inst, addr: &Expr) -> Option<Form> {
    let mut form = Form::default();
    add(inst, addr, &mut form)?;
    (!form.registers.is_empty()).then_some(form)
}

fn add(inst: &Inst, e: &Expr, form: &mut Form) -> Option<()> {
    match e {
        Expr::Bin { op: BinOp::Add, a, b, .. } => {
            add(inst, a, form)?;
            add(inst, b, form)?;
        }
        Expr::Bin { op: BinOp::Shl, a, b, .. } => form.registers.push((register(inst, a)?, number(inst, b)?)),
        Expr::Slice { a, lo: 0, .. } => add(inst, a, form)?,
        Expr::Imm(_) | Expr::Const(_) => form.displacement += number(inst, e)?,
        _ => form.registers.push((register(inst, e)?, 0)),
    }
    Some(())
}

fn number(inst: &Inst, e: &Expr) -> Option<i64> {
    match e {
        Expr::Const(n) => Some(*n as i64),
        Expr::Imm(i) => match inst.operands.get(*i) {
            Some(Operand::Imm(n)) => Some(*n),
            _ => None,
        },
        _ => None,
    }
}
