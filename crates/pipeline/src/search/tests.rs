use super::Search;
use super::list::{self, plan::Plan, policies::POLICIES};
use super::moves::Dice;
use super::params::{PARTS, Params, Without};
use super::state::{Loop, State, Task};
use super::{Form, begin, clusters};
use crate::body::{Body, From, Node};
use crate::graph::Neighbours;
use crate::modulo::Schedule;
use crate::place::{At, Sides, settle};
use ciphermill_machine::{InstrId, Machine, Reg};
use ciphermill_program::search_log::SearchLog;
use ciphermill_vcode::{VInst, VKind, VOp, VReg};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

pub fn machine() -> Machine {
    named_machine("c6201")
}

pub fn named_machine(name: &str) -> Machine {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    ciphermill_machine::load_from_dir(&root, name, &[], &[], &[]).unwrap()
}

pub fn named(m: &Machine, name: &str) -> InstrId {
    InstrId(m.instrs.iter().position(|i| i.name == name).unwrap() as u16)
}

/// The addition of a constant.
pub fn addition(m: &Machine, from: From) -> Node {
    let ops = [VOp::Imm(4), VOp::Use(VReg(0)), VOp::Def(VReg(1))];
    let inst = VInst::new(VKind::Normal, named(m, "add_imm"), &ops, 0);
    Node { mem: None, inst, reads: vec![(1, from)], writes: Some((2, 1)), tied: false }
}

/// These nodes and the branch.
pub fn with_branch(m: &Machine, mut nodes: Vec<Node>) -> Body {
    let branch = VInst::new(VKind::Normal, named(m, "b"), &[], 0);
    nodes.push(Node { mem: None, inst: branch, reads: vec![], writes: None, tied: false });
    Body::of(nodes, named(m, "b"))
}

/// `chains` independent chains of `links` additions each, and the branch.
fn body(m: &Machine, chains: usize, links: usize) -> Body {
    let mut nodes = Vec::new();
    for _ in 0..chains {
        for link in 0..links {
            let from = if link == 0 { From::Outside(VReg(0)) } else { From::Node(nodes.len() - 1, 0) };
            nodes.push(addition(m, from));
        }
    }
    with_branch(m, nodes)
}

/// A loop on the C6201 with all chains on the first cluster, two units of which add a constant.
/// Nothing may leave it unless it is said to be `free`.
fn with_loop<T>((chains, links): (usize, usize), registers: i64, free: bool, run: impl FnOnce(&Loop<'_>) -> T) -> T {
    let m = machine();
    let all: Vec<Reg> = (0..m.regs.len() as u16).map(Reg).collect();
    let sides = Sides::new(&m, &all);
    let body = body(&m, chains, links);
    let at = vec![At { unit: 0, result: 0 }; body.nodes.len()];
    let mut ops = settle(&body, &sides, &at).unwrap();
    // What is tied stays where it is.
    ops.ops.iter_mut().for_each(|op| op.tied = !free);
    let near = Neighbours::of(&ops);
    // One more for the value from outside.
    let pool = vec![registers + 1; sides.files.len()];
    let params = Params::default();
    let task = Arc::new(Task { ops, near, apart: false, pool, rotates: false });
    run(&Loop { sides: &sides, task, params: &params })
}

/// Operations spread over so many cycles by their depth, the branch 6 cycles before the end of the first
/// stage.
fn spread<'s>(all: &Loop<'s>, ii: i64, stages: i64, last: i64) -> State<'s> {
    let way = begin::ways(all);
    let longest = way.iter().copied().max().unwrap();
    let wish: Vec<i64> = way.iter().map(|w| last - w * last / longest).collect();
    State::spread(all, &all.task.ops, ii - 6, (ii, stages), &wish).unwrap()
}

fn annealed(chains: usize, links: usize, ii: i64, stages: i64, registers: i64) -> (i64, Option<Schedule>) {
    with_loop((chains, links), registers, false, |all| {
        let mut state = spread(all, ii, stages, stages * ii - 2);
        state.anneal(50_000, (30, 2), 1);
        (state.left(), state.finish())
    })
}

#[test]
fn units_are_used_to_the_full() {
    // 40 additions and the branch on two units in 21 rows: one slot is left over.
    let (left, schedule) = annealed(4, 10, 21, 2, 16);
    assert_eq!(left, 0);
    let schedule = schedule.unwrap();
    assert!((0..21).all(|row| schedule.time.iter().filter(|t| **t % 21 == row).count() <= 2));
    // Each link stands behind the one before it, in the same iteration.
    assert!((0..40).filter(|i| i % 10 > 0).all(|i| schedule.time[i] > schedule.time[i - 1]));
    assert_eq!(schedule.time[40], 15);
}

#[test]
fn registers_that_are_too_few_are_said() {
    // 40 values, of a cycle each at least, in 21 rows: two registers, not one.
    assert_eq!(annealed(4, 10, 21, 1, 4).0, 0);
    let (left, schedule) = annealed(4, 10, 21, 1, 1);
    assert!(left > 0 && schedule.is_none());
}

/// A value that is read a chain of eight additions later, placed at an interval of seven cycles.
fn listed(rotates: bool, registers: i64) -> Option<Schedule> {
    let m = machine();
    let all: Vec<Reg> = (0..m.regs.len() as u16).map(Reg).collect();
    let sides = Sides::new(&m, &all);
    let mut nodes = vec![addition(&m, From::Outside(VReg(0)))];
    (0..8).for_each(|i| nodes.push(addition(&m, From::Node(i, 0))));
    let inst =
        VInst::new(VKind::Normal, named(&m, "add"), &[VOp::Use(VReg(0)), VOp::Use(VReg(0)), VOp::Def(VReg(1))], 0);
    let reads = vec![(0, From::Node(8, 0)), (1, From::Node(0, 0))];
    nodes.push(Node { mem: None, inst, reads, writes: Some((2, 1)), tied: false });
    let body = with_branch(&m, nodes);
    let ops = settle(&body, &sides, &vec![At { unit: 0, result: 0 }; body.nodes.len()]).unwrap();
    let (near, pool) = (Neighbours::of(&ops), vec![registers; sides.files.len()]);
    let params = Params::default();
    let task = Arc::new(Task { ops, near, apart: false, pool: pool.clone(), rotates });
    let all = Loop { sides: &sides, task, params: &params };
    let ops = &all.task.ops;
    let plan = Plan::new(&sides, ops, false);
    list::schedule(&all, ops, &plan, 7, POLICIES[0], &pool, 2, &Cell::new(0))
}

#[test]
fn a_value_may_outlive_the_interval_where_registers_rotate() {
    let schedule = listed(true, 8).unwrap();
    assert!(schedule.time[9] - schedule.time[0] > 8);
    assert!(listed(false, 8).is_none());
    // One for the value, and one for the chain.
    assert!(listed(true, 1).is_none());
}

#[test]
fn a_row_goes() {
    with_loop((2, 8), 8, false, |all| {
        let mut state = spread(all, 20, 1, 18);
        state.anneal(50_000, (30, 2), 1);
        let schedule = state.finish().unwrap();
        // 20 rows hold two chains of 8 with ease: a row with none of them takes nothing with it.
        let idle = (0..14).find(|row| !schedule.time.contains(row)).unwrap();
        let without = state.resized(&[idle], &[]).unwrap();
        let shorter = without.finish().unwrap();
        assert_eq!((without.left(), shorter.ii), (0, 19));
        let earlier = |i: usize| schedule.time[i] - i64::from(schedule.time[i] > idle);
        assert!((0..17).all(|i| shorter.time[i] == earlier(i)));
    });
}

#[test]
fn a_row_comes_where_most_is_broken() {
    with_loop((1, 8), 8, false, |all| {
        let mut state = spread(all, 20, 1, 18);
        state.anneal(50_000, (30, 2), 1);
        let schedule = state.finish().unwrap();
        // A link of the chain in the cycle of the one before it.
        let broken = (1..8).find_map(|i| {
            all.task.ops.ops[i].variants.iter().find_map(|&variant| {
                let mut schedule = schedule.clone();
                (schedule.time[i], schedule.variant[i]) = (schedule.time[i - 1], variant);
                State::carried_with(all, &schedule, &all.task.ops).map(|state| (state, schedule.time[i]))
            })
        });
        let (broken, row) = broken.expect("a unit is free beside one of the links");
        assert_eq!((broken.left(), broken.by_crowd()[0]), (1, row));
        let wider = state.resized(&[], &[schedule.time[0]]).unwrap();
        assert_eq!((wider.left(), wider.finish().unwrap().ii), (0, 21));
    });
}

/// The first operation of a chain of eight in an interval of 20 cycles, made later by two, takes along
/// all that stand close behind.
#[test]
fn a_chain_goes_as_far_as_it_must() {
    with_loop((2, 8), 8, false, |all| {
        let mut state = spread(all, 20, 2, 38);
        state.anneal(50_000, (30, 2), 1);
        assert_eq!(state.left(), 0);
        let before = state.schedule.time.clone();
        let to = before[1] + 2;
        state.push(0, to, 64, i64::from(i32::MAX));
        assert_eq!((state.faults, state.schedule.time[0]), (0, to));
        assert!((1..8).all(|i| state.schedule.time[i] > state.schedule.time[i - 1]));
        assert!((1..8).all(|i| state.schedule.time[i] >= before[i]));
        assert_eq!(state.schedule.time[16], before[16]);
    });
}

/// Moves of all kinds, among them pushes that cost too much and are taken back: what is counted is what
/// a fresh count says, and every operation has its unit.
#[test]
fn all_counts_are_kept() {
    with_loop((4, 10), 3, true, |all| {
        let mut state = spread(all, 21, 3, 60);
        let mut dice = Dice(3);
        let mut taken = 0;
        for k in 0..1_000 {
            state.anneal(20, (30, 12), k);
            let i = dice.below(40);
            let to = (state.schedule.time[i] + dice.below(9) as i64 - 4).clamp(0, 62);
            if to == state.schedule.time[i] {
                continue;
            }
            let (before, energy) = (state.schedule.clone(), state.energy());
            let pushed = state.push(i, to, 32, if k % 2 == 0 { -1 } else { 40 });
            let same = (&before.time, &before.variant) == (&state.schedule.time, &state.schedule.variant);
            assert!(pushed || same, "push {k}");
            assert!(same || state.energy() < energy || k % 2 == 1, "push {k}");
            taken += usize::from(!same);
            let fresh = State::carried_with(all, &state.schedule, state.ops()).unwrap();
            assert_eq!((fresh.left(), fresh.energy()), (state.left(), state.energy()), "push {k}");
        }
        assert!(taken > 20, "{taken}");
    });
}

#[test]
fn moves_are_counted_by_kind() {
    with_loop((4, 10), 3, true, |all| {
        let mut state = spread(all, 21, 3, 60);
        let moves = state.anneal(2_000, (30, 30), 1);
        assert!(moves.work >= 2_000 || state.left() == 0, "{moves:?}");
        for tally in [moves.shifts, moves.exchanges, moves.pushes, moves.crossings] {
            assert!(tally.tried > 0 && tally.taken <= tally.tried, "{moves:?}");
        }
        // Of the next anneal alone.
        assert!(state.anneal(10, (30, 12), 2).shifts.tried <= 10);
    });
}

#[test]
fn least_is_what_units_allow() {
    // 40 additions and the branch on two units of the first cluster.
    with_loop((4, 10), 8, false, |all| assert_eq!(clusters::least(all, &all.task.ops), 21));
}

/// A search without some part, of ten chains of four additions.
fn searched(without: Without, thorough: bool) -> (i64, SearchLog) {
    let m = machine();
    let all: Vec<Reg> = (0..m.regs.len() as u16).map(Reg).collect();
    let sides = Sides::new(&m, &all);
    let form = Form::of(body(&m, 10, 4));
    let params = Params::without(without);
    let budget = 100_000;
    let log = SearchLog::default();
    let mut search = Search {
        sides: &sides,
        allocatable: &m.abi.allocatable,
        rotation: None,
        params: &params,
        seed: 1,
        thorough,
        words: None,
        total: budget,
        budget,
        log,
    };
    let landed = search.run(&[form], None, 7).unwrap().unwrap();
    (landed.schedule.ii, search.log)
}

/// 40 additions and the branch on four units that add: 11 cycles; more where a part of the search is
/// missing, but a schedule in any case, and never more moves than there are.
#[test]
fn a_search_ends_whatever_part_it_goes_without() {
    let (ii, log) = searched(Without::default(), true);
    assert_eq!(ii, 11);
    assert!(log.phases.iter().any(|p| p.to == Some(11)), "{log:?}");
    for (name, _) in PARTS {
        let (ii, log) = searched(Without::default().and(name).unwrap(), true);
        assert!((11..=44).contains(&ii), "{name}: {ii}");
        assert!(
            log.left <= log.budget && log.phases.iter().rfind(|p| p.to.is_some()).is_some_and(|p| p.to == Some(ii)),
            "{name}: {log:?}"
        );
    }
    assert!(Without::default().and("luck").is_none());
}

#[test]
fn a_quick_search_is_one_race_at_most() {
    let (_, log) = searched(Without::default(), false);
    assert!(log.phases.iter().filter(|p| p.phase == "race").count() <= 1, "{log:?}");
}

#[test]
fn the_same_search_finds_the_same() {
    assert_eq!(searched(Without::default(), true), searched(Without::default(), true));
}

#[test]
fn operations_that_stand_already_are_followed() {
    // Two chains of ten; of the first, links 2 to 7 stand two cycles apart, which no policy would choose.
    with_loop((2, 10), 16, true, |all| {
        let ops = &all.task.ops;
        let v = ops.ops[0].variants[0];
        let stands = |i: usize| (2..8).contains(&i).then_some((2 * i as i64, v));
        let stands: Vec<_> = (0..ops.ops.len()).map(stands).collect();
        let plan = Plan::new(all.sides, ops, false).following(&stands);
        for policy in POLICIES {
            let schedule = list::schedule(all, ops, &plan, 40, policy, &[16, 16], 1, &Cell::new(0)).unwrap();
            let time = &schedule.time;
            assert!((3..8).all(|i| time[i] == time[i - 1] + 2), "{time:?}");
            assert!((1..10).all(|i| time[i] > time[i - 1]), "{time:?}");
        }
    });
}

#[test]
fn what_stands_already_gives_way_to_orders() {
    // Links that stand in the same cycle, which cannot be: they come earlier until that is given up.
    with_loop((1, 10), 16, true, |all| {
        let ops = &all.task.ops;
        let v = ops.ops[0].variants[0];
        let stands: Vec<_> = (0..ops.ops.len()).map(|i| (2..4).contains(&i).then_some((5, v))).collect();
        let plan = Plan::new(all.sides, ops, false).following(&stands);
        let found = list::schedule(all, ops, &plan, 120, POLICIES[0], &[16, 16], 1, &Cell::new(0)).unwrap();
        assert!((1..10).all(|i| found.time[i] > found.time[i - 1]), "{:?}", found.time);
    });
}
