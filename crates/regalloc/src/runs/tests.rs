use super::*;
use crate::samples::{function, named, of_name};
use ciphermill_ir::Space;
use ciphermill_vcode::liveness::live_out;
use ciphermill_vcode::{MemRef, VBlock};

/// Where the parameters are.
const BASES: [VReg; 2] = [VReg(0), VReg(1)];
const REGISTERS: usize = 8;

struct Code {
    machine: Machine,
    insts: Vec<VInst>,
    vregs: u32,
}

impl Code {
    fn new() -> Code {
        let machine = of_name("cortex-m0plus");
        let mut params = VInst::new(VKind::Params, named(&machine, "nop"), &[], 0);
        params.fixed_defs = BASES.iter().copied().zip(machine.abi.args.iter().copied()).collect();
        Code { machine, insts: vec![params], vregs: 2 }
    }

    fn fresh(&mut self) -> VReg {
        self.vregs += 1;
        VReg(self.vregs - 1)
    }

    fn push(&mut self, name: &str, ops: &[VOp]) -> &mut VInst {
        self.insts.push(VInst::new(VKind::Normal, named(&self.machine, name), ops, 0));
        let last = self.insts.len() - 1;
        &mut self.insts[last]
    }

    /// Loads the word at a displacement, which is at `bytes` in memory.
    fn load(&mut self, base: VReg, displacement: i64, bytes: i64) -> VReg {
        let value = self.fresh();
        let ops = [VOp::Def(value), VOp::Use(base), VOp::Imm(displacement)];
        self.push("ldr_i5", &ops).mem = Some(MemRef::own(Space::Linear, false, bytes, 4));
        value
    }

    fn store(&mut self, value: VReg, base: VReg, displacement: i64, bytes: i64) {
        let ops = [VOp::Use(value), VOp::Use(base), VOp::Imm(displacement)];
        self.push("str_i5", &ops).mem = Some(MemRef::own(Space::Linear, true, bytes, 4));
    }

    /// The names of the instructions when runs are joined; `read` is read at the end.
    fn joined(mut self, read: &[VReg]) -> Option<Vec<String>> {
        let mut ret = VInst::new(VKind::Return, named(&self.machine, "ret"), &[], 0);
        ret.fixed_uses = read.iter().copied().zip(self.machine.abi.allocatable.iter().copied()).collect();
        self.insts.push(ret);
        let func = function(vec![VBlock { insts: self.insts, ..VBlock::default() }], self.vregs);
        let (facts, runs) = (Facts::new(&self.machine), Runs::new(&self.machine));
        let joining = Joining { stores: true, registers: REGISTERS };
        let made = joined(&func, 0, &self.machine, &facts, &runs, &live_out(&func)[0], joining)?;
        let name = |i: &VInst| self.machine.instrs[usize::from(i.instr.0)].name.clone();
        Some(made.blocks[0].insts.iter().map(name).collect())
    }
}

#[test]
fn a_pointer_that_is_stepped_is_where_the_load_leaves_it() {
    let mut code = Code::new();
    let words: Vec<VReg> = (0..4).map(|n| code.load(BASES[0], 4 * n, 4 * n)).collect();
    let stepped = code.fresh();
    code.push("adds_i8", &[VOp::Tied { used: BASES[0], def: stepped }, VOp::Imm(16)]);
    let read = [&words[..], &[stepped]].concat();
    assert_eq!(code.joined(&read).expect("there is a run"), ["nop", "ldm4", "mov", "ret"]);
}

#[test]
fn a_base_that_is_wanted_is_copied_which_two_words_are_not_worth() {
    let mut code = Code::new();
    let words: Vec<VReg> = (0..2).map(|n| code.load(BASES[0], 4 * n, 4 * n)).collect();
    assert_eq!(code.joined(&[words[0], words[1], BASES[0]]), None);
    let mut code = Code::new();
    let words: Vec<VReg> = (0..3).map(|n| code.load(BASES[0], 4 * n, 4 * n)).collect();
    let read = [&words[..], &[BASES[0]]].concat();
    assert_eq!(code.joined(&read).expect("there is a run"), ["nop", "ldm3", "ret"]);
}

#[test]
fn what_moves_both_ways_does_not_pass_each_other() {
    // The second load reads what the first store has written. Each could move alone: the load up past the second
    // store, the store down past the first load.
    let names = |second: i64| {
        let mut code = Code::new();
        let value = code.fresh();
        code.push("movs", &[VOp::Def(value), VOp::Imm(7)]);
        code.store(value, BASES[1], 0, 0);
        let first = code.load(BASES[0], 0, 200);
        code.store(first, BASES[1], 4, 4);
        let last = code.load(BASES[0], 4, second);
        code.joined(&[first, last]).expect("there is a run")
    };
    assert_eq!(names(204), ["nop", "movs", "ldm2", "stm2", "ret"]);
    assert_eq!(names(0), ["nop", "movs", "str_i5", "ldm2", "str_i5", "ret"]);
}
