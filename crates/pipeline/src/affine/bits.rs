//! Which bits of a value may be set, as far as the instruction that makes it says: an index that has
//! been masked lies in a range, and a multiple of four has no lowest bits.

use super::sums::{Value, width};
use ciphermill_ir::{BinOp, UnOp};
use ciphermill_machine::Machine;
use ciphermill_machine::sem::Expr;
use ciphermill_vcode::{VInst, VOp};

/// The bits that an expression may have set; `value` finds those of a register.
pub(super) fn possible(machine: &Machine, inst: &VInst, e: &Expr, value: &Value<'_>) -> u64 {
    let of = |e: &Expr| possible(machine, inst, e, value);
    let number = |e: &Expr| match e {
        Expr::Const(c) => Some(*c),
        Expr::Imm(o) => immediate(inst, *o),
        _ => None,
    };
    match e {
        Expr::Const(c) => *c,
        Expr::Imm(o) => immediate(inst, *o).unwrap_or(u64::MAX),
        Expr::Operand(o) => match inst.ops.get(*o) {
            Some(VOp::Const(c)) => *c,
            Some(VOp::Phys(r)) if machine.regs[usize::from(r.0)].zero => 0,
            Some(VOp::Use(v) | VOp::Tied { used: v, .. }) => {
                value(*o, *v).map_or(u64::MAX, |known| known.bits) & lowest(width(machine, inst, *o))
            }
            _ => u64::MAX,
        },
        Expr::Bin { op: op @ (BinOp::Shl | BinOp::ShrU), bits, a, b } => {
            let full = lowest(u32::from(*bits));
            match (op, number(b).filter(|n| *n < u64::from(*bits))) {
                (BinOp::Shl, Some(by)) => (of(a) << by) & full,
                (BinOp::ShrU, Some(by)) => (of(a) & full) >> by,
                (BinOp::ShrU, None) => up_to(of(a) & full),
                _ => full,
            }
        }
        Expr::Bin { op, bits, a, b } => of_two(*op, lowest(u32::from(*bits)), of(a), of(b)),
        Expr::Un { op, bits, a } => {
            let full = lowest(u32::from(*bits));
            let sign = match op {
                UnOp::SExt8 => 8,
                UnOp::SExt16 => 16,
                UnOp::SExt32 => 32,
                _ => return full,
            };
            // Without a sign the bits above are zeros.
            let low = of(a) & lowest(sign);
            if low >> (sign - 1) == 0 { low } else { full }
        }
        Expr::Cmp { .. } | Expr::FlagsTest { .. } => 1,
        Expr::Select { then, els, .. } => of(then) | of(els),
        Expr::Slice { a, lo, width } => (of(a) >> (*lo).min(63)) & lowest(u32::from(*width)),
        Expr::Load { bytes, signed: false, .. } => lowest(8 * u32::from(*bytes)),
        _ => u64::MAX,
    }
}

fn immediate(inst: &VInst, o: usize) -> Option<u64> {
    if let Some(VOp::Imm(v)) = inst.ops.get(o) { Some(*v as u64) } else { None }
}

/// So many of the lowest bits.
pub(super) fn lowest(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// All bits up to the highest of these.
fn up_to(bits: u64) -> u64 {
    lowest(u64::BITS - bits.leading_zeros())
}

/// The bits of a result, `full` at the most, by those of both operands.
fn of_two(op: BinOp, full: u64, a: u64, b: u64) -> u64 {
    let (a, b) = (a & full, b & full);
    let within = |most: Option<u64>| most.filter(|m| *m <= full).map_or(full, up_to);
    // What both are multiples of, sums are too.
    let multiples = |zeros: u32| u64::MAX.checked_shl(zeros).unwrap_or(0);
    match op {
        BinOp::And => a & b,
        BinOp::Or | BinOp::Xor => a | b,
        BinOp::Add => within(a.checked_add(b)) & multiples((a | b).trailing_zeros()),
        BinOp::Sub => full & multiples((a | b).trailing_zeros()),
        BinOp::Mul => within(a.checked_mul(b)) & multiples(a.trailing_zeros() + b.trailing_zeros()),
        BinOp::DivU => up_to(a),
        _ => full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever numbers have these bits, the result has no other bits than it is said to have.
    #[test]
    fn no_result_has_another_bit() {
        let (masks, full) = ([0u64, 1, 3, 4, 0x0c, 0x35, 0x80, 0xf0, 0xff], 0xff);
        let members = |mask: u64| (0..=full).filter(move |x| x & !mask == 0);
        let ops = [BinOp::And, BinOp::Or, BinOp::Xor, BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::DivU, BinOp::RotL];
        for op in ops {
            for (a, b) in masks.iter().flat_map(|&a| masks.map(|b| (a, b))) {
                let said = of_two(op, full, a, b);
                for (x, y) in members(a).flat_map(|x| members(b).map(move |y| (x, y))) {
                    let result = op.eval(x, y, 8).unwrap_or(0);
                    assert_eq!(result & !said, 0, "{op:?} {x:#x} {y:#x} of {a:#x} {b:#x}: {said:#x}");
                }
            }
        }
        // And what is masked stays small.
        assert_eq!(of_two(BinOp::Add, full, 0x0c, 0x30), 0x3c);
        assert_eq!(of_two(BinOp::Mul, full, 0x03, 0x04), 0x0c);
    }
}
