//! Putting the translated module together.
//!
//! The linker owns the [`Module`] being made. It gives out places in the system
//! area (see `ciphermill_ir::module` for its layout), numbers signatures, and
//! adds runtime functions when a translation first asks for one. Passive
//! segments get a place only when an operator names them:
//!
//! | what | content |
//! |---|---|
//! | passive data segment | word: length in bytes, 0 once dropped; elsewhere its bytes |
//! | passive element segment | word: length in entries, 0 once dropped; elsewhere its entries, as in the table |
//!
//! A segment that was active has length 0 from the start: instantiation copies
//! it and drops it.

use crate::names::Unique;
use crate::sections::Source;
use ciphermill_ir::{Func, FuncId, FuncRef, GlobalData, GlobalId, MemoryDecl, Module, SYSTEM_BASE, SigId, Signature};
use std::collections::{BTreeMap, HashMap};

/// Where a passive segment stands: addresses, not offsets.
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    pub length_at: u32,
    pub content_at: u32,
}

/// Where the table stands.
#[derive(Clone, Copy, Default)]
pub(crate) struct Table {
    pub address: u32,
    pub entries: u32,
}

pub(crate) struct Linker {
    pub module: Module,
    pub table: Table,
    pub unique: Unique,
    sigs: HashMap<Signature, SigId>,
    data: BTreeMap<u32, Segment>,
    elements: BTreeMap<u32, Segment>,
    /// Offsets of code addresses in the system area.
    func_refs: BTreeMap<u32, FuncId>,
    /// Runtime functions asked for: index in the runtime module, and here.
    runtime: BTreeMap<u32, FuncId>,
    /// Those of them that still have no body.
    pub wanted: Vec<(u32, FuncId)>,
}

impl Linker {
    /// A module with the memory, the globals and an all-null table.
    pub fn new(source: &Source<'_>) -> Linker {
        let mut linker = Linker {
            module: Module { memory: source.memory, ..Module::default() },
            table: Table::default(),
            unique: Unique::default(),
            sigs: HashMap::new(),
            data: BTreeMap::new(),
            elements: BTreeMap::new(),
            func_refs: BTreeMap::new(),
            runtime: BTreeMap::new(),
            wanted: Vec::new(),
        };
        let MemoryDecl { min_pages, max_pages } = source.memory;
        let bytes = &mut linker.module.system.bytes;
        bytes.extend(min_pages.to_le_bytes());
        bytes.extend(max_pages.to_le_bytes());
        for global in &source.globals {
            let bytes = &mut linker.module.system.bytes;
            let system_offset = bytes.len() as u32;
            bytes.extend(global.init.to_le_bytes());
            let (ty, mutable, init) = (global.ty, global.mutable, global.init);
            linker.module.globals.push(GlobalData { ty, mutable, init, system_offset, name: None });
        }
        let entries = source.table_entries.unwrap_or(0);
        linker.table = Table { address: linker.reserve(entries as usize * 8), entries };
        linker
    }

    /// Address of so many fresh zero bytes of the system area, 8-aligned.
    fn reserve(&mut self, bytes: usize) -> u32 {
        let system = &mut self.module.system.bytes;
        let offset = system.len().next_multiple_of(8);
        system.resize(offset + bytes, 0);
        SYSTEM_BASE + offset as u32
    }

    fn write(&mut self, address: u32, bytes: &[u8]) {
        let offset = (address - SYSTEM_BASE) as usize;
        self.module.system.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Write a table entry for a function, or a null one.
    pub fn write_entry(&mut self, address: u32, func: Option<u32>) {
        let Some(func) = func.map(FuncId::from_u32) else {
            self.func_refs.remove(&(address + 4 - SYSTEM_BASE));
            return self.write(address, &[0; 8]);
        };
        let sig = self.signature(&self.module.funcs[func].sig.clone());
        self.write(address, &(sig.as_u32() + 1).to_le_bytes());
        self.func_refs.insert(address + 4 - SYSTEM_BASE, func);
    }

    pub fn signature(&mut self, sig: &Signature) -> SigId {
        match self.sigs.get(sig) {
            Some(&id) => id,
            None => {
                let id = self.module.sigs.push(sig.clone());
                self.sigs.insert(sig.clone(), id);
                id
            }
        }
    }

    /// The place of a data segment, for an operator that names it.
    pub fn data_segment(&mut self, source: &Source<'_>, index: u32) -> Segment {
        if let Some(&segment) = self.data.get(&index) {
            return segment;
        }
        let data = &source.data[index as usize];
        let bytes = if data.active.is_some() { &[] } else { data.bytes };
        let segment = Segment { length_at: self.reserve(8), content_at: self.reserve(bytes.len()) };
        self.write(segment.length_at, &(bytes.len() as u32).to_le_bytes());
        self.write(segment.content_at, bytes);
        self.data.insert(index, segment);
        segment
    }

    /// The place of an element segment, for an operator that names it.
    pub fn element_segment(&mut self, source: &Source<'_>, index: u32) -> Segment {
        if let Some(&segment) = self.elements.get(&index) {
            return segment;
        }
        let element = &source.elements[index as usize];
        let items = if element.passive { &element.items[..] } else { &[] };
        let segment = Segment { length_at: self.reserve(8), content_at: self.reserve(items.len() * 8) };
        self.write(segment.length_at, &(items.len() as u32).to_le_bytes());
        for (i, &item) in items.iter().enumerate() {
            self.write_entry(segment.content_at + 8 * i as u32, item);
        }
        self.elements.insert(index, segment);
        segment
    }

    /// The function that stands for function `index` of the runtime module.
    pub fn runtime(&mut self, runtime: &Source<'_>, index: u32, name: &str) -> FuncId {
        if let Some(&id) = self.runtime.get(&index) {
            return id;
        }
        let sig = runtime_signature(runtime, index);
        let id = self.module.funcs.push(Func::new(name, sig));
        self.runtime.insert(index, id);
        self.wanted.push((index, id));
        id
    }

    /// The module, with the table's code addresses noted.
    pub fn finish(mut self) -> Module {
        let refs = self.func_refs.into_iter().map(|(offset, func)| FuncRef { offset, func });
        self.module.system.func_refs = refs.collect();
        self.module
    }

    pub fn global_type(&self, index: u32) -> (GlobalId, ciphermill_ir::Type) {
        let id = GlobalId::from_u32(index);
        (id, self.module.globals[id].ty)
    }
}

/// The signature of a runtime function; all of them are in the subset.
fn runtime_signature(runtime: &Source<'_>, index: u32) -> Signature {
    let ty = (index as usize).checked_sub(runtime.traps.len()).map(|body| runtime.funcs[body] as usize);
    ty.and_then(|ty| runtime.types[ty].clone().ok()).unwrap_or_default()
}
