//! Asking a module what it offers.

use crate::backends::reference;
use crate::error::MeasureError;
use crate::interface::{Interface, Kind, missing};
use crate::pipeline;
use crate::plan;
use ciphermill_ir::{Module, Type};
use ciphermill_reference::Reference;
use std::collections::BTreeSet;

/// Larger than any cipher's context; catches a module whose function of that
/// name means something else.
const MAX_STATED: u64 = 1 << 24;

/// Read a module and ask it for its sizes; the module, its interface, and an
/// instance of it on the reference interpreter.
pub fn open(wasm: &[u8]) -> Result<(Module, Interface, Reference), MeasureError> {
    let module = pipeline::load(wasm)?;
    let mut target = reference(wasm, plan::limit(0))?;
    let interface = Interface::probe(&module, &mut target)?;
    Ok((module, interface, target))
}

impl Interface {
    /// Read a module's exports and ask it for its sizes.
    fn probe(module: &Module, target: &mut Reference) -> Result<Interface, MeasureError> {
        let exports: BTreeSet<String> = module.exports.iter().map(|(name, _)| name.clone()).collect();
        let kind = if exports.contains("cm_keystream") { Kind::Stream } else { Kind::Block };
        for name in ["cm_ctx_bytes", "cm_block_bytes"] {
            if !exports.contains(name) {
                return Err(missing(name, &exports));
            }
        }
        check_types(module)?;
        if !target.has_memory() {
            return Err(MeasureError::input(
                "the module exports no memory, so its buffers cannot be filled; export it, under any name",
            ));
        }
        let heap_base = module
            .exported_globals
            .iter()
            .find(|(name, _)| name == "__heap_base")
            .map(|&(_, id)| module.globals[id].init as u32)
            .ok_or_else(|| {
                MeasureError::input(
                    "the module exports no global __heap_base, so there is no place for its buffers; \
                     link it with -Wl,--export=__heap_base",
                )
            })?;
        let mut stated = |name: &str| -> Result<u32, MeasureError> {
            let results = target.call(name, &[]).map_err(|stop| {
                MeasureError::input(format!("{name}() stopped: {stop}; it returns a size and does nothing else"))
            })?;
            match results[..] {
                [size] if (1..=MAX_STATED).contains(&size) => Ok(size as u32),
                _ => Err(MeasureError::input(format!(
                    "{name}() returned {results:?}; it must return a size of 1 to {MAX_STATED} bytes"
                ))),
            }
        };
        let ctx_bytes = stated("cm_ctx_bytes")?;
        let block_bytes = stated("cm_block_bytes")?;
        Ok(Interface { kind, ctx_bytes, block_bytes, heap_base, context_at: None, memory_end: None, exports })
    }
}

/// How many arguments, all of type i32, each function of the interface takes.
const PARAMETERS: [(&str, usize); 10] = [
    ("cm_ctx_bytes", 0),
    ("cm_block_bytes", 0),
    ("cm_keysetup", 3),
    ("cm_keysetup_decrypt", 3),
    ("cm_ivsetup", 3),
    ("cm_encrypt_blocks", 4),
    ("cm_decrypt_blocks", 4),
    ("cm_encrypt_feedback", 4),
    ("cm_decrypt_feedback", 4),
    ("cm_keystream", 4),
];

/// An export of the interface's name that cannot be called as the interface says.
fn check_types(module: &Module) -> Result<(), MeasureError> {
    for (name, count) in PARAMETERS {
        let Some(func) = module.export(name) else { continue };
        let have = &module.funcs[func].sig.params;
        if *have != vec![Type::I32; count] {
            let types = |list: &[Type]| list.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
            return Err(MeasureError::input(format!(
                "the module's {name} takes ({}); it must take ({}): pointers and lengths, as in ciphermill.h",
                types(have),
                types(&vec![Type::I32; count]),
            )));
        }
    }
    Ok(())
}
