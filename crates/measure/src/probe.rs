//! Asking a module what it offers.

use crate::backends::reference;
use crate::error::MeasureError;
use crate::interface::{Interface, missing};
use crate::kinds::{INTERFACE, Kind};
use crate::pipeline;
use crate::plan;
use crate::shape::Kernel;
use crate::sizes;
use ciphermill_ir::{Module, Type};
use ciphermill_reference::Reference;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Larger than any cipher's context; catches a module whose function of that
/// name means something else.
const MAX_STATED: u64 = 1 << 24;

/// Read a module and ask it for its sizes; the module, its interface, and an
/// instance of it on the reference interpreter. A kernel is described by its manifest.
pub fn open(wasm: &[u8], kernel: Option<&Kernel>) -> Result<(Module, Interface, Reference), MeasureError> {
    let module = pipeline::load(wasm)?;
    let mut target = reference(wasm, plan::limit(0))?;
    let interface = Interface::probe(&module, &mut target, kernel)?;
    Ok((module, interface, target))
}

impl Interface {
    /// Read a module's exports and ask it for its sizes.
    fn probe(module: &Module, target: &mut Reference, kernel: Option<&Kernel>) -> Result<Interface, MeasureError> {
        let exports: BTreeSet<String> = module.exports.iter().map(|(name, _)| name.clone()).collect();
        let kind = Kind::of(&exports, kernel);
        check_types(module)?;
        if let Some(kernel) = kernel {
            check_kernel(module, kernel, &exports)?;
        }
        if !target.has_memory() {
            return Err(MeasureError::input(
                "the module exports no memory, so its buffers cannot be filled; export it, under any name",
            ));
        }
        let heap_base = exported(module, "__heap_base").ok_or_else(|| {
            MeasureError::input(
                "the module exports no global __heap_base, so there is no place for its buffers; \
                 link it with -Wl,--export=__heap_base",
            )
        })?;
        let heap_base = behind_stack(module, heap_base).unwrap_or(heap_base);
        let mut stated = |name: &str| -> Result<u32, MeasureError> {
            if !exports.contains(name) {
                return Err(missing(name, &exports));
            }
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
        let mut where_any = |any: bool, name: &str| if any { stated(name) } else { Ok(0) };
        let ctx_bytes = where_any(kind.has_context(), "cm_ctx_bytes")?;
        let block_bytes = match kernel {
            Some(kernel) => kernel.block_bytes,
            None => where_any(true, "cm_block_bytes")?,
        };
        let tag_bytes = where_any(kind.has_tag(), "cm_tag_bytes")?;
        let nonce_bytes = where_any(kind == Kind::Aead, "cm_nonce_bytes")?;
        let kernel = kernel.map(|k| Arc::new(k.clone()));
        Ok(Interface {
            kind,
            ctx_bytes,
            block_bytes,
            tag_bytes,
            nonce_bytes,
            kernel,
            heap_base,
            context_at: None,
            memory_start: 0,
            constants_end: sizes::constants(module).map_or(0, |(_, end)| end),
            memory_end: None,
            exports,
        })
    }
}

/// Alignment of the heap behind a module's data.
const HEAP_ALIGN: u32 = 16;

/// Where the C stack begins, if the linker was to say that and left a gap between it and constants that are all of the
/// module's data: these are in another memory then, and buffers lie in the gap.
fn behind_stack(module: &Module, heap_base: u32) -> Option<u32> {
    let (first, end) = sizes::constants(module)?;
    let stack = exported(module, "__stack_high")?;
    let nothing_else = heap_base <= end.next_multiple_of(HEAP_ALIGN) && module.data.iter().all(|d| d.readonly);
    (nothing_else && stack < first).then_some(stack)
}

/// What an exported global begins with.
fn exported(module: &Module, name: &str) -> Option<u32> {
    let found = module.exported_globals.iter().find(|(n, _)| n == name);
    found.map(|&(_, id)| module.globals[id].init as u32)
}

/// An export of the interface's name that cannot be called as the interface says.
fn check_types(module: &Module) -> Result<(), MeasureError> {
    for declared in INTERFACE {
        let Some(func) = module.export(declared.export) else { continue };
        let name = declared.export;
        let wanted = vec![Type::I32; declared.pointers + declared.numbers];
        let have = &module.funcs[func].sig.params;
        if *have != wanted {
            return Err(MeasureError::input(format!(
                "the module's {name} takes ({}); it must take ({}): pointers and lengths, as in ciphermill.h",
                types(have),
                types(&wanted),
            )));
        }
    }
    Ok(())
}

/// A kernel's function that is not there, or not as the manifest says.
fn check_kernel(module: &Module, kernel: &Kernel, exports: &BTreeSet<String>) -> Result<(), MeasureError> {
    let name = &kernel.function;
    let Some(func) = module.export(name) else {
        let found: Vec<&str> = exports.iter().map(String::as_str).collect();
        return Err(MeasureError::input(format!(
            "the module does not export {name}, which the manifest calls its kernel (it exports {}); is it defined in one \
             of the sources, and not static?",
            found.join(", ")
        )));
    };
    let have = &module.funcs[func].sig.params;
    if have.len() != kernel.parameters.len() || have.iter().any(|&ty| ty != Type::I32) {
        return Err(MeasureError::input(format!(
            "{name} takes ({}), and the manifest lists {} parameters; each is a pointer or a number of 32 bits",
            types(have),
            kernel.parameters.len()
        )));
    }
    Ok(())
}

fn types(list: &[Type]) -> String {
    list.iter().map(Type::to_string).collect::<Vec<_>>().join(", ")
}
