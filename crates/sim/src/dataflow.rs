//! The dataflow bound: a program on an infinitely wide machine.
//!
//! A run is executed as usual and every instruction is given the earliest
//! cycle at which its inputs exist: registers by the machine's latencies, and
//! bytes of memory one cycle after the store that wrote them. Control,
//! anti-dependences, units and issue width are ignored. Each of these only
//! removes reasons to wait that the real machine has, so by induction over the
//! run no instruction starts later here than there: the critical path (last
//! start plus one) is never above the real cycle count.
//!
//! Beside it runs a second clock, for the cipher's own critical path: the
//! longest chain from the words of the block, once they are in registers, to
//! the words of the result, before they are stored. Loading the block, storing
//! the result, loop counters and addresses that do not depend on the block are
//! no part of it (as Clapp counts, AES2 1999), nor are copies between
//! registers, which renaming does away with; a block that is copied in memory
//! before anything is done to it counts as not yet loaded. Sums are added in the
//! best order, whatever order the program has ([`crate::sums`]).
//!
//! What units and issue slots need is not asked here: that follows from how
//! often each instruction ran.

use crate::code::CodeMap;
use crate::exec::State;
use crate::flatten::Flow;
use crate::hazard::BundleTiming;
use crate::simulator::{Simulator, Stop};
use crate::step::{Access, NoWatch, Stepper, Watch};
use crate::sums::{self, Sum};
use crate::uses::reads;
use crate::xop::Slot;
use ciphermill_ir::BinOp;
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Instr, Reg};
use ciphermill_program::{Inst, Operand, Program};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Where the second clock starts and ends: ranges of linear memory.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// Holds the words that are transformed; what is loaded from there, and
    /// was not written in this run, is there at time 0.
    pub from: Vec<Range<u32>>,
    /// Takes the results.
    pub to: Vec<Range<u32>>,
}

/// What a run would cost if only its data flow counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Dataflow {
    /// Cycles of the longest chain of dependent instructions.
    pub critical_path: u64,
    /// Cycles of the longest chain between the [`Ends`]; None when no result
    /// depends on what is transformed.
    pub between: Option<u64>,
    pub instructions: u64,
}

/// When a value exists, by both clocks.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct When {
    /// Earliest cycle.
    ready: u64,
    /// Longest chain from what is transformed; None when it does not depend on it.
    depth: Option<u64>,
}

impl When {
    fn join(&mut self, other: When) {
        self.ready = self.ready.max(other.ready);
        self.depth = self.depth.max(other.depth);
    }

    fn after(self, cycles: u64, depth: u64) -> When {
        When { ready: self.ready + cycles, depth: self.depth.map(|d| d + depth) }
    }
}

/// A value: when it exists, and what is known of it.
#[derive(Clone, Debug)]
struct Value {
    when: When,
    /// The bits it may have.
    bits: u64,
    /// As a sum, whose depth is that of `when`.
    sum: Option<Arc<Sum>>,
}

impl Value {
    fn unknown(when: When) -> Value {
        Value { when, bits: u64::MAX, sum: None }
    }

    /// Its terms for a larger sum.
    fn terms(&self, op: BinOp, latency: u64) -> Vec<Option<u64>> {
        match &self.sum {
            Some(sum) if sum.op == op && sum.latency == latency => sum.terms.clone(),
            _ => vec![self.when.depth],
        }
    }
}

/// Times at which values exist.
struct Tracker<'a> {
    program: &'a Program,
    map: &'a CodeMap,
    ends: &'a Ends,
    registers: Vec<Value>,
    saved: Vec<Vec<Value>>,
    /// Bytes written in this run.
    memory: HashMap<u32, When>,
    /// For bundles whose writes have not all landed: serial of the first, and
    /// for each the times of its writes.
    landing: VecDeque<Vec<Value>>,
    first: u64,
    out: Dataflow,
}

/// The inputs of an instruction.
#[derive(Clone, Copy, Default)]
struct Inputs {
    /// Of everything it reads.
    all: When,
    /// Of what a load found in memory, or a store puts there.
    data: When,
    /// Of everything else.
    rest: When,
}

impl Inputs {
    /// Does it only hand on words that nothing has been done to yet?
    fn untouched(&self) -> bool {
        self.data.depth == Some(0) && self.rest.depth.is_none()
    }
}

impl Tracker<'_> {
    fn turn(&mut self, window: i8) {
        let Some(w) = &self.program.machine.abi.windows else { return };
        let index = |r: &Reg| usize::from(r.0);
        let windowed: Vec<usize> = w.locals.iter().chain(&w.ins).map(index).collect();
        if window == 1 {
            self.saved.push(windowed.iter().map(|&r| self.registers[r].clone()).collect());
            for (i, o) in w.ins.iter().zip(&w.outs) {
                self.registers[index(i)] = self.registers[index(o)].clone();
            }
            for r in w.locals.iter().chain(&w.outs) {
                self.registers[index(r)] = Value::unknown(When::default());
            }
        } else if window == -1 {
            for (i, o) in w.ins.iter().zip(&w.outs) {
                self.registers[index(o)] = self.registers[index(i)].clone();
            }
            if let Some(times) = self.saved.pop() {
                for (r, t) in windowed.into_iter().zip(times) {
                    self.registers[r] = t;
                }
            }
        }
    }

    fn inputs(&self, inst: &Inst, instr: &Instr, loads: &[&Access]) -> Inputs {
        let mut found = Inputs::default();
        let of = |e: &Expr| {
            let mut when = When::default();
            reads(inst, e, &mut |r: Reg| when.join(self.registers[usize::from(r.0)].when));
            when
        };
        if let Some(p) = inst.predicate {
            found.rest.join(self.registers[usize::from(p.0)].when);
        }
        for s in &instr.semantics {
            match s {
                Stmt::Let { value, .. } | Stmt::Assign { value, .. } => found.rest.join(of(value)),
                Stmt::Store { addr, value, .. } => {
                    found.rest.join(of(addr));
                    found.data.join(of(value));
                }
                Stmt::Goto { cond: Some(c), .. } => found.rest.join(of(c)),
                _ => {}
            }
        }
        for a in loads {
            for b in 0..u32::from(a.bytes) {
                let addr = a.addr.wrapping_add(b);
                let given = || When { ready: 0, depth: within(&self.ends.from, addr).then_some(0) };
                found.data.join(self.memory.get(&addr).copied().unwrap_or_else(given));
            }
        }
        found.all = found.rest;
        found.all.join(found.data);
        found
    }
}

impl Tracker<'_> {
    /// What an instruction puts into a register, `latency` cycles after issue.
    fn made(&self, inst: &Inst, instr: &Instr, inputs: &Inputs, latency: u32) -> Value {
        let of = |i: usize| match inst.operands.get(i) {
            Some(Operand::Reg(r)) => self.registers.get(usize::from(r.0)),
            _ => None,
        };
        let cycles = u64::from(latency);
        let [Stmt::Assign { value, .. }] = &instr.semantics[..] else {
            return Value::unknown(inputs.all.after(cycles, cycles));
        };
        if let (true, Expr::Operand(i)) = (copies(instr), value)
            && let Some(source) = of(*i)
        {
            return Value { when: inputs.all.after(cycles, 0), ..source.clone() };
        }
        let word = if self.program.machine.word_bits == 32 { u64::from(u32::MAX) } else { u64::MAX };
        let bits = |e: &Expr| sums::possible(inst, e, word, &|r| self.registers[usize::from(r.0)].bits);
        let free = only_loads(instr) && inputs.untouched();
        let mut made =
            Value { when: inputs.all.after(cycles, if free { 0 } else { cycles }), bits: bits(value), sum: None };
        if let (Some((op, [a, b])), true) = (sums::addition(instr), made.when.depth.is_some()) {
            let op = if op == BinOp::Or && bits(a) & bits(b) == 0 { BinOp::Xor } else { op };
            let terms = |e: &Expr| match e {
                Expr::Operand(i) => of(*i).map_or(vec![None], |v| v.terms(op, cycles)),
                _ => vec![None],
            };
            let sum = Sum::join(op, cycles, [terms(a), terms(b)]);
            made.when.depth = sum.depth();
            made.sum = Some(Arc::new(sum));
        }
        made
    }
}

fn within(ranges: &[Range<u32>], addr: u32) -> bool {
    ranges.iter().any(|r| r.contains(&addr))
}

/// Does it only copy a register?
fn copies(instr: &Instr) -> bool {
    matches!(instr.semantics[..], [Stmt::Assign { dest: Dest::Operand(_), value: Expr::Operand(_) }])
}

/// Does it only load?
fn only_loads(instr: &Instr) -> bool {
    matches!(instr.semantics[..], [Stmt::Assign { value: Expr::Load { .. }, .. }])
}

impl Watch for Tracker<'_> {
    fn issued(&mut self, n: u32, timing: &BundleTiming, flow: &Flow, accesses: &[Access], _: &State) {
        let bundle = self.map.bundle(self.program, n);
        let machine = &self.program.machine;
        let mut found = Vec::with_capacity(bundle.insts.len());
        for (k, inst) in bundle.insts.iter().enumerate() {
            let instr = &machine.instrs[usize::from(inst.instr.0)];
            let loads: Vec<&Access> = accesses.iter().filter(|a| !a.store && usize::from(a.slot) == k).collect();
            let inputs = self.inputs(inst, instr, &loads);
            self.out.critical_path = self.out.critical_path.max(inputs.all.ready + 1);
            self.out.instructions += 1;
            found.push(inputs);
        }
        for a in accesses.iter().filter(|a| a.store) {
            let inputs = found.get(usize::from(a.slot)).copied().unwrap_or_default();
            let when = inputs.all.after(1, u64::from(!inputs.untouched()));
            for addr in (0..u32::from(a.bytes)).map(|b| a.addr.wrapping_add(b)) {
                self.memory.insert(addr, when);
                if within(&self.ends.to, addr) {
                    self.out.between = self.out.between.max(inputs.data.depth);
                }
            }
        }
        let result = |slot: usize, latency: u32| {
            let inst = &bundle.insts[slot];
            self.made(inst, &machine.instrs[usize::from(inst.instr.0)], &found[slot], latency)
        };
        let times = flow.writes.iter().map(|w| result(w.slot, w.latency)).collect();
        self.turn(timing.window);
        self.landing.push_back(times);
        // No latency reaches back further than this many bundles.
        if self.landing.len() > 4096 {
            self.landing.pop_front();
            self.first += 1;
        }
    }

    fn rotated(&mut self, registers: Range<usize>) {
        self.registers[registers].rotate_right(1);
    }

    fn landed(&mut self, reg: Slot, serial: u64, which: usize) {
        let times = serial.checked_sub(self.first).and_then(|i| self.landing.get(i as usize));
        if let Some(value) = times.and_then(|t| t.get(which)) {
            self.registers[usize::from(reg)] = value.clone();
        }
    }
}

impl Simulator {
    /// Call a function and return its results with its dataflow costs. Leaves
    /// the counts of [`Simulator::stats`] as they are.
    pub fn dataflow(&mut self, func: u32, args: &[u64], ends: &Ends) -> Result<(Vec<u64>, Dataflow), Stop> {
        self.start()?;
        let entry = self.prepare(func, args)?;
        let mut stepper = Stepper::new(&self.program, &self.map, false).map_err(Stop::Internal)?;
        let mut tracker = Tracker {
            program: &self.program,
            map: &self.map,
            ends,
            registers: vec![Value::unknown(When::default()); self.program.machine.regs.len()],
            saved: Vec::new(),
            memory: HashMap::new(),
            landing: VecDeque::new(),
            first: 0,
            out: Dataflow::default(),
        };
        let windows = (self.state.windows.overflows, self.state.windows.underflows);
        let fuel = self.options.max_instructions;
        let run = stepper.call(&self.program, &self.map, &mut self.state, entry, fuel, &mut tracker);
        let out = tracker.out;
        (self.state.windows.overflows, self.state.windows.underflows) = windows;
        let results = self.leave(func, args, run.map(|_| ()))?;
        stepper.drain(&mut self.state, &mut NoWatch);
        Ok((results, out))
    }
}
