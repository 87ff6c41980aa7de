//! Fetch and decode: when an instruction is ready to be renamed.
//!
//! # The rules
//!
//! * An aligned block of `fetch.bytes` is fetched a cycle. An instruction is
//!   there with the block of its last byte, at most `fetch.predecode` in one cycle.
//! * With an op cache (`fetch.entry`) instructions come from there, by the rules of [`crate::opcache`].
//! * After a taken branch the next block is fetched one cycle and
//!   `taken_cycles` later; `redirect_cycles` later still when the branch target buffer did
//!   not know the branch. After a wrong guess it is fetched in the cycle in
//!   which the branch's outcome is known.
//! * An instruction is decoded `fetch.stages` cycles after its fetch at the
//!   earliest. The last of these stages is the queue, which it enters when the one
//!   `fetch.queue` places before it has been decoded; it is fetched as much earlier.
//! * A prefix that changes an instruction's length is noticed
//!   `length_change_cycles` after the fetch; what stands behind waits too.
//! * A small loop that has gone round once is replayed from the queue: its
//!   instructions need no fetch and its branch no new block.
//! * Each cycle the decoders take instructions in order as long as the next
//!   decoder can make what the instruction needs; one that needs more than the first can make has the decoders to
//!   itself, as many cycles as it takes.
//! * A micro-operation is renamed `decode.stages` after its decoding at the
//!   earliest. The last of these stages is the second queue, which it enters when the one
//!   `decode.queue` places before it has been renamed.

use crate::code::NONE;
use crate::events::Cause;
use crate::opcache::OpReader;
use crate::words::{Reader, Writer};
use ciphermill_machine::core::Core;

const NOWHERE: u32 = u32::MAX;

/// Where fetch and decode stand.
pub struct Front {
    shift: u32,
    predecode: u32,
    fetch_stages: u64,
    decode_stages: u64,
    taken_cycles: u64,
    redirect_cycles: u64,
    loop_instructions: u32,
    loop_blocks: u32,
    pattern: Vec<u32>,
    /// The cycle of the last fetch, its block, and the instructions found in it.
    cycle: u64,
    block: u32,
    found: u32,
    /// In place of them, with an op cache.
    ops: Option<OpReader>,
    line: u32,
    /// The last byte that has been fetched.
    last: u32,
    streaming: bool,
    /// The branch that closed the last loop.
    last_loop: u32,
    /// Decode cycles of the last instructions, in a ring.
    decoded: Vec<u64>,
    next: usize,
    decode_cycle: u64,
    decoder: usize,
    /// Rename cycles of the last micro-operations, in a ring.
    renamed: Vec<u64>,
    place: usize,
    /// Why the next instruction is late.
    why: Cause,
}

impl Front {
    pub fn new(core: &Core) -> Front {
        Front {
            shift: core.fetch.bytes.trailing_zeros(),
            predecode: if core.fetch.predecode == 0 { u32::MAX } else { core.fetch.predecode },
            fetch_stages: u64::from(core.fetch.stages),
            decode_stages: u64::from(core.decode.stages),
            taken_cycles: u64::from(core.fetch.taken_cycles),
            redirect_cycles: u64::from(core.fetch.redirect_cycles),
            loop_instructions: core.fetch.loop_instructions,
            loop_blocks: core.fetch.loop_blocks,
            pattern: core.decode.pattern.clone(),
            cycle: 0,
            block: NOWHERE,
            found: 0,
            ops: OpReader::new(&core.fetch),
            line: NOWHERE,
            last: 0,
            streaming: false,
            last_loop: NONE,
            decoded: vec![0; core.fetch.queue.max(1) as usize],
            next: 0,
            decode_cycle: 0,
            decoder: 0,
            renamed: vec![0; core.decode.queue.max(1) as usize],
            place: 0,
            why: Cause::Frontend,
        }
    }

    /// Fetch goes on at another address in a cycle; what had been fetched and
    /// not renamed is gone.
    pub fn redirect(&mut self, cycle: u64, why: Cause) {
        self.decoded.fill(0);
        self.renamed.fill(0);
        self.cycle = cycle;
        self.elsewhere();
        (self.decode_cycle, self.decoder) = (cycle, 0);
        (self.streaming, self.last_loop) = (false, NONE);
        self.why = why;
    }

    /// Nothing that is fetched from now on is renamed before this cycle.
    pub fn earliest(&self) -> u64 {
        self.cycle + self.fetch_stages + self.decode_stages
    }

    /// The branch fetched last was guessed to go elsewhere than it will: fetch
    /// goes on there, a cycle later.
    pub fn turn_away(&mut self) {
        self.cycle += 1;
        self.elsewhere();
        (self.streaming, self.last_loop) = (false, NONE);
    }

    /// Nothing is fetched behind what was fetched last.
    fn elsewhere(&mut self) {
        (self.block, self.found) = (NOWHERE, 0);
        if let Some(ops) = &mut self.ops {
            ops.elsewhere();
        }
    }

    /// Why the instruction fetched last was late, once.
    pub fn why(&mut self) -> Cause {
        std::mem::replace(&mut self.why, Cause::Frontend)
    }

    /// Fetch comes to an instruction. When it is in another line than the one
    /// before, of `1 << shift` bytes, [`Front::arrived`] is to be told.
    #[inline(always)]
    pub fn reach(&mut self, addr: u32, bytes: u32, shift: u32) -> Option<u64> {
        if self.streaming {
            return None;
        }
        self.last = addr + bytes.max(1) - 1;
        let line = self.last >> shift;
        let new = line != self.line;
        let (first, end) = (addr >> self.shift, self.last >> self.shift);
        if self.ops.is_none() {
            if first == self.block && end == first && self.found != self.predecode {
                return None;
            }
            if self.block != NOWHERE && first != self.block {
                self.cycle += 1;
            }
            self.cycle += u64::from(end - first);
            if first == self.block && end == first {
                // More instructions than can be found in one cycle.
                self.cycle += 1;
            }
            (self.block, self.found) = (end, 0);
        }
        self.line = line;
        new.then_some(self.cycle)
    }

    /// The line it came to is there in a cycle, and has to be decoded where the op cache missed it.
    #[inline(always)]
    pub fn arrived(&mut self, there: u64, missed: bool) {
        if let Some(ops) = &mut self.ops {
            ops.line(missed);
        }
        if there > self.cycle {
            (self.cycle, self.why) = (there, Cause::Icache);
            if let Some(ops) = &mut self.ops {
                ops.waited();
            }
        }
    }

    /// The instruction it came to is longer or shorter than it seemed: it is
    /// found so many cycles later, where it is not replayed.
    pub fn length_change(&mut self, cycles: u64) {
        if !self.streaming {
            self.cycle += cycles;
        }
    }

    /// The instruction enters the queue: its cycle. The second of a pair comes with the first.
    #[inline(always)]
    pub fn enter(&mut self, addr: u32, bytes: u32, second: bool) -> u64 {
        let free = self.decoded[self.next].saturating_sub(self.fetch_stages.saturating_sub(1));
        if self.streaming {
            self.cycle = self.cycle.max(free);
            return self.cycle;
        }
        if let Some(ops) = &mut self.ops {
            if free > self.cycle {
                self.cycle = free;
                ops.waited();
            }
            if !second {
                self.cycle = ops.instruction(addr, bytes, self.cycle);
            }
            return self.cycle;
        }
        self.found += 1;
        if free > self.cycle {
            (self.cycle, self.found) = (free, 1);
        }
        self.cycle
    }

    /// All of it, where lines are there: on a wrong path, which leaves the line as it was.
    pub fn fetch(&mut self, addr: u32, bytes: u32) -> u64 {
        let line = self.line;
        self.reach(addr, bytes, 0);
        self.line = line;
        self.enter(addr, bytes, false)
    }

    /// Write down what the next instructions' cycles depend on, before a cycle.
    pub fn save(&self, w: &mut Writer, now: u64) {
        w.around(self.cycle, now);
        w.wide(self.block);
        w.number(u64::from(self.found));
        if let Some(ops) = &self.ops {
            ops.save(w, self.cycle);
        }
        w.wide(self.line);
        w.number(u64::from(self.streaming));
        w.wide(self.last_loop);
        // Nothing is decoded before: an earlier cycle of the decoders says no more than that they are free.
        let floor = self.cycle + self.fetch_stages;
        let (decode, decoder) =
            if self.decode_cycle < floor { (floor - 1, 0) } else { (self.decode_cycle, self.decoder) };
        w.after(decode, self.cycle.saturating_sub(1));
        w.number(decoder as u64);
        w.ring(&self.decoded, self.next, self.cycle + self.fetch_stages.saturating_sub(1));
        w.ring(&self.renamed, self.place, decode + self.decode_stages.saturating_sub(1));
        w.number(self.why as u64);
    }

    /// Set it up again, for another cycle.
    pub fn restore(&mut self, r: &mut Reader<'_>, now: u64) {
        self.cycle = r.around(now);
        self.block = r.wide();
        self.found = r.number() as u32;
        if let Some(ops) = &mut self.ops {
            ops.restore(r, self.cycle);
        }
        self.line = r.wide();
        self.streaming = r.number() != 0;
        self.last_loop = r.wide();
        self.decode_cycle = r.after(self.cycle.saturating_sub(1));
        self.decoder = r.number() as usize;
        (self.next, self.place) = (0, 0);
        r.ring(&mut self.decoded, self.cycle + self.fetch_stages.saturating_sub(1));
        r.ring(&mut self.renamed, self.decode_cycle + self.decode_stages.saturating_sub(1));
        self.why = Cause::ALL[r.number() as usize % Cause::ALL.len()];
    }

    /// A fetch that takes no time comes to a byte: is it in another line than the one before?
    #[inline(always)]
    pub fn warm(&mut self, addr: u32, shift: u32) -> bool {
        std::mem::replace(&mut self.line, addr >> shift) != addr >> shift
    }

    /// Decode an instruction that was fetched and that makes so many
    /// micro-operations, a fused pair counted once: the earliest cycle for its renaming.
    #[inline(always)]
    pub fn decode(&mut self, fetched: u64, slots: u32) -> u64 {
        let mut at = (fetched + self.fetch_stages).max(self.decode_cycle);
        let width = self.renamed.len();
        if slots > 0 && slots as usize <= width {
            let last = self.place + slots as usize - 1;
            let free = self.renamed[if last >= width { last - width } else { last }];
            at = at.max(free.saturating_sub(self.decode_stages.saturating_sub(1)));
        }
        if at > self.decode_cycle {
            (self.decode_cycle, self.decoder) = (at, 0);
        }
        if self.decoder > 0 && self.pattern.get(self.decoder).is_none_or(|&p| slots > p) {
            (self.decode_cycle, self.decoder) = (self.decode_cycle + 1, 0);
        }
        let first = self.pattern[0];
        if slots > first {
            self.decode_cycle += u64::from(slots.div_ceil(first) - 1);
            self.decoder = self.pattern.len();
        } else {
            self.decoder += 1;
        }
        self.decoded[self.next] = self.decode_cycle;
        self.next = if self.next + 1 == self.decoded.len() { 0 } else { self.next + 1 };
        self.decode_cycle + self.decode_stages
    }

    /// The second of a pair that was decoded as one.
    pub fn decode_paired(&mut self) {
        self.decoded[self.next] = self.decode_cycle;
        self.next = if self.next + 1 == self.decoded.len() { 0 } else { self.next + 1 };
    }

    /// A micro-operation has been renamed.
    #[inline(always)]
    pub fn renamed(&mut self, at: u64) {
        self.renamed[self.place] = at;
        self.place = if self.place + 1 == self.renamed.len() { 0 } else { self.place + 1 };
    }

    /// A branch, the instruction of this number, is taken as guessed: to a
    /// `target` before it when it closes a loop, whose addresses are given.
    #[inline(always)]
    pub fn taken(&mut self, number: u32, target: u32, loop_bytes: Option<(u32, u32)>, known: bool) {
        if let Some((from, to)) = loop_bytes
            && number - target < self.loop_instructions
            && (to >> self.shift) - (from >> self.shift) < self.loop_blocks
        {
            self.streaming = self.last_loop == number;
            self.last_loop = number;
            if self.streaming {
                return;
            }
        } else {
            (self.streaming, self.last_loop) = (false, NONE);
        }
        let late = if known { 0 } else { self.redirect_cycles };
        if let Some(ops) = &mut self.ops {
            self.cycle = ops.jump(self.last, loop_bytes.is_some(), self.cycle) + self.taken_cycles + late;
            if self.taken_cycles + late > 0 {
                ops.waited();
            }
        } else {
            self.cycle += 1 + self.taken_cycles + late;
        }
        (self.block, self.found) = (NOWHERE, 0);
    }

    /// A branch is not taken, as guessed.
    #[inline(always)]
    pub fn untaken(&mut self, number: u32) {
        if number == self.last_loop {
            (self.streaming, self.last_loop) = (false, NONE);
        }
    }
}
