//! A word of the frame: its load or its store, and its address where the displacement of these does not reach.

use super::body::{From, Node};
use ciphermill_ir::Space;
use ciphermill_machine::{InstrId, InstrKind, Machine, OperandKind};
use ciphermill_program::Role;
use ciphermill_vcode::semantics::access_operands;
use ciphermill_vcode::{MemRef, VInst, VKind, VOp, VReg};
use smallvec::{SmallVec, smallvec};

/// Nodes from `at` on, of which the last loads from an offset of the stack pointer, or stores a value there. None where
/// the machine's own addition does not reach either.
pub fn access(
    machine: &Machine,
    instr: InstrId,
    offset: i64,
    value: Option<From>,
    at: usize,
) -> Option<SmallVec<[Node; 2]>> {
    let (stored, base) = access_operands(&machine.instrs[usize::from(instr.0)].semantics)?;
    let mut insts = instructions(machine, instr, offset, VReg(0), || VReg(1))?.into_iter();
    let node = |inst: VInst, reads: Vec<(usize, From)>| {
        let latency = machine.instrs[usize::from(inst.instr.0)].latency;
        let writes = inst.ops.iter().position(|op| matches!(op, VOp::Def(_))).map(|o| (o, latency));
        Node { mem: inst.mem, inst, reads, writes, tied: false }
    };
    let access = insts.next_back()?;
    let mut reads: Vec<(usize, From)> = Vec::new();
    if let Some(from) = value {
        reads.push((stored?, from));
    }
    let Some(address) = insts.next() else { return Some(smallvec![node(access, reads)]) };
    reads.push((base, From::Node(at, 0)));
    Some(smallvec![node(address, Vec::new()), node(access, reads)])
}

/// The instructions, for a value in a register; `address` gives one for the address if it is wanted.
pub fn instructions(
    machine: &Machine,
    instr: InstrId,
    offset: i64,
    value: VReg,
    address: impl FnOnce() -> VReg,
) -> Option<SmallVec<[VInst; 2]>> {
    let desc = &machine.instrs[usize::from(instr.0)];
    let (_, base) = access_operands(&desc.semantics)?;
    let from = |pointer: VOp, displacement: i64| {
        let mut inst = with(machine, instr, (base, pointer), value, displacement)?;
        inst.mem = Some(MemRef::own(Space::Stack, desc.kind == InstrKind::Store, offset, machine.word_bits / 8));
        Some(inst)
    };
    let stack_pointer = VOp::Phys(machine.abi.stack_pointer);
    if let Some(inst) = from(stack_pointer, offset) {
        return Some(smallvec![inst]);
    }
    let add = machine.abi.ops.add_imm;
    let mut operands = machine.instrs[usize::from(add.0)].operands.iter();
    let read = operands.position(|o| matches!(o.kind, OperandKind::Reg { def: false, .. }))?;
    let address = address();
    let made = with(machine, add, (read, stack_pointer), address, offset)?;
    Some(smallvec![made, from(VOp::Use(address), 0)?])
}

/// An instruction on an operand that is given, another register and a number. None where that is none of its numbers.
pub fn with(machine: &Machine, instr: InstrId, given: (usize, VOp), register: VReg, imm: i64) -> Option<VInst> {
    let mut ops = Vec::new();
    for (o, operand) in machine.instrs[usize::from(instr.0)].operands.iter().enumerate() {
        ops.push(match operand.kind {
            _ if o == given.0 => given.1,
            OperandKind::Reg { def: true, .. } => VOp::Def(register),
            OperandKind::Reg { .. } => VOp::Use(register),
            OperandKind::Imm { .. } if operand.kind.imm_for(imm as u64, machine.word_bits) == Some(imm) => {
                VOp::Imm(imm)
            }
            _ => return None,
        });
    }
    let mut inst = VInst::new(VKind::Normal, instr, &ops, 0);
    inst.role = Role::Overhead;
    Some(inst)
}

/// What makes an address of the stack pointer: as many additions as it takes. None where the machine's does not reach.
pub fn address(machine: &Machine, to: VReg, offset: i64, mut fresh: impl FnMut() -> VReg) -> Option<Vec<VInst>> {
    let add = machine.abi.ops.add_imm;
    let operands = &machine.instrs[usize::from(add.0)].operands;
    let read = operands.iter().position(|o| matches!(o.kind, OperandKind::Reg { def: false, .. }))?;
    let most = operands.iter().find_map(|o| if let OperandKind::Imm { max, .. } = o.kind { Some(max) } else { None });
    let most = most.filter(|most| *most > 0)?;
    let mut out = Vec::new();
    let (mut from, mut left) = (VOp::Phys(machine.abi.stack_pointer), offset);
    loop {
        let step = left.min(most);
        let made = if step == left { to } else { fresh() };
        out.push(with(machine, add, (read, from), made, step)?);
        left -= step;
        if left == 0 {
            return Some(out);
        }
        from = VOp::Use(made);
    }
}
