//! The program as one sequence of bundles, and code addresses back to it.
//!
//! All functions' bundles are numbered through, in layout order, so that
//! "fall through" is always the next number. A jump to a computed address is
//! looked up here; an address where no bundle starts is a fault of the
//! compiler's.

use ciphermill_machine::gf2::BitMatrix;
use ciphermill_program::layout::{Layout, begins};
use ciphermill_program::{Bundle, Program};
use std::collections::HashMap;
use std::sync::Arc;

/// Where a bundle stands.
#[derive(Clone, Copy, Debug)]
pub struct At {
    pub func: u32,
    pub block: u32,
    pub index: u32,
    pub addr: u32,
    /// Encoded size of the whole bundle.
    pub bytes: u32,
}

/// All bundles of a program, numbered.
pub struct CodeMap {
    pub bundles: Vec<At>,
    pub layout: Layout,
    /// The matrices over GF(2) in the machine's semantics, by number.
    pub matrices: Vec<Arc<BitMatrix>>,
    by_addr: HashMap<u32, u32>,
}

impl CodeMap {
    pub fn new(program: &Program) -> Result<CodeMap, String> {
        for (i, f) in program.funcs.iter().enumerate() {
            if f.blocks.is_empty() {
                return Err(format!("function {i} ({}) has no blocks", f.name));
            }
            let insts = f.blocks.iter().flat_map(|b| &b.bundles).flat_map(|b| &b.insts);
            if let Some(bad) = insts.map(|i| i.instr.0).find(|&i| usize::from(i) >= program.machine.instrs.len()) {
                return Err(format!("function {i} ({}) has instruction {bad}, which the machine has not", f.name));
            }
        }
        let layout = Layout::new(program);
        let mut bundles = Vec::new();
        let mut by_addr = HashMap::new();
        for (f, func) in program.funcs.iter().enumerate() {
            for (b, block) in func.blocks.iter().enumerate() {
                let mut addr = layout.blocks[f][b];
                for (i, bundle) in block.bundles.iter().enumerate() {
                    let bytes = layout.sizes[f][b][i];
                    addr = begins(addr, bytes, program.machine.issue.packet_bytes);
                    // An empty bundle shares its address with the next one; a
                    // block's start is meant before anything else.
                    if i == 0 || !bundle.insts.is_empty() {
                        by_addr.entry(addr).or_insert(bundles.len() as u32);
                    }
                    bundles.push(At { func: f as u32, block: b as u32, index: i as u32, addr, bytes });
                    addr += bytes;
                }
            }
        }
        // An empty block's start is the next bundle, whatever that is.
        let mut next = bundles.len() as u32;
        for (f, func) in program.funcs.iter().enumerate().rev() {
            for (b, block) in func.blocks.iter().enumerate().rev() {
                next -= block.bundles.len() as u32;
                by_addr.entry(layout.blocks[f][b]).or_insert(next);
            }
        }
        Ok(CodeMap { bundles, layout, matrices: program.machine.linear_maps(), by_addr })
    }

    /// Number of the bundle that starts at an address.
    pub fn lookup(&self, addr: u64) -> Result<u32, String> {
        let found = u32::try_from(addr).ok().and_then(|a| self.by_addr.get(&a).copied());
        found
            .filter(|&n| (n as usize) < self.bundles.len())
            .ok_or_else(|| format!("a jump to {addr:#x}, where no instruction starts"))
    }

    /// The bundle of a number.
    pub fn bundle<'p>(&self, program: &'p Program, n: u32) -> &'p Bundle {
        let at = self.bundles[n as usize];
        &program.funcs[at.func as usize].blocks[at.block as usize].bundles[at.index as usize]
    }

    /// Place of a bundle in words, for error messages.
    pub fn describe(&self, program: &Program, n: u32) -> String {
        match self.bundles.get(n as usize) {
            Some(at) => format!(
                "function {} ({}), block {}, bundle {}",
                at.func, program.funcs[at.func as usize].name, at.block, at.index
            ),
            None => format!("bundle {n}"),
        }
    }
}
