//! Functions in their final order and with their registers.
//!
//! A module is compiled in several forms of which one is measured, and most functions are the same in all of them: what
//! a run does not call, what no form changes. What becomes of a function follows from its code and the registers that
//! it may use alone. So each is placed once for a machine: looking it up changes how long a compilation takes, never
//! its result.

use ciphermill_regalloc::best::{AllocationRequest, Ordered};
use ciphermill_vcode::{Allocated, CompileError, Registers, VFunc};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Instructions of the functions that are remembered for one machine; a cipher has some thousands in all its forms
/// together, and each takes a kilobyte here at most.
const MOST: usize = 40_000;

/// A function, scheduled and with registers.
#[derive(Clone)]
pub struct Placed {
    pub func: VFunc,
    /// See [`Ordered::plain`].
    pub plain: Option<VFunc>,
    pub allocated: Allocated,
}

/// What decides how a function is placed on a given machine.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Question {
    func: VFunc,
    registers: Registers,
    optimised: bool,
}

/// Filled once; who asks meanwhile waits for it.
type Answer = Arc<OnceLock<Result<Placed, CompileError>>>;

/// The latest functions of one machine.
#[derive(Default)]
pub struct Memo {
    latest: Mutex<Latest>,
}

#[derive(Default)]
struct Latest {
    answers: HashMap<Arc<Question>, Answer>,
    /// In the order in which they were asked for first.
    order: VecDeque<Arc<Question>>,
    insts: usize,
}

impl Memo {
    /// A function with registers, and scheduled if it is to be `optimised`.
    ///
    /// # Errors
    /// When a checker refuses an order or an allocation.
    pub fn placed(
        &self,
        func: VFunc,
        request: &AllocationRequest<'_>,
        optimised: bool,
    ) -> Result<Placed, CompileError> {
        let question = Arc::new(Question { func, registers: request.registers.clone(), optimised });
        let answer = self.lock().answer(&question);
        answer.get_or_init(|| place(question.func.clone(), request, optimised)).clone()
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Latest {
    fn answer(&mut self, question: &Arc<Question>) -> Answer {
        if let Some(known) = self.answers.get(question) {
            return known.clone();
        }
        self.insts += question.insts();
        while self.insts > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.insts -= oldest.insts();
            self.answers.remove(&oldest);
        }
        let answer = Answer::default();
        self.answers.insert(question.clone(), answer.clone());
        self.order.push_back(question.clone());
        answer
    }
}

impl Question {
    fn insts(&self) -> usize {
        self.func.blocks.iter().map(|b| b.insts.len()).sum()
    }
}

fn place(mut func: VFunc, request: &AllocationRequest<'_>, optimised: bool) -> Result<Placed, CompileError> {
    let (m, registers) = (request.machine, request.registers);
    // A core that schedules at run time gets code of low register pressure instead.
    if optimised && m.core.as_ref().is_none_or(|c| c.in_order) {
        ciphermill_schedule::clusters::schedule(&mut func, m, request.facts, registers)?;
    }
    let mut plain = None;
    if optimised && !m.issue.explicit {
        Ordered { func, plain } = request.best_order(func)?;
    }
    let allocated = request.allocated(&func)?;
    Ok(Placed { func, plain, allocated })
}
