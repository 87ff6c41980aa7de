//! Small functions for tests.

use ciphermill_machine::{InstrId, Machine};
use ciphermill_vcode::{VBlock, VFunc};

pub fn machine() -> Machine {
    of_name("ia32")
}

pub fn of_name(name: &str) -> Machine {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    ciphermill_machine::load_from_dir(&root, name, &[], &[], &[]).expect("the machine file is good")
}

pub fn named(machine: &Machine, name: &str) -> InstrId {
    let at = machine.instrs.iter().position(|i| i.name == name);
    InstrId(at.expect("the machine has it") as u16)
}

/// Each block's dominator is the one before it.
pub fn function(blocks: Vec<VBlock>, vregs: u32) -> VFunc {
    let idom = (0..blocks.len() as u32).map(|b| b.checked_sub(1)).collect();
    VFunc { name: "f".into(), blocks, idom, vregs, has_calls: false, params: 2, results: 1, files: vec![] }
}
