//! Secrets followed through machine code as it runs.
//!
//! The simulator executes a program bundle by bundle and tells a [`Watch`] of
//! each: before it, with registers and memory as its instructions read them;
//! after it; and when a result lands in its register, which on an exposed
//! pipeline is cycles later. [`Tracker`] keeps a mask of secret bits for every
//! register and every byte of memory, evaluates the semantics of each
//! instruction on both ([`crate::semantics`]), and lets the masks take the way
//! that the simulator says the values take: through delay slots, late results,
//! register windows, rotating registers and the stack. There is no second
//! simulator; what the evaluation makes is compared with what the simulator
//! made, instruction by instruction ([`Tracker::fault`]). What touches no memory
//! and reads nothing secret makes nothing secret, and is not evaluated.
//!
//! An instruction with a predicate is no branch: it takes its slot either way.
//! Its results become secret with the predicate. A load or store with a secret
//! predicate is noted, because whether memory is accessed shows in a cache.

use crate::masks::Masks;
use crate::report::Kind;
use crate::semantics::{Evaluator, Seen, Source, truth};
use crate::taint::Word;
use ciphermill_ir::{SYSTEM_BASE, Space};
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Endian, Instr, Machine, Reg};
use ciphermill_program::layout::STACK_TOP;
use ciphermill_program::{Inst, Operand, Program};
use ciphermill_sim::code::{At, CodeMap};
use ciphermill_sim::exec::State;
use ciphermill_sim::flatten::Flow;
use ciphermill_sim::hazard::BundleTiming;
use ciphermill_sim::step::{Access, Watch};
use ciphermill_sim::{Simulator, Stop, uses};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// No latency reaches back further than this many bundles.
const LANDING: usize = 4096;

/// An instruction of a program: number of its bundle, index in it.
pub type Spot = (u32, u16);

/// A store of the bundle under way.
struct Stored {
    addr: u32,
    /// The same as an address of all memories.
    place: u32,
    bytes: u8,
    value: Word,
    /// As the run has it; one that is not keeps what is there.
    done: bool,
    perhaps: bool,
}

/// What an instruction writes to a register.
#[derive(Clone, Copy)]
struct Written {
    /// Its value, where it was evaluated.
    bits: Option<u64>,
    secret: u64,
}

impl From<Word> for Written {
    fn from(word: Word) -> Written {
        Written { bits: Some(word.bits), secret: word.secret }
    }
}

/// What is known of an instruction before it runs.
struct Known {
    reads: SmallVec<[Reg; 6]>,
    writes: SmallVec<[Reg; 2]>,
    /// It touches no memory.
    plain: bool,
}

impl Known {
    fn of(machine: &Machine, inst: &Inst) -> Known {
        let instr = &machine.instrs[usize::from(inst.instr.0)];
        let mut known = Known { reads: inst.predicate.into_iter().collect(), writes: SmallVec::new(), plain: true };
        for stmt in &instr.semantics {
            uses::statement_reads(inst, stmt, &mut |r| known.reads.push(r));
            match stmt {
                Stmt::Assign { dest, .. } => {
                    let written = uses::dest_of(inst, dest).ok().filter(|r| !machine.regs[usize::from(r.0)].zero);
                    known.writes.extend(written);
                }
                Stmt::Store { .. } => known.plain = false,
                _ => {}
            }
        }
        ciphermill_machine::for_each_expr(&instr.semantics, &mut |e| known.plain &= !matches!(e, Expr::Load { .. }));
        known
    }
}

/// The masks of a running program, and where they decided something.
pub struct Tracker<'p> {
    program: &'p Program,
    map: CodeMap,
    big: bool,
    registers: Vec<u64>,
    /// Of the windows that were left.
    saved: Vec<Vec<u64>>,
    pub memory: Masks,
    /// Masks of writes that have not all landed, and the serial of the first bundle's.
    landing: VecDeque<SmallVec<[u64; 2]>>,
    first: u64,
    /// Instructions that have run, by bundle.
    known: Vec<Vec<Known>>,
    /// What the bundle under way writes.
    writes: Vec<Written>,
    stores: Vec<Stored>,
    /// The last place in the module that was passed.
    passed: u32,
    /// Where secrets decided, with the place in the module, and how often.
    pub noted: BTreeMap<(Spot, u32, Kind), u64>,
    /// Bundles that ran, by number.
    pub ran: Vec<bool>,
    /// The simulator and the evaluation did not agree.
    pub fault: Option<String>,
}

/// What instructions read.
struct Here<'a> {
    machine: &'a Machine,
    registers: &'a [u64],
    memory: &'a Masks,
    state: &'a State,
    big: bool,
    /// The memory that the instruction means.
    space: Space,
}

impl Source for Here<'_> {
    fn register(&self, reg: Reg) -> Word {
        let r = usize::from(reg.0);
        match self.machine.regs[r].zero {
            true => Word::public(0),
            false => Word { bits: self.state.pool.values[r], secret: self.registers[r] },
        }
    }

    fn load(&self, addr: u32, bytes: u8) -> Option<Word> {
        let addr = self.state.memory.whole(addr, self.space);
        let bits = self.state.memory.peek(addr, bytes, self.big)?;
        Some(Word { bits, secret: self.memory.read(addr, bytes) })
    }
}

impl<'p> Tracker<'p> {
    /// Nothing is secret yet.
    ///
    /// # Errors
    /// When the program does not fit its machine.
    pub fn new(program: &'p Program) -> Result<Tracker<'p>, String> {
        let map = CodeMap::new(program)?;
        let big = program.machine.endian == Endian::Big;
        Ok(Tracker {
            program,
            big,
            registers: vec![0; program.machine.regs.len()],
            saved: Vec::new(),
            memory: Masks::new(big),
            landing: VecDeque::new(),
            first: 0,
            known: map.bundles.iter().map(|_| Vec::new()).collect(),
            writes: Vec::new(),
            stores: Vec::new(),
            passed: 0,
            noted: BTreeMap::new(),
            ran: vec![false; map.bundles.len()],
            fault: None,
            map,
        })
    }

    /// Bytes of linear memory that are secret from now on.
    pub fn secret(&mut self, bytes: Range<u32>) {
        bytes.for_each(|at| self.memory.set(at, 0xff));
    }

    /// Call a function with public arguments. Masks of memory stay from call to
    /// call, those of registers as far as their values do.
    ///
    /// # Errors
    /// As [`Simulator::call`].
    pub fn call(&mut self, sim: &mut Simulator, func: u32, args: &[u64]) -> Result<Vec<u64>, Stop> {
        let machine = &self.program.machine;
        for (r, mask) in self.registers.iter_mut().enumerate() {
            let global = self.program.global_regs.iter().any(|(g, _)| usize::from(g.0) == r);
            if !global && !machine.files[machine.regs[r].file].state {
                *mask = 0;
            }
        }
        self.saved.clear();
        self.landing.clear();
        self.first = 0;
        let word = u32::from(machine.word_bits / 8);
        let beyond = args.len().saturating_sub(machine.abi.args.len()) as u32;
        let overflow = SYSTEM_BASE + self.program.arg_overflow;
        let reserved = machine.abi.frame_reserve.next_multiple_of(machine.abi.stack_align.max(1)) + word;
        for at in (overflow..overflow + beyond * word).chain(STACK_TOP - reserved..STACK_TOP) {
            self.memory.set(at, 0);
        }
        sim.watched(func, args, self)
    }

    /// The instruction at a spot, and the function that it is in.
    pub fn at(&self, spot: Spot) -> (&'p Inst, u32) {
        (&self.map.bundle(self.program, spot.0).insts[usize::from(spot.1)], self.map.bundles[spot.0 as usize].func)
    }

    /// Its place in the module: its own; else of what made what a branch asks for, or of what
    /// stands nearest before or behind it; for a function of the compiler's own that of what led there.
    fn place(&self, spot: Spot) -> u32 {
        let at = self.map.bundles[spot.0 as usize];
        let func = &self.program.funcs[at.func as usize];
        let places = |b: u32| {
            let block = func.blocks.get(b as usize);
            block
                .into_iter()
                .flat_map(|b| &b.bundles)
                .enumerate()
                .flat_map(|(n, b)| b.insts.iter().map(move |i| (n as u32, i.loc)))
        };
        let inst = &self.map.bundle(self.program, spot.0).insts[usize::from(spot.1)];
        let before = || places(at.block).filter(|p| p.0 <= at.index && p.1 != 0).last().map(|p| p.1);
        let behind = || (at.block..at.block + 2).flat_map(places).find(|p| p.1 != 0).map(|p| p.1);
        let own = Some(inst.loc).filter(|&loc| loc != 0);
        own.or_else(|| self.asked(inst, at)).or_else(before).or_else(behind).unwrap_or(self.passed)
    }

    /// The place of the last instruction before a branch that wrote what its condition reads.
    fn asked(&self, branch: &Inst, at: At) -> Option<u32> {
        let machine = &self.program.machine;
        let mut read: Vec<Reg> = Vec::new();
        for stmt in &machine.instrs[usize::from(branch.instr.0)].semantics {
            if let Stmt::Goto { cond: Some(cond), .. } = stmt {
                uses::reads(branch, cond, &mut |r| read.push(r));
            }
        }
        let writes = |inst: &&Inst| {
            let assigns = |s: &Stmt| matches!(s, Stmt::Assign { dest, .. } if uses::dest_of(inst, dest).is_ok_and(|r| read.contains(&r)));
            machine.instrs[usize::from(inst.instr.0)].semantics.iter().any(assigns)
        };
        let block = &self.program.funcs[at.func as usize].blocks[at.block as usize];
        let before = block.bundles[..=at.index as usize].iter().rev().flat_map(|b| b.insts.iter().rev());
        before.filter(writes).map(|i| i.loc).next().filter(|&loc| loc != 0)
    }

    fn note(&mut self, spot: Spot, kind: Kind) {
        let place = self.place(spot);
        *self.noted.entry((spot, place, kind)).or_insert(0) += 1;
    }

    /// Evaluate an instruction of the bundle under way.
    fn step(&mut self, state: &State, spot: Spot, inst: &Inst, pc: u64) {
        let program = self.program;
        let machine: &Machine = &program.machine;
        let instr: &Instr = &machine.instrs[usize::from(inst.instr.0)];
        let func = self.map.bundles[spot.0 as usize].func as usize;
        let blocks = &self.map.layout.blocks;
        let target = |o: Operand| -> u64 {
            let at = match o {
                Operand::Block(b) => blocks[func].get(b as usize),
                Operand::Func(f) => blocks.get(f as usize).and_then(|b| b.first()),
                _ => None,
            };
            at.copied().unwrap_or(0).into()
        };
        let here =
            Here { machine, registers: &self.registers, memory: &self.memory, state, big: self.big, space: inst.space };
        let predicate = inst.predicate.map(|p| truth(here.register(p)));
        let open = predicate.is_some_and(|g| g.is_secret());
        let done = predicate.is_none_or(|g| g.bits != 0);
        let register = |dest: &Dest| match dest {
            Dest::Fixed(r) => Some(*r),
            Dest::Operand(i) => match inst.operands.get(*i) {
                Some(Operand::Reg(r)) => Some(*r),
                _ => None,
            },
        };
        let mut kinds: Vec<Kind> = Vec::new();
        let mut run = Evaluator {
            machine,
            source: &here,
            operands: &inst.operands,
            target: &target,
            pc,
            lets: vec![None; instr.temps],
            seen: Seen::default(),
            under: open.into(),
        };
        for stmt in &instr.semantics {
            match stmt {
                Stmt::Assign { dest, value } => {
                    let Some(r) = register(dest) else { continue };
                    let info = &machine.regs[usize::from(r.0)];
                    if info.zero {
                        continue;
                    }
                    let old = here.register(r);
                    let made = if done || open { run.eval(value) } else { None };
                    let made = made.map(|w| w.low(machine.files[info.file].bits.into()));
                    let written = match (done, open) {
                        (true, true) => made.unwrap_or(UNKNOWN).or(Some(old)),
                        (true, false) => made.unwrap_or(UNKNOWN),
                        (false, true) => old.or(made),
                        (false, false) => old,
                    };
                    self.writes.push(written.into());
                }
                _ if !done && !open => {}
                Stmt::Let { temp, value } => {
                    let value = run.eval(value);
                    if let Some(place) = run.lets.get_mut(*temp) {
                        *place = value;
                    }
                }
                Stmt::Store { bytes, addr, value } => {
                    let (addr, mut value) = (run.eval(addr), run.eval(value).unwrap_or(UNKNOWN));
                    // Not done, it need not have an address.
                    let Some(addr) = addr else { continue };
                    run.seen.address |= addr.secret;
                    run.seen.perhaps |= open;
                    if addr.is_secret() {
                        value.secret = u64::MAX;
                    }
                    let (addr, bytes) = (addr.bits as u32, *bytes);
                    self.stores.push(Stored {
                        addr,
                        place: state.memory.whole(addr, inst.space),
                        bytes,
                        value: value.low(8 * u32::from(bytes)),
                        done,
                        perhaps: open,
                    });
                }
                Stmt::Goto { cond, target } => {
                    let cond = cond.as_ref().map(|c| run.eval(c).map_or(UNKNOWN, truth));
                    if cond.is_some_and(|c| c.is_secret()) {
                        kinds.push(Kind::Branch);
                    }
                    let may = cond.is_none_or(|c| c.is_secret() || c.bits != 0);
                    if may && run.eval(target).is_some_and(|t| t.is_secret()) {
                        kinds.push(Kind::IndirectJump);
                    }
                }
                Stmt::Trap | Stmt::Rotate | Stmt::WindowSave | Stmt::WindowRestore => {}
            }
        }
        let seen = run.seen;
        let varies = |dest: &Dest| register(dest).is_some_and(|r| here.register(r).is_secret());
        if !instr.varies_with.is_empty() && (done || open) && (seen.loaded != 0 || instr.varies_with.iter().any(varies))
        {
            kinds.push(Kind::Timing);
        }
        kinds.extend(
            [(seen.address != 0, Kind::Address), (seen.perhaps, Kind::PerhapsAccess)]
                .iter()
                .filter(|k| k.0)
                .map(|k| k.1),
        );
        kinds.into_iter().for_each(|kind| self.note(spot, kind));
        if inst.loc != 0 {
            self.passed = inst.loc;
        }
    }

    /// Turn the register window.
    fn turn(&mut self, window: i8) {
        let Some(w) = &self.program.machine.abi.windows else { return };
        let index = |r: &Reg| usize::from(r.0);
        let windowed: Vec<usize> = w.locals.iter().chain(&w.ins).map(index).collect();
        if window == 1 {
            self.saved.push(windowed.iter().map(|&r| self.registers[r]).collect());
            for (i, o) in w.ins.iter().zip(&w.outs) {
                self.registers[index(i)] = self.registers[index(o)];
            }
            for r in w.locals.iter().chain(&w.outs) {
                self.registers[index(r)] = 0;
            }
        } else if window == -1 {
            for (i, o) in w.ins.iter().zip(&w.outs) {
                self.registers[index(o)] = self.registers[index(i)];
            }
            for (r, mask) in windowed.into_iter().zip(self.saved.pop().unwrap_or_default()) {
                self.registers[r] = mask;
            }
        }
    }

    /// Does the simulator say the same of the bundle?
    fn compare(&mut self, n: u32, flow: &Flow, accesses: &[Access], state: &State) {
        let values = flow.writes.iter().zip(&self.writes);
        let mut values = values.filter_map(|(w, made)| Some((state.pool.values[usize::from(w.value)], made.bits?)));
        let stores = accesses.iter().filter(|a| a.store).map(|a| (a.addr, a.bytes));
        let same = flow.writes.len() == self.writes.len()
            && values.all(|(theirs, ours)| theirs == ours)
            && stores.eq(self.stores.iter().filter(|s| s.done).map(|s| (s.addr, s.bytes)));
        if !same && self.fault.is_none() {
            self.fault =
                Some(format!("{}: its evaluation and its execution differ", self.map.describe(self.program, n)));
        }
    }
}

/// What has no value: nothing is promised of it.
const UNKNOWN: Word = Word { bits: 0, secret: u64::MAX };

impl Watch for Tracker<'_> {
    fn before(&mut self, n: u32, state: &State) {
        self.ran[n as usize] = true;
        self.writes.clear();
        self.stores.clear();
        let program = self.program;
        let bundle = self.map.bundle(program, n);
        let mut known = std::mem::take(&mut self.known[n as usize]);
        if known.is_empty() {
            known = bundle.insts.iter().map(|inst| Known::of(&program.machine, inst)).collect();
        }
        let mut pc = u64::from(self.map.bundles[n as usize].addr);
        for ((slot, inst), known) in bundle.insts.iter().enumerate().zip(&known) {
            if known.plain && known.reads.iter().all(|r| self.registers[usize::from(r.0)] == 0) {
                let done = inst.predicate.is_none_or(|p| state.pool.values[usize::from(p.0)] != 0);
                let secret = |r: &Reg| if done { 0 } else { self.registers[usize::from(r.0)] };
                self.writes.extend(known.writes.iter().map(|r| Written { bits: None, secret: secret(r) }));
                self.passed = if inst.loc != 0 { inst.loc } else { self.passed };
            } else {
                self.step(state, (n, slot as u16), inst, pc);
            }
            pc += u64::from(inst.bytes(&program.machine));
        }
        self.known[n as usize] = known;
        for s in self.stores.iter_mut().filter(|s| s.perhaps) {
            let old = state.memory.peek(s.place, s.bytes, self.big);
            let old = old.map(|bits| Word { bits, secret: self.memory.read(s.place, s.bytes) });
            s.value = if s.done { s.value.or(old) } else { old.unwrap_or(UNKNOWN).or(Some(s.value)) };
        }
    }

    fn issued(&mut self, n: u32, timing: &BundleTiming, flow: &Flow, accesses: &[Access], state: &State) {
        self.compare(n, flow, accesses, state);
        for s in &self.stores {
            self.memory.write(s.place, s.bytes, s.value.secret);
        }
        self.turn(timing.window);
        self.landing.push_back(self.writes.iter().map(|w| w.secret).collect());
        if self.landing.len() > LANDING {
            self.landing.pop_front();
            self.first += 1;
        }
    }

    fn landed(&mut self, reg: u16, serial: u64, which: usize) {
        let masks = serial.checked_sub(self.first).and_then(|i| self.landing.get(i as usize));
        if let Some(&mask) = masks.and_then(|m| m.get(which)) {
            self.registers[usize::from(reg)] = mask;
        }
    }

    fn rotated(&mut self, registers: Range<usize>) {
        self.registers[registers].rotate_right(1);
    }
}
