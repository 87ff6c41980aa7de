//! What is known of how far an address is from another, modulo 2^32.

/// Which iterations two accesses meet in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meeting {
    Unknown,
    Never,
    /// The second's iteration is at the least so many behind the first's.
    After(u32),
}

/// A step beyond this, in bytes, may come round before the iterations that overlap are over.
const LARGEST_STEP: i64 = 1 << 16;

/// Numbers from the least to the largest, which are a constant beside multiples of a power of two.
/// The constant alone has the range 0; without a range nothing but the multiples is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    constant: i32,
    range: Option<(i64, i64)>,
    /// Zeros at the end of the multiples.
    zeros: u32,
}

impl Gap {
    pub fn of(constant: u32) -> Gap {
        Gap { constant: constant as i32, range: Some((0, 0)), zeros: 32 }
    }

    /// Add a factor times a number that may have these bits set.
    pub fn add(&mut self, factor: u32, bits: u32) {
        if factor == 0 || bits == 0 {
            return;
        }
        self.zeros = self.zeros.min(factor.trailing_zeros() + bits.trailing_zeros());
        let most = i64::from(factor as i32) * i64::from(bits);
        let sum = self.range.map(|(low, high)| (low + most.min(0), high + most.max(0)));
        // What is as long as all addresses says nothing.
        self.range = sum.filter(|(low, high)| high - low < 1 << 32);
    }

    /// The least distance, of iterations in each of which it grows by a step, at which `bytes` overlap with
    /// those of the `other`, which is so far behind.
    pub fn meets(&self, bytes: i64, other: i64, step: i32, least: u32) -> Meeting {
        let step = i64::from(step);
        if self.never(bytes, other, step) {
            return Meeting::Never;
        }
        let constant = i64::from(self.constant);
        let Some((low, high)) = self.range.map(|(low, high)| (constant + low, constant + high)) else {
            return Meeting::Unknown;
        };
        let inside = low >= i64::from(i32::MIN) && high <= i64::from(i32::MAX);
        if !inside || step.abs() > LARGEST_STEP {
            return Meeting::Unknown;
        }
        // At distance d both ends are `step * d` higher. It enters where one comes in reach.
        let outside = if step < 0 { low - (bytes - 1) } else { -(other - 1) - high };
        let enters = match step.abs() {
            0 => 0,
            step => (outside.max(0) as u64).div_ceil(step as u64) as i64,
        };
        let distance = enters.max(i64::from(least));
        let overlap = low + step * distance < bytes && -other < high + step * distance;
        match u32::try_from(distance) {
            Ok(d) if overlap => Meeting::After(d),
            _ => Meeting::Never,
        }
    }

    /// Do the multiples alone, those of the step with them, keep them apart?
    fn never(&self, bytes: i64, other: i64, step: i64) -> bool {
        let zeros = self.zeros.min(step.trailing_zeros()).min(32);
        let rest = i64::from(self.constant).rem_euclid(1 << zeros);
        rest >= bytes && rest - (1 << zeros) <= -other
    }
}
