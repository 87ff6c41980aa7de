//! Lower bounds of the initiation interval of a pipelined loop, each with a certificate.
//!
//! ```text
//! model -> resources, circuit, joint, lifetimes, relaxation -> certificate -> check
//! ```
//!
//! A loop comes as plain data ([`model`]). What finds bounds gives a certificate for each
//! ([`certificate`]), and a checker of its own ([`check`]) makes the bound of it, in whole numbers: what it
//! does not verify is not claimed.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod certificate;
pub mod check;
mod circuit;
mod flow;
mod joint;
mod lifetimes;
pub mod model;
mod relaxation;
mod resources;
mod sets;
mod words;

use certificate::Certificate;
use model::{Loop, Why};
use sets::Crowd;

/// Most intervals for which the linear relaxation is solved.
const ASKED: usize = 6;

/// A bound: no schedule has a smaller II.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    pub least: i64,
    pub certificate: Certificate,
}

impl Bound {
    /// What a certificate proves; none where it proves nothing.
    pub fn of(l: &Loop, certificate: Certificate) -> Option<Bound> {
        let least = check::least(l, &certificate).ok()?;
        Some(Bound { least, certificate })
    }

    /// In words why no II below it is possible, to follow a colon.
    pub fn told(&self, l: &Loop) -> String {
        words::told(l, &self.certificate, self.least)
    }
}

/// The slowest recurrence circuit through values and the order of accesses to memory.
pub fn recurrence(l: &Loop) -> Option<certificate::Circuit> {
    circuit::slowest(l, own)
}

/// Is a dependence the loop's own, not that of how iterations begin?
fn own(e: &model::Edge) -> bool {
    e.why != Why::Branch
}

/// The bounds that take little time: units, circuits, both together, and the branch.
pub fn quick(l: &Loop) -> Vec<Bound> {
    quick_of(l, &sets::crowds(l))
}

fn quick_of(l: &Loop, crowds: &[Crowd]) -> Vec<Bound> {
    let units = resources::slowest(crowds).and_then(|c| Bound::of(l, Certificate::Resources(c)));
    let circuit = recurrence(l).and_then(|c| Bound::of(l, Certificate::Circuit(c)));
    let least = |b: &Option<Bound>| b.as_ref().map_or(1, |b| b.least);
    let both = joint::slowest(l, crowds, own, (least(&units), least(&circuit)));
    let both = both.and_then(|c| Bound::of(l, Certificate::Joint(c)));
    let branch = circuit::slowest(l, |_| true).and_then(|c| Bound::of(l, Certificate::Circuit(c)));
    let branch = branch.filter(|b| b.least > least(&circuit));
    [units, circuit, branch, both].into_iter().flatten().collect()
}

/// All bounds of a loop for which a schedule of an II is known: the quick ones, the linear relaxation
/// and the lives of values at intervals below it.
pub fn all(l: &Loop, ii: i64) -> Vec<Bound> {
    let crowds = sets::crowds(l);
    let mut bounds = quick_of(l, &crowds);
    let known = greatest(&bounds, false).map_or(1, |b| b.least);
    let anchors = anchors(l, &bounds);
    for registers in [false, true] {
        bounds.extend(last(known, ii - 1, |ii| relaxation_of(l, &crowds, &anchors, ii, registers)));
    }
    for file in 0..l.files.len() {
        bounds.extend(last(known, ii - 1, |ii| lifetimes_of(l, file, ii)));
    }
    bounds
}

/// A proof that an II has no schedule, if any is found: for all schedules, or for those with every
/// value in a register.
pub fn refusal(l: &Loop, ii: i64, registers: bool) -> Option<Bound> {
    let crowds = sets::crowds(l);
    let bounds = quick_of(l, &crowds);
    let anchors = anchors(l, &bounds);
    let quick = bounds.into_iter().find(|b| b.least > ii);
    let program = || relaxation_of(l, &crowds, &anchors, ii, registers);
    let lives = || (0..l.files.len()).filter(|_| registers).find_map(|file| lifetimes_of(l, file, ii));
    quick.or_else(lives).or_else(program)
}

/// The linear relaxation's refusal of an II, without registers.
pub fn relaxed(l: &Loop, ii: i64) -> Option<Bound> {
    let crowds = sets::crowds(l);
    let anchors = anchors(l, &quick_of(l, &crowds));
    relaxation_of(l, &crowds, &anchors, ii, false)
}

fn relaxation_of(l: &Loop, crowds: &[Crowd], anchors: &[usize], ii: i64, registers: bool) -> Option<Bound> {
    let made = anchors.iter().filter_map(|&x| relaxation::refuse(l, crowds, ii, x, registers));
    made.filter_map(|r| Bound::of(l, Certificate::Relaxation(r))).find(|b| b.least > ii)
}

fn lifetimes_of(l: &Loop, file: usize, ii: i64) -> Option<Bound> {
    lifetimes::least(l, file, ii).and_then(|c| Bound::of(l, Certificate::Lifetimes(c)))
}

/// The greatest bound; those that hold only with every value in a register are counted or not.
pub fn greatest(bounds: &[Bound], registers: bool) -> Option<&Bound> {
    bounds.iter().filter(|b| registers || !b.certificate.needs_registers()).max_by_key(|b| b.least)
}

/// Operations that may stand in cycle 0 of the relaxation: one of each slowest circuit.
fn anchors(l: &Loop, bounds: &[Bound]) -> Vec<usize> {
    let of = |b: &Bound| match &b.certificate {
        Certificate::Circuit(c) => c.edges.first().map(|&e| l.edges[e].from),
        _ => None,
    };
    bounds.iter().filter_map(of).collect()
}

/// The bound of the greatest II that is refused, of those from `first` to `last`: these are taken to be
/// the smaller ones, and the middle is asked first.
fn last(first: i64, last: i64, refused: impl Fn(i64) -> Option<Bound>) -> Option<Bound> {
    let (mut low, mut high, mut found) = (first, last, None);
    for _ in 0..ASKED {
        if low > high {
            break;
        }
        // The one below what was found says at once whether that is the best.
        let ii = if found.is_none() && high == last { high } else { low + (high - low) / 2 };
        match refused(ii) {
            Some(bound) => (low, found) = (ii + 1, Some(bound)),
            None => high = ii - 1,
        }
    }
    found
}
