//! Which bits of a simulated machine's memory are secret.
//!
//! One mask for each byte of the address space, in pages that exist once
//! something in them is secret. Bytes stand as `ciphermill_sim::memory` has
//! them: in WebAssembly's order, so that on a big-endian machine, whose memory
//! is word-invariant, byte `a` is the one at `a ^ 3`.

const PAGE: usize = 4096;
/// Pages in a group; there are as many groups.
const GROUP: usize = 1024;

/// The masks of all memory.
pub struct Masks {
    /// By the upper bits of the address, each empty or whole.
    groups: Vec<Vec<Option<Box<[u8; PAGE]>>>>,
    big: bool,
}

impl Masks {
    /// Nothing is secret. `big`: of a big-endian machine.
    pub fn new(big: bool) -> Masks {
        Masks { groups: vec![Vec::new(); GROUP], big }
    }

    /// The mask that a load of `bytes` bytes finds.
    pub fn read(&self, addr: u32, bytes: u8) -> u64 {
        let at = self.turned(addr, bytes);
        let (offset, n) = (at as usize % PAGE, usize::from(bytes));
        let word = match self.page(at) {
            None if offset + n <= PAGE => return 0,
            Some(page) if offset + n <= PAGE => {
                page[offset..offset + n].iter().rev().fold(0, |w, &b| w << 8 | u64::from(b))
            }
            _ => (0..u32::from(bytes)).rev().fold(0, |w, i| w << 8 | u64::from(self.byte(at.wrapping_add(i)))),
        };
        self.halves(word, bytes)
    }

    fn page(&self, at: u32) -> Option<&[u8; PAGE]> {
        let page = at as usize / PAGE;
        self.groups[page / GROUP].get(page % GROUP)?.as_deref()
    }

    fn byte(&self, at: u32) -> u8 {
        self.page(at).map_or(0, |page| page[at as usize % PAGE])
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
        let (page, offset) = (at as usize / PAGE, at as usize % PAGE);
        let group = &mut self.groups[page / GROUP];
        if group.is_empty() {
            if mask == 0 {
                return;
            }
            group.resize(GROUP, None);
        }
        match &mut group[page % GROUP] {
            Some(page) => page[offset] = mask,
            None if mask == 0 => {}
            none => none.insert(Box::new([0; PAGE]))[offset] = mask,
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
