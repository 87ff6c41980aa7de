//! Code with physical registers, on its way to the program.

use crate::code::VKind;
use crate::memory::MemRef;
use ciphermill_program::{Block, Inst};
use std::collections::HashMap;

/// An instruction with physical registers, and what the scheduler needs.
#[derive(Clone, Debug)]
pub struct PInst {
    pub inst: Inst,
    pub mem: Option<MemRef>,
    pub kind: VKind,
}

/// Blocks as they are laid out.
pub struct Laid {
    pub blocks: Vec<Block>,
    /// Number of a block in labels, and where it has come to stand.
    pub place: HashMap<u32, u32>,
    /// Next number for a block that the allocator did not know.
    fresh: u32,
    /// Blocks that nothing falls into, and their numbers: they come last.
    pub aside: Vec<(u32, Block)>,
    /// Where the block that a pipelined loop's iterations run in has come to stand, by its number.
    pub kernels: HashMap<usize, u32>,
}

impl Laid {
    /// Nothing laid out yet of a function whose blocks the allocator numbered up to `fresh`.
    pub fn new(fresh: u32) -> Laid {
        Laid { blocks: Vec::new(), place: HashMap::new(), fresh, aside: Vec::new(), kernels: HashMap::new() }
    }

    /// The next block is the one that labels call `b`.
    pub fn label(&mut self, b: u32) {
        self.place.insert(b, self.blocks.len() as u32);
    }

    /// Labels with the numbers of the blocks that they are of.
    pub fn labels(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.place.iter().map(|(&label, &block)| (label, block))
    }

    /// A number for labels, of a block still to come.
    pub fn fresh(&mut self) -> u32 {
        self.fresh += 1;
        self.fresh - 1
    }
}
