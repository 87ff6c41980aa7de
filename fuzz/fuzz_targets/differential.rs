//! Modules from `wasm-smith`, steered by coverage, run alike on the reference,
//! on the intermediate representation at every level, and on every machine.

#![no_main]

use ciphermill_differential::check::check;
use ciphermill_differential::subject::{Subject, interpreted, simulated};
use ciphermill_differential::{folders, smith};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

fn subjects() -> &'static [Subject] {
    static SUBJECTS: OnceLock<Vec<Subject>> = OnceLock::new();
    SUBJECTS.get_or_init(|| match simulated(&folders::root(), &folders::MACHINES) {
        Ok(simulated) => interpreted().into_iter().chain(simulated).collect(),
        Err(message) => panic!("{message}"),
    })
}

fuzz_target!(|bytes: &[u8]| {
    if let Some(wasm) = smith::module(bytes)
        && let Err(mismatch) = check(&wasm, subjects())
    {
        panic!("{mismatch}");
    }
});
