//! What a caller chooses: what the optimiser may do, and for which kind of machine.

use crate::unroll::options::Unroll;

/// What the optimiser may do and for which kind of machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// 0: only what later stages need; 1: local and scalar; 2: everything.
    pub level: u8,
    /// Keep every trap and what is observable around it.
    pub strict_traps: bool,
    /// Width of the machine's registers, 32 or 64. With 32, no 64-bit value
    /// is left afterwards.
    pub word_bits: u8,
    /// The machine has no division: 32-bit ones become calls of the runtime.
    pub software_division: bool,
    /// How an index into a table of 2, 4 or 8-byte entries is written.
    pub index_form: IndexForm,
    /// Passes, by name, not to run. `"bswap"` switches off only the
    /// recognition of byte reversals in `fold`.
    pub disable: Vec<&'static str>,
    /// By exported function: numbers of parameters whose buffers never overlap
    /// each other or anything else, as C's `restrict` promises it (`bases.rs`
    /// says it exactly). A pointer that is not listed is "anything else".
    /// Parameters are counted as machine words, an `i64` being two of them on
    /// a machine of 32 bits. A function may be listed more than once.
    pub disjoint_params: Vec<(String, Vec<usize>)>,
    /// By exported function, parameter (counted likewise) and size: so many
    /// bytes from where the parameter points can be read and written. Lets
    /// accesses that may not happen be made all the same.
    pub buffer_bytes: Vec<(String, usize, u32)>,
    /// No buffer of those that never overlap contains address 0, nor does anything computed from
    /// its address come round to it.
    pub no_buffer_at_zero: bool,
    /// Functions up to so many instructions are inlined at every call; larger ones
    /// where they are called once.
    pub inline_up_to: u32,
    /// Unrolling, and what goes with it. By default nothing of the kind.
    pub unroll: Unroll,
}

/// What a call costs on most machines is more than so many instructions.
pub const INLINE_UP_TO: u32 = 24;

impl Default for Options {
    fn default() -> Options {
        Options {
            level: 2,
            strict_traps: false,
            word_bits: 32,
            software_division: false,
            index_form: IndexForm::ExtractThenScale,
            disable: Vec::new(),
            disjoint_params: Vec::new(),
            buffer_bytes: Vec::new(),
            no_buffer_at_zero: false,
            inline_up_to: INLINE_UP_TO,
            unroll: Unroll::default(),
        }
    }
}

impl Options {
    pub(crate) fn enabled(&self, pass: &str) -> bool {
        !self.disable.contains(&pass)
    }
}

/// The two ways to write a scaled table index cut out of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexForm {
    /// `((x >>u 16) & 0xff) << 2`: for machines whose addressing scales.
    ExtractThenScale,
    /// `(x >>u 14) & 0x3fc`: one operation less where addressing does not.
    ShiftThenMask,
}
