//! From WebAssembly to the intermediate representation.
//!
//! [`load`] takes any module of the integer subset (the MVP without floating
//! point, sign extension, bulk memory, multi-value, mutable globals) and gives
//! back what it means as an [`ciphermill_ir::Module`]. Any other byte string
//! gives a [`LoadError`] that names the place and the mend; none panics.
//!
//! The steps, each in its own file: [`names`] reads the name section, for the
//! messages' sake; [`sections`] reads and validates everything but the function
//! bodies; [`translate`] turns each body, as it is validated, into a graph of
//! blocks ([`translator`] holds what is under way, [`control`] has the frames and
//! branches, [`numeric`] the computing operators, [`bulk`] those that take several
//! operations), with [`ssa`] replacing local variables by values; and [`link`] gives
//! out the system area and pulls in the functions of the [`runtime`] that something
//! asked for.
//!
//! # Instantiation
//!
//! WebAssembly copies active segments when a module is instantiated, elements
//! first, and traps at the first that does not fit. Offsets are constants, so
//! whether that happens is known here. If it does, nothing the module computes
//! can ever be observed, and the module's start function is one that traps.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod bulk;
mod control;
mod error;
mod link;
mod names;
mod numeric;
mod runtime;
mod sections;
mod ssa;
mod translate;
mod translator;

pub use error::LoadError;
pub use sections::{MAX_MEMORY_PAGES, MAX_TABLE_ENTRIES};

use ciphermill_ir::{DataSegment, Func, FuncId, GlobalId, Module, PAGE_BYTES, Signature, Terminator, TrapCode};
use link::Linker;
use names::Names;
use sections::{Body, Origin, Source};
use translator::Context;
use wasmparser::{ExternalKind, FuncValidatorAllocations};

/// Read, validate and translate a module.
///
/// # Errors
///
/// When the bytes are not a WebAssembly module, or one outside the integer
/// subset: see [`LoadError`].
pub fn load(wasm: &[u8]) -> Result<Module, LoadError> {
    if let Some(foreign) = LoadError::foreign(wasm) {
        return Err(foreign);
    }
    let names = names::read(wasm);
    let mut source = sections::read(wasm, Origin::User)?;
    let mut runtime = runtime::source()?;
    let bodies = std::mem::take(&mut source.bodies);
    let mut runtime_bodies: Vec<Option<Body<'_>>> = std::mem::take(&mut runtime.bodies).into_iter().map(Some).collect();

    let mut linker = Linker::new(&source);
    declare(&mut linker, &source, &bodies, &names)?;
    name_globals(&mut linker, &source, &names);
    let trap = place_segments(&mut linker, &source, &names);

    let mut allocations = FuncValidatorAllocations::default();
    for (i, body) in bodies.into_iter().enumerate() {
        let id = FuncId::from_u32(i as u32);
        let mut cx = Context {
            source: &source,
            origin: Origin::User,
            runtime: &runtime,
            linker: &mut linker,
            allocations: &mut allocations,
        };
        translate_into(&mut cx, id, body)?;
    }
    while let Some((index, id)) = linker.wanted.pop() {
        let mut cx = Context {
            source: &runtime,
            origin: Origin::Runtime,
            runtime: &runtime,
            linker: &mut linker,
            allocations: &mut allocations,
        };
        let body = runtime_bodies.get_mut(index as usize - runtime.traps.len()).and_then(Option::take);
        if let Some(body) = body {
            translate_into(&mut cx, id, body)?;
        }
    }

    for (name, kind, index) in &source.exports {
        match kind {
            ExternalKind::Func => linker.module.exports.push((name.clone(), FuncId::from_u32(*index))),
            ExternalKind::Global => {
                linker.module.exported_globals.push((name.clone(), GlobalId::from_u32(*index)));
            }
            _ => {}
        }
    }
    linker.module.start = source.start.map(FuncId::from_u32);
    if let Some(code) = trap {
        linker.module.start = Some(trapping_start(&mut linker, code));
    }
    Ok(linker.finish())
}

fn translate_into(cx: &mut Context<'_, '_>, id: FuncId, body: Body<'_>) -> Result<(), LoadError> {
    let Func { name, sig, .. } = &cx.linker.module.funcs[id];
    let (name, sig) = (name.clone(), sig.clone());
    let func = translate::translate(cx, body, &name, sig)?;
    cx.linker.module.funcs[id] = func;
    Ok(())
}

/// Give every function its place, name and signature.
fn declare(linker: &mut Linker, source: &Source<'_>, bodies: &[Body<'_>], names: &Names) -> Result<(), LoadError> {
    // The lowering finds these by name, so nobody else may have them.
    for name in runtime::DIVISION.into_iter().chain(runtime::DIVISION_32) {
        linker.unique.give(name);
    }
    for (i, &ty) in source.funcs.iter().enumerate() {
        let exported = source.exports.iter().find(|&&(_, kind, index)| kind == ExternalKind::Func && index == i as u32);
        let wanted = match (names.funcs.get(&(i as u32)), exported) {
            (Some(name), _) | (None, Some((name, ..))) => name.clone(),
            (None, None) => format!("func{i}"),
        };
        let name = linker.unique.give(&wanted);
        let sig = source.types[ty as usize].clone().map_err(|reason| LoadError::Operator {
            function: name.clone(),
            offset: bodies.get(i).map_or(0, |b| b.body.range().start),
            what: "a parameter or result".into(),
            reason,
        })?;
        linker.module.funcs.push(Func::new(name, sig));
    }
    Ok(())
}

fn name_globals(linker: &mut Linker, source: &Source<'_>, names: &Names) {
    let exported = source.exports.iter().filter(|(_, kind, _)| *kind == ExternalKind::Global);
    for (name, _, index) in exported {
        linker.module.globals[GlobalId::from_u32(*index)].name = Some(name.clone());
    }
    for (&index, name) in &names.globals {
        if (index as usize) < source.globals.len() {
            linker.module.globals[GlobalId::from_u32(index)].name = Some(name.clone());
        }
    }
}

/// Put the active segments in place; the trap, if one does not fit.
fn place_segments(linker: &mut Linker, source: &Source<'_>, names: &Names) -> Option<TrapCode> {
    for element in &source.elements {
        let Some(first) = element.active else { continue };
        if u64::from(first) + element.items.len() as u64 > u64::from(linker.table.entries) {
            return Some(TrapCode::TableOutOfBounds);
        }
        for (i, &item) in element.items.iter().enumerate() {
            linker.write_entry(linker.table.address + 8 * (first + i as u32), item);
        }
    }
    let memory_bytes = u64::from(source.memory.min_pages) * PAGE_BYTES;
    for (i, data) in source.data.iter().enumerate() {
        let Some(addr) = data.active else { continue };
        if u64::from(addr) + data.bytes.len() as u64 > memory_bytes {
            return Some(TrapCode::MemoryOutOfBounds);
        }
        if data.bytes.is_empty() {
            continue;
        }
        let name = names.data.get(&(i as u32)).cloned();
        let readonly = name.as_deref().is_some_and(|name| name.starts_with(".rodata"));
        linker.module.data.push(DataSegment { addr, bytes: data.bytes.to_vec(), readonly, name });
    }
    None
}

fn trapping_start(linker: &mut Linker, code: TrapCode) -> FuncId {
    let mut func = Func::new(linker.unique.give("instantiation_trap"), Signature::default());
    func.blocks[func.entry].term = Terminator::Trap(code);
    linker.module.funcs.push(func)
}
