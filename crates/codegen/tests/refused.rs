//! Schedules as they are made pass the check; bent in any way that breaks a rule they do not.
//!
//! Each bend is made at every place of real schedules where it certainly breaks something: so the
//! loops give nothing back (what the last iteration alone would make is wanted by nobody), their
//! operations are bent in the kernel, where each is wanted by an iteration that follows, and bends are
//! asked for stores, or for operations whose results are read in the very cycle in which they land.

use ciphermill_codegen::{Options, compile};
use ciphermill_ir::Space;
use ciphermill_machine::{InstrId, InstrKind, Machine, OperandKind, Reg, load_from_dir};
use ciphermill_schedule::verified::{Checked, Witness};
use ciphermill_verify::{Arg, Block, Inst, Pipeline, Rules, SourceLoop, Straight, pipelined, straight};
use std::path::Path;
use std::sync::Arc;

/// Words of one buffer, multiplied and added to themselves a few times, go to another.
const LOOP: &str = "(func (export \"f\") (param $in i32) (param $out i32) (param $n i32) (local $x i32)
    (loop $next
      (local.set $x (i32.load (local.get $in)))
      (local.set $x (i32.add (i32.mul (i32.and (local.get $x) (i32.const 0x7fff)) (i32.const 0x1234)) (i32.shl (local.get $x) (i32.const 3))))
      (local.set $x (i32.xor (i32.mul (i32.and (local.get $x) (i32.const 0x3fff)) (i32.const 0x4321)) (i32.shr_u (local.get $x) (i32.const 5))))
      (local.set $x (i32.add (i32.mul (i32.and (local.get $x) (i32.const 0x7ff)) (i32.const 0x765)) (i32.shl (local.get $x) (i32.const 2))))
      (i32.store (local.get $out) (local.get $x))
      (i32.store offset=4 (local.get $out) (i32.xor (local.get $x) (i32.load offset=4 (local.get $in))))
      (local.set $in (i32.add (local.get $in) (i32.const 8)))
      (local.set $out (i32.add (local.get $out) (i32.const 8)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))";

/// Two stores of which nobody knows whether they touch the same bytes, and a load behind them.
const STRAIGHT: &str = "(func (export \"f\") (param $p i32) (param $q i32) (param $a i32) (result i32)
    (i32.store (local.get $p) (local.get $a))
    (i32.store (local.get $q) (i32.add (local.get $a) (i32.const 77)))
    (if (result i32) (i32.lt_u (i32.load (local.get $p)) (local.get $a))
      (then (i32.mul (i32.load offset=8 (local.get $q)) (local.get $a)))
      (else (i32.store offset=4 (local.get $p) (i32.const 5)) (i32.load offset=4 (local.get $q)))))";

struct Case {
    machine: Arc<Machine>,
    rules: Rules,
    checked: Vec<Checked>,
}

fn machine(name: &str) -> Machine {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    load_from_dir(&root, name, &[], &[], &[]).expect("the machine file is good")
}

fn case(name: &str, body: &str) -> Case {
    let machine = Arc::new(machine(name));
    let wasm = wat::parse_str(format!("(module (memory (export \"memory\") 1) {body})"));
    let mut module = ciphermill_load::load(&wasm.expect("the test's module is well formed")).expect("it loads");
    ciphermill_opt::optimise(&mut module, &ciphermill_opt::Options::default()).expect("it optimises");
    let witness = Witness::default();
    let buffers = if body == LOOP { vec![("f".into(), 2)] } else { Vec::new() };
    let options = Options { level: 2, buffers, witness: Some(witness.clone()), ..Options::default() };
    compile(&module, machine.clone(), &options).expect("it compiles, and every schedule passes");
    let checked = witness.lock().expect("nobody panicked").clone();
    Case { rules: Rules::new(machine.clone()), machine, checked }
}

/// The pipelined loop of a machine, in which several iterations overlap.
fn pipeline(name: &str) -> (Case, SourceLoop, Pipeline) {
    pipeline_of(name, LOOP)
}

fn pipeline_of(name: &str, body: &str) -> (Case, SourceLoop, Pipeline) {
    let case = case(name, body);
    let found =
        case.checked.iter().find_map(|c| if let Checked::Loop(t, p) = c { Some((t.clone(), p.clone())) } else { None });
    let (source, pipeline) = found.unwrap_or_else(|| panic!("{name} pipelines the loop"));
    pipelined(&case.rules, &source, &pipeline).expect("the schedule as it was made passes");
    (case, source, pipeline)
}

const STATIC: [&str; 2] = ["c6201", "c64x"];
const ROTATING: [&str; 2] = ["epic", "itanium2"];

impl Case {
    fn kind(&self, i: &Inst) -> InstrKind {
        self.machine.instrs[usize::from(i.instr.0)].kind
    }

    fn latency(&self, i: &Inst) -> u64 {
        u64::from(self.machine.instrs[usize::from(i.instr.0)].latency)
    }

    /// Operands that are registers and written, or read.
    fn registers(&self, i: &Inst, written: bool) -> Vec<(usize, u32)> {
        let spec = &self.machine.instrs[usize::from(i.instr.0)].operands;
        let wanted = |kind: &OperandKind| matches!(*kind, OperandKind::Reg { def, used, .. } if if written { def } else { used });
        let all = i.args.iter().enumerate().filter(|(o, _)| wanted(&spec[*o].kind));
        all.filter_map(|(o, a)| if let Arg::Reg(r) = a { Some((o, *r)) } else { None }).collect()
    }

    /// The cycle in which each bundle of a block issues.
    fn cycles(&self, block: &Block) -> Vec<u64> {
        let long = |b: &Vec<Inst>| {
            b.iter().map(|i| u64::from(self.machine.instrs[usize::from(i.instr.0)].issue_cycles)).max().unwrap_or(1)
        };
        block.bundles.iter().scan(0, |at, b| Some(std::mem::replace(at, *at + long(b)))).collect()
    }

    /// Number of the kernel among the blocks: the one with a jump to itself.
    fn kernel(&self, p: &Pipeline) -> usize {
        let own = |b: usize| {
            let labels = p.blocks[b].bundles.iter().flatten().flat_map(|i| &i.args);
            labels.into_iter().any(|a| matches!(a, Arg::Label(l) if p.labels.contains(&(*l, Some(b)))))
        };
        (0..p.through).find(|&b| own(b)).expect("a kernel goes back to itself")
    }

    /// Places of instructions of a kind: block, bundle, slot.
    fn places(&self, blocks: &[Block], wanted: &dyn Fn(&Inst) -> bool) -> Vec<(usize, usize, usize)> {
        let mut out = Vec::new();
        for (b, block) in blocks.iter().enumerate() {
            for (n, bundle) in block.bundles.iter().enumerate() {
                out.extend((0..bundle.len()).filter(|&k| wanted(&bundle[k])).map(|k| (b, n, k)));
            }
        }
        out
    }

    /// Another register of the same file.
    fn neighbour(&self, r: u32) -> u32 {
        let info = &self.machine.regs[r as usize];
        let file = &self.machine.files[info.file];
        let (first, count) = if file.rotating.1 > 1 && (r - u32::from(file.rotating.0.0)) < u32::from(file.rotating.1) {
            file.rotating
        } else {
            (file.first, file.count)
        };
        let first = u32::from(first.0);
        first + (r - first + 1) % u32::from(count)
    }
}

/// All bends of a pipeline are refused; what is said of them.
fn all_refused(case: &Case, source: &SourceLoop, bends: Vec<Pipeline>, what: &str) -> Vec<String> {
    assert!(!bends.is_empty(), "{}: nothing to bend: {what}", case.machine.name);
    let said = |p: &Pipeline| match pipelined(&case.rules, source, p) {
        Ok(()) => panic!("{}: {what}: taken for right\n{p:?}", case.machine.name),
        Err(e) => e.0,
    };
    bends.iter().map(said).collect()
}

fn bent(p: &Pipeline, bend: impl FnOnce(&mut Pipeline)) -> Pipeline {
    let mut p = p.clone();
    bend(&mut p);
    p
}

#[test]
fn a_store_left_out_or_made_twice_is_missed() {
    for name in STATIC.into_iter().chain(ROTATING) {
        let (case, source, p) = pipeline(name);
        let stores = case.places(&p.blocks, &|i| case.kind(i) == InstrKind::Store);
        let out = stores.iter().map(|&(b, n, k)| bent(&p, |p| drop(p.blocks[b].bundles[n].remove(k)))).collect();
        all_refused(&case, &source, out, "a store left out");
        let twice = |&(b, n, k): &(usize, usize, usize)| {
            bent(&p, |p| {
                let again = p.blocks[b].bundles[n][k].clone();
                p.blocks[b].bundles.insert(n + 1, vec![again]);
            })
        };
        all_refused(&case, &source, stores.iter().map(twice).collect(), "a store made twice");
    }
}

/// Of the kernel: `(bundle, slot)` of what writes a register, and of what reads it in the cycle in
/// which that lands, or in the first bundle behind it where the hardware waits.
fn pairs(case: &Case, block: &Block) -> Vec<((usize, usize), (usize, usize))> {
    let cycles = case.cycles(block);
    let exposed = !case.machine.issue.interlock;
    let mut out = Vec::new();
    for (n, bundle) in block.bundles.iter().enumerate() {
        for (k, i) in bundle.iter().enumerate() {
            let [(_, r)] = case.registers(i, true)[..] else { continue };
            // A move of a register to itself makes nothing that was not there before.
            let moves = &case.machine.variants[usize::from(case.machine.abi.ops.mov.0)];
            if moves.contains(&i.instr) && case.registers(i, false).iter().all(|x| x.1 == r) {
                continue;
            }
            let lands = if exposed { cycles[n] + case.latency(i) } else { cycles[n] + 1 };
            let Some(m) = (n + 1..cycles.len()).find(|&m| cycles[m] >= lands) else { continue };
            if cycles[m] != lands {
                continue;
            }
            let reads = |j: &Inst| case.registers(j, false).iter().any(|x| x.1 == r);
            out.extend((0..block.bundles[m].len()).filter(|&j| reads(&block.bundles[m][j])).map(|j| ((n, k), (m, j))));
        }
    }
    out
}

fn shift(p: &mut Pipeline, kernel: usize, from: (usize, usize), to: usize) {
    let inst = p.blocks[kernel].bundles[from.0].remove(from.1);
    p.blocks[kernel].bundles[to].push(inst);
}

#[test]
fn a_reader_moved_before_the_result_and_a_result_moved_behind_its_reader() {
    for name in STATIC.into_iter().chain(ROTATING) {
        let (case, source, p) = pipeline(name);
        let kernel = case.kernel(&p);
        let pairs = pairs(&case, &p.blocks[kernel]);
        // The branch's place is asked elsewhere.
        let moves = |at: (usize, usize)| case.kind(&p.blocks[kernel].bundles[at.0][at.1]) != InstrKind::Branch;
        let early =
            pairs.iter().filter(|x| moves(x.1)).map(|x| bent(&p, |p| shift(p, kernel, x.1, x.1.0 - 1))).collect();
        let mut said = all_refused(&case, &source, early, "a reader one cycle early");
        let late = pairs
            .iter()
            .map(|x| bent(&p, |p| shift(p, kernel, x.0, if case.machine.issue.interlock { x.1.0 } else { x.0.0 + 1 })))
            .collect();
        said.extend(all_refused(&case, &source, late, "a result one cycle late"));
        // Not for want of a unit alone.
        assert!(said.iter().any(|s| s.contains(", cycle ") || s.contains("iterations")), "{name}: {said:?}");
    }
}

#[test]
fn a_schedule_for_shorter_latencies_is_refused() {
    for name in STATIC {
        let (case, source, p) = pipeline(name);
        let mut slower = machine(name);
        // Later than any reader waits: one cycle more may be slack.
        slower.instrs.iter_mut().filter(|i| i.kind == InstrKind::Load).for_each(|i| i.latency += 100);
        pipelined(&Rules::new(Arc::new(slower)), &source, &p).expect_err("loads land behind their readers");
        let mut faster = (*case.machine).clone();
        faster.instrs.iter_mut().filter(|i| i.delay_slots > 0).for_each(|i| i.delay_slots -= 1);
        pipelined(&Rules::new(Arc::new(faster)), &source, &p).expect_err("branches are taken a cycle earlier");
    }
}

#[test]
fn too_much_in_one_cycle_is_refused() {
    for name in STATIC.into_iter().chain(ROTATING) {
        let (case, source, p) = pipeline(name);
        let stores = case.places(&p.blocks, &|i| case.kind(i) == InstrKind::Store);
        let crowd = |&(b, n, k): &(usize, usize, usize)| {
            bent(&p, |p| {
                let again = p.blocks[b].bundles[n][k].clone();
                p.blocks[b].bundles[n].extend(std::iter::repeat_n(again, usize::from(case.machine.issue.width)));
            })
        };
        let said = all_refused(&case, &source, stores.iter().map(crowd).collect(), "more than the issue width");
        assert!(said.iter().all(|s| s.contains("slots")), "{name}: {said:?}");
        // One on the unit of another that has one unit alone.
        let single = |i: &Inst| match case.machine.instrs[usize::from(i.instr.0)].units[..] {
            [u] => case.machine.units[u].count == 1,
            _ => false,
        };
        let twice = |&(b, n, k): &(usize, usize, usize)| {
            bent(&p, |p| {
                let again = p.blocks[b].bundles[n][k].clone();
                p.blocks[b].bundles[n].truncate(k + 1);
                p.blocks[b].bundles[n].push(again);
            })
        };
        let places = case.places(&p.blocks, &single);
        if STATIC.contains(&name) {
            let said = all_refused(&case, &source, places.iter().map(twice).collect(), "two on one unit");
            assert!(said.iter().any(|s| s.contains("no unit is free")), "{name}: {said:?}");
        }
    }
}

#[test]
fn paths_ports_and_clusters_are_the_machines() {
    for name in STATIC {
        let (case, source, p) = pipeline(name);
        // The other cluster's variant has none of these registers.
        let mut swapped = Vec::new();
        for (b, n, k) in case.places(&p.blocks, &|i| !case.registers(i, true).is_empty()) {
            let i = &p.blocks[b].bundles[n][k];
            let cluster = |v: InstrId| case.machine.instrs[usize::from(v.0)].cluster;
            let variants = case.machine.variants.iter().find(|v| v.contains(&i.instr));
            let other = variants
                .into_iter()
                .flatten()
                .find(|v| cluster(**v) != cluster(i.instr) && case.machine.instrs[usize::from(v.0)].only.is_empty());
            swapped.extend(other.map(|&v| bent(&p, |p| p.blocks[b].bundles[n][k].instr = v)));
        }
        let said = all_refused(&case, &source, swapped, "a variant of the other cluster");
        assert!(said.iter().any(|s| s.contains("cannot be the register")), "{name}: {said:?}");
        // Paths that carry nothing, and registers that are read once in a cycle.
        let mut narrow = (*case.machine).clone();
        let paths: Vec<usize> = narrow.instrs.iter().flat_map(|i| i.paths.iter().map(|p| p.0)).collect();
        paths.iter().for_each(|&u| (narrow.units[u].count, narrow.units[u].shared) = (0, 0));
        let crossed = case.places(&p.blocks, &|i| !case.machine.instrs[usize::from(i.instr.0)].paths.is_empty());
        assert!(!crossed.is_empty(), "{name}: something crosses");
        let said = pipelined(&Rules::new(Arc::new(narrow)), &source, &p).expect_err("no path");
        assert!(said.0.contains("path"), "{said}");
        let mut narrow = (*case.machine).clone();
        narrow.issue.register_reads = 1;
        narrow.instrs.iter_mut().for_each(|i| i.ports.iter_mut().for_each(|p| p.1 = 2));
        let said = pipelined(&Rules::new(Arc::new(narrow)), &source, &p).expect_err("no port");
        assert!(said.0.contains("is read"), "{said}");
    }
}

#[test]
fn a_result_in_another_register_and_a_value_from_another() {
    for name in STATIC.into_iter().chain(ROTATING) {
        let (case, source, p) = pipeline(name);
        let kernel = case.kernel(&p);
        let mut other = Vec::new();
        for (b, n, k) in
            case.places(&p.blocks, &|i| case.registers(i, true).len() == 1).into_iter().filter(|x| x.0 == kernel)
        {
            let (o, r) = case.registers(&p.blocks[b].bundles[n][k], true)[0];
            // What stays where it is may go elsewhere besides.
            let stem = |i: InstrId| case.machine.instrs[usize::from(i.0)].name.split('.').next();
            let moves = stem(case.machine.abi.ops.mov) == stem(p.blocks[b].bundles[n][k].instr);
            let to_itself = |x: &(usize, u32)| x.1 == r && moves;
            if case.registers(&p.blocks[b].bundles[n][k], false).iter().all(|x| x.0 != o && !to_itself(x)) {
                other.push(bent(&p, |p| p.blocks[b].bundles[n][k].args[o] = Arg::Reg(case.neighbour(r))));
            }
        }
        all_refused(&case, &source, other, "a result in another register");
        let mut read = Vec::new();
        for (b, n, k) in case.places(&p.blocks, &|i| case.kind(i) == InstrKind::Store) {
            for (o, r) in case.registers(&p.blocks[b].bundles[n][k], false) {
                read.push(bent(&p, |p| p.blocks[b].bundles[n][k].args[o] = Arg::Reg(case.neighbour(r))));
            }
        }
        all_refused(&case, &source, read, "a store of another register, or of the ring's next");
        // What is given and not the loop's to write.
        let lost = (0..p.given.len()).map(|g| bent(&p, |q| q.given.retain(|x| *x != p.given[g]))).collect();
        all_refused(&case, &source, lost, "a value that is not given");
        let kept: Vec<Pipeline> = vec![bent(&p, |p| p.destroyed.clear())];
        let said = all_refused(&case, &source, kept, "registers that are not the loop's");
        assert!(said[0].contains("not the loop's"), "{said:?}");
    }
}

#[test]
fn predicates_and_rotation_are_run_as_they_stand() {
    for name in ROTATING {
        let (case, source, p) = pipeline(name);
        let rotation = case.machine.abi.rotation.clone().expect("it rotates");
        let predicates: Vec<u32> = rotation.predicates.iter().map(|r: &Reg| u32::from(r.0)).collect();
        let stores = case.places(&p.blocks, &|i| case.kind(i) == InstrKind::Store);
        let (mut dropped, mut moved) = (Vec::new(), Vec::new());
        for &(b, n, k) in &stores {
            let predicate = p.blocks[b].bundles[n][k].predicate.expect("it has a stage");
            let stage = predicates.iter().position(|&g| g == predicate).expect("a stage");
            if stage > 0 {
                dropped.push(bent(&p, |p| p.blocks[b].bundles[n][k].predicate = None));
                moved.push(bent(&p, |p| p.blocks[b].bundles[n][k].predicate = Some(predicates[stage - 1])));
            }
            moved.push(bent(&p, |p| p.blocks[b].bundles[n][k].predicate = Some(predicates[stage + 1])));
        }
        all_refused(&case, &source, dropped, "a store without its predicate");
        all_refused(&case, &source, moved, "a store in another stage");
        let enter = case.places(&p.blocks, &|i| i.instr == rotation.enter);
        let mut stages = Vec::new();
        for &(b, n, k) in &enter {
            for by in [-1, 1] {
                stages.push(bent(&p, |p| {
                    p.blocks[b].bundles[n][k].args.iter_mut().for_each(|a| {
                        if let Arg::Imm(v) = a {
                            *v += by
                        }
                    });
                }));
            }
        }
        // One stage more runs the loop once more with nothing in it: right, if longer.
        let fewer = stages.into_iter().step_by(2).collect();
        all_refused(&case, &source, fewer, "a stage too few");
        let still = |i: &Inst| i.instr == rotation.back || i.instr == rotation.back_zero;
        let (b, n, k) = case.places(&p.blocks, &still)[0];
        let opposite =
            if p.blocks[b].bundles[n][k].instr == rotation.back { rotation.back_zero } else { rotation.back };
        all_refused(
            &case,
            &source,
            vec![bent(&p, |p| p.blocks[b].bundles[n][k].instr = opposite)],
            "the opposite branch",
        );
    }
}

#[test]
fn the_branch_decides_in_its_place_and_its_slots_end_the_block() {
    for name in STATIC {
        let (case, source, p) = pipeline(name);
        let branches = case.places(&p.blocks, &|i| case.kind(i) == InstrKind::Branch);
        assert!(branches.len() > 1, "{name}: iterations overlap");
        let kernel = case.kernel(&p);
        let (back, past): (Vec<_>, Vec<_>) = branches.into_iter().partition(|x| x.0 == kernel);
        let at = |p: &Pipeline, x: (usize, usize, usize)| p.blocks[x.0].bundles[x.1][x.2].clone();
        let mut bends = Vec::new();
        for &x in &past {
            let (skip, again) = (at(&p, x).instr, at(&p, back[0]).instr);
            // An iteration too many, or too few.
            bends.push(bent(&p, |p| p.blocks[kernel].bundles[back[0].1][back[0].2].instr = skip));
            bends.push(bent(&p, |p| p.blocks[x.0].bundles[x.1][x.2].instr = again));
            bends.push(bent(&p, |p| drop(p.blocks[x.0].bundles[x.1].remove(x.2))));
        }
        for &x in back.iter().chain(&past) {
            bends.push(bent(&p, |p| drop(p.blocks[x.0].bundles.pop())));
            bends.push(bent(&p, |p| p.blocks[x.0].bundles.push(Vec::new())));
        }
        bends.push(bent(&p, |p| p.labels.retain(|l| l.1 != Some(kernel))));
        bends.push(bent(&p, |p| p.blocks[kernel].bundles[back[0].1].retain(|i| case.kind(i) != InstrKind::Branch)));
        all_refused(&case, &source, bends, "branches");
    }
}

/// 70 words of each iteration, all of which are wanted behind the last one.
fn wide() -> String {
    let names: Vec<String> = (0..70).map(|k| format!("$x{k}")).collect();
    let load = |(k, x): (usize, &String)| {
        format!("(local.set {x} (i32.xor (i32.load offset={} (local.get $in)) (local.get $n)))", 4 * k)
    };
    let loads: String = names.iter().enumerate().map(load).collect();
    let sum = names
        .iter()
        .fold("(i32.const 0)".to_owned(), |s, x| format!("(i32.add (i32.mul {s} (i32.const 3)) (local.get {x}))"));
    let locals: String = names.iter().map(|x| format!("(local {x} i32)")).collect();
    format!(
        "(func (export \"f\") (param $in i32) (param $n i32) (result i32) {locals}
           (loop $next
             {loads}
             (local.set $in (i32.add (local.get $in) (i32.const 280)))
             (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
           {sum})"
    )
}

#[test]
fn words_of_the_frame_are_told_by_addresses_that_are_made_for_them() {
    for name in ROTATING {
        let (case, source, p) = pipeline_of(name, &wide());
        assert!(p.words.len() >= 10, "{name}: {:?}", p.words);
        let add = case.machine.abi.ops.add_imm;
        let imm = |i: &Inst| i.args.iter().position(|a| matches!(a, Arg::Imm(v) if p.words.contains(v)));
        let made = |i: &Inst| i.instr == add && i.args.contains(&Arg::Reg(p.stack_pointer)) && imm(i).is_some();
        let kernel = case.kernel(&p);
        let places: Vec<_> = case.places(&p.blocks, &made).into_iter().filter(|at| at.0 == kernel).collect();
        let bend = |&(b, n, k): &(usize, usize, usize), by: i64| {
            bent(&p, |p| {
                let inst = &mut p.blocks[b].bundles[n][k];
                let at = imm(inst).expect("it makes an address");
                let Arg::Imm(v) = &mut inst.args[at] else { return };
                *v += by;
            })
        };
        for (by, what) in [(2, "an address of no word"), (8, "another word's address")] {
            all_refused(&case, &source, places.iter().map(|at| bend(at, by)).collect(), what);
        }
    }
}

/// So many words of each iteration, which are read twice, the second time from the last to the first; one half of them apart
/// from the other.
fn there_and_back(words: usize) -> String {
    let half = |first: usize, t: &str| {
        let names: Vec<String> = (first..words).step_by(2).map(|k| format!("$x{k}")).collect();
        let mixed =
            |x: &String| format!("(local.set {t} (i32.sub (i32.xor (local.get {t}) (local.get {x})) (i32.const 3)))");
        names.iter().chain(names.iter().rev()).map(mixed).collect::<String>()
    };
    let all = |text: &dyn Fn(usize) -> String| (0..words).map(text).collect::<String>();
    format!(
        "(func (export \"f\") (param $in i32) (param $n i32) {} (local $t i32) (local $u i32)
           (loop $next
             {} {} {}
             (i32.store (i32.const 64) (local.get $t))
             (i32.store (i32.const 68) (local.get $u))
             (local.set $in (i32.add (local.get $in) (i32.const {})))
             (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))",
        all(&|k| format!("(local $x{k} i32)")),
        all(&|k| format!("(local.set $x{k} (i32.load offset={} (local.get $in)))", 4 * k)),
        half(0, "$t"),
        half(1, "$u"),
        4 * words
    )
}

#[test]
fn words_of_the_frame_are_told_by_addresses_that_other_clusters_have_of_them() {
    let (case, source, p) = pipeline_of("c6201", &there_and_back(90));
    let framed = |i: &Inst| i.space == Space::Stack && !i.args.contains(&Arg::Reg(p.stack_pointer));
    let places = case.places(&p.blocks, &framed);
    assert!(places.len() > 20, "{}", places.len());
    // Its words are some behind the address: told by both.
    let imm = |i: &Inst| i.args.iter().position(|a| matches!(a, Arg::Imm(v) if *v >= 8));
    let far: Vec<_> = places.iter().filter(|x| imm(&p.blocks[x.0].bundles[x.1][x.2]).is_some()).collect();
    let bend = |&&(b, n, k): &&(usize, usize, usize), by: i64| {
        bent(&p, |p| {
            let inst = &mut p.blocks[b].bundles[n][k];
            let Some(at) = imm(inst) else { return };
            let Arg::Imm(v) = &mut inst.args[at] else { return };
            *v += by;
        })
    };
    for (by, what) in [(2, "no word"), (-4, "the word before")] {
        all_refused(&case, &source, far.iter().map(|at| bend(at, by)).collect(), what);
    }
    // What the address is made of: all that is reached by it is no word of the loop's then. One word farther might do as well,
    // where a value has come back into a register and left its word empty.
    let add = case.machine.abi.ops.add_imm;
    let made: Vec<usize> = (0..p.before.len()).filter(|k| p.before[*k].instr == add).collect();
    let moved = |k: &usize| {
        bent(&p, |p| {
            p.before[*k].args.iter_mut().for_each(|a| {
                if let Arg::Imm(v) = a {
                    *v += 4 * p.words.len() as i64;
                }
            })
        })
    };
    all_refused(&case, &source, made.iter().map(moved).collect(), "the address of other words");
}

#[test]
fn straight_code_is_run_too() {
    for name in ["c6201", "c64x", "epic", "itanium2", "rv32", "leon2"] {
        let case = case(name, STRAIGHT);
        let blocks: Vec<(Straight, Block)> = case
            .checked
            .iter()
            .filter_map(|c| if let Checked::Straight(a, b) = c { Some((a.clone(), b.clone())) } else { None })
            .collect();
        let (mut orders, mut lost, mut jumps) = (0, 0, 0);
        for (before, after) in &blocks {
            straight(&case.rules, before, after).expect("as it was made it passes");
            let refused = |after: &Block, what: &str| {
                straight(&case.rules, before, after).expect_err(&format!("{name}: {what}: {after:?}"));
            };
            let one = std::slice::from_ref(after);
            let stores = case.places(one, &|i| case.kind(i) == InstrKind::Store);
            let access = |i: &Inst| {
                before.body.iter().find(|b| b.args == i.args && case.kind(b) == InstrKind::Store).and_then(|b| b.access)
            };
            for &(_, n, k) in &stores {
                let mut out = after.clone();
                out.bundles[n].remove(k);
                refused(&out, "a store left out");
                lost += 1;
                for &(_, m, j) in &stores {
                    let both = (access(&after.bundles[n][k]), access(&after.bundles[m][j]));
                    if n >= m || !matches!(both, (Some(a), Some(b)) if a.ordered(&b)) {
                        continue;
                    }
                    let mut out = after.clone();
                    (out.bundles[n][k], out.bundles[m][j]) = (after.bundles[m][j].clone(), after.bundles[n][k].clone());
                    refused(&out, "stores that may touch the same bytes, changed");
                    orders += 1;
                }
            }
            let labels = |i: &Inst| i.args.iter().any(|a| matches!(a, Arg::Label(_)));
            for (_, n, k) in case.places(one, &labels) {
                let mut out = after.clone();
                out.bundles[n][k].args.iter_mut().for_each(|a| {
                    if let Arg::Label(l) = a {
                        *l += 1
                    }
                });
                refused(&out, "a jump elsewhere");
                jumps += 1;
                let mut out = after.clone();
                out.bundles[n].remove(k);
                refused(&out, "no jump");
                let delay = case.machine.instrs[usize::from(after.bundles[n][k].instr.0)].delay_slots;
                if delay > 0 {
                    let mut out = after.clone();
                    out.bundles.pop();
                    refused(&out, "a delay slot too few");
                }
            }
        }
        assert!(orders > 0 && lost > 0 && jumps > 0, "{name}: {orders} {lost} {jumps}");
        if !case.machine.issue.interlock {
            let mut slower = machine(name);
            slower.instrs.iter_mut().filter(|i| i.kind == InstrKind::Load).for_each(|i| i.latency += 1);
            let rules = Rules::new(Arc::new(slower));
            assert!(
                blocks.iter().any(|(before, after)| straight(&rules, before, after).is_err()),
                "{name}: loads land a cycle later"
            );
        }
    }
}
