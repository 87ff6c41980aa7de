//! The audited program, running: an interpreter of the intermediate
//! representation that carries a mask of secret bits beside every word of
//! registers, memory and globals, and notes where such a bit decides what the
//! processor does.
//!
//! Memory is byte-wise, so secrecy passes through structures, tables and stack
//! frames as exactly as through registers. Addresses and control flow are
//! those of the concrete run; where a secret decides one, the site is noted
//! and the run goes on as the concrete values say.

use crate::report::Kind;
use crate::taint::{self, Word};
use ciphermill_ir::{
    Block, Func, FuncId, Inst, MemAccess, Module, Op, PAGE_BYTES, SYSTEM_BASE, Space, Target, Terminator, TrapCode,
    Type, Value, mask,
};
use cranelift_entity::EntityRef;
use std::collections::{BTreeMap, BTreeSet};

/// Code addresses of functions, 16 apart; nothing is ever read there.
const CODE_BASE: u64 = 0xe000_0000;

/// Calls in calls; a cipher has a handful.
const MAX_DEPTH: usize = 200;

/// Why a run ended early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Halt {
    Trap(TrapCode, String),
    Endless(String),
}

/// A place in the module: function and byte offset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Site {
    pub func: FuncId,
    pub loc: u32,
}

/// Bytes and, for each, which of its bits are secret.
#[derive(Default)]
pub struct Bytes {
    pub bits: Vec<u8>,
    pub secret: Vec<u8>,
}

impl Bytes {
    fn new(bits: Vec<u8>) -> Bytes {
        Bytes { secret: vec![0; bits.len()], bits }
    }

    fn resize(&mut self, len: usize) {
        self.bits.resize(len, 0);
        self.secret.resize(len, 0);
    }

    fn read(&self, at: usize, bytes: usize) -> Option<Word> {
        let word =
            |from: &[u8]| from.get(at..at + bytes).map(|b| b.iter().rev().fold(0, |w, &byte| w << 8 | u64::from(byte)));
        Some(Word { bits: word(&self.bits)?, secret: word(&self.secret)? })
    }

    fn write(&mut self, at: usize, bytes: usize, word: Word) -> Option<()> {
        self.bits.get_mut(at..at + bytes)?.copy_from_slice(&word.bits.to_le_bytes()[..bytes]);
        self.secret.get_mut(at..at + bytes)?.copy_from_slice(&word.secret.to_le_bytes()[..bytes]);
        Some(())
    }
}

pub struct Machine<'a> {
    module: &'a Module,
    pub linear: Bytes,
    system: Bytes,
    globals: Vec<Word>,
    /// Where secrets decided something.
    pub noted: BTreeMap<(Site, Kind), u64>,
    /// Branches, accesses and divisions that were reached.
    pub reached: BTreeSet<(FuncId, Inst)>,
    /// Functions that were entered.
    pub entered: BTreeSet<FuncId>,
    /// The call each active function stands at.
    calls: Vec<Site>,
    fuel: u64,
}

impl<'a> Machine<'a> {
    /// A fresh instance with at least `bytes` of linear memory.
    pub fn new(module: &'a Module, bytes: u32, fuel: u64) -> Machine<'a> {
        let pages = u64::from(module.memory.min_pages).max(u64::from(bytes).div_ceil(PAGE_BYTES));
        let mut linear = Bytes::new(vec![0; (pages * PAGE_BYTES) as usize]);
        for data in &module.data {
            let at = data.addr as usize;
            if let Some(to) = linear.bits.get_mut(at..at + data.bytes.len()) {
                to.copy_from_slice(&data.bytes);
            }
        }
        let mut system = Bytes::new(module.system.bytes.clone());
        system.write(0, 4, Word::public(pages));
        for r in &module.system.func_refs {
            system.write(r.offset as usize, 4, Word::public(CODE_BASE + 16 * r.func.index() as u64));
        }
        let globals = module.globals.values().map(|g| Word::public(g.init)).collect();
        Machine {
            module,
            linear,
            system,
            globals,
            noted: BTreeMap::new(),
            reached: BTreeSet::new(),
            entered: BTreeSet::new(),
            calls: Vec::new(),
            fuel,
        }
    }

    /// Put bytes into linear memory; secret ones if `secret`.
    pub fn place(&mut self, at: u32, bytes: &[u8], secret: bool) {
        for (i, &byte) in bytes.iter().enumerate() {
            let word = Word { bits: byte.into(), secret: if secret { 0xff } else { 0 } };
            self.linear.write(at as usize + i, 1, word);
        }
    }

    /// Call a function.
    pub fn call(&mut self, id: FuncId, args: &[Word]) -> Result<Vec<Word>, Halt> {
        let func = &self.module.funcs[id];
        if self.calls.len() >= MAX_DEPTH {
            return Err(Halt::Trap(TrapCode::StackOverflow, func.name.clone()));
        }
        self.entered.insert(id);
        let mut values = vec![Word::default(); func.values.len()];
        let mut block = func.entry;
        for (&param, &arg) in func.blocks[block].params.iter().zip(args) {
            values[param.index()] = arg;
        }
        loop {
            let mut last = 0;
            for &inst in &func.blocks[block].insts {
                let loc = func.insts[inst].loc;
                last = if loc != 0 { loc } else { last };
                self.step(id, func, inst, &mut values)?;
            }
            let spent = func.blocks[block].insts.len() as u64 + 1;
            self.fuel = match self.fuel.checked_sub(spent) {
                Some(left) => left,
                None => return Err(Halt::Endless(func.name.clone())),
            };
            let get = |v: Value| values[func.resolve(v).index()];
            let target = match &func.blocks[block].term {
                Terminator::Jump(target) => target,
                Terminator::Branch { cond, then, els } => {
                    let word = get(*cond);
                    self.decide(id, func, block, *cond, word, last);
                    if word.bits as u32 != 0 { then } else { els }
                }
                Terminator::Switch { index, targets, default } => {
                    let word = get(*index);
                    self.decide(id, func, block, *index, word, last);
                    targets.get(word.bits as u32 as usize).unwrap_or(default)
                }
                Terminator::Return(results) => return Ok(results.iter().map(|&v| get(v)).collect()),
                Terminator::Trap(code) => return Err(Halt::Trap(*code, func.name.clone())),
            };
            block = enter(func, target, &mut values);
        }
    }

    /// A branch on `cond`. It has no place of its own, so it gets that of the
    /// comparison before it, or of what comes after.
    fn decide(&mut self, id: FuncId, func: &Func, block: Block, cond: Value, word: Word, last: u32) {
        if !word.is_secret() {
            return;
        }
        let define = func.def_inst(cond);
        let here = define.filter(|i| func.blocks[block].insts.contains(i)).map_or(0, |i| func.insts[i].loc);
        let elsewhere = define.map_or(0, |i| func.insts[i].loc);
        let targets = func.blocks[block].term.targets();
        let mut after = targets.iter().flat_map(|t| &func.blocks[t.block].insts).map(|&i| func.insts[i].loc);
        let after = after.find(|&l| l != 0).unwrap_or(0);
        let loc = [here, last, elsewhere, after].into_iter().find(|&l| l != 0).unwrap_or(0);
        self.note(id, loc, Kind::Branch);
    }

    /// Note a site; one without a place in the module (a runtime function's)
    /// is that of the call that led to it.
    fn note(&mut self, func: FuncId, loc: u32, kind: Kind) {
        let here = Site { func, loc };
        let site = if loc != 0 { here } else { self.calls.iter().rev().copied().find(|s| s.loc != 0).unwrap_or(here) };
        *self.noted.entry((site, kind)).or_insert(0) += 1;
    }

    fn step(&mut self, id: FuncId, func: &Func, inst: Inst, values: &mut [Word]) -> Result<(), Halt> {
        let data = &func.insts[inst];
        let arg = |i: usize| values[func.resolve(data.args[i]).index()];
        let width = |v: Value| func.ty(v).bits();
        let trap = |code| Halt::Trap(code, func.name.clone());
        let result = match data.op {
            Op::Const(c) => Word::public(c),
            Op::Bin(op) => {
                let (a, b, bits) = (arg(0), arg(1), width(data.results[0]));
                if op.may_trap() {
                    self.reached.insert((id, inst));
                    if a.is_secret() || b.is_secret() {
                        self.note(id, data.loc, Kind::Division);
                    }
                }
                let value = op.eval(a.bits, b.bits, bits).ok_or_else(|| match b.bits & mask(bits) {
                    0 => trap(TrapCode::IntegerDivisionByZero),
                    _ => trap(TrapCode::IntegerOverflow),
                })?;
                Word { bits: value, secret: taint::binary(op, a, b, bits) }
            }
            Op::Un(op) => {
                let (a, bits) = (arg(0), width(data.results[0]));
                Word { bits: op.eval(a.bits, bits), secret: taint::unary(op, a, bits) }
            }
            Op::Cmp(op) => {
                let (a, b) = (arg(0), arg(1));
                let bits = width(func.resolve(data.args[0]));
                Word { bits: op.eval(a.bits, b.bits, bits).into(), secret: u64::from(a.is_secret() || b.is_secret()) }
            }
            Op::Select => {
                let (c, a, b) = (arg(0), arg(1), arg(2));
                Word { bits: if c.bits as u32 != 0 { a.bits } else { b.bits }, secret: taint::select(c, a, b) }
            }
            Op::Wrap => Word { bits: arg(0).bits & mask(32), secret: arg(0).secret & mask(32) },
            Op::ZExt => arg(0),
            Op::SExt => Word {
                bits: arg(0).bits as u32 as i32 as i64 as u64,
                secret: arg(0).secret as u32 as i32 as i64 as u64,
            },
            Op::Load(access) => {
                let address = arg(0);
                self.address(id, inst, data.loc, address);
                let bytes = usize::from(access.bytes);
                let word = self
                    .locate(address, access)
                    .and_then(|(memory, at)| memory.read(at, bytes))
                    .ok_or_else(|| trap(TrapCode::MemoryOutOfBounds))?;
                let ty = func.ty(data.results[0]);
                let mut word = Word { bits: extend(word.bits, access, ty), secret: extend(word.secret, access, ty) };
                if address.is_secret() {
                    let low = mask(8 * u32::from(access.bytes)) & ty.mask();
                    word.secret |= if access.signed { ty.mask() } else { low };
                }
                word
            }
            Op::Store(access) => {
                let (address, mut value) = (arg(0), arg(1));
                self.address(id, inst, data.loc, address);
                if address.is_secret() {
                    value.secret = u64::MAX;
                }
                self.locate(address, access)
                    .and_then(|(memory, at)| memory.write(at, access.bytes.into(), value))
                    .ok_or_else(|| trap(TrapCode::MemoryOutOfBounds))?;
                return Ok(());
            }
            Op::GlobalGet(global) => self.globals[global.index()],
            Op::GlobalSet(global) => {
                self.globals[global.index()] = arg(0);
                return Ok(());
            }
            // Made behind this stage only: what is run here has none.
            Op::Apply(_) | Op::Chain(..) => return Err(trap(TrapCode::Unreachable)),
            Op::Call(_) | Op::CallPtr(_) => {
                let args: Vec<Word> = (0..data.args.len()).map(arg).collect();
                let (callee, args) = match data.op {
                    Op::Call(callee) => (callee, &args[..]),
                    _ => {
                        if args[0].is_secret() {
                            self.note(id, data.loc, Kind::IndirectCall);
                        }
                        let index = (args[0].bits.wrapping_sub(CODE_BASE) / 16) as usize;
                        if index >= self.module.funcs.len() {
                            return Err(trap(TrapCode::IndirectCallToNull));
                        }
                        (FuncId::from_u32(index as u32), &args[1..])
                    }
                };
                self.calls.push(Site { func: id, loc: data.loc });
                let results = self.call(callee, args)?;
                self.calls.pop();
                for (&value, word) in data.results.iter().zip(results) {
                    values[value.index()] = word;
                }
                return Ok(());
            }
        };
        values[data.results[0].index()] = result;
        Ok(())
    }

    fn address(&mut self, id: FuncId, inst: Inst, loc: u32, address: Word) {
        self.reached.insert((id, inst));
        if address.is_secret() {
            self.note(id, loc, Kind::Address);
        }
    }

    /// The memory an access means and where in it, if it is in bounds.
    fn locate(&mut self, address: Word, access: MemAccess) -> Option<(&mut Bytes, usize)> {
        let at = (address.bits as u32 as usize).checked_add(access.offset as usize)?;
        match access.space {
            Space::Linear => {
                // The module's own code may have grown the memory.
                let pages = self.system.read(0, 4)?.bits;
                let bytes = (pages * PAGE_BYTES) as usize;
                if bytes > self.linear.bits.len() {
                    self.linear.resize(bytes);
                }
                Some((&mut self.linear, at))
            }
            Space::System => Some((&mut self.system, at.checked_sub(SYSTEM_BASE as usize)?)),
            Space::Stack | Space::Flash => None,
        }
    }
}

/// Hand the target's arguments over, all at once.
fn enter(func: &Func, target: &Target, values: &mut [Word]) -> Block {
    let args: Vec<Word> = target.args.iter().map(|&v| values[func.resolve(v).index()]).collect();
    for (&param, arg) in func.blocks[target.block].params.iter().zip(args) {
        values[param.index()] = arg;
    }
    target.block
}

/// A loaded word, or its mask, in the type of the load's result.
fn extend(word: u64, access: MemAccess, ty: Type) -> u64 {
    match access.signed {
        true => ciphermill_ir::sext(word, 8 * u32::from(access.bytes)) as u64 & ty.mask(),
        false => word,
    }
}
