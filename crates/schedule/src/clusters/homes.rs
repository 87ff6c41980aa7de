//! Which register file each value is in.

use ciphermill_machine::{FileId, Machine, Reg};
use ciphermill_vcode::{Registers, VFunc, VInst, VKind, VOp, VReg};

/// The allocator tells so many files apart.
pub const MOST_FILES: usize = 3;

/// The files, and what is decided of each value.
pub struct Homes<'r> {
    pub registers: &'r Registers,
    files: Vec<FileId>,
    /// Registers of each file that the allocator may use.
    pub sizes: Vec<usize>,
    of: Vec<Option<u8>>,
    /// How many of those that a value is handed to, or comes from, are in each file.
    votes: Vec<Vec<i32>>,
    /// Values that are handed on from one to the other at an edge.
    links: Vec<Vec<VReg>>,
}

impl<'r> Homes<'r> {
    /// Only what stands in certain registers is decided.
    pub fn new(func: &VFunc, machine: &Machine, registers: &'r Registers, files: Vec<FileId>) -> Homes<'r> {
        let n = func.vregs as usize;
        let file = |r: Reg| machine.regs[usize::from(r.0)].file;
        let size = |f: &FileId| registers.allocatable.iter().filter(|r| file(**r) == *f).count();
        let sizes = files.iter().map(size).collect();
        let votes = vec![vec![0; files.len()]; n];
        let mut homes = Homes { registers, files, sizes, of: vec![None; n], votes, links: vec![Vec::new(); n] };
        for block in &func.blocks {
            for (to, args) in &block.succs {
                for (&param, &arg) in func.blocks[*to as usize].params.iter().zip(args) {
                    homes.links[param.0 as usize].push(arg);
                    homes.links[arg.0 as usize].push(param);
                }
            }
        }
        for inst in func.blocks.iter().flat_map(|b| &b.insts) {
            for &(v, r) in &inst.fixed_uses {
                if let Some(f) = homes.number(file(r)) {
                    homes.votes[v.0 as usize][usize::from(f)] += 1;
                }
            }
            for &(v, r) in &inst.fixed_defs {
                if let Some(f) = homes.number(file(r)) {
                    homes.decide(v, f);
                }
            }
        }
        homes
    }

    pub fn count(&self) -> usize {
        self.files.len()
    }

    /// A file's number, if it has registers for values.
    pub fn number(&self, file: FileId) -> Option<u8> {
        self.files.iter().position(|f| *f == file).map(|f| f as u8)
    }

    pub fn known(&self, v: VReg) -> Option<u8> {
        self.of[v.0 as usize]
    }

    /// Where it is; the first file, if nothing has asked for it.
    pub fn of(&self, v: VReg) -> u8 {
        self.known(v).unwrap_or(0)
    }

    /// How many want a value in one file rather than in another one.
    pub fn vote(&self, v: VReg, file: u8) -> i32 {
        let votes = &self.votes[v.0 as usize];
        2 * votes[usize::from(file)] - votes.iter().sum::<i32>()
    }

    pub fn decide(&mut self, v: VReg, file: u8) {
        if self.of[v.0 as usize].replace(file).is_none() {
            for k in 0..self.links[v.0 as usize].len() {
                let other = self.links[v.0 as usize][k];
                self.votes[other.0 as usize][usize::from(file)] += 1;
            }
        }
    }

    /// A new value of the function, in a file.
    pub fn copy(&mut self, func: &mut VFunc, file: u8) -> VReg {
        let v = func.new_vreg();
        self.of.push(Some(file));
        self.votes.push(vec![0; self.files.len()]);
        self.links.push(Vec::new());
        v
    }

    /// The file of every value.
    pub fn chosen(&self) -> Vec<u8> {
        self.of.iter().map(|f| f.unwrap_or(0)).collect()
    }
}

/// The instruction that copies a value.
pub fn mov(registers: &Registers, from: VReg, to: VReg) -> VInst {
    let mut inst = VInst::new(VKind::Normal, registers.mov.0, &[], 0);
    inst.ops = registers.mov.1.iter().map(|def| if *def { VOp::Def(to) } else { VOp::Use(from) }).collect();
    inst
}
