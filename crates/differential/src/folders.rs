//! Where things stand in the source tree.

use std::path::{Path, PathBuf};

/// The machines that modules run on: all of them, or behind a slash one of so
/// many, where most of what a machine has to show is shown by another, or where
/// loops are pipelined in software, which takes many times as long.
pub const MACHINES: [&str; 14] = [
    "rv32",
    "leon2",
    "rv32+zba+zbb+zbkb",
    "rv64/4",
    "core2/4",
    "zen5/4",
    "x86_64/4",
    "cortex-m0plus/4",
    "cortex-m4/4",
    "e31/8",
    "avr/4",
    "c6201/40",
    "c64x/40",
    "epic/20",
];

/// The project's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where modules that once failed are kept.
pub fn regressions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions")
}
