//! The runtime: what WebAssembly does in one operator and a machine in a loop.
//!
//! `memory.copy`, 64-bit division and their like are functions written in
//! WebAssembly's text format (`runtime.wat`), read by the same reader and
//! translated by the same translator as the user's module, and linked into it
//! when something asks for them. They are compiled, scheduled and simulated
//! like any other code, so they cost what they cost.
//!
//! Two things a user's module cannot say, the runtime module says like this:
//!
//! * **A trap of a given kind** is a call to an imported function of the module
//!   `trap`.
//! * **The system area** is memory 1. Its addresses are the machine's own, so
//!   the number of pages stands at [`ciphermill_ir::SYSTEM_BASE`].

use crate::error::LoadError;
use crate::sections::{self, Origin, Source};
use wasmparser::ExternalKind;

/// The runtime module in binary form, as the build script assembled it.
const BINARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runtime.wasm"));

/// The names of the 64-bit division functions, which the lowering of 64-bit
/// values on 32-bit machines calls. They are `(i64, i64) -> i64`, and trap
/// themselves.
pub const DIVISION: [&str; 4] = ["rt_div_u64", "rt_div_s64", "rt_rem_u64", "rt_rem_s64"];

/// The same for 32 bits, called on machines that have no division.
pub const DIVISION_32: [&str; 4] = ["rt_div_u32", "rt_div_s32", "rt_rem_u32", "rt_rem_s32"];

/// The runtime module as read, each time anew since validation uses it up.
pub(crate) fn source() -> Result<Source<'static>, LoadError> {
    sections::read(BINARY, Origin::Runtime)
}

/// Index, among all functions of the runtime module, of an exported one.
pub(crate) fn export(source: &Source<'_>, name: &str) -> Option<u32> {
    let export = source.exports.iter().find(|(n, kind, _)| n == name && *kind == ExternalKind::Func);
    export.map(|&(_, _, index)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("runtime.wat");

    #[test]
    fn the_runtime_is_valid_and_exports_the_divisions() {
        let source = source().expect("the runtime is valid");
        for name in DIVISION.into_iter().chain(DIVISION_32) {
            assert!(export(&source, name).is_some(), "{name}");
        }
    }

    /// What stands for a division must not need itself.
    #[test]
    fn the_runtime_never_divides_in_64_bits() {
        assert!(!TEXT.contains("i64.div") && !TEXT.contains("i64.rem"));
        let (_, narrow) = TEXT.split_once("32-bit division").expect("its heading");
        assert!(!narrow.contains("i32.div") && !narrow.contains("i32.rem"));
    }
}
