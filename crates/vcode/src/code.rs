//! Machine code with virtual registers: what selection makes, what scheduling
//! reorders and what the allocator rewrites.

use crate::memory::MemRef;
use ciphermill_ir::TrapCode;
use ciphermill_machine::{InstrId, Reg};
use ciphermill_program::Role;
use smallvec::SmallVec;

/// A virtual register, defined once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct VReg(pub u32);

/// One operand, at the place the instruction's operand list gives it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VOp {
    Use(VReg),
    Def(VReg),
    /// Read and written: the definition takes the register of the use.
    Tied {
        used: VReg,
        def: VReg,
    },
    /// A constant wanted in a register; a later stage decides where it
    /// is made.
    Const(u64),
    Phys(Reg),
    Imm(i64),
    /// An index into [`VFunc::blocks`].
    Block(u32),
    Func(u32),
}

/// What an instruction is to the stages behind selection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VKind {
    Normal,
    /// Clobbers what the convention lets a callee clobber.
    Call,
    /// Defines the parameters in their registers; emits nothing.
    Params,
    Return,
    Trap,
    /// A whole pipelined loop; its number is the one operand. Destroys every
    /// register it does not define.
    Kernel,
    /// Ends a block; successors stand in the block.
    Branch,
    Jump,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VInst {
    pub kind: VKind,
    pub instr: InstrId,
    pub ops: SmallVec<[VOp; 4]>,
    /// Values read from and written to fixed registers beside the operands
    /// (arguments, results).
    pub fixed_uses: Vec<(VReg, Reg)>,
    pub fixed_defs: Vec<(VReg, Reg)>,
    pub mem: Option<MemRef>,
    pub trap: Option<TrapCode>,
    pub role: Role,
    pub loc: u32,
}

impl VInst {
    pub fn new(kind: VKind, instr: InstrId, ops: &[VOp], loc: u32) -> VInst {
        VInst {
            kind,
            instr,
            ops: ops.into(),
            fixed_uses: Vec::new(),
            fixed_defs: Vec::new(),
            mem: None,
            trap: None,
            role: Role::Other,
            loc,
        }
    }

    pub fn uses(&self) -> impl Iterator<Item = VReg> + '_ {
        let ops = self.ops.iter().filter_map(|o| match o {
            VOp::Use(v) | VOp::Tied { used: v, .. } => Some(*v),
            _ => None,
        });
        ops.chain(self.fixed_uses.iter().map(|u| u.0))
    }

    pub fn defs(&self) -> impl Iterator<Item = VReg> + '_ {
        let ops = self.ops.iter().filter_map(|o| match o {
            VOp::Def(v) | VOp::Tied { def: v, .. } => Some(*v),
            _ => None,
        });
        ops.chain(self.fixed_defs.iter().map(|d| d.0))
    }
}

/// How the last instruction of a block can be written the other way round.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Inverse {
    pub instr: InstrId,
    /// Operands, the label excepted, as in the branch itself.
    pub ops: SmallVec<[VOp; 4]>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct VBlock {
    pub params: Vec<VReg>,
    /// The last one is a branch, jump, return or trap.
    pub insts: Vec<VInst>,
    /// Successors with the values for their parameters. A conditional branch
    /// goes to the first when taken and to the second otherwise.
    pub succs: Vec<(u32, Vec<VReg>)>,
    /// A conditional branch's inverse, where the machine has one.
    pub inverse: Option<Inverse>,
    pub loop_depth: u8,
    /// Block where constants used here may be made once for the outermost
    /// loop around: its immediate dominator outside.
    pub preheader: Option<u32>,
}

impl VBlock {
    /// Block frequency: executions for each call of the function, every loop taken to iterate eight times.
    pub fn frequency(&self) -> u64 {
        8u64.pow(u32::from(self.loop_depth).min(6))
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VFunc {
    pub name: String,
    /// In layout order; the first is the entry.
    pub blocks: Vec<VBlock>,
    /// Immediate dominator of each block.
    pub idom: Vec<Option<u32>>,
    pub vregs: u32,
    pub has_calls: bool,
    pub params: usize,
    pub results: usize,
    /// Which register file each virtual register is to be in, by its number among those of
    /// [`Registers::files`](crate::Registers::files). Empty: whichever.
    pub files: Vec<u8>,
}

impl VFunc {
    /// Does every way to block `b` lead through block `a`?
    pub fn dominates(&self, a: u32, b: u32) -> bool {
        let mut at = Some(b);
        while let Some(b) = at {
            if a == b {
                return true;
            }
            at = self.idom[b as usize];
        }
        false
    }

    pub fn new_vreg(&mut self) -> VReg {
        self.vregs += 1;
        VReg(self.vregs - 1)
    }
}
