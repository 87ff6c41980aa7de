//! Time in the processor's own terms: its time-stamp counter, and an estimate of the
//! clock that its cores run at.
//!
//! The two differ. The time-stamp counter of a modern x86 ticks at a constant rate,
//! whatever the core does; the core's clock moves with load and heat. A chain of
//! additions, each of which needs the one before, takes one cycle an addition on every
//! processor made in decades (Agner Fog, *Instruction tables*: latency 1 of ADD r,r), so
//! its duration tells the clock. It is an estimate: an interrupt makes it too low, which
//! is why the best of several tries is taken.

use std::time::Instant;

/// The time-stamp counter, after everything before it is done.
#[cfg(target_arch = "x86_64")]
pub fn tsc() -> Option<u64> {
    let mut core = 0;
    // SAFETY: every x86-64 processor that this crate's tools can run on has RDTSCP.
    let ticks = unsafe { core::arch::x86_64::__rdtscp(&mut core) };
    Some(ticks)
}

#[cfg(not(target_arch = "x86_64"))]
pub fn tsc() -> Option<u64> {
    None
}

/// Additions in one turn of the chain's loop.
const CHAIN: u64 = 64;
const TURNS: u64 = 1 << 14;
const TRIES: usize = 20;

/// Cycles a second of the core this runs on, from a chain of dependent additions.
pub fn estimated_hz() -> Option<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..TRIES {
        let start = Instant::now();
        if !chain(TURNS) {
            return None;
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    Some((CHAIN * TURNS) as f64 / best)
}

/// `turns` times [`CHAIN`] dependent additions; false where nobody has written the loop.
#[cfg(target_arch = "x86_64")]
fn chain(turns: u64) -> bool {
    // Register to register: processors that add constants while renaming do not shorten it.
    // SAFETY: only the three registers and the flags are changed.
    unsafe {
        core::arch::asm!(
            "2:",
            ".rept 64",
            "add {x}, {y}",
            ".endr",
            "dec {turns}",
            "jnz 2b",
            x = inout(reg) 1_u64 => _,
            y = in(reg) 3_u64,
            turns = inout(reg) turns => _,
            options(nomem, nostack)
        );
    }
    true
}

#[cfg(target_arch = "aarch64")]
fn chain(turns: u64) -> bool {
    // SAFETY: only the three registers and the flags are changed.
    unsafe {
        core::arch::asm!(
            "2:",
            ".rept 64",
            "add {x}, {x}, {y}",
            ".endr",
            "subs {turns}, {turns}, #1",
            "b.ne 2b",
            x = inout(reg) 1_u64 => _,
            y = in(reg) 3_u64,
            turns = inout(reg) turns => _,
            options(nomem, nostack)
        );
    }
    true
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn chain(_turns: u64) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_counter_counts_and_the_clock_is_a_clock() {
        let (a, b) = (tsc().unwrap(), tsc().unwrap());
        assert!(b > a);
        // Every processor since the Pentium Pro, none yet made.
        let hz = estimated_hz().unwrap();
        assert!((1e8..2e10).contains(&hz), "{hz}");
    }
}
