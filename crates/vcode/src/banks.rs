//! Sets of banks of on-chip memory.

/// A set of banks, counted through all blocks; one bit each.
pub type Set = u64;

/// Will accesses to these two sets meet at least every second time, each bank
/// being as probable as the next? A word takes two of the four banks.
pub fn meet(a: Set, b: Set) -> bool {
    4 * (a & b).count_ones() >= a.count_ones() * b.count_ones() && a & b != 0
}
