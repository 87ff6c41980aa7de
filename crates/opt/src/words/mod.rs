//! Values of 32 bits in the words of a machine of 64 bits.

mod narrow;
mod widen;

use ciphermill_ir::Module;
use narrow::narrow;
use widen::widen;

/// Give values of 32 bits the form that they have in a machine's words: of `word_bits`, where
/// `narrow` says that it computes in 32 bits as well.
pub fn words(module: &mut Module, narrow: bool, word_bits: u8) {
    if narrow {
        self::narrow(module);
    } else if word_bits == 64 {
        widen(module);
    }
}
