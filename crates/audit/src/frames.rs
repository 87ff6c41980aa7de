//! Which functions of the source a place in a module belongs to.
//!
//! A compiler puts functions into one another. What was `f`, called from `g`, then stands in
//! the code of `g`, which may be one that its author has never seen. DWARF keeps the record
//! (version 5, section 3.3.8): below the entry of the function that was compiled stand those
//! that were inlined, each with its ranges of addresses and with the line of its call. Entries
//! are read in their order, in which outer ones come before inner ones, so those that cover an
//! address are its chain of calls.
//!
//! Debugging information is asked for only when there is something to tell, and then of a
//! module of its own. It describes the other one if their code is the same, byte for byte.

use crate::lines::{self, Lines, Slice};
use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, Unit};
use serde::Serialize;
use std::collections::HashMap;

/// A function of the source, and a line in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Frame(pub String, pub String, pub u32);

/// Debugging information, for the places of a module.
pub struct Source<'a> {
    sections: HashMap<String, &'a [u8]>,
    code_start: u64,
    lines: Lines,
}

impl<'a> Source<'a> {
    /// The information in `debug`, if its code is that of `wasm`; else none.
    pub fn read(wasm: &[u8], debug: &'a [u8]) -> Source<'a> {
        let (sections, code) = lines::sections(debug);
        let (_, theirs) = lines::sections(wasm);
        let same = code == theirs && debug.get(code.clone()) == wasm.get(theirs);
        match same {
            true => Source { sections, code_start: code.start as u64, lines: Lines::read(debug) },
            false => Source { sections: HashMap::new(), code_start: 0, lines: Lines::default() },
        }
    }

    /// The functions that a module offset is in, the innermost first, with the line in each.
    /// Empty when nothing is known.
    pub fn frames(&self, offset: u32) -> Vec<Frame> {
        let Some(address) = u64::from(offset).checked_sub(self.code_start) else { return Vec::new() };
        let calls = lines::dwarf(&self.sections).and_then(|dwarf| chain(&dwarf, address)).unwrap_or_default();
        let Some(begin) = calls.first().map(|outermost| outermost.begin) else { return Vec::new() };
        let Some((file, line)) = self.lines.near(offset, begin) else { return Vec::new() };
        let mut at = (file.to_owned(), line);
        let mut frames = Vec::new();
        for call in calls.into_iter().rev() {
            let outer = call.from;
            frames.push(Frame(call.function, at.0.clone(), at.1));
            match outer {
                Some(place) => at = place,
                None => break,
            }
        }
        frames
    }
}

/// A function, and the line that it was called from where it was inlined.
struct Call {
    function: String,
    /// The first address of the range that covers what was asked for.
    begin: u64,
    from: Option<(String, u32)>,
}

/// The function that covers an address, and those inlined in it that do, the outermost first.
fn chain(dwarf: &Dwarf<Slice<'_>>, address: u64) -> Result<Vec<Call>, gimli::Error> {
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        let unit = dwarf.unit(header)?;
        let mut calls: Vec<Call> = Vec::new();
        let mut entries = unit.entries();
        while let Some((_, entry)) = entries.next_dfs()? {
            let inlined = match entry.tag() {
                gimli::DW_TAG_subprogram => false,
                gimli::DW_TAG_inlined_subroutine => true,
                _ => continue,
            };
            let Some(begin) = covers(dwarf, &unit, entry, address)? else { continue };
            let function = name(dwarf, &unit, entry)?.unwrap_or_else(|| "?".to_owned());
            if !inlined {
                calls.clear();
            }
            let from = if inlined { call_site(dwarf, &unit, entry)? } else { None };
            calls.push(Call { function, begin, from });
        }
        if !calls.is_empty() {
            return Ok(calls);
        }
    }
    Ok(Vec::new())
}

/// The beginning of the entry's range that has an address.
fn covers(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    entry: &DebuggingInformationEntry<'_, '_, Slice<'_>>,
    address: u64,
) -> Result<Option<u64>, gimli::Error> {
    let mut ranges = dwarf.die_ranges(unit, entry)?;
    while let Some(range) = ranges.next()? {
        // Code that the linker threw away begins at 0, where no function can.
        if range.begin != 0 && (range.begin..range.end).contains(&address) {
            return Ok(Some(range.begin));
        }
    }
    Ok(None)
}

/// A function's name, which may stand at the entry that says what was inlined.
fn name(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    entry: &DebuggingInformationEntry<'_, '_, Slice<'_>>,
) -> Result<Option<String>, gimli::Error> {
    if let Some(value) = entry.attr_value(gimli::DW_AT_name)? {
        return Ok(Some(dwarf.attr_string(unit, value)?.to_string_lossy().into_owned()));
    }
    for at in [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification] {
        if let Some(AttributeValue::UnitRef(offset)) = entry.attr_value(at)? {
            return name(dwarf, unit, &unit.entry(offset)?);
        }
    }
    Ok(None)
}

/// File and line of the call that was inlined.
fn call_site(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    entry: &DebuggingInformationEntry<'_, '_, Slice<'_>>,
) -> Result<Option<(String, u32)>, gimli::Error> {
    let folder = unit.comp_dir.map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default();
    let line = entry.attr_value(gimli::DW_AT_call_line)?.and_then(|v| v.udata_value());
    let file = match entry.attr_value(gimli::DW_AT_call_file)? {
        Some(AttributeValue::FileIndex(index)) => Some(index),
        other => other.and_then(|v| v.udata_value()),
    };
    let (Some(line), Some(file), Some(program)) = (line, file, &unit.line_program) else { return Ok(None) };
    Ok(Some((lines::path(dwarf, unit, program.header(), file, &folder)?, line as u32)))
}
