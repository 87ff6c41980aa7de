//! A file checked, or its listings written anew.

use crate::code::{lacks, listing, program};
use crate::header::{Header, Wanted, header};
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
        return Err(format!(
            "the code is not the listed one (BLESS=1 writes it anew); found\n{found}\nexpected\n{expected}"
        ));
    }
    called(&file)?;
    differential::check(&file.wasm, &file.subjects).map(drop).map_err(|e| e.to_string())
}

/// Values at which operations change what they do.
const EDGES: [u64; 10] =
    [0, 1, 31, 32, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1_0000_0000, 0x8765_4321_fedc_ba98, u64::MAX];

/// The calls that the header names, and those with edges, on the reference and everywhere else.
fn called(file: &File) -> Result<(), String> {
    let mut script: Vec<(&str, Vec<u64>)> = file.header.calls.iter().map(|c| ("f", c.args.clone())).collect();
    let module = ciphermill_load::load(&file.wasm).map_err(|e| e.to_string())?;
    for (name, id) in module.exports.iter().filter(|_| file.header.edges) {
        let mut all = vec![vec![]];
        for ty in &module.funcs[*id].sig.params {
            let more = |args: Vec<u64>| EDGES.map(|e| [&args[..], &[e & ty.mask()]].concat());
            all = all.into_iter().flat_map(more).collect();
        }
        script.extend(all.into_iter().map(|args| (name.as_str(), args)));
    }
    let made = differential::calls(&file.wasm, &file.subjects, &script).map_err(|e| e.to_string())?;
    for (call, made) in file.header.calls.iter().zip(made) {
        if call.results.as_ref().is_some_and(|r| *r != made) {
            return Err(format!("f({:x?}): expected {:x?}, the reference says {made:x?}", call.args, call.results));
        }
    }
    Ok(())
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
