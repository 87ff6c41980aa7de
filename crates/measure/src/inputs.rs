//! Keys, IVs and messages: pseudo-random, and the same in every run.
//!
//! A measurement has to repeat to the cycle, on caches too, so the bytes that
//! are encrypted are part of its definition. They come from SplitMix64
//! (Steele, Lea, Flood, OOPSLA 2014): each 64-bit state is the one before plus
//! an odd constant, and a bijective finalizer turns it into output. The seed
//! is the FNV-1a hash of the buffer's name, so that the key of one length is
//! not the start of the message of another.

/// `len` bytes for the buffer of that name.
pub fn bytes(name: &str, len: usize) -> Vec<u8> {
    let mut state = fnv1a(name);
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        out.extend_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    out.truncate(len);
    out
}

/// Take every little-endian word of `word` bytes modulo `limit`.
pub fn reduce(bytes: &mut [u8], word: usize, limit: u64) {
    for bytes in bytes.chunks_mut(word) {
        let value = bytes.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte)) % limit;
        bytes.iter_mut().zip(value.to_le_bytes()).for_each(|(to, from)| *to = from);
    }
}

fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_buffer_is_the_start_of_a_longer_one() {
        assert_eq!(bytes("message", 5), bytes("message", 64)[..5]);
    }

    #[test]
    fn names_and_positions_differ() {
        assert_ne!(bytes("key", 32), bytes("message", 32));
        let b = bytes("message", 4096);
        let distinct: std::collections::BTreeSet<u8> = b.iter().copied().collect();
        assert_eq!(distinct.len(), 256);
    }

    #[test]
    fn words_stay_below_a_limit() {
        let mut bytes = [0x02, 0x0d, 0xff, 0xff, 0x00, 0x0d];
        reduce(&mut bytes, 2, 3329);
        // 0x0d02 is 3330, 0xffff is 19 times 3329 and 2284, 0x0d00 is 3328.
        assert_eq!(bytes, [1, 0, 0xec, 0x08, 0x00, 0x0d]);
    }

    #[test]
    fn the_bytes_never_change() {
        // SplitMix64 from seed 0 gives e220a8397b1dcdaf; the hash of the empty
        // name is FNV's offset basis, worked out apart from this code.
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("a"), 0xaf63_dc4c_8601_ec8c);
    }
}
