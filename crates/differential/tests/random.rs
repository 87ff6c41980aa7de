//! The differential test: fresh random modules, and all that ever failed.

use ciphermill_differential::check::check;
use ciphermill_differential::subject::{self, Subject};
use ciphermill_differential::{campaign, folders};

fn subjects() -> Vec<Subject> {
    let simulated = subject::simulated(&folders::root(), &folders::MACHINES).expect("the machines load");
    subject::interpreted().into_iter().chain(simulated).collect()
}

/// `CIPHERMILL_MODULES` says how many, `CIPHERMILL_SEED` from which on. Without
/// it the modules are the same every time; `make fuzz` takes new ones.
#[test]
fn random_modules_run_alike_everywhere() {
    let (seed, count) =
        (campaign::setting("CIPHERMILL_SEED").unwrap_or(1), campaign::setting("CIPHERMILL_MODULES").unwrap_or(400));
    println!("CIPHERMILL_SEED={seed} CIPHERMILL_MODULES={count}");
    let subjects = subjects();
    let (tally, failures) = campaign::run(seed, count, None, usize::MAX, &subjects);
    println!("{} modules, {} calls, {} traps", tally.modules, tally.calls, tally.traps);
    let mut report = String::new();
    for failure in &failures {
        let saved = campaign::save(failure, &subjects, &folders::regressions());
        report += &format!("module {}: {}\n  saved: {saved:?}\n", failure.number, failure.mismatch);
    }
    assert!(failures.is_empty(), "{report}");
    assert!(tally.modules as u64 > count * 9 / 10, "too few numbers have a module");
    assert!(tally.traps < tally.calls / 2, "most calls trap, so little is tested");
}

#[test]
fn modules_that_once_failed_do_not() {
    let (subjects, quickly) = (subjects(), subject::quickly(subjects()));
    let mut paths: Vec<_> = std::fs::read_dir(folders::regressions())
        .map(|entries| entries.filter_map(|e| e.ok().map(|e| e.path())).collect())
        .unwrap_or_default();
    paths.retain(|path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "wasm"));
    paths.sort();
    let mut report = String::new();
    for path in paths {
        let wasm = std::fs::read(&path).expect("the file can be read");
        // What failed only where schedules are not searched for to the end is checked without that.
        let quick = path.file_name().is_some_and(|name| name.to_string_lossy().contains("quickly"));
        if let Err(mismatch) = check(&wasm, if quick { &quickly } else { &subjects }) {
            report += &format!("{}: {mismatch}\n", path.display());
        }
    }
    assert!(report.is_empty(), "{report}");
}
