//! Superblocks: straight runs of bundles, decoded when first reached.
//!
//! A run starts where control can arrive and goes on, through block borders
//! that are only fallen through, to the first jump and its delay slots. So it
//! has one way in and at most two ways out: exit 0, the jump taken (or the end
//! of a run that was cut for its length), and exit 1, the jump not taken.
//! Calls and returns are jumps. Two runs may overlap; each counts for itself.

use crate::code::CodeMap;
use crate::flatten::{Condition, Flattener, Jump, Place, Target};
use crate::hazard::{BundleTiming, Ending, branch_costs, jump_cycles};
use crate::predictor::Divide;
use crate::slots::SlotPool;
use crate::xop::{self, Op, Xop};
use ciphermill_program::Program;
use ciphermill_program::layout::is_far;

/// Bundles after which a run is cut.
const MAX_BUNDLES: u32 = 1024;

/// Where an exit leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// To a bundle.
    To(u32),
    /// To an address known when it happens.
    Computed,
    /// There is no such exit.
    None,
}

/// One run of bundles, decoded.
#[derive(Debug)]
pub struct Superblock {
    /// First bundle and how many.
    pub first: u32,
    pub count: u32,
    /// First xop.
    pub code: usize,
    pub ways: [Way; 2],
    pub ending: Ending,
    /// The jump it ends with.
    pub divide: Option<Divide>,
    /// Does it end with a conditional jump?
    pub conditional: bool,
    /// Instructions executed, by exit.
    pub insts: [u32; 2],
}

/// Decodes superblocks and keeps all xops.
pub struct Decoder {
    pub code: Vec<Xop>,
    pub places: Vec<Place>,
    pub timings: Vec<Option<Box<BundleTiming>>>,
}

impl Decoder {
    pub fn new(map: &CodeMap) -> Decoder {
        Decoder { code: Vec::new(), places: Vec::new(), timings: vec![None; map.bundles.len()] }
    }

    fn emit(&mut self, place: Place, op: Op, d: u16, a: u16, b: u16) {
        self.code.push(Xop { op, d, a, b });
        self.places.push(place);
    }

    /// Timing facts of a bundle that has been decoded.
    pub fn timing(&self, n: u32) -> Result<&BundleTiming, String> {
        self.timings[n as usize].as_deref().ok_or_else(|| format!("bundle {n} has not been decoded"))
    }

    /// Decode the run that starts at bundle `first`.
    pub fn decode(
        &mut self,
        program: &Program,
        map: &CodeMap,
        pool: &mut SlotPool,
        first: u32,
    ) -> Result<Superblock, String> {
        let code = self.code.len();
        let done = self.run(program, map, pool, first);
        done.map(|mut sb| {
            sb.code = code;
            sb
        })
    }

    fn run(&mut self, program: &Program, map: &CodeMap, pool: &mut SlotPool, first: u32) -> Result<Superblock, String> {
        let mut sb = Superblock {
            first,
            count: 0,
            code: 0,
            ways: [Way::None; 2],
            ending: Ending::default(),
            divide: None,
            conditional: false,
            insts: [0; 2],
        };
        let func = map.bundles[first as usize].func;
        let mut n = first;
        loop {
            let at = map.bundles.get(n as usize).filter(|at| at.func == func);
            let Some(at) = at else {
                return Err(format!(
                    "control runs off the end of function {func} ({})",
                    program.funcs[func as usize].name
                ));
            };
            if sb.count == MAX_BUNDLES {
                self.emit((n, 0), Op::End, 0, 0, 0);
                sb.ways[0] = Way::To(n);
                return Ok(sb);
            }
            let delay = delay_slots(program, map, n);
            let flow = self.bundle(program, map, pool, n, delay > 0)?;
            sb.count += 1;
            sb.insts[0] += map.bundle(program, n).insts.len() as u32;
            if flow.traps {
                self.emit((n, 0), Op::End, 0, 0, 0);
                return Ok(sb);
            }
            if let Some(jump) = flow.jump {
                let block = at.block;
                let slots = n + 1..n + 1 + delay;
                if slots.clone().any(|s| map.bundles.get(s as usize).is_none_or(|d| d.func != func || d.block != block))
                {
                    return Err(format!("{}: the delay slots run past the block", map.describe(program, n)));
                }
                self.end(program, map, pool, n, jump, slots, &mut sb)?;
                return Ok(sb);
            }
            n += 1;
        }
    }

    fn bundle(
        &mut self,
        program: &Program,
        map: &CodeMap,
        pool: &mut SlotPool,
        n: u32,
        delayed: bool,
    ) -> Result<crate::flatten::Flow, String> {
        let at = map.bundles[n as usize];
        let bundle = map.bundle(program, n);
        let place = |e: String| format!("{}: {e}", map.describe(program, n));
        if self.timings[n as usize].is_none() {
            let mut timing = BundleTiming::new(&program.machine, bundle).map_err(place)?;
            let piece = program.machine.branch.fetch_bytes.max(1);
            timing.split = at.addr / piece != (at.addr + at.bytes.max(1) - 1) / piece;
            self.timings[n as usize] = Some(Box::new(timing));
        }
        let mut flattener = Flattener {
            machine: &program.machine,
            layout: &map.layout,
            matrices: &map.matrices,
            pool,
            code: &mut self.code,
            places: &mut self.places,
            deferred: false,
            place: (n, 0),
            func: at.func as usize,
        };
        flattener.bundle(bundle, at.addr, delayed).map_err(place)
    }

    /// The delay slots, the way out, and what it costs.
    #[expect(clippy::too_many_arguments, reason = "the exit, and where it stands")]
    fn end(
        &mut self,
        program: &Program,
        map: &CodeMap,
        pool: &mut SlotPool,
        n: u32,
        jump: Jump,
        slots: std::ops::Range<u32>,
        sb: &mut Superblock,
    ) -> Result<(), String> {
        let at = map.bundles[n as usize];
        let inst = &map.bundle(program, n).insts[jump.slot];
        let instr = &program.machine.instrs[usize::from(inst.instr.0)];
        let place = (n, jump.slot as u16);
        sb.conditional = !matches!(jump.condition, Condition::Always);
        sb.insts[1] = sb.insts[0];
        if let (true, Condition::Slot(c)) = (instr.annul && !slots.is_empty(), jump.condition) {
            self.emit(place, Op::EndUnless, 0, c, 0);
            sb.ending.annulled = slots.len();
        }
        let next = slots.end;
        for s in slots {
            let flow = self.bundle(program, map, pool, s, false)?;
            if flow.jump.is_some() {
                return Err(format!("{}: a jump in a delay slot", map.describe(program, s)));
            }
            let count = map.bundle(program, s).insts.len() as u32;
            sb.count += 1;
            sb.insts[0] += count;
            if sb.ending.annulled == 0 {
                sb.insts[1] += count;
            }
        }
        let mut backward = false;
        sb.ways[0] = match jump.target {
            Target::Address(a) => {
                backward = a <= u64::from(at.addr);
                Way::To(map.lookup(a).map_err(|e| format!("{}: {e}", map.describe(program, n)))?)
            }
            Target::Slot(_) => Way::Computed,
        };
        if sb.conditional {
            sb.ways[1] = Way::To(next);
        }
        let mut condition = jump.condition;
        if let (Condition::Compare(op, a, b), Target::Slot(_)) = (condition, jump.target) {
            let c = pool.condition();
            self.emit(place, xop::fast_cmp(op, 32).unwrap_or(Op::Eq32), c, a, b);
            condition = Condition::Slot(c);
        }
        match (condition, jump.target) {
            (Condition::Always, Target::Address(_)) => self.emit(place, Op::End, 0, 0, 0),
            (Condition::Always, Target::Slot(t)) => self.emit(place, Op::EndTo, 0, t, 0),
            (Condition::Slot(c), Target::Address(_)) => self.emit(place, Op::EndIf, 0, c, 0),
            (Condition::Slot(c), Target::Slot(t)) => self.emit(place, Op::EndToIf, 0, c, t),
            (Condition::Compare(op, a, b), _) => self.emit(place, xop::end_cmp(op), 0, a, b),
        }
        let target = if let Target::Address(a) = jump.target { a } else { 0 };
        let after = map.bundles.get(next as usize).map_or(0, |b| b.addr);
        sb.divide = Some(Divide::new(&program.machine, inst.instr, at.addr, target, after));
        sb.ending.jump = true;
        let (taken, untaken) = jump_cycles(instr, is_far(instr, at.bytes));
        sb.ending.wrong = [taken, untaken];
        let predictor = program.machine.branch.predictor;
        sb.ending.extra = branch_costs(predictor, sb.conditional, backward, taken, untaken);
        Ok(())
    }
}

/// Delay slots of the jump in a bundle, 0 without one.
pub fn delay_slots(program: &Program, map: &CodeMap, n: u32) -> u32 {
    let instrs = map.bundle(program, n).insts.iter();
    instrs
        .filter_map(|i| program.machine.instrs.get(usize::from(i.instr.0)))
        .filter(|i| i.semantics.iter().any(|s| matches!(s, ciphermill_machine::sem::Stmt::Goto { .. })))
        .map(|i| u32::from(i.delay_slots))
        .max()
        .unwrap_or(0)
}
