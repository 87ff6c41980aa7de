//! Where things stand in the source tree.

use std::path::{Path, PathBuf};

/// The machines every module runs on.
pub const MACHINES: [&str; 3] = ["rv32", "leon2", "rv32+zba+zbb+zbkb"];

/// The project's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where modules that once failed are kept.
pub fn regressions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions")
}
