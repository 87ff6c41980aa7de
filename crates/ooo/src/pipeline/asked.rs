//! Questions and answers as the memo keeps them.
//!
//! While a run of code is worked out they are written down as [`Asked`]; what is kept of them
//! is [`Short`]. When they are asked again, and what follows, is in [`super::memo`].

use super::question::{Answer, Older, Question};

/// A question of a step, its cycle from the start of the run (of no meaning where the question
/// has none), its answer. A load's answer is
/// that about the `still` youngest of the older stores: the others were in the cache when it
/// started, so that nothing depends on what they have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asked {
    pub(super) question: Question,
    pub(super) still: u32,
    pub(super) at: i32,
    pub(super) answer: Answer,
}

/// The same in less memory: what is recalled is read from there again and again. A load of which
/// no older store has anything and its access to the data cache, which then comes next, are one:
/// the access with the load's `still`, and above its answer whether the load passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Short {
    pub(super) question: Question,
    /// Its cycle, above eight bits of `still`.
    when: i32,
    answer: u32,
}

const _: () = assert!(size_of::<Short>() == 16);

/// More stores than there are; `still` of a question that is not a load's.
pub(super) const ALL: u32 = u32::MAX;
const ALL_SHORT: u32 = u8::MAX as u32;

/// Above the answer about data: the load before it passes.
const PASSES: u32 = 1 << 31;

/// An access that took no time, and what of it has to be so again.
pub(super) struct Quiet {
    pub(super) pc: u32,
    pub(super) access: u16,
    pub(super) write: bool,
    pub(super) passes: bool,
    /// So many of the stores before it matter.
    pub(super) still: u32,
}

impl Short {
    /// None where a number is too large, which makes a run that is not remembered.
    pub(super) fn of(asked: &Asked) -> Option<Short> {
        let when = asked.at.checked_mul(1 << 8)?;
        let still = if asked.still == ALL { ALL_SHORT } else { asked.still };
        if asked.still != ALL && still >= ALL_SHORT {
            return None;
        }
        let answer = u32::try_from(asked.answer).ok()?;
        Some(Short { question: asked.question, when: when | still as i32, answer })
    }

    /// A load and its access as one, where they can be.
    pub(super) fn of_both(load: &Asked, data: &Asked) -> Option<Short> {
        let Question::Load { pc, access } = load.question else { return None };
        let same = data.question == Question::Data { pc, access, write: false };
        let (load, data) = (Short::of(load)?, Short::of(data)?);
        if !same || load.answer > 1 || load.still() == ALL_SHORT || data.answer >= PASSES {
            return None;
        }
        let when = data.when & !(ALL_SHORT as i32) | load.still() as i32;
        Some(Short { when, answer: data.answer | (load.answer * PASSES), ..data })
    }

    #[inline(always)]
    pub(super) fn at(self) -> i64 {
        i64::from(self.when >> 8)
    }

    #[inline(always)]
    fn still(self) -> u32 {
        self.when as u32 & ALL_SHORT
    }

    /// An access that took no time. Of a load: no older store had anything, and whether it passes.
    #[inline(always)]
    pub(super) fn quiet(self) -> Option<Quiet> {
        let Question::Data { pc, access, write } = self.question else { return None };
        let still = self.still();
        let passes = self.answer == PASSES;
        let quiet = (self.answer == 0 || passes) && write == (still == ALL_SHORT);
        quiet.then_some(Quiet { pc, access, write, passes, still })
    }

    /// A load's question, here or before this one, and its answer.
    #[inline(always)]
    pub(super) fn load(self) -> Option<(Question, Answer)> {
        match self.question {
            Question::Load { .. } => Some((self.question, Answer::from(self.answer))),
            Question::Data { pc, access, .. } if self.still() != ALL_SHORT => {
                Some((Question::Load { pc, access }, Answer::from(self.answer / PASSES)))
            }
            _ => None,
        }
    }

    /// The answer to its own question, and what else its number says.
    #[inline(always)]
    pub(super) fn parts(self) -> (Answer, u32) {
        let both = matches!(self.question, Question::Data { .. }) && self.still() != ALL_SHORT;
        let above = if both { self.answer & PASSES } else { 0 };
        (Answer::from(self.answer - above), above)
    }

    /// An answer to a load's question, as far as it matters.
    #[inline(always)]
    pub(super) fn matters(self, answer: Answer) -> Answer {
        if self.still() == ALL_SHORT { answer } else { Older::within(answer, self.still()) }
    }

    /// The same with another answer to its own question, if there can be such.
    pub(super) fn answered(self, answer: Answer) -> Option<Short> {
        let (_, above) = self.parts();
        let both = self.load().is_some();
        let answer = u32::try_from(answer).ok().filter(|&a| !both || a < PASSES)?;
        Some(Short { answer: answer | above, ..self })
    }

    /// All that was asked.
    pub(super) fn long(self) -> impl Iterator<Item = Asked> {
        let (answer, _) = self.parts();
        let load = self.load();
        let first = load.map(|(question, answer)| {
            let still = if self.still() == ALL_SHORT { ALL } else { self.still() };
            Asked { question, still, at: 0, answer }
        });
        let data = Asked { question: self.question, still: ALL, at: self.when >> 8, answer };
        let alone = load.is_none_or(|(question, _)| question != self.question);
        first.into_iter().chain(alone.then_some(data))
    }
}
