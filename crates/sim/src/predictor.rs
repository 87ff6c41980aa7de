//! A predictor that learns, in front of an in-order pipeline.
//!
//! # The rules
//!
//! 1. A jump whose address is not in the buffer of targets (BTB) is guessed not to jump.
//! 2. One that is there is guessed to jump to its last target; a conditional one only if its
//!    counter (BHT) stands in the upper half, and a return to what is on top of the return stack.
//! 3. Who jumps enters the buffer or becomes its most recently used; the least recently used gives way.
//! 4. A conditional jump's counter goes up when it jumps and down when it does not, between its limits.
//!    The counters begin in the middle, at the lowest value that says "jumps".
//! 5. A call puts its return address on the stack, whose oldest entry is lost when it is full; a return
//!    takes the newest.
//!
//! All of this happens when the jump is decided: no guess is made with what an older jump on its way
//! has not yet told.

use ciphermill_machine::{InstrId, InstrKind, Learned, Machine, Predictor as Model};

/// Bytes of the smallest distance between two jumps, as the counters are told apart.
const STEP: u32 = 4;

/// A place where control divides.
#[derive(Clone, Debug)]
pub struct Divide {
    /// Address of the jump.
    addr: u32,
    /// Its target, where it always has the same one.
    pub target: u64,
    kind: Kind,
    /// Where a call comes back to.
    after: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Conditional,
    Jump,
    Call,
    Return,
}

impl Divide {
    pub fn new(machine: &Machine, instr: InstrId, addr: u32, target: u64, after: u32) -> Divide {
        let returns = instr == machine.abi.ops.ret || machine.abi.windows.as_ref().is_some_and(|w| w.ret == instr);
        let kind = match machine.instrs[usize::from(instr.0)].kind {
            InstrKind::Branch => Kind::Conditional,
            InstrKind::Call | InstrKind::CallIndirect => Kind::Call,
            _ if returns => Kind::Return,
            _ => Kind::Jump,
        };
        Divide { addr, target, kind, after: after.into() }
    }
}

/// What the machine has learnt.
pub struct Predictor {
    model: Learned,
    /// Jumps and their last targets, the most recently used last.
    btb: Vec<(u32, u64)>,
    bht: Vec<u8>,
    returns: Vec<u64>,
}

impl Predictor {
    /// The machine's, if it has one that learns.
    pub fn of(machine: &Machine) -> Option<Predictor> {
        let Model::Dynamic(model) = machine.branch.predictor else { return None };
        let middle = 1 << (model.bht_bits - 1);
        Some(Predictor { model, btb: Vec::new(), bht: vec![middle; model.bht_entries as usize], returns: Vec::new() })
    }

    /// A call from outside.
    pub fn called(&mut self, after: u64) {
        if self.model.return_stack == 0 {
            return;
        }
        if self.returns.len() == self.model.return_stack as usize {
            self.returns.remove(0);
        }
        self.returns.push(after);
    }

    /// Was it guessed that this jump goes where it went? And learn from it.
    pub fn right(&mut self, at: &Divide, taken: bool, target: u64) -> bool {
        let known = self.btb.iter().position(|e| e.0 == at.addr);
        let last = known.map(|k| self.btb[k].1);
        let guess = match at.kind {
            Kind::Conditional => Some(self.counter(at, taken)).filter(|says| *says).and(last),
            Kind::Return => last.map(|last| self.returns.pop().unwrap_or(last)),
            Kind::Jump | Kind::Call => last,
        };
        if at.kind == Kind::Return && known.is_none() {
            self.returns.pop();
        }
        if at.kind == Kind::Call {
            self.called(at.after);
        }
        if taken {
            if let Some(k) = known {
                self.btb.remove(k);
            } else if self.btb.len() == self.model.btb_entries as usize {
                self.btb.remove(0);
            }
            self.btb.push((at.addr, target));
        }
        guess == taken.then_some(target)
    }

    /// Does the counter say "jumps"? And let it learn.
    fn counter(&mut self, at: &Divide, taken: bool) -> bool {
        let counter = &mut self.bht[((at.addr / STEP) % self.model.bht_entries) as usize];
        let says = *counter >> (self.model.bht_bits - 1) == 1;
        let most = (1u8 << self.model.bht_bits) - 1;
        *counter = if taken { (*counter + 1).min(most) } else { counter.saturating_sub(1) };
        says
    }
}
