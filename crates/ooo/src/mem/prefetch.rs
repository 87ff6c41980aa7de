//! Who fetches lines before they are asked for.
//!
//! Each of these only says which line; the [`super::Memory`] fetches it.
//! A fetch begins when the access that gave the hint does. Prefetchers that know
//! addresses only behind their translation stay within a page ([`Pages`]): what
//! comes behind its border in the program lies anywhere in memory.

/// Pages of lines, none of which a prefetch leaves.
#[derive(Clone, Copy)]
pub struct Pages {
    /// Bits of a line's number within its page.
    bits: u32,
}

impl Pages {
    /// Pages of so many bytes (0: one for everything), lines of `1 << shift`.
    pub fn new(bytes: u32, shift: u32) -> Pages {
        Pages { bits: if bytes == 0 { 63 } else { bytes.trailing_zeros().saturating_sub(shift) } }
    }

    /// Are both lines in one page?
    #[inline(always)]
    pub fn together(self, a: u64, b: u64) -> bool {
        (a ^ b) >> self.bits == 0
    }
}

/// Loads whose addresses have a stride, by address of the load.
pub struct Strides {
    entries: Vec<Stride>,
}

#[derive(Clone, Copy, Default)]
struct Stride {
    tag: u32,
    last: u32,
    step: i32,
    sure: u8,
}

impl Strides {
    pub fn new(entries: u32) -> Strides {
        Strides {
            entries: vec![Stride::default(); if entries == 0 { 0 } else { entries.next_power_of_two() as usize }],
        }
    }

    /// The address that the load will ask for next, if it has gone in equal
    /// steps three times.
    #[inline(always)]
    pub fn next(&mut self, pc: u32, addr: u32) -> Option<u32> {
        if self.entries.is_empty() {
            return None;
        }
        let at = pc as usize & (self.entries.len() - 1);
        let e = &mut self.entries[at];
        if e.tag != pc {
            *e = Stride { tag: pc, last: addr, step: 0, sure: 0 };
            return None;
        }
        let step = addr.wrapping_sub(e.last) as i32;
        e.sure = if step == e.step { (e.sure + 1).min(2) } else { 0 };
        (e.last, e.step) = (addr, step);
        (e.sure == 2 && step != 0).then(|| addr.wrapping_add(step as u32))
    }
}

/// Ascending or descending runs of lines among the accesses to the second cache.
pub struct Streams {
    heads: Vec<(u64, i64)>,
    next: usize,
    ahead: u64,
    pages: Pages,
}

impl Streams {
    pub fn new(streams: u32, ahead: u32, pages: Pages) -> Streams {
        Streams { heads: vec![(u64::MAX, 0); streams as usize], next: 0, ahead: u64::from(ahead), pages }
    }

    /// Lines to fetch after an access to a line.
    pub fn hint(&mut self, line: u64) -> Option<impl Iterator<Item = u64> + use<>> {
        if self.heads.is_empty() {
            return None;
        }
        let pages = self.pages;
        for head in &mut self.heads {
            let step = line.wrapping_sub(head.0) as i64;
            if (step == 1 || step == -1) && (head.1 == step || head.1 == 0) && pages.together(line, head.0) {
                let known = head.1 == step;
                *head = (line, step);
                let ahead = if known { self.ahead } else { 0 };
                let lines = (1..=ahead).map(move |i| line.wrapping_add((step * i as i64) as u64));
                return Some(lines.filter(move |&l| pages.together(l, line)));
            }
            if step == 0 {
                return None;
            }
        }
        self.heads[self.next] = (line, 0);
        self.next = (self.next + 1) % self.heads.len();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_steps_are_followed() {
        let mut s = Strides::new(8);
        assert_eq!([100, 164, 228, 292].map(|a| s.next(5, a)), [None, None, None, Some(356)]);
        assert_eq!(s.next(5, 300), None);
        assert_eq!(s.next(6, 300), None);
    }

    #[test]
    fn the_third_line_in_a_row_is_a_stream() {
        let mut s = Streams::new(2, 2, Pages::new(0, 6));
        let lines = |s: &mut Streams, line| s.hint(line).map(|i| i.collect::<Vec<_>>()).unwrap_or_default();
        assert!(lines(&mut s, 10).is_empty());
        assert!(lines(&mut s, 11).is_empty());
        assert_eq!(lines(&mut s, 12), [13, 14]);
        // Another stream, downwards, beside it.
        assert!(lines(&mut s, 90).is_empty());
        assert!(lines(&mut s, 89).is_empty());
        assert_eq!(lines(&mut s, 88), [87, 86]);
        assert_eq!(lines(&mut s, 13), [14, 15]);
    }

    #[test]
    fn a_stream_ends_with_its_page() {
        // Pages of 256 bytes are four lines: 8 to 11, 12 to 15.
        let mut s = Streams::new(2, 2, Pages::new(256, 6));
        let mut lines = |line| s.hint(line).map(|i| i.collect::<Vec<_>>()).unwrap_or_default();
        assert_eq!([8, 9, 10, 11].map(&mut lines), [vec![], vec![], vec![11], vec![]]);
        // The next page's first line begins another one.
        assert_eq!([12, 13, 14].map(&mut lines), [vec![], vec![], vec![15]]);
    }
}
