//! Where things stand in the source tree.

use std::path::{Path, PathBuf};

/// The machines every module runs on.
pub const MACHINES: [&str; 3] = ["rv32", "leon2", "rv32+zba+zbb+zbkb"];
/// Machines that some modules run on: their loops are pipelined in software,
/// which takes many times as long.
pub const SLOW_MACHINES: [&str; 2] = ["c6201", "c64x"];
/// One module in so many runs on those.
pub const SLOW_SHARE: u64 = 20;

/// The project's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where modules that once failed are kept.
pub fn regressions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions")
}
