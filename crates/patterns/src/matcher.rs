//! Matching a template against the program.
//!
//! The program is seen as trees: a node may be taken inside a pattern only
//! when the caller says that it may be folded (it is pure, used once, and in
//! the same block); everything else is a leaf, computed into a register of its
//! own. Addresses get special care, because a load's displacement is apart
//! from its address operand and an addition of zero is free.

mod nodes;

use crate::graph::any_within;
use crate::pat::Pat;
use crate::pattern::{Action, Template, templates};
use ciphermill_ir::{BinOp, Func, Inst, MemAccess, Op, Space, Value};
use ciphermill_machine::{Machine, Operand, Reg};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::mem::Discriminant;
use std::sync::Arc;

/// What an operand of a template stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bind {
    Val(Value),
    Imm(i64),
    /// The register that reads as zero.
    Zero(Reg),
    /// Stands behind the operands: a load that the pattern takes in.
    Load(Inst),
}

/// One binding for each operand of the template, and one for a load inside it.
pub type Binds = SmallVec<[Option<Bind>; 6]>;

/// A machine's templates, found by what their root computes.
pub struct Matcher {
    pub templates: Vec<Template>,
    by_root: HashMap<Discriminant<Pat>, Vec<usize>>,
    pub branches: Vec<usize>,
    pub stores: Vec<usize>,
    /// Numbers of the templates of each instruction with several results, for
    /// every result its spellings: behind those of `templates`.
    pub several: Vec<Vec<std::ops::Range<usize>>>,
    joint: Vec<Template>,
    /// Register that reads as zero, by register file.
    zero: HashMap<usize, Reg>,
    bits: u32,
    /// The machine computes in 32 bits, too, and so are its addresses.
    narrow: bool,
    /// Some multiplication cuts the upper half out of a word.
    takes_upper: bool,
    /// Does a multiplier take parts of its operands?
    pub takes_halves: bool,
}

/// A template's operands, and the bits that it computes in.
#[derive(Clone, Copy)]
struct Cx<'a> {
    operands: &'a [Operand],
    bits: u32,
    tried: &'a Tried,
}

/// What laying one pattern over a program has come to so far.
///
/// A pattern is a graph ([`crate::graph`]), and so is a program: a node of the one that has been
/// found at a value of the other is not looked for there again.
#[derive(Default)]
struct Tried {
    steps: Cell<u32>,
    /// Nodes found, with the values that they are. What is bound no more is found no more.
    found: RefCell<Vec<(*const Pat, Value)>>,
}

/// Steps after which a pattern is taken not to be there: far more than one needs that is.
const MOST_STEPS: u32 = 1 << 14;

impl Tried {
    /// May it go on?
    fn step(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        self.steps.get() <= MOST_STEPS
    }

    fn mark(&self) -> usize {
        self.found.borrow().len()
    }

    fn back(&self, mark: usize) {
        self.found.borrow_mut().truncate(mark);
    }

    fn has(&self, p: &Arc<Pat>, v: Value) -> bool {
        Arc::strong_count(p) > 1 && self.found.borrow().contains(&(Arc::as_ptr(p), v))
    }

    fn add(&self, p: &Arc<Pat>, v: Value) {
        if Arc::strong_count(p) > 1 {
            self.found.borrow_mut().push((Arc::as_ptr(p), v));
        }
    }
}

/// May this value be computed inside a pattern?
pub type Fold<'a> = &'a dyn Fn(Value) -> bool;

impl Matcher {
    pub fn new(machine: &Machine) -> Matcher {
        Matcher::with(machine, Vec::new())
    }

    /// A matcher with further templates, for functions that were recognised.
    pub fn with(machine: &Machine, recognised: Vec<Template>) -> Matcher {
        let mut templates = templates(machine);
        templates.extend(recognised);
        Matcher::of(machine, templates, crate::pattern::several(machine))
    }

    /// The same without the instructions whose time varies with values. None where it has none.
    pub fn steady(&self, machine: &Machine) -> Option<Matcher> {
        let varies =
            |t: &Template| t.parts.iter().any(|p| !machine.instrs[usize::from(p.instr.0)].varies_with.is_empty());
        let steady = |t: &&Template| !varies(t);
        let templates: Vec<Template> = self.templates.iter().filter(steady).cloned().collect();
        let several: Vec<Vec<Vec<Template>>> = crate::pattern::several(machine);
        let several = several.into_iter().filter(|group| !group.iter().flatten().any(varies)).collect();
        (templates.len() < self.templates.len()).then(|| Matcher::of(machine, templates, several))
    }

    fn of(machine: &Machine, templates: Vec<Template>, groups: Vec<Vec<Vec<Template>>>) -> Matcher {
        let (mut by_root, mut branches, mut stores) = (HashMap::<_, Vec<usize>>::new(), vec![], vec![]);
        for (i, t) in templates.iter().enumerate() {
            match &t.action {
                Action::Value(_, pat) => by_root.entry(std::mem::discriminant(pat)).or_default().push(i),
                Action::Store { .. } => stores.push(i),
                Action::Branch { .. } => branches.push(i),
            }
        }
        let zero =
            machine.regs.iter().enumerate().filter(|(_, r)| r.zero).map(|(i, r)| (r.file, Reg(i as u16))).collect();
        let (mut several, mut joint) = (Vec::new(), Vec::new());
        for group in groups {
            let results = group.into_iter().map(|spellings| {
                let first = templates.len() + joint.len();
                joint.extend(spellings);
                first..templates.len() + joint.len()
            });
            several.push(results.collect());
        }
        let cut = |p: &Pat| matches!(p, Pat::Bin(BinOp::ShrU, _, by) if matches!(**by, Pat::Const(_)));
        let takes_upper = templates
            .iter()
            .any(|t| matches!(&t.action, Action::Value(_, Pat::Bin(BinOp::Mul, a, b)) if cut(a) || cut(b)));
        let part = |p: &Pat| matches!(p, Pat::Bin(BinOp::And | BinOp::ShrU, ..));
        let takes_halves = templates
            .iter()
            .any(|t| matches!(&t.action, Action::Value(_, Pat::Bin(BinOp::Mul, a, b)) if part(a) || part(b)));
        let bits = u32::from(machine.word_bits);
        let narrow = machine.computes_narrow();
        Matcher { templates, by_root, branches, stores, several, joint, zero, bits, narrow, takes_upper, takes_halves }
    }

    /// A template by its number, those of instructions with several results too.
    pub fn template(&self, number: usize) -> &Template {
        self.templates.get(number).unwrap_or_else(|| &self.joint[number - self.templates.len()])
    }

    /// The register that reads as zero in a register file.
    pub fn zero(&self, file: usize) -> Option<Reg> {
        self.zero.get(&file).copied()
    }

    /// Does some template take a load in, as part of another operation?
    pub fn folds_loads(&self) -> bool {
        let inside = |p: &Pat| any_within(p, |p| !matches!(p, Pat::Apply(..)), |p| matches!(p, Pat::Load { .. }));
        self.templates.iter().any(|t| match &t.action {
            Action::Value(_, Pat::Load { addr, .. }) => inside(addr),
            Action::Value(_, p) | Action::Branch { cond: p, .. } => inside(p),
            Action::Store { addr, value, .. } => inside(addr) || inside(value),
        })
    }

    /// Can the machine load (or else store) so many bytes at any address?
    pub fn anywhere(&self, bytes: u8, store: bool) -> bool {
        self.templates.iter().any(|t| {
            t.unaligned
                && match &t.action {
                    Action::Value(_, Pat::Load { bytes: b, .. }) => !store && *b == bytes,
                    Action::Store { bytes: b, .. } => store && *b == bytes,
                    _ => false,
                }
        })
    }

    /// Can the machine load so many bytes, fewer than a word, with their sign?
    pub fn loads_signed(&self, bytes: u8) -> bool {
        let loads = |p: &Pat| matches!(p, Pat::Load { bytes: b, signed: true, .. } if *b == bytes);
        self.templates.iter().any(|t| matches!(&t.action, Action::Value(_, p) if loads(p)))
    }

    /// Does a recognised function read tables of the machine's?
    pub fn reads_table(&self, machine: &Machine, function: u16) -> bool {
        use ciphermill_machine::sem::{Expr, Stmt};
        let table = |s: &Stmt| {
            let (Stmt::Let { value, .. } | Stmt::Assign { value, .. }) = s else { return false };
            let mut found = false;
            value.walk(&mut |e| found |= matches!(e, Expr::Table { .. }));
            found
        };
        self.templates.iter().any(|t| {
            matches!(t.action, Action::Value(_, Pat::Apply(n, _)) if n == function)
                && t.parts.iter().any(|p| machine.instrs[usize::from(p.instr.0)].semantics.iter().any(table))
        })
    }

    /// The template that computes a recognised function.
    pub fn function(&self, function: u16) -> Option<&Template> {
        self.templates.iter().find(|t| matches!(t.action, Action::Value(_, Pat::Apply(n, _)) if n == function))
    }

    /// Templates whose root might be the operation.
    pub fn candidates(&self, op: Op) -> &[usize] {
        let dummy = || Arc::new(Pat::Const(0));
        let key = match op {
            Op::Bin(b) => Pat::Bin(b, dummy(), dummy()),
            Op::Un(u) => Pat::Un(u, dummy()),
            Op::Cmp(c) => Pat::Cmp(c, dummy(), dummy()),
            Op::Select => Pat::Select(dummy(), dummy(), dummy()),
            Op::Load(m) => Pat::Load { bytes: m.bytes, signed: m.signed, addr: dummy() },
            Op::Apply(n) => Pat::Apply(n, Vec::new()),
            Op::Wrap | Op::ZExt => Pat::Low(dummy()),
            _ => return &[],
        };
        self.by_root.get(&std::mem::discriminant(&key)).map_or(&[], |v| v)
    }

    /// Does the machine compute in 32 bits, too?
    pub fn narrow(&self) -> bool {
        self.narrow
    }

    /// Bits that an operation computes in, where the machine does so in 32 and in 64.
    pub fn width(&self, func: &Func, op: Op, args: &[Value], result: Option<Value>) -> u32 {
        if !self.narrow {
            return self.bits;
        }
        match op {
            // Constants have the type of whoever needed them first.
            Op::Cmp(_) => {
                let known = args.iter().filter(|&&v| func.as_const(v).is_none());
                known.map(|&v| func.ty(v).bits()).max().unwrap_or_else(|| func.ty(args[0]).bits())
            }
            Op::Wrap | Op::ZExt => 64,
            _ => result.map_or(32, |v| func.ty(v).bits()),
        }
    }

    /// May the template's operations be those of so many bits?
    fn computes(&self, t: &Template, bits: u32) -> bool {
        !self.narrow || t.bits == 0 || u32::from(t.bits) == bits
    }

    /// Match a value template against an operation of so many bits and its operands.
    ///
    /// A load may be taken in where `fold` says so of its value: whether it can
    /// be made as late as the operation is the caller's to know.
    pub fn value(&self, func: &Func, t: &Template, bits: u32, op: Op, args: &[Value], fold: Fold<'_>) -> Option<Binds> {
        let Action::Value(_, pat) = &t.action else { return None };
        // What a selection hangs on may have other bits than what it selects.
        let bits = if op == Op::Select && t.bits != 0 { u32::from(t.bits) } else { bits };
        if !self.computes(t, bits) {
            return None;
        }
        if let Op::Load(m) = op
            && !reaches(t, m)
        {
            return None;
        }
        let mut binds = no_binds(t);
        self.node(func, pat, op, args, Cx { operands: &t.operands, bits, tried: &Tried::default() }, fold, &mut binds)
            .then_some(binds)
    }

    /// As [`Matcher::value`], with operands that are bound already.
    #[expect(clippy::too_many_arguments, reason = "what is matched, and with what")]
    pub(crate) fn value_with(
        &self,
        func: &Func,
        t: &Template,
        bits: u32,
        op: Op,
        args: &[Value],
        fold: Fold<'_>,
        bound: Option<&Binds>,
    ) -> Option<Binds> {
        let Action::Value(_, pat) = &t.action else { return None };
        if !self.computes(t, bits) {
            return None;
        }
        let mut binds = bound.cloned().unwrap_or_else(|| no_binds(t));
        self.node(func, pat, op, args, Cx { operands: &t.operands, bits, tried: &Tried::default() }, fold, &mut binds)
            .then_some(binds)
    }

    /// Match a store template.
    pub fn store(&self, func: &Func, t: &Template, m: MemAccess, args: &[Value], fold: Fold<'_>) -> Option<Binds> {
        let Action::Store { bytes, addr, value } = &t.action else { return None };
        let (mut binds, tried) = (no_binds(t), Tried::default());
        let bits = if self.narrow && m.bytes < 8 { 32 } else { self.bits };
        let ok = *bytes == m.bytes
            && reaches(t, m)
            && self.address(
                func,
                addr,
                args[0],
                m.offset,
                Cx { operands: &t.operands, bits, tried: &tried },
                fold,
                &mut binds,
            )
            && self.leaf(func, value, args[1], Cx { operands: &t.operands, bits, tried: &tried }, fold, &mut binds);
        ok.then_some(binds)
    }

    /// Match a branch template against a comparison or any other operation.
    pub fn branch(&self, func: &Func, t: &Template, op: Op, args: &[Value], fold: Fold<'_>) -> Option<Binds> {
        let Action::Branch { cond, .. } = &t.action else { return None };
        let mut binds = no_binds(t);
        let bits = self.width(func, op, args, None);
        if !self.computes(t, bits) {
            return None;
        }
        self.node(func, cond, op, args, Cx { operands: &t.operands, bits, tried: &Tried::default() }, fold, &mut binds)
            .then_some(binds)
    }

    /// Match any pattern (a rule's left side) with operands of the caller's.
    pub fn pattern(
        &self,
        func: &Func,
        pat: &Pat,
        operands: &[Operand],
        bits: u32,
        op: Op,
        args: &[Value],
    ) -> Option<Binds> {
        let mut binds: Binds = SmallVec::from_elem(None, operands.len());
        let fold = |v: Value| func.def_op(v).is_some_and(|o| o.is_pure());
        self.node(func, pat, op, args, Cx { operands, bits, tried: &Tried::default() }, &fold, &mut binds)
            .then_some(binds)
    }
}

/// The value that half a word, or another part, is cut out of by a constant.
pub fn half(func: &Func, v: Value) -> Option<Value> {
    let data = &func.insts[func.def_inst(func.resolve(v))?];
    let cuts = matches!(data.op, Op::Bin(BinOp::And | BinOp::ShrU)) && func.as_const(data.args[1]).is_some();
    cuts.then(|| func.resolve(data.args[0]))
}

/// A constant that was written as its complement, for an instruction that
/// complements it.
fn complement(func: &Func, v: Value) -> Option<u64> {
    let data = &func.insts[func.def_inst(v)?];
    let constant = |n: usize| func.as_const(func.resolve(data.args[n]));
    (data.op == Op::Bin(BinOp::Xor)).then(|| Some(constant(0)? ^ constant(1)?))?
}

/// Does the template's access work at such an address, and in that memory? Those that the code
/// generator makes itself are aligned.
fn reaches(t: &Template, m: MemAccess) -> bool {
    t.flash == (m.space == Space::Flash) && (t.unaligned || m.align >= m.bytes || m.space != Space::Linear)
}

fn no_binds(t: &Template) -> Binds {
    let mut binds = SmallVec::from_elem(None, t.operands.len() + 1);
    for &(i, imm) in &t.fixed {
        binds[i] = Some(Bind::Imm(imm));
    }
    binds
}

/// Bind an operand, or check that it is bound to the same already.
fn bind(binds: &mut Binds, i: usize, to: Bind) -> bool {
    match binds[i] {
        None => {
            binds[i] = Some(to);
            true
        }
        Some(old) => old == to,
    }
}
