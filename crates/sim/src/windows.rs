//! Register windows, as SPARC has them.
//!
//! The slots hold the current window. `save` pushes the ins and locals to a
//! shadow stack and turns the outs into ins; `restore` does the reverse. How
//! many of the pushed windows are still in the machine's register file is
//! counted beside: the file holds `count - 1` of them (one is kept free for
//! the trap handler), a `save` beyond that is an overflow trap that writes the
//! oldest to memory, and a `restore` into one that is in memory an underflow
//! trap. What the traps cost is the machine file's; the memory they would
//! touch is not modelled beyond that.
//!
//! A fresh window's locals and outs hold a pattern, not zero, so that code
//! which reads them before writing them shows.

use crate::memory::{Fault, STACK_BASE};
use crate::xop::Slot;
use ciphermill_machine::Machine;

/// What uninitialised registers hold.
pub const POISON: u64 = 0xdead_beef;

/// The windows of one machine; empty lists where it has none.
#[derive(Default)]
pub struct Windows {
    ins: Vec<Slot>,
    locals: Vec<Slot>,
    outs: Vec<Slot>,
    stack_pointer: Slot,
    saved: Vec<u64>,
    /// Windows in the register file, the current one included.
    resident: u32,
    capacity: u32,
    pub overflows: u64,
    pub underflows: u64,
    pub overflow_cycles: u64,
    pub underflow_cycles: u64,
}

impl Windows {
    /// The windows a machine file declares.
    pub fn new(machine: &Machine) -> Windows {
        let Some(w) = &machine.abi.windows else { return Windows::default() };
        let slots = |regs: &[ciphermill_machine::Reg]| regs.iter().map(|r| r.0).collect();
        Windows {
            ins: slots(&w.ins),
            locals: slots(&w.locals),
            outs: slots(&w.outs),
            stack_pointer: machine.abi.stack_pointer.0,
            resident: 1,
            capacity: u32::from(w.count).saturating_sub(1).max(1),
            overflow_cycles: u64::from(w.overflow_cycles),
            underflow_cycles: u64::from(w.underflow_cycles),
            ..Windows::default()
        }
    }

    /// Back to a single window, as a call from outside finds it.
    pub fn restart(&mut self) {
        self.saved.clear();
        self.resident = 1;
    }

    /// Open a window.
    #[inline(never)]
    pub fn save(&mut self, slots: &mut [u64]) -> Result<(), Fault> {
        if slots[usize::from(self.stack_pointer)] < u64::from(STACK_BASE) {
            return Err(Fault::StackLimit);
        }
        for &s in self.locals.iter().chain(&self.ins) {
            self.saved.push(slots[usize::from(s)]);
        }
        for (&i, &o) in self.ins.iter().zip(&self.outs) {
            slots[usize::from(i)] = slots[usize::from(o)];
        }
        for &s in self.locals.iter().chain(&self.outs) {
            slots[usize::from(s)] = POISON;
        }
        if self.resident == self.capacity {
            self.overflows += 1;
        } else {
            self.resident += 1;
        }
        Ok(())
    }

    /// Close the window.
    #[inline(never)]
    pub fn restore(&mut self, slots: &mut [u64]) -> Result<(), Fault> {
        let keep = self.locals.len() + self.ins.len();
        let Some(base) = self.saved.len().checked_sub(keep.max(1)) else { return Err(Fault::NoWindow) };
        for (&i, &o) in self.ins.iter().zip(&self.outs) {
            slots[usize::from(o)] = slots[usize::from(i)];
        }
        for (&s, &v) in self.locals.iter().chain(&self.ins).zip(&self.saved[base..]) {
            slots[usize::from(s)] = v;
        }
        self.saved.truncate(base);
        if self.resident == 1 {
            self.underflows += 1;
        } else {
            self.resident -= 1;
        }
        Ok(())
    }

    /// Cycles of all window traps since the counts were last zero.
    pub fn trap_cycles(&self) -> u64 {
        self.overflows * self.overflow_cycles + self.underflows * self.underflow_cycles
    }
}
