//! Trip counts of a cipher's loops, by profiling.
//!
//! A loop over the cipher's rounds has the same trip count for every block; the loop over blocks
//! has not. A loop counts as one over rounds when it makes as many turns each time that it is entered,
//! in a run over one block and in one over three. That is a guess: the optimiser puts a test in front
//! of code that relies on it.

use crate::error::MeasureError;
use crate::interface::Interface;
use crate::plan::{RunPlan, Work};
use crate::profile::Profile;
use crate::shape::Call;
use ciphermill_interp::{Edges, Header, Interp, Misaligned};
use ciphermill_ir::{Block, Cfg, CmpOp, Dominators, Func, FuncId, Inst, Loops, Module, Op, Terminator, Value};
use ciphermill_opt::{LoopSite, LoopTrips, Steady, loop_sites};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Operations that a run may take. One that takes more is too slow to be worth the
/// time, and its loops are left as they are.
pub const LONGEST: u64 = 60_000_000;

/// Loops over rounds with their trip counts, and steady conditions, from runs on messages of one block
/// and of three. Empty when the module stops before its end, or takes longer than [`LONGEST`]; the
/// measurement finds out why.
///
/// # Errors
/// When the plan cannot be made.
pub fn profiled(module: &Module, interface: &Interface, work: Work, unit: u32) -> Result<Profile, MeasureError> {
    let sites = loop_sites(module);
    let loops = members(module);
    let (mut runs, mut turns) = (Vec::new(), Vec::new());
    for blocks in [1, 3] {
        let plan = RunPlan { limit: LONGEST, ..RunPlan::new(interface, work, blocks * unit)? };
        let Some((edges, constant)) = counted(module, &plan, loops.clone()) else { return Ok(Profile::default()) };
        runs.push(edges);
        turns.push(constant);
    }
    let trips = |site: &LoopSite| -> Option<u32> {
        let each = |constant: &HashMap<Header, u32>| constant.get(&(site.func, site.header)).copied();
        let counts: Vec<u32> = turns.iter().map(each).collect::<Option<_>>()?;
        counts.first().copied().filter(|trips| counts.iter().all(|c| c == trips))
    };
    let of = |site: &LoopSite| LoopTrips { first: site.first, last: site.last, trips: trips(site).unwrap_or(0) };
    let mut trips: Vec<LoopTrips> = sites.iter().map(of).collect();
    // The optimiser takes an empty profile for none, and does without what prepares loops for one.
    if trips.iter().all(|t| t.trips == 0) {
        trips.clear();
    }
    let known = known(module, &runs);
    let varied = known.iter().filter(|(_, values)| values.len() == 2).map(|(&loc, _)| loc).collect();
    Ok(Profile { trips, steady: steady(&known), varied })
}

/// What conditions of branches and switches were seen to be, by where they are computed: none of
/// it where that cannot be told.
type Known = BTreeMap<u32, BTreeSet<Option<u32>>>;

fn known(module: &Module, runs: &[Edges]) -> Known {
    let mut seen = Known::new();
    for (id, func) in &module.funcs {
        let alike = alike(func);
        for &block in &func.layout {
            let went = |to: Block| runs.iter().any(|edges| edges.contains_key(&(id, block, to)));
            match &func.blocks[block].term {
                Terminator::Branch { cond, then, els } if then.block != els.block => {
                    let truth = [went(els.block), went(then.block)];
                    asked(func, &alike, func.resolve(*cond), truth, &mut seen);
                }
                Terminator::Switch { index, targets, default } => {
                    let Some(inst) = func.def_inst(func.resolve(*index)) else { continue };
                    let known = seen.entry(func.insts[inst].loc).or_default();
                    for to in targets.iter().chain([default]).map(|t| t.block).filter(|&to| went(to)) {
                        let mut ways = (0..).zip(targets).filter(|(_, t)| t.block == to).map(|(i, _)| i);
                        let way = ways.next().filter(|_| default.block != to && ways.next().is_none());
                        known.insert(way);
                    }
                }
                _ => {}
            }
        }
    }
    seen
}

/// Conditions of branches that were always true or always false, and what switches always hung on.
fn steady(known: &Known) -> Vec<Steady> {
    let steady = |(&loc, values): (&u32, &BTreeSet<Option<u32>>)| {
        let value = (*values.first()?)?;
        (loc != 0 && values.len() == 1).then_some(Steady { loc, value })
    };
    known.iter().filter_map(steady).collect()
}

/// What a comparison asks: an operation, and two operands that are constants or values.
type Question = (CmpOp, Result<u64, Value>, Result<u64, Value>);

/// The question of a comparison, and whether it is true where the comparison is false.
fn question(func: &Func, inst: Inst) -> Option<(Question, bool)> {
    let data = &func.insts[inst];
    let (Op::Cmp(op), [a, b]) = (data.op, &data.args[..]) else { return None };
    let side = |v: Value| func.as_const(v).ok_or(func.resolve(v));
    let negated = matches!(op, CmpOp::Ne | CmpOp::LeU | CmpOp::LeS);
    let (op, swapped) = if negated { op.negated() } else { (op, false) };
    let (a, b) = if swapped { (b, a) } else { (a, b) };
    Some(((op, side(*a), side(*b)), negated))
}

/// Where each question is asked, since of several comparisons the optimiser keeps one.
fn alike(func: &Func) -> HashMap<Question, Vec<(u32, bool)>> {
    let mut alike: HashMap<Question, Vec<(u32, bool)>> = HashMap::new();
    for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
        if let Some((question, negated)) = question(func, inst) {
            alike.entry(question).or_default().push((func.insts[inst].loc, negated));
        }
    }
    alike
}

/// Note what a branch shows of its condition, of comparisons that ask the same, and of what it compares with zero.
fn asked(
    func: &Func,
    alike: &HashMap<Question, Vec<(u32, bool)>>,
    mut cond: Value,
    mut truth: [bool; 2],
    seen: &mut Known,
) {
    while let Some(inst) = func.def_inst(cond) {
        let data = &func.insts[inst];
        let mut note = |loc: u32, not: bool| {
            let values = (0..2).filter(|&i| truth[usize::from((i == 1) != not)]).map(Some);
            seen.entry(loc).or_default().extend(values);
        };
        match question(func, inst) {
            Some((question, not)) => {
                alike.get(&question).into_iter().flatten().for_each(|&(loc, other)| note(loc, not != other))
            }
            None => note(data.loc, false),
        }
        // What is compared with zero is true where this is not.
        let (Op::Cmp(CmpOp::Eq), [x, y]) = (data.op, &data.args[..]) else { break };
        if func.as_const(*y) != Some(0) {
            break;
        }
        truth.reverse();
        cond = func.resolve(*x);
    }
}

/// Run a plan's calls, the measured ones with their edges counted.
pub fn edges(module: &Module, plan: &RunPlan) -> Option<Edges> {
    counted(module, plan, Vec::new()).map(|(edges, _)| edges)
}

/// Edges, and the turns of loops that make as many each time.
fn counted(
    module: &Module,
    plan: &RunPlan,
    loops: Vec<(Header, HashSet<Block>)>,
) -> Option<(Edges, HashMap<Header, u32>)> {
    let mut interp = ready(module, plan)?;
    calls(&mut interp, module, &plan.setup)?;
    interp.count_edges(loops);
    calls(&mut interp, module, &plan.measured)?;
    Some(interp.take_edges())
}

/// Accesses of a plan's calls that are less aligned than they state, as far as these come.
pub fn misaligned(module: &Module, plan: &RunPlan) -> Misaligned {
    let Some(mut interp) = ready(module, plan) else { return Misaligned::new() };
    interp.note_alignment();
    let _ = calls(&mut interp, module, &plan.setup).and_then(|()| calls(&mut interp, module, &plan.measured));
    interp.take_misaligned()
}

/// A module with a plan's bytes in its memory.
fn ready<'m>(module: &'m Module, plan: &RunPlan) -> Option<Interp<'m>> {
    let mut interp = Interp::new(module, plan.limit);
    interp.start().ok()?;
    interp.reserve(plan.memory_bytes);
    for (addr, bytes) in &plan.writes {
        interp.memory[*addr as usize..][..bytes.len()].copy_from_slice(bytes);
    }
    Some(interp)
}

fn calls(interp: &mut Interp<'_>, module: &Module, calls: &[Call]) -> Option<()> {
    for call in calls {
        interp.call(module.export(&call.export)?, &call.args).ok()?;
    }
    Some(())
}

/// The loops of a module, each with its blocks.
fn members(module: &Module) -> Vec<(Header, HashSet<Block>)> {
    let of = |(id, func): (FuncId, &Func)| {
        let cfg = Cfg::new(func);
        let doms = Dominators::new(func, &cfg);
        let loops = Loops::new(func, &cfg, &doms);
        loops.loops.values().map(|l| ((id, l.header), l.blocks.iter().copied().collect())).collect::<Vec<_>>()
    };
    module.funcs.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::open;
    use crate::request::{Blocks, Direction};

    #[test]
    fn rounds_are_told_from_blocks_and_steady_conditions_from_others() {
        // The key set-up puts the number of rounds, 5, into the context.
        let wasm = wat::parse_str(
            r#"(module
            (memory (export "memory") 2)
            (global (export "__heap_base") i32 (i32.const 66000))
            (func (export "cm_ctx_bytes") (result i32) i32.const 4)
            (func (export "cm_block_bytes") (result i32) i32.const 4)
            (func (export "cm_keysetup") (param $ctx i32) (param i32 i32) (i32.store (local.get $ctx) (i32.const 5)))
            (func (export "cm_encrypt_blocks") (param $ctx i32) (param $in i32) (param $out i32) (param $n i32)
                (local $x i32) (local $r i32)
                (loop $blocks
                    (local.set $x (i32.load (local.get $in)))
                    (local.set $r (i32.load (local.get $ctx)))
                    (if (i32.eqz (local.get $r)) (then (local.set $x (i32.const 0))))
                    (if (i32.lt_u (local.get $r) (i32.const 3)) (then (local.set $x (i32.le_u (i32.const 3) (local.get $r)))))
                    (loop $rounds
                        (local.set $x (i32.rotl (local.get $x) (local.get $r)))
                        (br_if $rounds (local.tee $r (i32.sub (local.get $r) (i32.const 1)))))
                    (i32.store (local.get $out) (local.get $x))
                    (local.set $in (i32.add (local.get $in) (i32.const 4)))
                    (local.set $out (i32.add (local.get $out) (i32.const 4)))
                    (br_if $blocks (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))"#,
        )
        .unwrap();
        let (module, interface, _) = open(&wasm, None).unwrap();
        let work = Work {
            direction: Direction::Encrypt,
            blocks: Blocks::Multi,
            count: crate::shape::Count::Blocks,
            key_bytes: 16,
            iv_bytes: 0,
            limit: None,
        };
        let found = profiled(&module, &interface, work, 4).unwrap();
        // The loop over blocks, and that over rounds.
        assert_eq!(found.trips.iter().map(|l| l.trips).collect::<Vec<_>>(), [0, 5]);
        // Their number was never zero: what is loaded was true, its comparison false. And never below 3, so that what
        // asks for the contrary, which decides nothing, was true.
        assert_eq!(found.steady.iter().map(|s| s.value).collect::<Vec<_>>(), [1, 0, 0, 1]);
    }
}
