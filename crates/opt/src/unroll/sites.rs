//! Where the loops of a module are, for a caller that wants to count trips.

use ciphermill_ir::{Block, Cfg, Dominators, FuncId, Loops, Module};

/// A loop of a module as it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopSite {
    pub func: FuncId,
    /// The block whose executions are the loop's iterations.
    pub header: Block,
    /// Offset in the WebAssembly module of the loop's first instruction.
    pub first: u32,
    /// Offset of its last one.
    pub last: u32,
}

/// The loops of a module just loaded, in the order of functions, outer before
/// inner. A loop none of whose instructions comes from the module is left out.
pub fn loop_sites(module: &Module) -> Vec<LoopSite> {
    let mut sites = Vec::new();
    for (id, func) in &module.funcs {
        let cfg = Cfg::new(func);
        let doms = Dominators::new(func, &cfg);
        for data in Loops::new(func, &cfg, &doms).loops.values() {
            let insts = data.blocks.iter().flat_map(|&b| &func.blocks[b].insts);
            let locs = insts.map(|&i| func.insts[i].loc).filter(|&loc| loc != 0);
            let (first, last) = locs.fold((u32::MAX, 0), |(low, high), loc| (low.min(loc), high.max(loc)));
            if first <= last {
                sites.push(LoopSite { func: id, header: data.header, first, last });
            }
        }
    }
    sites
}
