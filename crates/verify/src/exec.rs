//! The symbolic run of a bundle.
//!
//! All instructions of a bundle read before any of them writes. On an exposed pipeline a result
//! lands its latency later, and until then its register is what it was; elsewhere the hardware
//! waits, and each bundle finds what those before it have made.

use crate::access::{Access, share_a_bank};
use crate::code::{Arg, Fault, Inst, Storage};
use crate::eval::{self, Decisions, Env};
use crate::rules::{Effect, Rules, Value};
use crate::state::{Pending, State};
use crate::sums::Sums;
use crate::terms::{Kind, Map, Place, Term, Terms, words};
use ciphermill_machine::sem::{Dest, Stmt};
use ciphermill_machine::{InstrKind, Reg};
use smallvec::{SmallVec, smallvec};

/// The key of a term while it is made.
type Key = SmallVec<[u32; 24]>;

/// A jump that a bundle begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Jump {
    /// Is it taken; none where that is not known.
    pub taken: Option<bool>,
    /// The comparison that it hangs on, where that is all there is to it.
    pub condition: Option<Term>,
    pub label: Option<u32>,
    /// What it does, for comparing.
    pub event: Term,
    /// Cycles, or bundles where the hardware waits, that still run before it is taken.
    pub delay: u32,
    pub annuls: bool,
}

/// What a bundle did beside changing the state.
#[derive(Default)]
pub(crate) struct Done {
    pub jump: Option<Jump>,
    /// A call that begins when so many more bundles have run.
    pub call: Option<(Term, u32)>,
}

/// An access of the program before scheduling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Accesses of the program are numbered through.
    pub number: usize,
    pub access: Access,
    /// Where it begins, if that is known as a sum.
    pub place: Option<Place>,
    pub iteration: u32,
    /// What it followed, as [`crate::stored`] has it.
    pub follows: u128,
}

/// Words of the frame that are like registers: what is stored there is what is loaded (`verify/src/frame.rs`).
#[derive(Default)]
pub(crate) struct Frame {
    pub stack_pointer: Storage,
    /// Their offsets from it.
    pub words: Vec<i64>,
    /// The offsets by their addresses, as what a word's displacement does not reach is addressed.
    pub addresses: Option<Map<Term, i64>>,
}

impl Frame {
    pub fn new(stack_pointer: Storage, words: Vec<i64>) -> Frame {
        Frame { stack_pointer, words, addresses: None }
    }
}

/// What all runs of a check share.
pub(crate) struct Exec<'a> {
    pub rules: &'a Rules,
    pub terms: Terms,
    pub sums: Sums,
    pub decisions: Decisions,
    /// Accesses of the program by what they read, in their order.
    pub accesses: Map<Term, Vec<Known>>,
    count: usize,
    pub frame: Frame,
    /// Accesses that could meet in a bank are not to be in one cycle.
    pub banks_apart: bool,
}

impl<'a> Exec<'a> {
    pub fn new(rules: &'a Rules, frame: Frame, banks_apart: bool) -> Exec<'a> {
        let (terms, decisions, accesses) = (Terms::default(), Decisions::default(), Map::default());
        Exec { rules, terms, sums: Sums::default(), decisions, accesses, count: 0, frame, banks_apart }
    }

    pub fn start(&mut self) -> State {
        State::new(&mut self.terms, self.rules.machine.regs.len())
    }

    fn zero(&self, r: Storage) -> bool {
        self.rules.machine.regs.get(r as usize).is_some_and(|i| i.zero)
    }

    pub fn read(&mut self, state: &State, r: Storage) -> Term {
        if self.zero(r) { self.terms.constant(0) } else { state.read(&mut self.terms, r) }
    }

    /// Run one instruction of the program as it was before scheduling, in some iteration of a loop.
    pub fn step(&mut self, state: &mut State, inst: &Inst, iteration: u32) -> Result<Done, Fault> {
        self.run(state, std::slice::from_ref(inst), Some(iteration), false)
    }

    /// Run one instruction of what is checked where one follows the other.
    pub fn moved(&mut self, state: &mut State, inst: &Inst) -> Result<Done, Fault> {
        self.run(state, std::slice::from_ref(inst), None, false)
    }

    /// Run a bundle of what is checked.
    pub fn bundle(&mut self, state: &mut State, insts: &[Inst]) -> Result<Done, Fault> {
        self.run(state, insts, None, self.rules.exposed())
    }

    /// Results that are due land.
    pub fn land(&mut self, state: &mut State) -> Result<(), Fault> {
        if state.pending.is_empty() {
            return Ok(());
        }
        let mut due: Vec<Pending> = state.pending.iter().copied().filter(|p| p.due <= state.now).collect();
        state.pending.retain(|p| p.due > state.now);
        due.sort_by_key(|p| (p.due, p.register));
        if let Some(w) = due.windows(2).find(|w| (w[0].due, w[0].register) == (w[1].due, w[1].register)) {
            return Err(Fault(format!("two results land in {} in one cycle", self.rules.register(w[0].register))));
        }
        due.into_iter().for_each(|p| state.write(p.register, p.value));
        Ok(())
    }

    /// Run a bundle: of the program in some iteration, or of what is checked. Where it is `exposed`,
    /// results land when their latency is over.
    fn run(&mut self, state: &mut State, insts: &[Inst], iteration: Option<u32>, exposed: bool) -> Result<Done, Fault> {
        let rules = self.rules;
        self.land(state)?;
        let mut done = Done::default();
        let mut writes: Vec<(Storage, Term, u32)> = Vec::new();
        let mut stores: Vec<(Known, Term)> = Vec::new();
        let mut stored: Vec<(i64, Term)> = Vec::new();
        let mut banks: Vec<u64> = Vec::new();
        let mut fence = None;
        let (mut cycles, mut rotates) = (1, false);
        for inst in insts {
            let (instr, effect) = (rules.instr(inst.instr), rules.effect(inst.instr));
            cycles = cycles.max(instr.issue_cycles);
            let predicate = match inst.predicate {
                None => None,
                Some(g) => {
                    let g = self.read(state, g);
                    match self.terms.number(g) {
                        Some(0) => continue,
                        Some(_) => None,
                        None => Some(g),
                    }
                }
            };
            if predicate.is_some() && (effect.stores || effect.control || effect.fence) {
                return Err(self.fault(inst, "its predicate is neither true nor false"));
            }
            if let Some(offset) = self.framed(state, inst, effect)? {
                self.word(state, inst, offset, effect, &mut writes, &mut stored)?;
                continue;
            }
            let touched =
                if effect.loads || effect.stores { Some(self.touched(state, inst, effect, iteration)?) } else { None };
            let whole = self.whole(state, inst, effect, touched.as_ref())?;
            if let Some(t) = &touched {
                if t.access.banks != 0 && self.banks_apart && iteration.is_none() {
                    if banks.iter().any(|&b| share_a_bank(b, t.access.banks)) {
                        return Err(self.fault(inst, "it meets another access of its cycle in a bank of memory"));
                    }
                    banks.push(t.access.banks);
                }
                if effect.stores {
                    stores.push((*t, whole));
                }
            }
            if instr.kind == InstrKind::Trap
                && iteration.is_none()
                && insts.iter().any(|i| rules.effect(i.instr).stores)
            {
                return Err(self.fault(inst, "a store stands in the cycle of a trap, and never happens"));
            }
            if inst.traps || effect.stores || instr.kind == InstrKind::Trap {
                state.effects.push(whole);
            }
            let own = if effect.control { self.control(state, inst, effect, whole, &mut done)? } else { Vec::new() };
            rotates |= effect.rotates;
            for (k, r) in effect.results.iter().enumerate() {
                let Some(register) = destination(inst, &r.dest) else {
                    return Err(self.fault(inst, "its result has no register"));
                };
                if self.zero(register) {
                    continue;
                }
                let mut value = match (&r.value, own.get(k)) {
                    (_, Some(&own)) => own,
                    (Value::Copy(o), None) => {
                        self.operand(state, inst, *o).ok_or_else(|| self.fault(inst, "an operand is missing"))?
                    }
                    (Value::Imm(o), None) => match inst.args.get(*o) {
                        Some(Arg::Imm(v)) => self.constant(*v as u64, register),
                        _ => self.part(whole, k, effect),
                    },
                    (Value::Const(c), None) => self.constant(*c, register),
                    (Value::Other, None) => self.part(whole, k, effect),
                };
                if let (Value::Other, None) = (&r.value, own.get(k))
                    && self.sums.is_plain(value)
                {
                    self.made(state, inst, r, value);
                }
                if let Some(g) = predicate {
                    let old = self.read(state, register);
                    value = self.terms.of(&[Kind::Guarded as u32, g, value, old]);
                }
                if writes.iter().any(|w| w.0 == register && (!exposed || w.2 == r.latency)) {
                    return Err(self
                        .fault(inst, &format!("it writes {} in the same cycle as another", rules.register(register))));
                }
                writes.push((register, value, r.latency));
            }
            if effect.fence {
                if insts.len() > 1 {
                    return Err(self.fault(inst, "it has to stand alone"));
                }
                fence = Some((whole, u32::from(instr.delay_slots)));
            }
        }
        for (known, term) in stores {
            state.stored.store(&known.access, known.place, known.iteration, term);
        }
        state.words.extend(stored);
        for (register, value, latency) in writes {
            if exposed {
                state.pending.push(Pending { due: state.now + u64::from(latency.max(1)), register, value });
            } else {
                state.write(register, value);
            }
        }
        if rotates {
            self.rotate(state);
        }
        state.now += if exposed { u64::from(cycles) } else { 1 };
        if let Some((whole, delay)) = fence {
            if iteration.is_some() || delay == 0 {
                self.fence(state, whole);
            } else {
                done.call = Some((whole, delay));
            }
        }
        Ok(done)
    }

    /// Nothing moves across: it may read and write all there is.
    pub fn fence(&mut self, state: &mut State, whole: Term) {
        let mut key = vec![Kind::Fence as u32, whole];
        key.extend(words(state.stored.all()));
        key.extend(&state.registers);
        let event = self.terms.of(&key);
        state.effects.push(event);
        state.stored.fence(event);
        for r in 0..state.registers.len() {
            state.registers[r] = self.terms.of(&[Kind::Behind as u32, event, r as u32]);
        }
    }

    fn rotate(&self, state: &mut State) {
        for (first, count) in self.rules.machine.files.iter().map(|f| f.rotating).filter(|r| r.1 > 1) {
            let first = usize::from(first.0);
            state.registers[first..first + usize::from(count)].rotate_right(1);
        }
    }

    fn part(&mut self, whole: Term, k: usize, effect: &Effect) -> Term {
        if effect.results.len() == 1 { whole } else { self.terms.of(&[Kind::Part as u32, whole, k as u32]) }
    }

    fn constant(&mut self, value: u64, register: Storage) -> Term {
        let machine = &self.rules.machine;
        let file = machine.regs.get(register as usize).map_or(machine.word_bits, |r| machine.files[r.file].bits);
        let bits = file.min(machine.word_bits);
        self.terms.constant(if bits >= 64 { value } else { value & ((1 << bits) - 1) })
    }

    pub fn operand(&mut self, state: &State, inst: &Inst, o: usize) -> Option<Term> {
        match inst.args.get(o)? {
            Arg::Reg(r) | Arg::Tied { read: r, .. } => Some(self.read(state, *r)),
            _ => None,
        }
    }

    /// All that an instruction reads, behind the first words of a key.
    fn inputs(&mut self, state: &State, inst: &Inst, effect: &Effect, key: &mut Key) -> Result<(), Fault> {
        for (o, arg) in inst.args.iter().enumerate() {
            match *arg {
                Arg::Imm(v) => key.extend([v as u32, (v >> 32) as u32]),
                Arg::Label(l) => key.push(l),
                Arg::Func(f) => key.push(f),
                Arg::Reg(_) | Arg::Tied { .. } if !effect.reads.contains(&o) => {}
                Arg::Reg(r) | Arg::Tied { read: r, .. } => {
                    let t = self.read(state, r);
                    key.push(t);
                }
            }
        }
        for r in &effect.fixed {
            let t = self.read(state, u32::from(r.0));
            key.push(t);
        }
        Ok(())
    }

    /// The term of an instruction.
    pub fn whole(
        &mut self,
        state: &State,
        inst: &Inst,
        effect: &Effect,
        touched: Option<&Known>,
    ) -> Result<Term, Fault> {
        let mut key: Key = smallvec![Kind::Applied as u32, effect.meaning];
        if let Some(t) = touched {
            key.push(inst.space as u32);
            key.extend(words(t.follows));
        }
        self.inputs(state, inst, effect, &mut key)?;
        Ok(self.terms.of(&key))
    }

    /// What an access touches and which stores it follows.
    fn touched(
        &mut self,
        state: &mut State,
        inst: &Inst,
        effect: &Effect,
        iteration: Option<u32>,
    ) -> Result<Known, Fault> {
        let mut key: Key = smallvec![Kind::Address as u32, effect.meaning, inst.space as u32];
        self.inputs(state, inst, effect, &mut key)?;
        let read = self.terms.of(&key);
        let known = match iteration {
            Some(iteration) => {
                // An access of which nothing is said meets no other.
                let alone = Access { constant: true, ..Access::anywhere(inst.space) };
                let access = Access { store: effect.stores, ..inst.access.unwrap_or(alone) };
                // What is said of its bytes and what its meaning says are to be the same.
                let address = effect.address.as_ref().filter(|a| a.1 == access.bytes);
                let operands = self.operands(state, inst);
                let sum = address.and_then(|a| self.sum(inst, &a.0, &operands));
                let place = sum.map(|s| self.sums.place(&mut self.terms, &s));
                let follows = state.stored.before(&access, place, iteration, &self.sums);
                let known = Known { number: self.count, access, place, iteration, follows };
                self.count += 1;
                self.accesses.entry(read).or_default().push(known);
                known
            }
            None => {
                let Some(list) = self.accesses.get(&read) else {
                    return Err(self.fault(inst, "the program has no access to memory with what it reads here"));
                };
                // Several iterations may have an access with these operands: the first that followed the
                // same stores and that nothing has stood for yet. What runs more often than in the
                // program, as a load does that is not wanted any more, stands for one again.
                let follows = |k: &Known| state.stored.before(&k.access, k.place, k.iteration, &self.sums);
                let fits = || list.iter().filter(|k| follows(k) == k.follows);
                let fresh = fits().find(|k| !state.is_taken(k.number));
                let mut known = *fresh.or_else(|| fits().next()).unwrap_or(&list[0]);
                known.follows = follows(&known);
                state.take(known.number);
                known
            }
        };
        Ok(known)
    }

    /// Statement by statement: values of the results, and the jump.
    fn control(
        &mut self,
        state: &State,
        inst: &Inst,
        effect: &Effect,
        whole: Term,
        done: &mut Done,
    ) -> Result<Vec<Term>, Fault> {
        let rules = self.rules;
        let instr = rules.instr(inst.instr);
        let word = u32::from(rules.machine.word_bits);
        let mut given: Vec<Option<Term>> = Vec::new();
        for o in 0..inst.args.len() {
            let t = self.operand(state, inst, o);
            given.push(t);
        }
        let mut by_name: Vec<(Reg, Term)> = Vec::new();
        for &r in &effect.fixed {
            let t = self.read(state, u32::from(r.0));
            by_name.push((r, t));
        }
        let mut temps: Vec<Option<Term>> = vec![None; instr.temps];
        let mut own = Vec::new();
        for stmt in &instr.semantics {
            let decisions = &self.decisions;
            let decided = |t: Term| decisions.of(t, state.known);
            let operand = |o: usize| given.get(o).copied().flatten();
            let imm = |o: usize| if let Some(Arg::Imm(v)) = inst.args.get(o) { Some(*v) } else { None };
            let fixed = |r: Reg| by_name.iter().find(|x| x.0 == r).map_or(whole, |x| x.1);
            let env = Env {
                word,
                operand: &operand,
                imm: &imm,
                fixed: &fixed,
                temps: &temps.clone(),
                decided: &decided,
                whole,
            };
            let missing = || Fault(format!("`{}` lacks an operand", instr.name));
            match stmt {
                Stmt::Let { temp, value } => {
                    let t = eval::eval(&mut self.terms, value, &env).ok_or_else(missing)?;
                    *temps.get_mut(*temp).ok_or_else(missing)? = Some(t);
                }
                Stmt::Assign { value, .. } => {
                    own.push(eval::eval(&mut self.terms, value, &env).ok_or_else(missing)?);
                }
                Stmt::Goto { cond, .. } => {
                    let condition = match cond {
                        Some(c) => Some(eval::eval(&mut self.terms, c, &env).ok_or_else(missing)?),
                        None => None,
                    };
                    let taken = condition.map_or(Some(true), |c| self.terms.number(c).map(|n| n != 0));
                    let label = inst.args.iter().find_map(|a| if let Arg::Label(l) = a { Some(*l) } else { None });
                    if done.jump.is_some() {
                        return Err(self.fault(inst, "two jumps start in one cycle"));
                    }
                    let annuls = instr.annul && cond.is_some();
                    let delay = u32::from(instr.delay_slots);
                    done.jump = Some(Jump { taken, condition, label, event: whole, delay, annuls });
                }
                Stmt::Store { .. } | Stmt::Trap | Stmt::Rotate | Stmt::WindowSave | Stmt::WindowRestore => {}
            }
        }
        Ok(own)
    }

    pub fn fault(&self, inst: &Inst, what: &str) -> Fault {
        let operands: Vec<String> = inst
            .args
            .iter()
            .map(|a| match a {
                Arg::Reg(r) => self.rules.register(*r),
                Arg::Tied { read, write } => format!("{}/{}", self.rules.register(*read), self.rules.register(*write)),
                Arg::Imm(v) => v.to_string(),
                Arg::Label(l) => format!("L{l}"),
                Arg::Func(f) => format!("F{f}"),
            })
            .collect();
        Fault(format!("`{} {}`: {what}", self.rules.name(inst.instr), operands.join(", ")))
    }
}

/// The register that a result goes to.
pub(crate) fn destination(inst: &Inst, dest: &Dest) -> Option<Storage> {
    match dest {
        Dest::Fixed(r) => Some(u32::from(r.0)),
        Dest::Operand(o) => match inst.args.get(*o)? {
            Arg::Reg(r) | Arg::Tied { write: r, .. } => Some(*r),
            _ => None,
        },
    }
}
