//! Dependences on an exposed pipeline, and bundles of a machine with several units.

use ciphermill_ir::Space;
use ciphermill_machine::{InstrId, Machine, OperandKind, Reg};
use ciphermill_program::{Inst, Operand, Role};
use ciphermill_schedule::bundle::{Schedulable, bundles, edges, in_order, list};
use ciphermill_vcode::{MemRef, Node, PInst, VKind};

fn node(reads: &[u32], writes: u32, latency: u32) -> Node {
    Node { reads: reads.to_vec(), writes: vec![(writes, latency)], issue_cycles: 1, ..Node::default() }
}

fn memory(store: bool, offset: i64) -> Node {
    Node { mem: Some(MemRef::own(Space::Linear, store, offset, 4)), ..Node::default() }
}

#[test]
fn a_reader_waits_for_the_latency_and_a_writer_only_for_what_lands() {
    let (load, add) = (5, 1);
    // Read after write.
    assert_eq!(edges(&[node(&[], 1, load), node(&[1], 2, add)])[0], [(1, load)]);
    // Write after read: the same cycle will do, the register has its old value until the result lands.
    assert_eq!(edges(&[node(&[1], 2, add), node(&[], 1, add)])[0], [(1, 0)]);
    // Write after write: the second lands last.
    assert_eq!(edges(&[node(&[], 1, load), node(&[], 1, add)])[0], [(1, load)]);
    assert_eq!(edges(&[node(&[], 1, add), node(&[], 1, load)])[0], [(1, 1)]);
}

#[test]
fn accesses_to_one_word_keep_their_order() {
    // A load behind a store comes later, a store behind a load may go with it.
    assert_eq!(edges(&[memory(true, 0), memory(false, 0)])[0], [(1, 1)]);
    assert_eq!(edges(&[memory(false, 0), memory(true, 0)])[0], [(1, 0)]);
    assert!(edges(&[memory(true, 0), memory(false, 4)])[0].is_empty());
    assert!(edges(&[memory(false, 0), memory(false, 0)])[0].is_empty());
}

fn machine(name: &str) -> Machine {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    ciphermill_machine::load_from_dir(&root, name, &[], &[], &[]).expect("the machine file is good")
}

/// A multiplication of two registers of the first cluster, and what it may be written as.
fn multiplication(machine: &Machine, reads: [Reg; 2], writes: Reg) -> Schedulable {
    let is = |i: &&ciphermill_machine::Instr| {
        i.name.starts_with("mpy") && i.operands.len() == 3 && i.paths.is_empty() && !i.units.is_empty()
    };
    let at = machine.instrs.iter().position(|i| is(&i)).expect("the machine multiplies");
    let mut sources = reads.into_iter();
    let operand = |o: &ciphermill_machine::Operand| match o.kind {
        OperandKind::Reg { def: true, .. } => Operand::Reg(writes),
        _ => Operand::Reg(sources.next().expect("there are two sources")),
    };
    let inst = Inst {
        instr: InstrId(at as u16),
        operands: machine.instrs[at].operands.iter().map(operand).collect(),
        space: Space::Linear,
        trap: None,
        role: Role::Other,
        predicate: None,
        loc: 0,
    };
    Schedulable { inst: PInst { inst, mem: None, kind: VKind::Normal }, variants: vec![InstrId(at as u16)] }
}

#[test]
fn one_unit_takes_one_instruction_a_cycle() {
    let m = machine("c6201");
    let regs: Vec<Reg> = m.abi.allocatable.iter().copied().take(5).collect();
    let insts = [
        multiplication(&m, [regs[0], regs[1]], regs[2]),
        multiplication(&m, [regs[0], regs[1]], regs[3]),
        multiplication(&m, [regs[2], regs[3]], regs[4]),
    ];
    let latency = 2;
    let number = |r: Reg| u32::from(r.0);
    let nodes = [
        node(&[number(regs[0]), number(regs[1])], number(regs[2]), latency),
        node(&[number(regs[0]), number(regs[1])], number(regs[3]), latency),
        node(&[number(regs[2]), number(regs[3])], number(regs[4]), latency),
    ];
    let succs = edges(&nodes);
    // The first two would go together, had the cluster two multipliers; the third waits for the second.
    let (rows, issue) = list(&m, 0, &insts, &nodes, &succs, None);
    assert_eq!(issue, [0, 1, 3]);
    assert_eq!(rows.iter().map(|r| r.insts.len()).collect::<Vec<_>>(), [1, 1, 0, 1]);
    let (rows, issue) = in_order(&m, &insts, &succs, None);
    assert_eq!((rows.len(), issue), (4, vec![0, 1, 3]));
    // The empty row is a cycle that the program waits.
    assert_eq!(bundles(&m, rows).expect("there is a no-operation").len(), 4);
}

#[test]
fn the_instruction_that_ends_the_block_is_left_out() {
    let m = machine("c6201");
    let regs: Vec<Reg> = m.abi.allocatable.iter().copied().take(3).collect();
    let insts = [multiplication(&m, [regs[0], regs[1]], regs[2])];
    let (rows, _) = list(&m, 0, &insts, &[node(&[], 1, 2)], &[vec![]], Some(0));
    assert!(rows.is_empty());
}
