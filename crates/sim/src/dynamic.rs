//! The engine for machines that schedule at run time: functional execution
//! feeds the core of crate `ooo`.
//!
//! Superblocks are decoded and executed as on other machines. Each time one
//! has been left, the core is told which instructions ran, what they accessed
//! and where control went, and does the rest.

use crate::code::CodeMap;
use crate::engine::{Halt, add_bundles, is_return};
use crate::exec::{self, Exit, Hook, State};
use crate::stats::Stats;
use crate::superblock::{Decoder, Superblock, Way};
use ciphermill_machine::Endian;
use ciphermill_machine::core::Core;
use ciphermill_ooo::{Access, Code, NONE, Pipeline, Place};
use ciphermill_program::{Operand, Program};

/// Records the accesses of a superblock.
#[derive(Default)]
struct Accesses {
    list: Vec<Access>,
}

impl Hook for Accesses {
    #[inline(always)]
    fn load(&mut self, addr: u64, bytes: u64) {
        self.list.push(Access { addr: addr as u32, bytes: bytes as u32 });
    }
    #[inline(always)]
    fn store(&mut self, addr: u64, bytes: u64) {
        self.list.push(Access { addr: addr as u32, bytes: bytes as u32 });
    }
}

/// Everything the engine keeps between calls.
pub struct Dynamic {
    decoder: Decoder,
    superblocks: Vec<Superblock>,
    /// Number of the superblock that starts at a bundle.
    by_bundle: Vec<u32>,
    /// How often each was left by each exit.
    left: Vec<[u64; 2]>,
    pub pipeline: Pipeline,
    accesses: Accesses,
    big: bool,
}

impl Dynamic {
    pub fn new(program: &Program, map: &CodeMap, core: &Core) -> Result<Dynamic, String> {
        let mut places = Vec::with_capacity(map.bundles.len());
        for (n, at) in map.bundles.iter().enumerate() {
            let insts = &map.bundle(program, n as u32).insts;
            if insts.len() > 1 {
                return Err(
                    "a core that schedules at run time has one instruction in a bundle: `issue.width` must be 1".into(),
                );
            }
            places.push(Place { inst: insts.first(), func: at.func, block: at.block, addr: at.addr, bytes: at.bytes });
        }
        let lookup = |func: u32, operand: &Operand| {
            let blocks = &map.layout.blocks;
            let addr = match operand {
                Operand::Block(b) => blocks.get(func as usize)?.get(*b as usize)?,
                Operand::Func(f) => blocks.get(*f as usize)?.first()?,
                _ => return None,
            };
            map.lookup(u64::from(*addr)).ok()
        };
        let code = Code::new(&program.machine, core, &places, &lookup)?;
        Ok(Dynamic {
            decoder: Decoder::new(map),
            superblocks: Vec::new(),
            by_bundle: vec![NONE; map.bundles.len()],
            left: Vec::new(),
            pipeline: Pipeline::new(&program.machine, core, code),
            accesses: Accesses::default(),
            big: program.machine.endian == Endian::Big,
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
        self.pipeline.begin();
        let run = match self.big {
            true => self.run::<true>(program, map, state, entry, fuel),
            false => self.run::<false>(program, map, state, entry, fuel),
        };
        self.pipeline.end();
        run
    }

    fn run<const BE: bool>(
        &mut self,
        program: &Program,
        map: &CodeMap,
        state: &mut State,
        entry: u32,
        fuel: u64,
    ) -> Result<u64, Halt> {
        let mut bundle = entry;
        let mut executed = 0;
        loop {
            let at = self.superblock(program, map, state, bundle)?;
            let sb = &self.superblocks[at];
            self.accesses.list.clear();
            let (exit, next) = match exec::run::<BE, _>(&self.decoder.code, sb.code, state, &mut self.accesses) {
                Exit::By(exit) => {
                    let exit = exit & 1;
                    match sb.ways[exit] {
                        Way::To(next) => (exit, Some(next)),
                        way => {
                            return Err(Halt::Internal(format!(
                                "a stretch of code was left by an exit it does not have: {way:?}"
                            )));
                        }
                    }
                }
                Exit::To(addr) if is_return(addr) => (0, None),
                Exit::To(addr) => (0, Some(map.lookup(addr)?)),
                Exit::Fault(fault, xop) => return Err(Halt::Fault(fault, self.decoder.places[xop])),
            };
            self.left[at][exit] += 1;
            executed += u64::from(sb.insts[exit]);
            self.pipeline.run(sb.first, sb.count, exit == 0, next.unwrap_or(NONE), &self.accesses.list)?;
            match next {
                Some(next) => bundle = next,
                None => return Ok(executed),
            }
            if executed > fuel {
                return Err(Halt::Fuel);
            }
        }
    }

    /// The superblock that starts at a bundle.
    fn superblock(
        &mut self,
        program: &Program,
        map: &CodeMap,
        state: &mut State,
        bundle: u32,
    ) -> Result<usize, String> {
        let known = self.by_bundle[bundle as usize];
        if known != NONE {
            return Ok(known as usize);
        }
        let sb = self.decoder.decode(program, map, &mut state.pool, bundle)?;
        self.superblocks.push(sb);
        self.left.push([0; 2]);
        let at = self.superblocks.len() - 1;
        self.by_bundle[bundle as usize] = at as u32;
        Ok(at)
    }

    /// Zero all counts; caches and predictors keep what they know.
    pub fn reset(&mut self) {
        self.left.fill([0; 2]);
        self.pipeline.reset();
    }

    /// How often each bundle was executed, by number.
    pub fn bundle_counts(&self, map: &CodeMap) -> Vec<u64> {
        let mut counts = vec![0; map.bundles.len()];
        for (sb, left) in self.superblocks.iter().zip(&self.left) {
            for n in sb.first..sb.first + sb.count {
                counts[n as usize] += left[0] + left[1];
            }
        }
        counts
    }

    /// Everything counted so far.
    pub fn stats(&self, program: &Program, map: &CodeMap) -> Stats {
        let mut s = Stats::default();
        for (sb, left) in self.superblocks.iter().zip(&self.left) {
            if sb.conditional {
                s.branches_taken += left[0];
                s.branches_untaken += left[1];
            }
        }
        add_bundles(&mut s, program, map, &self.bundle_counts(map));
        let counts = self.pipeline.counts();
        s.issue_cycles = counts.get("cycles");
        s.core = Some(counts);
        s
    }
}
