//! The engine for interlocked machines: a graph of timed superblocks.
//!
//! A node is a superblock entered in one hazard state (see [`crate::hazard`]).
//! Its exits lead to nodes, found once and then followed without a search, and
//! count how often they were used; cycles are exit counts times what the exit
//! costs. So the loop that runs a program executes xops, adds one to a counter
//! and follows a link: timing that is exact to the cycle costs nearly nothing.

use crate::cache::Cache;
use crate::code::CodeMap;
use crate::exec::{self, Exit, Hook, NoHook, State};
use crate::hazard::{BundleTiming, Cost, Hazards, Timer};
use crate::memory::Fault;
use crate::predictor::Predictor;
use crate::stats::Stats;
use crate::superblock::{Decoder, Superblock, Way};
use ciphermill_machine::InstrKind;
use ciphermill_program::{Program, Role};
use std::collections::HashMap;

const NONE: u32 = u32::MAX;

/// A return to here ends a call from outside; machines return to a few bytes
/// past the address they were called from, so a range means it.
pub const RETURN_TO: u64 = 0xD000_0000;
const RETURN_BYTES: u64 = 64;

/// Does a jump to `addr` end the call?
pub fn is_return(addr: u64) -> bool {
    addr.wrapping_sub(RETURN_TO) < RETURN_BYTES
}

/// Why the engine stopped, before places are put into words.
#[derive(Debug)]
pub enum Halt {
    /// A fault in the instruction at (bundle, slot).
    Fault(Fault, (u32, u16)),
    Fuel,
    Internal(String),
}

impl From<String> for Halt {
    fn from(s: String) -> Halt {
        Halt::Internal(s)
    }
}

struct Node {
    code: usize,
    superblock: u32,
    insts: [u32; 2],
    succ: [u32; 4],
    /// The last computed target and its node, guessed right and wrong.
    to_addr: [u64; 2],
    to_node: [u32; 2],
    /// By exit, 2 more where the predictor was wrong.
    counts: [u64; 4],
    first_line: u64,
    last_line: u64,
}

/// Timing of a node's exits, once known: cost and the next state.
struct NodeTiming {
    state: u32,
    exits: [Option<(Cost, u32)>; 4],
}

/// Everything the engine keeps between calls.
pub struct Engine {
    decoder: Decoder,
    superblocks: Vec<Superblock>,
    by_bundle: HashMap<u32, u32>,
    states: Vec<Hazards>,
    state_ids: HashMap<Hazards, u32>,
    nodes: Vec<Node>,
    timings: Vec<NodeTiming>,
    node_ids: HashMap<(u32, u32), u32>,
    pub icache: Option<Cache>,
    pub dcache: Option<Cache>,
    predictor: Option<Predictor>,
    big: bool,
}

impl Engine {
    pub fn new(program: &Program, map: &CodeMap, caches: bool) -> Result<Engine, String> {
        let cache = |model: &Option<ciphermill_machine::Cache>| match model {
            Some(m) if caches => Cache::new(m).map(Some),
            _ => Ok(None),
        };
        let memory = &program.machine.memory;
        Ok(Engine {
            decoder: Decoder::new(map),
            superblocks: Vec::new(),
            by_bundle: HashMap::new(),
            states: vec![Hazards::default()],
            state_ids: HashMap::from([(Hazards::default(), 0)]),
            nodes: Vec::new(),
            timings: Vec::new(),
            node_ids: HashMap::new(),
            icache: cache(&memory.icache)?,
            dcache: cache(&memory.dcache)?,
            predictor: Predictor::of(&program.machine),
            big: program.machine.endian == ciphermill_machine::Endian::Big,
        })
    }

    /// Run from the start of bundle `entry` until a return to the outside,
    /// with at most about `fuel` instructions. Returns instructions executed.
    pub fn call(
        &mut self,
        program: &Program,
        map: &CodeMap,
        state: &mut State,
        entry: u32,
        fuel: u64,
    ) -> Result<u64, Halt> {
        // The cache moves out of `self` while the loop holds it as its hook.
        let mut dcache = self.dcache.take();
        let front = self.icache.is_some() || self.predictor.is_some();
        if let Some(p) = &mut self.predictor {
            p.called(RETURN_TO);
        }
        let run = match (&mut dcache, self.big, front) {
            (Some(c), false, _) => self.run::<false, true, _>(program, map, state, entry, fuel, c),
            (Some(c), true, _) => self.run::<true, true, _>(program, map, state, entry, fuel, c),
            (None, false, false) => self.run::<false, false, _>(program, map, state, entry, fuel, &mut NoHook),
            (None, true, false) => self.run::<true, false, _>(program, map, state, entry, fuel, &mut NoHook),
            (None, false, true) => self.run::<false, true, _>(program, map, state, entry, fuel, &mut NoHook),
            (None, true, true) => self.run::<true, true, _>(program, map, state, entry, fuel, &mut NoHook),
        };
        self.dcache = dcache;
        run
    }

    fn run<const BE: bool, const FRONT: bool, H: Hook>(
        &mut self,
        program: &Program,
        map: &CodeMap,
        state: &mut State,
        entry: u32,
        fuel: u64,
        hook: &mut H,
    ) -> Result<u64, Halt> {
        let mut at = self.node(program, map, state, entry, 0)?;
        let mut left = fuel;
        loop {
            let node = &mut self.nodes[at as usize];
            if FRONT && let Some(icache) = &mut self.icache {
                for line in node.first_line..=node.last_line {
                    icache.read_line(line);
                }
            }
            let next = match exec::run::<BE, H>(&self.decoder.code, node.code, state, hook) {
                Exit::By(exit) => {
                    let mut exit = exit & 1;
                    left = left.wrapping_sub(u64::from(node.insts[exit]));
                    if FRONT
                        && let Some(p) = &mut self.predictor
                        && let Some(divide) = &self.superblocks[node.superblock as usize].divide
                        && !p.right(divide, exit == 0, divide.target)
                    {
                        exit += 2;
                    }
                    node.counts[exit] += 1;
                    match node.succ[exit] {
                        NONE => self.follow(program, map, state, at, exit)?,
                        next => next,
                    }
                }
                Exit::To(addr) => {
                    let mut wrong = 0;
                    if FRONT
                        && let Some(p) = &mut self.predictor
                        && let Some(divide) = &self.superblocks[node.superblock as usize].divide
                        && !p.right(divide, true, if is_return(addr) { RETURN_TO } else { addr })
                    {
                        wrong = 1;
                    }
                    node.counts[2 * wrong] += 1;
                    left = left.wrapping_sub(u64::from(node.insts[0]));
                    if addr == node.to_addr[wrong] {
                        node.to_node[wrong]
                    } else if is_return(addr) {
                        self.exit_timing(program, at, 2 * wrong)?;
                        return Ok(fuel.wrapping_sub(left));
                    } else {
                        self.follow_to(program, map, state, at, addr, wrong)?
                    }
                }
                Exit::Fault(fault, xop) => return Err(Halt::Fault(fault, self.decoder.places[xop])),
            };
            // Below zero it has wrapped to a number larger than it began with.
            if left > fuel {
                return Err(Halt::Fuel);
            }
            at = next;
        }
    }

    #[cold]
    fn follow(
        &mut self,
        program: &Program,
        map: &CodeMap,
        state: &mut State,
        at: u32,
        exit: usize,
    ) -> Result<u32, Halt> {
        let way = self.superblocks[self.nodes[at as usize].superblock as usize].ways[exit & 1];
        let Way::To(bundle) = way else {
            return Err(Halt::Internal(format!("a stretch of code was left by an exit it does not have: {way:?}")));
        };
        let next_state = self.exit_timing(program, at, exit)?;
        let next = self.node(program, map, state, bundle, next_state)?;
        self.nodes[at as usize].succ[exit] = next;
        Ok(next)
    }

    #[inline(never)]
    fn follow_to(
        &mut self,
        program: &Program,
        map: &CodeMap,
        state: &mut State,
        at: u32,
        addr: u64,
        wrong: usize,
    ) -> Result<u32, Halt> {
        let bundle = map.lookup(addr)?;
        let next_state = self.exit_timing(program, at, 2 * wrong)?;
        let next = self.node(program, map, state, bundle, next_state)?;
        let node = &mut self.nodes[at as usize];
        (node.to_addr[wrong], node.to_node[wrong]) = (addr, next);
        Ok(next)
    }

    /// Time an exit of a node if that has not been done; the state it leaves.
    fn exit_timing(&mut self, program: &Program, at: u32, exit: usize) -> Result<u32, String> {
        let timing = &self.timings[at as usize];
        if let Some((_, next)) = timing.exits[exit] {
            return Ok(next);
        }
        let sb = &self.superblocks[self.nodes[at as usize].superblock as usize];
        let run: Vec<&BundleTiming> =
            (sb.first..sb.first + sb.count).map(|n| self.decoder.timing(n)).collect::<Result<_, _>>()?;
        let entry = &self.states[timing.state as usize];
        let (cost, left) = Timer::new(&program.machine).time(&run, entry, sb.ending, exit);
        let fresh = self.states.len() as u32;
        let next = *self.state_ids.entry(left.clone()).or_insert(fresh);
        if next == fresh {
            self.states.push(left);
        }
        self.timings[at as usize].exits[exit] = Some((cost, next));
        Ok(next)
    }

    /// The node of a bundle entered in a state, made if new.
    fn node(
        &mut self,
        program: &Program,
        map: &CodeMap,
        state: &mut State,
        bundle: u32,
        hazards: u32,
    ) -> Result<u32, String> {
        let superblock = match self.by_bundle.get(&bundle) {
            Some(&s) => s,
            None => {
                let sb = self.decoder.decode(program, map, &mut state.pool, bundle)?;
                self.superblocks.push(sb);
                self.by_bundle.insert(bundle, self.superblocks.len() as u32 - 1);
                self.superblocks.len() as u32 - 1
            }
        };
        if let Some(&n) = self.node_ids.get(&(superblock, hazards)) {
            return Ok(n);
        }
        let sb = &self.superblocks[superblock as usize];
        let (first, last) = (map.bundles[sb.first as usize], map.bundles[(sb.first + sb.count - 1) as usize]);
        let line = |addr: u32| self.icache.as_ref().map_or(0, |c| c.line_of(u64::from(addr)));
        self.nodes.push(Node {
            code: sb.code,
            superblock,
            insts: sb.insts,
            succ: [NONE; 4],
            to_addr: [u64::MAX; 2],
            to_node: [NONE; 2],
            counts: [0; 4],
            first_line: line(first.addr),
            last_line: line(last.addr + last.bytes.max(1) - 1),
        });
        self.timings.push(NodeTiming { state: hazards, exits: [None; 4] });
        let n = self.nodes.len() as u32 - 1;
        self.node_ids.insert((superblock, hazards), n);
        Ok(n)
    }

    /// Zero all counts; caches and the predictor keep what they know.
    pub fn reset(&mut self) {
        for node in &mut self.nodes {
            node.counts = [0; 4];
        }
        for cache in self.icache.iter_mut().chain(&mut self.dcache) {
            cache.stats = Default::default();
        }
    }

    /// How often each bundle was issued and executed, by number.
    pub fn bundle_counts(&self, map: &CodeMap) -> Vec<u64> {
        let mut counts = vec![0; map.bundles.len()];
        for node in &self.nodes {
            let sb = &self.superblocks[node.superblock as usize];
            for (exit, &times) in node.counts.iter().enumerate() {
                let lost = if exit & 1 == 1 { sb.ending.annulled as u32 } else { 0 };
                for n in sb.first..sb.first + sb.count - lost {
                    counts[n as usize] += times;
                }
            }
        }
        counts
    }

    /// All counts as sums over the nodes.
    pub fn stats(&self, program: &Program, map: &CodeMap) -> Stats {
        let mut s = Stats::default();
        for (node, timing) in self.nodes.iter().zip(&self.timings) {
            let sb = &self.superblocks[node.superblock as usize];
            for exit in 0..4 {
                let (times, Some((cost, _))) = (node.counts[exit], timing.exits[exit]) else { continue };
                s.issue_cycles += times * cost.issue;
                s.stalls.load_wait += times * cost.load_wait;
                s.lookup_cycles += (times * cost.lookup_wait) as f64;
                s.stalls.operand_wait += times * cost.operand_wait;
                s.stalls.unit += times * cost.unit;
                s.stalls.branch += times * cost.branch;
                match (sb.conditional, exit & 1) {
                    (true, 0) => s.branches_taken += times,
                    (true, _) => s.branches_untaken += times,
                    (false, _) => {}
                }
            }
        }
        add_bundles(&mut s, program, map, &self.bundle_counts(map));
        s.icache = self.icache.as_ref().map(|c| c.stats);
        s.dcache = self.dcache.as_ref().map(|c| c.stats);
        s
    }
}

/// Add what follows from how often each bundle was executed.
pub fn add_bundles(s: &mut Stats, program: &Program, map: &CodeMap, counts: &[u64]) {
    s.per_instr = vec![0; program.machine.instrs.len()];
    s.per_func = vec![0; program.funcs.len()];
    for (n, &times) in counts.iter().enumerate() {
        if times == 0 {
            continue;
        }
        let bundle = map.bundle(program, n as u32);
        s.bundles += times;
        s.instructions += times * bundle.insts.len() as u64;
        s.per_func[map.bundles[n].func as usize] += times * bundle.insts.len() as u64;
        let lookups = bundle.insts.iter().filter(|i| i.role == Role::Lookup).count();
        s.lookup_cycles += times as f64 * lookups as f64 / bundle.insts.len().max(1) as f64;
        for inst in &bundle.insts {
            s.per_instr[usize::from(inst.instr.0)] += times;
            match inst.role {
                Role::Other => s.roles.other += times,
                Role::Lookup => s.roles.lookup += times,
                Role::Overhead => s.roles.overhead += times,
            }
            match program.machine.instrs[usize::from(inst.instr.0)].kind {
                InstrKind::Load => s.loads += times,
                InstrKind::Store => s.stores += times,
                InstrKind::Jump | InstrKind::Call | InstrKind::CallIndirect | InstrKind::JumpIndirect => {
                    s.jumps += times
                }
                _ => {}
            }
        }
    }
}
