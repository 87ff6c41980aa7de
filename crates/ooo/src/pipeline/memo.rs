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
use super::marks::Marks;
use super::question::{Answer, Older, Question};
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
pub(super) struct Step {
    pub(super) first: u32,
    pub(super) next: u32,
    /// Instructions, above one bit that says whether the last one's jump was taken.
    pub(super) count: u32,
    /// The step from the same state that was worked out next, or `NO`.
    pub(super) other: u32,
    /// Its questions in [`Memo::all`].
    pub(super) from: u32,
    pub(super) asked: u32,
    pub(super) to: u32,
    pub(super) instructions: u32,
    pub(super) cycles: u64,
    pub(super) times: u64,
}

impl Step {
    #[inline(always)]
    pub(super) fn is(&self, run: Run) -> bool {
        (self.first, self.next, self.count) == (run.first, run.next, run.key())
    }

    /// Its questions, of all that are kept.
    #[inline(always)]
    pub(super) fn asked<'a>(&self, all: &'a [Short]) -> &'a [Short] {
        &all[self.from as usize..][..self.asked as usize]
    }
}

impl Run {
    #[inline(always)]
    pub(super) fn key(self) -> u32 {
        self.count << 1 | u32::from(self.taken)
    }
}

/// A state; its words stand in [`Memo::words`].
pub(super) struct Node {
    pub(super) from: usize,
    pub(super) words: usize,
    /// A state with the same hash, or `NO`.
    pub(super) alike: u32,
}

pub(super) const NO: u32 = u32::MAX;

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
pub(super) const MOST_NODES: usize = 1 << 15;
pub(super) const MOST_ASKED: usize = 1 << 23;
/// Runs after which it is seen whether remembering pays, and for which it is
/// left out where it does not.
pub(super) const TRIAL: u32 = 1 << 13;
pub(super) const PAUSE: u32 = 1 << 16;
/// Each time in a row that it does not pay twice as many are left out, up to this.
pub(super) const LONGEST_PAUSE: u32 = 1 << 20;

/// Everything remembered.
pub(super) struct Memo {
    /// It can be used on this core.
    pub(super) able: bool,
    pub(super) nodes: Vec<Node>,
    pub(super) words: Vec<u16>,
    /// The first step from each state, or `NO`.
    pub(super) heads: Vec<u32>,
    /// Numbers of nodes by a hash of their state.
    by_hash: Quick<u64, u32>,
    pub(super) steps: Vec<Step>,
    /// What each step counts each time (apart: it is not looked at before the end).
    pub(super) counts: Vec<Marks>,
    /// The questions of all steps.
    pub(super) all: Vec<Short>,
    pub(super) writer: Writer,
    /// What [`Memo::instead`] has found before.
    found: Quick<(u32, u32, Answer), u32>,
    /// The state the core is in; with `stale`, only said here, at cycle `now`.
    pub(super) node: Option<u32>,
    pub(super) stale: bool,
    pub(super) now: u64,
    /// Stores before that state.
    pub(super) stores: u64,
    /// Questions are being written down.
    pub(super) listens: bool,
    pub(super) asked: Vec<Asked>,
    /// Of them, those answered before the run was worked out, and those taken back.
    pub(super) answered: usize,
    pub(super) taken: usize,
    /// Counts when the run began.
    pub(super) before: Marks,
    pub(super) base: u64,
    /// Runs, and those of them recalled, of this trial.
    pub(super) runs: u32,
    pub(super) recalled: u32,
    /// Runs still left out, and those that are the next time.
    pub(super) pause: u32,
    pub(super) next_pause: u32,
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
            next_pause: PAUSE,
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

    pub(super) fn node_of(&mut self, words: &[u16]) -> u32 {
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
    pub(super) fn answers(&mut self, before: &[Short], last: impl IntoIterator<Item = Asked>) {
        self.asked.clear();
        self.asked.extend(before.iter().flat_map(|a| a.long()).chain(last));
        self.answered = self.asked.len();
    }

    /// Keep the questions of a run; false where one cannot be kept.
    pub(super) fn shorten(&mut self) -> bool {
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
    pub(super) fn add(&mut self, from: u32, step: Step, counts: Marks) {
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
    pub(super) fn instead(
        &mut self,
        all: &[Short],
        node: u32,
        of: u32,
        at: usize,
        answer: Answer,
        load: bool,
    ) -> Option<u32> {
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
