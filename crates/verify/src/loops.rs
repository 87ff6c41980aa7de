//! Validation of a software-pipelined loop against its source loop.

use crate::code::{Block, Fault, Inst, SourceLoop, Storage};
use crate::exec::{Exec, Frame};
use crate::inductions;
use crate::rules::Rules;
use crate::state::State;
use crate::straight::same_effects;
use crate::terms::Term;
use std::collections::BTreeSet;

/// What stands in the place of a loop.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    /// Runs first, one instruction after the other.
    pub before: Vec<Inst>,
    /// Virtual registers and the physical ones that they are given in.
    pub given: Vec<(Storage, Storage)>,
    /// Prologue, kernel and epilogue. Control falls through the first `through` of them, and
    /// leaves by label or by the end of the last of these.
    pub blocks: Vec<Block>,
    pub through: usize,
    /// Blocks by label; none for what comes behind.
    pub labels: Vec<(u32, Option<usize>)>,
    /// Virtual registers that get the values of physical ones.
    pub taken: Vec<(Storage, Storage)>,
    /// Runs last.
    pub behind: Vec<Inst>,
    /// Values that are wanted behind the loop: their names before and in what stands for it.
    pub wanted: Vec<(Storage, Storage)>,
    /// Physical registers that may hold anything afterwards.
    pub destroyed: Vec<Storage>,
    pub stack_pointer: Storage,
    /// Offsets of words of the frame that are the loop's own.
    pub words: Vec<i64>,
    /// Accesses that could meet in a bank of memory are not to start together.
    pub banks_apart: bool,
}

/// What the program has when it leaves the loop behind some iteration.
struct Leaving {
    values: Vec<Term>,
    effects: usize,
}

/// Iterations beyond the overlapping ones that are run.
const MORE: u32 = 2;

/// Iterations that overlap, as the code shows (one begins before each branch on the way to the kernel,
/// and one stage stands under each predicate of the kernel), and the blocks that branch.
fn overlapping(rules: &Rules, pipeline: &Pipeline) -> (u32, usize) {
    let asks = |b: &Block| b.bundles.iter().flatten().any(|i| rules.effect(i.instr).conditional);
    let branches = pipeline.blocks.iter().take(pipeline.through).filter(|b| asks(b)).count();
    let predicates: BTreeSet<Storage> =
        pipeline.blocks.iter().flat_map(|b| b.bundles.iter().flatten()).filter_map(|i| i.predicate).collect();
    // A stage may have no operation of its own.
    let under = predicates.first().zip(predicates.last()).map_or(0, |(first, last)| last - first + 1);
    (under.max(branches as u32), branches)
}

/// Check that prologue, kernel and epilogue do what the loop does, for every number of iterations
/// (the crate's essay says why few are enough), and that the machine can start each bundle in
/// one cycle.
///
/// # Errors
/// The rule that is broken, with the instruction, its cycle and the number of iterations.
pub fn pipelined(rules: &Rules, source: &SourceLoop, pipeline: &Pipeline) -> Result<(), Fault> {
    let frame = Frame::new(pipeline.stack_pointer, pipeline.words.clone());
    let mut exec = Exec::new(rules, frame, pipeline.banks_apart);
    let (stages, branches) = overlapping(rules, pipeline);
    inductions::begin(&mut exec, source)?;
    let most = stages + MORE;
    let (leaving, effects) = sequential(&mut exec, source, pipeline, most)?;
    let most = leaving.len() as u32;
    for (n, block) in pipeline.blocks.iter().enumerate() {
        exec.fits(block, &name(n, pipeline))?;
    }
    let mut waiting = vec![(entered(&mut exec, pipeline)?, 0)];
    let mut left = BTreeSet::new();
    // One branch leaves by the same code behind every iteration: behind the first, and with all stages full.
    let leaves = |n: u32| branches > 1 || n == 1 || n + 1 >= most;
    while let Some((state, block)) = waiting.pop() {
        let (count, end) = follow(&mut exec, pipeline, state, block, (most, stages), &leaves, &mut waiting)?;
        let told = |f: Fault| Fault(format!("with {count} iterations: {f}"));
        let wanted = leaving.get(count as usize - 1).ok_or_else(|| told(Fault("the loop is not left".into())))?;
        finish(&mut exec, pipeline, end, wanted, &effects).map_err(told)?;
        left.insert(count);
    }
    match (1..=most).find(|n| leaves(*n) && !left.contains(n)) {
        Some(n) => Err(Fault(format!("nothing leaves the loop after {n} iterations"))),
        None => Ok(()),
    }
}

/// The program's iterations: what it has behind each, were it the last.
fn sequential(
    exec: &mut Exec<'_>,
    source: &SourceLoop,
    pipeline: &Pipeline,
    most: u32,
) -> Result<(Vec<Leaving>, Vec<Term>), Fault> {
    let Some(branch) = &source.branch else { return Err(Fault("a loop has no branch".into())) };
    let mut state = exec.start();
    let mut leaving = Vec::new();
    for iteration in 1..=most {
        for inst in &source.body {
            exec.step(&mut state, inst, iteration)?;
        }
        let jump = exec.step(&mut state, branch, iteration)?.jump;
        let Some(condition) = jump.and_then(|j| j.condition) else {
            return Err(Fault("a loop's branch has no condition".into()));
        };
        let (equal, when) = exec.terms.comparison(condition);
        // A condition that does not change is met once: there is no second iteration, or no last.
        if exec.terms.number(equal).is_some() || exec.decisions.followed.contains_key(&equal) {
            break;
        }
        exec.decisions.followed.insert(equal, (iteration, when == source.again_when_taken));
        let mut values = Vec::with_capacity(pipeline.wanted.len());
        for &(old, _) in &pipeline.wanted {
            values.push(exec.read(&state, old));
        }
        leaving.push(Leaving { values, effects: state.effects.len() });
        for inst in &source.between {
            exec.step(&mut state, inst, iteration)?;
        }
        let mut next = Vec::with_capacity(source.params.len());
        for &h in &source.handed {
            next.push(exec.read(&state, h));
        }
        source.params.iter().zip(next).for_each(|(&p, value)| state.write(p, value));
    }
    Ok((leaving, state.effects))
}

/// What the first bundle finds.
fn entered(exec: &mut Exec<'_>, pipeline: &Pipeline) -> Result<State, Fault> {
    let mut state = exec.start();
    for inst in &pipeline.before {
        // Straight code, which is checked by itself, but where it is read loads are known.
        exec.moved(&mut state, inst)?;
    }
    let mut written = BTreeSet::new();
    let mut given = Vec::new();
    for &(v, r) in &pipeline.given {
        if !written.insert(r) {
            return Err(Fault(format!("two values are given to the loop in {}", exec.rules.register(r))));
        }
        given.push((r, exec.read(&state, v)));
    }
    given.into_iter().for_each(|(r, value)| state.write(r, value));
    Ok(state)
}

fn name(block: usize, pipeline: &Pipeline) -> String {
    let what = if block < pipeline.through { "block" } else { "aside, block" };
    format!("{what} {block} of the pipeline")
}

/// Run from a block until the loop is left. Of each iteration that may be the last, the path on
/// which it is waits to be run.
fn follow(
    exec: &mut Exec<'_>,
    pipeline: &Pipeline,
    mut state: State,
    mut block: usize,
    (most, stages): (u32, u32),
    leaves: &dyn Fn(u32) -> bool,
    waiting: &mut Vec<(State, usize)>,
) -> Result<(u32, State), Fault> {
    // Each iteration passes the kernel once, and once for each stage that runs empty.
    let bound = pipeline.blocks.len() + 2 * (most + stages) as usize + 8;
    for _ in 0..bound {
        let Some(code) = pipeline.blocks.get(block) else {
            return Err(Fault("control leaves the pipeline's blocks".into()));
        };
        let what = name(block, pipeline);
        let entry = state.clone();
        let mut last = None;
        let left = exec.block(state, code, &what, &mut |state| {
            if state.known.followed + 1 < most {
                if leaves(state.known.followed + 1) {
                    let mut over = entry.clone();
                    over.known.over = true;
                    last = Some(over);
                }
                state.known.followed += 1;
            } else {
                state.known.over = true;
            }
        })?;
        waiting.extend(last.map(|l| (l, block)));
        state = left.state;
        if block >= pipeline.through && left.jump.as_ref().is_none_or(|j| j.taken != Some(true)) {
            return Err(Fault(format!("{what}: control falls out of it")));
        }
        let next = Some(block + 1).filter(|&b| b < pipeline.through);
        let to = match left.jump {
            Some(jump) => match jump.taken {
                None => {
                    return Err(Fault(format!(
                        "{what}: its branch hangs on something else than the loop's in that iteration"
                    )));
                }
                Some(true) => {
                    let to = pipeline.labels.iter().find(|l| Some(l.0) == jump.label).map(|l| l.1);
                    to.ok_or_else(|| Fault(format!("{what}: it jumps out of the loop")))?
                }
                Some(false) => next,
            },
            None => next,
        };
        let Some(to) = to else {
            let count = state.known.followed + 1;
            if !state.known.over {
                return Err(Fault(format!("the loop is left after {count} iterations though another follows")));
            }
            return Ok((count, state));
        };
        block = to;
    }
    Err(Fault("the loop is not left when its last iteration is over".into()))
}

/// What is there when the loop has been left.
fn finish(
    exec: &mut Exec<'_>,
    pipeline: &Pipeline,
    mut state: State,
    wanted: &Leaving,
    effects: &[Term],
) -> Result<(), Fault> {
    exec.quiet(&state, "the end of the loop")?;
    for r in 0..exec.rules.machine.regs.len() as Storage {
        if !pipeline.destroyed.contains(&r)
            && exec.terms.initial(r) != state.registers[r as usize]
            && !exec.rules.machine.regs[r as usize].zero
        {
            return Err(Fault(format!("{} is not the loop's to write", exec.rules.register(r))));
        }
    }
    same_effects(&effects[..wanted.effects], &state.effects)?;
    let mut taken = Vec::new();
    for &(v, r) in &pipeline.taken {
        taken.push((v, exec.read(&state, r)));
    }
    taken.into_iter().for_each(|(v, value)| state.write(v, value));
    for inst in &pipeline.behind {
        exec.moved(&mut state, inst)?;
    }
    for (&(old, new), &value) in pipeline.wanted.iter().zip(&wanted.values) {
        if exec.read(&state, new) != value {
            return Err(Fault(format!(
                "the value {} that is wanted behind the loop is another",
                exec.rules.register(old)
            )));
        }
    }
    Ok(())
}
