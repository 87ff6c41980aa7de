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

use super::asked::{ALL, Asked, Short};
use super::outside::{Answer, Older, Question};
use super::tally::{Marks, Tally};
use super::{Access, Pipeline};
use crate::words::Writer;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A straight run of code, and where it led.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) taken: bool,
    pub(super) next: u32,
}

/// A run that was worked out from a state.
struct Step {
    first: u32,
    next: u32,
    /// Instructions, above one bit that says whether the last one's jump was taken.
    count: u32,
    /// The step from the same state that was worked out next, or `NO`.
    other: u32,
    /// Its questions in [`Memo::all`].
    from: u32,
    asked: u32,
    to: u32,
    instructions: u32,
    cycles: u64,
    times: u64,
}

impl Step {
    #[inline(always)]
    fn is(&self, run: Run) -> bool {
        (self.first, self.next, self.count) == (run.first, run.next, run.key())
    }

    /// Its questions, of all that are kept.
    #[inline(always)]
    fn asked<'a>(&self, all: &'a [Short]) -> &'a [Short] {
        &all[self.from as usize..][..self.asked as usize]
    }
}

impl Run {
    #[inline(always)]
    fn key(self) -> u32 {
        self.count << 1 | u32::from(self.taken)
    }
}

/// A state; its words stand in [`Memo::words`].
struct Node {
    from: usize,
    words: usize,
    /// A state with the same hash, or `NO`.
    alike: u32,
}

const NO: u32 = u32::MAX;

/// A hash of few numbers: nobody chooses them to be alike.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

type Quick<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// States and questions beyond which everything is forgotten, to bound memory.
const MOST_NODES: usize = 1 << 15;
const MOST_ASKED: usize = 1 << 23;
/// Runs after which it is seen whether remembering pays, and for which it is
/// left out where it does not.
const TRIAL: u32 = 1 << 13;
const PAUSE: u32 = 1 << 16;

/// Everything remembered.
pub(super) struct Memo {
    /// It can be used on this core.
    able: bool,
    nodes: Vec<Node>,
    words: Vec<u16>,
    /// The first step from each state, or `NO`.
    heads: Vec<u32>,
    /// Numbers of nodes by a hash of their state.
    by_hash: Quick<u64, u32>,
    steps: Vec<Step>,
    /// What each step counts each time (apart: it is not looked at before the end).
    counts: Vec<Marks>,
    /// The questions of all steps.
    all: Vec<Short>,
    writer: Writer,
    /// What [`Memo::instead`] has found before.
    found: Quick<(u32, u32, Answer), u32>,
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
            words: Vec::new(),
            heads: Vec::new(),
            by_hash: Quick::default(),
            steps: Vec::new(),
            counts: Vec::new(),
            all: Vec::new(),
            writer: Writer::default(),
            found: Quick::default(),
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
        // A question whose cycle has no meaning is asked in cycle 0.
        let at = if at == 0 { 0 } else { at.wrapping_sub(self.base) as i32 };
        self.asked.push(Asked { question, still: ALL, at, answer });
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
            last.answer = Older::within(last.answer, still);
        }
    }

    /// What the steps taken add to the counts.
    pub(super) fn add_to(&self, marks: &mut Marks) {
        for (step, counts) in self.steps.iter().zip(&self.counts).filter(|(s, _)| s.times > 0) {
            marks.add(counts, step.times);
        }
    }

    /// No step has been taken.
    pub(super) fn reset(&mut self) {
        self.steps.iter_mut().for_each(|s| s.times = 0);
    }

    fn node_of(&mut self, words: &[u16]) -> u32 {
        let hash = hash(words);
        let mut alike = self.by_hash.get(&hash).copied().unwrap_or(NO);
        let first = alike;
        while let Some(node) = self.nodes.get(alike as usize) {
            if self.words[node.from..][..node.words] == *words {
                return alike;
            }
            alike = node.alike;
        }
        let n = self.nodes.len() as u32;
        self.by_hash.insert(hash, n);
        self.nodes.push(Node { from: self.words.len(), words: words.len(), alike: first });
        self.words.extend_from_slice(words);
        self.heads.push(NO);
        n
    }

    /// The steps from a state.
    #[inline(always)]
    fn steps(&self, node: u32) -> impl Iterator<Item = u32> {
        let mut at = self.heads[node as usize];
        std::iter::from_fn(move || {
            let step = at;
            at = self.steps.get(step as usize)?.other;
            Some(step)
        })
    }

    /// What has been answered already when a run is to be worked out: the questions of a step so
    /// far, and the last ones.
    fn answers(&mut self, before: &[Short], last: impl IntoIterator<Item = Asked>) {
        self.asked.clear();
        self.asked.extend(before.iter().flat_map(|a| a.long()).chain(last));
        self.answered = self.asked.len();
    }

    /// Keep the questions of a run; false where one cannot be kept.
    fn shorten(&mut self) -> bool {
        let mut rest = &self.asked[..];
        while let [first, then @ ..] = rest {
            let both = then.first().and_then(|second| Short::of_both(first, second));
            rest = if both.is_some() { &then[1..] } else { then };
            let Some(short) = both.or_else(|| Short::of(first)) else { return false };
            self.all.push(short);
        }
        true
    }

    /// A step from a state, behind those that are known.
    fn add(&mut self, from: u32, step: Step, counts: Marks) {
        let new = self.steps.len() as u32;
        match self.steps(from).last() {
            Some(last) => self.steps[last as usize].other = new,
            None => self.heads[from as usize] = new,
        }
        self.steps.push(step);
        self.counts.push(counts);
    }

    /// Another step of the same run that has had the same answers so far and has this one now:
    /// to a load's question, or to the one that stands there.
    fn instead(&mut self, all: &[Short], node: u32, of: u32, at: usize, answer: Answer, load: bool) -> Option<u32> {
        let key = (of, at as u32 * 2 + u32::from(load), answer);
        if let Some(&known) = self.found.get(&key) {
            return Some(known);
        }
        let other = self.search(all, node, of, at, answer, load)?;
        self.found.insert(key, other);
        Some(other)
    }

    fn search(&self, all: &[Short], node: u32, of: u32, at: usize, answer: Answer, load: bool) -> Option<u32> {
        let step = &self.steps[of as usize];
        let (before, here) = step.asked(all).split_at(at);
        let wanted = here[0].answered(answer);
        let fits = |a: &Short| match load {
            true => a.load().is_some_and(|(_, of_load)| a.matters(answer) == of_load),
            false => Some(*a) == wanted,
        };
        self.steps(node).find(|&s| {
            let other = &self.steps[s as usize];
            let asked = other.asked(all);
            (other.first, other.next, other.count) == (step.first, step.next, step.count)
                && asked.get(at).is_some_and(fits)
                && asked[..at] == *before
        })
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
                    let last = a.long().map(|l| Asked { answer: if l.question == a.question { answer } else { l.answer }, ..l });
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
