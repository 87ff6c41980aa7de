//! Tables that depend on the machine alone: templates, the units that [`ciphermill_recognise`] looks
//! for, encodings, memory operands.
//!
//! For a machine of two thousand instructions they take longer to make than a small function to
//! compile, so they are made once for any number of modules.

use crate::encodings::Encodings;
use crate::placed;
use ciphermill_ir::BinOp;
use ciphermill_machine::{Machine, OperandKind};
use ciphermill_opt::limbs::Narrow;
use ciphermill_patterns::graph::any_within;
use ciphermill_patterns::matcher::Matcher;
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::pattern::{Action, Template};
use ciphermill_recognise::Recogniser;
use ciphermill_regalloc::fold::{self, FoldTable};
use ciphermill_vcode::CompileError;
use ciphermill_vcode::Facts;
use ciphermill_vcode::runs::Runs;
use std::sync::Arc;

/// One machine, as the code generator wants to know it.
pub struct Tables {
    pub machine: Arc<Machine>,
    pub matcher: Matcher,
    /// The same without the instructions whose time varies with values. None where there are none.
    pub(crate) steady: Option<Matcher>,
    pub(crate) recogniser: Recogniser,
    /// For each function that is recognised: does it give a value of several words?
    pub(crate) whole: Vec<bool>,
    pub(crate) facts: Facts,
    pub(crate) encodings: Encodings,
    /// For checking schedules.
    pub(crate) rules: ciphermill_verify::Rules,
    /// None where no instruction overwrites a source.
    pub(crate) folds: Option<FoldTable>,
    /// Loads and stores of several words.
    pub(crate) runs: Runs,
    /// Functions of any module that have their registers already.
    pub(crate) placed: placed::Memo,
}

impl Tables {
    /// # Errors
    /// When the machine is one that no code can be made for.
    pub fn new(machine: Arc<Machine>) -> Result<Tables, CompileError> {
        supported(&machine)?;
        let (recogniser, recognised) = Recogniser::new(&machine);
        let whole = recognised.iter().map(|t| t.results().count() > 1).collect();
        let matcher = Matcher::with(&machine, recognised);
        Ok(Tables {
            steady: matcher.steady(&machine),
            matcher,
            recogniser,
            whole,
            facts: Facts::new(&machine),
            encodings: Encodings::new(&machine),
            rules: ciphermill_verify::Rules::new(machine.clone()),
            folds: fold::two_address(&machine).then(|| FoldTable::new(&machine)),
            runs: Runs::new(&machine),
            placed: placed::Memo::default(),
            machine,
        })
    }

    /// What the optimiser has to know of a machine whose registers are narrower than 32 bits.
    pub fn narrow(&self) -> Option<Narrow> {
        let bits = u32::from(self.machine.value_bits());
        let displacement = |t: &Template| match &t.action {
            Action::Value(_, Pat::Load { addr: a, .. }) => match &**a {
                Pat::Bin(BinOp::Add, _, d) => match (&**d, t) {
                    (Pat::Imm(i), t) => t.operands.get(*i).map(|o| o.kind.clone()),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        let most = |kind| match kind {
            OperandKind::Imm { max, .. } => u32::try_from(max).ok(),
            _ => None,
        };
        let reach = self.matcher.templates.iter().filter_map(displacement).filter_map(most).max().unwrap_or(0);
        let compares_all = self.machine.chains.as_ref().is_none_or(|c| c.compares_all);
        (bits < 32).then_some(Narrow { bits, reach, compares_all })
    }

    /// Does some load or addition of the machine scale an index register? Where none
    /// does, an index is better cut out of a word already scaled.
    pub fn scales_index(&self) -> bool {
        scales(&self.matcher.templates)
    }

    /// Does the machine divide 32-bit numbers, signed and unsigned?
    pub fn divides(&self) -> bool {
        divide(&self.matcher.templates)
    }
}

fn scales(templates: &[Template]) -> bool {
    // A shift anywhere else than in a sum scales nothing.
    fn shifts(p: &Pat) -> bool {
        let sum = |p: &Pat| matches!(p, Pat::Bin(BinOp::Add, ..));
        let shift = |p: &Pat| matches!(p, Pat::Bin(BinOp::Shl, ..));
        any_within(p, sum, shift)
    }
    templates.iter().any(|t| match &t.action {
        Action::Value(_, Pat::Load { addr, .. }) => shifts(addr),
        Action::Value(_, p @ Pat::Bin(BinOp::Add, ..)) => shifts(p),
        _ => false,
    })
}

fn divide(templates: &[Template]) -> bool {
    use BinOp::{DivS, DivU};
    let has = |op| templates.iter().any(|t| matches!(&t.action, Action::Value(_, Pat::Bin(o, ..)) if *o == op));
    has(DivU) && has(DivS)
}

/// What a machine file may say and the code generator does not know yet: a line
/// for each.
fn supported(m: &Machine) -> Result<(), CompileError> {
    let lacking = [
        (
            m.word_bits == 64 && m.endian == ciphermill_machine::Endian::Big,
            "word_bits: words of 64 bits are little-endian only; set endian to \"little\", or word_bits to 32",
        ),
        (
            m.word_bits == 64 && (m.issue.explicit || m.abi.windows.is_some()),
            "word_bits: words of 64 bits are not for bundles or register windows; set word_bits to 32, or issue.width to 1",
        ),
        (
            m.computes_narrow() && !m.memory.unaligned,
            "narrow: where instructions compute in 32 bits, accesses have to work at any address; set memory.unaligned to true, or narrow to \"signed\"",
        ),
        (
            !m.issue.interlock && m.abi.windows.is_some(),
            "issue.interlock = false: register windows need a pipeline that waits for operands; set it to true",
        ),
        (
            !m.issue.interlock && m.abi.link.is_none(),
            "issue.interlock = false: calls on an exposed pipeline need [abi.link]; add it, or set interlock to true",
        ),
        (
            m.issue.explicit && m.abi.windows.is_some(),
            "issue.width: bundles of several instructions are not made for machines with register windows; set it to 1",
        ),
        (
            (m.issue.explicit || m.instrs.iter().any(|i| i.delay_slots > 0))
                && m.instrs.iter().any(|i| i.reach.is_some() || i.literal.is_some()),
            "reach_from, reach_to, literal: jumps of limited reach and literal pools are not made in bundles, nor beside delay slots; leave these keys out",
        ),
        (
            m.issue.explicit && m.core.is_some(),
            "issue.width: a core that schedules at run time makes its own bundles; set it to 1, and the widths in [core]",
        ),
    ];
    match lacking.iter().find(|l| l.0) {
        Some((_, what)) => Err(CompileError::Unsupported(format!("machine {}: {what}", m.name))),
        None => Ok(()),
    }
}
