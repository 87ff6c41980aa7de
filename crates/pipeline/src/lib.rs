//! Software pipelining: loops whose iterations overlap.
//!
//! ```text
//! body -> partition -> place -> modulo -> relieve -> color -> emit
//! ```
//!
//! A loop of one block ([`body`]), without what is the same in every iteration and read far apart
//! in it ([`invariant`]), is divided between the clusters ([`partition`], [`place`]), scheduled at
//! the least initiation interval that units, dependences and registers allow ([`graph`], [`modulo`]
//! with its [`table`], [`certain`], [`relieve`], [`color`]; where values are too many for that, with
//! some in the frame, [`park`]), made shorter where that can be (by annealing, [`squeeze`],
//! [`leap`] and [`anneal`], and by other choices, [`refine`]), and written out as prologue, kernel
//! and epilogue ([`emit`]). What a longer search has found before is taken instead of all this where
//! there is a record of it ([`recorded`]), in whatever form of the loop ([`forms`]). All that happens before register allocation: the whole loop then becomes one
//! pseudo-instruction ([`replace`]) that takes its values in certain registers, gives back others, and destroys
//! the rest; `regalloc2` arranges everything around it.
//!
//! Nothing is promised here that is not checked elsewhere: what is written out
//! is run symbolically beside the loop as it was ([`ciphermill_schedule::verified`]), and
//! the simulator, whose pipeline is as exposed as the machine's, compares the
//! output with the reference interpreter's.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod affine;
mod anneal;
pub mod body;
mod certain;
mod circle;
pub mod color;
mod copies;
pub mod emit;
pub mod exact;
mod forms;
pub mod graph;
mod invariant;
mod leap;
mod memo;
pub mod modulo;
mod narrower;
pub mod order;
mod park;
pub mod partition;
pub mod place;
mod plain;
mod recorded;
mod redivide;
mod refine;
pub mod refused;
mod relieve;
mod replace;
pub mod rotating;
mod rounds;
pub mod spill;
mod squeeze;
pub mod table;

use crate::refused::{Reason, Refused};
use body::{Body, Candidate};
use ciphermill_bounds::{Bound, model::Loop};
use ciphermill_machine::{InstrId, Machine, Reg};
use ciphermill_program::CircuitStep;
use ciphermill_program::exact::Question;
use ciphermill_program::kept_schedules::KeptSchedule as Recorded;
use ciphermill_schedule::verified::{self, Replaced};
use ciphermill_vcode::CompileError;
use ciphermill_vcode::Facts;
use ciphermill_vcode::Registers;
use ciphermill_vcode::{VFunc, VReg};
use exact::Exchange;
pub use memo::Memo;
use memo::Starts;
use modulo::{Plan, Policy, Schedule};
use place::{At, Ops, Sides};
use relieve::Neighbours;
use std::cell::{Cell, OnceCell};
use std::sync::Arc;

/// Stages that an iteration may have on a machine whose pipeline is exposed, and where its
/// longest chain of dependences asks for more.
const STAGES: (i64, i64) = (4, 8);
/// And where the hardware waits for operands, and a result's register is taken all the
/// while.
const INTERLOCKED: i64 = 2;
/// Numbers of stages that are tried: the least that the longest chain of dependences
/// needs, and one more, in which values are made later.
const TRIED: i64 = 2;
/// What is tried at each II.
const POLICIES: [Policy; 12] = [
    Policy {
        frugal: false,
        program: 0,
        reserve: 0,
        wait: Some(6),
        hope: 0,
        ahead: 2,
        keep: 2,
        slack: 0,
        safe: true,
        seed: 0,
    },
    Policy {
        frugal: true,
        program: 0,
        reserve: 0,
        wait: Some(6),
        hope: 0,
        ahead: 2,
        keep: 6,
        slack: 0,
        safe: true,
        seed: 0,
    },
    Policy {
        frugal: true,
        program: 2,
        reserve: 0,
        wait: Some(6),
        hope: 0,
        ahead: 2,
        keep: 4,
        slack: 1,
        safe: true,
        seed: 0,
    },
    Policy {
        frugal: false,
        program: 0,
        reserve: 0,
        wait: None,
        hope: 8,
        ahead: 2,
        keep: 2,
        slack: 0,
        safe: false,
        seed: 0,
    },
    Policy {
        frugal: true,
        program: 0,
        reserve: 0,
        wait: None,
        hope: 8,
        ahead: 2,
        keep: 2,
        slack: 0,
        safe: false,
        seed: 0,
    },
    Policy {
        frugal: true,
        program: 0,
        reserve: 0,
        wait: Some(99),
        hope: 1,
        ahead: 2,
        keep: 2,
        slack: 0,
        safe: false,
        seed: 0,
    },
    Policy {
        frugal: false,
        program: 0,
        reserve: 1,
        wait: None,
        hope: 1,
        ahead: 2,
        keep: 2,
        slack: 0,
        safe: false,
        seed: 0,
    },
    Policy {
        frugal: true,
        program: 0,
        reserve: 3,
        wait: None,
        hope: 1,
        ahead: 2,
        keep: 2,
        slack: 0,
        safe: false,
        seed: 0,
    },
    Policy {
        frugal: false,
        program: 0,
        reserve: 4,
        wait: None,
        hope: 0,
        ahead: 2,
        keep: 2,
        slack: 0,
        safe: false,
        seed: 0,
    },
    Policy {
        frugal: false,
        program: 0,
        reserve: 0,
        wait: None,
        hope: 8,
        ahead: 2,
        keep: 2,
        slack: 2,
        safe: false,
        seed: 0,
    },
    Policy {
        frugal: false,
        program: 4,
        reserve: 0,
        wait: None,
        hope: 1,
        ahead: 2,
        keep: 2,
        slack: 0,
        safe: false,
        seed: 0,
    },
    Policy {
        frugal: false,
        program: 2,
        reserve: 0,
        wait: Some(99),
        hope: 1,
        ahead: 2,
        keep: 2,
        slack: 0,
        safe: false,
        seed: 0,
    },
];
/// Schedules of one length that are tried, with fewer registers each time where the
/// last had too few.
const ATTEMPTS: usize = 8;
/// Rows on both sides of one with too few registers that are taken to have fewer.
const NEARBY: i64 = 2;
/// Operations scheduled while partitions of a body that hangs together are
/// tried: a large body gets fewer trials.
const TRIALS: usize = 100_000;
/// Operations looked at, for all schedules of one loop, when a thorough search
/// is wanted, and otherwise. Loops of ciphers need less; a loop of many thousand
/// instructions gets what was found until then.
const WORK: i64 = 4_500_000;
const QUICK: i64 = 4_000_000;
/// The same for a thorough search where there are several sides: what it finds is annealed,
/// and that matters more.
const DIVIDED: i64 = 2_000_000;
/// Loops of more instructions may be worth values in the frame.
const LARGE: usize = 200;
/// Registers that are asked whether they are free in the time that looking at an operation takes.
const LOOKS: usize = 64;
/// Seeds of a search.
const ROUND: u64 = 1_000;
/// So many times as long is searched where an exact scheduler is asked afterwards.
pub const PATIENT: u64 = 10;

/// How hard pipelines are searched for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// With a search for who does what, and for a shorter one when one is found.
    pub thorough: bool,
    /// Thoroughly for the function's longest loops only.
    pub longest: bool,
    /// What is found is not shortened.
    pub unrefined: bool,
    /// How what is found is shortened.
    pub search: Search,
    /// So many times the usual budget.
    pub patience: u32,
}

/// How schedules are shortened by chance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Search {
    /// For so many times as long as usual.
    pub times: u64,
    /// Which of many searches it is, each of which goes other ways: 0 is that of a run.
    pub round: u64,
}

impl Search {
    /// Does it go on from records, for new ones?
    fn goes_on(&self) -> bool {
        self.round > 0
    }

    /// The seed of a part of it.
    fn seed(&self, part: u64) -> u64 {
        part + self.round * ROUND
    }
}

impl Effort {
    fn quick() -> Effort {
        Effort { thorough: false, longest: false, unrefined: false, search: Search { times: 1, round: 0 }, patience: 1 }
    }
}

/// A pipelined loop.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub ops: Ops,
    pub schedule: Schedule,
    pub registers: color::Assignment,
    /// What branches past the kernel when the last operation, the branch back,
    /// would not be taken.
    pub skip: InstrId,
    pub loop_depth: u8,
    /// Values that are in the frame while the loop runs, and the offsets of
    /// their words from the stack pointer.
    pub kept: Vec<(VReg, i64)>,
    /// Words of the frame, these and others.
    pub words: usize,
    /// Lower bounds of the II that hold for any division between the sides.
    pub res_mii: i64,
    pub rec_mii: i64,
    /// Where registers rotate: the names of its values. `registers` is then what
    /// they have outside the loop.
    pub rotating: Option<rotating::Names>,
    /// No schedule is shorter, by its bounds or an exact scheduler's word; 0 without.
    pub least: i64,
    /// The bounds that were looked for, with their proofs, and what these are about.
    pub bounds: Vec<Bound>,
    pub plain: Option<Arc<Loop>>,
    /// The same with its operations as they are divided between the clusters.
    pub divided: Option<Arc<Loop>>,
    /// Hundredths of the fullest side's registers that have values.
    pub held: u32,
    /// Is its schedule from a record?
    pub recorded: bool,
    /// The longest chain of dependences of one iteration.
    pub path: i64,
    /// What an exact scheduler was asked about it.
    pub asked: Vec<Question>,
    /// A way round that takes as long as RecMII says.
    pub round: Vec<CircuitStep>,
    /// The loop that it stands for, for checking its code.
    pub replaced: Option<Box<Replaced>>,
}

impl Kernel {
    /// One of which nothing is known but its schedule and the registers of that.
    fn new(body: &Body, ops: Ops, schedule: Schedule, registers: color::Assignment) -> Kernel {
        Kernel {
            ops,
            schedule,
            registers,
            skip: body.skip,
            loop_depth: body.loop_depth,
            kept: Vec::new(),
            words: 0,
            res_mii: 0,
            rec_mii: 0,
            rotating: None,
            least: 0,
            bounds: Vec::new(),
            plain: None,
            divided: None,
            held: 0,
            recorded: false,
            path: 0,
            asked: Vec::new(),
            round: Vec::new(),
            replaced: None,
        }
    }

    /// Does the loop use a register for a value of its own?
    pub fn uses(&self, r: Reg) -> bool {
        self.registers.result.contains(&Some(r)) || self.registers.outside.values().any(|x| *x == r)
    }
}

/// What there is of records, and what is to be written down.
#[derive(Debug, Default)]
pub struct Records<'a> {
    pub known: &'a [Recorded],
    /// Of the loops that are searched with all effort, where that is wanted.
    pub new: Option<Vec<Recorded>>,
}

/// What was made of a function's loops.
#[derive(Default)]
pub struct Pipelined {
    pub kernels: Vec<Kernel>,
    /// The other loops, and why they are not.
    pub refused: Refused,
    /// Loops whose search came to the end of its budget.
    pub cut: u32,
}

/// Find the loops of a function that can be pipelined and replace each by a
/// pseudo-instruction. The others that might have been are returned with the reason why not.
#[expect(clippy::too_many_arguments, reason = "the function, and how it is to be pipelined")]
pub fn pipeline(
    func: &mut VFunc,
    machine: &Machine,
    facts: &Facts,
    registers: &Registers,
    effort: Effort,
    memo: &OnceCell<Memo>,
    records: &mut Records<'_>,
    mut exchange: Option<&mut Exchange>,
) -> Result<Pipelined, CompileError> {
    let mut free: Vec<Reg> = registers.allocatable.iter().chain(&machine.abi.scratch).copied().collect();
    // Meanwhile the return address waits in the frame.
    let file = |r: &Reg| machine.regs[usize::from(r.0)].file;
    let back = machine.abi.return_address.filter(|r| !free.contains(r) && free.iter().any(|f| file(f) == file(r)));
    free.extend(back);
    let sides = Sides::new(machine, &free);
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut refused = Refused::new();
    let mut cut = 0;
    let length = |func: &VFunc, c: &Candidate| func.blocks[c.header as usize].insts.len();
    let longest = body::candidates(func).iter().map(|c| length(func, c)).max().unwrap_or(0);
    // Bounds are asked of all loops, those too that little is tried for.
    let prove = effort.thorough && !effort.unrefined;
    // Replacing a loop may take a block away: look again after each.
    let mut tried = std::collections::BTreeSet::new();
    loop {
        let next = body::candidates(func).into_iter().find(|c| !tried.contains(&name(func, c)));
        let Some(c) = next else { return Ok(Pipelined { kernels, refused, cut }) };
        tried.insert(name(func, &c));
        let long = !effort.longest || sides.files.len() < 2 || 4 * length(func, &c) >= 3 * longest;
        let effort = if long && effort.thorough { Effort { longest: false, ..effort } } else { Effort::quick() };
        let body = match body::read(func, machine, facts, &c) {
            Ok(body) => body,
            Err(why) => {
                refused.insert(name(func, &c), Reason::new("form", why));
                continue;
            }
        };
        let memo = memo.get_or_init(|| Memo::new(machine, records.known));
        let mut found = None;
        for in_order in [false, true] {
            let Some(body) = (if in_order { body.in_order() } else { Some(body.clone()) }) else { continue };
            for body in with_copies(&sides, &body)?.into_iter().chain([body]) {
                let (kept, records) = (kept(&kernels), records.known);
                let asked = Asked { body: &body, sides: &sides, registers, kept, effort, records };
                let searched = narrower::pipeline(asked, memo)?;
                cut += u32::from(searched.cut && effort.thorough);
                if let Some((kernel, own)) = searched.found {
                    // Orders that the loop does not need are no bounds of it.
                    let memory = if in_order { Vec::new() } else { body.memory.clone() };
                    found = Some((kernel, own, Body { memory, ..body }));
                    break;
                }
            }
            if found.is_some() {
                break;
            }
        }
        let Some((mut kernel, own, body)) = found else {
            let why = "no schedule was found in which its iterations overlap and whose values have registers";
            refused.insert(name(func, &c), Reason::new("no_schedule", why));
            continue;
        };
        let ring = kernel.rotating.as_ref().map(|names| names.ring.len());
        let plain = plain::plain(&sides, &body, ring)?;
        if let Some(circuit) = ciphermill_bounds::recurrence(&plain) {
            kernel.round = plain::steps(&sides, &body, &plain, &circuit.edges)?;
        }
        if prove {
            kernel.bounds = ciphermill_bounds::quick(&plain);
            kernel.least = ciphermill_bounds::greatest(&kernel.bounds, false).map_or(0, |b| b.least);
            kernel.plain = Some(Arc::new(plain));
            if kernel.least > kernel.schedule.ii {
                let (least, ii) = (kernel.least, kernel.schedule.ii);
                return Err(CompileError::Internal(format!(
                    "{}: a loop has an interval of {ii} below its bound of {least}",
                    func.name
                )));
            }
        }
        if let (Some(new), true) = (&mut records.new, effort.thorough && sides.files.len() > 1) {
            new.extend(forms::write(&kernel, &own, &body, &sides));
        }
        if let (Some(exchange), None) = (&mut exchange, &kernel.rotating) {
            kernel = exchange.improve(kernel, &own, &sides, registers)?;
        }
        if prove {
            kernel.divided = Some(Arc::new(plain::divided(&sides, &kernel.ops, ring)));
        }
        kernel.path = graph::Orders::of(&kernel.ops).chain(&kernel.ops);
        if kernel.rotating.is_none() {
            kernel.held = color::held(&sides, &kernel.ops, &kernel.schedule);
        }
        let source = verified::source_loop(func, machine, c.header, c.back)?;
        let were = verified::outside(func, c.header, c.back);
        replace::replace(func, &c, &own, &kernel, kernels.len(), registers, machine);
        let header = c.header - u32::from(c.back.is_some_and(|b| b < c.header));
        let are = verified::outside(func, header, None);
        let words = kept(&kernels)..kept(&kernels) + kernel.words;
        let pipeline = verified::replaced(func, machine, facts, header, (&were, &are), &free, words)?;
        kernel.replaced = Some(Box::new(Replaced { source, pipeline }));
        kernels.push(kernel);
    }
}

/// A body without what is the same in every iteration, and with copies of what is read far apart; none
/// where registers rotate, or where it has neither.
fn with_copies(sides: &Sides<'_>, body: &Body) -> Result<Option<Body>, CompileError> {
    if sides.machine.abi.rotation.is_some() {
        return Ok(None);
    }
    let bound = graph::least(sides, body)?;
    let hoisted = invariant::hoist(body, bound);
    let split = copies::split(hoisted.as_ref().unwrap_or(body), sides.machine, bound);
    Ok(split.or(hoisted))
}

/// Asks for what a search ends with before it is shortened, or remembers it.
type Remembering<'a> = &'a dyn Fn(&mut dyn FnMut() -> Result<Starts, CompileError>) -> Result<Starts, CompileError>;

/// A loop, and what it is to be pipelined with.
#[derive(Clone, Copy)]
struct Asked<'a> {
    body: &'a Body,
    sides: &'a Sides<'a>,
    registers: &'a Registers,
    /// Words of the frame that the loops before it use.
    kept: usize,
    effort: Effort,
    /// Schedules that are known of some loops.
    records: &'a [Recorded],
}

/// What came of a search.
#[derive(Clone, Debug)]
struct Searched {
    found: Option<(Kernel, Body)>,
    /// The budget was spent before all was tried.
    cut: bool,
    /// What was spent of it.
    used: i64,
}

/// The shortest pipeline that is found on a machine.
fn shortest(asked: Asked<'_>, remembered: Remembering<'_>) -> Result<Searched, CompileError> {
    let Asked { body, sides, registers, effort, .. } = asked;
    let budget = rotating::WORK * i64::from(effort.patience);
    let work = Cell::new(budget);
    let Some(kernel) = rotating::pipeline(body, sides, registers, effort.thorough, &work)? else {
        let other = best(asked, remembered)?;
        let used = other.used + (budget - work.get()) / rotating::LOOKS;
        return Ok(Searched { cut: other.cut || work.get() <= 0, used, ..other });
    };
    // Where many values live at once, counting registers while operations are
    // placed may do better.
    let bound = kernel.res_mii.max(kernel.rec_mii);
    let quick = Asked { effort: Effort::quick(), ..asked };
    let other = if kernel.schedule.ii > bound { Some(best(quick, &|search| search())?) } else { None };
    let used = other.as_ref().map_or(0, |o| o.used) + (budget - work.get()) / rotating::LOOKS;
    let better = other.and_then(|o| o.found).filter(|o| o.0.schedule.ii < kernel.schedule.ii);
    Ok(Searched { found: Some(better.unwrap_or_else(|| (kernel, body.clone()))), cut: work.get() <= 0, used })
}

/// Words of the frame that the loops so far use.
fn kept(kernels: &[Kernel]) -> usize {
    kernels.iter().map(|k| k.words).sum()
}

/// A loop by the registers of its parameters, which are its own.
fn name(func: &VFunc, c: &Candidate) -> Vec<VReg> {
    func.blocks[c.header as usize].params.clone()
}

/// The shortest pipeline whose values have one register each.
fn best(asked: Asked<'_>, remembered: Remembering<'_>) -> Result<Searched, CompileError> {
    let Asked { body, sides, registers, kept, effort, records } = asked;
    let thorough = effort.thorough;
    let (res_mii, rec_mii) = graph::lower(sides, body)?;
    let work = match (thorough, sides.files.len()) {
        (true, 2..) => DIVIDED,
        (true, _) => WORK,
        (false, _) => QUICK,
    };
    let work = work * i64::from(effort.patience);
    let loops = Loops { sides, registers, search: effort.search, records, work: Cell::new(work) };
    let mut search = || Ok((loops.starts(body, kept, res_mii.max(rec_mii), thorough)?, loops.work.get()));
    let budget = work;
    let (mut all, work) = if thorough { remembered(&mut search)? } else { search()? };
    loops.work.set(work);
    // The search of a run would hardly get any farther than a record.
    let enough = !effort.search.goes_on() && all.iter().any(|f| f.kernel.recorded);
    if thorough && !effort.unrefined && !enough {
        loops.shorten(&mut all)?;
    }
    let found = all.into_iter().min_by_key(|f| f.kernel.schedule.ii);
    let cut = loops.work.get() <= 0;
    let found = found
        .map(|f| (Kernel { res_mii, rec_mii, words: f.kept.len() + f.body.parked, kept: f.kept, ..f.kernel }, f.body));
    Ok(Searched { found, cut, used: budget - loops.work.get() })
}

/// A kernel, and the division between sides that it was found with.
#[derive(Clone)]
struct Found {
    kernel: Kernel,
    body: Body,
    at: Vec<At>,
    /// Sides that are not to be changed.
    given: Vec<Option<usize>>,
    /// What it was found with.
    policy: Policy,
    /// Values in the frame.
    kept: Vec<(VReg, i64)>,
    /// Is it shorter than what the scheduler found?
    annealed: bool,
}

/// What all schedules of a function's loops share.
struct Loops<'a> {
    sides: &'a Sides<'a>,
    registers: &'a Registers,
    search: Search,
    records: &'a [Recorded],
    /// Operations that schedulers may still look at.
    work: Cell<i64>,
}

/// Stages that an iteration may have that needs so many at the least.
pub(crate) fn stages(machine: &Machine, least: i64) -> i64 {
    if machine.issue.interlock { INTERLOCKED } else { (least + 1).clamp(STAGES.0, STAGES.1) }
}

/// Are so many stages worth a try? More than two are for chains that leave one less
/// little room.
fn useful(stages: i64, ii: i64, chain: i64) -> bool {
    stages < 3 || (stages - 1) * ii < chain + chain / 3
}

impl Loops<'_> {
    /// Work done beside the schedulers.
    fn charge(&self, operations: usize) {
        self.work.set(self.work.get() - operations as i64);
    }

    /// Kernels found by divisions between the sides; where they are far from the `bound` and
    /// the search is to be thorough, also by other orders and with values in the frame.
    fn starts(&self, body: &Body, kept: usize, bound: i64, thorough: bool) -> Result<Vec<Found>, CompileError> {
        let sides = self.sides;
        let machine = sides.machine;
        let divided = thorough && sides.files.len() > 1;
        if divided
            && !self.search.goes_on()
            && let Some(known) = self.shortest_known(body)
        {
            return Ok(vec![known]);
        }
        let mut first: Option<Found> = None;
        self.divide(body, &[], thorough, i64::MAX, &mut first)?;
        let to = first.as_ref().map_or(i64::MAX, |f| f.kernel.schedule.ii);
        let mut all: Vec<Found> = first.into_iter().collect();
        if thorough && self.work.get() > 0 && to > bound * 21 / 20 && body.nodes.len() > LARGE {
            let offset = self.word(kept);
            let part: Vec<usize> = partition::apart(body, sides).iter().map(|a| a.result).collect();
            self.charge(order::TRIALS as usize * body.nodes.len());
            let ordered = order::frugal(body, &part);
            let most = to.saturating_add(to / 8);
            let mut next = None;
            self.divide(&ordered, &[], false, most, &mut next)?;
            all.extend(next);
            for values in spill::candidates(&ordered, machine) {
                let mut next = None;
                if let Some((body, kept)) = spill::spill(&ordered, machine, &values, offset) {
                    self.divide(&body, &kept, false, most, &mut next)?;
                }
                all.extend(next);
            }
        }
        match all.iter().min_by_key(|f| f.kernel.schedule.ii) {
            None => all.extend(self.parked(body, kept, bound)?),
            Some(shortest) if thorough && self.burdened(shortest, bound) => {
                let ii = shortest.kernel.schedule.ii;
                let lighter = self.lighter(body, kept)?;
                if let Some(lighter) = lighter.filter(|l| l.kernel.schedule.ii <= ii + ii / 8) {
                    all = vec![lighter];
                }
            }
            Some(shortest) if divided && self.far_above(shortest, bound) => {
                let mut parked: Vec<Found> = self.parked(body, kept, bound)?.into_iter().collect();
                parked.iter_mut().for_each(|found| self.squeeze(found, false));
                let mut least = i64::MAX;
                if let Some(shortest) = all.iter_mut().min_by_key(|f| f.kernel.schedule.ii) {
                    self.squeeze(shortest, false);
                    least = shortest.kernel.schedule.ii;
                }
                // With more operations it will not come down as far.
                parked.retain(|found| 100 * found.kernel.schedule.ii < park::WORTH * least);
                all.extend(parked);
            }
            Some(_) => {}
        }
        if divided {
            all.sort_by_key(|f| f.kernel.schedule.ii);
            if self.search.goes_on() {
                self.add_forms(body, &mut all)?;
            } else if let Some(known) = self.known_of(&all) {
                return Ok(vec![known]);
            }
            if let Some(first) = all.first_mut() {
                self.squeeze(first, false);
            }
        }
        Ok(all)
    }

    /// Try divisions of a body between the sides, some of whose values are in
    /// the frame, for a kernel of at most so many cycles.
    fn divide(
        &self,
        body: &Body,
        kept: &[(VReg, i64)],
        thorough: bool,
        most: i64,
        found: &mut Option<Found>,
    ) -> Result<(), CompileError> {
        let sides = self.sides;
        let try_at = |body: &Body, at: &[At], given: &[Option<usize>], found: &mut Option<Found>| {
            self.try_at(body, at, given, kept, most, found)
        };
        let apart = partition::apart(body, sides);
        let even = partition::balanced(&apart, sides);
        if even {
            try_at(body, &apart, &[], found)?;
            if let Some(separate) = partition::separate(body) {
                try_at(&separate, &partition::apart(&separate, sides), &[], found)?;
                let part: Vec<usize> = partition::apart(&separate, sides).iter().map(|a| a.result).collect();
                self.charge(order::TRIALS as usize * separate.nodes.len());
                let ordered = order::frugal(&separate, &part);
                let apart = partition::apart(&ordered, sides);
                try_at(&ordered, &apart, &[], found)?;
                if let Some(parted) = partition::parted(&ordered, sides, &apart) {
                    try_at(&ordered, &parted, &[], found)?;
                }
            }
            if let Some(parted) = partition::parted(body, sides, &apart) {
                try_at(body, &parted, &[], found)?;
            }
        }
        if sides.files.len() < 2 || even && found.is_some() {
            return Ok(());
        }
        if let Some(given) = partition::by_table(body, sides) {
            try_at(body, &partition::spread(body, sides, &given), &given, found)?;
        }
        let by_table = found.is_some();
        if let Some(parted) = partition::parted(body, sides, &apart) {
            try_at(body, &parted, &[], found)?;
        }
        for mut at in [partition::spread(body, sides, &[]), apart] {
            try_at(body, &at, &[], found)?;
            if !thorough || by_table {
                continue;
            }
            let mut cost = estimate(body, sides, &at, &self.work)?;
            for which in 0..(TRIALS / body.nodes.len().max(1)).min(1000) {
                let more = partition::moves(body, sides, &at, which * 7919).filter(|_| self.work.get() > 0);
                let Some(new) = more else { break };
                let price = estimate(body, sides, &new, &self.work)?;
                if price <= cost {
                    (at, cost) = (new, price);
                }
            }
            try_at(body, &at, &[], found)?;
        }
        Ok(())
    }

    /// Look for a kernel that is shorter than the one found, with a division
    /// between sides.
    fn try_at(
        &self,
        body: &Body,
        at: &[At],
        given: &[Option<usize>],
        kept: &[(VReg, i64)],
        most: i64,
        found: &mut Option<Found>,
    ) -> Result<(), CompileError> {
        if self.work.get() <= 0 {
            return Ok(());
        }
        self.charge(settling(body));
        let ops = place::settle(body, self.sides, at)?;
        let to = found.as_ref().map_or(most, |f| f.kernel.schedule.ii - 1);
        if let Some((kernel, policy)) = self.at_any_ii(body, &ops, to) {
            let (body, at, given, kept) = (body.clone(), at.to_vec(), given.to_vec(), kept.to_vec());
            *found = Some(Found { kernel, body, at, given, policy, kept, annealed: false });
        }
        Ok(())
    }

    /// Bounds and registers for schedules of certain operations; none where
    /// values from outside leave no register.
    fn room(&self, body: &Body, ops: &Ops) -> Option<Room> {
        let res_mii = graph::res_mii(self.sides, ops);
        let limits = color::left(self.sides, ops);
        if limits.iter().any(|l| *l < 2) {
            return None;
        }
        let delay = self.sides.machine.instrs[usize::from(body.skip.0)].delay_slots;
        let shortest = i64::from(delay) + 2;
        let plan = Plan::new(self.sides, ops, apart(ops, res_mii));
        let rec_mii = plan.orders.rec_mii(ops);
        let first = res_mii.max(rec_mii).max(shortest);
        Some(Room { res_mii, rec_mii, shortest, first, limits, plan, near: Neighbours::of(ops) })
    }

    /// The first II at which schedule and registers work out.
    fn at_any_ii(&self, body: &Body, ops: &Ops, to: i64) -> Option<(Kernel, Policy)> {
        let room = self.room(body, ops)?;
        let chain = room.plan.orders.chain(ops);
        let last = (room.first + chain + ops.ops.len() as i64).min(to);
        let mut all: Vec<(i64, Policy)> = (0..TRIED).flat_map(|s| POLICIES.map(|p| (s, p))).collect();
        let mut at = |ii: i64| {
            let least = ((chain + ii - 1) / ii).max(1);
            let most_stages = stages(self.sides.machine, least);
            let one = |&(more, policy): &(i64, Policy)| {
                let stages = least + more;
                if stages > most_stages { None } else { self.attempt(body, ops, &room, ii, policy, stages) }
            };
            let (k, kernel) = all.iter().enumerate().find_map(|(k, x)| Some((k, one(x)?)))?;
            // What did it goes first the next time.
            all[..=k].rotate_right(1);
            Some((kernel, all[0].1))
        };
        // Where the most cycles are too few, fewer will hardly do.
        let longest = if room.first <= last { at(last) } else { None }?;
        search(room.first, last - 1, at).or(Some(longest))
    }

    /// Schedule and colour at one II. Where colouring falls short, the next
    /// schedule gets by with less.
    fn attempt(&self, body: &Body, ops: &Ops, room: &Room, ii: i64, policy: Policy, stages: i64) -> Option<Kernel> {
        let mut limits: Vec<i64> = room.limits.iter().map(|l| l + policy.slack).collect();
        let mut bias: Vec<Vec<i64>> = Vec::new();
        for _ in 0..ATTEMPTS {
            let schedule =
                modulo::schedule(self.sides, ops, &room.plan, ii, policy, &limits, stages, &bias, &self.work)?;
            let (schedule, moves) =
                relieve::relieve(self.sides, ops, &room.near, room.plan.apart, &room.limits, schedule);
            self.charge(ops.ops.len() + moves as usize / 8);
            let looked = Cell::new(0);
            let colored = color::color_counted(self.sides, ops, &schedule, &self.registers.allocatable, &looked);
            self.charge(looked.get() / LOOKS);
            match colored {
                Ok(registers) => {
                    let ops = ops.clone();
                    let (res_mii, rec_mii) = (room.res_mii, room.rec_mii);
                    return Some(Kernel { res_mii, rec_mii, ..Kernel::new(body, ops, schedule, registers) });
                }
                Err(short) if short.rows.is_empty() => limits[short.side] -= (short.by as i64 + 1) / 2,
                Err(short) => {
                    if bias.is_empty() {
                        bias = vec![vec![0; ii as usize]; limits.len()];
                    }
                    for (row, by) in short.rows {
                        for near in -NEARBY..=NEARBY {
                            let row = (row as i64 + near).rem_euclid(ii) as usize;
                            bias[short.side][row] += (by + 1) / 2;
                        }
                    }
                }
            }
        }
        None
    }
}

/// What schedules of certain operations have to keep to.
struct Room {
    res_mii: i64,
    rec_mii: i64,
    /// The least II that the branch allows.
    shortest: i64,
    /// The least II of this division.
    first: i64,
    /// Registers of each side that values from outside leave.
    limits: Vec<i64>,
    plan: Plan,
    near: Neighbours,
}

/// Length of one iteration with the registers there are, for comparing
/// partitions; longer than any where they are too few.
fn estimate(body: &Body, sides: &Sides<'_>, at: &[At], work: &Cell<i64>) -> Result<i64, CompileError> {
    work.set(work.get() - settling(body) as i64);
    let ops = place::settle(body, sides, at)?;
    let resource = graph::res_mii(sides, &ops);
    let limits = color::left(sides, &ops);
    let plan = Plan::new(sides, &ops, apart(&ops, resource));
    let wide = plan.orders.chain(&ops) + ops.ops.len() as i64;
    let length = |s: Schedule| {
        let body = &s.time[..s.time.len() - 1];
        body.iter().copied().max().unwrap_or(0) - body.iter().copied().min().unwrap_or(0)
    };
    let done = POLICIES.iter().find_map(|&p| modulo::schedule(sides, &ops, &plan, wide, p, &limits, 1, &[], work));
    Ok(done.map_or(2 * wide, length).max(resource))
}

/// Operations looked at that making the nodes of a body possible, with the orders
/// between them, comes to.
fn settling(body: &Body) -> usize {
    4 * body.nodes.len() + body.memory.len() / 4
}

/// Is it cheap to keep accesses apart that would meet in a bank of memory?
fn apart(ops: &Ops, res_mii: i64) -> bool {
    table::bank_bound(ops) * 8 <= res_mii * 9
}

/// The least number between two at which an attempt succeeds, by halving: success
/// is taken to be monotone, and certain beyond the last.
fn search<T>(first: i64, last: i64, mut at: impl FnMut(i64) -> Option<T>) -> Option<T> {
    let (mut failed, mut works, mut found) = (first - 1, last + 1, None);
    while works - failed > 1 {
        let middle = failed + (works - failed) / 2;
        match at(middle) {
            Some(better) => (works, found) = (middle, Some(better)),
            None => failed = middle,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::search;

    #[test]
    fn the_least_is_found_in_few_attempts() {
        for wanted in 10..=300 {
            let mut attempts = 0;
            let found = search(10, 300, |ii| {
                attempts += 1;
                (ii >= wanted).then_some(ii)
            });
            assert_eq!(found, Some(wanted));
            assert!(attempts <= 20, "{attempts} for {wanted}");
        }
        assert_eq!(search(10, 300, |ii| (ii > 300).then_some(ii)), None);
        assert_eq!(search(10, 9, Some), None);
    }
}
