//! One pass over a function.

use super::blocks::Blocks;
use super::code::{Assignment, Code, RegSet};
use super::hints::{RegisterHints, Wish, Wishes};
use super::layout::Layout;
use super::question::Question;
use super::state::State;
use ciphermill_vcode::{Place, Step};

#[derive(Clone)]
pub struct Pass {
    pub blocks: Vec<Vec<Step>>,
    pub slots: u32,
    /// Registers that are written, by their index in [`Code::registers`].
    pub written: RegSet,
    /// Places at the start of each block.
    pub entries: Vec<Layout>,
    /// Places at the end of each block, before the moves on the edge behind it.
    ends: Vec<Layout>,
}

impl Pass {
    /// None where an instruction finds no register. `last` is the pass before.
    pub fn run(question: &Question, blocks: &Blocks, last: Option<&Pass>) -> Option<Pass> {
        let n = blocks.codes.len();
        let mut before: Vec<Option<Wishes>> = vec![None; n];
        let mut hints: Vec<Option<RegisterHints>> = (0..n).map(|_| None).collect();
        for &b in blocks.order.iter().rev() {
            let made = RegisterHints::new(&blocks.codes[b], &behind(blocks, b, &before, last));
            before[b] = Some(made.wishes(&blocks.codes[b]));
            hints[b] = Some(made);
        }
        let mut pass = Pass {
            blocks: vec![Vec::new(); n],
            slots: 0,
            written: 0,
            entries: vec![Layout::default(); n],
            ends: vec![Layout::default(); n],
        };
        let mut done = vec![false; n];
        for &b in &blocks.order {
            let code = &blocks.codes[b];
            pass.entries[b] = pass.entry(blocks, b, &done, last)?;
            let hints = hints[b].as_ref()?;
            let mut state = State::new(code, hints, &pass.entries[b].of(code));
            state.run()?;
            pass.ends[b] = Layout::behind(&state);
            pass.slots = pass.slots.max(state.slots.len() as u32);
            pass.blocks[b] = state.steps;
            done[b] = true;
        }
        for (b, preds) in blocks.preds.iter().enumerate().filter(|(_, p)| p.len() > 1) {
            for &p in preds {
                let moves = pass.edge(blocks, p, b)?;
                pass.blocks[p].extend(moves);
            }
        }
        for (b, code) in blocks.codes.iter().enumerate() {
            pass.blocks[b].extend(code.end.map(|index| Step::Inst(index, Vec::new())));
        }
        pass.written = pass.written(question, blocks);
        Some(pass)
    }

    /// Where the values are when block `b` begins: where its most frequent predecessor leaves them, in
    /// this pass if it has been there, else in the last.
    fn entry(&self, blocks: &Blocks, b: usize, done: &[bool], last: Option<&Pass>) -> Option<Layout> {
        let preds = &blocks.preds[b];
        let end = |p: usize| if done[p] { Some(&self.ends[p]) } else { last.map(|l| &l.ends[p]) };
        let known = || preds.iter().filter_map(|&p| end(p).map(|e| (p, e)));
        let most = known().max_by_key(|(p, _)| (blocks.func.blocks[*p].frequency(), done[*p], std::cmp::Reverse(*p)));
        let Some((p, layout)) = most else {
            let registers = blocks.codes[b].registers.len();
            return preds.is_empty().then(|| Layout { registers: vec![None; registers], slots: Vec::new() });
        };
        let mut entry = layout.entered(blocks, p, b);
        if done[p] {
            known().filter(|o| o.0 != p).for_each(|(o, l)| entry.keep_slots(&l.entered(blocks, o, b)));
        }
        Some(entry)
    }

    /// Moves at the end of block `from` to the places at the start of block `to`.
    fn edge(&mut self, blocks: &Blocks, from: usize, to: usize) -> Option<Vec<Step>> {
        let block = &blocks.codes[from];
        let mut code = Code::empty(&block.registers, block.usable);
        let wanted: Assignment = self.entries[to]
            .wanted(blocks, from, to, &block.registers)
            .into_iter()
            .map(|(p, v)| (p, code.value(v)))
            .collect();
        code.begin((0..code.names.len()).collect(), &blocks.names);
        let entry = self.ends[from].of(&code);
        let mut hints = RegisterHints::new(&code, &Wishes::new());
        let slots = wanted.iter().filter_map(|w| if let Place::Slot(s) = w.0 { Some(s) } else { None });
        hints.exit_slots.extend(slots);
        let mut state = State::new(&code, &hints, &entry);
        state.leave(&wanted)?;
        self.slots = self.slots.max(state.slots.len() as u32);
        Some(state.steps)
    }

    /// Numbers the slots that are used from 0.
    pub fn close_slots(&mut self) {
        let mut used = vec![None; self.slots as usize];
        let mut count = 0;
        let mut close = |place: &mut Place| {
            if let Place::Slot(s) = place {
                *s = *used[*s as usize].get_or_insert_with(|| {
                    count += 1;
                    count - 1
                });
            }
        };
        for step in self.blocks.iter_mut().flatten() {
            match step {
                Step::Move { from, to } => [from, to].into_iter().for_each(&mut close),
                Step::Inst(_, places) => places.iter_mut().for_each(&mut close),
            }
        }
        self.slots = count;
    }

    fn written(&self, question: &Question, blocks: &Blocks) -> RegSet {
        let mut set = 0;
        let (insts, code) = (&question.func.blocks, &blocks.codes[0]);
        for (b, steps) in self.blocks.iter().enumerate() {
            for step in steps {
                match step {
                    Step::Move { to, .. } => set |= code.number(*to).map_or(0, |r| 1 << r),
                    Step::Inst(index, places) => {
                        places.iter().filter_map(|p| code.number(*p)).for_each(|r| set |= 1 << r);
                        let inst = &insts[b].insts[*index];
                        question.facts.fixed_writes(inst.instr).for_each(|r| {
                            set |= code.number(Place::Reg(r)).map_or(0, |r| 1 << r);
                        });
                    }
                }
            }
        }
        set
    }
}

/// What is best at the end of block `b`, given what is at the start of its successors. A register that the
/// entry of one with several predecessors has is best.
fn behind(blocks: &Blocks, b: usize, before: &[Option<Wishes>], last: Option<&Pass>) -> Wishes {
    let mut all = Wishes::new();
    for to in blocks.func.blocks[b].succs.iter().map(|s| s.0 as usize) {
        let fixed = last.map(|p| &p.entries[to]).filter(|_| blocks.preds[to].len() > 1);
        for (v, source) in blocks.sources(b, to) {
            let anywhere = Wish { fit: blocks.codes[b].usable, like: blocks.codes[b].usable, slot: None };
            let mut wish = before[to].as_ref().and_then(|w| w.get(&v)).copied().unwrap_or(anywhere);
            if let Some(entry) = fixed {
                let (slot, held) = entry.find(v);
                wish.slot = slot;
                if held != 0 {
                    wish.like = held;
                }
            }
            all.entry(source).or_insert(wish);
        }
    }
    all
}
