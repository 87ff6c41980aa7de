//! A program for one machine: bundles of instructions with physical registers.
//!
//! The code generator makes it, the simulator runs it, [`asm`] prints it. It
//! is the last thing the compiler and the first thing the simulator knows, and
//! neither knows the other.

use ciphermill_ir::{FuncRef, Space, TrapCode};
use ciphermill_machine::{InstrId, InstrKind, Machine, Reg};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

pub mod asm;
pub mod exact;
pub mod layout;
pub mod lines;
pub mod recorded;

/// What one operand of an instruction is. Stands at the place the
/// instruction's own operand list gives it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    Reg(Reg),
    Imm(i64),
    /// A block of the same function: an index into [`Func::blocks`].
    Block(u32),
    /// A function: an index into [`Program::funcs`].
    Func(u32),
}

/// Whom an instruction works for (lookup accounting).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Role {
    #[default]
    Other,
    /// Index extraction, scaling, address addition or the load of a table lookup.
    Lookup,
    /// Spills, reloads, saves, stack adjustment, moves the allocator made.
    Overhead,
}

#[derive(Clone, Debug)]
pub struct Inst {
    pub instr: InstrId,
    pub operands: SmallVec<[Operand; 4]>,
    /// Which memory a load or store means.
    pub space: Space,
    /// What a trap instruction, or a division's own trap, reports.
    pub trap: Option<TrapCode>,
    pub role: Role,
    /// A predicate register without which (it is 0) the instruction does nothing.
    pub guard: Option<Reg>,
    /// Offset in the WebAssembly module; 0 for none.
    pub loc: u32,
}

impl Inst {
    /// Encoded size in bytes with these operands; of a jump, wherever its
    /// target is. Jumps to near targets may be shorter ([`layout`]).
    pub fn bytes(&self, machine: &Machine) -> u32 {
        let instr = &machine.instrs[usize::from(self.instr.0)];
        let changed = instr.sizes.iter().filter(|s| match self.operands.get(s.operand) {
            Some(Operand::Reg(r)) => s.regs.contains(r),
            Some(Operand::Imm(v)) => s.values.contains(v),
            _ => false,
        });
        let (mut total, mut prefixed) = (i32::from(instr.bytes), false);
        for s in changed {
            total += if s.prefix && prefixed { 0 } else { i32::from(s.bytes) };
            prefixed |= s.prefix;
        }
        total.max(0) as u32
    }
}

/// Instructions that issue in the same cycle, in slot order. On a scalar
/// machine always one.
#[derive(Clone, Debug, Default)]
pub struct Bundle {
    pub insts: SmallVec<[Inst; 1]>,
}

/// A basic block. At most one branch, jump or return stands in it, followed
/// only by its delay slots; without one, or when a branch is not taken, control
/// falls through to the next block of the function. Calls (and their delay
/// slots) may stand anywhere. Only a block's first bundle is a branch target.
#[derive(Clone, Debug, Default)]
pub struct Block {
    pub bundles: Vec<Bundle>,
    /// Nesting depth of the loop it stands in, for printing.
    pub loop_depth: u8,
}

#[derive(Clone, Debug)]
pub struct Func {
    pub name: String,
    /// Laid out in this order; the first is the entry.
    pub blocks: Vec<Block>,
    /// Stack bytes of one activation.
    pub frame_bytes: u32,
    /// Flattened parameter and result counts in machine words.
    pub params: usize,
    pub results: usize,
}

/// Initial bytes of a range of linear memory.
#[derive(Clone, Debug)]
pub struct Segment {
    pub addr: u32,
    pub bytes: Vec<u8>,
}

#[derive(Clone)]
pub struct Program {
    pub machine: Arc<Machine>,
    pub funcs: Vec<Func>,
    /// Exported name to function index.
    pub exports: Vec<(String, u32)>,
    /// Runs before anything else.
    pub start: Option<u32>,
    pub min_pages: u32,
    pub max_pages: u32,
    pub data: Vec<Segment>,
    /// Ranges of linear memory that the module promised never to write.
    pub readonly: Vec<Range<u32>>,
    /// Initial bytes of the system area at [`ciphermill_ir::SYSTEM_BASE`];
    /// `func_refs` are filled in by [`layout::Layout`].
    pub system: Vec<u8>,
    pub system_func_refs: Vec<FuncRef>,
    /// Where arguments and results beyond the registers are passed: word `i`
    /// of the overflow area, an offset into the system area.
    pub arg_overflow: u32,
    /// Registers that hold globals for the whole program: `(register, initial
    /// value)`.
    pub global_regs: Vec<(Reg, u64)>,
    /// Software-pipelined loops, with the function each stands in.
    pub loops: Vec<PipelinedLoop>,
    /// All other loops, and why they were not pipelined.
    pub plain_loops: Vec<PlainLoop>,
    /// Loops whose search for a schedule came to the end of its budget.
    pub searches_cut: u32,
    /// The same loops as problems for an exact scheduler, where that was asked.
    pub problems: Vec<exact::LoopProblem>,
    /// And their schedules to be kept, where a longer search than usual was asked.
    pub records: Vec<recorded::Recorded>,
}

/// How a loop was software-pipelined, all in cycles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelinedLoop {
    /// An index into [`Program::funcs`].
    pub func: u32,
    /// Initiation interval: an iteration begins every so many cycles.
    pub ii: u32,
    /// The least that units and that values carried round allow. A loop whose
    /// `ii` is the larger of the two cannot be scheduled better.
    pub res_mii: u32,
    pub rec_mii: u32,
    /// Iterations under way at once.
    pub stages: u32,
    /// There is no schedule below this II, because of what ways round and units
    /// need together or by an exact scheduler's proof; 0 when neither was asked.
    pub least: u32,
    /// Hundredths of the registers that have values, the mean of all cycles, in the register
    /// file where they are most; 0 where nobody counted.
    pub held: u32,
    /// Its schedule was not searched for but taken from a record ([`recorded`]).
    pub recorded: bool,
    /// What an exact scheduler was asked about it.
    pub asked: Vec<exact::Question>,
    /// The block that its iterations run in, an index into the function's.
    pub block: u32,
    /// A way round that takes `rec_mii` cycles an iteration; empty where none was found.
    pub round: Vec<RoundStep>,
}

/// An instruction of a way round a loop, and what the next one waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoundStep {
    pub instr: InstrId,
    /// Offset in the WebAssembly module; 0 for none.
    pub loc: u32,
    /// Cycles until the next instruction of the way may start, and iterations later that it is meant.
    pub cycles: u32,
    pub distance: u32,
    /// The two are accesses to memory of which the code generator cannot tell that they never
    /// touch the same byte; otherwise the next reads what this one makes.
    pub memory: bool,
}

/// A loop that was not software-pipelined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlainLoop {
    /// An index into [`Program::funcs`].
    pub func: u32,
    /// Its blocks, indices into the function's.
    pub blocks: Vec<u32>,
    /// Why not, as a word for programs: `machine`, `level`, `size`, `calls`, `inner_loop`, `blocks`,
    /// `form` or `no_schedule`.
    pub reason: &'static str,
    /// And in words, to follow "because".
    pub why: String,
}

impl Program {
    pub fn export(&self, name: &str) -> Option<u32> {
        self.exports.iter().find(|(n, _)| n == name).map(|&(_, f)| f)
    }

    /// The functions that one may call, itself among them; all where it calls by pointer.
    pub fn reached(&self, from: u32) -> BTreeSet<u32> {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(func) = next.pop() {
            if !reached.insert(func) {
                continue;
            }
            let blocks = self.funcs.get(func as usize).map_or(&[][..], |f| &f.blocks);
            for inst in blocks.iter().flat_map(|b| &b.bundles).flat_map(|b| &b.insts) {
                let called = inst.operands.iter().find_map(|o| if let Operand::Func(f) = o { Some(*f) } else { None });
                if self.machine.instrs[usize::from(inst.instr.0)].kind == InstrKind::CallIndirect {
                    return (0..self.funcs.len() as u32).collect();
                }
                next.extend(called);
            }
        }
        reached
    }

    /// Bytes of all encoded instructions.
    pub fn code_bytes(&self) -> u64 {
        let layout = layout::Layout::new(self);
        layout.sizes.iter().flatten().flatten().map(|&bytes| u64::from(bytes)).sum()
    }
}
