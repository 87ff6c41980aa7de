//! Runs of code taken as they went before, and those that were worked out kept ([`super::memo`]).

use super::asked::{ALL, Asked, Short};
use super::marks::Tally;
use super::memo::{LONGEST_PAUSE, MOST_ASKED, MOST_NODES, Memo, NO, Node, PAUSE, Run, Step, TRIAL};
use super::state::{Access, Pipeline};
use crate::words::Writer;

impl Pipeline {
    /// Take a run as a step that is known; false when it has to be worked out.
    #[inline(always)]
    pub(super) fn recall(&mut self, run: Run, accesses: &[Access]) -> bool {
        self.memo.answered = 0;
        if !self.memo.able || self.memo.pause > 0 || self.log.is_some() || self.chains.is_some() {
            self.memo.listens = false;
            self.memo.pause = self.memo.pause.saturating_sub(1);
            self.leave();
            return false;
        }
        self.memo.runs += 1;
        if let Some(node) = self.memo.node {
            let mut step = self.memo.heads[node as usize];
            while let Some(known) = self.memo.steps.get(step as usize) {
                if known.is(run) {
                    if self.take(node, step, accesses) {
                        return true;
                    }
                    break;
                }
                step = known.other;
            }
        }
        self.settle();
        let memo = &mut self.memo;
        (memo.listens, memo.taken) = (true, 0);
        memo.asked.truncate(memo.answered);
        memo.base = self.calendar.now();
        if memo.node.is_some() {
            let before = self.marks_here();
            self.memo.before = before;
        }
        false
    }

    /// Ask a step's questions; when all are answered as they were, it is taken.
    fn take(&mut self, node: u32, step: u32, accesses: &[Access]) -> bool {
        let base = if self.memo.stale { self.memo.now } else { self.calendar.now() };
        // Apart while questions are asked: what they change is elsewhere.
        let all = std::mem::take(&mut self.memo.all);
        let chosen = self.ask_again(&all, base, node, step, accesses);
        self.memo.all = all;
        let memo = &mut self.memo;
        let Some(chosen) = chosen else { return false };
        let step = &mut memo.steps[chosen as usize];
        step.times += 1;
        self.tally.instructions += u64::from(step.instructions);
        (memo.node, memo.stale, memo.now) = (Some(step.to), true, base + step.cycles);
        memo.stores = self.stores.pushed();
        memo.recalled += 1;
        true
    }

    /// The step whose answers are those of today, from one that begins with the same questions;
    /// None, and the answers so far, where none is known.
    #[inline(always)]
    fn ask_again(&mut self, all: &[Short], base: u64, node: u32, step: u32, accesses: &[Access]) -> Option<u32> {
        let mut chosen = step;
        let mut asked = self.memo.steps[chosen as usize].asked(all);
        let mut i = 0;
        while let Some(&a) = asked.get(i) {
            let at = base.wrapping_add_signed(a.at());
            // Most questions: asked at once, without an answer to take apart.
            if a.quiet().is_some_and(|quiet| self.still_quiet(&quiet, at, accesses)) {
                i += 1;
                continue;
            }
            if let Some((question, expected)) = a.load() {
                let answer = self.answer(question, at, accesses);
                if a.matters(answer) != expected {
                    let Some(other) = self.memo.instead(all, node, chosen, i, answer, true) else {
                        self.memo.answers(&asked[..i], [Asked { question, still: ALL, at: 0, answer }]);
                        return None;
                    };
                    // Asking it again changes nothing.
                    chosen = other;
                    asked = self.memo.steps[chosen as usize].asked(all);
                    continue;
                }
                if question == a.question {
                    i += 1;
                    continue;
                }
            }
            let answer = self.answer(a.question, at, accesses);
            if answer != a.parts().0 {
                let Some(other) = self.memo.instead(all, node, chosen, i, answer, false) else {
                    let last = a
                        .long()
                        .map(|l| Asked { answer: if l.question == a.question { answer } else { l.answer }, ..l });
                    self.memo.answers(&asked[..i], last);
                    return None;
                };
                chosen = other;
                asked = self.memo.steps[chosen as usize].asked(all);
            }
            i += 1;
        }
        Some(chosen)
    }

    /// The pipeline is what the memo says it is.
    pub(super) fn settle(&mut self) {
        if !std::mem::take(&mut self.memo.stale) {
            return;
        }
        if let Some(node) = self.memo.node {
            let words = std::mem::take(&mut self.memo.words);
            let Node { from, words: count, .. } = self.memo.nodes[node as usize];
            self.restore(&words[from..from + count], self.memo.now, self.memo.stores);
            self.memo.words = words;
        }
    }

    /// The same, and from here on it goes its own way.
    pub(super) fn leave(&mut self) {
        self.settle();
        self.memo.node = None;
    }

    /// A run has been worked out.
    pub(super) fn remember(&mut self, run: Run) {
        if !self.memo.listens {
            return;
        }
        self.memo.listens = false;
        let mut w = std::mem::take(&mut self.memo.writer);
        w.clear();
        self.save(&mut w);
        self.keep(run, &w);
        self.memo.writer = w;
    }

    fn keep(&mut self, run: Run, w: &Writer) {
        let from = self.memo.node.take();
        if w.broken || self.memo.taken != self.memo.answered {
            return;
        }
        if self.memo.nodes.len() >= MOST_NODES || self.memo.all.len() >= MOST_ASKED {
            self.forget();
            return;
        }
        let to = self.memo.node_of(&w.words);
        self.memo.node = Some(to);
        let memo = &mut self.memo;
        let before = memo.all.len();
        let whole = memo.shorten();
        if let Some(from) = from.filter(|_| whole) {
            let mut counts = self.marks_here();
            counts.subtract(&self.memo.before);
            // What is counted while questions are answered, and instructions, are counted as they come.
            let instructions = counts.tally.instructions;
            counts.tally = Tally { instructions: 0, ..counts.tally.without_answers() };
            let memo = &mut self.memo;
            let step = Step {
                first: run.first,
                next: run.next,
                count: run.key(),
                other: NO,
                from: before as u32,
                asked: (memo.all.len() - before) as u32,
                to,
                instructions: instructions as u32,
                cycles: self.calendar.now() - memo.base,
                times: 0,
            };
            memo.add(from, step, counts);
        } else {
            memo.all.truncate(before);
        }
        if self.memo.runs >= TRIAL {
            if self.memo.recalled < self.memo.runs / 4 {
                self.memo.pause = self.memo.next_pause;
                self.memo.next_pause = LONGEST_PAUSE.min(2 * self.memo.next_pause);
            } else {
                self.memo.next_pause = PAUSE;
            }
            (self.memo.runs, self.memo.recalled) = (0, 0);
        }
    }

    /// Begin again with nothing known; what was counted stays.
    fn forget(&mut self) {
        let marks = self.marks();
        self.set_marks(marks);
        let (able, next_pause) = (self.memo.able, self.memo.next_pause);
        self.memo = Memo::new(able);
        self.memo.next_pause = next_pause;
    }

    /// Runs of code that were recalled since the last reset, and not worked out.
    pub fn recalled(&self) -> u64 {
        self.memo.steps.iter().map(|s| s.times).sum()
    }

    /// Work everything out, or (from the start) remember.
    pub fn set_memo(&mut self, on: bool) {
        self.settle();
        self.forget();
        self.memo.able = on && self.calendar.forgets() && self.code.ports.names.len() <= 16;
    }
}
