//! The whole program, as the code generator hands it over.

use crate::code::{Func, Operand};
use crate::loops::{PipelinedLoop, PlainLoop};
use crate::{exact, kept_schedules::KeptSchedule};
use ciphermill_ir::FuncRef;
use ciphermill_machine::{InstrKind, Machine, Reg};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Initial bytes of a range of linear memory.
#[derive(Clone, Debug)]
pub struct Segment {
    pub addr: u32,
    pub bytes: Vec<u8>,
}

#[derive(Clone)]
pub struct Program {
    pub machine: Arc<Machine>,
    pub funcs: Vec<Func>,
    /// Exported name to function index.
    pub exports: Vec<(String, u32)>,
    /// Runs before anything else.
    pub start: Option<u32>,
    pub min_pages: u32,
    pub max_pages: u32,
    pub data: Vec<Segment>,
    /// Ranges of linear memory that the module promised never to write.
    pub readonly: Vec<Range<u32>>,
    /// The addresses of linear memory that are those of flash, where loads of their own read what is promised so.
    pub flash: Option<Range<u32>>,
    /// Initial bytes of the system area at [`ciphermill_ir::SYSTEM_BASE`];
    /// `func_refs` are filled in by [`crate::layout::Layout`].
    pub system: Vec<u8>,
    pub system_func_refs: Vec<FuncRef>,
    /// Offset of a word of the system area that holds the lower half of the area's own address.
    pub system_own_address: Option<u32>,
    /// Where arguments and results beyond the registers are passed: word `i`
    /// of the overflow area, an offset into the system area.
    pub arg_overflow: u32,
    /// Registers that hold globals for the whole program: `(register, initial
    /// value)`.
    pub global_regs: Vec<(Reg, u64)>,
    /// Software-pipelined loops, with the function each stands in.
    pub loops: Vec<PipelinedLoop>,
    /// All other loops, and why they were not pipelined.
    pub plain_loops: Vec<PlainLoop>,
    /// Loops whose search for a schedule spent its budget.
    pub searches_cut: u32,
    /// The same loops as problems for an exact scheduler, where that was asked.
    pub problems: Vec<exact::LoopProblem>,
    /// Their schedules, for keeping, where a longer search than usual was asked.
    pub kept_schedules: Vec<KeptSchedule>,
}

impl Program {
    /// The tables in flash: the address of the first, and what stands from there on.
    pub fn flash_tables(&self) -> Option<(u32, Vec<u8>)> {
        let flash = self.flash.as_ref()?;
        let tables = || self.data.iter().filter(|d| flash.contains(&d.addr));
        let first = tables().map(|d| d.addr).min()?;
        let mut image = Vec::new();
        for d in tables() {
            let at = (d.addr - first) as usize;
            image.resize(image.len().max(at + d.bytes.len()), 0);
            image[at..at + d.bytes.len()].copy_from_slice(&d.bytes);
        }
        Some((first, image))
    }

    pub fn export(&self, name: &str) -> Option<u32> {
        self.exports.iter().find(|(n, _)| n == name).map(|&(_, f)| f)
    }

    /// The functions that one may call, itself among them; all where it calls by pointer.
    pub fn reached(&self, from: u32) -> BTreeSet<u32> {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(func) = next.pop() {
            if !reached.insert(func) {
                continue;
            }
            let blocks = self.funcs.get(func as usize).map_or(&[][..], |f| &f.blocks);
            for inst in blocks.iter().flat_map(|b| &b.bundles).flat_map(|b| &b.insts) {
                let called = inst.operands.iter().find_map(|o| if let Operand::Func(f) = o { Some(*f) } else { None });
                if self.machine.instrs[usize::from(inst.instr.0)].kind == InstrKind::CallIndirect {
                    return (0..self.funcs.len() as u32).collect();
                }
                next.extend(called);
            }
        }
        reached
    }
}
