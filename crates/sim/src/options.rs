//! How a simulation differs from the default.

/// How a simulation differs from the default.
#[derive(Clone, Copy, Debug)]
pub struct SimOptions {
    /// Addresses are mathematical sums: one that leaves 32 bits is out of
    /// bounds, as in WebAssembly. False: sums wrap at 32 bits, as on hardware.
    pub strict_addresses: bool,
    /// Misaligned accesses are errors on machines that do not have them.
    pub check_alignment: bool,
    /// Model the machine's caches; false: every access hits.
    pub caches: bool,
    /// Instructions after which a call is stopped (give or take one straight
    /// run of code).
    pub max_instructions: u64,
}

impl Default for SimOptions {
    fn default() -> SimOptions {
        SimOptions { strict_addresses: true, check_alignment: true, caches: true, max_instructions: u64::MAX / 2 }
    }
}
