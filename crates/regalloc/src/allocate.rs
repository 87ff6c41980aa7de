//! Register allocation, by `regalloc2`.
//!
//! This module translates: machine code with virtual registers into the
//! allocator's view of it, and the allocator's answer into instructions with
//! physical registers and stack slots. The allocator's own checker, which
//! replays its answer symbolically, runs on every function when asked for.

use ciphermill_machine::sem::{Dest, Stmt};
use ciphermill_machine::{FileId, Instr, Machine, Reg};
use ciphermill_vcode::CompileError;
use ciphermill_vcode::{Allocated, Place, Registers, Step, VFunc, VInst, VKind, VOp, VReg};
use regalloc2::{
    Allocation, Block, Edit, Inst, InstOrEdit, InstRange, MachineEnv, Operand, OperandConstraint, OperandKind,
    OperandPos, PReg, PRegSet, RegAllocError, RegClass, RegallocOptions,
};
use std::collections::BTreeSet;

struct View<'a> {
    func: &'a VFunc,
    /// First instruction index of each block, and one past the last.
    starts: Vec<usize>,
    /// `(block, index)` of every instruction.
    insts: Vec<(usize, usize)>,
    operands: Vec<Vec<Operand>>,
    succs: Vec<Vec<Block>>,
    preds: Vec<Vec<Block>>,
    params: Vec<Vec<regalloc2::VReg>>,
    args: Vec<Vec<Vec<regalloc2::VReg>>>,
    clobbers: PRegSet,
    all: PRegSet,
    results: Vec<PRegSet>,
    /// Registers that each instruction's semantics clobber.
    destroyed: Vec<PRegSet>,
}

/// A file as a class of the allocator's, which keeps values of different classes apart.
const CLASSES: [RegClass; 3] = [RegClass::Int, RegClass::Float, RegClass::Vector];

/// The registers as the allocator numbers them: from the first that may be used, whatever its file, in
/// the class of the file where the function's values have one.
struct Classes<'a> {
    machine: &'a Machine,
    first: u16,
    files: Vec<FileId>,
    /// Of each value.
    of: &'a [u8],
}

impl<'a> Classes<'a> {
    fn new(func: &'a VFunc, machine: &'a Machine, registers: &Registers) -> Classes<'a> {
        let first = registers.allocatable.iter().map(|r| r.0).min().unwrap_or(0);
        let first = machine.files[machine.regs[usize::from(first)].file].first.0;
        Classes { machine, first, files: registers.files(machine), of: &func.files }
    }

    fn number(&self, r: Reg) -> usize {
        let file = self.machine.regs[usize::from(r.0)].file;
        if self.of.is_empty() { 0 } else { self.files.iter().position(|f| *f == file).unwrap_or(0) }
    }

    fn preg(&self, r: Reg) -> PReg {
        PReg::new(usize::from(r.0 - self.first), CLASSES[self.number(r)])
    }

    fn reg(&self, p: PReg) -> Reg {
        Reg(self.first + p.hw_enc() as u16)
    }

    fn of(&self, v: VReg) -> usize {
        self.of.get(v.0 as usize).map_or(0, |f| usize::from(*f))
    }

    fn vreg(&self, v: VReg) -> regalloc2::VReg {
        regalloc2::VReg::new(v.0 as usize, CLASSES[self.of(v)])
    }

    fn set(&self, list: &[Reg]) -> PRegSet {
        list.iter().fold(PRegSet::empty(), |s, &r| s.with(self.preg(r)))
    }

    /// Those of some registers that are of a class.
    fn sets(&self, list: &[Reg]) -> [PRegSet; 3] {
        let of = |class| list.iter().copied().filter(|&r| self.number(r) == class).collect::<Vec<_>>();
        [0, 1, 2].map(|class| self.set(&of(class)))
    }
}

/// The allocator's operands of an instruction: uses and definitions among its
/// own operands in order (a tied pair gives two), then fixed uses, then fixed
/// definitions.
///
/// The allocator can limit an operand to its first registers. An operand with another constraint is
/// fixed to the first of its registers that may be used.
fn operands(inst: &VInst, classes: &Classes<'_>, allocatable: &[Reg]) -> Vec<Operand> {
    let mut out = Vec::new();
    let vreg = |v| classes.vreg(v);
    let preg = |r| classes.preg(r);
    let only = &classes.machine.instrs[usize::from(inst.instr.0)].only;
    for (i, op) in inst.ops.iter().enumerate() {
        let class = match op {
            VOp::Use(v) | VOp::Def(v) | VOp::Tied { def: v, .. } => classes.of(*v),
            _ => continue,
        };
        let wanted = match only.iter().find(|o| o.0 == i).map(|o| &o.1[..]) {
            None | Some([]) => OperandConstraint::Reg,
            Some(list) if list.len() > 1 && list.len().is_power_of_two() && leading(list, classes) => {
                OperandConstraint::Limit(list.len())
            }
            // Were none of them, calls would not be known to destroy it.
            Some(list @ [first, ..]) => {
                let usable = |r: &&Reg| allocatable.contains(r) && classes.number(**r) == class;
                OperandConstraint::FixedReg(preg(*list.iter().find(usable).unwrap_or(first)))
            }
        };
        let place = |v: VReg, kind, at, wanted| Operand::new(vreg(v), wanted, kind, at);
        match op {
            VOp::Use(v) => out.push(place(*v, OperandKind::Use, OperandPos::Early, wanted)),
            VOp::Def(v) => out.push(place(*v, OperandKind::Def, OperandPos::Late, wanted)),
            VOp::Tied { used, def } => {
                out.push(place(*used, OperandKind::Use, OperandPos::Early, wanted));
                match wanted {
                    OperandConstraint::FixedReg(_) => out.push(place(*def, OperandKind::Def, OperandPos::Late, wanted)),
                    _ => out.push(Operand::reg_reuse_def(vreg(*def), out.len() - 1)),
                }
            }
            _ => {}
        }
    }
    out.extend(inst.fixed_uses.iter().map(|&(v, r)| Operand::reg_fixed_use(vreg(v), preg(r))));
    out.extend(inst.fixed_defs.iter().map(|&(v, r)| Operand::reg_fixed_def(vreg(v), preg(r))));
    out
}

/// Are these the registers that the allocator numbers from 0 on?
fn leading(list: &[Reg], classes: &Classes<'_>) -> bool {
    classes.of.is_empty() && list.iter().all(|&r| classes.preg(r).hw_enc() < list.len())
}

impl regalloc2::Function for View<'_> {
    fn num_insts(&self) -> usize {
        self.insts.len()
    }
    fn num_blocks(&self) -> usize {
        self.func.blocks.len()
    }
    fn entry_block(&self) -> Block {
        Block::new(0)
    }
    fn block_insns(&self, block: Block) -> InstRange {
        InstRange::new(Inst::new(self.starts[block.index()]), Inst::new(self.starts[block.index() + 1]))
    }
    fn block_succs(&self, block: Block) -> &[Block] {
        &self.succs[block.index()]
    }
    fn block_preds(&self, block: Block) -> &[Block] {
        &self.preds[block.index()]
    }
    fn block_params(&self, block: Block) -> &[regalloc2::VReg] {
        &self.params[block.index()]
    }
    fn is_ret(&self, inst: Inst) -> bool {
        matches!(self.at(inst).kind, VKind::Return | VKind::Trap)
    }
    fn is_branch(&self, inst: Inst) -> bool {
        matches!(self.at(inst).kind, VKind::Branch | VKind::Jump)
    }
    fn branch_blockparams(&self, block: Block, _: Inst, succ: usize) -> &[regalloc2::VReg] {
        &self.args[block.index()][succ]
    }
    fn inst_operands(&self, inst: Inst) -> &[Operand] {
        &self.operands[inst.index()]
    }
    fn inst_clobbers(&self, inst: Inst) -> PRegSet {
        let mut set = match self.at(inst).kind {
            VKind::Call => self.clobbers,
            VKind::Kernel => self.all,
            _ => return self.destroyed[inst.index()],
        };
        set.intersect_from(self.results[inst.index()].invert());
        set
    }
    fn num_vregs(&self) -> usize {
        self.func.vregs as usize
    }
    fn spillslot_size(&self, _: RegClass) -> usize {
        1
    }
}

impl View<'_> {
    fn at(&self, inst: Inst) -> &VInst {
        let (b, i) = self.insts[inst.index()];
        &self.func.blocks[b].insts[i]
    }
}

/// Allocate registers for `func`.
///
/// # Errors
/// [`CompileError::Internal`] when the allocator refuses the function or its
/// checker finds the answer wrong.
pub fn allocate(
    func: &VFunc,
    machine: &Machine,
    registers: &Registers,
    check: bool,
) -> Result<Allocated, CompileError> {
    let classes = Classes::new(func, machine, registers);
    let allocatable = &registers.allocatable;
    let view = view(func, &classes, registers);
    let (saved, free): (Vec<Reg>, Vec<Reg>) =
        registers.allocatable.iter().copied().partition(|r| registers.callee_saved.contains(r));
    let env = MachineEnv {
        preferred_regs_by_class: classes.sets(&free),
        non_preferred_regs_by_class: classes.sets(&saved),
        scratch_by_class: [None; 3],
        fixed_stack_slots: vec![],
    };
    let options = RegallocOptions { verbose_log: false, validate_ssa: check, ..RegallocOptions::default() };
    let fail = |what: String| CompileError::Internal(format!("register allocation of `{}`: {what}", func.name));
    let output = regalloc2::run(&view, &env, &options).map_err(|e| match e {
        // What an instruction reads and writes at once has to be in registers.
        RegAllocError::TooManyLiveRegs => CompileError::Unsupported(format!(
            "`{}` needs more registers at once than the {} that the machine file's `abi.allocatable` gives it; \
             list more there, for each cluster where there are clusters, or raise `abi.registers`",
            func.name,
            allocatable.len()
        )),
        e => fail(format!("{e:?}")),
    })?;
    if check {
        let mut checker = regalloc2::checker::Checker::new(&view, &env);
        checker.prepare(&output);
        checker.run().map_err(|e| fail(format!("{e:?}")))?;
    }

    let place = |a: Allocation| match (a.as_reg(), a.as_stack()) {
        (Some(p), _) => Ok(Place::Reg(classes.reg(p))),
        (None, Some(s)) => Ok(Place::Slot(s.index() as u32)),
        _ => Err(fail("an operand has no place".into())),
    };
    let mut used = BTreeSet::new();
    let mut blocks = Vec::with_capacity(func.blocks.len());
    for b in 0..func.blocks.len() {
        let mut steps = Vec::new();
        for item in output.block_insts_and_edits(&view, Block::new(b)) {
            match item {
                InstOrEdit::Inst(i) => {
                    let places = output.inst_allocs(i).iter().map(|&a| place(a)).collect::<Result<Vec<_>, _>>()?;
                    used.extend(places.iter().copied());
                    steps.push(Step::Inst(view.insts[i.index()].1, places));
                }
                InstOrEdit::Edit(Edit::Move { from, to }) => {
                    let (from, to) = (place(*from)?, place(*to)?);
                    used.insert(to);
                    if from != to {
                        steps.push(Step::Move { from, to });
                    }
                }
            }
        }
        blocks.push(steps);
    }
    // A pipelined loop may use any register.
    let pipelined = func.blocks.iter().flat_map(|b| &b.insts).any(|i| i.kind == VKind::Kernel);
    let saved =
        registers.callee_saved.iter().copied().filter(|&r| pipelined || used.contains(&Place::Reg(r))).collect();
    Ok(Allocated { blocks, slots: output.num_spillslots as u32, saved })
}

/// Allocatable registers that an instruction clobbers.
fn destroyed(instr: &Instr, allocatable: &[Reg], classes: &Classes<'_>) -> PRegSet {
    let fixed = instr.semantics.iter().filter_map(|s| match s {
        Stmt::Assign { dest: Dest::Fixed(r), .. } => Some(*r),
        _ => None,
    });
    fixed.filter(|r| allocatable.contains(r)).fold(PRegSet::empty(), |s, r| s.with(classes.preg(r)))
}

fn view<'a>(func: &'a VFunc, classes: &Classes<'_>, registers: &Registers) -> View<'a> {
    let allocatable = &registers.allocatable[..];
    let vreg = |v| classes.vreg(v);
    let n = func.blocks.len();
    let mut v = View {
        func,
        starts: vec![0],
        insts: Vec::new(),
        operands: Vec::new(),
        succs: vec![Vec::new(); n],
        preds: vec![Vec::new(); n],
        params: Vec::with_capacity(n),
        args: Vec::with_capacity(n),
        clobbers: classes.set(&registers.clobbered),
        all: classes.set(allocatable),
        results: Vec::new(),
        destroyed: Vec::new(),
    };
    for (b, block) in func.blocks.iter().enumerate() {
        for (i, inst) in block.insts.iter().enumerate() {
            v.insts.push((b, i));
            v.operands.push(operands(inst, classes, allocatable));
            v.destroyed.push(destroyed(&classes.machine.instrs[usize::from(inst.instr.0)], allocatable, classes));
            v.results.push(inst.fixed_defs.iter().fold(PRegSet::empty(), |s, d| s.with(classes.preg(d.1))));
        }
        v.starts.push(v.insts.len());
        v.params.push(block.params.iter().map(|&p| vreg(p)).collect());
        v.args.push(block.succs.iter().map(|(_, args)| args.iter().map(|&a| vreg(a)).collect()).collect());
        for (succ, _) in &block.succs {
            v.succs[b].push(Block::new(*succ as usize));
            v.preds[*succ as usize].push(Block::new(b));
        }
    }
    v
}
