//! A machine, fully resolved. See `docs/machine-files.md` for the file format.
//!
//! Every number here comes from a machine file, together with its source.

use crate::gf2::BitMatrix;
use crate::sem::Stmt;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use crate::cache::{Cache, Replacement, WritePolicy};
pub use crate::ids::{FileId, InstrId, Reg, UnitId};
pub use crate::memory::{Banks, MemorySystem};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Endian {
    Little,
    Big,
}

/// What a word of 64 bits has above a value of 32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Narrow {
    /// Its sign: arithmetic of 32 bits is that of words, and the sign of its result.
    Signed,
    /// Zeros: there are instructions that compute in 32 bits (`add32`).
    Zero,
}

#[derive(Clone, Debug)]
pub struct Machine {
    pub name: String,
    pub title: String,
    pub description: String,
    /// 32 or 64.
    pub word_bits: u8,
    pub narrow: Narrow,
    pub endian: Endian,
    pub clock_mhz: f64,
    /// At that clock, where the file says it.
    pub power_mw: Option<f64>,
    pub files: Vec<RegFile>,
    pub regs: Vec<RegInfo>,
    pub units: Vec<Unit>,
    pub instrs: Vec<Instr>,
    /// For each instruction of a clustered machine, its variants on all units and clusters, itself
    /// first. On another machine, and for an instruction that is such a variant: only itself.
    pub variants: Vec<Vec<InstrId>>,
    pub compounds: Vec<Compound>,
    pub rules: Vec<Rule>,
    /// The rules for 32 bits, where [`Machine::computes_narrow`].
    pub narrow_rules: Vec<Rule>,
    /// Constant tables named in semantics.
    pub tables: Vec<Table>,
    /// Matrices over GF(2) named in semantics.
    pub matrices: Vec<Arc<BitMatrix>>,
    pub issue: Issue,
    /// Set where the machine schedules at run time.
    pub core: Option<crate::core::Core>,
    pub branch: BranchModel,
    pub memory: MemorySystem,
    pub abi: Abi,
    /// Where registers are narrower than a word.
    pub chains: Option<Chains>,
    pub codegen: Codegen,
    pub asm: AsmSyntax,
    /// Names of the extensions in effect, in the order given.
    pub extensions: Vec<String>,
    /// Where each number comes from: dotted path in the file to a citation.
    /// A path covers everything below it.
    pub sources: BTreeMap<String, String>,
    /// SHA-256 (hex) over the machine file, its parents, the extensions, the
    /// rules and the settings: everything that determined this value.
    pub hash: String,
}

#[derive(Clone, Debug)]
pub struct RegFile {
    pub name: String,
    pub bits: u8,
    /// Registers `first .. first + count`.
    pub first: Reg,
    pub count: u16,
    /// Cluster this file belongs to; 0 on an unclustered machine.
    pub cluster: u8,
    /// Configuration: outside the calling convention, kept between calls.
    pub state: bool,
    /// What its registers hold before a program has written them.
    pub reset: u64,
    /// Registers that an instruction can only name with a prefix.
    pub prefixed: Vec<Reg>,
    /// Bytes of that prefix.
    pub prefix_bytes: u8,
    /// Registers `first .. first + count` that `rotate` gives new names; a count
    /// of 0 for none.
    pub rotating: (Reg, u16),
}

#[derive(Clone, Debug)]
pub struct RegInfo {
    /// As the assembler writes it, without prefix.
    pub name: String,
    pub file: FileId,
    /// Reads as zero, ignores writes.
    pub zero: bool,
    /// Names of parts of it, by view, for the assembler.
    pub views: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub struct Unit {
    pub name: String,
    /// How many of them there are (each starts one instruction a cycle).
    pub count: u16,
    pub cluster: u8,
    /// A path that one register crosses: so many instructions of one cycle may
    /// share it when they read the same register over it.
    pub shared: u16,
}

impl Unit {
    /// Can one more instruction use it in a cycle in which `users` do? `same`
    /// says that all of them, the new one too, read one register over it.
    pub fn takes(&self, users: usize, same: bool) -> bool {
        users < usize::from(if same { self.count.max(self.shared) } else { self.count })
    }
}

#[derive(Clone, Debug)]
pub struct Instr {
    pub name: String,
    /// Template: `add {rs1}, {rs2}, {rd}`; `{x}` is an operand as the
    /// assembler writes it. Never contains a newline.
    pub asm: String,
    pub operands: Vec<Operand>,
    pub semantics: Vec<Stmt>,
    /// Number of `let` temporaries in `semantics`.
    pub temps: usize,
    /// Units it may run on (any one of them); empty: none, only an issue slot.
    pub units: Vec<UnitId>,
    /// Cycles during which no later instruction can issue, its own included
    /// (1 for a fully pipelined instruction).
    pub issue_cycles: u32,
    /// The same in front of an instruction of such a timing right behind it: name, cycles.
    pub issue_before: Vec<(String, u32)>,
    /// Register operands that have to be ready so many cycles before it issues.
    pub early: Vec<(usize, u32)>,
    /// Cycles during which the unit it runs on takes no other instruction.
    pub unit_cycles: u32,
    /// Micro-operations of its computing part, where the machine has a core
    /// that makes some.
    pub uops: u32,
    /// More of them: one on each of these units, for a cycle, without a result.
    pub uop_units: Vec<UnitId>,
    /// Cycles from issue until a register written by it can be read by an
    /// instruction that issues then: 1 = by the next cycle's instruction.
    pub latency: u32,
    /// Latency of single destinations that differ (by register file name or
    /// fixed register), as `(dest, cycles)`.
    pub dest_latency: Vec<(crate::sem::Dest, u32)>,
    /// Extra cycles when a branch is taken (or not), beyond `issue_cycles`.
    pub taken_cycles: u32,
    pub untaken_cycles: u32,
    /// More of them, taken and not, where the target is not near.
    pub far_cycles: [u32; 2],
    /// How it is then written, if otherwise.
    pub far_asm: Option<String>,
    /// What the hardware's time depends on, by value. The cycles here are one case.
    pub varies_with: Vec<crate::sem::Dest>,
    /// Branches: instructions after it that execute before the target does.
    pub delay_slots: u8,
    /// Branches: the delay slot is skipped when the branch is not taken.
    pub annul: bool,
    /// Encoded size in bytes, before `sizes`.
    pub bytes: u8,
    /// Size of a jump whose target is near, and how far from its end that is.
    pub short_bytes: Option<u8>,
    pub short_reach: (i64, i64),
    /// Jumps and branches that do not reach everywhere: how far from their end the target can be.
    pub reach: Option<(i64, i64)>,
    /// An immediate that stands as a word among the code behind the instruction.
    pub literal: Option<Literal>,
    /// Operands that change the encoded size.
    pub sizes: Vec<SizeRule>,
    pub kind: InstrKind,
    /// Paths between clusters or to memory that it takes besides its unit, with
    /// the operand that travels on it.
    pub paths: Vec<(UnitId, usize)>,
    /// Cluster it runs on; 0 on an unclustered machine.
    pub cluster: u8,
    /// Operands that only certain registers of their file can be.
    pub only: Vec<(usize, Vec<Reg>)>,
    /// Operands whose registers rise, in this order, as in a list of registers that is a set of bits.
    pub ascending: Vec<usize>,
    /// Name of its entry in `[timings]`, where its cycles come from.
    pub timing: String,
    /// The extension that brought it, if any.
    pub extension: Option<String>,
    /// Loads and stores: at any address, whatever `memory.unaligned` says.
    pub unaligned: bool,
    /// A load from the memory that code is in ([`ciphermill_ir::Space::Flash`]).
    pub flash: bool,
    /// Source operands that are read through a port of their register file, and
    /// how many times. Predicates are not.
    pub ports: Vec<(usize, u16)>,
    /// May the selector choose it by matching? (False for instructions that
    /// only compounds and the frame code use.)
    pub selectable: bool,
}

impl Instr {
    /// Cycles during which nothing issues, its own included, whatever comes behind.
    pub fn least_issue_cycles(&self) -> u32 {
        self.issue_before.iter().map(|b| b.1).chain([self.issue_cycles]).min().unwrap_or(1).max(1)
    }
}

/// An operand whose value stands in a literal pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Literal {
    pub operand: usize,
    /// How far from the instruction's end the word can begin.
    pub reach: u32,
}

/// The encoding is so many bytes longer when the operand is one of these. Of the
/// rules about a prefix only one counts.
#[derive(Clone, Debug)]
pub struct SizeRule {
    pub operand: usize,
    pub regs: Vec<Reg>,
    pub values: Vec<i64>,
    pub bytes: i8,
    pub prefix: bool,
}

/// What an instruction is, worked out from its semantics.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InstrKind {
    Compute,
    Load,
    Store,
    /// Conditional, to a label.
    Branch,
    /// Unconditional, to a label.
    Jump,
    /// Writes a return address and jumps to a label.
    Call,
    /// Writes a return address and jumps to a register.
    CallIndirect,
    /// Jumps to a register.
    JumpIndirect,
    Trap,
    /// Register-window instructions and others that only frame code uses.
    Frame,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operand {
    pub name: String,
    pub kind: OperandKind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OperandKind {
    /// Read, written, or both (a two-address instruction).
    Reg { file: FileId, def: bool, used: bool },
    /// `values` when it is one of a short list; otherwise `min ..= max` in
    /// steps of `step`.
    Imm { min: i64, max: i64, step: i64, values: Option<Vec<i64>> },
    /// A block or function: a code address.
    Label,
}

/// A sequence of instructions that together do what one line of semantics
/// says: the way to comparisons through flags, wide constants, and the like.
/// Matched like an instruction; its parts are emitted in order.
#[derive(Clone, Debug)]
pub struct Compound {
    pub name: String,
    /// Operands of the whole.
    pub operands: Vec<Operand>,
    pub semantics: Vec<Stmt>,
    pub temps: usize,
    pub parts: Vec<CompoundPart>,
    /// Number of scratch registers the parts pass values through.
    pub scratch: usize,
}

#[derive(Clone, Debug)]
pub struct CompoundPart {
    pub instr: InstrId,
    /// One for each operand of the part's instruction.
    pub args: Vec<PartArg>,
}

#[derive(Clone, Debug)]
pub enum PartArg {
    /// The compound's operand of this index.
    Operand(usize),
    /// A scratch register of the compound.
    Scratch(usize),
    /// A physical register.
    Reg(Reg),
    /// A constant expression over the compound's immediates.
    Imm(crate::sem::Expr),
}

/// An identity between expressions, from `machines/rules.toml`: where a
/// machine has no way to compute `from`, `to` is tried.
#[derive(Clone, Debug)]
pub struct Rule {
    pub name: String,
    /// Variables of the rule; `Operand(i)` in both sides is variable `i`,
    /// `Imm(i)` a variable that must be a constant.
    pub vars: Vec<RuleVar>,
    pub from: crate::sem::Expr,
    pub to: crate::sem::Expr,
    /// `let` temporaries shared within `to`: evaluated in order.
    pub lets: Vec<crate::sem::Expr>,
    /// Must hold (be nonzero) for the constants bound by `from`.
    pub when: Option<crate::sem::Expr>,
    /// It costs latency and saves slots: for code that has much independent work.
    pub throughput: bool,
}

#[derive(Clone, Debug)]
pub struct RuleVar {
    pub name: String,
    pub constant: bool,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    /// Width of an entry in bits.
    pub bits: u8,
    pub values: Vec<u64>,
    /// Hand-written Verilog module that computes it, if there is one.
    pub verilog: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Issue {
    /// Instructions per cycle.
    pub width: u16,
    /// The machine waits until operands are ready. False: the pipeline is
    /// exposed and code that reads too early gets the old value.
    pub interlock: bool,
    /// Bytes fetched at once, when bundles must not cross from one such packet
    /// into the next: the assembler pads. 0: they may.
    pub packet_bytes: u32,
    /// Cycles lost when a register that crosses between clusters was written
    /// in the cycle before, loads excepted.
    pub cross_stall: u32,
    /// How many times one register can be read in a cycle; 0: any number.
    pub register_reads: u16,
    /// What issues together stands together in the program: the compiler makes
    /// bundles, and writes loops so that they have something to hold.
    pub explicit: bool,
}

#[derive(Clone, Debug)]
pub struct BranchModel {
    /// How the machine guesses; the costs of being wrong are the
    /// instructions' `taken_cycles` and `untaken_cycles`.
    pub predictor: Predictor,
    /// Code is fetched in aligned pieces of so many bytes. Where a jump leads to an instruction that
    /// lies in two of them, it costs `split_target_cycles` more.
    pub fetch_bytes: u32,
    pub split_target_cycles: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Predictor {
    /// No guess: `taken_cycles` on every taken branch, `untaken_cycles` on
    /// every other.
    None,
    /// Backward taken, forward not: `taken_cycles` and `untaken_cycles` are
    /// paid only when the guess was wrong.
    BackwardTaken,
    /// By what branches did before: both are paid only when the guess was wrong.
    Dynamic(Learned),
}

/// The tables of a predictor that learns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Learned {
    /// Branches whose targets are known; the least recently used gives way.
    pub btb_entries: u32,
    /// Counters of directions, and the bits of each; a power of two.
    pub bht_entries: u32,
    pub bht_bits: u32,
    /// Return addresses.
    pub return_stack: u32,
}

/// Instructions for values of several words ([`ciphermill_ir::Chain`]), of pairs the one that begins a chain first.
#[derive(Clone, Debug)]
pub struct Chains {
    pub add: [InstrId; 2],
    pub add_imm: Option<[InstrId; 2]>,
    pub sub: [InstrId; 2],
    pub sub_imm: Option<[InstrId; 2]>,
    /// The second one may overwrite its first operand.
    pub compare: [InstrId; 2],
    pub compare_imm: Option<InstrId>,
    /// Does a chain of comparisons say whether all words are equal, or only the last ones?
    pub compares_all: bool,
    pub shift_right: [InstrId; 2],
    pub shift_sign: InstrId,
    /// Ones where there was a borrow.
    pub borrow: InstrId,
    /// Does a difference that borrows leave what a sum with a carry leaves, or the opposite?
    pub borrow_is_carry: bool,
    /// A product, and where its two words are found: in registers of their own, or in its operands.
    pub mul: Option<(InstrId, Option<[Reg; 2]>)>,
    /// The lower word of a product alone.
    pub mul_low: Option<InstrId>,
    pub swap: InstrId,
    /// On equal, not equal, less, not less (unsigned), less, not less (signed).
    pub branches: [InstrId; 6],
}

/// Choices of the code generator that a machine's compilers make differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Codegen {
    pub select: Selection,
}

/// How one of two values is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selection {
    /// By the cheapest instructions, or the rule that selects by a mask.
    Straight,
    /// By a branch.
    Branch,
}

/// Calling convention and the roles of registers.
#[derive(Clone, Debug)]
pub struct Abi {
    /// Where a caller puts arguments and finds results.
    pub args: Vec<Reg>,
    pub results: Vec<Reg>,
    /// Where the callee finds arguments and puts results; the same registers
    /// except on machines with register windows.
    pub callee_args: Vec<Reg>,
    pub callee_results: Vec<Reg>,
    /// Registers the allocator may use, best first.
    pub allocatable: Vec<Reg>,
    /// Of those, the ones a function must hand back as it found them (saved by
    /// store and load). Empty where a window saves them.
    pub callee_saved: Vec<Reg>,
    /// Preserved by a call without anyone saving them (the window).
    pub call_preserved: Vec<Reg>,
    pub stack_pointer: Reg,
    /// Where a call leaves the return address; None: on the stack, the stack
    /// pointer lowered by `return_bytes`.
    pub return_address: Option<Reg>,
    pub return_bytes: u32,
    /// Bytes that an address in a pointer to code counts as one.
    pub code_unit: u32,
    /// The pointer of a stack of return addresses alone.
    pub return_stack: Option<Reg>,
    /// Never allocated: for spill-to-spill moves and large frame offsets.
    pub scratch: Vec<Reg>,
    /// Take spilled values before the stack does, best first: registers that few instructions take.
    pub spill: Vec<Reg>,
    /// Registers that hold the first mutable globals (the C stack pointer)
    /// for the whole program.
    pub globals: Vec<Reg>,
    pub stack_align: u32,
    /// Bytes below a frame that the convention reserves (SPARC: 64 or 92).
    pub frame_reserve: u32,
    pub ops: FrameOps,
    /// Where no one instruction calls: how the return address gets into its
    /// register. A call is then these and a jump.
    pub link: Option<Link>,
    pub windows: Option<Windows>,
    pub rotation: Option<Rotation>,
}

/// Software pipelines with rotating registers: code of the loop stands once,
/// each stage of it guarded by a predicate of its own.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// Sets the first predicate and clears the others; its one immediate is the
    /// number of stages.
    pub enter: InstrId,
    /// The branch back while its register is not zero, and while it is zero.
    pub back: InstrId,
    pub back_zero: InstrId,
    /// Stage predicates, the first stage's first.
    pub predicates: Vec<Reg>,
}

/// Instructions the frame code is written with.
#[derive(Clone, Debug)]
pub struct FrameOps {
    /// `rd = rs` (operands: def, use).
    pub mov: InstrId,
    /// `sp = sp + imm`: operands in the instruction's own order.
    pub add_imm: InstrId,
    /// `rd = rs1 + rs2`.
    pub add: InstrId,
    /// Word load and store with base and displacement.
    pub load: InstrId,
    pub store: InstrId,
    /// The same, slower, where the displacement of those does not reach.
    pub load_far: Option<InstrId>,
    pub store_far: Option<InstrId>,
    /// Store so many registers, one more than the place in the list, below the stack pointer, the first at the lowest
    /// address, and move it there; and the reverse.
    pub push: Vec<InstrId>,
    pub pop: Vec<InstrId>,
    /// Unconditional jump, call, indirect call, return, trap, no-operation.
    pub jump: InstrId,
    /// The jump that is taken where `jump` does not reach.
    pub far_jump: Option<InstrId>,
    pub call: InstrId,
    pub call_indirect: InstrId,
    pub ret: InstrId,
    pub trap: InstrId,
    pub nop: InstrId,
}

/// Two instructions that put a label's address into the return register, one
/// after the other.
#[derive(Clone, Debug)]
pub struct Link {
    pub low: InstrId,
    pub high: InstrId,
    /// Unconditional jump to a register, for indirect calls.
    pub jump_indirect: InstrId,
}

/// Register windows, as SPARC has them.
#[derive(Clone, Debug)]
pub struct Windows {
    pub count: u16,
    pub ins: Vec<Reg>,
    pub locals: Vec<Reg>,
    pub outs: Vec<Reg>,
    /// Instruction that opens a window and lowers the stack pointer, and the
    /// one that closes it (in the delay slot of the return).
    pub save: InstrId,
    /// The same with a register instead of an immediate, for large frames.
    pub save_reg: InstrId,
    pub restore: InstrId,
    /// Return address register as the callee sees it after `save`.
    pub return_address: Reg,
    /// Return from a function that opened a window; and from one that did not.
    pub ret: InstrId,
    /// Cycles of a window overflow or underflow trap, handler included.
    pub overflow_cycles: u32,
    pub underflow_cycles: u32,
}

/// How the machine's GNU assembler wants things written.
#[derive(Clone, Debug)]
pub struct AsmSyntax {
    /// Before every register name (`%` on SPARC).
    pub reg_prefix: String,
    /// Before a guarded instruction, with `{p}` for the predicate.
    pub guard: String,
    /// To a comment.
    pub comment: String,
    /// Lines at the head of a file (options, `.register` directives).
    pub prologue: Vec<String>,
    /// What `.type` says of every function; without it, `@function` of exported ones.
    pub function_type: Option<String>,
    /// The two bytes of a pointer to the function `{f}`; without it, four bytes of its symbol.
    pub code_pointer: Option<String>,
}
