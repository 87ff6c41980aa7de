//! The files of `tests/codegen`, each a test of its own name.
//!
//! `BLESS=1` writes their listings anew before they are checked.

use ciphermill_differential::folders;
use ciphermill_filetests::{bless, check};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let args = Arguments::from_args();
    let folder = folders::root().join("tests/codegen");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "wat"));
    paths.sort();
    assert!(!paths.is_empty(), "{}: no file", folder.display());
    let blessed = std::env::var_os("BLESS").is_some();
    let trial = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Trial::test(name, move || {
            let told = |e: String| Failed::from(format!("{}: {e}", path.display()));
            if blessed {
                bless(&path).map_err(told)?;
            }
            check(&path).map_err(told)
        })
    };
    libtest_mimic::run(&args, paths.into_iter().map(trial).collect()).exit();
}
