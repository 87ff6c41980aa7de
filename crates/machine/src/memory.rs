//! Memory as a machine has it: caches, and banks of on-chip memory.

use crate::cache::Cache;
use std::ops::Range;

#[derive(Clone, Debug)]
pub struct MemorySystem {
    /// None: every fetch hits.
    pub icache: Option<Cache>,
    /// None: every access hits.
    pub dcache: Option<Cache>,
    /// Loads and stores may be unaligned; otherwise the code generator splits
    /// them and the simulator reports one as a broken promise.
    pub unaligned: bool,
    /// The addresses that there is memory at; None: as many as a program wants.
    pub ram: Option<(u32, u32)>,
    /// The first address of the memory that code and constants are in.
    pub flash_from: u32,
    /// Bytes of the memory that code and constants are in; None: as many as a program wants.
    pub flash_bytes: Option<u32>,
    /// Where constant tables are to be: in that memory or in RAM; None: in RAM where they fit.
    pub tables_in_flash: Option<bool>,
    /// None: accesses of one cycle never conflict.
    pub banks: Option<Banks>,
}

/// On-chip memory of several single-ported banks: two accesses of one cycle to
/// one bank cost a cycle.
#[derive(Clone, Debug)]
pub struct Banks {
    /// Independent blocks of memory, one after the other and again from the first.
    pub blocks: u32,
    pub block_bytes: u32,
    /// Banks of a block, interleaved.
    pub banks: u32,
    pub bank_bytes: u32,
}

impl MemorySystem {
    /// The addresses of constants in flash: of those of two bytes the ones behind RAM.
    pub fn flash(&self) -> Option<Range<u32>> {
        let end = self.flash_from.saturating_add(self.flash_bytes?);
        let (from, to) = (self.ram?.1.max(self.flash_from), end.min(1 << 16));
        (from < to).then_some(from..to)
    }
}

impl Banks {
    /// The banks, counted through all blocks, that an access touches.
    pub fn touched(&self, addr: u32, bytes: u32) -> impl Iterator<Item = u32> + '_ {
        let first = addr / self.bank_bytes;
        let last = addr.wrapping_add(bytes.saturating_sub(1)) / self.bank_bytes;
        (first..=last).map(|unit| {
            let block = unit / (self.block_bytes / self.bank_bytes) % self.blocks;
            block * self.banks + unit % self.banks
        })
    }

    /// The block an address is in.
    pub fn block(&self, addr: u32) -> u32 {
        addr / self.block_bytes % self.blocks
    }
}
