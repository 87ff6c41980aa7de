//! Software pipelining: loops whose iterations overlap.
//!
//! ```text
//! body -> forms -> search -> color -> emit
//! ```
//!
//! A loop of one block ([`body`]) may be scheduled in some forms ([`forms`]): without what is the
//! same in every iteration ([`invariant`]), with some values in the frame ([`park`], [`spill`]), or
//! with what several parts of it read made for each. Each form is divided between the clusters
//! ([`partition`], [`place`]). One search ([`search`]) finds the shortest schedule of all of them,
//! or a record says it ([`recorded`]). Values get registers ([`color`]), and the loop is written
//! out as prologue, kernel and epilogue ([`emit`]). All that happens before register allocation:
//! the whole loop then becomes one pseudo-instruction ([`replace`]) that takes its values in
//! certain registers, gives back others, and destroys the rest; the allocator arranges everything
//! around it.
//!
//! Nothing is promised here that is not checked elsewhere: what is written out
//! is run symbolically beside the loop as it was ([`ciphermill_schedule::verified`]), and
//! the simulator, whose pipeline is as exposed as the machine's, compares the
//! output with the reference interpreter's.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod affine;
mod based;
mod body;
mod certain;
mod circle;
mod color;
mod copies;
pub mod emit;
pub mod exact;
mod forms;
mod framed;
mod graph;
mod invariant;
mod memo;
mod modulo;
mod narrower;
mod order;
mod park;
mod partition;
mod place;
mod plain;
mod recorded;
pub mod refused;
mod renamed;
mod replace;
mod reroll;
pub mod rotating;
mod rounds;
mod search;
mod spill;
mod table;

use crate::refused::{Reason, Refused};
use body::{Body, Candidate};
use ciphermill_bounds::{Bound, model::Loop};
use ciphermill_machine::{InstrId, Machine, Reg};
use ciphermill_program::CircuitStep;
use ciphermill_program::exact::Question;
use ciphermill_program::kept_schedules::KeptSchedule as Recorded;
use ciphermill_program::search_log::SearchLog;
use ciphermill_schedule::verified::{self, Replaced};
use ciphermill_vcode::CompileError;
use ciphermill_vcode::Facts;
use ciphermill_vcode::Registers;
use ciphermill_vcode::{VFunc, VReg};
use exact::Exchange;
pub use memo::Memo;
use modulo::Schedule;
use place::{Ops, Sides};
use search::params::Params;
pub use search::params::{PARTS, Without};
use std::cell::OnceCell;
use std::sync::Arc;

/// Stages that an iteration may have, and where its longest chain of dependences asks for more.
const STAGES: (i64, i64) = (4, 8);
/// Iterations of a loop by which schedules of different intervals and stages are compared.
const TURNS: i64 = 64;
/// Addresses of words of the frame that a loop may have in registers.
const BASES: u32 = 2;
/// Searches of one round of tuning, by their seeds, do not meet those of another.
const ROUND: u64 = 1_000;
/// A patient search may take so many times as long.
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
    /// Thousandths of that, where a function's loops share one.
    pub share: u32,
    /// The first schedule is taken.
    pub first: bool,
}

/// How schedules are shortened by chance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Search {
    /// For so many times as long as usual.
    pub times: u64,
    /// Which of many searches it is, each of which goes other ways: 0 is that of a run.
    pub round: u64,
    /// Parts that it goes without.
    pub without: Without,
}

impl Default for Search {
    fn default() -> Search {
        Search { times: 1, round: 0, without: Without::default() }
    }
}

impl Search {
    /// Does it go on from records, for new ones?
    fn goes_on(&self) -> bool {
        self.round > 0
    }

    /// Is a part left out? What such a search finds is not for records.
    pub fn lacks(&self) -> bool {
        self.without != Without::default()
    }

    fn seed(&self) -> u64 {
        self.round * ROUND
    }
}

impl Effort {
    fn quick() -> Effort {
        Effort { first: false, ..Effort::least() }
    }

    /// For loops that do not run.
    pub fn least() -> Effort {
        Effort {
            thorough: false,
            longest: false,
            unrefined: false,
            search: Search::default(),
            patience: 1,
            share: WHOLE,
            first: true,
        }
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
    /// What the search for its schedule did; none where that is from a record.
    pub log: Option<Arc<SearchLog>>,
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
            log: None,
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
    // A record is found by the forms that a loop has without a search.
    let without = effort.search.without;
    let recorded = |without: Without| without.and("rerolls")?.and("respills");
    let without = if records.new.is_some() { recorded(without).unwrap_or(without) } else { without };
    let effort = Effort { search: Search { without, ..effort.search }, ..effort };
    let longest = body::candidates(func).iter().map(|c| length(func, c)).max().unwrap_or(0);
    let long = |func: &VFunc, c: &Candidate| !effort.longest || 4 * length(func, c) >= 3 * longest;
    let lengths = body::candidates(func).into_iter().filter(|c| long(func, c)).map(|c| length(func, &c) as u64);
    let effort = Effort { share: share(lengths), ..effort };
    // Bounds are asked of all loops, those too that little is tried for.
    let prove = effort.thorough && !effort.unrefined;
    // Replacing a loop may take a block away: look again after each.
    let mut tried = std::collections::BTreeSet::new();
    loop {
        let next = body::candidates(func).into_iter().find(|c| !tried.contains(&name(func, c)));
        let Some(c) = next else { return Ok(Pipelined { kernels, refused, cut }) };
        tried.insert(name(func, &c));
        let effort = match long(func, &c) && prove {
            true => Effort { longest: false, ..effort },
            false => Effort { first: effort.first, ..Effort::quick() },
        };
        let body = match body::read(func, machine, facts, &c) {
            Ok(body) => body,
            Err(why) => {
                refused.insert(name(func, &c), Reason::new("form", why));
                continue;
            }
        };
        let bases = if Params::without(without).bases { BASES } else { 0 };
        let body = Body { bases: (0..bases).map(|k| VReg(func.vregs + k)).collect(), ..body };
        let memo = memo.get_or_init(|| Memo::new(machine, records.known));
        let mut found = None;
        for body in with_copies(&sides, &body)?.into_iter().chain([body]) {
            let (kept, records) = (kept(&kernels), records.known);
            let asked = Asked { body: &body, sides: &sides, registers, kept, effort, records, below: i64::MAX };
            let searched = narrower::pipeline(asked, memo)?;
            cut += u32::from(searched.cut && effort.thorough);
            if let Some((kernel, own)) = searched.found {
                found = Some((kernel, own, body, searched.bounds));
                break;
            }
        }
        let Some((mut kernel, own, body, bounds)) = found else {
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
            kernel.bounds = bounds.unwrap_or_else(|| ciphermill_bounds::quick(&plain));
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
        if let (Some(new), true) = (&mut records.new, effort.thorough) {
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

/// A share of all.
const WHOLE: u32 = 1000;

/// Thousandths of its budget that each loop of a function may have, given their lengths.
fn share(lengths: impl Iterator<Item = u64>) -> u32 {
    let Params { thorough: (each, most), together, .. } = Params::default();
    let wanted: u64 = lengths.map(|length| (each * length).min(most)).sum();
    (together * u64::from(WHOLE) / wanted.max(together)) as u32
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
    /// A longer interval is of no use, nor one as long.
    below: i64,
}

/// What came of a search.
#[derive(Clone, Debug)]
struct Searched {
    found: Option<(Kernel, Body)>,
    /// No schedule has a shorter interval.
    bound: i64,
    /// Bounds with their proofs, where a thorough search was to know them.
    bounds: Option<Vec<Bound>>,
    /// The budget was spent before all was tried.
    cut: bool,
}

/// The shortest pipeline that is found or known.
fn shortest(asked: Asked<'_>) -> Result<Searched, CompileError> {
    let Asked { body, sides, effort, .. } = asked;
    let bounds = graph::lower(sides, body)?;
    let thorough = effort.thorough && !effort.unrefined;
    let proved = thorough.then(|| plain::plain(sides, body, None).map(|p| ciphermill_bounds::quick(&p))).transpose()?;
    let least = proved.as_ref().and_then(|p| ciphermill_bounds::greatest(p, false)).map_or(0, |b| b.least);
    let bound = least.max(bounds.0).max(bounds.1);
    if bound >= asked.below {
        return Ok(Searched { found: None, bound, bounds: proved, cut: false });
    }
    let searched = within(asked, bounds, bound)?;
    Ok(Searched { bounds: proved, ..searched })
}

/// The same, where bounds are known.
fn within(asked: Asked<'_>, bounds: (i64, i64), bound: i64) -> Result<Searched, CompileError> {
    let Asked { body, sides, registers, effort, records, .. } = asked;
    let rotating = rotating::rotating(body, sides, registers)?;
    let split = match &rotating {
        Some(_) => copies::split(body, sides.machine, graph::least(sides, body)?),
        None => None,
    };
    let known = if records.iter().any(|r| forms::fits(r, body)) {
        let ring = rotating.as_ref().map(|r| r.ring.len() as i64);
        let mut forms = forms::plain(body, sides);
        forms.extend(split.iter().flat_map(|split| forms::plain(split, sides)));
        forms.extend(forms::all(split.as_ref().unwrap_or(body), sides, registers, asked.kept, bound, None)?);
        if ring.is_some() {
            forms.extend(forms::all(body, sides, registers, asked.kept, bound, ring)?);
        }
        forms::shortest_known(forms, sides, registers, records)
    } else {
        None
    };
    if !effort.search.goes_on()
        && let Some((known, form)) = known
    {
        let kernel = Kernel::new(&form.body, known.ops, known.schedule, known.registers);
        let (res_mii, rec_mii, rotating, kept) = (bounds.0, bounds.1, known.names, form.kept);
        let words = kept.len() + form.body.parked;
        let kernel = Kernel { recorded: true, res_mii, rec_mii, words, kept, rotating, ..kernel };
        return Ok(Searched { found: Some((kernel, form.body)), bound, bounds: None, cut: false });
    }
    let (known, known_rotating) = match known {
        Some(known) if known.0.names.is_some() => (None, Some(known)),
        other => (other, None),
    };
    if rotating.is_none() {
        return searched(asked, bounds, bound, known, None);
    }
    // Of values that live long, rotating registers take several each: with ones that stand still, and
    // copies or values in the frame, the loop may be as short or shorter. Quick searches tell.
    let still = Asked { body: split.as_ref().unwrap_or(body), ..asked };
    let ii = |s: &Searched| s.found.as_ref().map_or(i64::MAX, |f| f.0.schedule.ii);
    let length = |s: &Searched| s.found.as_ref().map_or(i64::MAX, |f| f.0.schedule.ii * (TURNS + f.0.schedule.stages));
    let quick = Effort { first: effort.first, ..Effort::quick() };
    let first = searched(Asked { effort: quick, ..still }, bounds, bound, known.clone(), None)?;
    if ii(&first) <= bound || effort.first && first.found.is_some() {
        return Ok(first);
    }
    let second = searched(Asked { effort: quick, ..asked }, bounds, bound, known_rotating.clone(), rotating.clone())?;
    let stands = length(&first) < length(&second);
    let better = if stands { first } else { second };
    if ii(&better) <= bound || !effort.thorough {
        return Ok(better);
    }
    let last = match stands {
        true => searched(still, bounds, bound, known, None)?,
        false => searched(asked, bounds, bound, known_rotating, rotating)?,
    };
    Ok(if length(&better) < length(&last) { Searched { cut: last.cut, ..better } } else { last })
}

/// What a search comes to, with rotating registers or without.
fn searched(
    asked: Asked<'_>,
    bounds: (i64, i64),
    least: i64,
    known: Option<(recorded::Finished, search::Form)>,
    rotating: Option<rotating::Rotating>,
) -> Result<Searched, CompileError> {
    let Asked { body, sides, registers, kept, effort, .. } = asked;
    let mut params = Params::without(effort.search.without);
    params.races &= !effort.first;
    let delay = i64::from(sides.machine.instrs[usize::from(body.skip.0)].delay_slots);
    let ring = rotating.as_ref().map(|r| r.ring.len() as i64);
    let bound = if ring.is_some() { least } else { least.max(delay + 2) };
    let mut forms = forms::all(body, sides, registers, kept, least, ring)?;
    let (each, most) = if effort.thorough { params.thorough } else { params.quick };
    let part = match sides.files.len() {
        1 if narrower::many(body) => params.one_cluster.1,
        1 => params.one_cluster.0,
        _ => 1,
    };
    let budget = (each * body.nodes.len() as u64).min(most) / part * u64::from(effort.patience) * effort.search.times;
    let budget = budget * u64::from(effort.share) / u64::from(WHOLE);
    let mut search = search::Search {
        sides,
        allocatable: &registers.allocatable,
        rotation: rotating.as_ref().zip(ring).map(|(r, ring)| search::Rotation { ring, stages: r.stages }),
        params: &params,
        seed: effort.search.seed(),
        thorough: effort.thorough,
        words: Some(kept),
        total: budget,
        budget,
        log: SearchLog::default(),
    };
    if params.rerolls && effort.thorough && ring.is_none() {
        let frame = forms::frames(sides, body, kept).next();
        forms.extend(frame.map(|frame| reroll::form(&mut search, body, &frame)).transpose()?.flatten());
    }
    // A search that is to be kept goes on from what is.
    let known = known.map(|(known, form)| {
        forms.push(search::Form { spare: true, ..form });
        known
    });
    let found = search.run(&forms, known, bound)?;
    // Nothing is missing where the bound is reached.
    let cut = search.budget == 0 && found.as_ref().is_none_or(|f| f.schedule.ii > bound);
    let log = Arc::new(std::mem::take(&mut search.log));
    let found = found.and_then(|landed| {
        let form = &forms[landed.form];
        let names = rotating.zip(landed.names);
        let registers = match &names {
            Some(_) => rotating::interface(sides, landed.state.ops(), registers)?,
            None => landed.registers,
        };
        let kernel = Kernel::new(&form.body, landed.state.ops().clone(), landed.schedule, registers);
        let words = form.kept.len() + form.body.parked + kernel.ops.spilled;
        let kept = form.kept.clone();
        let rotating = names.map(|(r, of)| rotating::Names { ring: r.ring, of, back: r.back });
        let kernel = Kernel { res_mii: bounds.0, rec_mii: bounds.1, words, kept, rotating, log: Some(log), ..kernel };
        Some((kernel, form.body.clone()))
    });
    Ok(Searched { found, bound: least, bounds: None, cut })
}

/// Words of the frame that the loops so far use.
fn kept(kernels: &[Kernel]) -> usize {
    kernels.iter().map(|k| k.words).sum()
}

/// A loop by the registers of its parameters, which are its own.
fn name(func: &VFunc, c: &Candidate) -> Vec<VReg> {
    func.blocks[c.header as usize].params.clone()
}

/// Stages that an iteration may have that needs so many at the least.
pub(crate) fn stages(least: i64) -> i64 {
    (least + 2).clamp(STAGES.0, STAGES.1)
}

/// Is it cheap to keep accesses apart that would meet in a bank of memory?
fn apart(ops: &Ops, res_mii: i64) -> bool {
    table::bank_bound(ops) * 8 <= res_mii * 9
}
