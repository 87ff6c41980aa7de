//! A plain interpreter of the intermediate representation.
//!
//! As literal as can be: values in a table, one match on the operation. It is
//! only as fast as tests need.

use ciphermill_ir::{
    Func, FuncId, GlobalId, MemAccess, Module, Op, PAGE_BYTES, SYSTEM_BASE, Space, Target, Terminator, TrapCode, Value,
    ops,
};
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    Values(Vec<u64>),
    Trap(TrapCode),
    OutOfFuel,
}

/// Code address of function 0, and bytes between functions.
const CODE: u32 = 0xE000_0000;
const CODE_STEP: u32 = 16;
const MAX_DEPTH: u32 = 200;
/// Bytes of system area beyond the image.
const SYSTEM_EXTRA: usize = 4096;

pub struct Interp<'m> {
    module: &'m Module,
    pub memory: Vec<u8>,
    pub system: Vec<u8>,
    pub globals: PrimaryMap<GlobalId, u64>,
    fuel: u64,
    depth: u32,
}

impl<'m> Interp<'m> {
    pub fn new(module: &'m Module, fuel: u64) -> Interp<'m> {
        let mut memory = vec![0; (u64::from(module.memory.min_pages) * PAGE_BYTES) as usize];
        for segment in &module.data {
            let at = segment.addr as usize;
            memory[at..at + segment.bytes.len()].copy_from_slice(&segment.bytes);
        }
        let mut system = module.system.bytes.clone();
        system.resize(system.len().max(8) + SYSTEM_EXTRA, 0);
        system[..4].copy_from_slice(&module.memory.min_pages.to_le_bytes());
        system[4..8].copy_from_slice(&module.memory.max_pages.to_le_bytes());
        for r in &module.system.func_refs {
            let at = r.offset as usize;
            system[at..at + 4].copy_from_slice(&(CODE + r.func.as_u32() * CODE_STEP).to_le_bytes());
        }
        let globals = module.globals.values().map(|g| g.init).collect();
        Interp { module, memory, system, globals, fuel, depth: 0 }
    }

    pub fn call(&mut self, func: FuncId, args: &[u64]) -> Outcome {
        match self.run(&self.module.funcs[func], args) {
            Ok(values) => Outcome::Values(values),
            Err(outcome) => outcome,
        }
    }

    fn run(&mut self, func: &'m Func, args: &[u64]) -> Result<Vec<u64>, Outcome> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Outcome::Trap(TrapCode::StackOverflow));
        }
        let mut values: SecondaryMap<Value, u64> = SecondaryMap::new();
        let mut block = func.entry;
        assert_eq!(args.len(), func.blocks[block].params.len());
        for (&param, &arg) in func.blocks[block].params.iter().zip(args) {
            values[param] = arg;
        }
        loop {
            for &inst in &func.blocks[block].insts {
                self.spend()?;
                let data = &func.insts[inst];
                let args: Vec<u64> = data.args.iter().map(|&v| values[v]).collect();
                let bits = data.results.first().map_or(32, |&v| func.ty(v).bits());
                let arg_bits = data.args.first().map_or(32, |&v| func.ty(v).bits());
                let results = self.step(data.op, &args, bits, arg_bits)?;
                assert_eq!(results.len(), data.results.len());
                for (&v, &r) in data.results.iter().zip(&results) {
                    values[v] = r;
                }
            }
            self.spend()?;
            let target: &Target = match &func.blocks[block].term {
                Terminator::Jump(t) => t,
                Terminator::Branch { cond, then, els } => {
                    if values[*cond] != 0 {
                        then
                    } else {
                        els
                    }
                }
                Terminator::Switch { index, targets, default } => {
                    targets.get(values[*index] as usize).unwrap_or(default)
                }
                Terminator::Return(results) => {
                    self.depth -= 1;
                    return Ok(results.iter().map(|&v| values[v]).collect());
                }
                Terminator::Trap(code) => return Err(Outcome::Trap(*code)),
            };
            let args: Vec<u64> = target.args.iter().map(|&v| values[v]).collect();
            block = target.block;
            for (&param, arg) in func.blocks[block].params.iter().zip(args) {
                values[param] = arg;
            }
        }
    }

    fn spend(&mut self) -> Result<(), Outcome> {
        self.fuel = self.fuel.checked_sub(1).ok_or(Outcome::OutOfFuel)?;
        Ok(())
    }

    fn step(&mut self, op: Op, args: &[u64], bits: u32, arg_bits: u32) -> Result<Vec<u64>, Outcome> {
        Ok(vec![match op {
            Op::Const(c) => c,
            Op::Bin(op) => op.eval(args[0], args[1], bits).ok_or({
                Outcome::Trap(if args[1] == 0 { TrapCode::IntegerDivisionByZero } else { TrapCode::IntegerOverflow })
            })?,
            Op::Un(op) => op.eval(args[0], bits),
            Op::Cmp(op) => u64::from(op.eval(args[0], args[1], arg_bits)),
            Op::Select => {
                if args[0] != 0 {
                    args[1]
                } else {
                    args[2]
                }
            }
            Op::Wrap => args[0] & ops::mask(32),
            Op::ZExt => args[0],
            Op::SExt => ops::sext(args[0], 32) as u64,
            Op::Load(access) => {
                let bytes = self.bytes(args[0], access)?;
                let raw = bytes.iter().rev().fold(0u64, |x, &b| x << 8 | u64::from(b));
                let from = u32::from(access.bytes) * 8;
                if access.signed { ops::sext(raw, from) as u64 & ops::mask(bits) } else { raw }
            }
            Op::Store(access) => {
                let value = args[1];
                for (i, b) in self.bytes(args[0], access)?.iter_mut().enumerate() {
                    *b = (value >> (8 * i)) as u8;
                }
                return Ok(vec![]);
            }
            Op::GlobalGet(global) => self.globals[global],
            Op::GlobalSet(global) => {
                self.globals[global] = args[0];
                return Ok(vec![]);
            }
            Op::Call(callee) => return self.run(&self.module.funcs[callee], args),
            Op::Chain(chain, width) => return Ok(chain.eval(args, width.into())),
            Op::Apply(n) => unreachable!("the optimiser knows no machine's function {n}"),
            Op::CallPtr(_) => {
                let callee = FuncId::new(((args[0] as u32 & !CODE) / CODE_STEP) as usize);
                return self.run(&self.module.funcs[callee], &args[1..]);
            }
        }])
    }

    fn bytes(&mut self, addr: u64, access: MemAccess) -> Result<&mut [u8], Outcome> {
        let at = addr + u64::from(access.offset);
        let end = at + u64::from(access.bytes);
        let oob = Outcome::Trap(TrapCode::MemoryOutOfBounds);
        if access.space == Space::System {
            // A split into narrow words leaves the lower half of an address; that of the area's beginning is zero.
            let half = self.module.system.own_address.is_some() && at >> 16 == 0;
            let base = if half { 0 } else { u64::from(SYSTEM_BASE) };
            let at = at.checked_sub(base).ok_or(oob.clone())? as usize;
            return self.system.get_mut(at..at + usize::from(access.bytes)).ok_or(oob);
        }
        let pages = u32::from_le_bytes([self.system[0], self.system[1], self.system[2], self.system[3]]);
        if end > u64::from(pages) * PAGE_BYTES {
            return Err(oob);
        }
        if self.memory.len() < end as usize {
            self.memory.resize(end as usize, 0);
        }
        Ok(&mut self.memory[at as usize..end as usize])
    }
}
