//! Random modules until stopped, with a count a minute.
//!
//! `CIPHERMILL_SEED` sets the first module's number, `CIPHERMILL_MODULES` how
//! many there are, `CIPHERMILL_MACHINES` on which machines (names with commas
//! between them, extensions behind plus signs), `CIPHERMILL_BYTES` up to which
//! size: small modules take a fraction of the time. A failing module is shrunk and saved among the regressions,
//! and the run goes on; the exit code says whether there were any.

use ciphermill_differential::{campaign, folders, subject};
use mimalloc::MiMalloc;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Compiling thousands of small modules is mostly small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let root = folders::root();
    let asked = std::env::var("CIPHERMILL_MACHINES").ok();
    let shares = match &asked {
        Some(names) => subject::shares(&root, &names.split(',').collect::<Vec<_>>(), &[]),
        None => subject::shares(&root, &folders::MACHINES, &folders::SLOW_MACHINES),
    };
    let shares = match shares {
        Ok(shares) => shares,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    // A panic is a finding like any other; its text is in the report.
    std::panic::set_hook(Box::new(|_| {}));
    let (mut next, limit) = (campaign::seed(), campaign::setting("CIPHERMILL_MODULES").unwrap_or(u64::MAX));
    let bytes = campaign::setting("CIPHERMILL_BYTES").unwrap_or(u64::MAX) as usize;
    let ways: Vec<String> = shares.iter().map(|s| format!("one in {} run {} ways", s.one_in, s.subjects.len())).collect();
    println!("modules from number {next} on: {}", ways.join(", "));

    let (started, mut last_line) = (Instant::now(), Instant::now());
    let (mut total, mut failed, mut left) = (campaign::Tally::default(), 0, limit);
    while left > 0 {
        let batch = left.min(200);
        let (tally, failures) = campaign::run(next, batch, bytes, &shares);
        total += tally;
        failed += failures.len();
        for failure in failures {
            println!("module {}: {}", failure.number, failure.mismatch);
            match campaign::save(&failure, &shares, &folders::regressions()) {
                Ok(path) => println!("  saved as {}", path.display()),
                Err(e) => println!("  not saved: {e}"),
            }
        }
        next = next.wrapping_add(batch);
        left -= batch;
        if last_line.elapsed() >= Duration::from_secs(60) || left == 0 {
            last_line = Instant::now();
            println!(
                "{} modules, {} calls ({} traps), {failed} failures in {} s",
                total.modules,
                total.calls,
                total.traps,
                started.elapsed().as_secs()
            );
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
