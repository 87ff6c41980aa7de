//! The code for a machine, and what can be asked of it.

use crate::header::{Header, Target, Wanted};
use ciphermill_codegen::tables::Tables;
use ciphermill_codegen::{Options, compile_with};
use ciphermill_differential::subject;
use ciphermill_machine::InstrKind;
use ciphermill_program::{Inst, Program, asm};

/// The program for a target, traps not kept.
///
/// # Errors
/// What the loader, the optimiser or the code generator says.
pub fn program(wasm: &[u8], tables: &Tables, target: &Target, header: &Header) -> Result<Program, String> {
    let mut module = ciphermill_load::load(wasm).map_err(|e| e.to_string())?;
    let options = subject::optimiser(tables, target.level, false);
    ciphermill_opt::optimise(&mut module, &options).map_err(|e| e.to_string())?;
    let aligned_params = header.aligned.iter().map(|&i| ("f".to_owned(), i, 16)).collect();
    let options = Options { level: target.level, strict_traps: false, aligned_params, ..Options::default() };
    compile_with(&module, tables, &options).map_err(|e| e.to_string())
}

/// What the code lacks of what is asked; None where it has it.
pub fn lacks(program: &Program, wanted: &Wanted) -> Option<String> {
    let told = |what: &str, found: &dyn std::fmt::Debug| Some(format!("{what}: found {found:?}"));
    match wanted {
        Wanted::Listing => None,
        Wanted::Count(name, n) => {
            if !program.machine.instrs.iter().any(|i| i.name == *name) {
                return Some(format!("the machine has no instruction `{name}`"));
            }
            let found = insts(program).filter(|i| of(program, i).name == *name).count();
            if found == *n { None } else { told(&format!("{name} {n}"), &found) }
        }
        Wanted::Stages(least) => {
            let found = program.loops.iter().map(|l| l.stages).max();
            if found >= Some(*least) { None } else { told(&format!("stages {least}"), &found) }
        }
        Wanted::Interval(range) => {
            let found: Vec<u32> = program.loops.iter().map(|l| l.ii).collect();
            let all = !found.is_empty() && found.iter().all(|ii| range.contains(ii));
            if all { None } else { told(&format!("ii {range:?}"), &found) }
        }
        Wanted::Copies(n) => {
            let load = |i: &&Inst| i.space == ciphermill_ir::Space::System && of(program, i).kind == InstrKind::Load;
            let found = insts(program).filter(load).count();
            if found == *n { None } else { told(&format!("copies {n}"), &found) }
        }
    }
}

fn insts(program: &Program) -> impl Iterator<Item = &Inst> {
    program.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.bundles).flat_map(|b| &b.insts)
}

fn of<'a>(program: &'a Program, inst: &Inst) -> &'a ciphermill_machine::Instr {
    &program.machine.instrs[usize::from(inst.instr.0)]
}

/// The instructions of `f`, one a line, as the assembly printer writes them, without its
/// directives and comments.
///
/// # Errors
/// When the module does not export `f`.
pub fn listing(program: &Program) -> Result<Vec<String>, String> {
    let text = asm::print(program);
    let from = text.find("\nf:").ok_or("the module exports no function `f`")?;
    let lines = text[from + 1..].lines().skip(1);
    let code = lines.take_while(|l| !l.contains(".size") && !l.starts_with("cm_")).map(str::trim);
    let code = code.filter(|l| !l.is_empty() && !l.starts_with('.'));
    let bare = |l: &str| l.split(['#', '!']).next().unwrap_or(l).trim_end().replace('\t', " ");
    Ok(code.map(bare).collect())
}
