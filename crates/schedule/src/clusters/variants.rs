//! What each variant of an instruction wants of its operands.

use super::homes::Homes;
use ciphermill_machine::{InstrId, Machine, OperandKind};
use ciphermill_vcode::{VInst, VOp, VReg};
use smallvec::SmallVec;

/// An instruction as one of its variants, with the files that its operands are in.
pub struct Choice {
    pub variant: InstrId,
    /// Operands whose values are elsewhere, and the file where they are wanted.
    pub foreign: SmallVec<[(usize, u8); 2]>,
    /// Values that are nowhere yet, and where they would be.
    pub decides: SmallVec<[(VReg, u8); 3]>,
    /// Where its result is.
    pub result: Option<u8>,
}

/// The files in which a variant takes an operand; the first is that of its own.
fn takes(machine: &Machine, homes: &Homes<'_>, variant: InstrId, o: usize) -> SmallVec<[u8; 3]> {
    let instr = &machine.instrs[usize::from(variant.0)];
    if let Some((_, only)) = instr.only.iter().find(|p| p.0 == o) {
        let usable = only.iter().filter(|r| homes.registers.allocatable.contains(r));
        let mut files: SmallVec<[u8; 3]> =
            usable.filter_map(|r| homes.number(machine.regs[usize::from(r.0)].file)).collect();
        files.dedup();
        return files;
    }
    match instr.operands[o].kind {
        OperandKind::Reg { file, .. } => homes.number(file).into_iter().collect(),
        _ => SmallVec::new(),
    }
}

/// The ways in which an instruction can run, with what is decided so far.
pub fn choices(machine: &Machine, homes: &Homes<'_>, inst: &VInst) -> Vec<Choice> {
    let all = &machine.variants[usize::from(inst.instr.0)];
    all.iter().filter_map(|&variant| choice(machine, homes, inst, variant)).collect()
}

fn choice(machine: &Machine, homes: &Homes<'_>, inst: &VInst, variant: InstrId) -> Option<Choice> {
    let instr = &machine.instrs[usize::from(variant.0)];
    let mut choice = Choice { variant, foreign: SmallVec::new(), decides: SmallVec::new(), result: None };
    // A loop that stands as one instruction has operands of its own.
    for (o, (op, spec)) in inst.ops.iter().zip(&instr.operands).enumerate() {
        if let (VOp::Phys(r), OperandKind::Reg { file, .. }) = (op, &spec.kind)
            && machine.regs[usize::from(r.0)].file != *file
        {
            return None;
        }
        let (used, def) = match *op {
            VOp::Use(v) => (Some(v), None),
            VOp::Def(v) => (None, Some(v)),
            VOp::Tied { used, def } => (Some(used), Some(def)),
            _ => continue,
        };
        let files = takes(machine, homes, variant, o);
        let first = *files.first()?;
        let known = def.and_then(|v| homes.known(v));
        let file = match (known, used.and_then(|v| homes.known(v))) {
            (Some(known), _) if !files.contains(&known) => return None,
            (Some(known), _) => known,
            (None, Some(home)) if files.contains(&home) => home,
            (None, _) => first,
        };
        if let Some(v) = used {
            match homes.known(v) {
                Some(home) if home == file => {}
                Some(_) => choice.foreign.push((o, file)),
                None => match choice.decides.iter().find(|d| d.0 == v) {
                    Some(&(_, other)) if other != file => choice.foreign.push((o, file)),
                    Some(_) => {}
                    None => choice.decides.push((v, file)),
                },
            }
        }
        if let Some(v) = def {
            choice.result = Some(file);
            if known.is_none() {
                choice.decides.push((v, file));
            }
        }
    }
    Some(choice)
}

/// Operands that are elsewhere for every variant, by the variant for which the fewest are.
pub fn foreign(machine: &Machine, homes: &mut Homes<'_>, inst: &VInst) -> SmallVec<[(usize, u8); 2]> {
    let best = choices(machine, homes, inst).into_iter().min_by_key(|c| c.foreign.len());
    let Some(best) = best else { return SmallVec::new() };
    for &(v, file) in &best.decides {
        homes.decide(v, file);
    }
    best.foreign
}
