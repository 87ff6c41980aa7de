//! How blocks end: branches with their comparison right before them, and what they hand over.

use super::Lower;
use super::width::Limbs;
use ciphermill_ir::{Block, CmpOp, Target, Terminator};

impl Lower<'_> {
    pub(super) fn term(&mut self, block: Block) {
        let old = self.old.blocks[block].term.clone();
        let new = match &old {
            Terminator::Jump(t) => Terminator::Jump(self.target(t)),
            Terminator::Branch { cond, then, els } => {
                let (then, els) = (self.target(then), self.target(els));
                let cond = self.old.resolve(*cond);
                // The comparison again, right here, if its operands are those of this block.
                let compared = self.demand.asks(&self.old, block, cond);
                match compared {
                    Some((op, a, b)) => {
                        let (a, b) = (self.limbs(a), self.limbs(b));
                        self.emit.branch(op, &a, &b, then, els)
                    }
                    None => {
                        let a = self.limbs(cond);
                        let zero = self.emit.constant(0);
                        let zeros: Limbs = std::iter::repeat_n(zero, a.len()).collect();
                        self.emit.branch(CmpOp::Ne, &a, &zeros, then, els)
                    }
                }
            }
            Terminator::Switch { index, targets, default } => {
                let index = self.limbs(*index);
                for (n, t) in targets.iter().enumerate() {
                    let then = self.target(t);
                    let number = self.emit.number(n as u32);
                    let next = self.emit.new_block();
                    let branch = self.emit.branch(CmpOp::Eq, &index, &number, then, Target::new(next, vec![]));
                    self.emit.end(branch);
                    self.emit.at(next);
                }
                Terminator::Jump(self.target(default))
            }
            Terminator::Return(values) => Terminator::Return(self.all(values)),
            Terminator::Trap(code) => Terminator::Trap(*code),
        };
        self.emit.end(new);
    }

    fn target(&self, t: &Target) -> Target {
        let mut args = Vec::new();
        for (&param, &arg) in self.old.blocks[t.block].params.iter().zip(&t.args) {
            let limbs = self.limbs(arg);
            args.extend((0..self.count()).filter(|&k| self.wanted(param, k)).map(|k| limbs[k]));
        }
        Target::new(self.block(t.block), args)
    }
}
