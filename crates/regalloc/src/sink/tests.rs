use super::*;
use crate::samples::{function, named, of_name};
use ciphermill_vcode::{VBlock, VKind, VOp};

const COUNTER: VReg = VReg(0);
const STEPPED: VReg = VReg(1);
const WORDS: u32 = 6;
const REGISTERS: usize = 4;

/// A counter is stepped, words are summed up with the old one, and both are handed on.
fn stepped_at_the_top(machine: &Machine) -> VFunc {
    let inst = |name: &str, ops: &[VOp]| VInst::new(VKind::Normal, named(machine, name), ops, 0);
    let mut insts = vec![VInst::new(VKind::Params, named(machine, "nop"), &[], 0)];
    let word = |n: u32| VReg(2 + n);
    let given = [COUNTER].into_iter().chain((0..WORDS).map(word));
    insts[0].fixed_defs = given.zip(machine.abi.allocatable.iter().copied()).collect();
    insts.push(inst("addw", &[VOp::Def(STEPPED), VOp::Use(COUNTER), VOp::Imm(1)]));
    let mut sum = COUNTER;
    for n in 0..WORDS {
        let next = VReg(2 + WORDS + n);
        insts.push(inst("add_r", &[VOp::Def(next), VOp::Use(sum), VOp::Use(word(n))]));
        sum = next;
    }
    let mut ret = VInst::new(VKind::Return, named(machine, "ret"), &[], 0);
    ret.fixed_uses = vec![(sum, machine.abi.allocatable[0]), (STEPPED, machine.abi.allocatable[1])];
    insts.push(ret);
    function(vec![VBlock { insts, ..VBlock::default() }], 2 + 2 * WORDS)
}

#[test]
fn a_counter_is_stepped_where_its_old_value_is_read_last() {
    let machine = of_name("cortex-m4");
    let func = stepped_at_the_top(&machine);
    let made = sunk(&func, &machine, &Facts::new(&machine), REGISTERS).expect("the order is right");
    let made = made.expect("something sinks");
    let code = &made.blocks[0].insts;
    let place = |v: VReg| code.iter().position(|i| i.defs().any(|d| d == v));
    // The first sum reads the old value last.
    assert_eq!(place(STEPPED), place(VReg(2 + WORDS)).map(|n| n + 1));
    let pressure = |f: &VFunc| max_live(f, 0, &live_out(f)[0]);
    assert!(pressure(&made) < pressure(&func), "{} {}", pressure(&made), pressure(&func));
}

#[test]
fn with_registers_enough_everything_stays() {
    let machine = of_name("cortex-m4");
    let func = stepped_at_the_top(&machine);
    assert!(sunk(&func, &machine, &Facts::new(&machine), 3 * WORDS as usize).expect("nothing to check").is_none());
}
