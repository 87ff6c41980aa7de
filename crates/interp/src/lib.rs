//! An interpreter of the intermediate representation.
//!
//! It runs a module as it stands between two stages of the compiler, so that a
//! wrong result can be laid at the front end's door or the back end's. It is
//! written for plainness: a value is a `u64`, memory is bytes, and every access
//! is checked.
//!
//! Asked to, it counts how often each edge between blocks is taken, and how many
//! turns loops make each time they are entered ([`Interp::count_edges`]).
//!
//! What a machine would do with addresses, it does too: a function's code
//! address is a number above [`CODE_BASE`], and the system area holds such
//! numbers where the module asks for them.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod turns;

use ciphermill_ir::{
    Block, Func, FuncId, Inst, MemAccess, Module, Op, PAGE_BYTES, SYSTEM_BASE, Space, Target, Terminator, TrapCode,
};
use std::collections::{BTreeMap, HashMap, HashSet};
pub use turns::Header;
use turns::Turns;

const CODE_BASE: u64 = 0xE000_0000;
const CODE_STEP: u64 = 16;
/// Calls nested deeper than this overflow the stack, where nobody says otherwise.
const MAX_DEPTH: u32 = 600;

/// Why a run stopped short.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Halt {
    Trap(TrapCode),
    /// More operations than were allowed.
    Fuel,
    /// The module did something that no correct module can do.
    Broken(String),
}

/// How often control went from one block of a function to another. A call is an
/// edge from the entry to itself, which no branch leads to.
pub type Edges = HashMap<(FuncId, Block, Block), u64>;

/// Accesses that were less aligned than they state, and how they were.
pub type Misaligned = BTreeMap<(FuncId, Inst), u8>;

/// A module being run.
pub struct Interp<'m> {
    module: &'m Module,
    pub memory: Vec<u8>,
    system: Vec<u8>,
    depth: u32,
    /// Calls may be nested so deep.
    pub max_depth: u32,
    /// Where the calls stood when the run was halted, the innermost first: functions, and
    /// offsets in the WebAssembly module (0: unknown).
    pub stood: Vec<(FuncId, u32)>,
    /// Operations that may still be executed.
    pub fuel: u64,
    counted: Option<(Edges, Turns)>,
    misaligned: Option<Misaligned>,
    /// Misaligned accesses that the module had promised not to make are
    /// faults.
    pub check_alignment: bool,
}

impl<'m> Interp<'m> {
    /// A module in its initial state; [`Interp::start`] is still to be called.
    pub fn new(module: &'m Module, fuel: u64) -> Interp<'m> {
        let mut memory = vec![0; module.memory.min_pages as usize * PAGE_BYTES as usize];
        for data in &module.data {
            memory[data.addr as usize..][..data.bytes.len()].copy_from_slice(&data.bytes);
        }
        let mut system = module.system.bytes.clone();
        for r in &module.system.func_refs {
            let address = (CODE_BASE + CODE_STEP * u64::from(r.func.as_u32())) as u32;
            system[r.offset as usize..][..4].copy_from_slice(&address.to_le_bytes());
        }
        Interp {
            module,
            memory,
            system,
            depth: 0,
            max_depth: MAX_DEPTH,
            stood: Vec::new(),
            fuel,
            counted: None,
            misaligned: None,
            check_alignment: false,
        }
    }

    /// From now on, count edges, and the turns of some loops, each with the blocks that are in it.
    pub fn count_edges(&mut self, loops: impl IntoIterator<Item = (Header, HashSet<Block>)>) {
        self.counted = Some((Edges::new(), Turns::of(loops)));
    }

    /// The edges counted since, and no longer, and loops that made as many turns each time they were entered.
    pub fn take_edges(&mut self) -> (Edges, HashMap<Header, u32>) {
        let (edges, turns) = self.counted.take().unwrap_or_default();
        (edges, turns.constant())
    }

    /// From now on, note accesses that are less aligned than they state.
    pub fn note_alignment(&mut self) {
        self.misaligned = Some(Misaligned::new());
    }

    /// Those noted since, and no longer.
    pub fn take_misaligned(&mut self) -> Misaligned {
        self.misaligned.take().unwrap_or_default()
    }

    /// See to it that memory has at least so many bytes.
    pub fn reserve(&mut self, bytes: u64) {
        let pages = bytes.div_ceil(PAGE_BYTES).max(self.memory.len() as u64 / PAGE_BYTES);
        self.memory.resize((pages * PAGE_BYTES) as usize, 0);
        self.system[..4].copy_from_slice(&(pages as u32).to_le_bytes());
    }

    /// Run the start function, if there is one.
    pub fn start(&mut self) -> Result<(), Halt> {
        match self.module.start {
            Some(func) => self.call(func, &[]).map(drop),
            None => Ok(()),
        }
    }

    /// Raw bits of a global: the whole 8-byte slot.
    pub fn global(&self, id: ciphermill_ir::GlobalId) -> u64 {
        let offset = self.module.globals[id].system_offset as usize;
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.system[offset..offset + 8]);
        u64::from_le_bytes(bytes)
    }

    /// Call a function with one `u64` for each of its parameters.
    pub fn call(&mut self, id: FuncId, args: &[u64]) -> Result<Vec<u64>, Halt> {
        if self.depth >= self.max_depth {
            return Err(Halt::Trap(TrapCode::StackOverflow));
        }
        self.depth += 1;
        let mut at = 0;
        let result = self.run(id, args, &mut at);
        self.depth -= 1;
        if result.is_err() {
            self.stood.push((id, at));
        }
        result
    }

    /// Run a function; `at` is the offset of what runs, or ran last.
    fn run(&mut self, id: FuncId, args: &[u64], at: &mut u32) -> Result<Vec<u64>, Halt> {
        let func = &self.module.funcs[id];
        let mut values = vec![0u64; func.values.len()];
        let mut block = func.entry;
        if let Some((edges, _)) = &mut self.counted {
            *edges.entry((id, block, block)).or_default() += 1;
        }
        if args.len() != func.blocks[block].params.len() {
            return Err(broken(func, format!("called with {} arguments", args.len())));
        }
        for (&param, &arg) in func.blocks[block].params.iter().zip(args) {
            values[param.as_u32() as usize] = arg & func.ty(param).mask();
        }
        loop {
            for &inst in &func.blocks[block].insts {
                self.fuel = self.fuel.checked_sub(1).ok_or(Halt::Fuel)?;
                let loc = func.insts[inst].loc;
                *at = if loc == 0 { *at } else { loc };
                if let Some(noted) = &mut self.misaligned {
                    note(noted, id, func, inst, &values);
                }
                self.execute(func, inst, &mut values)?;
            }
            self.fuel = self.fuel.checked_sub(1).ok_or(Halt::Fuel)?;
            let get = |v: ciphermill_ir::Value| values[v.as_u32() as usize];
            let target: &Target = match &func.blocks[block].term {
                Terminator::Jump(target) => target,
                Terminator::Branch { cond, then, els } => {
                    if get(*cond) != 0 {
                        then
                    } else {
                        els
                    }
                }
                Terminator::Switch { index, targets, default } => targets.get(get(*index) as usize).unwrap_or(default),
                Terminator::Return(results) => return Ok(results.iter().map(|&v| get(v)).collect()),
                Terminator::Trap(code) => return Err(Halt::Trap(*code)),
            };
            // All arguments are read before a parameter is written.
            let passed: Vec<u64> = target.args.iter().map(|&v| get(v)).collect();
            if let Some((edges, turns)) = &mut self.counted {
                *edges.entry((id, block, target.block)).or_default() += 1;
                turns.went(id, block, target.block);
            }
            block = target.block;
            for (&param, bits) in func.blocks[block].params.iter().zip(passed) {
                values[param.as_u32() as usize] = bits;
            }
        }
    }

    fn execute(&mut self, func: &Func, inst: Inst, values: &mut [u64]) -> Result<(), Halt> {
        let data = &func.insts[inst];
        let arg = |i: usize| values[data.args[i].as_u32() as usize];
        let arg_bits = || func.ty(data.args[0]).bits();
        let result = match data.op {
            Op::Const(c) => c,
            Op::Bin(op) => match op.eval(arg(0), arg(1), arg_bits()) {
                Some(v) => v,
                None if arg(1) == 0 => return Err(Halt::Trap(TrapCode::IntegerDivisionByZero)),
                None => return Err(Halt::Trap(TrapCode::IntegerOverflow)),
            },
            Op::Un(op) => op.eval(arg(0), arg_bits()),
            Op::Cmp(op) => u64::from(op.eval(arg(0), arg(1), arg_bits())),
            Op::Select => arg(if arg(0) != 0 { 1 } else { 2 }),
            Op::Wrap => arg(0) & 0xFFFF_FFFF,
            Op::ZExt => arg(0),
            Op::SExt => ciphermill_ir::ops::sext(arg(0), 32) as u64,
            Op::Load(access) => {
                let raw = self.load(func, access, arg(0))?;
                let ty = func.ty(func.result(inst));
                if access.signed {
                    ciphermill_ir::ops::sext(raw, u32::from(access.bytes) * 8) as u64 & ty.mask()
                } else {
                    raw
                }
            }
            Op::Store(access) => return self.store(func, access, arg(0), arg(1)),
            Op::GlobalGet(id) => self.global(id) & self.module.globals[id].ty.mask(),
            Op::GlobalSet(id) => {
                let global = &self.module.globals[id];
                let bytes = global.ty.bits() as usize / 8;
                let at = global.system_offset as usize;
                self.system[at..at + bytes].copy_from_slice(&arg(0).to_le_bytes()[..bytes]);
                return Ok(());
            }
            Op::Call(id) => {
                let args: Vec<u64> = (0..data.args.len()).map(arg).collect();
                return self.finish_call(func, inst, id, &args, values);
            }
            Op::Chain(chain, bits) => {
                let args: Vec<u64> = (0..data.args.len()).map(arg).collect();
                for (v, word) in data.results.iter().zip(chain.eval(&args, bits.into())) {
                    values[v.as_u32() as usize] = word;
                }
                return Ok(());
            }
            Op::Apply(_) => {
                return Err(broken(func, "a machine's function, which only the code generator knows".into()));
            }
            Op::CallPtr(sig) => {
                let place = arg(0).wrapping_sub(CODE_BASE);
                let id = FuncId::from_u32((place / CODE_STEP) as u32);
                let callee = Some(id).filter(|id| place.is_multiple_of(CODE_STEP) && self.module.funcs.is_valid(*id));
                let Some(callee) = callee else {
                    return Err(broken(func, format!("a call to {:#x}", arg(0))));
                };
                if self.module.funcs[callee].sig != self.module.sigs[sig] {
                    return Err(broken(func, "an indirect call of another signature".into()));
                }
                let args: Vec<u64> = (1..data.args.len()).map(arg).collect();
                return self.finish_call(func, inst, callee, &args, values);
            }
        };
        values[func.result(inst).as_u32() as usize] = result;
        Ok(())
    }

    fn finish_call(
        &mut self,
        func: &Func,
        inst: Inst,
        callee: FuncId,
        args: &[u64],
        values: &mut [u64],
    ) -> Result<(), Halt> {
        let results = self.call(callee, args)?;
        for (&value, bits) in func.insts[inst].results.iter().zip(results) {
            values[value.as_u32() as usize] = bits;
        }
        Ok(())
    }

    /// Where an access lies in its memory.
    fn place(&self, func: &Func, access: MemAccess, address: u64) -> Result<usize, Halt> {
        let effective = address + u64::from(access.offset);
        if self.check_alignment && !effective.is_multiple_of(u64::from(access.align)) {
            return Err(broken(func, format!("access at {effective:#x} promised as aligned to {}", access.align)));
        }
        let bytes = u64::from(access.bytes);
        match access.space {
            Space::Linear if effective + bytes <= self.memory.len() as u64 => Ok(effective as usize),
            Space::Linear => Err(Halt::Trap(TrapCode::MemoryOutOfBounds)),
            Space::System => effective
                .checked_sub(u64::from(SYSTEM_BASE))
                .filter(|offset| offset + bytes <= self.system.len() as u64)
                .map(|offset| offset as usize)
                .ok_or_else(|| broken(func, format!("system access at {effective:#x}"))),
            Space::Stack | Space::Flash => Err(broken(func, "only the code generator knows that memory".into())),
        }
    }

    fn load(&self, func: &Func, access: MemAccess, address: u64) -> Result<u64, Halt> {
        let at = self.place(func, access, address)?;
        let memory = if access.space == Space::Linear { &self.memory } else { &self.system };
        let mut bytes = [0; 8];
        bytes[..usize::from(access.bytes)].copy_from_slice(&memory[at..at + usize::from(access.bytes)]);
        Ok(u64::from_le_bytes(bytes))
    }

    fn store(&mut self, func: &Func, access: MemAccess, address: u64, value: u64) -> Result<(), Halt> {
        let at = self.place(func, access, address)?;
        let memory = if access.space == Space::Linear { &mut self.memory } else { &mut self.system };
        let n = usize::from(access.bytes);
        memory[at..at + n].copy_from_slice(&value.to_le_bytes()[..n]);
        if access.space == Space::System && at == 0 {
            self.memory.resize(value as u32 as usize * PAGE_BYTES as usize, 0);
        }
        Ok(())
    }
}

/// Note an access at an address that is not as it states.
fn note(noted: &mut Misaligned, id: FuncId, func: &Func, inst: Inst, values: &[u64]) {
    let data = &func.insts[inst];
    let (Op::Load(access) | Op::Store(access)) = data.op else { return };
    let address = values[data.args[0].as_u32() as usize] + u64::from(access.offset);
    let is = (address | u64::from(access.align)) & (address | u64::from(access.align)).wrapping_neg();
    if access.space == Space::Linear && is < u64::from(access.align) {
        let least = noted.entry((id, inst)).or_insert(access.align);
        *least = (*least).min(is as u8);
    }
}

fn broken(func: &Func, what: String) -> Halt {
    Halt::Broken(format!("function \"{}\": {what}", func.name))
}
