//! Constants in registers: how they are made, and where.
//!
//! A table base or a mask that fits no immediate costs one or two instructions. Made in a loop they
//! run every iteration; made before it they raise its register pressure. So each loop nest has a
//! budget: the registers that its MaxLive leaves free. The constants used most (weighted by loop depth
//! and by their cost) are made once before the nest, the others are rematerialised at each use. A
//! constant that is used very often is made before the nest at any register pressure, but for the registers that a
//! pipelined loop wants for what it carries round. A constant made
//! before a nest also serves the code after it. A block of low register pressure makes each constant
//! once.

use ciphermill_machine::compounds::part_imm;
use ciphermill_machine::sem::Expr;
use ciphermill_machine::{CompoundPart, Machine, Operand, OperandKind, PartArg, Reg};
use ciphermill_patterns::matcher::Matcher;
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::pattern::{Action, Template, solve};
use ciphermill_vcode::CompileError;
use ciphermill_vcode::liveness::{live_out, max_live};
use ciphermill_vcode::{VBlock, VFunc, VInst, VKind, VOp, VReg};
use std::collections::{BTreeMap, HashMap};

/// A constant that takes so many cycles at its uses in a nest is made before it even at high register pressure: what the
/// allocator then spills is used less, and where it is the constant, a reload takes no longer than two instructions do.
const DENSE: u32 = 6;

/// Hundredths of the registers that may hold something throughout a nest when such a constant joins them, where the
/// program says what issues together: what a pipelined loop carries round wants registers, too, and the allocator cannot
/// spill there. Cycles of GHASH by products of 64 and of 32 bits, with 70, 85, 100 and without a limit: on the Itanium 2
/// 282 and 180, 282 and 183, 317 and 192, 1421 and 192; on the EPIC machine 358 and 232, 358 and 208, 352 and 204, 663
/// and 204; on the C64x 838 and 587, 838 and 655, 762 and 655, 1024 and 655.
const THROUGHOUT: usize = 85;

/// Writing out the parts of templates.
pub struct Expansion<'a> {
    pub machine: &'a Machine,
    /// Number of virtual registers so far.
    pub new_vreg: &'a mut u32,
}

impl Expansion<'_> {
    fn fresh(&mut self) -> VReg {
        *self.new_vreg += 1;
        VReg(*self.new_vreg - 1)
    }

    /// The parts of a template with `ops` for its operands (None for the
    /// result and the label). The last definition of the result operand is
    /// `result`; earlier ones and scratch registers get fresh registers.
    ///
    /// # Errors
    /// [`CompileError::Internal`] when a part has an operand that nothing
    /// gives a value to: the matcher left it unbound, or a machine file's
    /// compound was not checked.
    pub fn expand(
        &mut self,
        t: &Template,
        ops: &[Option<VOp>],
        result: Option<VReg>,
        label: Option<u32>,
    ) -> Result<Vec<VInst>, CompileError> {
        let machine = self.machine;
        let dest = match &t.action {
            Action::Value(d, _) => Some(*d),
            _ => None,
        };
        let defines = |part: &CompoundPart| {
            let spec = &machine.instrs[part.instr.0 as usize].operands;
            part.args.iter().zip(spec).any(|(a, o)| {
                matches!(a, PartArg::Operand(i) if Some(*i) == dest)
                    && matches!(o.kind, OperandKind::Reg { def: true, .. })
            })
        };
        let last = t.parts.iter().rposition(defines);
        let mut scratch: HashMap<usize, VReg> = HashMap::new();
        let mut partial: Option<VReg> = None;
        let mut out = Vec::new();
        for (n, part) in t.parts.iter().enumerate() {
            let spec = &machine.instrs[part.instr.0 as usize].operands;
            let mut list = Vec::new();
            // Uses first: a part may read the register it then redefines.
            let read = |(arg, o): (&PartArg, &Operand)| match arg {
                PartArg::Operand(i) if Some(*i) == dest && ops[*i].is_none() => partial.map(VOp::Use),
                PartArg::Operand(i) if matches!(o.kind, OperandKind::Imm { .. }) => {
                    immediate(&Expr::Imm(*i), ops, &o.kind, machine)
                }
                PartArg::Operand(i) => ops[*i],
                PartArg::Scratch(s) => scratch.get(s).map(|&v| VOp::Use(v)),
                PartArg::Reg(r) => Some(VOp::Phys(*r)),
                PartArg::Imm(e) => immediate(e, ops, &o.kind, machine),
            };
            let reads: Vec<Option<VOp>> = part.args.iter().zip(spec).map(read).collect();
            for ((arg, o), read) in part.args.iter().zip(spec).zip(reads) {
                let op = match (&o.kind, arg) {
                    (OperandKind::Reg { def: true, used, .. }, PartArg::Operand(i)) if Some(*i) == dest => {
                        let def = match result {
                            Some(r) if last == Some(n) => r,
                            _ => self.fresh(),
                        };
                        partial = Some(def);
                        match (used, read) {
                            (false, _) => Some(VOp::Def(def)),
                            (true, Some(VOp::Use(used))) => Some(VOp::Tied { used, def }),
                            (true, None) if t.any_old => Some(VOp::Def(def)),
                            // A constant has to be moved to where it is overwritten.
                            (true, Some(from @ (VOp::Const(_) | VOp::Phys(_)))) => {
                                let used = self.fresh();
                                out.push(ciphermill_vcode::moves::mov(machine, VOp::Def(used), from, 0));
                                Some(VOp::Tied { used, def })
                            }
                            (true, _) => None,
                        }
                    }
                    // Another result of an instruction that has several.
                    (OperandKind::Reg { def: true, used: false, .. }, PartArg::Operand(i)) if ops[*i].is_none() => {
                        Some(VOp::Def(self.fresh()))
                    }
                    (OperandKind::Reg { def: true, .. }, PartArg::Scratch(s)) => {
                        let def = self.fresh();
                        scratch.insert(*s, def);
                        Some(VOp::Def(def))
                    }
                    (OperandKind::Label, _) => label.map(VOp::Block),
                    _ => read,
                };
                let (name, only) =
                    (&machine.instrs[part.instr.0 as usize].name, &machine.instrs[part.instr.0 as usize].only);
                // A zero has to be made where it must be in certain registers.
                let at = list.len();
                let barred =
                    |r: Reg| machine.regs[usize::from(r.0)].zero && only.iter().any(|o| o.0 == at && !o.1.contains(&r));
                let op = op.map(|op| match op {
                    VOp::Phys(r) if barred(r) => VOp::Const(0),
                    op => op,
                });
                list.push(op.ok_or_else(|| {
                    CompileError::Internal(format!("operand `{}` of `{name}` has no value in a template", o.name))
                })?);
            }
            out.push(VInst::new(VKind::Normal, part.instr, &list, 0));
        }
        Ok(out)
    }
}

/// A part's immediate: an expression over the template's immediates.
fn immediate(e: &Expr, ops: &[Option<VOp>], kind: &OperandKind, machine: &Machine) -> Option<VOp> {
    let given = |i: usize| if let Some(VOp::Imm(v)) = ops.get(i)? { Some(*v) } else { None };
    part_imm(e, given, kind, machine.word_bits).map(VOp::Imm)
}

/// The cheapest way to put `c` into a register.
pub fn recipe<'m>(machine: &Machine, matcher: &'m Matcher, c: u64) -> Option<(&'m Template, Vec<Option<VOp>>)> {
    let bits = u32::from(machine.word_bits);
    let mut best: Option<(&Template, Vec<Option<VOp>>)> = None;
    for t in &matcher.templates {
        let Action::Value(_, pat) = &t.action else { continue };
        let mut ops = vec![None; t.operands.len()];
        if let Some((i, imm)) = solve(pat, c, bits, &t.operands) {
            ops[i] = Some(VOp::Imm(imm));
        } else if let Pat::Bin(op, a, b) = pat
            && matches!(op, ciphermill_ir::BinOp::Add | ciphermill_ir::BinOp::Or | ciphermill_ir::BinOp::Xor)
            && let Pat::Reg(r) = **a
            && let OperandKind::Reg { file, .. } = t.operands[r].kind
            && let Some(zero) = matcher.zero(file)
            && let Some((i, imm)) = solve(b, c, bits, &t.operands)
        {
            ops[r] = Some(VOp::Phys(zero));
            ops[i] = Some(VOp::Imm(imm));
        } else {
            continue;
        }
        if best.as_ref().is_none_or(|b| t.cost < b.0.cost) {
            best = Some((t, ops));
        }
    }
    best
}

/// Make the constants of a function, and leave no [`VOp::Const`].
///
/// `registers` is the number of registers the allocator has.
pub fn place(func: &mut VFunc, machine: &Machine, matcher: &Matcher, registers: usize) -> Result<(), CompileError> {
    let bits = u32::from(machine.word_bits);
    let mask = ciphermill_ir::ops::mask(bits);
    let mut recipes: BTreeMap<u64, (&Template, Vec<Option<VOp>>)> = BTreeMap::new();
    // Weight of each constant in each loop nest, named by its preheader.
    let mut weight: BTreeMap<(u32, u64), u64> = BTreeMap::new();
    let mut uses: BTreeMap<(u32, u64), u32> = BTreeMap::new();
    for block in &func.blocks {
        for c in block
            .insts
            .iter()
            .flat_map(|i| &i.ops)
            .filter_map(|o| if let VOp::Const(c) = o { Some(c & mask) } else { None })
        {
            if let std::collections::btree_map::Entry::Vacant(e) = recipes.entry(c) {
                e.insert(recipe(machine, matcher, c).ok_or_else(|| CompileError::NoInstruction {
                    operation: format!("`rd = imm` where imm is {c:#x}"),
                    loc: 0,
                })?);
            }
            if let Some(pre) = block.preheader {
                let cost = u64::from(recipes[&c].0.cost);
                *uses.entry((pre, c)).or_default() += 1;
                *weight.entry((pre, c)).or_default() += cost * 10u64.pow(u32::from(block.loop_depth).min(6));
            }
        }
    }

    let outs = live_out(func);
    let mut free: HashMap<u32, usize> = HashMap::new();
    for (b, block) in func.blocks.iter().enumerate() {
        if let Some(pre) = block.preheader {
            let left = registers.saturating_sub(max_live(func, b, &outs[b]) + 1);
            free.entry(pre).and_modify(|f| *f = (*f).min(left)).or_insert(left);
        }
    }
    let mut ranked: Vec<((u32, u64), u64)> = weight.into_iter().collect();
    ranked.sort_by_key(|&(key, w)| (std::cmp::Reverse(w), key));
    let mut over: HashMap<u32, usize> = HashMap::new();
    let mut hoisted: BTreeMap<(u32, u64), VReg> = BTreeMap::new();
    for ((pre, c), _) in ranked {
        let left = free.entry(pre).or_default();
        let more = over.entry(pre).or_default();
        let dense = uses[&(pre, c)] * making(machine, recipes[&c].0) >= DENSE && *more < registers / 4;
        let throughout = outs[pre as usize].len();
        // Where they are too many without it, some are in memory in any case.
        let room = throughout >= registers || throughout + *more < registers * THROUGHOUT / 100;
        if *left > 0 || dense && (room || !machine.issue.explicit) {
            *more += usize::from(*left == 0);
            *left = left.saturating_sub(1);
            let v = func.new_vreg();
            hoisted.insert((pre, c), v);
        }
    }

    let reuse: Vec<BTreeMap<u64, VReg>> = (0..func.blocks.len() as u32)
        .map(|b| hoisted.iter().filter(|((pre, _), _)| func.dominates(*pre, b)).map(|(&(_, c), &v)| (c, v)).collect())
        .collect();
    let spare: Vec<usize> =
        outs.iter().enumerate().map(|(b, out)| registers.saturating_sub(max_live(func, b, out) + 1)).collect();
    let mut maker = Maker { machine, recipes: &recipes, vregs: func.vregs };
    for ((block, known), spare) in func.blocks.iter_mut().zip(reuse).zip(spare) {
        // In a loop the spare registers went to the constants made before it.
        let spare = if block.preheader.is_some() { 0 } else { spare };
        maker.block(block, known, spare)?;
    }
    for ((pre, c), v) in hoisted {
        let made = maker.make(c, v)?;
        // At the start: between a comparison and its branch nothing may come
        // that writes flags.
        let insts = &mut func.blocks[pre as usize].insts;
        let at = usize::from(insts.first().is_some_and(|i| i.kind == VKind::Params));
        insts.splice(at..at, made);
    }
    func.vregs = maker.vregs;
    Ok(())
}

/// Cycles that it takes to make a constant. Where the program says what issues together, one: there are slots to spare.
fn making(machine: &Machine, t: &Template) -> u32 {
    let issue = |part: &CompoundPart| machine.instrs[usize::from(part.instr.0)].least_issue_cycles();
    if machine.issue.explicit { 1 } else { t.parts.iter().map(issue).sum() }
}

/// Makes constants, block by block.
struct Maker<'a> {
    machine: &'a Machine,
    recipes: &'a BTreeMap<u64, (&'a Template, Vec<Option<VOp>>)>,
    vregs: u32,
}

impl Maker<'_> {
    fn make(&mut self, c: u64, result: VReg) -> Result<Vec<VInst>, CompileError> {
        let (t, ops) = &self.recipes[&c];
        Expansion { machine: self.machine, new_vreg: &mut self.vregs }.expand(t, ops, Some(result), None)
    }

    /// Replace the constants of a block. `known` are those made before,
    /// `spare` is how many more may be kept to the block's end.
    fn block(
        &mut self,
        block: &mut VBlock,
        mut known: BTreeMap<u64, VReg>,
        mut spare: usize,
    ) -> Result<(), CompileError> {
        let mask = ciphermill_ir::ops::mask(u32::from(self.machine.word_bits));
        let insts = std::mem::take(&mut block.insts);
        let last = insts.len().saturating_sub(1);
        for (n, mut inst) in insts.into_iter().enumerate() {
            if inst.instr == self.machine.abi.ops.mov
                && let [VOp::Def(d), VOp::Const(c)] | [VOp::Const(c), VOp::Def(d)] = inst.ops[..]
                && !known.contains_key(&(c & mask))
            {
                block.insts.extend(self.make(c & mask, d)?);
                continue;
            }
            for k in 0..inst.ops.len() {
                let VOp::Const(c) = inst.ops[k] else { continue };
                let c = c & mask;
                let v = match known.get(&c) {
                    Some(&v) => v,
                    None => {
                        let v = VReg(self.vregs);
                        self.vregs += 1;
                        let made = self.make(c, v)?;
                        block.insts.extend(made);
                        if spare > 0 {
                            spare -= 1;
                            known.insert(c, v);
                        }
                        v
                    }
                };
                inst.ops[k] = VOp::Use(v);
                if n == last
                    && let Some(inverse) = &mut block.inverse
                {
                    for o in &mut inverse.ops {
                        if matches!(o, VOp::Const(k) if *k & mask == c) {
                            *o = VOp::Use(v);
                        }
                    }
                }
            }
            block.insts.push(inst);
        }
        Ok(())
    }
}
