//! Random modules from `wasm-smith`.
//!
//! They reach every corner of the integer subset that validation allows, above
//! all the strange ones: dead code, odd block types, absurd constants, table
//! operators. Little of what they compute is used, so [`crate::cipherlike`]
//! makes modules of the opposite kind.

use arbitrary::Unstructured;
use wasm_smith::{Config, MemoryOffsetChoices, Module};

/// Loop iterations and calls a module may make before it traps.
const FUEL: u32 = 400;

/// Most random code traps before it has done anything, so two modules of three
/// have no operator that traps (but for those that run out of fuel).
fn config(disallow_traps: bool) -> Config {
    Config {
        disallow_traps,
        allow_floats: false,
        bulk_memory_enabled: true,
        multi_value_enabled: true,
        sign_extension_ops_enabled: true,
        reference_types_enabled: false,
        saturating_float_to_int_enabled: false,
        simd_enabled: false,
        relaxed_simd_enabled: false,
        exceptions_enabled: false,
        gc_enabled: false,
        compact_imports_enabled: false,
        custom_descriptors_enabled: false,
        custom_page_sizes_enabled: false,
        memory64_enabled: false,
        tail_call_enabled: false,
        threads_enabled: false,
        shared_everything_threads_enabled: false,
        wide_arithmetic_enabled: false,
        extended_const_enabled: false,
        max_imports: 0,
        max_tags: 0,
        max_memories: 1,
        min_memories: 1,
        max_memory32_bytes: 4 << 16,
        memory_max_size_required: true,
        memory_offset_choices: MemoryOffsetChoices(90, 9, 1),
        max_tables: 1,
        max_table_elements: 32,
        max_funcs: 6,
        min_funcs: 1,
        max_globals: 6,
        max_types: 8,
        max_data_segments: 4,
        max_element_segments: 4,
        max_elements: 8,
        max_instructions: 60,
        max_nesting_depth: 6,
        export_everything: true,
        generate_custom_sections: false,
        allow_invalid_funcs: false,
        ..Config::default()
    }
}

/// The module that these random bytes stand for; None where they stand for
/// none.
pub fn module(bytes: &[u8]) -> Option<Vec<u8>> {
    let (&first, rest) = bytes.split_first()?;
    let mut module = Module::new(config(first % 3 != 0), &mut Unstructured::new(rest)).ok()?;
    module.ensure_termination(FUEL).ok()?;
    Some(module.to_bytes())
}
