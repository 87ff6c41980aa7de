//! A file checked, or its listings written anew.

use crate::code::{lacks, listing, program};
use crate::header::{Expected, Header, Wanted, header};
use ciphermill_codegen::tables::Tables;
use ciphermill_differential::subject::{self, Subject};
use ciphermill_differential::{check as differential, folders};
use ciphermill_program::{Program, asm};
use std::path::Path;
use std::sync::Arc;

/// What stands below the module, one for each target that asks for it.
fn listings(made: &[(String, Program, bool)]) -> Result<String, String> {
    let mut text = String::new();
    for (title, program, _) in made.iter().filter(|m| m.2) {
        text += &format!("\n;; {title}:\n");
        for line in listing(program)? {
            text += &format!(";;   {line}\n");
        }
    }
    Ok(text)
}

/// Where the module ends: what follows are listings.
fn module_end(text: &str) -> usize {
    let mut end = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        if !line.starts_with(";;") && !line.trim().is_empty() {
            end = at;
        }
    }
    end
}

struct File {
    text: String,
    wasm: Vec<u8>,
    header: Header,
    tables: Vec<Arc<Tables>>,
    subjects: Vec<Subject>,
}

impl File {
    fn read(path: &Path) -> Result<File, String> {
        let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
        let header = header(&text)?;
        let wasm = wat::parse_str(&text).map_err(|e| e.to_string())?;
        let (mut tables, mut subjects) = (Vec::new(), Vec::new());
        for target in &header.targets {
            let made = subject::simulated(&folders::root(), &[&target.machine])?;
            let of = |s: &Subject| if let Subject::Machine { tables, .. } = s { Some(tables.clone()) } else { None };
            tables.push(made.iter().find_map(of).ok_or("no machine")?);
            subjects.extend(made);
        }
        Ok(File { text, wasm, header, tables, subjects })
    }

    /// For each target its title, its code, and whether that is listed.
    fn compiled(&self) -> Result<Vec<(String, Program, bool)>, String> {
        let one = |(target, tables): (&crate::header::Target, &Arc<Tables>)| {
            let title = target.title();
            let made = program(&self.wasm, tables, target, &self.header).map_err(|e| format!("{title}: {e}"))?;
            Ok((title, made, target.wanted.contains(&Wanted::Listing)))
        };
        self.header.targets.iter().zip(&self.tables).map(one).collect()
    }
}

/// Is everything as the file says?
///
/// # Errors
/// What is not, with the code.
pub fn check(path: &Path) -> Result<(), String> {
    let file = File::read(path)?;
    let made = file.compiled()?;
    for (target, (title, program, _)) in file.header.targets.iter().zip(&made) {
        if let Some(what) = target.wanted.iter().find_map(|w| lacks(program, w)) {
            return Err(format!("{title}: {what} in\n{}", asm::print(program)));
        }
    }
    let expected = &file.text[module_end(&file.text)..];
    let found = listings(&made)?;
    if found != expected {
        return Err(format!("the code is not the listed one (BLESS=1 writes it anew); found\n{found}\nexpected\n{expected}"));
    }
    for call in &file.header.calls {
        called(&file, call)?;
    }
    differential::check(&file.wasm, &file.subjects).map(drop).map_err(|e| e.to_string())
}

/// A call that the header names, on the reference and everywhere else.
fn called(file: &File, call: &Expected) -> Result<(), String> {
    let made = differential::call(&file.wasm, &file.subjects, "f", &call.args).map_err(|e| e.to_string())?;
    if made == call.results {
        return Ok(());
    }
    Err(format!("f({:x?}): expected {:x?}, the reference says {made:x?}", call.args, call.results))
}

/// Write the listings of a file anew.
///
/// # Errors
/// When the file is wrong or cannot be written.
pub fn bless(path: &Path) -> Result<(), String> {
    let file = File::read(path)?;
    let text = format!("{}{}", &file.text[..module_end(&file.text)], listings(&file.compiled()?)?);
    if text == file.text { Ok(()) } else { std::fs::write(path, text).map_err(|e| e.to_string()) }
}
