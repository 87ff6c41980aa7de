//! What can be wrong with a module, in words that name the place and the mend.
//!
//! A module is refused for one of two reasons: it is not WebAssembly, or it is
//! WebAssembly that this system does not run. The second kind is by far the
//! likelier for a person who compiles C, so its messages say which operator
//! stood where and what to do about it, most often a compiler flag.

use wasmparser::Operator;

/// Why a module was not loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The bytes are not a valid WebAssembly module.
    #[error("not a valid WebAssembly module: {message} at offset {offset:#x}")]
    Invalid { message: String, offset: u64 },
    /// The bytes begin as no module does.
    #[error("not a valid WebAssembly module: {0}")]
    Foreign(&'static str),
    /// The body of a function is not valid WebAssembly.
    #[error("function \"{function}\" at offset {offset:#x}: {message}")]
    InvalidFunction { function: String, message: String, offset: u64 },
    /// A valid operator (or type of a local, parameter or result) outside the
    /// integer subset.
    #[error("function \"{function}\" at offset {offset:#x}: {what} {reason}")]
    Operator { function: String, offset: u64, what: String, reason: &'static str },
    /// A valid module that uses something outside the supported subset.
    #[error("at offset {offset:#x}: {message}")]
    Unsupported { message: String, offset: u64 },
    /// The module imports something.
    #[error("the module imports {kind} \"{module}\".\"{name}\", and a cipher must be self-contained: {mend}")]
    Import { kind: &'static str, module: String, name: String, mend: &'static str },
}

impl LoadError {
    /// What bytes are that do not begin with the mark of a module, if they do not.
    pub(crate) fn foreign(bytes: &[u8]) -> Option<LoadError> {
        let text = bytes.trim_ascii_start();
        if bytes.is_empty() {
            Some(LoadError::Foreign("the file is empty"))
        } else if text.starts_with(b"(module") || text.starts_with(b";;") || text.starts_with(b"(;") {
            Some(LoadError::Foreign("this is the text format; assemble it, for instance with wat2wasm"))
        } else if bytes.len() >= 4 && !bytes.starts_with(b"\0asm") {
            Some(LoadError::Foreign(
                "it does not begin with the bytes 00 61 73 6d; give what a compiler or linker for wasm32 wrote",
            ))
        } else if bytes.len() >= 8 && bytes[4] != 1 && bytes[6..8] == [0, 0] {
            Some(LoadError::Foreign("it is of another version of the binary format than 1; compile for wasm32"))
        } else {
            None
        }
    }
}

impl From<wasmparser::Error> for LoadError {
    fn from(e: wasmparser::Error) -> LoadError {
        LoadError::Invalid { message: e.message().to_string(), offset: e.offset() }
    }
}

pub(crate) const FLOAT: &str = "is a floating-point operator; ciphermill takes integer code only";
pub(crate) const FLOAT_TYPE: &str = "is of a floating-point type; ciphermill takes integer code only";
pub(crate) const VECTOR_TYPE: &str = "is of a vector type; compile without -msimd128";
pub(crate) const REFERENCE_TYPE: &str = "is of a reference type; ciphermill takes integer code only";

macro_rules! define_describe {
    ($(@$proposal:ident $op:ident $({ $($payload:tt)* })? => $visit:ident ($($ann:tt)*))*) => {
        /// The proposal an operator comes from and the name of its visitor.
        fn describe(op: &Operator<'_>) -> (&'static str, &'static str) {
            match op {
                $(Operator::$op { .. } => (stringify!($proposal), stringify!($visit)),)*
                _ => ("unknown", "visit_unknown"),
            }
        }
    };
}
wasmparser::for_each_operator!(define_describe);

/// The operator's name in the text format (`i32.add`, `br_table`).
pub(crate) fn mnemonic(op: &Operator<'_>) -> String {
    const FAMILIES: [&str; 22] = [
        "i32", "i64", "f32", "f64", "v128", "i8x16", "i16x8", "i32x4", "i64x2", "f32x4", "f64x2", "local", "global",
        "memory", "table", "data", "elem", "ref", "struct", "array", "i31", "atomic",
    ];
    let name = describe(op).1.trim_start_matches("visit_");
    match name.split_once('_') {
        Some((family, rest)) if FAMILIES.contains(&family) => {
            let rest = match rest.strip_prefix("atomic_") {
                Some(atomic) => format!("atomic.{}", atomic.replacen("rmw_", "rmw.", 1)),
                None => rest.to_string(),
            };
            format!("{family}.{rest}")
        }
        _ => name.to_string(),
    }
}

/// Why an operator is outside the subset, to follow its name in a sentence.
pub(crate) fn refusal(op: &Operator<'_>) -> &'static str {
    let (proposal, visit) = describe(op);
    match proposal {
        "simd" | "relaxed_simd" => "is a vector operator; compile without -msimd128",
        _ if visit.contains("f32") || visit.contains("f64") => FLOAT,
        "threads" | "shared_everything_threads" => "is an operator for threads; compile without -matomics and -pthread",
        "tail_call" => "is a tail call; compile without -mtail-call",
        "exceptions" | "legacy_exceptions" => "is an exception operator; compile with -fno-exceptions",
        "reference_types" => "is an operator on references; compile without -mreference-types",
        "wide_arithmetic" => "is a wide-arithmetic operator; compile without -mwide-arithmetic",
        "gc" | "function_references" | "custom_descriptors" => {
            "is an operator on managed references; ciphermill takes integer code only"
        }
        _ => "is outside the integer subset of WebAssembly that ciphermill takes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_module_is_called_what_it_is() {
        let said = |bytes: &[u8]| LoadError::foreign(bytes).map(|e| e.to_string()).unwrap_or_default();
        assert!(said(b"").contains("empty"));
        assert!(said(b"\n (module (memory 1))").contains("wat2wasm"));
        assert!(said(b"\x7fELF\x02\x01\x01").contains("00 61 73 6d"));
        assert!(said(b"\0asm\x02\0\0\0").contains("version"));
        assert!(said(b"\0asm\x0d\0\x01\0").is_empty(), "a component has its own message");
        assert!(said(b"\0asm\x01\0\0\0").is_empty());
    }

    #[test]
    fn names_are_those_of_the_text_format() {
        let names = [
            (Operator::I32Add, "i32.add"),
            (Operator::F32DemoteF64, "f32.demote_f64"),
            (Operator::I64TruncSatF32U, "i64.trunc_sat_f32_u"),
            (Operator::BrTable { targets: br_table() }, "br_table"),
            (Operator::CallIndirect { type_index: 0, table_index: 0 }, "call_indirect"),
            (Operator::MemoryFill { mem: 0 }, "memory.fill"),
            (Operator::RefFunc { function_index: 0 }, "ref.func"),
        ];
        for (op, name) in names {
            assert_eq!(mnemonic(&op), name);
        }
    }

    fn br_table() -> wasmparser::BrTable<'static> {
        let mut reader = wasmparser::OperatorsReader::new(wasmparser::BinaryReader::new(&[0x0e, 0, 0], 0));
        match reader.read() {
            Ok(Operator::BrTable { targets }) => targets,
            other => panic!("not a br_table: {other:?}"),
        }
    }
}
