//! The op cache: instructions that have been decoded before.
//!
//! # The rules
//!
//! They were found with loops of moves of all lengths, at all places of a line, on an EPYC 9005 (Zen 5), 2026-11-27:
//! 99 of 118 loops and all straight runs of 6 to 32 instructions a block come to within 5 % by them.
//!
//! * Instructions are kept in entries of `fetch.entry`, a fused pair as one. A block of `fetch.bytes` has the entries
//!   that begin in it; one that does runs on into the next block. A jump's target begins one.
//! * Two entries are read a cycle, also of two blocks. But of blocks that are come to one from the other no more than
//!   one is begun a cycle, behind the first such one.
//! * The third and fourth entry of a block are there two cycles after the first two, the fifth and sixth two cycles
//!   later still. The block behind such a one is begun alone.
//! * A jump whose last byte lies in a block in which no entry begins takes the place of one, in a cycle of its own
//!   where two have been read.
//! * No two jumps back are followed in one cycle.
//! * A set (by the block's number) has room for the instructions of so many entries; blocks leave it, the one used longest
//!   ago first. On other cores (`fetch.entry_breaks`) an instruction that runs on into the next block ends its entry, and
//!   each entry takes a whole one of its set: on an EPYC Genoa (Zen 4), 2026-11-28, moves of six bytes fill it with 448 to
//!   480 blocks, those of five with 384 to 400, those of four with 384 to 432, those of three with 240 to 288. A block that
//!   is not there, and what follows it to the next jump, is fetched in aligned pieces of `fetch.missed_bytes`, one a
//!   cycle, and decoded, `fetch.missed_instructions` a cycle: 5,550 moves of three bytes, of which all but a few would
//!   be found, take as long as if none were.
//!
//! # What it does not do
//!
//! Blocks are kept as a whole, with all their instructions, from whichever place they were come to. To go from the op
//! cache to the decoders and back takes no time.

use crate::code::Code;
use crate::words::{Reader, Writer};
use ciphermill_machine::core::Fetch;
use std::collections::BTreeMap;

const NOWHERE: u32 = u32::MAX;

/// Entries that are read a cycle.
const TOGETHER: u32 = 2;

/// Pieces of code that are fetched before they are decoded: a block of 64 bytes in pieces of 16. An assumption; without
/// it instructions of three bytes, of which a piece has five and a third, would be decoded at two thirds of the pace.
const AHEAD: u64 = 4;

/// Of later a difference between cycles does not matter: a block has fewer entries.
const LONG_AGO: u64 = 63;

/// Which blocks are there.
pub struct OpCache {
    /// Of each set, blocks and the instructions that they have room for, the one used last at the end.
    sets: Vec<Vec<(u32, u32)>>,
    /// Instructions of a set.
    room: u32,
    shift: u32,
    /// The program's first block, and what each takes.
    first: u32,
    takes: Vec<u32>,
}

impl OpCache {
    /// None where it holds everything, or there is none.
    pub fn new(fetch: &Fetch, code: &Code) -> Option<OpCache> {
        if fetch.entries == 0 || fetch.entry == 0 {
            return None;
        }
        let shift = fetch.bytes.trailing_zeros();
        let mut second = false;
        let insts = code.insts.iter().filter(|i| i.bytes > 0).map(|i| {
            let first = !second;
            second = i.pairs && first;
            (i.addr, u32::from(i.bytes), first)
        });
        let (first, takes) = taken(fetch, insts);
        let ways = fetch.entry_ways.clamp(1, fetch.entries);
        let sets = vec![vec![]; (fetch.entries / ways).max(1) as usize];
        Some(OpCache { sets, room: ways * fetch.entry, shift, first, takes })
    }

    /// Is the block of an address there? From now on it is.
    pub fn finds(&mut self, addr: u32) -> bool {
        let block = addr >> self.shift;
        let count = self.sets.len();
        let set = &mut self.sets[block as usize % count];
        let known = set.iter().position(|b| b.0 == block);
        if let Some(place) = known {
            set[place..].rotate_left(1);
            return true;
        }
        let here = self.takes.get(block.wrapping_sub(self.first) as usize).copied().unwrap_or(0);
        set.push((block, here.min(self.room)));
        while set.iter().map(|b| b.1).sum::<u32>() > self.room {
            set.remove(0);
        }
        false
    }
}

/// The first block of a program, and the instructions for which each takes room. Of the program's instructions the address,
/// the bytes, and whether it counts: the second of a fused pair does not.
fn taken(fetch: &Fetch, insts: impl Iterator<Item = (u32, u32, bool)>) -> (u32, Vec<u32>) {
    let mut blocks = BTreeMap::new();
    let mut filled = fetch.entry;
    for (addr, bytes, counts) in insts {
        let (block, last) = (addr / fetch.bytes, (addr + bytes - 1) / fetch.bytes);
        let takes = blocks.entry(block).or_insert(0);
        if counts && filled == fetch.entry {
            filled = 0;
            *takes += if fetch.entry_breaks { fetch.entry } else { 0 };
        }
        filled += u32::from(counts);
        *takes += u32::from(counts && !fetch.entry_breaks);
        if last != block {
            filled = fetch.entry;
        }
    }
    let first = blocks.keys().next().copied().unwrap_or(0);
    let end = blocks.keys().last().map_or(0, |last| last - first + 1);
    (first, (first..first + end).map(|block| blocks.get(&block).copied().unwrap_or(0)).collect())
}

/// What has been read of it, and where fetch stands.
pub struct OpReader {
    entry: u32,
    shift: u32,
    /// The entry read last: instructions in it so far, its block, how many of its block were read before it.
    filled: u32,
    block: u32,
    number: u32,
    /// Entries read in this cycle, and the cycle in which the block was begun.
    read: u32,
    begun: u64,
    /// The block was come to from the one before it, and has its first cycle for itself.
    onward: bool,
    alone: bool,
    /// The cycle of the last jump back.
    back: u64,
    /// Decoded in place of read: the piece of code, the cycle in which it was fetched, and the instructions decoded in
    /// this one.
    missed: bool,
    piece: u32,
    fetched: u64,
    found: u32,
    piece_shift: u32,
    most: u32,
}

impl OpReader {
    /// None where a core has no op cache.
    pub fn new(fetch: &Fetch) -> Option<OpReader> {
        (fetch.entry > 0).then(|| OpReader {
            entry: fetch.entry,
            shift: fetch.bytes.trailing_zeros(),
            filled: fetch.entry,
            block: NOWHERE,
            number: 0,
            read: 0,
            begun: 0,
            onward: false,
            alone: false,
            back: 0,
            missed: false,
            piece: NOWHERE,
            fetched: 0,
            found: 0,
            piece_shift: fetch.missed_bytes.max(1).trailing_zeros(),
            most: if fetch.missed_instructions == 0 { u32::MAX } else { fetch.missed_instructions },
        })
    }

    /// Fetch has come to another line, which the op cache may have missed: from there to the next jump code is decoded.
    pub fn line(&mut self, missed: bool) {
        self.missed |= missed;
    }

    /// Fetch had to wait: nothing has been read in this cycle.
    pub fn waited(&mut self) {
        (self.read, self.found) = (0, 0);
    }

    /// Fetch goes on elsewhere, in a cycle in which nothing has been read.
    pub fn elsewhere(&mut self) {
        self.waited();
        self.leave();
    }

    fn leave(&mut self) {
        (self.block, self.filled, self.missed, self.piece) = (NOWHERE, self.entry, false, NOWHERE);
    }

    /// The next instruction, no earlier than in a cycle: when it is there.
    #[inline(always)]
    pub fn instruction(&mut self, addr: u32, bytes: u32, mut cycle: u64) -> u64 {
        if self.missed {
            return self.decoded(addr, bytes, cycle);
        }
        if self.filled == self.entry {
            cycle = self.next_entry(addr >> self.shift, cycle);
        }
        self.filled += 1;
        cycle
    }

    /// The next entry, which begins in a block: the cycle in which it is read.
    fn next_entry(&mut self, block: u32, cycle: u64) -> u64 {
        (self.filled, self.piece) = (0, NOWHERE);
        if block != self.block {
            return self.next_block(block, cycle);
        }
        self.number += 1;
        match self.number % TOGETHER {
            0 => {
                self.read = TOGETHER;
                (cycle + 1).max(self.begun + u64::from(self.number))
            }
            _ if self.number < TOGETHER && !self.alone => self.read(1, cycle),
            _ => cycle,
        }
    }

    /// The first entry of a block.
    fn next_block(&mut self, block: u32, mut cycle: u64) -> u64 {
        let jumped = self.block == NOWHERE;
        if !jumped {
            // The first block behind a jump and the one after it are begun together.
            let blocks = u64::from(block.wrapping_sub(self.block)) - u64::from(!self.onward);
            let earliest = self.begun + blocks;
            if earliest > cycle {
                (cycle, self.read) = (earliest, 0);
            }
        }
        (self.onward, self.alone) = (!jumped, !jumped && self.number >= TOGETHER);
        cycle = self.read(if self.alone { TOGETHER } else { 1 }, cycle);
        (self.begun, self.number, self.block) = (cycle, 0, block);
        cycle
    }

    /// One more is read, in the place of so many: in this cycle or the next one.
    fn read(&mut self, places: u32, mut cycle: u64) -> u64 {
        if self.read >= TOGETHER {
            (cycle, self.read) = (cycle + 1, 0);
        }
        self.read += places;
        cycle
    }

    /// The same, from the decoders.
    fn decoded(&mut self, addr: u32, bytes: u32, mut cycle: u64) -> u64 {
        let piece = (addr + bytes.max(1) - 1) >> self.piece_shift;
        if piece != self.piece {
            self.fetched =
                if self.piece == NOWHERE { cycle } else { (self.fetched + 1).max(cycle.saturating_sub(AHEAD)) };
            self.piece = piece;
        }
        if self.fetched > cycle {
            (cycle, self.found) = (self.fetched, 0);
        } else if self.found == self.most {
            (cycle, self.found) = (cycle + 1, 0);
        }
        self.found += 1;
        // What is read next begins an entry, in another cycle.
        (self.block, self.filled, self.read) = (NOWHERE, self.entry, TOGETHER);
        cycle
    }

    /// Fetch follows a jump whose last byte has this address: its cycle then.
    pub fn jump(&mut self, last: u32, back: bool, mut cycle: u64) -> u64 {
        if !self.missed && last >> self.shift != self.block {
            if self.read < TOGETHER {
                self.read += 1;
            } else {
                cycle += 1;
            }
        }
        if back {
            if self.back == cycle {
                (cycle, self.read) = (cycle + 1, 0);
            }
            self.back = cycle;
        }
        self.leave();
        cycle
    }

    /// Write down what the next instructions' cycles depend on, in a cycle.
    pub fn save(&self, w: &mut Writer, cycle: u64) {
        for n in [self.filled, self.number, self.read] {
            w.number(u64::from(n));
        }
        w.wide(self.block);
        w.number((cycle - self.begun.min(cycle)).min(LONG_AGO));
        let flags = [self.onward, self.alone, self.back == cycle, self.missed];
        w.number(flags.iter().rev().fold(0, |all, &flag| all << 1 | u64::from(flag)));
        w.wide(self.piece);
        let decodes = self.piece != NOWHERE;
        w.number(u64::from(if decodes { self.found } else { 0 }));
        w.number(if decodes { (cycle - self.fetched.min(cycle)).min(AHEAD + 1) } else { 0 });
    }

    /// Set it up again, in another cycle.
    pub fn restore(&mut self, r: &mut Reader<'_>, cycle: u64) {
        [self.filled, self.number, self.read] = std::array::from_fn(|_| r.number() as u32);
        self.block = r.wide();
        self.begun = cycle.saturating_sub(r.number());
        let flags = r.number();
        (self.onward, self.alone, self.missed) = (flags & 1 != 0, flags & 2 != 0, flags & 8 != 0);
        self.back = if flags & 4 != 0 { cycle } else { cycle.saturating_sub(1) };
        self.piece = r.wide();
        self.found = r.number() as u32;
        self.fetched = cycle.saturating_sub(r.number());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader() -> OpReader {
        let fetch = Fetch { bytes: 64, entry: 6, missed_bytes: 16, missed_instructions: 4, ..Fetch::default() };
        OpReader::new(&fetch).expect("it has an op cache")
    }

    /// Cycles a turn of a loop of so many moves of three bytes, behind this address, and a jump of five bytes back.
    fn turn(moves: u32, at: u32) -> f64 {
        let (mut ops, mut cycle, mut first) = (reader(), 0, 0);
        for turn in 0..48 {
            if turn == 8 {
                first = cycle;
            }
            for n in 0..moves {
                cycle = ops.instruction(at + 3 * n, 3, cycle);
            }
            let jump = at + 3 * moves;
            cycle = ops.instruction(jump, 5, cycle);
            cycle = ops.jump(jump + 4, true, cycle);
        }
        (cycle - first) as f64 / 40.0
    }

    #[test]
    fn loops_take_what_silicon_takes() {
        // Two entries of one block are read in a cycle, and the third two cycles later (measured: 1.5 by dispatch, 3.0).
        assert_eq!([11, 12, 18].map(|moves| turn(moves, 0)), [1.0, 3.0, 3.0]);
        // Two and one, of two blocks: three lookups in one cycle and a half (measured: 1.66 by dispatch).
        assert_eq!(turn(12, 40), 1.5);
        // The jump ends where no entry begins: a cycle for it alone (measured: 2.0; behind three entries 4.0).
        assert_eq!([turn(7, 40), turn(15, 16)], [2.0, 4.0]);
        // One entry in each of two blocks (measured: 1.0).
        assert_eq!(turn(7, 48), 1.0);
        // A loop is not gone round twice in a cycle.
        assert_eq!(turn(2, 0), 1.0);
    }

    #[test]
    fn straight_code_takes_what_silicon_takes() {
        // So many instructions in each block of 64 bytes (measured: 2.36, 3.02, 3.02, 5.04 cycles).
        for (each, cycles) in [(12, 1.0), (16, 7.0 / 3.0), (18, 3.0), (24, 3.0), (32, 5.0)] {
            let (mut ops, mut cycle, mut first) = (reader(), 0, 0);
            for n in 0..50 * each {
                if n == 2 * each {
                    first = cycle;
                }
                let (at, next) = (n * 64 / each, (n + 1) * 64 / each);
                cycle = ops.instruction(at, next - at, cycle);
            }
            let took = (cycle - first) as f64 / 48.0;
            assert!((took - cycles).abs() < 0.05, "{each} instructions a block: {took}");
        }
    }

    #[test]
    fn where_it_misses_code_is_decoded() {
        // Four instructions of three bytes a cycle; of seven, two and a quarter: 16 bytes.
        for (bytes, rate) in [(3, 4.0), (7, 16.0 / 7.0)] {
            let (mut ops, mut cycle) = (reader(), 0);
            ops.line(true);
            for n in 0..960 {
                cycle = ops.instruction(n * bytes, bytes, cycle);
            }
            assert!((960.0 / cycle as f64 / rate - 1.0).abs() < 0.01, "{bytes} bytes: {cycle}");
        }
    }

    /// What three blocks take of instructions of so many bytes.
    fn of(bytes: u32, entry_breaks: bool) -> Vec<u32> {
        let fetch = Fetch { bytes: 64, entry: 9, entry_breaks, ..Fetch::default() };
        taken(&fetch, (0..192 / bytes).map(|n| (n * bytes, bytes, true))).1
    }

    #[test]
    fn what_a_block_takes() {
        // Of six bytes ten or eleven begin in a block, and the eleventh and the 22nd run on into the next: entries of nine and
        // two, nine and two, nine and one.
        assert_eq!(of(6, false), [11, 11, 10]);
        assert_eq!(of(6, true), [18, 18, 18]);
        // None of four bytes runs on: sixteen are an entry and seven of the next, which has two of the next block's.
        assert_eq!(of(4, true), [18, 18, 18]);
        // Eight of eight bytes and the first of the next block are an entry.
        assert_eq!(of(8, true), [9, 9, 9]);
    }

    #[test]
    fn a_set_forgets_what_was_used_longest_ago() {
        let mut cache = OpCache { sets: vec![vec![]; 2], room: 12, shift: 6, first: 0, takes: vec![6; 8] };
        let mut finds = |block: u32| cache.finds(block << 6);
        assert_eq!([0, 1, 2, 0, 1].map(&mut finds), [false, false, false, true, true]);
        // Blocks 0, 2 and 4 are in one set, which has room for two of them.
        assert_eq!([4, 0, 2, 0].map(&mut finds), [false, true, false, true]);
    }
}
