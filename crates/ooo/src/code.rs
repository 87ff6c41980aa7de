//! The program as the core sees it: instructions by number, with their
//! micro-operations and where they lead.
//!
//! Numbers are those of the bundles of the whole program, in layout order, so
//! that the next instruction has the next number.

use crate::decompose::{Decomposer, Parts, Ports};
use crate::live::{ANYWHERE, Live, Step};
use crate::lots::deal;
use crate::misnamed;
use crate::parts::Wholes;
use crate::uop::{Kind, Lists, Uop};
use ciphermill_machine::core::{Core, Renaming};
use ciphermill_machine::for_each_expr;
use ciphermill_machine::sem::{Expr, Stmt};
use ciphermill_machine::{InstrKind, Machine};
use ciphermill_program::{Inst, Operand};
use std::collections::HashMap;

/// No instruction.
pub const NONE: u32 = u32::MAX;

/// How an instruction can change the flow of control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Jump {
    /// It cannot.
    No,
    /// To its target or not.
    Conditional,
    /// To its target.
    Direct,
    /// To its target, and back later.
    Call,
    /// To a computed address, and back later.
    CallIndirect,
    /// To a computed address.
    Indirect,
    /// To where the call was.
    Return,
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct Inst1 {
    pub addr: u32,
    pub bytes: u8,
    pub jump: Jump,
    /// It and the next one become one.
    pub pairs: bool,
    /// A prefix changes its length.
    pub length_changing: bool,
    pub parts: Parts,
    /// Those of itself and the one before as a pair.
    pub pair: Parts,
    /// Number of the instruction it jumps to.
    pub target: u32,
}

/// What is known of an instruction's place.
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    pub inst: Option<&'p Inst>,
    pub func: u32,
    pub block: u32,
    pub addr: u32,
    /// Encoded size.
    pub bytes: u32,
}

/// The whole program.
pub struct Code {
    pub insts: Vec<Inst1>,
    pub uops: Vec<Uop>,
    pub lists: Lists,
    pub ports: Ports,
    /// How the address of a load, or of a store (true), is written, by what its instruction is known by: equal
    /// numbers, equal forms. Only where a core compares them.
    pub forms: HashMap<(u32, bool), u32>,
    /// Registers, temporary ones included.
    pub registers: usize,
    pub live: Live,
}

impl Code {
    /// Take a program apart. `block` finds the number of a block's first
    /// instruction, `func` of a function's.
    ///
    /// # Errors
    /// What the core cannot run: delay slots, windows, micro-operations without
    /// a port.
    pub fn new(
        machine: &Machine,
        core: &Core,
        places: &[Place<'_>],
        lookup: &dyn Fn(u32, &Operand) -> Option<u32>,
    ) -> Result<Code, String> {
        let wholes = Wholes::new(machine, core, places.iter().filter_map(|p| p.inst));
        let mut d =
            Decomposer { machine, core, ports: Ports::new(machine)?, lists: Lists::default(), uops: vec![], wholes };
        let mut insts = Vec::with_capacity(places.len());
        for place in places {
            let mut one = Inst1 {
                addr: place.addr,
                bytes: 0,
                jump: Jump::No,
                pairs: false,
                length_changing: false,
                parts: Parts::default(),
                pair: Parts::default(),
                target: NONE,
            };
            if let Some(inst) = place.inst {
                let instr = &machine.instrs[usize::from(inst.instr.0)];
                if instr.delay_slots > 0 {
                    return Err(format!(
                        "`{}` has delay slots, which a core that schedules at run time does not have",
                        instr.name
                    ));
                }
                one.bytes =
                    u8::try_from(place.bytes).map_err(|_| format!("`{}` has {} bytes", instr.name, place.bytes))?;
                one.length_changing = core.fetch.length_changing.contains(&inst.instr);
                one.parts = d.instruction(inst).map_err(|e| format!("`{}`: {e}", instr.name))?;
                one.jump = match instr.kind {
                    InstrKind::Branch => Jump::Conditional,
                    InstrKind::Jump => Jump::Direct,
                    InstrKind::Call => Jump::Call,
                    InstrKind::CallIndirect => Jump::CallIndirect,
                    InstrKind::JumpIndirect if inst.instr == machine.abi.ops.ret => Jump::Return,
                    InstrKind::JumpIndirect => Jump::Indirect,
                    _ => Jump::No,
                };
                let label = inst.operands.iter().find(|o| matches!(o, Operand::Block(_) | Operand::Func(_)));
                one.target = label.and_then(|o| lookup(place.func, o)).unwrap_or(NONE);
            }
            insts.push(one);
        }
        for i in 1..places.len() {
            let (Some(a), Some(b)) = (places[i - 1].inst, places[i].inst) else { continue };
            let together = (places[i - 1].func, places[i - 1].block) == (places[i].func, places[i].block);
            let fits =
                core.decode.macro_fusion.iter().any(|f| f.first.contains(&a.instr) && f.second.contains(&b.instr));
            if together && fits && insts[i - 1].parts.stores == 0 && insts[i].parts.loads + insts[i].parts.stores == 0 {
                insts[i - 1].pairs = true;
                insts[i].pair = d.macro_fused(insts[i - 1].parts, insts[i].parts)?;
            }
        }
        if core.rename.deals_few {
            deal(&mut d.uops);
        }
        if core.load.renaming_moves {
            insts.iter().flat_map(|inst| [inst.parts, inst.pair]).for_each(|parts| passed_by(&mut d.uops, parts));
        }
        let blocks = places.iter().map(|p| (p.inst, (p.func, p.block)));
        for n in misnamed::loads(machine, core, blocks) {
            let pair = if insts[n].pairs { insts[n + 1].pair } else { Parts::default() };
            for parts in [insts[n].parts, pair] {
                let uops = &mut d.uops[parts.first as usize..][..usize::from(parts.count)];
                uops.iter_mut().filter(|u| u.kind == Kind::Load).for_each(|u| u.misnamed = true);
            }
        }
        let most = d.lists.sources.iter().copied().chain(d.lists.results.iter().map(|r| r.reg)).max().unwrap_or(0);
        let registers = usize::from(most.max(d.wholes.end)) + 1;
        let forms = if core.load.renaming == Renaming::Form { forms(machine, places) } else { HashMap::new() };
        let steps: Vec<Step> = (1..).zip(&insts).map(|(behind, inst)| step(inst, behind)).collect();
        let live = Live::new(&steps, &d.uops, &d.lists, registers);
        Ok(Code { insts, uops: d.uops, lists: d.lists, ports: d.ports, forms, registers, live })
    }
}

impl Code {
    /// Has an instruction a load that may be misnamed?
    pub fn misnamed(&self, number: u32) -> bool {
        let Parts { first, count, .. } = self.insts[number as usize].parts;
        self.uops[first as usize..][..usize::from(count)].iter().any(|u| u.misnamed)
    }
}

/// Of an instruction that computes with what it loads, and stores nothing, memory renaming passes the loads by.
fn passed_by(uops: &mut [Uop], parts: Parts) {
    let uops = &mut uops[parts.first as usize..][..usize::from(parts.count)];
    let of = |kind: Kind| uops.iter().any(|u| u.kind == kind);
    if of(Kind::Compute) && !of(Kind::StoreData) {
        uops.iter_mut().filter(|u| u.kind == Kind::Load).for_each(|u| u.unnamed = true);
    }
}

/// What can come behind an instruction: what stands behind it, its target.
fn step(inst: &Inst1, behind: u32) -> Step {
    let next = match inst.jump {
        Jump::No => [behind; 2],
        Jump::Conditional => [behind, inst.target],
        Jump::Direct | Jump::Call => [inst.target; 2],
        Jump::CallIndirect | Jump::Indirect | Jump::Return => [ANYWHERE; 2],
    };
    Step { parts: inst.parts, next }
}

/// Bits of an address below the size of every instruction: what predictors know instructions by leaves them out.
pub(crate) fn pc_shift(bytes: impl Iterator<Item = u32>) -> u32 {
    match bytes.fold(0, |a, b| a | b) {
        0 => 0,
        sizes => sizes.trailing_zeros().min(2),
    }
}

/// Number the ways in which addresses are written: expressions with the operands in their places.
fn forms(machine: &Machine, places: &[Place<'_>]) -> HashMap<(u32, bool), u32> {
    let shift = pc_shift(places.iter().map(|p| if p.inst.is_some() { p.bytes } else { 0 }));
    let (mut numbers, mut forms) = (HashMap::new(), HashMap::new());
    for place in places {
        let Some(inst) = place.inst else { continue };
        let semantics = &machine.instrs[usize::from(inst.instr.0)].semantics;
        let mut note = |store: bool, addr: &Expr| {
            let mut form = String::new();
            addr.walk(&mut |e| match e {
                Expr::Operand(i) | Expr::Imm(i) => form += &format!("{:?} ", inst.operands.get(*i)),
                Expr::Bin { op, bits, .. } => form += &format!("{op:?}{bits} "),
                Expr::Un { op, bits, .. } => form += &format!("{op:?}{bits} "),
                Expr::Slice { lo, width, .. } => form += &format!("{lo}+{width} "),
                Expr::Const(_) | Expr::Fixed(_) => form += &format!("{e:?} "),
                // An address of any other making is like no other.
                _ => form += &format!("at {:#x} ", place.addr),
            });
            let next = numbers.len() as u32;
            forms.insert((place.addr >> shift, store), *numbers.entry(form).or_insert(next));
        };
        for_each_expr(semantics, &mut |e| {
            if let Expr::Load { addr, .. } = e {
                note(false, addr);
            }
        });
        for stmt in semantics {
            if let Stmt::Store { addr, .. } = stmt {
                note(true, addr);
            }
        }
    }
    forms
}
