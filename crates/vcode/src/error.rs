//! Why code could not be generated.

use thiserror::Error;

/// What stands in the way: the machine, the module, or a fault of ours.
#[derive(Clone, Debug, Error)]
pub enum CompileError {
    #[error(
        "the machine has no instruction, and machines/rules.toml no rule, for {operation} (module offset {loc:#x}); \
         add an instruction that means just that, or a compound of several (docs/machine-files.md)"
    )]
    NoInstruction { operation: String, loc: u32 },
    #[error("{0}")]
    Unsupported(String),
    /// A fault of the code generator, found by one of its checks.
    #[error("internal error of the code generator: {0}")]
    Internal(String),
}
