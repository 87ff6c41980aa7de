//! Appending operations on limbs to the function being built.

use super::width::{Limbs, Narrow};
use ciphermill_ir::{
    BinOp, Block, Chain, CmpOp, Func, MemAccess, Op, SYSTEM_BASE, Space, Target, Terminator, Type, Value, ValueDef,
    bits,
};
use std::collections::HashMap;

/// A function under construction and where the next instruction goes.
pub(super) struct Emit {
    pub func: Func,
    pub block: Block,
    pub loc: u32,
    /// Bits of a limb.
    pub bits: u32,
    /// Do comparisons of several limbs say whether all of them are equal?
    compares_all: bool,
    /// What the block has computed already.
    known: HashMap<(Op, Vec<Value>), Vec<Value>>,
}

impl Emit {
    pub fn new(func: Func, narrow: Narrow) -> Emit {
        let (block, Narrow { bits, compares_all, .. }) = (func.entry, narrow);
        Emit { func, block, loc: 0, bits, compares_all, known: HashMap::new() }
    }

    /// Go on at the end of a block.
    pub fn at(&mut self, block: Block) {
        self.block = block;
        self.known.clear();
    }

    /// A new block right behind this one in the layout.
    pub fn new_block(&mut self) -> Block {
        let new = self.func.add_block();
        self.func.layout.pop();
        let here = self.func.layout.iter().position(|&b| b == self.block).unwrap_or(self.func.layout.len() - 1);
        self.func.layout.insert(here + 1, new);
        new
    }

    pub fn end(&mut self, term: Terminator) {
        self.func.blocks[self.block].term = term;
    }

    /// A limb of ones.
    pub fn ones(&self) -> u64 {
        ciphermill_ir::mask(self.bits)
    }

    /// Append an instruction, or find it, and give its results.
    pub fn results(&mut self, op: Op, args: &[Value], count: usize) -> Vec<Value> {
        let key = op.is_pure().then(|| (op, args.to_vec()));
        if let Some(found) = key.as_ref().and_then(|key| self.known.get(key)) {
            return found.clone();
        }
        let inst = self.func.append(self.block, op, args, &vec![Type::I32; count], self.loc);
        let results = self.func.insts[inst].results.to_vec();
        if let Some(key) = key {
            self.known.insert(key, results.clone());
        }
        results
    }

    pub fn one(&mut self, op: Op, args: &[Value]) -> Value {
        self.results(op, args, 1)[0]
    }

    pub fn constant(&mut self, c: u64) -> Value {
        self.one(Op::Const(c), &[])
    }

    /// A number as limbs.
    pub fn number(&mut self, c: u32) -> Limbs {
        let (bits, ones) = (self.bits, self.ones());
        (0..32 / bits).map(|k| self.constant(u64::from(c) >> (k * bits) & ones)).collect()
    }

    pub fn constant_of(&self, v: Value) -> Option<u64> {
        self.func.as_const(v)
    }

    pub fn is_zero(&self, v: Value) -> bool {
        self.constant_of(v) == Some(0)
    }

    pub fn chain(&mut self, chain: Chain, args: &[Value]) -> Vec<Value> {
        let width = self.bits;
        let constants: Option<Vec<u64>> = args.iter().map(|&v| self.constant_of(v)).collect();
        if let Some(constants) = constants {
            return chain.eval(&constants, width).into_iter().map(|c| self.constant(c)).collect();
        }
        // A word without a sign needs no zero brought in: some machines have to make it first.
        let positive = chain == Chain::ShrU && args.last().is_some_and(|&top| self.is_positive(top));
        let chain = if positive { Chain::ShrS } else { chain };
        self.results(Op::Chain(chain, width as u8), args, chain.results(args.len()))
    }

    /// Is the highest bit of a limb known to be zero?
    fn is_positive(&self, v: Value) -> bool {
        let shifted = match self.func.values[self.func.resolve(v)].def {
            ValueDef::Inst(inst, index) => {
                let data = &self.func.insts[inst];
                matches!(data.op, Op::Chain(Chain::ShrU, _)) && usize::from(index) + 1 == data.results.len()
            }
            _ => false,
        };
        shifted || bits::possible(&self.func, v) >> (self.bits - 1) == 0
    }

    /// And, or, xor of two limbs.
    pub fn bitwise(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        let (a, b) = if self.constant_of(a).is_some() { (b, a) } else { (a, b) };
        let ones = self.ones();
        match (op, self.constant_of(a), self.constant_of(b)) {
            (_, Some(x), Some(y)) => self.constant(op.eval(x, y, 32).unwrap_or(0)),
            (BinOp::And, _, Some(0)) => b,
            (BinOp::Or, _, Some(y)) if y == ones => b,
            (BinOp::And, _, Some(y)) if bits::possible(&self.func, a) & ones & !y == 0 => a,
            (BinOp::Or | BinOp::Xor, _, Some(0)) => a,
            _ if a == b => match op {
                BinOp::Xor => self.constant(0),
                _ => a,
            },
            _ => {
                let (a, b) = if self.constant_of(b).is_none() && b < a { (b, a) } else { (a, b) };
                self.one(Op::Bin(op), &[a, b])
            }
        }
    }

    /// `a` where the mask has ones, `b` where it has zeros.
    pub fn choose(&mut self, mask: Value, a: Value, b: Value) -> Value {
        if a == b {
            return a;
        }
        if self.is_zero(b) {
            return self.bitwise(BinOp::And, a, mask);
        }
        let differ = self.bitwise(BinOp::Xor, a, b);
        let differ = self.bitwise(BinOp::And, differ, mask);
        self.bitwise(BinOp::Xor, differ, b)
    }

    /// A word of ones where some limb is not zero.
    pub fn not_zero(&mut self, limbs: &[Value]) -> Value {
        let zero = self.constant(0);
        let any = limbs.iter().fold(zero, |any, &limb| self.bitwise(BinOp::Or, any, limb));
        self.chain(Chain::Below, &[zero, any])[0]
    }

    /// A word of ones where a comparison holds.
    pub fn holds(&mut self, op: CmpOp, a: &[Value], b: &[Value]) -> Value {
        let ones = self.constant(self.ones());
        match op {
            CmpOp::Eq | CmpOp::Ne => {
                let differ: Vec<Value> = a.iter().zip(b).map(|(&a, &b)| self.bitwise(BinOp::Xor, a, b)).collect();
                let unequal = self.not_zero(&differ);
                if op == CmpOp::Ne { unequal } else { self.bitwise(BinOp::Xor, unequal, ones) }
            }
            CmpOp::LtU => {
                let args = trimmed(self, a, b);
                self.chain(Chain::Below, &args)[0]
            }
            CmpOp::LtS => {
                let (a, b) = (self.flipped(a), self.flipped(b));
                self.holds(CmpOp::LtU, &a, &b)
            }
            CmpOp::LeU | CmpOp::LeS => {
                let less = self.holds(if op == CmpOp::LeU { CmpOp::LtU } else { CmpOp::LtS }, b, a);
                self.bitwise(BinOp::Xor, less, ones)
            }
        }
    }

    /// With the sign the other way, so that signed order becomes unsigned order.
    fn flipped(&mut self, a: &[Value]) -> Limbs {
        let mut a: Limbs = a.iter().copied().collect();
        let sign = self.constant(1 << (self.bits - 1));
        if let Some(top) = a.last_mut() {
            *top = self.bitwise(BinOp::Xor, *top, sign);
        }
        a
    }

    /// A branch, with its comparison right before it.
    pub fn branch(&mut self, op: CmpOp, a: &[Value], b: &[Value], then: Target, els: Target) -> Terminator {
        // Machines compare in one direction, and branch on less or not less.
        let (op, a, b, then, els) = match op {
            CmpOp::LeU => (CmpOp::LtU, b, a, els, then),
            CmpOp::LeS => (CmpOp::LtS, b, a, els, then),
            _ => (op, a, b, then, els),
        };
        let (mut op, tops) = (op, (a[a.len() - 1], b[b.len() - 1]));
        if op == CmpOp::LtS && self.is_zero(tops.0) && self.is_zero(tops.1) {
            op = CmpOp::LtU;
        }
        if matches!(op, CmpOp::Eq | CmpOp::Ne) && !self.compares_all {
            let mut differ = a.iter().zip(b).filter(|(a, b)| a != b).map(|(&a, &b)| (a, b));
            let (first, rest): (Option<(Value, Value)>, Vec<_>) = (differ.next(), differ.collect());
            if let (Some((a, b)), false) = (first, rest.is_empty()) {
                let (x, y): (Vec<Value>, Vec<Value>) = rest.into_iter().unzip();
                return self.branch_apart(op, (a, b), (&x, &y), then, els);
            }
        }
        let args = match op {
            CmpOp::LtS => [a, b].concat(),
            CmpOp::Eq | CmpOp::Ne => {
                let zero = self.constant(0);
                let (mut x, mut y) = (Vec::new(), Vec::new());
                for (&a, &b) in a.iter().zip(b).filter(|(a, b)| a != b) {
                    // A constant stands on the right.
                    let (a, b) = if self.constant_of(a).is_some() { (b, a) } else { (a, b) };
                    x.push(a);
                    y.push(b);
                }
                if x.is_empty() {
                    (x, y) = (vec![zero], vec![zero]);
                }
                // An immediate fits the first comparison of a chain only.
                let first = y.iter().position(|&v| self.constant_of(v).is_some_and(|c| c != 0)).unwrap_or(0);
                x.swap(0, first);
                y.swap(0, first);
                [x, y].concat()
            }
            _ => trimmed(self, a, b),
        };
        let constants: Option<Vec<u64>> = args.iter().map(|&v| self.constant_of(v)).collect();
        if let Some(constants) = constants {
            let holds = Chain::Compare(op).eval(&constants, self.bits)[0] != 0;
            return Terminator::Jump(if holds { then } else { els });
        }
        // Never one that stands further up.
        let (loc, bits) = (self.loc, self.bits as u8);
        let cond = self.func.append1(self.block, Op::Chain(Chain::Compare(op), bits), &args, Type::I32, loc);
        Terminator::Branch { cond, then, els }
    }

    /// A branch on equality, one limb after the other.
    fn branch_apart(
        &mut self,
        op: CmpOp,
        first: (Value, Value),
        rest: (&[Value], &[Value]),
        then: Target,
        els: Target,
    ) -> Terminator {
        let unequal = if op == CmpOp::Ne { then.clone() } else { els.clone() };
        let next = self.new_block();
        let apart = self.branch(CmpOp::Ne, &[first.0], &[first.1], unequal, Target::new(next, vec![]));
        self.end(apart);
        self.at(next);
        self.branch(op, rest.0, rest.1, then, els)
    }

    /// A word of the system area.
    pub fn load_word(&mut self, slot: u32, k: usize) -> Value {
        let (at, access) = self.slot(slot, k);
        self.one(Op::Load(access), &[at])
    }

    pub fn store_word(&mut self, slot: u32, k: usize, value: Value) {
        let (at, access) = self.slot(slot, k);
        self.results(Op::Store(access), &[at, value], 0);
    }

    fn slot(&mut self, slot: u32, k: usize) -> (Value, MemAccess) {
        let bytes = (self.bits / 8) as u8;
        let at = self.constant(u64::from(slot.max(SYSTEM_BASE) + k as u32 * u32::from(bytes)));
        (at, MemAccess { bytes, signed: false, align: bytes, offset: 0, space: Space::System })
    }
}

/// Operands of a comparison without the limbs that are zero on top of both.
fn trimmed(emit: &Emit, a: &[Value], b: &[Value]) -> Vec<Value> {
    let used = a.iter().zip(b).rposition(|(&a, &b)| !(emit.is_zero(a) && emit.is_zero(b))).map_or(1, |k| k + 1);
    [&a[..used], &b[..used]].concat()
}
