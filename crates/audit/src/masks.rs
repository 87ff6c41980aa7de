//! Which bits of a simulated machine's memory are secret.
//!
//! One mask for each byte of the address space, in pages that exist once
//! something in them is secret. Bytes stand as `ciphermill_sim::memory` has
//! them: in WebAssembly's order, so that on a big-endian machine, whose memory
//! is word-invariant, byte `a` is the one at `a ^ 3`.

const PAGE: usize = 4096;

/// The masks of all memory.
pub struct Masks {
    pages: Vec<Option<Box<[u8; PAGE]>>>,
    big: bool,
}

impl Masks {
    /// Nothing is secret. `big`: of a big-endian machine.
    pub fn new(big: bool) -> Masks {
        Masks { pages: vec![None; (1 << 32) / PAGE], big }
    }

    /// The mask that a load of `bytes` bytes finds.
    pub fn read(&self, addr: u32, bytes: u8) -> u64 {
        let at = self.turned(addr, bytes);
        let byte = |i: u32| {
            let at = at.wrapping_add(i) as usize;
            self.pages[at / PAGE].as_ref().map_or(0, |p| p[at % PAGE])
        };
        let (at, n) = (at as usize, usize::from(bytes));
        let word = match &self.pages[at / PAGE] {
            None if at % PAGE + n <= PAGE => return 0,
            _ => (0..u32::from(bytes)).rev().fold(0, |w, i| w << 8 | u64::from(byte(i))),
        };
        self.halves(word, bytes)
    }

    /// Set the mask of `bytes` bytes as a store would.
    pub fn write(&mut self, addr: u32, bytes: u8, mask: u64) {
        let at = self.turned(addr, bytes);
        let mask = self.halves(mask, bytes);
        for i in 0..u32::from(bytes) {
            self.set(at.wrapping_add(i), (mask >> (8 * i)) as u8);
        }
    }

    /// Set the mask of the byte at an address of WebAssembly's.
    pub fn set(&mut self, at: u32, mask: u8) {
        let at = at as usize;
        match &mut self.pages[at / PAGE] {
            Some(page) => page[at % PAGE] = mask,
            None if mask == 0 => {}
            none => {
                let mut page = Box::new([0; PAGE]);
                page[at % PAGE] = mask;
                *none = Some(page);
            }
        }
    }

    fn turned(&self, at: u32, bytes: u8) -> u32 {
        if self.big && bytes < 4 { at ^ (4 - u32::from(bytes)) } else { at }
    }

    /// On a big-endian machine the word at the lower address is the upper half.
    fn halves(&self, word: u64, bytes: u8) -> u64 {
        if self.big && bytes == 8 { word.rotate_left(32) } else { word }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_words_meet() {
        let mut little = Masks::new(false);
        little.write(4094, 4, 0x1122_3344);
        assert_eq!([4094, 4095, 4096, 4097].map(|a| little.read(a, 1)), [0x44, 0x33, 0x22, 0x11]);
        assert_eq!((little.read(4094, 4), little.read(4090, 8)), (0x1122_3344, 0x1122_3344_0000_0000));
        let mut big = Masks::new(true);
        big.write(8, 4, 0x1122_3344);
        assert_eq!([8, 9, 10, 11].map(|a| big.read(a, 1)), [0x11, 0x22, 0x33, 0x44]);
        assert_eq!((big.read(8, 2), big.read(8, 8)), (0x1122, 0x1122_3344_0000_0000));
        big.set(8, 0);
        assert_eq!(big.read(11, 1), 0, "the lowest byte in WebAssembly's order");
    }
}
