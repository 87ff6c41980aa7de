//! Values of 32 bits as several words, for machines whose words have 8 or 16.
//!
//! The words of a value are its limbs, lowest first. Each function is rebuilt block by block, as the
//! split of 64 bits into 32 does it (`lower64`): a value becomes its limbs in signatures, parameters,
//! results and calls. A limb stays an `I32` with zeros above. Of every value only those limbs are made
//! that somebody looks at ([`demand`]) and that are not known to be zero, so code that computes with
//! bytes in wider variables comes out as code for bytes.
//!
//! * **Sums, differences, comparisons** are chains of instructions that hand a carry on: one operation
//!   ([`Op::Chain`]), which no later stage can take apart.
//! * **Shifts and rotates** by whole limbs rename; what is left are chains that move by one bit, to
//!   whichever side is nearer. By a variable amount they are loops of such chains.
//! * **Products** are sums of products of two limbs.
//! * **Accesses** of several words are several accesses; the effective address is 16 bits wide.
//! * **A selection** by mask takes the same time for both values.
//! * **What has been recognised** ([`Op::Apply`]) takes and gives lowest limbs, or all limbs of values ([`Known`]).
//!
//! A comparison that a branch in its own block asks for stands right before that branch.

mod arith;
mod calls;
mod counters;
mod demand;
mod emit;
mod ends;
mod fields;
mod halves;
mod memory;
mod own;
mod pointers;
mod shifts;
mod wide;
mod width;

use crate::dce;
use crate::edit;
use crate::error::OptError;
use crate::options::Options;
use crate::simplify_cfg;
use ciphermill_ir::bits::Masks;
use ciphermill_ir::{BinOp, Block, Cfg, Func, GlobalId, InstData, Module, Op, SYSTEM_BASE, Signature, Type, Value};
use cranelift_entity::SecondaryMap;
use demand::Demand;
use emit::Emit;
use std::collections::HashMap;
use width::Limbs;

pub use width::{Known, Narrow};

/// Split all values of a module, which has none of 64 bits, into words of `narrow.bits`.
///
/// # Errors
/// [`OptError::Narrow`] for what such a machine cannot have.
pub fn lower(module: &mut Module, narrow: Narrow, known: Known<'_>) -> Result<(), OptError> {
    wide::expand(module);
    let count = (32 / narrow.bits) as usize;
    let widen = |types: &[Type]| vec![Type::I32; types.len() * count];
    let slots: SecondaryMap<GlobalId, u32> = {
        let mut slots = SecondaryMap::new();
        module.globals.iter().for_each(|(id, g)| slots[id] = SYSTEM_BASE + g.system_offset);
        slots
    };
    let own_address = own::address(module);
    let ids: Vec<_> = module.funcs.keys().collect();
    for id in ids {
        let old = std::mem::replace(&mut module.funcs[id], Func::new("", Signature::default()));
        module.funcs[id] = Lower::new(old, narrow, known, &slots, own_address).run()?;
    }
    for sig in module.sigs.values_mut() {
        *sig = Signature { params: widen(&sig.params), results: widen(&sig.results) };
    }
    let options = Options::default();
    for pass in [dce::run, simplify_cfg::run, dce::run] {
        pass(module, &options);
    }
    for func in module.funcs.values_mut() {
        edit::remove_unreachable(func);
        edit::in_order(func);
        pointers::gather(func);
    }
    Ok(())
}

struct Lower<'a> {
    old: Func,
    masks: Masks,
    demand: Demand,
    emit: Emit,
    narrow: Narrow,
    known: Known<'a>,
    blocks: SecondaryMap<Block, Option<Block>>,
    map: SecondaryMap<Value, Option<Limbs>>,
    /// Words of ones or zeros for values that are 1 or 0.
    flags: HashMap<Value, Value>,
    slots: &'a SecondaryMap<GlobalId, u32>,
    /// Where the system area's own address stands.
    own_address: Option<u32>,
    /// What a block has loaded from there.
    system_start: Option<(Block, Limbs)>,
}

impl<'a> Lower<'a> {
    fn new(
        mut old: Func,
        narrow: Narrow,
        known: Known<'a>,
        slots: &'a SecondaryMap<GlobalId, u32>,
        own_address: Option<u32>,
    ) -> Lower<'a> {
        let count = (32 / narrow.bits) as usize;
        let sig = Signature {
            params: vec![Type::I32; old.sig.params.len() * count],
            results: vec![Type::I32; old.sig.results.len() * count],
        };
        let counters = counters::bits(&mut old);
        let emit = Emit::new(Func::new(old.name.clone(), sig), narrow);
        let (masks, demand) = (Masks::within(&old, &counters), Demand::new(&old, narrow.bits, known));
        Lower {
            old,
            masks,
            demand,
            emit,
            narrow,
            known,
            blocks: SecondaryMap::new(),
            map: SecondaryMap::new(),
            flags: HashMap::new(),
            slots,
            own_address,
            system_start: None,
        }
    }

    fn count(&self) -> usize {
        (32 / self.narrow.bits) as usize
    }

    fn run(mut self) -> Result<Func, OptError> {
        let cfg = Cfg::new(&self.old);
        let layout: Vec<Block> = self.old.layout.iter().copied().filter(|&b| cfg.is_reachable(b)).collect();
        self.emit.func.layout.clear();
        for &block in &layout {
            let new = if block == self.old.entry {
                self.emit.func.layout.push(self.emit.func.entry);
                self.emit.func.entry
            } else {
                self.emit.func.add_block()
            };
            self.blocks[block] = Some(new);
        }
        for &block in &layout {
            self.params(block);
        }
        for &block in &cfg.rpo {
            self.emit.at(self.block(block));
            for inst in self.old.blocks[block].insts.clone() {
                let data = self.old.insts[inst].clone();
                self.emit.loc = data.loc;
                self.inst(&data)?;
            }
            self.term(block);
        }
        Ok(self.emit.func)
    }

    fn block(&self, old: Block) -> Block {
        self.blocks[old].unwrap_or(self.emit.func.entry)
    }

    /// Is the limb looked at, and may it be other than zero?
    fn wanted(&self, v: Value, limb: usize) -> bool {
        let v = self.old.resolve(v);
        self.demand.of(v) >> limb & 1 != 0
            && self.masks.possible(&self.old, v) >> (limb as u32 * self.narrow.bits) & self.emit.ones() != 0
    }

    /// The lowest and the end of the wanted limbs.
    fn span(&self, v: Value) -> (usize, usize) {
        let wanted = |&k: &usize| self.wanted(v, k);
        let end = (0..self.count()).rev().find(wanted).map_or(0, |k| k + 1);
        ((0..self.count()).find(wanted).unwrap_or(0), end)
    }

    fn params(&mut self, old: Block) {
        let new = self.block(old);
        // The entry's parameters exist: the signature made them.
        let mut ready = self.emit.func.blocks[new].params.clone().into_iter();
        self.emit.at(new);
        let count = self.count();
        for param in self.old.blocks[old].params.clone() {
            let limbs = if old == self.old.entry {
                ready.by_ref().take(count).collect()
            } else {
                (0..count)
                    .map(|k| {
                        if self.wanted(param, k) {
                            self.emit.func.add_param(new, Type::I32)
                        } else {
                            self.emit.constant(0)
                        }
                    })
                    .collect()
            };
            self.map[param] = Some(limbs);
        }
    }

    /// Definitions are met first, so there always are limbs.
    fn limbs(&self, old: Value) -> Limbs {
        let old = self.old.resolve(old);
        match &self.map[old] {
            Some(limbs) => limbs.clone(),
            None => unreachable!("{old} of {:?} is used before its definition", self.old.name),
        }
    }

    fn all(&self, old: &[Value]) -> Vec<Value> {
        old.iter().flat_map(|&v| self.limbs(v)).collect()
    }

    fn refused(&self, what: &'static str) -> OptError {
        OptError::Narrow { func: self.old.name.clone(), what }
    }

    fn inst(&mut self, data: &InstData) -> Result<(), OptError> {
        let count = self.count();
        match data.op {
            Op::Call(_) | Op::CallPtr(_) => {
                self.call(data);
                return Ok(());
            }
            Op::Store(access) => return self.store(data, access),
            Op::GlobalSet(global) if self.known.registers.contains(&global) => {
                let value = self.limbs(data.args[0]);
                self.emit.results(data.op, &value[..1], 0);
                return Ok(());
            }
            Op::GlobalSet(global) => {
                let value = self.limbs(data.args[0]);
                for (k, &limb) in value.iter().enumerate() {
                    self.emit.store_word(self.slots[global], k, limb);
                }
                return Ok(());
            }
            _ => {}
        }
        let result = data.results[0];
        if self.demand.of(result) == 0 {
            let zero = self.emit.constant(0);
            self.map[result] = Some(std::iter::repeat_n(zero, count).collect());
            return Ok(());
        }
        let mut limbs = self.value(data, result)?;
        limbs.resize(count, self.emit.constant(0));
        for k in 0..count {
            if !self.wanted(result, k) {
                limbs[k] = self.emit.constant(0);
            }
        }
        self.map[result] = Some(limbs);
        Ok(())
    }

    /// The limbs of an operation's result; those above the last one are zero.
    fn value(&mut self, data: &InstData, result: Value) -> Result<Limbs, OptError> {
        let (low, end) = self.span(result);
        if data.op == Op::Bin(BinOp::And)
            && let Some(field) = self.field(data)
        {
            return Ok(field);
        }
        let arg = |n: usize| self.limbs(data.args[n]);
        Ok(match data.op {
            Op::Const(c) => self.emit.number(c as u32),
            Op::Bin(op @ (BinOp::And | BinOp::Or | BinOp::Xor)) => {
                let (a, b) = (arg(0), arg(1));
                (0..end).map(|k| self.emit.bitwise(op, a[k], b[k])).collect()
            }
            Op::Bin(BinOp::Add) => {
                let (a, b) = (arg(0), arg(1));
                self.emit.add(&a[..end], &b[..end])
            }
            Op::Bin(BinOp::Sub) if self.old.as_const(data.args[0]) == Some(0) && self.is_bit(data.args[1]) => {
                let mask = self.mask(data.args[1]);
                std::iter::repeat_n(mask, end).collect()
            }
            Op::Bin(BinOp::Mul) if self.is_bit(data.args[0]) || self.is_bit(data.args[1]) => {
                let bit = usize::from(!self.is_bit(data.args[0]));
                let other = arg(1 - bit);
                let mask = self.mask(data.args[bit]);
                (0..end).map(|k| self.emit.bitwise(BinOp::And, other[k], mask)).collect()
            }
            Op::Bin(BinOp::Sub) => {
                let (a, b) = (arg(0), arg(1));
                self.emit.sub(&a[..end], &b[..end])
            }
            Op::Bin(BinOp::Mul) => {
                let (a, b) = (arg(0), arg(1));
                self.emit.mul(&a, &b, end)
            }
            Op::Bin(op @ (BinOp::MulHiU | BinOp::MulHiS)) => {
                let (a, b) = (arg(0), arg(1));
                self.emit.mul_high(op, &a, &b)
            }
            Op::Bin(op @ (BinOp::Shl | BinOp::ShrU | BinOp::ShrS | BinOp::RotL | BinOp::RotR)) => {
                let a = arg(0);
                match self.old.as_const(data.args[1]) {
                    Some(n) => self.emit.shift(op, &a, (n % 32) as u32, low..end),
                    None => {
                        let amount = arg(1)[0];
                        self.emit.shift_by(op, &a, amount)
                    }
                }
            }
            Op::Bin(BinOp::DivU | BinOp::DivS | BinOp::RemU | BinOp::RemS) => {
                return Err(self.refused("divides, which such machines do by a call"));
            }
            Op::Un(op) => {
                let a = arg(0);
                self.emit.unary(op, &a)
            }
            Op::Cmp(op) => {
                let (a, b) = (arg(0), arg(1));
                let mask = self.emit.holds(op, &a, &b);
                self.flags.insert(result, mask);
                let one = self.emit.constant(1);
                Limbs::from_slice(&[self.emit.bitwise(BinOp::And, mask, one)])
            }
            Op::Select => {
                let (a, b) = (arg(1), arg(2));
                let mask = self.mask(data.args[0]);
                (0..end).map(|k| self.emit.choose(mask, a[k], b[k])).collect()
            }
            Op::Load(access) => self.load(data.args[0], access, result)?,
            Op::Apply(function) => {
                let taken = if self.known.is_whole(function) { self.count() } else { 1 };
                let args: Vec<Value> = data.args.iter().flat_map(|&v| self.limbs(v).into_iter().take(taken)).collect();
                self.emit.results(data.op, &args, taken).into_iter().collect()
            }
            Op::GlobalGet(global) => {
                let at = self.slots[global];
                (0..end).map(|k| self.emit.load_word(at, k)).collect()
            }
            _ => return Err(self.refused("computes with values of 64 bits, or what only other machines do")),
        })
    }

    /// Is a value, which is no constant, 0 or 1?
    fn is_bit(&self, v: Value) -> bool {
        self.masks.possible(&self.old, v) == 1 && self.old.as_const(v).is_none()
    }

    /// A word of ones where a value is not zero.
    fn mask(&mut self, v: Value) -> Value {
        let v = self.old.resolve(v);
        if let Some(&mask) = self.flags.get(&v) {
            return mask;
        }
        if let Some(limb) = self.sign_bit(v) {
            return self.emit.sign(limb);
        }
        let limbs = self.limbs(v);
        self.emit.not_zero(&limbs)
    }

    /// The limb whose highest bit a value is.
    fn sign_bit(&self, v: Value) -> Option<Value> {
        let data = |v: Value| self.old.def_inst(v).map(|i| &self.old.insts[i]);
        let mut shift = data(v).filter(|_| self.is_bit(v))?;
        if shift.op == Op::Bin(BinOp::And) && self.old.as_const(shift.args[1]) == Some(1) {
            shift = data(shift.args[0])?;
        }
        let by = self.old.as_const(shift.args.get(1).copied()?)? as u32;
        let from = self.old.resolve(shift.args[0]);
        let limb = (by / self.narrow.bits) as usize;
        let whole = shift.op == Op::Bin(BinOp::ShrU) && by < 32 && by % self.narrow.bits == self.narrow.bits - 1;
        (whole && self.wanted(from, limb)).then(|| self.limbs(from)[limb])
    }
}
