//! What the core has done before from the same state, it does again.
//!
//! Code that runs for long comes back to the same states: the same
//! micro-operations under way, as many cycles from their ends. From such a
//! state a run of code takes the same way again as long as everything outside
//! (addresses, caches, predictors: [`super::outside`]) answers the same. So each
//! run that was worked out is kept as a [`Step`]: the questions in their order,
//! with the cycle of each and its answer, the cycles that passed, what was
//! counted, and the state that it led to. When the core is in a known state and
//! comes to a known run, only the questions are asked. Where one is answered
//! otherwise, another step from that state may have that answer; else the run
//! is worked out, with the answers already given. Nothing is approximated.
//! (E. Schnarr and J. Larus, Fast out-of-order processor simulation using
//! memoization, ASPLOS 1998, did this for a simulator stepping by cycles.)

use super::outside::{Answer, Older, Question};
use super::tally::{Marks, Tally};
use super::{Access, Pipeline};
use crate::words::Writer;
use std::collections::HashMap;

/// A straight run of code, and where it led.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) taken: bool,
    pub(super) next: u32,
}

/// A question of a step, its cycle from the start of the run (of no meaning where the question
/// has none), its answer. A load's answer is
/// that about the `still` youngest of the older stores: the others were in the cache when it
/// started, so that nothing depends on what they have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Asked {
    question: Question,
    still: u32,
    at: i32,
    answer: Answer,
}

impl Asked {
    /// An answer to the same question in the same cycle, as far as it matters.
    #[inline(always)]
    fn matters(&self, answer: Answer) -> Answer {
        if self.still == ALL { answer } else { Older::within(answer, self.still) }
    }
}

/// More stores than there are.
const ALL: u32 = u32::MAX;

/// A run that was worked out.
struct Step {
    run: Run,
    asked: Vec<Asked>,
    instructions: u64,
    cycles: u64,
    to: u32,
    /// What it counts each time (apart: it is not looked at before the end), and how often it
    /// was taken.
    counts: Box<Marks>,
    times: u64,
}

/// A state, and the steps that begin in it.
struct Node {
    words: Box<[u16]>,
    steps: Vec<Start>,
}

/// A step's number behind what nearly always tells its run from others, which saves looking
/// at the steps themselves.
#[derive(Clone, Copy)]
struct Start {
    first: u32,
    next: u32,
    step: u32,
}

/// States and steps beyond which everything is forgotten, to bound memory.
const MOST_NODES: usize = 1 << 15;
/// Runs after which it is seen whether remembering pays, and for which it is
/// left out where it does not.
const TRIAL: u32 = 1 << 13;
const PAUSE: u32 = 1 << 16;

/// Everything remembered.
pub(super) struct Memo {
    /// It can be used on this core.
    able: bool,
    nodes: Vec<Node>,
    /// Numbers of nodes by a hash of their state.
    by_hash: HashMap<u64, Vec<u32>>,
    steps: Vec<Step>,
    /// What [`Memo::instead`] has found before.
    found: HashMap<(u32, u32, Answer), u32>,
    /// The state the core is in; with `stale`, only said here, at cycle `now`.
    node: Option<u32>,
    stale: bool,
    now: u64,
    /// Stores before that state.
    stores: u64,
    /// Questions are being written down.
    pub(super) listens: bool,
    asked: Vec<Asked>,
    /// Of them, those answered before the run was worked out, and those taken back.
    answered: usize,
    taken: usize,
    /// Counts when the run began.
    before: Marks,
    base: u64,
    /// Runs, and those of them recalled, of this trial.
    runs: u32,
    recalled: u32,
    /// Runs still left out.
    pause: u32,
}

impl Memo {
    pub(super) fn new(able: bool) -> Memo {
        Memo {
            able,
            nodes: Vec::new(),
            by_hash: HashMap::new(),
            steps: Vec::new(),
            found: HashMap::new(),
            node: None,
            stale: false,
            now: 0,
            stores: 0,
            listens: false,
            asked: Vec::new(),
            answered: 0,
            taken: 0,
            before: Marks::default(),
            base: 0,
            runs: 0,
            recalled: 0,
            pause: 0,
        }
    }

    /// The answer to the next question, where it was asked already.
    #[inline(always)]
    pub(super) fn known(&mut self) -> Option<Answer> {
        if self.taken == self.answered {
            return None;
        }
        self.taken += 1;
        Some(self.asked[self.taken - 1].answer)
    }

    #[inline(always)]
    pub(super) fn note(&mut self, question: Question, at: u64, answer: Answer) {
        self.asked.push(Asked { question, still: ALL, at: at.wrapping_sub(self.base) as i32, answer });
    }

    /// Of the stores that the load asked about last, so many were under way when it started.
    #[inline(always)]
    pub(super) fn still(&mut self, still: u32) {
        if !self.listens || self.asked.len() == self.answered {
            // What was answered already says so itself.
            return;
        }
        if let Some(last) = self.asked.last_mut() {
            last.still = still;
            last.answer = last.matters(last.answer);
        }
    }

    /// What the steps taken add to the counts.
    pub(super) fn add_to(&self, marks: &mut Marks) {
        for step in self.steps.iter().filter(|s| s.times > 0) {
            marks.add(&step.counts, step.times);
        }
    }

    /// No step has been taken.
    pub(super) fn reset(&mut self) {
        self.steps.iter_mut().for_each(|s| s.times = 0);
    }

    fn node_of(&mut self, words: &[u16]) -> u32 {
        let hash = hash(words);
        let found = self.by_hash.entry(hash).or_default();
        if let Some(&n) = found.iter().find(|&&n| *self.nodes[n as usize].words == *words) {
            return n;
        }
        let n = self.nodes.len() as u32;
        found.push(n);
        self.nodes.push(Node { words: words.into(), steps: Vec::new() });
        n
    }

    /// Another step of the same run that has had the same answers so far and has this one now.
    fn instead(&mut self, node: u32, of: u32, at: usize, answer: Answer) -> Option<u32> {
        let key = (of, at as u32, answer);
        if let Some(&known) = self.found.get(&key) {
            return Some(known);
        }
        let other = self.search(node, of, at, answer)?;
        self.found.insert(key, other);
        Some(other)
    }

    fn search(&self, node: u32, of: u32, at: usize, answer: Answer) -> Option<u32> {
        let step = &self.steps[of as usize];
        let run = step.run;
        let fits = |&&s: &&Start| {
            if (s.first, s.next) != (run.first, run.next) {
                return false;
            }
            let other = &self.steps[s.step as usize];
            other.run == run
                && other.asked.get(at).is_some_and(|a| a.answer == answer)
                && other.asked[..at].iter().zip(&step.asked[..at]).all(|(a, b)| a.answer == b.answer)
        };
        self.nodes[node as usize].steps.iter().find(fits).map(|s| s.step)
    }
}

/// Multiplications and rotations, eight bytes at a time.
fn hash(words: &[u16]) -> u64 {
    let mut h = words.len() as u64;
    let mut add = |n: u64| h = (h.rotate_left(5) ^ n).wrapping_mul(0x517c_c1b7_2722_0a95);
    let mut chunks = words.chunks_exact(4);
    for c in &mut chunks {
        add(c.iter().rev().fold(0, |n, &w| n << 16 | u64::from(w)));
    }
    add(chunks.remainder().iter().fold(0, |n, &w| n << 16 | u64::from(w)));
    h ^ h >> 32
}

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
            let steps = &self.memo.nodes[node as usize].steps;
            let starts = |s: &&Start| {
                (s.first, s.next) == (run.first, run.next) && self.memo.steps[s.step as usize].run == run
            };
            let known = steps.iter().find(starts).map(|s| s.step);
            if let Some(step) = known
                && self.take(node, step, accesses)
            {
                return true;
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
        let mut chosen = step;
        let base = if self.memo.stale { self.memo.now } else { self.calendar.now() };
        let mut asked = std::mem::take(&mut self.memo.steps[chosen as usize].asked);
        let mut i = 0;
        while i < asked.len() {
            let a = asked[i];
            let answer = a.matters(self.answer(a.question, base.wrapping_add_signed(i64::from(a.at)), accesses));
            if answer != a.answer {
                self.memo.steps[chosen as usize].asked = asked;
                let Some(other) = self.memo.instead(node, chosen, i, answer) else {
                    let so_far = &self.memo.steps[chosen as usize].asked[..i];
                    self.memo.asked.clear();
                    self.memo.asked.extend_from_slice(so_far);
                    self.memo.asked.push(Asked { answer, ..a });
                    self.memo.answered = i + 1;
                    return false;
                };
                chosen = other;
                asked = std::mem::take(&mut self.memo.steps[chosen as usize].asked);
            }
            i += 1;
        }
        let memo = &mut self.memo;
        let step = &mut memo.steps[chosen as usize];
        step.asked = asked;
        step.times += 1;
        self.tally.instructions += step.instructions;
        (memo.node, memo.stale, memo.now) = (Some(step.to), true, base + step.cycles);
        memo.stores = self.stores.pushed();
        memo.recalled += 1;
        true
    }

    /// The pipeline is what the memo says it is.
    pub(super) fn settle(&mut self) {
        if !std::mem::take(&mut self.memo.stale) {
            return;
        }
        if let Some(node) = self.memo.node {
            let words = std::mem::take(&mut self.memo.nodes[node as usize].words);
            self.restore(&words, self.memo.now, self.memo.stores);
            self.memo.nodes[node as usize].words = words;
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
        let mut w = Writer::default();
        self.save(&mut w);
        let from = self.memo.node.take();
        if w.broken || self.memo.taken != self.memo.answered {
            return;
        }
        if self.memo.nodes.len() >= MOST_NODES {
            self.forget();
            return;
        }
        let to = self.memo.node_of(&w.words);
        self.memo.node = Some(to);
        if let Some(from) = from {
            let mut counts = self.marks_here();
            counts.subtract(&self.memo.before);
            // What is counted while questions are answered, and instructions, are counted as they come.
            let instructions = counts.tally.instructions;
            counts.tally = Tally { instructions: 0, ..counts.tally.without_answers() };
            let memo = &mut self.memo;
            let step = memo.steps.len() as u32;
            memo.nodes[from as usize].steps.push(Start { first: run.first, next: run.next, step });
            memo.steps.push(Step {
                run,
                asked: memo.asked.clone(),
                instructions,
                cycles: self.calendar.now() - memo.base,
                to,
                counts: Box::new(counts),
                times: 0,
            });
        }
        if self.memo.runs >= TRIAL {
            if self.memo.recalled < self.memo.runs / 4 {
                self.memo.pause = PAUSE;
            }
            (self.memo.runs, self.memo.recalled) = (0, 0);
        }
    }

    /// Begin again with nothing known; what was counted stays.
    fn forget(&mut self) {
        let marks = self.marks();
        self.set_marks(marks);
        let able = self.memo.able;
        self.memo = Memo::new(able);
    }

    /// Runs of code that were recalled since the last reset, and not worked out.
    pub fn recalled(&self) -> u64 {
        self.memo.steps.iter().map(|s| s.times).sum()
    }

    /// Work everything out, or (from the start) remember.
    pub fn set_memo(&mut self, on: bool) {
        self.settle();
        self.forget();
        self.memo.able = on && self.calendar.forgets(&self.code.ports.classes) && self.code.ports.names.len() <= 16;
    }
}
