use super::super::params::Params;
use super::super::state::State;
use super::super::tests::{addition, machine, named, with_branch};
use super::super::{Form, Search};
use super::waits::Held;
use crate::body::{Body, From, Node};
use crate::framed::access;
use crate::place::{At, Ops, Origin, Sides};
use ciphermill_machine::{Machine, Reg};
use ciphermill_program::search_log::SearchLog;
use ciphermill_vcode::{VInst, VKind, VOp, VReg};

/// The sum of two values.
fn sum(m: &Machine, first: usize, second: usize) -> Node {
    let ops = [VOp::Use(VReg(0)), VOp::Use(VReg(0)), VOp::Def(VReg(1))];
    let inst = VInst::new(VKind::Normal, named(m, "add"), &ops, 0);
    let reads = vec![(0, From::Node(first, 0)), (1, From::Node(second, 0))];
    Node { mem: None, inst, reads, writes: Some((2, 1)), tied: false }
}

/// So many values of another one that wait for the end of a chain of thirty additions, and are then added to it.
fn waiting(m: &Machine, count: usize) -> Body {
    let mut nodes = vec![addition(m, From::Outside(VReg(0)))];
    nodes.extend((0..count).map(|_| addition(m, From::Node(0, 0))));
    for _ in 0..30 {
        nodes.push(addition(m, From::Node(nodes.len() - 1, 0)));
    }
    for k in 0..count {
        nodes.push(sum(m, nodes.len() - 1, 1 + k));
    }
    with_branch(m, nodes)
}

/// A body on the cluster that the stack pointer is not on, with so many registers beside that of a value from outside. Its
/// operations stand in the order of the program, two cycles apart.
fn with_state<T>(
    body: impl FnOnce(&Machine) -> Body,
    registers: usize,
    run: impl FnOnce(&Search<'_>, State<'_>) -> T,
) -> T {
    let m = machine();
    let sp = m.regs[usize::from(m.abi.stack_pointer.0)].file;
    let (home, others): (Vec<Reg>, Vec<Reg>) =
        m.abi.allocatable.iter().partition(|r| m.regs[usize::from(r.0)].file == sp);
    let free: Vec<Reg> = others.into_iter().take(registers + 1).chain(home).collect();
    let sides = Sides::new(&m, &free);
    let params = Params::default();
    let search = Search {
        sides: &sides,
        allocatable: &m.abi.allocatable,
        rotation: None,
        params: &params,
        seed: 0,
        thorough: true,
        words: Some(3),
        total: 1_000_000,
        budget: 1_000_000,
        log: SearchLog::default(),
    };
    let side = 1 - sides.of_reg(m.abi.stack_pointer).unwrap();
    let body = body(&m);
    let at = vec![At { unit: side, result: side }; body.nodes.len()];
    let all = search.divided(&Form::of(body), &at).unwrap().unwrap();
    let n = all.task.ops.ops.len() as i64;
    let wish: Vec<i64> = (0..n).map(|i| 2 * i).collect();
    let state = State::spread(&all, &all.task.ops, 2 * n, (2 * n + 6, 1), &wish).unwrap();
    run(&search, state)
}

fn accesses(ops: &Ops) -> Vec<i64> {
    ops.ops.iter().filter_map(|op| op.inst.mem.map(|m| m.offset)).collect()
}

fn stood(state: &State<'_>) -> Vec<(usize, i64)> {
    let of = |(origin, time): (&Origin, &i64)| if let Origin::Node(n) = origin { Some((*n, *time)) } else { None };
    state.ops().origins.iter().zip(&state.schedule.time).filter_map(of).collect()
}

#[test]
fn values_that_wait_for_long_go_to_the_frame_and_back() {
    with_state(
        |m| waiting(m, 6),
        4,
        |search, state| {
            assert!(state.faults == 0 && state.excess > 0, "{} {}", state.faults, state.excess);
            let (next, moves) = search.respilled(&state);
            let next = next.unwrap();
            let spilled = next.ops().spilled;
            assert_eq!((moves.spills.tried, moves.spills.taken), (spilled as u64, spilled as u64));
            // The fewest that leave registers for the others, each in a word of its own behind three that are taken.
            assert!((1..6).contains(&spilled), "{spilled}");
            let first = i64::from(search.sides.machine.abi.frame_reserve) + 12;
            let mut words = accesses(next.ops());
            words.sort_unstable();
            assert_eq!(words, (0..2 * spilled as i64).map(|k| first + 4 * (k / 2)).collect::<Vec<_>>());
            assert!(next.excess < state.excess);
            // Nothing else has moved.
            assert_eq!(stood(&next), stood(&state));
        },
    );
}

#[test]
fn values_come_back_where_registers_are_free() {
    with_state(
        |m| waiting(m, 6),
        4,
        |search, state| {
            let mut next = search.respilled(&state).0.unwrap();
            let (side, spilled) = (next.ops().ops[1].at.result, next.ops().spilled);
            assert!(next.held().is_empty());
            next.limit(side, 6);
            let held = next.held();
            assert_eq!(held.len(), spilled);
            let back = search.back(&next, &held).unwrap();
            assert_eq!(accesses(back.ops()), [0; 0]);
            assert!(back.ops().memory.is_empty());
            assert_eq!((stood(&back), back.excess), (stood(&state), state.excess));
        },
    );
}

#[test]
fn what_follows_from_values_outside_is_made_again() {
    let body = |m: &Machine| {
        let mut nodes = vec![addition(m, From::Outside(VReg(0))), addition(m, From::Outside(VReg(0))), sum(m, 0, 1)];
        nodes.extend((2..22).map(|i| addition(m, From::Node(i, 0))));
        nodes.extend([sum(m, 22, 0), sum(m, 23, 1)]);
        with_branch(m, nodes)
    };
    with_state(body, 2, |search, state| {
        assert!(state.excess > 0);
        let next = search.respilled(&state).0.unwrap();
        assert_eq!((next.ops().spilled, accesses(next.ops())), (0, vec![]));
        assert!(next.ops().ops.len() > state.ops().ops.len());
        assert!(next.excess < state.excess);
    });
}

/// A word that one value is in and then another: without the first one, the second one's load still comes before its store
/// of the next iteration.
#[test]
fn a_word_keeps_its_order_when_a_value_leaves_it() {
    let body = |m: &Machine| {
        let mut nodes = vec![addition(m, From::Outside(VReg(0)))];
        let word = |instr, value: Option<usize>| {
            access(m, instr, 8, value.map(|v| From::Node(v, 0)), 0).unwrap().pop().unwrap()
        };
        nodes.push(word(m.abi.ops.store, Some(0)));
        nodes.push(word(m.abi.ops.load, None));
        nodes.push(addition(m, From::Node(2, 0)));
        nodes.push(word(m.abi.ops.store, Some(3)));
        nodes.push(word(m.abi.ops.load, None));
        nodes.push(addition(m, From::Node(5, 0)));
        let memory = vec![(1, 2, 1, 0), (2, 4, 0, 0), (4, 5, 1, 0), (5, 1, 0, 1)];
        Body { memory, ..with_branch(m, nodes) }
    };
    with_state(body, 8, |search, state| {
        let held = Held { store: 1, load: 2, bearer: 0, readers: vec![3], gap: (0, 0) };
        let next = search.back(&state, &[held]).unwrap();
        assert_eq!(next.ops().ops[1].reads.iter().map(|r| r.1).collect::<Vec<_>>(), [From::Node(0, 0)]);
        assert_eq!(next.ops().memory, [(2, 3, 1, 0), (3, 2, 0, 1)]);
    });
}
