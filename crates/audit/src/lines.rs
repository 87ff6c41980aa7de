//! From an offset in the module to a line of the source.
//!
//! A compiler that is asked for debugging information (`-g`) writes DWARF into
//! custom sections of the module. Its line table (DWARF 5, section 6.2) maps
//! code addresses to files and lines; in WebAssembly an address is the offset
//! from the start of the code section's contents. A row holds up to the next
//! one, and the last row of a sequence only ends it. Line 0 marks code that the
//! compiler made of several lines; it is reported without a line, because the
//! line before or after it is as often as not the wrong one.

use gimli::{EndianSlice, LittleEndian};
use std::collections::HashMap;
use std::ops::Range;
use wasmparser::{Parser, Payload};

pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;

struct Row {
    from: u64,
    /// Past the last address it stands for.
    to: u64,
    file: usize,
    line: u32,
}

/// The line table of a module; empty when it has none.
#[derive(Default)]
pub struct Lines {
    code_start: u64,
    files: Vec<String>,
    /// By address; they do not overlap.
    rows: Vec<Row>,
}

impl Lines {
    /// Read the tables. What is missing or damaged is left out: a report
    /// without lines is still one.
    pub fn read(wasm: &[u8]) -> Lines {
        let (sections, code) = sections(wasm);
        let mut lines = Lines { code_start: code.start as u64, ..Lines::default() };
        if let Ok(dwarf) = dwarf(&sections) {
            // An error in one unit ends the reading, not the report.
            let _ = lines.units(&dwarf);
        }
        lines.rows.sort_by_key(|row| (row.from, row.to));
        lines
    }

    /// The table of `debug`, a module with the same code as `wasm`; empty where the code differs.
    /// Debugging information stands behind the code and moves none of it.
    pub fn of_same_code(wasm: &[u8], debug: &[u8]) -> Lines {
        let ((_, own), (_, theirs)) = (sections(wasm), sections(debug));
        if own == theirs && wasm.get(own) == debug.get(theirs) { Lines::read(debug) } else { Lines::default() }
    }

    /// File and line of the code at a module offset.
    pub fn find(&self, offset: u32) -> Option<(&str, u32)> {
        let address = u64::from(offset).checked_sub(self.code_start)?;
        let after = self.rows.partition_point(|row| row.from <= address);
        // Code the linker threw away has sequences at address 0 that overlap others.
        let row = self.rows[..after].iter().rev().take(8).find(|row| address < row.to && row.line != 0)?;
        Some((self.files.get(row.file)?, row.line))
    }

    /// The same, or where that is unknown, of the nearest code before that has a line, from an address on.
    pub fn near(&self, offset: u32, begin: u64) -> Option<(&str, u32)> {
        self.find(offset).or_else(|| {
            let address = u64::from(offset).checked_sub(self.code_start)?;
            let after = self.rows.partition_point(|row| row.from <= address);
            let row = self.rows[..after].iter().rev().take_while(|row| row.from >= begin).find(|row| row.line != 0)?;
            Some((self.files.get(row.file)?, row.line))
        })
    }

    fn units(&mut self, dwarf: &gimli::Dwarf<Slice<'_>>) -> Result<(), gimli::Error> {
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            let unit = dwarf.unit(header)?;
            let folder = unit.comp_dir.map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default();
            let Some(program) = unit.line_program.clone() else { continue };
            let mut known: HashMap<u64, usize> = HashMap::new();
            let mut rows = program.rows();
            let mut open: Option<(u64, usize, u32)> = None;
            while let Some((header, row)) = rows.next_row()? {
                let address = row.address();
                if let Some((from, file, line)) = open.take()
                    && address > from
                {
                    self.rows.push(Row { from, to: address, file, line });
                }
                if row.end_sequence() {
                    continue;
                }
                let index = row.file_index();
                let file = match known.get(&index) {
                    Some(&file) => file,
                    None => {
                        let path = path(dwarf, &unit, header, index, &folder)?;
                        let file = self.files.iter().position(|f| *f == path).unwrap_or_else(|| {
                            self.files.push(path);
                            self.files.len() - 1
                        });
                        known.insert(index, file);
                        file
                    }
                };
                open = Some((address, file, row.line().map_or(0, |line| line.get() as u32)));
            }
        }
        Ok(())
    }
}

/// The custom sections of a module, and where its code stands.
pub(crate) fn sections(wasm: &[u8]) -> (HashMap<String, &[u8]>, Range<usize>) {
    let mut sections: HashMap<String, &[u8]> = HashMap::new();
    let mut code = 0..0;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload {
            Ok(Payload::CustomSection(section)) => {
                sections.insert(section.name().to_owned(), section.data());
            }
            Ok(Payload::CodeSectionStart { unchecked_range, .. }) => {
                code = unchecked_range.start as usize..unchecked_range.end as usize;
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    (sections, code)
}

/// The debugging information in them.
pub(crate) fn dwarf<'a>(sections: &HashMap<String, &'a [u8]>) -> Result<gimli::Dwarf<Slice<'a>>, gimli::Error> {
    let load = |id: gimli::SectionId| -> Result<Slice<'a>, gimli::Error> {
        Ok(EndianSlice::new(sections.get(id.name()).copied().unwrap_or(&[]), LittleEndian))
    };
    gimli::Dwarf::load(load)
}

/// A file by its number in a unit's table, joined with its folder and the unit's.
pub(crate) fn path(
    dwarf: &gimli::Dwarf<Slice<'_>>,
    unit: &gimli::Unit<Slice<'_>>,
    header: &gimli::LineProgramHeader<Slice<'_>>,
    index: u64,
    folder: &str,
) -> Result<String, gimli::Error> {
    let Some(file) = header.file(index) else { return Ok("?".to_owned()) };
    let mut parts = vec![dwarf.attr_string(unit, file.path_name())?.to_string_lossy().into_owned()];
    if let Some(directory) = file.directory(header) {
        parts.push(dwarf.attr_string(unit, directory)?.to_string_lossy().into_owned());
    }
    parts.push(folder.to_owned());
    // From the outermost inwards; an absolute part begins anew.
    let mut whole = String::new();
    for part in parts.iter().rev().filter(|part| !part.is_empty()) {
        if part.starts_with('/') {
            whole.clear();
        } else if !whole.is_empty() {
            whole.push('/');
        }
        whole.push_str(part);
    }
    Ok(whole)
}
