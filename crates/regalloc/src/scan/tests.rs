//! Blocks of a few instructions, with allocations worked out by hand.

use super::Question;
use super::check::Checker;
use super::code::{Assignment, Code, Node, Operand, Role, Use, Value};
use super::hints::{RegisterHints, Wishes};
use super::state::State;
use crate::fold::FoldTable;
use crate::samples::{function, machine, named};
use ciphermill_machine::{Machine, Reg};
use ciphermill_vcode::{Allocated, Facts, Place, Registers, Step};
use ciphermill_vcode::{VBlock, VFunc, VInst, VKind, VOp, VReg};

const A: Value = 0;
const B: Value = 1;
const C: Value = 2;

fn reg(r: u16) -> Place {
    Place::Reg(Reg(r))
}

fn go(from: Place, to: Place) -> Step {
    Step::Move { from, to }
}

/// An instruction for each list of operands, which may be in any register.
fn code(registers: u16, nodes: &[&[(Role, Value)]]) -> Code {
    let usable = (1 << registers) - 1;
    let mut code = Code::empty(&(0..registers).map(Reg).collect::<Vec<_>>(), usable);
    (0..4).for_each(|v| {
        code.value(VReg(v));
    });
    code.own_slot = vec![None; 4];
    code.made_outside = vec![false; 4];
    let operand = |&(role, value): &(Role, Value)| Operand { role, value, within: usable, memory: false };
    let node = |(index, list): (usize, &&[(Role, Value)])| Node {
        index,
        operands: list.iter().map(operand).collect(),
        destroyed: 0,
        ascending: Vec::new(),
    };
    code.nodes = nodes.iter().enumerate().map(node).collect();
    code
}

/// Steps of the block, with moves to the places of `exit` at its end.
fn allocated(code: &mut Code, entry: &[(Place, Value)], exit: &[(Place, Value)]) -> Vec<Step> {
    code.uses = vec![Vec::new(); 4];
    for (at, node) in code.nodes.iter().enumerate() {
        for o in node.operands.iter().filter(|o| o.role.reads()) {
            code.uses[o.value].push(Use { at, memory: o.memory });
        }
    }
    exit.iter().for_each(|&(_, v)| code.uses[v].push(Use { at: code.nodes.len(), memory: false }));
    let mut hints = RegisterHints::new(code, &Wishes::new());
    hints.exit_slots.extend(exit.iter().filter_map(|e| if let Place::Slot(s) = e.0 { Some(s) } else { None }));
    let mut state = State::new(code, &hints, &entry.to_vec());
    state.run().and_then(|()| state.leave(&exit.to_vec())).expect("there are registers enough");
    state.steps
}

/// Whether both are the same steps.
#[track_caller]
fn same(found: &[Step], wanted: &[Step]) {
    assert_eq!(format!("{found:?}"), format!("{wanted:?}"));
}

#[test]
fn the_furthest_next_use_is_evicted() {
    let mut code = code(2, &[&[(Role::Def, C)], &[(Role::Use, C)], &[(Role::Use, A)], &[(Role::Use, B)]]);
    let (entry, slot) = ([(reg(0), A), (reg(1), B)], Place::Slot(0));
    let up_to_last =
        [go(reg(1), slot), Step::Inst(0, vec![reg(1)]), Step::Inst(1, vec![reg(1)]), Step::Inst(2, vec![reg(0)])];
    let loaded = [go(slot, reg(0)), Step::Inst(3, vec![reg(0)])];
    same(&allocated(&mut code, &entry, &[]), &[&up_to_last[..], &loaded].concat());
    // Where the last can be read in memory it is.
    code.nodes[3].operands[0].memory = true;
    same(&allocated(&mut code, &entry, &[]), &[&up_to_last[..], &[Step::Inst(3, vec![slot])]].concat());
}

#[test]
fn registers_of_a_run_rise() {
    // Whatever the order of the operands: those loaded get them so, those to be stored are made where they suit.
    let mut loads = code(3, &[&[(Role::Def, B), (Role::Def, C)], &[(Role::Use, B), (Role::Use, C), (Role::Use, A)]]);
    loads.nodes[0].ascending = vec![1, 0];
    let steps = allocated(&mut loads, &[(reg(0), A)], &[]);
    same(&steps[..1], &[Step::Inst(0, vec![reg(2), reg(1)])]);
    let mut stores = code(3, &[&[(Role::Def, B)], &[(Role::Def, C)], &[(Role::Use, B), (Role::Use, C)]]);
    stores.nodes[2].ascending = vec![1, 0];
    let steps = allocated(&mut stores, &[], &[]);
    same(&steps[..2], &[Step::Inst(0, vec![reg(1)]), Step::Inst(1, vec![reg(0)])]);
}

#[test]
fn a_spilled_value_is_not_stored_again() {
    let nodes: [&[_]; 4] = [&[(Role::Use, B)], &[(Role::Def, C)], &[(Role::Use, C), (Role::Use, A)], &[(Role::Use, B)]];
    let steps = allocated(&mut code(2, &nodes), &[(reg(0), A), (Place::Slot(0), B)], &[]);
    let stores = steps.iter().filter(|s| matches!(s, Step::Move { to: Place::Slot(_), .. })).count();
    let loads = steps.iter().filter(|s| matches!(s, Step::Move { from: Place::Slot(_), .. })).count();
    assert_eq!((stores, loads), (0, 2));
}

#[test]
fn a_value_is_spilled_to_the_slot_of_its_web() {
    let mut code = code(1, &[&[(Role::Def, C)], &[(Role::Use, C)], &[(Role::Use, A)]]);
    code.own_slot[A] = Some(1);
    code.web_slots = 2;
    let steps = allocated(&mut code, &[(reg(0), A)], &[]);
    same(&steps[..1], &[go(reg(0), Place::Slot(1))]);
    // Others keep away from such slots.
    code.own_slot[A] = None;
    same(&allocated(&mut code, &[(reg(0), A)], &[])[..1], &[go(reg(0), Place::Slot(2))]);
}

#[test]
fn a_tied_source_that_lives_on_is_copied() {
    let mut code = code(2, &[&[(Role::Overwritten, A), (Role::Result, C)], &[(Role::Use, A), (Role::Use, C)]]);
    let (copy, both) = (go(reg(0), reg(1)), vec![reg(0), reg(0)]);
    let entry = [(reg(0), A)];
    let steps = allocated(&mut code, &entry, &[]);
    same(&steps, &[copy.clone(), Step::Inst(0, both), Step::Inst(1, vec![reg(1), reg(0)])]);
    // The copy is what is overwritten where the result is wanted there.
    code.nodes[1].operands[1].within = 0b10;
    let steps = allocated(&mut code, &entry, &[]);
    same(&steps, &[copy, Step::Inst(0, vec![reg(1), reg(1)]), Step::Inst(1, vec![reg(0), reg(1)])]);
}

#[test]
fn a_live_value_is_moved_out_of_a_clobbered_register() {
    let mut code = code(2, &[&[(Role::Use, A)], &[(Role::Use, A)]]);
    code.nodes[0].destroyed = 0b01;
    let steps = allocated(&mut code, &[(reg(0), A)], &[]);
    same(&steps, &[go(reg(0), reg(1)), Step::Inst(0, vec![reg(0)]), Step::Inst(1, vec![reg(1)])]);
}

#[test]
fn an_operand_with_a_fixed_register_has_it() {
    // The amount of a shift, which is in the other's register.
    let mut code = code(3, &[&[(Role::Overwritten, A), (Role::Result, C), (Role::Use, B)]]);
    code.nodes[0].operands[2].within = 0b010;
    let shift = Step::Inst(0, vec![reg(2), reg(2), reg(1)]);
    let steps = allocated(&mut code, &[(reg(1), A), (reg(0), B)], &[(reg(1), C)]);
    same(&steps, &[go(reg(1), reg(2)), go(reg(0), reg(1)), shift, go(reg(2), reg(1))]);
}

#[test]
fn a_cycle_of_moves_goes_by_way_of_a_third_place() {
    let (entry, exit): (Assignment, Assignment) = (vec![(reg(0), A), (reg(1), B)], vec![(reg(1), A), (reg(0), B)]);
    let round = |by: Place| [go(reg(1), by), go(reg(0), reg(1)), go(by, reg(0))];
    same(&allocated(&mut code(3, &[]), &entry, &exit), &round(reg(2)));
    same(&allocated(&mut code(2, &[]), &entry, &exit), &round(Place::Slot(0)));
}

#[test]
fn slots_that_the_exit_wants_are_filled_from_registers() {
    let entry = [(reg(0), A), (Place::Slot(0), B)];
    let steps = allocated(&mut code(2, &[]), &entry, &[(Place::Slot(0), A), (reg(0), B)]);
    let slot = Place::Slot(0);
    same(&steps, &[go(slot, reg(1)), go(reg(0), slot), go(reg(1), reg(0))]);
}

#[test]
fn two_slots_change_places_though_no_register_is_free() {
    let [x, y] = [0, 1].map(Place::Slot);
    let (entry, exit) = ([(reg(0), A), (x, B), (y, C)], [(reg(0), A), (y, B), (x, C)]);
    let steps = allocated(&mut code(1, &[]), &entry, &exit);
    // What the places have in the end, by the moves alone.
    let mut places: std::collections::HashMap<Place, Value> = entry.into_iter().collect();
    for step in &steps {
        if let Step::Move { from, to } = step {
            places.insert(*to, places[from]);
        }
    }
    exit.iter().for_each(|(place, v)| assert_eq!(places[place], *v, "{steps:?}"));
}

/// Two parameters are added, the sum returned.
struct Sum {
    machine: Machine,
    func: VFunc,
}

const EAX: u16 = 0;
const ECX: u16 = 1;
const EDX: u16 = 2;
const ESI: u16 = 6;

impl Sum {
    fn new() -> Sum {
        let machine = machine();
        let [a, b, copy, sum] = [0, 1, 2, 3].map(VReg);
        let mut params = VInst::new(VKind::Params, named(&machine, "nop"), &[], 0);
        params.fixed_defs = vec![(a, Reg(EAX)), (b, Reg(EDX))];
        let moved = VInst::new(VKind::Normal, named(&machine, "mov"), &[VOp::Def(copy), VOp::Use(a)], 0);
        let ops = [VOp::Tied { used: copy, def: sum }, VOp::Use(b)];
        let add = VInst::new(VKind::Normal, named(&machine, "add"), &ops, 0);
        let mut ret = VInst::new(VKind::Return, named(&machine, "ret"), &[], 0);
        ret.fixed_uses = vec![(sum, Reg(EAX))];
        let block = VBlock { insts: vec![params, moved, add, ret], ..VBlock::default() };
        Sum { machine, func: function(vec![block], 4) }
    }

    /// What the checker says of these steps between the parameters and the return.
    fn check(&self, steps: &[Step]) -> Result<(), String> {
        let folds = FoldTable::new(&self.machine);
        let writable = |r: Reg| r.0 < ESI;
        let (func, machine) = (&self.func, &self.machine);
        let checker = Checker { func, machine, folds: &folds, clobbered: &[], writable: &writable, slots: 1 };
        let (first, last) = (Step::Inst(0, vec![reg(EAX), reg(EDX)]), Step::Inst(3, vec![reg(EAX)]));
        let all: Vec<Step> = std::iter::once(first).chain(steps.iter().cloned()).chain([last]).collect();
        checker.check(&[all])
    }
}

/// The allocation of a function with so many registers, which the checker has replayed.
fn whole(machine: &Machine, func: &VFunc, registers: u16) -> Allocated {
    let folds = FoldTable::new(machine);
    let facts = Facts::new(machine);
    let allocatable: Vec<Reg> = (0..registers).map(Reg).collect();
    let registers = Registers {
        clobbered: allocatable.clone(),
        allocatable,
        callee_saved: Vec::new(),
        mov: (machine.abi.ops.mov, vec![true, false]),
        jump: machine.abi.ops.jump,
        nop: named(machine, "nop"),
    };
    let question = Question { func, machine, facts: &facts, folds: &folds, registers: &registers };
    let (_, allocated) = question.allocated().expect("there are registers enough");
    question.check(&allocated).expect("the allocation is right");
    allocated
}

#[test]
fn a_copy_of_the_program_needs_no_instruction() {
    let sum = Sum::new();
    let steps = &whole(&sum.machine, &sum.func, 3).blocks[0];
    assert_eq!(steps.len(), 3, "{steps:?}");
}

#[test]
fn a_loop_keeps_its_values_where_the_iteration_leaves_them() {
    // The older of two values is replaced by their sum in each iteration; c is used behind the loop.
    let machine = machine();
    let [a, b, p, q, next, c] = [0, 1, 2, 3, 4, 5].map(VReg);
    let inst = |kind, name: &str, ops: &[VOp]| VInst::new(kind, named(&machine, name), ops, 0);
    let mut params = inst(VKind::Params, "nop", &[]);
    params.fixed_defs = vec![(a, Reg(EAX)), (b, Reg(EDX)), (c, Reg(ECX))];
    let jump = |to: u32| inst(VKind::Jump, "jmp", &[VOp::Block(to)]);
    let add = inst(VKind::Normal, "add", &[VOp::Tied { used: p, def: next }, VOp::Use(q)]);
    let test = inst(VKind::Normal, "test", &[VOp::Use(next), VOp::Use(next)]);
    let branch = inst(VKind::Branch, "jne", &[VOp::Block(2)]);
    let mut ret = inst(VKind::Return, "ret", &[]);
    ret.fixed_uses = vec![(next, Reg(EAX)), (c, Reg(ECX))];
    let block = |insts, params, succs, loop_depth| VBlock { insts, params, succs, loop_depth, ..VBlock::default() };
    let func = function(
        vec![
            block(vec![params, jump(1)], vec![], vec![(1, vec![a, b])], 0),
            block(vec![add, test, branch], vec![p, q], vec![(2, vec![]), (3, vec![])], 1),
            block(vec![jump(1)], vec![], vec![(1, vec![q, next])], 1),
            block(vec![ret], vec![], vec![], 0),
        ],
        6,
    );
    let moves = |steps: &[Step]| steps.iter().filter(|s| matches!(s, Step::Move { .. })).count();
    // A sum overwrites one of the two, so they have to change places: with a free register by three copies
    // on the back edge, else by way of a slot. The value that waits for the loop's end stays.
    for (registers, slots) in [(4, 0), (3, 1)] {
        let allocated = whole(&machine, &func, registers);
        let found = (moves(&allocated.blocks[1]), moves(&allocated.blocks[2]), allocated.slots);
        assert_eq!(found, (0, 3, slots), "{:?}", allocated.blocks);
    }
}

#[test]
fn the_checker_accepts_what_reads_the_same() {
    let sum = Sum::new();
    let add = |r: u16, b: Place| Step::Inst(2, vec![reg(r), reg(r), b]);
    assert_eq!(sum.check(&[add(EAX, reg(EDX))]), Ok(()));
    let slot = Place::Slot(0);
    let by_way = [go(reg(EDX), slot), go(reg(EAX), reg(ECX)), add(ECX, slot), go(reg(ECX), reg(EAX))];
    assert_eq!(sum.check(&by_way), Ok(()));
}

#[test]
fn the_checker_refuses_what_does_not() {
    let sum = Sum::new();
    let add = |a: Place, to: Place, b: Place| Step::Inst(2, vec![a, to, b]);
    let (eax, ecx, edx, esi, slot) = (reg(EAX), reg(ECX), reg(EDX), reg(ESI), Place::Slot(0));
    let wrong: [(&[Step], &str); 9] = [
        (&[], "missing"),
        (&[add(edx, edx, edx), go(edx, eax)], "reads"),
        (&[add(eax, eax, ecx)], "reads"),
        (&[go(ecx, edx), add(eax, eax, edx)], "reads"),
        (&[go(edx, slot), add(edx, edx, slot), go(edx, eax)], "reads"),
        (&[add(eax, ecx, edx), go(ecx, eax)], "source"),
        (&[go(eax, slot), add(slot, slot, edx), go(slot, eax)], "in memory"),
        (&[go(eax, esi), add(esi, esi, edx), go(esi, eax)], "must not be written"),
        (&[add(eax, eax, edx), go(edx, eax)], "reads"),
    ];
    for (steps, why) in wrong {
        let found = sum.check(steps);
        assert!(found.as_ref().is_err_and(|e| e.contains(why)), "{steps:?}: {found:?}");
    }
}

#[test]
fn a_set_has_its_members_in_order() {
    let all: Vec<usize> = super::code::members(0b1010_0001).collect();
    assert_eq!(all, [0, 5, 7]);
    assert_eq!(super::code::members(0).count(), 0);
}
