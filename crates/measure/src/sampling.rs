//! Which part of a message is timed, on machines that schedule at run time.

use crate::request::Request;
use ciphermill_machine::Machine;
use ciphermill_ooo::{Pipeline, Sampling};

/// What is given cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timed {
    Everything,
    /// Windows of what comes late and is not like what came before.
    WindowsOfNew,
    Windows,
}

/// Messages longer than this are sampled from their start, and have the steady state of a shorter one.
pub const LONG: u32 = 4 << 20;

/// Shorter ones are timed as a whole, whatever the core: seconds at the most.
const SAMPLE_NEW_FROM: u32 = 64 << 10;

/// Windows of about three in a hundred instructions. Each holds more than the longest period
/// of the ciphers here (HC-128 is back at its first table after some 25,000 instructions), so
/// that with the regular code of ciphers the confidence interval of some dozens of windows is
/// well below a hundredth.
const SAMPLING: Sampling = Sampling { period: 1_000_000, warm: 2_000, window: 32_000 };

impl Timed {
    /// What of a message of so many bytes.
    pub fn of(machine: &Machine, request: &Request, bytes: u32) -> Timed {
        match () {
            () if request.whole || machine.core.is_none() || bytes <= SAMPLE_NEW_FROM => Timed::Everything,
            () if bytes > LONG => Timed::Windows,
            () => Timed::WindowsOfNew,
        }
    }

    /// From now on.
    pub fn begin(self, core: &mut Pipeline) {
        match self {
            Timed::Everything => core.sample(None),
            Timed::WindowsOfNew => core.sample_what_is_new(SAMPLING),
            Timed::Windows => core.sample(Some(SAMPLING)),
        }
    }
}
