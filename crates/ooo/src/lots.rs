//! Lots: by which a micro-operation is sent to one of several queues ([`crate::queues`]), the same each time that it comes.

use crate::uop::Uop;
use std::collections::HashMap;

/// What only some of the ports can start that others can is dealt to its queues in turn, in place of a lot: products
/// that wait for each other in chains start on all of their units every cycle, where sums do not.
pub fn deal(uops: &mut [Uop]) {
    let widest = uops.iter().map(|u| u.ports.count_ones()).max().unwrap_or(0);
    let mut turns = HashMap::<u32, u8>::new();
    for uop in uops.iter_mut().filter(|u| u.ports.count_ones() < widest) {
        let turn = turns.entry(uop.ports).or_default();
        uop.lot = *turn;
        *turn = (*turn + 1) % ROUND;
    }
}

/// Of 8 bits the largest number of turns that any number of ports up to six divides.
const ROUND: u8 = 240;

/// A number from 0 to 255 by which a micro-operation is sent to one of several queues, as good as drawn by lot. Fibonacci
/// hashing: Knuth, *The Art of Computer Programming*, volume 3, 6.4.
pub fn lot(number: usize) -> u8 {
    ((number as u32).wrapping_mul(0x9e37_79b1) >> 24) as u8
}
