//! What accesses to memory follow.
//!
//! Of an access is kept which stores it follows that may touch its bytes, as the sum of
//! fingerprints of 128 bits. If each access follows the same ones in both runs, no two that
//! conflict have changed places: stores by their own fingerprint, which is made of what they
//! follow, and a load and a store since the load would follow another set. Stores are kept by
//! region, so that an access asks each region once and not each store.
//!
//! Within an iteration two accesses of one base compare by their offsets. In whatever iterations
//! two are whose addresses are counted from the same sum ([`crate::sums`]) compare by how far behind
//! it they begin, modulo 2^32; from different sums, by what is known of how far those are apart.

use crate::access::Access;
use crate::sums::Sums;
use crate::terms::{Place, Term};
use std::collections::BTreeMap;

/// Most bytes that an access touches.
const WIDEST: i64 = 256;

/// Stores of one iteration that differ in their offsets alone, and that are counted from one sum, if any.
#[derive(Clone, Debug)]
struct Region {
    like: Access,
    iteration: u32,
    root: Option<Term>,
    all: u128,
    /// Bytes and fingerprint of each store, by offset.
    at: BTreeMap<i64, Vec<(u8, u128)>>,
    /// And by how far behind the root it begins.
    behind: BTreeMap<u32, Vec<(u8, u128)>>,
}

impl Region {
    /// Of the stores that an access may meet, the sum of the fingerprints.
    fn met(&self, a: &Access, place: Option<Place>, iteration: u32, sums: &Sums) -> u128 {
        let sum = |list: &mut dyn Iterator<Item = u128>| list.fold(0, u128::wrapping_add);
        if self.iteration == iteration && self.like.base == a.base {
            let near = self.at.range(a.offset - WIDEST..a.offset + i64::from(a.bytes));
            let near = near.flat_map(|(&offset, list)| list.iter().map(move |s| (offset, s)));
            return sum(&mut near.filter(|(offset, s)| offset + i64::from(s.0) > a.offset).map(|(_, s)| s.1));
        }
        match (place, self.root) {
            (Some(Place { at, root }), Some(own)) if root == own => {
                // Numbers go round: what begins before the access, and what begins within it.
                let before = around(&self.behind, at.wrapping_sub(WIDEST as u32), WIDEST as u32);
                let reaches = before.filter(|(begin, s)| at.wrapping_sub(*begin) < u32::from(s.0));
                let within = around(&self.behind, at, u32::from(a.bytes));
                sum(&mut reaches.chain(within).map(|(_, s)| s.1))
            }
            (Some(place), Some(root)) => {
                let begins =
                    self.behind.iter().flat_map(|(&at, list)| list.iter().map(move |s| (Place { root, at }, s)));
                sum(&mut begins.filter(|(own, s)| !sums.apart((*own, s.0), (place, a.bytes))).map(|(_, s)| s.1))
            }
            _ => self.all,
        }
    }
}

/// What a table has for so many numbers from the first on; behind the largest comes 0.
fn around<T>(table: &BTreeMap<u32, Vec<T>>, first: u32, count: u32) -> impl Iterator<Item = (u32, &T)> {
    let end = first.wrapping_add(count);
    let (up, down) = if end >= first { (first..end, 0..0) } else { (first..u32::MAX, 0..end) };
    let last = if end >= first { None } else { table.get_key_value(&u32::MAX) };
    let all = table.range(up).chain(last).chain(table.range(down));
    all.flat_map(|(&begin, list)| list.iter().map(move |t| (begin, t)))
}

/// What has been stored so far.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    regions: Vec<Region>,
    /// Of what nothing moves across.
    fences: u128,
}

impl Stored {
    /// The fingerprint of what an access in an iteration follows; where it is known, its `place`.
    pub fn before(&self, a: &Access, place: Option<Place>, iteration: u32, sums: &Sums) -> u128 {
        let met = self.regions.iter().filter(|r| !r.like.never_meets(a)).map(|r| r.met(a, place, iteration, sums));
        met.fold(self.fences, u128::wrapping_add)
    }

    /// The fingerprint of all stores so far.
    pub fn all(&self) -> u128 {
        self.regions.iter().fold(self.fences, |sum, r| sum.wrapping_add(r.all))
    }

    /// A store with a number of its own.
    pub fn store(&mut self, a: &Access, place: Option<Place>, iteration: u32, number: u32) {
        let print = fingerprint(number);
        let like = Access { offset: 0, bytes: 0, banks: 0, store: true, ..*a };
        let root = place.map(|p| p.root);
        let same = |r: &Region| r.iteration == iteration && r.like == like && r.root == root;
        let region = match self.regions.iter().position(same) {
            Some(k) => &mut self.regions[k],
            None => {
                let (at, behind) = (BTreeMap::new(), BTreeMap::new());
                self.regions.push(Region { like, iteration, root, all: 0, at, behind });
                let last = self.regions.len() - 1;
                &mut self.regions[last]
            }
        };
        region.all = region.all.wrapping_add(print);
        region.at.entry(a.offset).or_default().push((a.bytes, print));
        if let Some(place) = place {
            region.behind.entry(place.at).or_default().push((a.bytes, print));
        }
    }

    /// Nothing moves across this.
    pub fn fence(&mut self, number: u32) {
        self.fences = self.fences.wrapping_add(fingerprint(number));
    }
}

/// 128 bits of which each depends on each bit of a number (the finaliser of Steele, Lea and
/// Flood's SplitMix, 2014, twice).
fn fingerprint(number: u32) -> u128 {
    let mix = |seed: u64| {
        let mut z = u64::from(number).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    u128::from(mix(0x243f_6a88_85a3_08d3)) << 64 | u128::from(mix(0x1319_8a2e_0370_7344))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphermill_ir::Space;

    fn word(base: u32, offset: i64) -> Access {
        Access { base: Some(base), offset, bytes: 4, ..Access::anywhere(Space::Linear) }
    }

    /// What a load follows, of two stores in iteration 1.
    fn follows(load: &Access, place: Option<Place>, iteration: u32, stores: [(i64, Option<Place>); 2]) -> [bool; 2] {
        let mut stored = Stored::default();
        for (n, (offset, at)) in stores.into_iter().enumerate() {
            stored.store(&Access { store: true, ..word(7, offset) }, at, 1, n as u32);
        }
        let found = stored.before(load, place, iteration, &Sums::default());
        [[false, false], [true, false], [false, true], [true, true]]
            .into_iter()
            .find(|set| {
                let sum = (0..2).filter(|&n| set[n]).map(|n| fingerprint(n as u32));
                sum.fold(0, u128::wrapping_add) == found
            })
            .expect("it follows some of them")
    }

    #[test]
    fn accesses_of_two_iterations_compare_by_what_they_are_counted_from() {
        let at = |root, at| Some(Place { root, at });
        let stores = [(0, at(5, 100)), (4, at(5, 104))];
        // In the same iteration by the base, in another one by the place, and else it may be any.
        assert_eq!(follows(&word(7, 4), None, 1, stores), [false, true]);
        assert_eq!(follows(&word(7, 4), at(5, 108), 2, stores), [false, false]);
        assert_eq!(follows(&word(7, 4), at(5, 104), 2, stores), [false, true]);
        assert_eq!(follows(&word(7, 4), at(5, 102), 2, stores), [true, true]);
        assert_eq!(follows(&word(7, 4), at(5, 97), 2, stores), [true, false]);
        assert_eq!(follows(&word(7, 4), at(6, 108), 2, stores), [true, true]);
        assert_eq!(follows(&word(7, 4), None, 2, stores), [true, true]);
    }

    #[test]
    fn numbers_go_round() {
        let at = |at: i32| Some(Place { root: 5, at: at as u32 });
        let stores = [(0, at(-2)), (4, at(2))];
        for (load, met) in [(-6, [false, false]), (-5, [true, false]), (-1, [true, true]), (1, [true, true])] {
            assert_eq!(follows(&word(7, 0), at(load), 2, stores), met, "{load}");
        }
        assert_eq!(follows(&word(7, 0), at(2), 2, stores), [false, true]);
        assert_eq!(follows(&word(7, 0), at(6), 2, stores), [false, false]);
    }
}
