//! Straight code on the two clusters of a C62x: files of values, and copies between them.

use ciphermill_machine::{InstrId, Machine, OperandKind, Reg};
use ciphermill_schedule::clusters;
use ciphermill_vcode::{Facts, Registers, VBlock, VFunc, VInst, VKind, VOp, VReg};
use std::path::Path;

struct Target {
    machine: Machine,
    facts: Facts,
    registers: Registers,
}

fn target() -> Target {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let machine = ciphermill_machine::load_from_dir(&root, "c6201", &[], &[], &[]).unwrap();
    let (facts, abi) = (Facts::new(&machine), &machine.abi);
    let mov = &machine.instrs[usize::from(abi.ops.mov.0)];
    let written = mov.operands.iter().map(|o| matches!(o.kind, OperandKind::Reg { def: true, .. })).collect();
    let registers = Registers {
        allocatable: abi.allocatable.clone(),
        clobbered: vec![],
        callee_saved: vec![],
        mov: (abi.ops.mov, written),
        jump: abi.ops.jump,
        nop: abi.ops.nop,
    };
    Target { machine, facts, registers }
}

impl Target {
    fn instr(&self, name: &str) -> InstrId {
        InstrId(self.machine.instrs.iter().position(|i| i.name == name).unwrap() as u16)
    }

    fn reg(&self, name: &str) -> Reg {
        Reg(self.machine.regs.iter().position(|r| r.name == name).unwrap() as u16)
    }

    /// A function of one block: values 0 and 1 come in a register of each side, and the last one goes to one.
    fn function(&self, insts: Vec<VInst>, result: &str) -> VFunc {
        let nop = self.registers.nop;
        let mut params = VInst::new(VKind::Params, nop, &[], 0);
        params.fixed_defs = vec![(VReg(0), self.reg("a4")), (VReg(1), self.reg("b4"))];
        let mut end = VInst::new(VKind::Return, nop, &[], 0);
        let last = insts.last().and_then(|i| i.defs().last()).unwrap();
        end.fixed_uses = vec![(last, self.reg(result))];
        let vregs = 2 + insts.len() as u32;
        let insts = std::iter::once(params).chain(insts).chain([end]).collect();
        VFunc {
            name: "f".into(),
            blocks: vec![VBlock { insts, ..VBlock::default() }],
            idom: vec![None],
            vregs,
            has_calls: false,
            params: 2,
            results: 1,
            files: vec![],
        }
    }

    fn binary(&self, name: &str, def: u32, a: u32, b: u32) -> VInst {
        let ops = [VOp::Use(VReg(a)), VOp::Use(VReg(b)), VOp::Def(VReg(def))];
        let instr = &self.machine.instrs[usize::from(self.instr(name).0)];
        let def_last = matches!(instr.operands[2].kind, OperandKind::Reg { def: true, .. });
        assert!(def_last, "{name}");
        VInst::new(VKind::Normal, self.instr(name), &ops, 0)
    }

    /// Does some variant of each instruction take its operands where their values are?
    fn fits(&self, func: &VFunc) {
        let files = self.registers.files(&self.machine);
        let file = |v: VReg| files[usize::from(func.files[v.0 as usize])];
        for inst in func.blocks.iter().flat_map(|b| &b.insts).filter(|i| i.kind == VKind::Normal) {
            let takes = |v: &InstrId| {
                let spec = &self.machine.instrs[usize::from(v.0)].operands;
                inst.ops.iter().zip(spec).all(|(op, spec)| match (op, &spec.kind) {
                    (VOp::Use(v) | VOp::Def(v), OperandKind::Reg { file: wanted, .. }) => file(*v) == *wanted,
                    _ => true,
                })
            };
            assert!(self.machine.variants[usize::from(inst.instr.0)].iter().any(takes), "{inst:?}");
        }
        for (v, r) in func.blocks.iter().flat_map(|b| &b.insts).flat_map(|i| i.fixed_uses.iter().chain(&i.fixed_defs)) {
            assert_eq!(file(*v), self.machine.regs[usize::from(r.0)].file, "{v:?}");
        }
    }

    fn scheduled(&self, mut func: VFunc) -> VFunc {
        clusters::schedule(&mut func, &self.machine, &self.facts, &self.registers).unwrap();
        self.fits(&func);
        func
    }
}

fn moves(target: &Target, func: &VFunc) -> usize {
    func.blocks.iter().flat_map(|b| &b.insts).filter(|i| i.instr == target.registers.mov.0).count()
}

#[test]
fn one_operand_of_an_instruction_may_be_on_the_other_side() {
    let t = target();
    let func = t.scheduled(t.function(vec![t.binary("add", 2, 0, 1)], "a4"));
    assert_eq!(moves(&t, &func), 0);
}

#[test]
fn what_is_wanted_on_the_other_side_is_copied() {
    let t = target();
    // A sum of two values of one side is made there, and goes to the other.
    let func = t.scheduled(t.function(vec![t.binary("add", 2, 0, 0)], "b4"));
    assert_eq!(moves(&t, &func), 1);
}

/// A generator of numbers (SplitMix64).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

#[test]
fn every_operand_of_random_code_is_where_a_variant_takes_it() {
    let t = target();
    for seed in 0..40 {
        let mut state = seed;
        let length = 1 + next(&mut state) % 120;
        let mut insts = Vec::new();
        for k in 0..length {
            let mut source = || (next(&mut state) % (2 + k)) as u32;
            let (a, b) = (source(), source());
            let name = ["add", "sub", "xor", "mpyu"][(next(&mut state) % 4) as usize];
            insts.push(t.binary(name, 2 + k as u32, a, b));
        }
        let func = t.scheduled(t.function(insts, if seed % 2 == 0 { "a4" } else { "b4" }));
        let normal = func.blocks[0].insts.iter().filter(|i| i.kind == VKind::Normal).count();
        assert_eq!(normal, length as usize + moves(&t, &func), "seed {seed}");
    }
}
