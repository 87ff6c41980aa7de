//! Random modules until stopped, with a count a minute.
//!
//! Every count names the number to go on with, so that a campaign can be made in parts, on
//! several computers too: `ciphermill-fuzz --first NUMBER --count MODULES`. `--kind nests` (or `cipherlike`,
//! `smith`) makes modules of that kind alone, `--effort quick` has no loop's schedule searched for in full. The
//! environment says the same where there are no arguments: `CIPHERMILL_SEED` sets the first module's number,
//! `CIPHERMILL_MODULES` how many there are, `CIPHERMILL_KIND`, `CIPHERMILL_EFFORT`, and
//! `CIPHERMILL_MACHINES` on which machines (names with commas
//! between them, extensions behind plus signs, `/4` for one module of four), `CIPHERMILL_BYTES` up to which
//! size: small modules take a fraction of the time. A failing module is shrunk and saved among the regressions,
//! and the run goes on; the exit code says whether there were any.

use ciphermill_differential::kind::Kind;
use ciphermill_differential::{campaign, folders, subject};
use mimalloc::MiMalloc;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Compiling thousands of small modules is mostly small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// What stands behind an option, or in the environment.
fn given(option: &str, variable: &str) -> Option<String> {
    let mut args = std::env::args().skip_while(|a| a != option);
    if args.next().is_some() { Some(args.next().unwrap_or_default()) } else { std::env::var(variable).ok() }
}

/// It as a number; an error where it is none.
fn number(option: &str, variable: &str) -> Result<Option<u64>, String> {
    let parse = |text: String| text.parse().map_err(|_| format!("{option} {text}: a number is wanted"));
    given(option, variable).map(parse).transpose()
}

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// The failures that were found.
fn run() -> Result<usize, String> {
    let known = ["--first", "--count", "--kind", "--effort"];
    if let Some(other) = std::env::args().skip(1).step_by(2).find(|a| !known.contains(&a.as_str())) {
        return Err(format!(
            "{other}: the options are --first NUMBER, --count MODULES, --kind KIND and --effort quick"
        ));
    }
    let kind = given("--kind", "CIPHERMILL_KIND");
    let named = |name: String| Kind::named(&name).ok_or(format!("--kind {name}: cipherlike, smith or nests is wanted"));
    let kind = kind.map(named).transpose()?;
    let quick = match given("--effort", "CIPHERMILL_EFFORT").as_deref() {
        None | Some("full") => false,
        Some("quick") => true,
        Some(other) => return Err(format!("--effort {other}: full or quick is wanted")),
    };
    let (first, count) = (number("--first", "CIPHERMILL_SEED")?, number("--count", "CIPHERMILL_MODULES")?);
    let root = folders::root();
    let machines = std::env::var("CIPHERMILL_MACHINES").unwrap_or_else(|_| folders::MACHINES.join(","));
    let machines: Vec<&str> = machines.split(',').collect();
    let simulated = subject::simulated(&root, &machines)?;
    let simulated = if quick { subject::quickly(simulated) } else { simulated };
    let subjects: Vec<_> = subject::interpreted().into_iter().chain(simulated).collect();
    // A panic is a finding like any other; its text is in the report.
    std::panic::set_hook(Box::new(|_| {}));
    let (mut next, limit) = (first.unwrap_or_else(campaign::seed), count.unwrap_or(u64::MAX));
    let bytes = campaign::setting("CIPHERMILL_BYTES").unwrap_or(u64::MAX) as usize;
    println!("modules from number {next} on, each run {} ways", subjects.len());

    let (started, mut last_line) = (Instant::now(), Instant::now());
    let (mut total, mut failed, mut left) = (campaign::Tally::default(), 0, limit);
    while left > 0 {
        let batch = left.min(200);
        let (tally, failures) = campaign::run(next, batch, kind, bytes, &subjects);
        total += tally;
        failed += failures.len();
        for failure in failures {
            println!("module {}: {}", failure.number, failure.mismatch);
            match campaign::save(&failure, &subjects, &folders::regressions()) {
                Ok(path) => println!("  saved as {}", path.display()),
                Err(e) => println!("  not saved: {e}"),
            }
        }
        next = next.wrapping_add(batch);
        left -= batch;
        if last_line.elapsed() >= Duration::from_secs(60) || left == 0 {
            last_line = Instant::now();
            println!(
                "{} modules, {} runs, {} calls ({} traps), {failed} failures in {} s; to go on: --first {next}",
                total.modules,
                total.runs,
                total.calls,
                total.traps,
                started.elapsed().as_secs()
            );
        }
    }
    Ok(failed)
}
