//! Which buffer an address points into.
//!
//! A caller may promise that the first parameters of an exported function
//! point to buffers that never overlap (the C interface of a cipher does).
//! This analysis finds, for every value, which of these parameters it was
//! computed from by the arithmetic of pointers; an access through it then
//! touches that buffer and no other, as in C. Loads that are certain to lie in
//! data that the module never writes meet no store at all ([`extent`]).
//!
//! Optimistic data flow over block parameters: everything begins undetermined
//! and only moves down `Top > Int, Pointer > Unknown`.

use ciphermill_ir::bits::Masks;
use ciphermill_ir::{BinOp, Func, Op, Value, ValueDef};
use cranelift_entity::SecondaryMap;

/// What a value was computed from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Root {
    #[default]
    Top,
    /// No pointer parameter.
    Int,
    /// The pointer parameter of this index, and integers.
    Pointer(u8),
    Unknown,
}

impl Root {
    fn meet(self, other: Root) -> Root {
        match (self, other) {
            (Root::Top, x) | (x, Root::Top) => x,
            (a, b) if a == b => a,
            _ => Root::Unknown,
        }
    }

    fn plus(self, other: Root) -> Root {
        match (self, other) {
            (Root::Top, _) | (_, Root::Top) => Root::Top,
            (Root::Int, x) | (x, Root::Int) => x,
            _ => Root::Unknown,
        }
    }
}

/// The root of every value. The first `pointers` parameters of the function
/// point to buffers of their own.
pub fn roots(func: &Func, pointers: usize) -> SecondaryMap<Value, Root> {
    let mut roots: SecondaryMap<Value, Root> = SecondaryMap::new();
    for (i, &p) in func.blocks[func.entry].params.iter().enumerate() {
        roots[p] = if i < pointers { Root::Pointer(i as u8) } else { Root::Int };
    }
    loop {
        let mut changed = false;
        let mut set = |roots: &mut SecondaryMap<Value, Root>, v: Value, r: Root| {
            if roots[v] != r {
                roots[v] = r;
                changed = true;
            }
        };
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                let arg = |i: usize| roots[func.resolve(data.args[i])];
                let root = match data.op {
                    Op::Bin(BinOp::Add | BinOp::Or) => arg(0).plus(arg(1)),
                    Op::Bin(BinOp::Sub) => match (arg(0), arg(1)) {
                        (Root::Top, _) | (_, Root::Top) => Root::Top,
                        (x, Root::Int) => x,
                        (Root::Pointer(a), Root::Pointer(b)) if a == b => Root::Int,
                        _ => Root::Unknown,
                    },
                    Op::Select => arg(1).meet(arg(2)),
                    Op::Load(_) | Op::Const(_) | Op::Cmp(_) | Op::GlobalGet(_) => Root::Int,
                    _ => {
                        let clean = (0..data.args.len()).all(|i| matches!(arg(i), Root::Int | Root::Top));
                        if clean { Root::Int } else { Root::Unknown }
                    }
                };
                for &v in &data.results {
                    set(&mut roots, v, root);
                }
            }
            for target in func.blocks[block].term.targets() {
                for (&p, &a) in func.blocks[target.block].params.iter().zip(&target.args) {
                    let met = roots[p].meet(roots[func.resolve(a)]);
                    set(&mut roots, p, met);
                }
            }
        }
        if !changed {
            return roots;
        }
    }
}

/// The addresses that an access of so many bytes can have, as first and last
/// byte, where its address is a sum of constants and a value of known bits.
pub fn extent(func: &Func, masks: &Masks, addr: Value, offset: u32, bytes: u8) -> Option<(u64, u64)> {
    let constant = |v: Value| func.as_const(func.resolve(v));
    let addr = func.resolve(addr);
    let (root, rest) = match func.values[addr].def {
        _ if constant(addr).is_some() => (constant(addr)?, None),
        ValueDef::Inst(inst, _) if func.insts[inst].op == Op::Bin(BinOp::Add) => {
            let args = &func.insts[inst].args;
            match (constant(args[0]), constant(args[1])) {
                (Some(c), _) => (c, Some(func.resolve(args[1]))),
                (_, Some(c)) => (c, Some(func.resolve(args[0]))),
                _ => (0, Some(addr)),
            }
        }
        _ => (0, Some(addr)),
    };
    let first = (root & u64::from(u32::MAX)) + u64::from(offset);
    let most = rest.map_or(0, |v| masks.possible(func, v));
    let last = first.checked_add(most)?.checked_add(u64::from(bytes) - 1)?;
    // A sum that wraps around is anywhere.
    (last <= u64::from(u32::MAX)).then_some((first, last))
}
