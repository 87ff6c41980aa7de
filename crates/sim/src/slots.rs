//! The slot array: registers, reserved places, temporaries, constants.
//!
//! | slots | what |
//! |---|---|
//! | `0 .. registers` | the machine's registers by number; zero registers always hold 0 |
//! | then 1 each | [`SlotPool::dummy`] takes writes to zero registers; [`SlotPool::condition`] and [`SlotPool::target`] carry a branch over its delay slots |
//! | then [`TEMPS`] | temporaries of one bundle |
//! | the rest | constants, added as code is decoded |
//!
//! Slots are only ever added, so a slot that was valid when an xop was made is
//! valid for good: the interpreter relies on it.

use crate::xop::Slot;
use ciphermill_machine::{Machine, Reg};
use std::collections::HashMap;

/// Temporaries that one bundle may use.
pub const TEMPS: usize = 1024;

/// All slot values, and the index of constants already there.
pub struct SlotPool {
    pub values: Vec<u64>,
    constants: HashMap<u64, Slot>,
    registers: usize,
    temps: usize,
}

impl SlotPool {
    /// Slots of a machine, all zero.
    pub fn new(machine: &Machine) -> Result<SlotPool, String> {
        let registers = machine.regs.len();
        let len = registers + 3 + TEMPS;
        if len + 1024 > usize::from(u16::MAX) {
            return Err(format!("{registers} registers are more than the simulator can hold"));
        }
        Ok(SlotPool { values: vec![0; len], constants: HashMap::new(), registers, temps: 0 })
    }

    /// Where writes to zero registers go.
    pub fn dummy(&self) -> Slot {
        self.registers as Slot
    }

    /// Holds a branch's condition while its delay slots execute.
    pub fn condition(&self) -> Slot {
        self.registers as Slot + 1
    }

    /// Holds an indirect branch's target while its delay slots execute.
    pub fn target(&self) -> Slot {
        self.registers as Slot + 2
    }

    /// Slot of a register.
    pub fn register(&self, reg: Reg) -> Slot {
        reg.0
    }

    /// Is this slot a machine register?
    pub fn is_register(&self, slot: Slot) -> bool {
        usize::from(slot) < self.registers
    }

    /// Forget all temporaries: a new bundle begins.
    pub fn reset_temps(&mut self) {
        self.temps = 0;
    }

    /// A temporary not used in this bundle so far.
    pub fn temp(&mut self) -> Result<Slot, String> {
        if self.temps == TEMPS {
            return Err(format!("the semantics of one bundle need more than {TEMPS} temporaries"));
        }
        self.temps += 1;
        Ok((self.registers + 2 + self.temps) as Slot)
    }

    /// The slot that holds a constant.
    pub fn constant(&mut self, value: u64) -> Result<Slot, String> {
        if let Some(&slot) = self.constants.get(&value) {
            return Ok(slot);
        }
        let slot = Slot::try_from(self.values.len())
            .map_err(|_| "the program has more than 60000 different constants".to_string())?;
        self.values.push(value);
        self.constants.insert(value, slot);
        Ok(slot)
    }
}
