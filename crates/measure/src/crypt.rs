//! Bytes processed by the reference interpreter alone, without a machine.

use crate::error::MeasureError;
use crate::probe::open;
use crate::vectors;

/// Encrypt or decrypt whole blocks on the reference interpreter.
///
/// # Errors
/// When the module is no block cipher, or `data` no whole number of blocks.
pub fn crypt(wasm: &[u8], key: &[u8], data: &[u8], decrypt: bool, limit: Option<u64>) -> Result<Vec<u8>, MeasureError> {
    let (_, module, mut target) = open(wasm)?;
    if !data.len().is_multiple_of(module.block_bytes as usize) {
        let (have, block) = (data.len(), module.block_bytes);
        return Err(MeasureError::input(format!("{have} bytes of data; it must be whole blocks of {block} bytes")));
    }
    vectors::apply_block(&module, decrypt, key, data, &mut target, limit)
}

/// The first `length` bytes of a stream, made by the reference interpreter.
///
/// # Errors
/// When the module is no stream cipher.
pub fn keystream(
    wasm: &[u8],
    key: &[u8],
    iv: &[u8],
    length: usize,
    limit: Option<u64>,
) -> Result<Vec<u8>, MeasureError> {
    let (_, module, mut target) = open(wasm)?;
    vectors::apply_stream(&module, key, iv, &vec![0; length], &mut target, limit)
}
