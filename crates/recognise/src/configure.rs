//! A multiplier whose matrix is in registers, or the polynomial of whose field is: which,
//! and where it is loaded.
//!
//! A function works with one matrix, the one that saves it most. It is loaded
//! where the program enters from outside: a function that is also called by
//! others with the same matrix in hand has a copy for them that does not load
//! it. Code whose callees hold different matrices, or that cannot know what it
//! calls, holds none, and they load their own.

use super::facts::Facts;
use super::linear;
use super::matrices::Turned;
use super::recogniser::{LoadedMatrix, Recogniser};
use super::sum::Rows;
use super::words::Maps;
use ciphermill_ir::{Cfg, DataSegment, Dominators, Func, FuncId, GlobalData, GlobalId, Inst, Loops, Module, Op, Type};
use ciphermill_machine::{Machine, Reg};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Loops in loops beyond so many count no more.
const MOST_NESTING: u32 = 3;
/// How often a loop is assumed to iterate.
const ITERATIONS: usize = 8;
/// Operations that must be saved for each register that is loaded: a wide constant and a move.
const LEAST_SAVED: usize = 3;

/// What was decided for a module.
#[derive(Default)]
pub struct Configured {
    /// The matrix in each function that has one.
    pub matrices: HashMap<FuncId, LoadedMatrix>,
    /// The rows' registers, as globals.
    pub rows: Vec<(GlobalId, Reg)>,
}

/// Choose matrices, and put the loading of them into the module.
pub fn configure(module: &mut Module, machine: &Machine, recogniser: &Recogniser) -> Configured {
    let Some((first, count)) = recogniser.registers() else { return Configured::default() };
    if ciphermill_vcode::moves::writer(machine, machine.regs[usize::from(first.0)].file).is_none() {
        return Configured::default();
    }
    // What is saved are operations on whole values, each of them one for every word that these have.
    let words = usize::from(machine.word_bits / machine.value_bits());
    let often = calls_of(module);
    let own: BTreeMap<FuncId, LoadedMatrix> = module
        .funcs
        .iter()
        .filter_map(|(id, f)| Some((id, choose(f, &module.data, recogniser, often[&id])?)))
        .filter(|(_, (_, saved))| *saved * words > LEAST_SAVED * count)
        .map(|(id, (loaded, _))| (id, loaded))
        .collect();
    let loaded = loaded(module, own);
    if loaded.is_empty() {
        return Configured::default();
    }
    let row = |i: usize| {
        let name = Some(format!("configuration {i}"));
        (
            module.globals.push(GlobalData { ty: Type::I32, mutable: true, init: 0, system_offset: 0, name }),
            Reg(first.0 + i as u16),
        )
    };
    let rows: Vec<(GlobalId, Reg)> = (0..count).map(row).collect();
    let mut matrices: HashMap<FuncId, LoadedMatrix> = loaded.iter().map(|(&id, m)| (id, m.clone())).collect();
    let mut entered: BTreeSet<FuncId> = module.exports.iter().map(|e| e.1).chain(module.start).collect();
    entered.extend(module.system.func_refs.iter().map(|r| r.func));
    let callers: Vec<FuncId> = module.funcs.keys().collect();
    for &caller in callers.iter().filter(|c| !loaded.contains_key(c)) {
        entered.extend(calls(&module.funcs[caller]).into_iter().map(|(_, callee)| callee));
    }
    for (&id, matrix) in loaded.iter().filter(|(id, _)| entered.contains(id)) {
        let inside: Vec<(FuncId, Inst)> = callers
            .iter()
            .filter(|c| loaded.contains_key(c))
            .flat_map(|&c| calls(&module.funcs[c]).into_iter().filter(|&(_, f)| f == id).map(move |(i, _)| (c, i)))
            .collect();
        if !inside.is_empty() {
            let mut copy = module.funcs[id].clone();
            copy.name = format!("{}_inside", copy.name);
            let copy = module.funcs.push(copy);
            matrices.insert(copy, matrix.clone());
            for (caller, inst) in inside {
                module.funcs[caller].insts[inst].op = Op::Call(copy);
            }
        }
    }
    for (id, matrix) in loaded.into_iter().filter(|(id, _)| entered.contains(id)) {
        load(&mut module.funcs[id], &rows, &recogniser.in_registers(&matrix));
    }
    Configured { matrices, rows }
}

/// How often each function is called, as far as loops tell; 1 for one that is entered
/// from outside only.
fn calls_of(module: &Module) -> HashMap<FuncId, usize> {
    let mut often: HashMap<FuncId, usize> = module.funcs.keys().map(|id| (id, 1)).collect();
    for _ in 0..MOST_NESTING {
        for (id, func) in &module.funcs {
            let cfg = Cfg::new(func);
            let loops = Loops::new(func, &cfg, &Dominators::new(func, &cfg));
            for &block in &func.layout {
                for &inst in &func.blocks[block].insts {
                    let Op::Call(callee) = func.insts[inst].op else { continue };
                    let times = often[&id].saturating_mul(ITERATIONS.pow(loops.depth(block).min(MOST_NESTING)));
                    let times = times.min(ITERATIONS.pow(MOST_NESTING));
                    often.entry(callee).and_modify(|t| *t = times.max(*t));
                }
            }
        }
    }
    often
}

/// What saves a function most operations if the registers hold it, and how many in so many calls.
fn choose(func: &Func, data: &[DataSegment], recogniser: &Recogniser, often: usize) -> Option<(LoadedMatrix, usize)> {
    let any = |rows: &Rows| match &recogniser.multiplier {
        Some(m) => Some(m.any(rows)?.1),
        None => Some(vec![Turned::ANY]),
    };
    let loaded = |rows: &Rows| match &recogniser.multiplier {
        Some(m) => Some(vec![m.any(rows)?.0]),
        None => Some(rows.iter().map(|&row| row as u32).collect()),
    };
    let facts = Facts::new(func, data, Type::I32);
    let found = linear::find_any(&Maps::new(&facts), recogniser.rotate_cost, &any);
    let cfg = Cfg::new(func);
    let loops = Loops::new(func, &cfg, &Dominators::new(func, &cfg));
    let mut saved: BTreeMap<LoadedMatrix, usize> = BTreeMap::new();
    for &block in &func.layout {
        let weight = often * ITERATIONS.pow(loops.depth(block).min(MOST_NESTING));
        for result in func.blocks[block].insts.iter().flat_map(|&i| &func.insts[i].results) {
            if let Some((m, loaded)) = found.get(result).and_then(|m| Some((m, loaded(&m.rows)?))) {
                *saved.entry(loaded).or_default() += m.saves * weight;
            }
        }
    }
    saved.into_iter().max_by_key(|s| s.1)
}

/// The matrix of each function while it runs: its own, or that of all it calls.
fn loaded(module: &Module, own: BTreeMap<FuncId, LoadedMatrix>) -> BTreeMap<FuncId, LoadedMatrix> {
    let mut loaded = own;
    // A function that calls others takes theirs; until nothing changes any more.
    let mut refused: BTreeSet<FuncId> = BTreeSet::new();
    loop {
        let mut changed = false;
        for (id, func) in module.funcs.iter().filter(|(_, f)| !calls(f).is_empty() || blind(f)) {
            let below: BTreeSet<LoadedMatrix> =
                calls(func).iter().filter_map(|(_, c)| loaded.get(c)).cloned().collect();
            let below_refused = calls(func).iter().any(|(_, c)| refused.contains(c));
            let all: BTreeSet<LoadedMatrix> = below.into_iter().chain(loaded.get(&id).cloned()).collect();
            if (all.len() > 1 || below_refused || blind(func)) && refused.insert(id) {
                loaded.remove(&id);
                changed = true;
            }
            if !refused.contains(&id) && all.len() == 1 && !loaded.contains_key(&id) {
                loaded.extend(all.into_iter().map(|m| (id, m)));
                changed = true;
            }
        }
        if !changed {
            return loaded;
        }
    }
}

fn calls(func: &Func) -> Vec<(Inst, FuncId)> {
    let insts = func.layout.iter().flat_map(|&b| &func.blocks[b].insts);
    insts.filter_map(|&i| if let Op::Call(f) = func.insts[i].op { Some((i, f)) } else { None }).collect()
}

/// Does it call what only the run tells?
fn blind(func: &Func) -> bool {
    let insts = func.layout.iter().flat_map(|&b| &func.blocks[b].insts);
    insts.into_iter().any(|&i| matches!(func.insts[i].op, Op::CallPtr(_)))
}

fn load(func: &mut Func, rows: &[(GlobalId, Reg)], parts: &[u32]) {
    let mut made = Vec::new();
    for (&(global, _), &part) in rows.iter().zip(parts) {
        let constant = func.make_inst(Op::Const(part.into()), &[], &[Type::I32], 0);
        let value = func.result(constant);
        made.extend([constant, func.make_inst(Op::GlobalSet(global), &[value], &[], 0)]);
    }
    let entry = func.entry;
    let after = std::mem::take(&mut func.blocks[entry].insts);
    func.blocks[entry].insts = made.into_iter().chain(after).collect();
}
