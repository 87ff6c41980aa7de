//! A memory without the pages that hold nothing but zeros.
//!
//! A module may have a gigabyte of memory of which a cipher touches some kilobytes. The
//! others cost nothing as long as nobody writes to them: what is kept of a memory is the pages
//! that hold something, and a memory is compared with it by reading alone.

/// Bytes that are kept or left out together: a page of most systems.
const PAGE: usize = 4096;
static ZEROS: [u8; PAGE] = [0; PAGE];

/// What a memory held.
pub struct Sparse {
    bytes: usize,
    /// Pages by their number, in order.
    pages: Vec<(usize, Box<[u8]>)>,
}

impl Sparse {
    /// Keep what a memory holds.
    pub fn of(memory: &[u8]) -> Sparse {
        let held = memory.chunks(PAGE).enumerate().filter(|(_, page)| !empty(page));
        Sparse { bytes: memory.len(), pages: held.map(|(n, page)| (n, page.into())).collect() }
    }

    /// The address of the first byte in which another memory differs, with the byte that stood
    /// there: none where the one is shorter than the other.
    pub fn difference(&self, other: &[u8]) -> Option<(usize, Option<u8>)> {
        let mut held = self.pages.iter().peekable();
        for (n, theirs) in other[..other.len().min(self.bytes)].chunks(PAGE).enumerate() {
            let own = held.next_if(|h| h.0 == n).map_or(&ZEROS[..], |h| &h.1);
            let own = &own[..own.len().min(theirs.len())];
            if own != theirs {
                let at = own.iter().zip(theirs).position(|(a, b)| a != b).unwrap_or(own.len());
                return Some((n * PAGE + at, own.get(at).copied()));
            }
        }
        let shorter = self.bytes.min(other.len());
        (self.bytes != other.len()).then(|| (shorter, self.byte(shorter)))
    }

    /// What is held, by address, in order.
    pub fn held(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.pages.iter().map(|(n, page)| (n * PAGE, &**page))
    }

    /// A byte of the memory; none behind its end.
    fn byte(&self, at: usize) -> Option<u8> {
        let page = self.pages.binary_search_by_key(&(at / PAGE), |p| p.0);
        (at < self.bytes).then(|| page.map_or(0, |p| self.pages[p].1[at % PAGE]))
    }
}

fn empty(page: &[u8]) -> bool {
    *page == ZEROS[..page.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_found() {
        assert_eq!(Sparse::of(&[1, 2, 3]).difference(&[1, 2, 3]), None);
        assert_eq!(Sparse::of(&[1, 9, 4]).difference(&[1, 2, 3]), Some((1, Some(9))));
        assert_eq!(Sparse::of(&[1, 2, 3]).difference(&[1, 2]), Some((2, Some(3))));
        assert_eq!(Sparse::of(&[1, 2]).difference(&[1, 2, 3]), Some((2, None)));
    }

    #[test]
    fn pages_of_zeros_are_neither_kept_nor_overlooked() {
        let mut memory = vec![0; 5 * PAGE + 7];
        memory[2 * PAGE + 1] = 5;
        let sparse = Sparse::of(&memory);
        assert_eq!((sparse.pages.len(), sparse.difference(&memory)), (1, None));
        for at in [0, PAGE - 1, 2 * PAGE, 2 * PAGE + 1, 3 * PAGE, 5 * PAGE + 6] {
            let mut other = memory.clone();
            other[at] = 6;
            assert_eq!(sparse.difference(&other), Some((at, Some(memory[at]))));
        }
        assert_eq!(sparse.difference(&memory[..3 * PAGE]), Some((3 * PAGE, Some(0))));
        memory.push(0);
        assert_eq!(sparse.difference(&memory), Some((5 * PAGE + 7, None)));
    }
}
