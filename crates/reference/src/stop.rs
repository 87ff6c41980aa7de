//! How a run on the reference ends other than with results, and what a module may ask for.

use wasmi::errors::{ErrorKind, InstantiationError, MemoryError, TableError};

/// The most bytes a linear memory can have here: 1 GiB.
pub const MAX_MEMORY_BYTES: usize = 1 << 30;

/// The traps of the WebAssembly specification.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TrapCode {
    Unreachable,
    MemoryOutOfBounds,
    TableOutOfBounds,
    IndirectCallToNull,
    BadSignature,
    IntegerOverflow,
    IntegerDivisionByZero,
    StackOverflow,
}

impl std::fmt::Display for TrapCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TrapCode::Unreachable => {
                "an unreachable place was reached (abort, a failed assertion, undefined behaviour)"
            }
            TrapCode::MemoryOutOfBounds => "an access outside of memory",
            TrapCode::TableOutOfBounds => "an access outside of the table of functions",
            TrapCode::IndirectCallToNull => "a call through an empty place of the table of functions (a null pointer?)",
            TrapCode::BadSignature => "a call through a pointer to a function of another type",
            TrapCode::IntegerOverflow => "a quotient that does not fit",
            TrapCode::IntegerDivisionByZero => "a division by zero",
            TrapCode::StackOverflow => "calls nested too deep (endless recursion?)",
        })
    }
}

/// Why a call gave no results.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Stop {
    #[error("trap: {0}")]
    Trap(TrapCode),
    /// The fuel given to [`crate::Reference::with_fuel`] is used up.
    #[error("out of fuel")]
    OutOfFuel,
    /// The call cannot be made: the message names what is wrong with it.
    #[error("{0}")]
    BadCall(String),
    /// The interpreter gave up for a reason of its own.
    #[error("the reference interpreter stopped: {0}")]
    Other(String),
}

/// Why a module cannot be run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReferenceError {
    /// Not a module the interpreter takes.
    #[error("the reference interpreter refuses the module: {0}")]
    Invalid(String),
    /// A segment did not fit, or the start function stopped.
    #[error("the module stopped when it was instantiated: {0}")]
    Stopped(Stop),
}

/// What an error of the interpreter means.
pub(crate) fn stop(error: &wasmi::Error) -> Stop {
    // Bulk operators report some traps as errors of the table or memory.
    match error.kind() {
        ErrorKind::Instantiation(InstantiationError::ElementSegmentDoesNotFit { .. })
        | ErrorKind::Table(TableError::CopyOutOfBounds | TableError::InitOutOfBounds) => {
            return Stop::Trap(TrapCode::TableOutOfBounds);
        }
        ErrorKind::Memory(MemoryError::OutOfBoundsAccess) => return Stop::Trap(TrapCode::MemoryOutOfBounds),
        ErrorKind::Table(TableError::OutOfFuel { .. }) | ErrorKind::Memory(MemoryError::OutOfFuel { .. }) => {
            return Stop::OutOfFuel;
        }
        _ => {}
    }
    use wasmi::TrapCode as T;
    Stop::Trap(match error.as_trap_code() {
        Some(T::UnreachableCodeReached) => TrapCode::Unreachable,
        Some(T::MemoryOutOfBounds) => TrapCode::MemoryOutOfBounds,
        Some(T::TableOutOfBounds) => TrapCode::TableOutOfBounds,
        Some(T::IndirectCallToNull) => TrapCode::IndirectCallToNull,
        Some(T::BadSignature) => TrapCode::BadSignature,
        Some(T::IntegerOverflow) => TrapCode::IntegerOverflow,
        Some(T::IntegerDivisionByZero) => TrapCode::IntegerDivisionByZero,
        Some(T::StackOverflow) => TrapCode::StackOverflow,
        Some(T::OutOfFuel) => return Stop::OutOfFuel,
        _ => return Stop::Other(error.to_string()),
    })
}
