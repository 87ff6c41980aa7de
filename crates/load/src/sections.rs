//! Reading and validating everything of a module but its function bodies.
//!
//! Validation is `wasmparser`'s, with every proposal it knows switched on: what
//! is not in our subset is refused by *this* crate, when it is met in something
//! the module uses, with a message that names the function and the operator.
//! (A validator with the proposals off would stop at the type section and know
//! neither.) Whatever follows is a list of what is allowed, so a proposal that
//! `wasmparser` learns later is refused and not mistranslated.
//!
//! The same reader reads the runtime module (see [`crate::runtime`]), which may
//! do two things that others may not: import traps, and have a second memory.

use crate::error::LoadError;
use ciphermill_ir::{MemoryDecl, Signature, TrapCode, Type};
use wasmparser::{
    CompositeInnerType, ConstExpr, DataKind, ElementItems, ElementKind, Encoding, ExternalKind, FuncToValidate,
    FunctionBody, Operator, Parser, Payload, RefType, TypeRef, ValType, ValidPayload, Validator, ValidatorResources,
    WasmFeatures,
};

/// Largest linear memory in pages: 1 GiB. The rest of a 32-bit machine's
/// addresses hold code, system area and stack.
pub const MAX_MEMORY_PAGES: u32 = 16384;
/// Largest function table in entries.
pub const MAX_TABLE_ENTRIES: u32 = 1 << 20;
/// Most instructions' worth of code in one module, in bytes.
const MAX_CODE_BYTES: u64 = 64 << 20;

/// A function type, or the reason the module may not use it.
pub(crate) type FuncType = Result<Signature, &'static str>;

pub(crate) struct Global {
    pub ty: Type,
    pub mutable: bool,
    pub init: u64,
}

pub(crate) struct Element {
    /// Entry in the table an active segment starts at; None for a passive or
    /// declared one.
    pub active: Option<u32>,
    pub passive: bool,
    /// Function indices; None for null.
    pub items: Vec<Option<u32>>,
}

pub(crate) struct Data<'a> {
    /// Address an active segment starts at.
    pub active: Option<u32>,
    pub bytes: &'a [u8],
}

pub(crate) struct Body<'a> {
    pub validate: FuncToValidate<ValidatorResources>,
    pub body: FunctionBody<'a>,
}

/// A module as it was read: indices are the module's own.
#[derive(Default)]
pub(crate) struct Source<'a> {
    pub types: Vec<FuncType>,
    /// What imported functions mean; only the runtime module has any.
    pub traps: Vec<TrapCode>,
    /// Type index of each function that has a body.
    pub funcs: Vec<u32>,
    pub bodies: Vec<Body<'a>>,
    pub memory: MemoryDecl,
    pub table_entries: Option<u32>,
    pub globals: Vec<Global>,
    pub exports: Vec<(String, ExternalKind, u32)>,
    pub start: Option<u32>,
    pub elements: Vec<Element>,
    pub data: Vec<Data<'a>>,
}

/// Whose module is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    User,
    Runtime,
}

pub(crate) fn value_type(ty: ValType) -> Result<Type, &'static str> {
    match ty {
        ValType::I32 => Ok(Type::I32),
        ValType::I64 => Ok(Type::I64),
        ValType::F32 | ValType::F64 => Err(crate::error::FLOAT_TYPE),
        ValType::V128 => Err(crate::error::VECTOR_TYPE),
        ValType::Ref(_) => Err(crate::error::REFERENCE_TYPE),
    }
}

fn unsupported<T>(offset: u64, message: impl Into<String>) -> Result<T, LoadError> {
    Err(LoadError::Unsupported { message: message.into(), offset })
}

pub(crate) fn read(wasm: &[u8], origin: Origin) -> Result<Source<'_>, LoadError> {
    let mut source = Source::default();
    let mut validator = Validator::new_with_features(WasmFeatures::default());
    let mut code_bytes = 0;
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload?;
        if let Payload::Version { encoding: Encoding::Component, range, .. } = &payload {
            return unsupported(
                range.start,
                "this is a WebAssembly component; give the core module inside it (wasm32-freestanding)",
            );
        }
        match validator.payload(&payload)? {
            ValidPayload::Func(validate, body) => {
                code_bytes += body.range().end - body.range().start;
                if code_bytes > MAX_CODE_BYTES {
                    return unsupported(body.range().start, "the module's code is larger than 64 MiB");
                }
                source.bodies.push(Body { validate, body });
                continue;
            }
            ValidPayload::Parser(_) => return unsupported(0, "the module contains another module"),
            ValidPayload::Ok | ValidPayload::End(_) => {}
        }
        source.section(payload, origin)?;
    }
    Ok(source)
}

impl<'a> Source<'a> {
    fn section(&mut self, payload: Payload<'a>, origin: Origin) -> Result<(), LoadError> {
        match payload {
            Payload::TypeSection(reader) => {
                for group in reader {
                    let group = group?;
                    let plain = !group.is_explicit_rec_group();
                    self.types.extend(group.types().map(|ty| func_type(ty, plain)));
                }
            }
            Payload::ImportSection(reader) => {
                for import in reader.into_imports() {
                    let import = import?;
                    match trap_import(&import).filter(|_| origin == Origin::Runtime) {
                        Some(code) => self.traps.push(code),
                        None => return Err(refuse_import(&import)),
                    }
                }
            }
            Payload::FunctionSection(reader) => {
                for ty in reader {
                    self.funcs.push(ty?);
                }
            }
            Payload::TableSection(reader) => {
                for entry in reader.into_iter_with_offsets() {
                    let (offset, table) = entry?;
                    let plain = matches!(table.init, wasmparser::TableInit::RefNull);
                    if self.table_entries.is_some() {
                        return unsupported(offset, "the module has more than one table");
                    }
                    if table.ty.element_type != RefType::FUNCREF || !plain || table.ty.table64 || table.ty.shared {
                        return unsupported(offset, "the table is not a plain table of functions (funcref)");
                    }
                    let entries = u32::try_from(table.ty.initial).unwrap_or(u32::MAX);
                    if entries > MAX_TABLE_ENTRIES {
                        let message = format!("the table has {entries} entries; at most {MAX_TABLE_ENTRIES} work");
                        return unsupported(offset, message);
                    }
                    self.table_entries = Some(entries);
                }
            }
            Payload::MemorySection(reader) => {
                for (i, entry) in reader.into_iter_with_offsets().enumerate() {
                    let (offset, memory) = entry?;
                    if i > 0 && origin == Origin::Runtime {
                        continue;
                    }
                    if i > 0 {
                        return unsupported(offset, "the module has more than one memory; link it with one");
                    }
                    self.memory = memory_decl(memory, offset)?;
                }
            }
            Payload::TagSection(reader) => {
                let offset = reader.range().start;
                return unsupported(offset, "the module declares exceptions; compile with -fno-exceptions");
            }
            Payload::GlobalSection(reader) => {
                for entry in reader.into_iter_with_offsets() {
                    let (offset, global) = entry?;
                    let number = self.globals.len();
                    let ty = match value_type(global.ty.content_type) {
                        Ok(ty) if !global.ty.shared => ty,
                        Ok(_) => return unsupported(offset, format!("global {number} is shared between threads")),
                        Err(reason) => return unsupported(offset, format!("global {number} {reason}")),
                    };
                    let init = self.constant(&global.init_expr)?;
                    self.globals.push(Global { ty, mutable: global.ty.mutable, init });
                }
            }
            Payload::ExportSection(reader) => {
                for export in reader {
                    let export = export?;
                    self.exports.push((export.name.to_string(), export.kind, export.index));
                }
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(reader) => {
                for element in reader {
                    let element = self.element(element?)?;
                    self.elements.push(element);
                }
            }
            Payload::DataSection(reader) => {
                for data in reader {
                    let data = data?;
                    let active = match data.kind {
                        DataKind::Passive => None,
                        DataKind::Active { offset_expr, .. } => Some(self.constant(&offset_expr)? as u32),
                    };
                    self.data.push(Data { active, bytes: data.data });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn element(&self, element: wasmparser::Element<'a>) -> Result<Element, LoadError> {
        let offset = element.range.start;
        let (active, passive) = match element.kind {
            ElementKind::Active { offset_expr, .. } => (Some(self.constant(&offset_expr)? as u32), false),
            ElementKind::Passive => (None, true),
            ElementKind::Declared => (None, false),
        };
        let mut items = Vec::new();
        match element.items {
            ElementItems::Functions(funcs) => {
                for func in funcs {
                    items.push(Some(func?));
                }
            }
            ElementItems::Expressions(_, exprs) => {
                for expr in exprs {
                    let mut reader = expr?.get_operators_reader();
                    items.push(match reader.read()? {
                        Operator::RefFunc { function_index } => Some(function_index),
                        Operator::RefNull { .. } => None,
                        _ => return unsupported(offset, "an element segment holds something else than functions"),
                    });
                }
            }
        }
        Ok(Element { active, passive, items })
    }

    /// The value of a constant expression.
    fn constant(&self, expr: &ConstExpr<'_>) -> Result<u64, LoadError> {
        let mut reader = expr.get_operators_reader();
        let mut stack: Vec<u64> = Vec::new();
        loop {
            let (op, offset) = reader.read_with_offset()?;
            let mut binary = |f: fn(u64, u64) -> u64| {
                let (b, a) = (stack.pop().unwrap_or(0), stack.pop().unwrap_or(0));
                f(a, b)
            };
            let value = match op {
                Operator::I32Const { value } => u64::from(value as u32),
                Operator::I64Const { value } => value as u64,
                Operator::GlobalGet { global_index } => {
                    self.globals.get(global_index as usize).map_or(0, |global| global.init)
                }
                Operator::I32Add => binary(|a, b| u64::from((a as u32).wrapping_add(b as u32))),
                Operator::I32Sub => binary(|a, b| u64::from((a as u32).wrapping_sub(b as u32))),
                Operator::I32Mul => binary(|a, b| u64::from((a as u32).wrapping_mul(b as u32))),
                Operator::I64Add => binary(u64::wrapping_add),
                Operator::I64Sub => binary(u64::wrapping_sub),
                Operator::I64Mul => binary(u64::wrapping_mul),
                Operator::End => return Ok(stack.pop().unwrap_or(0)),
                other => {
                    let (name, reason) = (crate::error::mnemonic(&other), crate::error::refusal(&other));
                    return unsupported(offset, format!("in a constant expression: {name} {reason}"));
                }
            };
            stack.push(value);
        }
    }
}

fn func_type(ty: &wasmparser::SubType, plain: bool) -> FuncType {
    const MANAGED: &str = "is a managed type; ciphermill takes integer code only";
    if !plain || !ty.is_final || !ty.supertype_idxs.is_empty() || ty.composite_type.shared {
        return Err(MANAGED);
    }
    let CompositeInnerType::Func(func) = &ty.composite_type.inner else { return Err(MANAGED) };
    let list = |types: &[ValType]| types.iter().map(|&ty| value_type(ty)).collect::<Result<Vec<Type>, _>>();
    Ok(Signature { params: list(func.params())?, results: list(func.results())? })
}

fn memory_decl(memory: wasmparser::MemoryType, offset: u64) -> Result<MemoryDecl, LoadError> {
    if memory.memory64 {
        return unsupported(offset, "the memory has 64-bit addresses; compile for wasm32, not wasm64");
    }
    if memory.shared {
        return unsupported(offset, "the memory is shared between threads; link without --shared-memory");
    }
    if memory.page_size_log2.is_some_and(|log| log != 16) {
        return unsupported(offset, "the memory's pages are not 64 KiB");
    }
    if memory.initial > u64::from(MAX_MEMORY_PAGES) {
        let pages = memory.initial;
        return unsupported(offset, format!("the memory starts with {pages} pages; at most {MAX_MEMORY_PAGES} work"));
    }
    let max = memory.maximum.unwrap_or(u64::MAX).min(u64::from(MAX_MEMORY_PAGES));
    Ok(MemoryDecl { min_pages: memory.initial as u32, max_pages: max as u32 })
}

fn trap_import(import: &wasmparser::Import<'_>) -> Option<TrapCode> {
    match (import.module, import.name) {
        ("trap", "memory-out-of-bounds") => Some(TrapCode::MemoryOutOfBounds),
        ("trap", "table-out-of-bounds") => Some(TrapCode::TableOutOfBounds),
        ("trap", "integer-division-by-zero") => Some(TrapCode::IntegerDivisionByZero),
        ("trap", "integer-overflow") => Some(TrapCode::IntegerOverflow),
        _ => None,
    }
}

fn refuse_import(import: &wasmparser::Import<'_>) -> LoadError {
    let (kind, mend) = match import.ty {
        TypeRef::Func(_) | TypeRef::FuncExact(_) => {
            ("the function", "define it in the source, or add the C file that does to the cipher's manifest")
        }
        TypeRef::Table(_) => ("the table", "link without --import-table"),
        TypeRef::Memory(_) => ("the memory", "link without --import-memory"),
        TypeRef::Global(_) => ("the global", "define it in the source"),
        TypeRef::Tag(_) => ("the exception", "compile with -fno-exceptions"),
    };
    LoadError::Import { kind, module: import.module.into(), name: import.name.into(), mend }
}
