//! Which buffer an address points into.
//!
//! A caller may promise that the first parameters of an exported function
//! point to buffers that never overlap (the C interface of a cipher does).
//! This analysis finds, for every value, which of these parameters it was
//! computed from by the arithmetic of pointers; an access through it then
//! touches that buffer and no other, as in C, and an access through an address
//! that none of them has gone into touches none of their buffers. Once a pointer
//! has been stored, what is loaded may be that pointer (globals of compiled C hold
//! the stack pointer and nothing else). Loads that are certain to lie in
//! data that the module never writes meet no store at all ([`extent`]).
//!
//! Optimistic data flow over block parameters: everything begins undetermined
//! and only moves down `Top > Int > Loaded > Unknown` or `Top > Pointer > Unknown`.

use ciphermill_ir::bits::Masks;
use ciphermill_ir::{BinOp, Func, InstData, Op, Value, ValueDef};
use cranelift_entity::SecondaryMap;

/// What a value was computed from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Root {
    #[default]
    Top,
    /// No pointer parameter.
    Int,
    /// Something loaded, and no pointer parameter unless one has been stored.
    Loaded,
    /// The pointer parameter of this index, and integers.
    Pointer(u8),
    Unknown,
}

impl Root {
    fn meet(self, other: Root) -> Root {
        match (self, other) {
            (Root::Top, x) | (x, Root::Top) => x,
            (a, b) if a == b => a,
            (Root::Int | Root::Loaded, Root::Int | Root::Loaded) => Root::Loaded,
            _ => Root::Unknown,
        }
    }

    fn plus(self, other: Root) -> Root {
        match (self, other) {
            (Root::Top, _) | (_, Root::Top) => Root::Top,
            (Root::Int, x) | (x, Root::Int) => x,
            // Nobody adds two pointers.
            (Root::Loaded, x) | (x, Root::Loaded) => x,
            _ => Root::Unknown,
        }
    }

    /// Of a value computed from these in a way that keeps no pointer.
    fn mixed(self, other: Root) -> Root {
        match (self, other) {
            (Root::Top, x) | (x, Root::Top) => x,
            (Root::Int, Root::Int) => Root::Int,
            (Root::Int | Root::Loaded, Root::Int | Root::Loaded) => Root::Loaded,
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
                        (x, Root::Int | Root::Loaded) => x.plus(arg(1)),
                        (Root::Pointer(a), Root::Pointer(b)) if a == b => Root::Int,
                        _ => Root::Unknown,
                    },
                    Op::Select => arg(1).meet(arg(2)),
                    Op::Load(_) => Root::Loaded,
                    Op::Const(_) | Op::Cmp(_) | Op::GlobalGet(_) => Root::Int,
                    _ => (0..data.args.len()).fold(Root::Int, |all, i| all.mixed(arg(i))),
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
            break;
        }
    }
    if !stores_pointer(func, &roots) {
        for v in func.values.keys() {
            if roots[v] == Root::Loaded {
                roots[v] = Root::Int;
            }
        }
    }
    roots
}

/// May a pointer parameter be in memory once the function has run?
fn stores_pointer(func: &Func, roots: &SecondaryMap<Value, Root>) -> bool {
    let pointer = |&v: &Value| matches!(roots[func.resolve(v)], Root::Pointer(_) | Root::Unknown);
    func.layout.iter().flat_map(|&b| &func.blocks[b].insts).any(|&inst| {
        let InstData { op, args, .. } = &func.insts[inst];
        match op {
            Op::Store(_) => args[1..].iter().any(pointer),
            Op::Call(_) | Op::CallPtr(_) => args.iter().any(pointer),
            _ => false,
        }
    })
}

/// The addresses that an access of so many bytes can have, as first and last
/// byte, where its address is a sum of constants and a value of known bits.
pub fn extent(func: &Func, masks: &Masks, addr: Value, offset: u32, bytes: u8) -> Option<(u32, u32)> {
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
    Some((u32::try_from(first).ok()?, u32::try_from(last).ok()?))
}

#[cfg(test)]
mod tests {
    use super::{Root, roots};
    use ciphermill_ir::{BinOp, Func, MemAccess, Op, Signature, Space, Terminator, Type, Value};

    const WORD: MemAccess = MemAccess { bytes: 4, signed: false, align: 4, offset: 0, space: Space::Linear };

    /// Roots of what is loaded from an address of the function's own, of that plus the first
    /// parameter, and of the own address, once a value has been stored there.
    fn loaded(stored: impl Fn(&mut Func, Value) -> Value) -> [Root; 3] {
        let mut f = Func::new("f", Signature { params: vec![Type::I32; 2], results: vec![] });
        let entry = f.entry;
        let p = f.blocks[entry].params[0];
        let own = f.append1(entry, Op::Const(1024), &[], Type::I32, 0);
        let what = stored(&mut f, p);
        f.append(entry, Op::Store(WORD), &[own, what], &[], 0);
        let value = f.append1(entry, Op::Load(WORD), &[own], Type::I32, 0);
        let sum = f.append1(entry, Op::Bin(BinOp::Add), &[p, value], Type::I32, 0);
        f.blocks[entry].term = Terminator::Return(vec![]);
        let roots = roots(&f, 2);
        [roots[value], roots[sum], roots[own]]
    }

    #[test]
    fn what_is_loaded_may_be_a_pointer_only_where_one_was_stored() {
        let number = |f: &mut Func, _| f.append1(f.entry, Op::Const(7), &[], Type::I32, 0);
        assert_eq!(loaded(number), [Root::Int, Root::Pointer(0), Root::Int]);
        assert_eq!(loaded(|_, p| p), [Root::Loaded, Root::Pointer(0), Root::Int]);
        // Mixed beyond recognition it may still be one.
        let masked = |f: &mut Func, p| {
            let mask = f.append1(f.entry, Op::Const(0xffff_fffc), &[], Type::I32, 0);
            f.append1(f.entry, Op::Bin(BinOp::And), &[p, mask], Type::I32, 0)
        };
        assert_eq!(loaded(masked), [Root::Loaded, Root::Pointer(0), Root::Int]);
    }
}
