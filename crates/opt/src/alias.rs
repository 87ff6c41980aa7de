//! Which accesses can touch the same bytes.
//!
//! An address operand is taken apart into a base value and a constant,
//! `base + c` modulo 2^32. Two accesses that do not trap have exact positions
//! relative to a common base, so they overlap just when their byte ranges do,
//! modulo 2^32. Otherwise bounds on the addresses may show them
//! apart: a sum of a constant and a value with known zero bits lies in a
//! range, as the index into a table does. The range may begin behind a base that both have,
//! as the tables of one structure do.
//!
//! Two more facts come from outside: accesses in different [`Space`]s never
//! meet (the loader keeps globals, which have operations of their own, in
//! slots that no load or store names), and nothing is written to a read-only
//! data segment. An access proven to lie in one is *constant*: it cannot trap
//! and always reads the same. A third kind of fact is a promise about the
//! buffers that an exported function is given, see [`crate::bases`]; it counts
//! after [`Aliases::enter`] has been told which function is looked at.

use crate::bases::{Bases, Promises};
use crate::options::Options;
use ciphermill_ir::bits;
use ciphermill_ir::{BinOp, Func, FuncId, Inst, MemAccess, Module, Op, PAGE_BYTES, Space, Value};

/// An access: address operand and shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub addr: Value,
    pub access: MemAccess,
}

impl Place {
    fn bytes(&self) -> u64 {
        u64::from(self.access.bytes)
    }
}

/// What alias questions need to know of the module.
pub(crate) struct Aliases {
    /// Bytes of linear memory at the start.
    memory_bytes: u64,
    /// Read-only segments as `(start, end)`, sorted.
    readonly: Vec<(u64, u64)>,
    promises: Promises,
    /// Of the function entered last; empty where nothing is promised.
    bases: Bases,
    /// Pointers of that function, and how many bytes they point to.
    sizes: Vec<(Value, u64)>,
}

impl Aliases {
    /// With what the options promise about functions of this module.
    pub(crate) fn with_promises(module: &Module, options: &Options) -> Aliases {
        Aliases { promises: Promises::new(module, options), ..Aliases::new(module) }
    }

    /// Turn to a function. Values made afterwards are known not to be derived
    /// from anything, which is safe.
    pub(crate) fn enter(&mut self, id: FuncId, func: &Func) {
        self.bases = self.promises.bases(id, func);
        self.sizes = self.promises.sizes(id, func);
    }

    pub(crate) fn new(module: &Module) -> Aliases {
        let span = |i: usize| {
            let s = &module.data[i];
            (u64::from(s.addr), u64::from(s.addr) + s.bytes.len() as u64)
        };
        let mut readonly: Vec<(u64, u64)> = (0..module.data.len())
            .filter(|&i| module.data[i].readonly)
            .map(span)
            .filter(|&(start, end)| start < end)
            .collect();
        readonly.sort_unstable();
        Aliases {
            memory_bytes: u64::from(module.memory.min_pages) * PAGE_BYTES,
            readonly,
            promises: Promises::default(),
            bases: Bases::default(),
            sizes: Vec::new(),
        }
    }

    /// Least and largest effective address of the first byte. The address
    /// operand may be a sum that wraps; then the bounds are those of any word.
    fn range(func: &Func, place: Place) -> (u64, u64) {
        let (base, c) = split(func, place.addr);
        let offset = u64::from(place.access.offset);
        let most = base.map_or(0, |b| bits::possible(func, b));
        let (low, high) = match u64::from(c) + most {
            sum if sum <= u64::from(u32::MAX) => (u64::from(c), sum),
            _ => (0, bits::possible(func, place.addr)),
        };
        (low + offset, high + offset)
    }

    /// True when the access cannot trap: it ends inside the memory the module
    /// starts with, and memory never shrinks.
    pub(crate) fn in_bounds(&self, func: &Func, addr: Value, access: MemAccess) -> bool {
        let (_, high) = Self::range(func, Place { addr, access });
        let end = high + u64::from(access.bytes);
        access.space == Space::Linear && end <= self.memory_bytes
    }

    /// True when the access lies in a buffer whose size is promised.
    pub(crate) fn in_buffer(&self, func: &Func, place: Place) -> bool {
        let (Some(base), c) = split(func, place.addr) else { return false };
        let start = u64::from(c) + u64::from(place.access.offset);
        place.access.space == Space::Linear
            && self.sizes.iter().any(|&(v, bytes)| v == base && start + place.bytes() <= bytes)
    }

    /// True when the access lies in a read-only segment for certain.
    pub(crate) fn is_constant(&self, func: &Func, addr: Value, access: MemAccess) -> bool {
        if access.space != Space::Linear || self.readonly.is_empty() {
            return false;
        }
        let (low, high) = Self::range(func, Place { addr, access });
        let end = high + u64::from(access.bytes);
        let i = self.readonly.partition_point(|&(start, _)| start <= low);
        i > 0 && end <= self.readonly[i - 1].1
    }

    /// Can the instruction trap, or call something that can?
    pub(crate) fn may_trap(&self, func: &Func, inst: Inst) -> bool {
        let data = &func.insts[inst];
        match data.op {
            Op::Load(access) | Op::Store(access) => !self.in_bounds(func, data.args[0], access),
            Op::Bin(op) if op.may_trap() => division_may_trap(func, op, data.args[1]),
            Op::Call(_) | Op::CallPtr(_) => true,
            _ => false,
        }
    }

    /// Can the two accesses touch a common byte, given that neither traps?
    pub(crate) fn may_alias(&self, func: &Func, a: Place, b: Place) -> bool {
        if a.access.space != b.access.space {
            return false;
        }
        let ((base_a, ca), (base_b, cb)) = (split(func, a.addr), split(func, b.addr));
        if base_a == base_b {
            let at = |c: u32, p: Place| c.wrapping_add(p.access.offset);
            let distance = u64::from(at(cb, b).wrapping_sub(at(ca, a)));
            return distance < a.bytes() || (1u64 << 32) - distance < b.bytes();
        }
        if a.access.space == Space::Linear && self.bases.disjoint(func.resolve(a.addr), func.resolve(b.addr)) {
            return false;
        }
        let (behind_a, behind_b) = (Behind::of(func, a), Behind::of(func, b));
        if behind_a.base == behind_b.base && behind_a.apart(&behind_b) {
            return false;
        }
        let ((low_a, high_a), (low_b, high_b)) = (Self::range(func, a), Self::range(func, b));
        low_a < high_b + b.bytes() && low_b < high_a + a.bytes()
    }

    /// As [`Aliases::may_alias`] with a store: read-only data is out of reach.
    pub(crate) fn store_may_touch(&self, func: &Func, store: Place, load: Place) -> bool {
        self.may_alias(func, store, load) && !self.is_constant(func, load.addr, load.access)
    }
}

/// A larger value, in an address, is no index but a pointer.
const LARGEST_INDEX: u64 = (1 << 24) - 1;
/// Indices of one address.
const MOST_INDICES: usize = 4;

/// Where an access begins behind a base, modulo 2^32: at the first of some bytes, or behind it within them.
struct Behind {
    base: Option<Value>,
    first: u32,
    /// From the first byte that it may touch to the one behind the last.
    bytes: u64,
}

impl Behind {
    fn of(func: &Func, place: Place) -> Behind {
        let (mut base, mut first) = split(func, place.addr);
        let mut bytes = place.bytes();
        for _ in 0..MOST_INDICES {
            let Some(inst) = base.and_then(|v| func.def_inst(v)) else { break };
            let data = &func.insts[inst];
            if data.op != Op::Bin(BinOp::Add) {
                break;
            }
            let [most, other] = [0, 1].map(|i| bits::possible(func, data.args[i]));
            let (rest, index) = if other <= most { (0, other) } else { (1, most) };
            if index > LARGEST_INDEX {
                break;
            }
            bytes += index;
            let (inner, c) = split(func, data.args[rest]);
            (base, first) = (inner, first.wrapping_add(c));
        }
        Behind { base, first: first.wrapping_add(place.access.offset), bytes }
    }

    /// With the same base, do their bytes never overlap?
    fn apart(&self, other: &Behind) -> bool {
        let distance = u64::from(other.first.wrapping_sub(self.first));
        distance >= self.bytes && distance + other.bytes <= 1 << 32
    }
}

/// Division traps by 0, and signed division of the least number by -1.
pub(crate) fn division_may_trap(func: &Func, op: BinOp, divisor: Value) -> bool {
    match func.as_const(divisor) {
        None | Some(0) => true,
        Some(c) => op == BinOp::DivS && c == func.ty(divisor).mask(),
    }
}

/// An address as base (none for a constant) plus constant, modulo 2^32.
pub(crate) fn split(func: &Func, addr: Value) -> (Option<Value>, u32) {
    let mut base = func.resolve(addr);
    let mut sum = 0u32;
    while let Some(inst) = func.def_inst(base) {
        let data = &func.insts[inst];
        match data.op {
            Op::Const(c) => return (None, sum.wrapping_add(c as u32)),
            Op::Bin(BinOp::Add) => match func.as_const(data.args[1]) {
                Some(c) => {
                    sum = sum.wrapping_add(c as u32);
                    base = func.resolve(data.args[0]);
                }
                None => break,
            },
            _ => break,
        }
    }
    (Some(base), sum)
}
