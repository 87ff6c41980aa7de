//! Sums of roots times constants, and what else is known of a value.

use ciphermill_machine::{Machine, OperandKind};
use ciphermill_vcode::{VInst, VReg};
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Root {
    /// The iteration's number.
    Turn,
    Outside(VReg),
    /// What a node left in the iteration before.
    Before(usize),
    /// What a node makes in this iteration.
    Made(usize),
}

/// Roots times constants, plus a constant, modulo 2^32. No factor is 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sum {
    pub roots: BTreeMap<Root, u32>,
    pub constant: u32,
}

impl Sum {
    pub fn root(root: Root) -> Sum {
        Sum { roots: BTreeMap::from([(root, 1)]), constant: 0 }
    }

    pub fn number(constant: u32) -> Sum {
        Sum { roots: BTreeMap::new(), constant }
    }

    /// The number that it is, if it is one.
    pub fn known(&self) -> Option<u32> {
        self.roots.is_empty().then_some(self.constant)
    }

    pub fn times(mut self, factor: u32) -> Sum {
        self.roots.values_mut().for_each(|f| *f = f.wrapping_mul(factor));
        self.roots.retain(|_, f| *f != 0);
        self.constant = self.constant.wrapping_mul(factor);
        self
    }

    pub fn plus(mut self, other: &Sum) -> Sum {
        for (&root, &factor) in &other.roots {
            let sum = self.roots.entry(root).or_insert(0);
            *sum = sum.wrapping_add(factor);
        }
        self.roots.retain(|_, f| *f != 0);
        self.constant = self.constant.wrapping_add(other.constant);
        self
    }

    pub fn minus(self, other: &Sum) -> Sum {
        self.plus(&other.clone().times(u32::MAX))
    }

    /// With other sums in the place of some roots.
    pub fn with(&self, instead: &dyn Fn(Root) -> Option<Sum>) -> Sum {
        let start = Sum::number(self.constant);
        self.roots.iter().fold(start, |sum, (&root, &factor)| {
            sum.plus(&instead(root).unwrap_or_else(|| Sum::root(root)).times(factor))
        })
    }
}

/// What is known of a value.
#[derive(Clone, Debug)]
pub struct Known {
    /// None where the value is a root itself.
    pub sum: Option<Sum>,
    /// Bits that it may have set.
    pub bits: u64,
}

/// What is known of an instruction's operand, by the operand's number and the register that it reads.
pub type Value<'a> = dyn Fn(usize, VReg) -> Option<Known> + 'a;

/// The bits of an operand's register; none of what is no register.
pub fn width(machine: &Machine, inst: &VInst, o: usize) -> u32 {
    match machine.instrs[usize::from(inst.instr.0)].operands.get(o).map(|o| &o.kind) {
        Some(OperandKind::Reg { file, .. }) => u32::from(machine.files[*file].bits),
        _ => 0,
    }
}
