//! Literal pools and jumps that do not reach, once a function is laid out.
//!
//! Pools first: literals wait until nothing falls through at a block's end, or, where the oldest would
//! get out of reach, until a jump is put over them. Sizes are counted as if every jump were long, so
//! what is done to jumps afterwards cannot separate a load from its literal. Then branches whose target
//! is too far are reversed over a jump, and jumps become far jumps, until everything reaches (branch
//! displacement: Szymanski, *Assembling code for machines with span-dependent instructions*, CACM 21,
//! 1978).

use ciphermill_machine::{InstrId, InstrKind, Machine};
use ciphermill_program::layout::LITERAL_BYTES;
use ciphermill_program::{Block, Bundle, Inst, Operand};
use ciphermill_vcode::CompileError;
use smallvec::smallvec;
use std::collections::HashMap;

/// Literals that have waited for this part of their reach are put at the next place where nothing falls
/// through: each pool that a jump leads over costs that jump.
const WAITED: (i64, i64) = (1, 2);

/// A function's blocks while they are numbered as the code refers to them; new ones get new numbers.
pub struct Reaching<'a> {
    pub machine: &'a Machine,
    /// An unconditional jump, to be aimed.
    pub jump: Inst,
    /// By block: its branch reversed.
    pub inverses: HashMap<u32, Inst>,
    blocks: HashMap<u32, Block>,
    order: Vec<u32>,
    fresh: u32,
    far: bool,
}

/// Blocks in which everything reaches.
pub struct Reached {
    pub blocks: Vec<Block>,
    /// Where each block has come to stand.
    pub place: HashMap<u32, u32>,
    /// There is a far jump among them.
    pub far: bool,
}

/// Has the machine instructions that do not reach everywhere?
pub fn limited(machine: &Machine) -> bool {
    machine.instrs.iter().any(|i| i.reach.is_some() || i.literal.is_some())
}

impl<'a> Reaching<'a> {
    pub fn new(machine: &'a Machine, jump: Inst, blocks: Vec<Block>, inverses: HashMap<u32, Inst>) -> Reaching<'a> {
        let fresh = blocks.len() as u32;
        let blocks = (0..).zip(blocks).collect();
        Reaching { machine, jump, inverses, blocks, order: (0..fresh).collect(), fresh, far: false }
    }

    /// Put literals among the code and mend what does not reach.
    ///
    /// # Errors
    /// [`CompileError::Unsupported`] where the machine has no far jump or no reversed branch and needs one.
    pub fn settle(mut self) -> Result<Reached, CompileError> {
        self.pools()?;
        while self.widen()? {}
        let place: HashMap<u32, u32> = self.order.iter().zip(0..).map(|(&b, at)| (b, at)).collect();
        let mut blocks: Vec<Block> = self.order.iter().filter_map(|b| self.blocks.remove(b)).collect();
        for inst in blocks.iter_mut().flat_map(|b| &mut b.bundles).flat_map(|b| &mut b.insts) {
            for operand in &mut inst.operands {
                if let Operand::Block(b) = operand {
                    *b = place[b];
                }
            }
        }
        Ok(Reached { blocks, place, far: self.far })
    }

    fn add(&mut self, behind: usize, block: Block) -> u32 {
        let number = self.fresh;
        self.fresh += 1;
        self.blocks.insert(number, block);
        self.order.insert(behind + 1, number);
        number
    }

    fn kind(&self, inst: &Inst) -> InstrKind {
        self.machine.instrs[usize::from(inst.instr.0)].kind
    }

    fn jump_to(&self, block: u32) -> Bundle {
        let mut inst = self.jump.clone();
        for o in &mut inst.operands {
            *o = Operand::Block(block);
        }
        Bundle { insts: smallvec![inst] }
    }

    /// Bytes of a bundle if its jump is as long as it can become.
    fn longest(&self, bundle: &Bundle) -> i64 {
        let far = self.machine.abi.ops.far_jump.unwrap_or(self.machine.abi.ops.jump);
        let far = i64::from(self.machine.instrs[usize::from(far.0)].bytes);
        let one = |i: &Inst| match self.kind(i) {
            InstrKind::Branch => i64::from(i.bytes(self.machine)) + far,
            InstrKind::Jump => i64::from(i.bytes(self.machine)).max(far),
            _ => i64::from(i.bytes(self.machine)),
        };
        bundle.insts.iter().map(one).sum()
    }

    fn falls_through(&self, block: &Block) -> bool {
        use InstrKind::{Jump, JumpIndirect, Trap};
        let last = block.bundles.iter().rev().flat_map(|b| &b.insts).map(|i| self.kind(i));
        !last.into_iter().take(1).any(|k| matches!(k, Jump | JumpIndirect | Trap))
    }

    fn pools(&mut self) -> Result<(), CompileError> {
        let over = self.longest(&self.jump_to(0));
        let mut waiting: Vec<u32> = Vec::new();
        // Up to where the first of them can stand.
        let mut limit = i64::MAX;
        let mut waited = i64::MAX;
        let mut at = 0i64;
        let mut n = 0;
        while n < self.order.len() {
            let number = self.order[n];
            let sizes: Vec<(i64, Option<(u32, u32)>)> = {
                let block = &self.blocks[&number];
                let literal = |i: &Inst| {
                    Some((i.literal(self.machine)?, self.machine.instrs[usize::from(i.instr.0)].literal?.reach))
                };
                block.bundles.iter().map(|b| (self.longest(b), b.insts.iter().find_map(literal))).collect()
            };
            let mut split = None;
            for (k, (bytes, literal)) in sizes.iter().enumerate() {
                let more = i64::from(literal.is_some());
                let pool = i64::from(LITERAL_BYTES) * (waiting.len() as i64 + more);
                // The last literal begins a word before the pool's end, which may have to be aligned.
                if at + bytes + over + pool > limit {
                    split = Some(k);
                    break;
                }
                at += bytes;
                if let Some((value, reach)) = literal {
                    if !waiting.contains(value) {
                        waiting.push(*value);
                    }
                    limit = limit.min(at + i64::from(*reach));
                    waited = waited.min(at + i64::from(*reach) * WAITED.0 / WAITED.1);
                }
            }
            let literals = if let Some(k) = split {
                let Some(block) = self.blocks.get_mut(&number) else { break };
                let rest =
                    Block { bundles: block.bundles.split_off(k), loop_depth: block.loop_depth, ..Block::default() };
                let moved = self.inverses.remove(&number);
                let next = self.add(n, rest);
                if let Some(inverse) = moved {
                    self.inverses.insert(next, inverse);
                }
                let jump = self.jump_to(next);
                if let Some(block) = self.blocks.get_mut(&number) {
                    block.bundles.push(jump);
                }
                at += over;
                true
            } else {
                let last = n + 1 == self.order.len();
                !self.falls_through(&self.blocks[&number]) && (last || at > waited)
            };
            if literals && !waiting.is_empty() {
                at += i64::from(LITERAL_BYTES) * (waiting.len() as i64 + 1);
                if let Some(block) = self.blocks.get_mut(&number) {
                    block.literals = std::mem::take(&mut waiting);
                }
                (limit, waited) = (i64::MAX, i64::MAX);
            } else if split.is_some() {
                return Err(CompileError::Unsupported("a literal's reach is shorter than one instruction".into()));
            }
            n += 1;
        }
        if waiting.is_empty() { Ok(()) } else { Err(CompileError::Internal("code ends before its literals".into())) }
    }

    /// Addresses of blocks by number, from the function's start.
    fn addresses(&self) -> HashMap<u32, i64> {
        let mut at = 0i64;
        let mut out = HashMap::new();
        for number in &self.order {
            let block = &self.blocks[number];
            out.insert(*number, at);
            at += block.bundles.iter().flat_map(|b| &b.insts).map(|i| i64::from(i.bytes(self.machine))).sum::<i64>();
            if !block.literals.is_empty() {
                let word = i64::from(LITERAL_BYTES);
                at = (at + word - 1) / word * word + word * block.literals.len() as i64;
            }
        }
        out
    }

    /// Mend jumps that do not reach; false when all do.
    fn widen(&mut self) -> Result<bool, CompileError> {
        let addresses = self.addresses();
        let mut changed = false;
        // New blocks stand behind the one they are made for, and are looked at in the next turn.
        for n in (0..self.order.len()).rev() {
            let number = self.order[n];
            let block = &self.blocks[&number];
            let mut end = addresses[&number];
            let mut out = None;
            for (k, inst) in block.bundles.iter().flat_map(|b| &b.insts).enumerate() {
                end += i64::from(inst.bytes(self.machine));
                let target = inst.operands.iter().find_map(|o| if let Operand::Block(b) = o { Some(*b) } else { None });
                let reach = self.machine.instrs[usize::from(inst.instr.0)].reach;
                if let (Some(target), Some((from, to))) = (target, reach)
                    && !(from..=to).contains(&(addresses[&target] - end))
                {
                    out = Some((k, self.kind(inst), target));
                }
            }
            match out {
                None => continue,
                Some((k, InstrKind::Branch, target)) => self.reversed(n, k, target)?,
                Some((k, _, target)) => self.far(number, k, target)?,
            }
            changed = true;
        }
        Ok(changed)
    }

    /// The branch that ends block `n` becomes its inverse, over a jump to `target`.
    fn reversed(&mut self, n: usize, k: usize, target: u32) -> Result<(), CompileError> {
        let number = self.order[n];
        let next = self.order.get(n + 1).copied();
        let (Some(mut inverse), Some(next)) = (self.inverses.remove(&number), next) else {
            return Err(CompileError::Unsupported(
                "a branch that does not reach has no opposite on this machine".into(),
            ));
        };
        for o in &mut inverse.operands {
            if let Operand::Block(b) = o {
                *b = next;
            }
        }
        let depth = self.blocks[&number].loop_depth;
        let jump = self.jump_to(target);
        self.add(n, Block { bundles: vec![jump], loop_depth: depth, ..Block::default() });
        if let Some(block) = self.blocks.get_mut(&number) {
            block.bundles[k] = Bundle { insts: smallvec![inverse] };
        }
        Ok(())
    }

    fn far(&mut self, number: u32, k: usize, target: u32) -> Result<(), CompileError> {
        let Some(far): Option<InstrId> = self.machine.abi.ops.far_jump else {
            return Err(CompileError::Unsupported(format!(
                "a jump of {} is longer than the instruction reaches; name one that reaches further as `far_jump` in `[abi.ops]`",
                self.machine.name
            )));
        };
        let inst = Inst { instr: far, operands: smallvec![Operand::Block(target)], ..self.jump.clone() };
        if let Some(block) = self.blocks.get_mut(&number) {
            block.bundles[k] = Bundle { insts: smallvec![inst] };
        }
        self.far = true;
        Ok(())
    }
}
