//! Which of its two sources an instruction overwrites, where it may be either.
//!
//! `a ^= b` and `b ^= a` leave the same value in different registers. A source that is wanted again has to be copied
//! before it is overwritten, one that is not wanted any more need not be. Which of the two that is depends on the order
//! of the instructions, so it is decided for each order anew. Where the other source may be a memory operand, selection
//! has chosen it with that in mind, and it stays.

use crate::fold::FoldTable;
use ciphermill_machine::sem::{Expr, Stmt};
use ciphermill_machine::{Instr, InstrId, Machine, OperandKind};
use ciphermill_vcode::liveness::{Set, live_out};
use ciphermill_vcode::{VFunc, VInst, VKind, VOp, VReg};
use std::collections::HashMap;

/// The machine's instructions that overwrite either source.
pub struct Commuting {
    /// By instruction: the operand that is overwritten, and the other source.
    sources: HashMap<InstrId, (usize, usize)>,
    mov: InstrId,
}

impl Commuting {
    pub fn new(machine: &Machine, folds: Option<&FoldTable>) -> Commuting {
        let all = machine.instrs.iter().enumerate();
        let found = all.filter_map(|(i, instr)| Some((InstrId(i as u16), sources(instr)?)));
        let in_registers =
            |(instr, (_, other)): &(InstrId, (usize, usize))| folds.is_none_or(|f| f.folded(*instr, *other).is_none());
        Commuting { sources: found.filter(in_registers).collect(), mov: machine.abi.ops.mov }
    }

    /// The function with sources exchanged where that spares a copy.
    pub fn exchanged(&self, mut func: VFunc) -> VFunc {
        if self.sources.is_empty() {
            return func;
        }
        let outs = live_out(&func);
        let original = self.originals(&func);
        let of = |v: VReg| original[v.0 as usize];
        for (block, out) in func.blocks.iter_mut().zip(&outs) {
            let mut live = Set::new(func.vregs);
            (0..func.vregs).map(VReg).filter(|v| out.contains(*v)).for_each(|v| {
                live.insert(of(v));
            });
            for inst in block.insts.iter_mut().rev() {
                self.exchange(inst, &|v| live.contains(of(v)));
                inst.defs().filter(|&d| of(d) == d).for_each(|d| {
                    live.remove(d);
                });
                inst.uses().for_each(|u| {
                    live.insert(of(u));
                });
            }
        }
        func
    }

    fn exchange(&self, inst: &mut VInst, wanted_again: &dyn Fn(VReg) -> bool) {
        let Some(&(tied, other)) = self.sources.get(&inst.instr).filter(|_| inst.kind == VKind::Normal) else { return };
        if let (VOp::Tied { used, def }, VOp::Use(last)) = (inst.ops[tied], inst.ops[other])
            && wanted_again(used)
            && !wanted_again(last)
        {
            (inst.ops[tied], inst.ops[other]) = (VOp::Tied { used: last, def }, VOp::Use(used));
        }
    }

    /// By virtual register: the one that it is a copy of, or itself. The allocator gives both one place.
    fn originals(&self, func: &VFunc) -> Vec<VReg> {
        let mut of: Vec<VReg> = (0..func.vregs).map(VReg).collect();
        for inst in func.blocks.iter().flat_map(|b| &b.insts).filter(|i| i.instr == self.mov) {
            if let [VOp::Def(to), VOp::Use(from)] | [VOp::Use(from), VOp::Def(to)] = inst.ops[..] {
                of[to.0 as usize] = from;
            }
        }
        let last = |mut v: VReg| {
            while of[v.0 as usize] != v {
                v = of[v.0 as usize];
            }
            v
        };
        (0..func.vregs).map(|v| last(VReg(v))).collect()
    }
}

/// The overwritten source and the other, of an instruction that computes the same with the two exchanged.
fn sources(instr: &Instr) -> Option<(usize, usize)> {
    let at = |wanted: fn(&OperandKind) -> bool| {
        let mut found = (0..instr.operands.len()).filter(|&i| wanted(&instr.operands[i].kind));
        found.next().filter(|_| found.next().is_none())
    };
    let tied = at(|k| matches!(k, OperandKind::Reg { def: true, used: true, .. }))?;
    let other = at(|k| matches!(k, OperandKind::Reg { def: false, used: true, .. }))?;
    let file = |i: usize| if let OperandKind::Reg { file, .. } = instr.operands[i].kind { Some(file) } else { None };
    let within = |i: usize| instr.only.iter().find(|o| o.0 == i).map(|o| &o.1);
    let alike = file(tied) == file(other) && within(tied) == within(other);
    let either = |s: &Stmt| match s {
        Stmt::Let { value, .. } | Stmt::Assign { value, .. } => symmetric(value, tied, other),
        _ => false,
    };
    let timed = instr.early.iter().any(|e| e.0 == tied || e.0 == other);
    (alike && !timed && instr.semantics.iter().all(either)).then_some((tied, other))
}

/// Are two operands read as the two sides of operations that commute, and nowhere else?
fn symmetric(e: &Expr, x: usize, y: usize) -> bool {
    let pair = |a: &Expr, b: &Expr| {
        let is = |a: &Expr, b: &Expr| *a == Expr::Operand(x) && *b == Expr::Operand(y);
        is(a, b) || is(b, a)
    };
    match e {
        Expr::Operand(i) => *i != x && *i != y,
        Expr::Bin { op, a, b, .. } if op.commutes() && pair(a, b) => true,
        Expr::FlagsAdd { a, b, .. } if pair(a, b) => true,
        e => {
            let mut all = true;
            e.children(|child| all &= symmetric(child, x, y));
            all
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{function, named, of_name};
    use ciphermill_vcode::VBlock;

    const A: VReg = VReg(0);
    const B: VReg = VReg(1);
    const SUM: VReg = VReg(2);
    const OTHER: VReg = VReg(3);

    /// A sum of `A` and `B`, one of which is read again behind it.
    fn read_again(machine: &Machine, instr: &str, again: VReg) -> VInst {
        let tied = VOp::Tied { used: A, def: SUM };
        let mut ret = VInst::new(VKind::Return, machine.abi.ops.ret, &[], 0);
        ret.fixed_uses = vec![(SUM, machine.abi.results[0]), (OTHER, machine.abi.results[1])];
        let insts = vec![
            VInst::new(VKind::Normal, named(machine, instr), &[tied, VOp::Use(B)], 0),
            VInst::new(VKind::Normal, machine.abi.ops.mov, &[VOp::Def(OTHER), VOp::Use(again)], 0),
            ret,
        ];
        let func = function(vec![VBlock { insts, ..VBlock::default() }], 4);
        Commuting::new(machine, Some(&FoldTable::new(machine))).exchanged(func).blocks[0].insts[0].clone()
    }

    #[test]
    fn what_is_not_wanted_again_is_overwritten() {
        let machine = of_name("cortex-m0plus");
        let [kept, exchanged] = [A, B].map(|used| VOp::Tied { used, def: SUM });
        assert_eq!(read_again(&machine, "eors", A).ops[..], [exchanged, VOp::Use(A)]);
        assert_eq!(read_again(&machine, "eors", B).ops[..], [kept, VOp::Use(B)]);
        // A carry on top is no obstacle, a complement is one.
        assert_eq!(read_again(&machine, "adcs", A).ops[..], [exchanged, VOp::Use(A)]);
        assert_eq!(read_again(&machine, "bics", A).ops[..], [kept, VOp::Use(B)]);
        assert_eq!(read_again(&machine, "sbcs", A).ops[..], [kept, VOp::Use(B)]);
    }

    #[test]
    fn a_source_that_may_be_in_memory_stays() {
        let machine = of_name("ia32");
        assert_eq!(read_again(&machine, "xor", A).ops[..], [VOp::Tied { used: A, def: SUM }, VOp::Use(B)]);
    }
}
