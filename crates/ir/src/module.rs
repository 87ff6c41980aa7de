//! A module: functions, linear memory, and the system area.
//!
//! # The system area
//!
//! WebAssembly keeps its globals, function table, memory size and passive
//! segments out of the linear memory. A machine has one address space, so the
//! loader lays them out from [`SYSTEM_BASE`] on and writes plain loads and
//! stores in [`crate::Space::System`] for them:
//!
//! | offset | content |
//! |---|---|
//! | 0 | current size of the linear memory in pages (the simulator's bound) |
//! | 4 | largest size in pages that `memory.grow` may reach |
//! | then | globals, 8 bytes each; then whatever the loader needs: table entries, passive segments, argument overflow areas |
//!
//! A store to offset 0 changes the bound at once, as a memory controller's
//! register would. A table entry is 8 bytes: the signature's number plus one
//! (0 for a null entry), then the function's code address.

use crate::func::Func;
use crate::ids::{FuncId, GlobalId, SigId};
use crate::ops::{Signature, Type};
use cranelift_entity::PrimaryMap;

/// Bytes in a page of linear memory.
pub const PAGE_BYTES: u64 = 65536;

/// Address of the system area; no linear memory reaches it.
pub const SYSTEM_BASE: u32 = 0xF000_0000;

#[derive(Clone, Debug)]
pub struct GlobalData {
    pub ty: Type,
    pub mutable: bool,
    /// Initial bits.
    pub init: u64,
    /// Byte offset of its slot in the system area.
    pub system_offset: u32,
    pub name: Option<String>,
}

/// The linear memory. `max_pages` is the declared limit, or what the loader
/// allows where none is declared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryDecl {
    pub min_pages: u32,
    pub max_pages: u32,
}

/// Bytes that stand in linear memory when the module starts.
#[derive(Clone, Debug)]
pub struct DataSegment {
    /// Address in linear memory; in bounds of `min_pages`.
    pub addr: u32,
    pub bytes: Vec<u8>,
    /// The module promises never to write here (a `.rodata` segment).
    pub readonly: bool,
    pub name: Option<String>,
}

/// A place in the system image that holds a function's code address.
#[derive(Clone, Copy, Debug)]
pub struct FuncRef {
    /// Byte offset of a 4-byte word in the system image.
    pub offset: u32,
    pub func: FuncId,
}

/// Initial content of the system area, at [`SYSTEM_BASE`].
#[derive(Clone, Debug, Default)]
pub struct SystemImage {
    pub bytes: Vec<u8>,
    pub func_refs: Vec<FuncRef>,
    /// Byte offset of a 4-byte word that holds the area's own address, where code computes addresses from it.
    pub own_address: Option<u32>,
}

/// A whole program. An out-of-bounds *active* segment or a trapping start
/// function is represented by code in `start`, not by an error.
#[derive(Clone, Default)]
pub struct Module {
    pub funcs: PrimaryMap<FuncId, Func>,
    pub sigs: PrimaryMap<SigId, Signature>,
    pub globals: PrimaryMap<GlobalId, GlobalData>,
    pub memory: MemoryDecl,
    pub data: Vec<DataSegment>,
    pub system: SystemImage,
    /// Exported functions by name, in the module's order.
    pub exports: Vec<(String, FuncId)>,
    /// Exported globals by name.
    pub exported_globals: Vec<(String, GlobalId)>,
    /// Runs before anything else, if present: no parameters, no results.
    pub start: Option<FuncId>,
}

impl Module {
    /// The exported function of that name.
    pub fn export(&self, name: &str) -> Option<FuncId> {
        self.exports.iter().find(|(n, _)| n == name).map(|&(_, f)| f)
    }
}
