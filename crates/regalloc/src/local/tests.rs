//! Blocks of a few instructions, with allocations worked out by hand.

use super::check::Checker;
use super::code::{Assignment, Code, Node, Operand, Role, Value};
use super::furthest::{EvictionPolicy, State};
use super::hints::RegisterHints;
use crate::fold::FoldTable;
use ciphermill_machine::{InstrId, Machine, Reg};
use ciphermill_vcode::{Place, Step};
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
fn code(registers: u16, nodes: &[&[(Role, Value)]], entry: &[(Place, Value)], exit: &[(Place, Value)]) -> Code {
    let usable = (1 << registers) - 1;
    let operand = |&(role, value): &(Role, Value)| Operand { role, value, within: usable, memory: false };
    let node = |(index, list): (usize, &&[(Role, Value)])| {
        let operands = list.iter().map(operand).collect();
        Node { index, operands, destroyed: 0, side_exits: None }
    };
    Code {
        nodes: nodes.iter().enumerate().map(node).collect(),
        entry: entry.to_vec(),
        exit: exit.to_vec(),
        open: false,
        end: None,
        uses: Vec::new(),
        registers: (0..registers).map(Reg).collect(),
        usable,
        slots: 0,
    }
}

fn allocated(code: &mut Code) -> Vec<Step> {
    code.count_uses(4);
    let outcome = State::new(code, &RegisterHints::new(code), EvictionPolicy { by_cost: true }).run();
    outcome.and_then(|mut o| o.blocks.pop()).expect("there are registers enough")
}

/// Whether both are the same steps.
#[track_caller]
fn same(found: &[Step], wanted: &[Step]) {
    assert_eq!(format!("{found:?}"), format!("{wanted:?}"));
}

#[test]
fn the_furthest_next_use_is_evicted() {
    let nodes: [&[_]; 4] = [&[(Role::Def, C)], &[(Role::Use, C)], &[(Role::Use, A)], &[(Role::Use, B)]];
    let mut code = code(2, &nodes, &[(reg(0), A), (reg(1), B)], &[]);
    let slot = Place::Slot(0);
    let up_to_last =
        [go(reg(1), slot), Step::Inst(0, vec![reg(1)]), Step::Inst(1, vec![reg(1)]), Step::Inst(2, vec![reg(0)])];
    let loaded = [go(slot, reg(0)), Step::Inst(3, vec![reg(0)])];
    same(&allocated(&mut code), &[&up_to_last[..], &loaded].concat());
    // Where the last can be read in memory it is.
    code.nodes[3].operands[0].memory = true;
    same(&allocated(&mut code), &[&up_to_last[..], &[Step::Inst(3, vec![slot])]].concat());
}

#[test]
fn a_spilled_value_is_not_stored_again() {
    let nodes: [&[_]; 4] = [&[(Role::Use, B)], &[(Role::Def, C)], &[(Role::Use, C), (Role::Use, A)], &[(Role::Use, B)]];
    let mut code = code(2, &nodes, &[(reg(0), A), (Place::Slot(0), B)], &[]);
    code.slots = 1;
    let steps = allocated(&mut code);
    let stores = steps.iter().filter(|s| matches!(s, Step::Move { to: Place::Slot(_), .. })).count();
    let loads = steps.iter().filter(|s| matches!(s, Step::Move { from: Place::Slot(_), .. })).count();
    assert_eq!((stores, loads), (0, 2));
}

#[test]
fn a_tied_source_that_lives_on_is_copied() {
    let nodes: [&[_]; 2] = [&[(Role::Overwritten, A), (Role::Result, C)], &[(Role::Use, A), (Role::Use, C)]];
    let mut code = code(2, &nodes, &[(reg(0), A)], &[]);
    let (copy, both) = (go(reg(0), reg(1)), vec![reg(0), reg(0)]);
    same(&allocated(&mut code), &[copy.clone(), Step::Inst(0, both), Step::Inst(1, vec![reg(1), reg(0)])]);
    // The copy is what is overwritten where the result is wanted there.
    code.nodes[1].operands[1].within = 0b10;
    same(&allocated(&mut code), &[copy, Step::Inst(0, vec![reg(1), reg(1)]), Step::Inst(1, vec![reg(0), reg(1)])]);
}

#[test]
fn a_live_value_is_moved_out_of_a_clobbered_register() {
    let nodes: [&[_]; 2] = [&[(Role::Use, A)], &[(Role::Use, A)]];
    let mut code = code(2, &nodes, &[(reg(0), A)], &[]);
    code.nodes[0].destroyed = 0b01;
    same(&allocated(&mut code), &[go(reg(0), reg(1)), Step::Inst(0, vec![reg(0)]), Step::Inst(1, vec![reg(1)])]);
}

#[test]
fn an_operand_with_a_fixed_register_has_it() {
    // The amount of a shift, which is in the other's register.
    let nodes: [&[_]; 1] = [&[(Role::Overwritten, A), (Role::Result, C), (Role::Use, B)]];
    let mut code = code(3, &nodes, &[(reg(1), A), (reg(0), B)], &[(reg(1), C)]);
    code.nodes[0].operands[2].within = 0b010;
    let shift = Step::Inst(0, vec![reg(2), reg(2), reg(1)]);
    same(&allocated(&mut code), &[go(reg(1), reg(2)), go(reg(0), reg(1)), shift, go(reg(2), reg(1))]);
}

#[test]
fn a_cycle_of_moves_goes_by_way_of_a_third_place() {
    let (entry, exit): (Assignment, Assignment) = (vec![(reg(0), A), (reg(1), B)], vec![(reg(1), A), (reg(0), B)]);
    let round = |by: Place| [go(reg(1), by), go(reg(0), reg(1)), go(by, reg(0))];
    same(&allocated(&mut code(3, &[], &entry, &exit)), &round(reg(2)));
    same(&allocated(&mut code(2, &[], &entry, &exit)), &round(Place::Slot(0)));
}

#[test]
fn slots_that_the_exit_wants_are_filled_from_registers() {
    let entry = [(reg(0), A), (Place::Slot(0), B)];
    let mut code = code(2, &[], &entry, &[(Place::Slot(0), A), (reg(0), B)]);
    code.slots = 1;
    let slot = Place::Slot(0);
    same(&allocated(&mut code), &[go(slot, reg(1)), go(reg(0), slot), go(reg(1), reg(0))]);
}

#[test]
fn loop_carried_values_may_end_up_anywhere() {
    // Two values that change their names in each iteration.
    let nodes: [&[_]; 1] = [&[(Role::Overwritten, A), (Role::Result, C)]];
    let mut code = code(2, &nodes, &[(reg(0), A), (reg(1), B)], &[(reg(0), B), (reg(1), C)]);
    code.count_uses(4);
    code.retarget(code.entry.clone(), None);
    let hints = RegisterHints::new(&code);
    let state = State::new(&code, &hints, EvictionPolicy { by_cost: true });
    assert_eq!(state.final_places(false), Some(vec![reg(1), reg(0)]));
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
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let machine =
            ciphermill_machine::load_from_dir(&root, "ia32", &[], &[], &[]).expect("the machine file is good");
        let named = |name: &str| {
            let at = machine.instrs.iter().position(|i| i.name == name);
            InstrId(at.expect("the machine has it") as u16)
        };
        let [a, b, copy, sum] = [0, 1, 2, 3].map(VReg);
        let mut params = VInst::new(VKind::Params, named("nop"), &[], 0);
        params.fixed_defs = vec![(a, Reg(EAX)), (b, Reg(EDX))];
        let moved = VInst::new(VKind::Normal, named("mov"), &[VOp::Def(copy), VOp::Use(a)], 0);
        let add = VInst::new(VKind::Normal, named("add"), &[VOp::Tied { used: copy, def: sum }, VOp::Use(b)], 0);
        let mut ret = VInst::new(VKind::Return, named("ret"), &[], 0);
        ret.fixed_uses = vec![(sum, Reg(EAX))];
        let block = VBlock { insts: vec![params, moved, add, ret], ..VBlock::default() };
        let func = VFunc {
            name: "sum".into(),
            blocks: vec![block],
            idom: vec![None],
            vregs: 4,
            has_calls: false,
            params: 2,
            results: 1,
        };
        Sum { machine, func }
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
