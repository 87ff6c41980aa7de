//! What the core asks of what it does not own: addresses, caches, predictors.
//!
//! How the pipeline goes on depends on its own state and on the answers to
//! these questions, and on nothing else. So every question goes through
//! [`Pipeline::ask`], which lets the memo write them down, and ask them again
//! when it knows what the pipeline will do between them.

use super::asked::Quiet;
use super::question::{Answer, Data, Older, Question};
use super::state::{Access, Pipeline};
use ciphermill_machine::core::Renaming;

impl Pipeline {
    /// Ask, in a cycle, and write it down where that is wanted.
    #[inline(always)]
    pub(super) fn ask(&mut self, question: Question, at: u64, accesses: &[Access]) -> Answer {
        if !self.memo.listens {
            return self.answer(question, at, accesses);
        }
        if let Some(answer) = self.memo.known() {
            return answer;
        }
        let answer = self.answer(question, at, accesses);
        self.memo.note(question, at, answer);
        answer
    }

    /// An access that took no time is as it was. If not, nothing has been done.
    #[inline(always)]
    pub(super) fn still_quiet(&mut self, was: &Quiet, at: u64, accesses: &[Access]) -> bool {
        let Access { addr, bytes } = accesses[usize::from(was.access)];
        if !was.write && (self.passes(was.pc) != was.passes || !self.stores.far(addr, bytes, was.still)) {
            return false;
        }
        if was.write && self.apart(addr) || !self.memory.quiet(was.pc, addr, bytes, at, was.write) {
            return false;
        }
        if was.write {
            self.stores.push(was.pc, addr, bytes);
        }
        true
    }

    /// The answer, from what is outside as it is now; it may change by being asked.
    #[inline(always)]
    pub(super) fn answer(&mut self, question: Question, at: u64, accesses: &[Access]) -> Answer {
        match question {
            Question::Line { addr } => match self.ops.as_mut().map(|ops| ops.finds(addr)) {
                Some(true) => 0,
                found => (self.memory.fetch(addr, at) - at) << 1 | u64::from(found.is_some()),
            },
            Question::Passed { pc, wrong } => {
                let entry = self.wait_at(pc);
                self.waits[entry] = if wrong { 15 } else { self.waits[entry].saturating_sub(1) };
                0
            }
            Question::Renames { pc, younger } => u64::from(self.renames(pc, younger)),
            Question::Misnamed { number } => u64::from(self.misnames(number)),
            Question::Load { pc, access } => {
                let Access { addr, bytes } = accesses[usize::from(access)];
                Older { seen: self.stores.seen(addr, bytes), passes: self.passes(pc) }.pack()
            }
            Question::Data { pc, access, write } => {
                let Access { addr, bytes } = accesses[usize::from(access)];
                let got = self.memory.data(pc, addr, at, write);
                let last = addr.wrapping_add(bytes - 1);
                let crosses = self.memory.line(last) != self.memory.line(addr);
                let mut start = got.start;
                if crosses {
                    start = start.max(self.memory.data(pc, last, at, write).start);
                }
                let apart = write && self.apart(addr);
                if write {
                    self.stores.push(pc, addr, bytes);
                }
                Data { later: start - at, level: got.level, translated: got.translation > 0, crosses, apart }.pack()
            }
            Question::Jump { number, taken } => self.judge(number, taken),
            Question::Target { pc } => {
                let known = self.btb.knows(pc);
                self.tally.btb += u64::from(!known);
                u64::from(known)
            }
            Question::Guess { number } => {
                let inst = &self.code.insts[number as usize];
                u64::from(self.direction.guess(inst.addr >> self.pc_shift, inst.target <= number))
            }
        }
    }

    /// Is a store in another line than the one before it, where only stores to one line reach the cache together?
    #[inline(always)]
    fn apart(&self, addr: u32) -> bool {
        self.core.store.one_line && self.memory.line(addr) != self.memory.line(self.stores.last())
    }

    /// Is a load renamed? What is learned of it is used the next time.
    fn renames(&mut self, pc: u32, younger: u8) -> bool {
        match self.core.load.renaming {
            Renaming::No => false,
            Renaming::Form => {
                let form = |pc: u32, store: bool| self.code.forms.get(&(pc, store));
                form(pc, false).is_some_and(|load| form(self.stores.pc(younger.into()), true) == Some(load))
            }
            Renaming::Distance => {
                let at = pc as usize & (self.distances.len() - 1);
                std::mem::replace(&mut self.distances[at], younger) == younger
            }
        }
    }

    /// Is a load misnamed, which it is until that is known? From then on the next ones are known, too: they were under
    /// way when it was found out.
    fn misnames(&mut self, number: u32) -> bool {
        if self.known_names.knows(self.pc(number)) {
            return false;
        }
        let code = self.code.clone();
        let shadow = self.core.load.misnamed.map_or(0, |m| m.shadow);
        let behind = (number + 1..code.insts.len() as u32).take(shadow as usize);
        for n in behind.filter(|&n| code.misnamed(n)) {
            self.known_names.knows(self.pc(n));
        }
        true
    }

    /// What predictors and prefetchers know an instruction by.
    pub(super) fn pc(&self, number: u32) -> u32 {
        self.code.insts[number as usize].addr >> self.pc_shift
    }

    /// May a load pass stores whose addresses are unknown?
    #[inline(always)]
    fn passes(&self, pc: u32) -> bool {
        !self.waits.is_empty() && self.waits[self.wait_at(pc)] == 0
    }

    fn wait_at(&self, pc: u32) -> usize {
        pc as usize & (self.waits.len() - 1)
    }
}
