//! Jumps: what was guessed, and what happens on the path that was wrong.

use super::question::{Answer, Question};
use super::state::{Pipeline, Value};
use crate::code::{Inst1, Jump, NONE};
use crate::events::Cause;
use crate::log::Row;
use crate::uop::{Kind, Lists, Uop};

/// A jump was guessed right; any other answer is the number of the instruction
/// that fetch went to instead, `NONE`: nowhere.
const RIGHT: Answer = NONE as Answer - 1;

impl Pipeline {
    /// What the predictors say of a jump, and what they learn.
    #[inline(always)]
    pub(super) fn judge(&mut self, number: u32, taken: bool) -> Answer {
        let inst = self.code.insts[number as usize];
        let next = self.next;
        let pc = inst.addr >> self.pc_shift;
        self.tally.branches += 1;
        let guess = match inst.jump {
            Jump::No => return RIGHT,
            Jump::Conditional => {
                self.tally.conditional += 1;
                let guess = self.direction.guess(pc, inst.target <= number);
                self.direction.learn(pc, taken);
                if guess == taken {
                    return RIGHT;
                }
                self.tally.conditional_wrong += 1;
                u64::from(if guess { inst.target } else { number + 1 })
            }
            Jump::Direct => RIGHT,
            Jump::Call => {
                self.returns.push(inst.addr + u32::from(inst.bytes));
                RIGHT
            }
            Jump::CallIndirect | Jump::Indirect | Jump::Return => {
                let target = self.code.insts.get(next as usize).map_or(0, |i| i.addr);
                let history = self.direction.history();
                let guess = match (inst.jump, self.core.predictor.return_stack) {
                    (Jump::Return, 1..) => self.returns.pop().unwrap_or(0),
                    _ => self.indirect.guess_and_learn(pc, history, target),
                };
                if inst.jump == Jump::CallIndirect {
                    self.returns.push(inst.addr + u32::from(inst.bytes));
                }
                if guess == target || next == NONE { RIGHT } else { u64::from(NONE) }
            }
        };
        if guess != RIGHT {
            self.tally.mispredicted += 1;
        }
        guess
    }

    pub(super) fn branch(&mut self, number: u32, inst: &Inst1, taken: bool, outcome: u64) {
        match self.ask(Question::Jump { number, taken }, 0, &[]) {
            wrong if wrong != RIGHT => self.mispredicted(wrong as u32, outcome),
            _ if taken || inst.jump != Jump::Conditional => {
                let known = matches!(inst.jump, Jump::Conditional | Jump::Direct | Jump::Call);
                self.follow(number, if known { inst.target } else { NONE });
            }
            _ => self.front.untaken(number),
        }
    }

    /// Fetch follows a taken branch to its target.
    pub(super) fn follow(&mut self, number: u32, target: u32) {
        let known = self.ask(Question::Target { pc: self.pc(number) }, 0, &[]) != 0;
        let back = (target <= number).then(|| {
            let (from, last) = (&self.code.insts[target as usize], &self.code.insts[number as usize]);
            (from.addr, last.addr + u32::from(last.bytes.max(1)) - 1)
        });
        self.front.taken(number, target, back, known);
    }

    /// Fetch goes wrong after a branch, until its outcome is known.
    pub(super) fn mispredicted(&mut self, wrong: u32, outcome: u64) {
        if wrong != NONE {
            // What is in the window goes when the branch retires, or at once.
            let gone = if self.core.retire.recovers { outcome.max(self.retire_cycle) } else { outcome };
            self.wrong_path(wrong, outcome, gone);
        }
        if self.core.retire.recovers {
            self.recover = self.retire_cycle + 1;
            self.tally.recovery += self.retire_cycle.saturating_sub(outcome);
        } else {
            self.recover = outcome;
        }
        self.refetch(outcome, Cause::Mispredict);
    }

    /// Fetch starts anew in a cycle. Renaming goes on to the first one in which there can be
    /// something to rename: what has come to its end before is then out of the core's state,
    /// which depends the less on what was before.
    pub(super) fn refetch(&mut self, cycle: u64, why: Cause) {
        self.front.redirect(cycle, why);
        let at = self.front.earliest().max(self.recover);
        if at > self.calendar.now() {
            self.calendar.advance(at);
            self.renamed_now = 0;
            self.read_now.clear();
        }
    }

    /// What the core does on a path that fetch leaves in cycle `until`. What has been
    /// renamed by then can start until it is thrown away, in cycle `gone`.
    ///
    /// Loads there take the first cache's latency and change no cache; branches
    /// are guessed, and teach nobody; behind a computed jump or a return nothing is fetched.
    pub(super) fn wrong_path(&mut self, from: u32, until: u64, gone: u64) {
        let code = self.code.clone();
        self.saved.clone_from(&self.values);
        self.saved_wholes.clone_from(&self.wholes);
        let kept = (self.rob_at, self.load_at, self.last_start, self.addresses_known);
        self.front.turn_away();
        let mut n = from;
        let mut taken_places = 0;
        'path: while let Some(inst) = code.insts.get(n as usize) {
            if inst.bytes == 0 {
                n += 1;
                continue;
            }
            let fetched = self.front.fetch(inst.addr, u32::from(inst.bytes));
            if fetched >= until {
                break;
            }
            let decoded = self.front.decode(fetched, u32::from(inst.parts.slots));
            if decoded >= until {
                break;
            }
            let (mut i, to) = (inst.parts.first as usize, inst.parts.first as usize + usize::from(inst.parts.count));
            while i < to {
                let last = i + usize::from(code.uops[i].fused && i + 1 < to);
                if taken_places == self.rob.len() {
                    break 'path;
                }
                let uops = &code.uops[i..=last];
                let (renamed, _) = self.rename::<false>(&code.lists, uops, decoded, Cause::Mispredict, until);
                if renamed >= until {
                    break 'path;
                }
                self.tally.renamed += 1;
                taken_places += 1;
                self.rob[self.rob_at] = 0;
                self.rob_at = if self.rob_at + 1 == self.rob.len() { 0 } else { self.rob_at + 1 };
                for uop in uops {
                    if uop.kind == Kind::Load {
                        self.load_queue[self.load_at] = 0;
                        self.load_at = (self.load_at + 1) % self.load_queue.len();
                    }
                    self.start_wrong(
                        &code.lists,
                        uop,
                        Row {
                            number: n,
                            retired_before: self.tally.instructions,
                            pair: false,
                            kind: uop.kind,
                            fetched,
                            decoded,
                            renamed,
                            started: false,
                            start: 0,
                            end: 0,
                            port: 0,
                            retired: gone,
                            wrong: true,
                        },
                    );
                }
                i = last + 1;
            }
            n = match inst.jump {
                Jump::No => n + 1,
                Jump::Conditional => {
                    if self.ask(Question::Guess { number: n }, 0, &[]) != 0 {
                        self.front.taken(n, inst.target, None, true);
                        inst.target
                    } else {
                        n + 1
                    }
                }
                Jump::Direct | Jump::Call => {
                    self.front.taken(n, inst.target, None, true);
                    inst.target
                }
                Jump::CallIndirect | Jump::Indirect | Jump::Return => break,
            };
        }
        std::mem::swap(&mut self.values, &mut self.saved);
        std::mem::swap(&mut self.wholes, &mut self.saved_wholes);
        (self.rob_at, self.load_at, self.last_start, self.addresses_known) = kept;
    }

    /// A micro-operation that will be thrown away: it starts if it can before that.
    pub(super) fn start_wrong(&mut self, lists: &Lists, uop: &Uop, row: Row) {
        let (renamed, until) = (row.renamed, row.retired);
        let (ready, _) = self.operands(lists, uop);
        if uop.kind == Kind::Nothing {
            let at = ready.max(renamed);
            self.results::<false>(lists, uop, at, None, Cause::Base);
            self.note(Row { started: at < until, start: at, end: at, ..row });
            return;
        }
        let mut from = ready.max(renamed + u64::from(self.core.rename.stages));
        if self.core.in_order {
            from = from.max(self.last_start);
        }
        let (start, port, other) = match from < until {
            true => {
                let ports = self.calendar.bind(uop.ports, uop.own);
                self.place(uop, ports, from)
            }
            false => (until, 0, 0),
        };
        if start >= until {
            self.calendar.wait_until(until);
            self.results::<false>(lists, uop, 0, Some(Value::NEVER), Cause::Base);
            self.note(row);
            return;
        }
        self.occupy(lists, uop, port, start);
        self.calendar.pass(other, start);
        self.last_start = start;
        self.tally.dispatched += 1;
        self.tally.wrong_path += 1;
        self.results::<false>(lists, uop, start, None, Cause::Base);
        self.note(Row { started: true, start, end: start + u64::from(uop.latency), port, ..row });
    }

    fn note(&mut self, row: Row) {
        if let Some(log) = &mut self.log {
            log.push(row);
        }
    }
}
