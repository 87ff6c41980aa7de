//! Shorter recurrence circuits: expressions rebuilt by when their operands arrive.
//!
//! In a loop whose blocks depend on one another, units are idle and the longest circuit of
//! dependences is the bound (RecMII). What can be had there is a circuit with fewer cycles on it,
//! at the price of operations beside it:
//!
//! ```text
//! (late + a) + b          ->   late + (a + b)                              the late one last
//! ((p + q) << 1) + x      ->   ((p << 1) + x) + (q << 1)                   q late
//! rotl(rotl(x, 5) ^ a, n) ->   rotl(x ^ rotl(a, 27), n + 5)                x late ([`turns`])
//! ```
//!
//! [`clock`] says when each value arrives if there are units for everything, in a pass far from the
//! first, and which values lie on the longest circuit. [`terms`] opens the expressions of those, the
//! latest operand first, and puts them together again, the earliest operands first. This repeats as
//! long as the circuit gets shorter. A loop that units hold longer than its circuits is left as it is,
//! and so is every value that nothing waits for.

mod blocks;
mod clock;
mod terms;
pub mod turns;

use blocks::{loops, sweep};
use ciphermill_ir::low_bits::use_counts;
use ciphermill_ir::{Block, Func};
use ciphermill_machine::Machine;
use ciphermill_patterns::matcher::Matcher;
use clock::Clock;

/// Rounds after which a loop is left: each has to shorten the circuit, of a cipher's block by a cycle
/// for every round of the cipher.
const MOST_ROUNDS: usize = 16;

/// Operations that are tried for a loop, so that code of any size compiles in time.
const MOST_STEPS: u32 = 1 << 18;

/// A loop is changed if its price falls by one part in so many. Less is lost again where the new
/// operations are in the way of others.
const WORTH: i64 = 50;

/// The price of the function's loops of one block, all of them together, and whether a circuit, not
/// units, is what bounds one of them.
///
/// The function is legalised.
pub fn price(func: &Func, machine: &Machine, matcher: &Matcher) -> (i64, bool) {
    let clocks: Vec<Clock<'_>> = loops(func).into_iter().map(|block| clock_of(func, machine, matcher, block)).collect();
    (clocks.iter().map(Clock::price).sum(), clocks.iter().any(Clock::circuit_binds))
}

/// Shorten the circuits of the loops of a legalised function.
pub fn shorten(func: &mut Func, machine: &Machine, matcher: &Matcher) {
    for block in loops(func) {
        let mut steps = MOST_STEPS;
        let mut now = clock_of(func, machine, matcher, block);
        let (mut best, at_first) = ((now.price(), func.clone()), now.price());
        for _ in 0..MOST_ROUNDS {
            if !now.circuit_binds() {
                break;
            }
            let (before, bound) = (func.clone(), now.bound());
            // A value is computed twice only where nothing else helps.
            let shorter = [false, true].into_iter().find_map(|twice| {
                let changed = terms::rebuild(func, block, &mut now.clone(), twice, &mut steps);
                sweep(func, block);
                let after = clock_of(func, machine, matcher, block);
                if changed && after.bound() < bound {
                    return Some(after);
                }
                func.clone_from(&before);
                None
            });
            let Some(after) = shorter else { break };
            now = after;
            if now.price() < best.0 && is_worth(now.price(), at_first) {
                best = (now.price(), func.clone());
            }
        }
        *func = best.1;
    }
}

/// Is a price enough lower than before for a loop to be changed?
pub fn is_worth(price: i64, before: i64) -> bool {
    price * WORTH <= before * (WORTH - 1)
}

fn clock_of<'a>(func: &Func, machine: &'a Machine, matcher: &'a Matcher, block: Block) -> Clock<'a> {
    Clock::new(func, machine, matcher, block, &use_counts(func))
}
