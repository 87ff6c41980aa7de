//! All of the core's state that its future cycles depend on, apart from what
//! [`super::outside`] answers; written relative to the cycle that renaming has
//! come to.
//!
//! What can no longer matter is written as if it were just past: an operand
//! that was there long ago is one that is there now. Each such line below is a
//! promise about a comparison elsewhere in this crate; a test runs programs
//! with and without the memo, and every count has to be the same.

use super::{Pipeline, Value};
use crate::events::Cause;
use crate::words::{Reader, Writer};

impl Pipeline {
    /// Write the state between two instructions.
    pub(super) fn save(&self, w: &mut Writer) {
        let now = self.calendar.now();
        // Nothing is renamed before `now`, and a place is free the cycle after
        // its tenant has retired.
        let past = now.saturating_sub(1);
        self.front.save(w, now);
        self.calendar.save(w);
        for v in &self.values {
            w.after(v.at, now);
            w.number(if v.at > now { v.cause as u64 } else { 0 });
            if self.stalls {
                w.after(v.whole, now);
            }
        }
        w.ring(&self.rob, self.rob_at, past);
        w.ring(&self.load_queue, self.load_at, past);
        self.stores.save(w, now);
        w.number(u64::from(self.renamed_now));
        // Whether a register is in the list counts, and how many are.
        w.number(self.read_now.len() as u64);
        let read = w.words.len();
        self.read_now.iter().for_each(|&r| w.number(u64::from(r)));
        w.words[read..].sort_unstable();
        w.after(self.recover, now);
        w.after(if self.core.in_order { self.last_start } else { 0 }, now);
        w.after(self.addresses_known, now);
        w.around(self.retire_cycle, now);
        w.number(self.retire_place);
    }

    /// Set a state up again, as if renaming had come to this cycle, after so many stores.
    pub(super) fn restore(&mut self, words: &[u16], now: u64, stores: u64) {
        let r = &mut Reader::new(words);
        let past = now.saturating_sub(1);
        self.front.restore(r, now);
        self.calendar.restore(r, now);
        for v in &mut self.values {
            let at = r.after(now);
            let cause = Cause::ALL[r.number() as usize % Cause::ALL.len()];
            let whole = if self.stalls { r.after(now) } else { 0 };
            *v = Value { at, whole, cause };
        }
        r.ring(&mut self.rob, past);
        r.ring(&mut self.load_queue, past);
        (self.rob_at, self.load_at) = (0, 0);
        self.stores.restore(r, now, stores);
        self.renamed_now = r.number() as u32;
        let reading = r.number();
        self.read_now.clear();
        self.read_now.extend((0..reading).map(|_| r.number() as u16));
        self.recover = r.after(now);
        self.last_start = r.after(now);
        self.addresses_known = r.after(now);
        self.retire_cycle = r.around(now);
        self.retire_place = r.number();
    }
}
