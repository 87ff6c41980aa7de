//! Numbers in a row of which many change at once, and the greatest of many is asked for.
//!
//! A segment tree: each node has the greatest number of its part, without what was added to the whole of
//! a part that its own lies in. Either takes as many steps as the tree is high.

use std::cell::Cell;
use std::ops::Range;

pub struct Peaks {
    leaves: usize,
    most: Vec<i64>,
    added: Vec<i64>,
}

impl Peaks {
    pub fn of(numbers: &[i64]) -> Peaks {
        let leaves = numbers.len().next_power_of_two();
        let mut most = vec![i64::MIN / 2; 2 * leaves];
        most[leaves..leaves + numbers.len()].copy_from_slice(numbers);
        for k in (1..leaves).rev() {
            most[k] = most[2 * k].max(most[2 * k + 1]);
        }
        Peaks { leaves, most, added: vec![0; 2 * leaves] }
    }

    /// Add to each number of a range; steps are counted.
    pub fn add(&mut self, range: Range<usize>, by: i64, steps: &Cell<usize>) {
        if !range.is_empty() {
            self.add_below(1, 0..self.leaves, &range, by, steps);
        }
    }

    fn add_below(&mut self, k: usize, own: Range<usize>, range: &Range<usize>, by: i64, steps: &Cell<usize>) {
        steps.set(steps.get() + 1);
        if range.start <= own.start && own.end <= range.end {
            self.most[k] += by;
            self.added[k] += by;
            return;
        }
        let middle = own.start.midpoint(own.end);
        if range.start < middle {
            self.add_below(2 * k, own.start..middle, range, by, steps);
        }
        if middle < range.end {
            self.add_below(2 * k + 1, middle..own.end, range, by, steps);
        }
        self.most[k] = self.most[2 * k].max(self.most[2 * k + 1]) + self.added[k];
    }

    /// The greatest number of a range, less than any where that is empty; steps are counted.
    pub fn most(&self, range: Range<usize>, steps: &Cell<usize>) -> i64 {
        if range.is_empty() { i64::MIN / 2 } else { self.most_below(1, 0..self.leaves, &range, steps) }
    }

    fn most_below(&self, k: usize, own: Range<usize>, range: &Range<usize>, steps: &Cell<usize>) -> i64 {
        steps.set(steps.get() + 1);
        if range.start <= own.start && own.end <= range.end {
            return self.most[k];
        }
        let middle = own.start.midpoint(own.end);
        let mut most = i64::MIN / 2;
        if range.start < middle {
            most = most.max(self.most_below(2 * k, own.start..middle, range, steps));
        }
        if middle < range.end {
            most = most.max(self.most_below(2 * k + 1, middle..own.end, range, steps));
        }
        most + self.added[k]
    }
}

#[cfg(test)]
mod tests {
    use super::Peaks;
    use crate::search::moves::mix;
    use std::cell::Cell;

    #[test]
    fn as_a_plain_list_has_them() {
        let steps = Cell::new(0);
        for len in [1, 2, 3, 7, 64, 100] {
            let mut plain: Vec<i64> = (0..len).map(|k| (mix(len, k) % 20) as i64).collect();
            let mut peaks = Peaks::of(&plain);
            for k in 0..200 {
                let ends = [0, 1].map(|end| (mix(k, 2 * len + end) % (len + 1)) as usize);
                let range = ends[0].min(ends[1])..ends[0].max(ends[1]);
                if k % 2 == 0 {
                    let by = (mix(k, len) % 9) as i64 - 4;
                    plain[range.clone()].iter_mut().for_each(|n| *n += by);
                    peaks.add(range, by, &steps);
                } else if let Some(most) = plain[range.clone()].iter().max() {
                    assert_eq!(peaks.most(range.clone(), &steps), *most, "{len} numbers, step {k}, {range:?}");
                }
            }
        }
    }
}
