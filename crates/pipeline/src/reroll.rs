//! Unrolled rounds, scheduled by one of them.
//!
//! A search for the two thousand operations of an unrolled cipher does not converge where registers are short. Their
//! rounds are the same, though. So the loop inside is rolled up again: one round is a loop of its own, of a hundred
//! operations, for which a search comes near the bound. Its schedule is then unrolled: round after round at its interval,
//! and what stands before, behind and between goes around it.
//!
//! # Data structures
//! A [`period::Period`] says for each node which round it is of, and where in it. [`round`] makes a body of one round. A
//! [`Preset`](super::search::preset::Preset) has the cycles of the nodes in all of them.
//!
//! # Phases
//! 1. [`period`]: the rounds of a body, by its operations alone.
//! 2. [`round`]: the loop of one round, and a search for it with the registers that the whole loop leaves.
//! 3. [`unrolled`]: the nodes in the order of the cycles that follow, those around them as late or as soon as can be; what
//!    then has no register goes to the frame ([`super::park`]).
//! 4. The list scheduler follows the preset ([`super::search::list::preset`]), and all that comes behind it is free to move
//!    anything.
//!
//! # Invariants
//! A preset is a hint: whatever it says, units, registers and dependences are kept by those who follow it. What two nodes
//! with cycles say of each other holds by these cycles, or one of them has none.
//!
//! # What it does not do
//! Values that stay in registers for more than [`period::BACK`] rounds are no part of a round's loop. Rounds that differ in
//! what goes to the frame are only found where that is the same in each. Kept schedules are not of such forms: the search
//! for a round would have to be made again to read them.
//!
//! # Literature
//! Rolling loops up again by their operations: Rocha, Petoumenos, Franke, Bhatotia, O'Boyle, *Loop rolling for code size
//! reduction*, CGO 2022. There for the size of code; the schedule of a round as that of all is our own.

mod period;
mod round;
mod unrolled;

use super::based::Frame;
use super::body::Body;
use super::graph;
use super::search::{Form, Search};
use ciphermill_program::search_log::{Phase, SearchLog};
use ciphermill_vcode::CompileError;
use period::{Period, period};

/// Bodies with fewer nodes are searched for as they are.
const LARGE: usize = 400;
/// Hundredths of all nodes that must be in rounds.
const COVERED: usize = 60;
/// Moves for each node of a round, and the part of the whole search that these may be. With 40,000 and a quarter loops that
/// gain nothing lose what they spend: Magma on the C6201 takes 362 cycles then, 337 so, 329 without.
const MOVES: u64 = 12_000;
const PART: u64 = 12;

/// The form of a loop whose rounds have a schedule: as it is, or else in its own order with what has no register in the
/// frame. What that takes is the search's.
///
/// # Errors
/// When some operation has no variant.
pub(super) fn form(search: &mut Search<'_>, body: &Body, frame: &Frame) -> Result<Option<Form>, CompileError> {
    if body.nodes.len() < LARGE {
        return Ok(None);
    }
    if let Some(form) = form_of(search, body, frame)? {
        return Ok(Some(form));
    }
    let Some(parked) = unrolled::parked(body, search.sides, frame)? else { return Ok(None) };
    form_of(search, &parked, &frame.behind(parked.parked, search.sides.machine))
}

fn form_of(search: &mut Search<'_>, body: &Body, frame: &Frame) -> Result<Option<Form>, CompileError> {
    let enough = |period: &Period| 100 * period.covered() >= COVERED * body.nodes.len();
    let Some(period) = period(body).filter(enough) else { return Ok(None) };
    let round = round::body(body, search.sides, &period);
    let sides = round::sides(search.sides, body, &round);
    let bounds = graph::lower(&sides, &round)?;
    let total = (MOVES * round.nodes.len() as u64).min(search.total / PART);
    let mut of_round = Search {
        sides: &sides,
        rotation: None,
        total,
        budget: total,
        log: SearchLog::default(),
        allocatable: search.allocatable,
        params: search.params,
        seed: search.seed,
        thorough: search.thorough,
        words: None,
    };
    let bound = bounds.0.max(bounds.1);
    let found = of_round.run(&[Form::of(round)], None, bound)?;
    search.spend(of_round.log.moves);
    let to = found.as_ref().map(|f| f.schedule.ii);
    let end = if to.is_some() { "landed" } else { "exhausted" };
    let (tried, work) = (period.count as u64, of_round.log.moves.work);
    search.log.phases.push(Phase { phase: "reroll", from: bound, to, tried, broken: 0, work, end });
    let Some(found) = found else { return Ok(None) };
    unrolled::form(search, body, &period, &found, frame)
}

#[cfg(test)]
mod tests {
    use super::{form, period::period, round};
    use crate::based::Frame;
    use crate::body::{Body, From, Node};
    use crate::place::Sides;
    use crate::search::Search;
    use crate::search::params::Params;
    use crate::search::tests::{addition, machine, named, with_branch};
    use ciphermill_machine::{Machine, Reg};
    use ciphermill_program::search_log::SearchLog;
    use ciphermill_vcode::{VInst, VKind, VOp, VReg};

    const FRAME: Frame = Frame { next: 0, bases: None };

    /// So many rounds of 24 operations on a state of two words, the second of which the next round has as its first.
    fn rounds(m: &Machine, count: usize) -> Body {
        let ops = [VOp::Use(VReg(0)), VOp::Use(VReg(1)), VOp::Def(VReg(2))];
        let sum = |a: usize, b: usize| Node {
            inst: VInst::new(VKind::Normal, named(m, "add"), &ops, 0),
            reads: vec![(0, From::Node(a, 0)), (1, From::Node(b, 0))],
            writes: Some((2, 1)),
            tied: false,
            mem: None,
        };
        let mut nodes = vec![addition(m, From::Outside(VReg(0))), addition(m, From::Outside(VReg(0)))];
        let (mut a, mut b) = (0, 1);
        for _ in 0..count {
            nodes.push(sum(a, b));
            for _ in 0..23 {
                let last = nodes.len() - 1;
                nodes.push(addition(m, From::Node(last, 0)));
            }
            (a, b) = (b, nodes.len() - 1);
        }
        with_branch(m, nodes)
    }

    fn searched<T>(run: impl FnOnce(&Machine, &mut Search<'_>) -> T) -> T {
        let m = machine();
        let all: Vec<Reg> = (0..m.regs.len() as u16).map(Reg).collect();
        let sides = Sides::new(&m, &m.abi.allocatable);
        let params = Params::default();
        let mut search = Search {
            sides: &sides,
            allocatable: &all,
            rotation: None,
            params: &params,
            seed: 0,
            thorough: true,
            words: None,
            total: 6_000_000,
            budget: 6_000_000,
            log: SearchLog::default(),
        };
        run(&m, &mut search)
    }

    #[test]
    fn a_round_is_a_loop_whose_iterations_are_the_rounds() {
        searched(|m, search| {
            let body = rounds(m, 20);
            let period = period(&body).unwrap();
            let round = round::body(&body, search.sides, &period);
            let n = round.nodes.len() - 1;
            assert_eq!(n % 24, 0);
            // Within a round as in the body.
            let reads: Vec<From> = round.nodes.iter().flat_map(|n| n.reads.iter().map(|r| r.1)).collect();
            assert!(reads.iter().filter(|from| matches!(from, From::Node(p, 0) if *p < n)).count() >= 22, "{reads:?}");
            assert!(round.nodes[n].inst.instr == m.abi.ops.nop);
            let carried = |from: &From| matches!(from, From::Node(p, 1) if !round.initial.contains_key(p));
            assert!(!reads.iter().any(carried));
        });
    }

    #[test]
    fn rounds_stand_an_interval_apart() {
        searched(|m, search| {
            let body = rounds(m, 20);
            let found = form(search, &body, &FRAME).unwrap().unwrap();
            let ii = search.log.phases[0].to.unwrap();
            let preset = found.preset.unwrap();
            let per = period(&body).unwrap();
            let mut last = vec![None; per.window.len()];
            let mut apart = 0;
            // Additions of a round follow each other in every order that keeps them behind each other.
            let times: Vec<i64> = preset.nodes.iter().flatten().map(|s| s.0).collect();
            assert!(times.len() * 10 > body.nodes.len() * 6);
            for (i, place) in per.place.iter().enumerate() {
                let (Some((round, place)), Some((time, _))) = (*place, preset.nodes[i]) else { continue };
                if let Some((before, at)) = last[place].replace((round, time)) {
                    apart += i64::from(time - at == ii * (round - before) as i64);
                }
            }
            assert!(apart > 0);
        });
    }

    #[test]
    fn a_short_loop_has_no_such_form() {
        searched(|m, search| assert!(form(search, &rounds(m, 5), &FRAME).unwrap().is_none()));
    }
}
