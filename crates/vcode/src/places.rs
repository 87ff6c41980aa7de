//! Sets of places.

use crate::allocation::Place;
use ciphermill_machine::Reg;

/// One bit for each register and each slot, in turns.
#[derive(Clone, Default, Debug)]
pub struct PlaceSet(Vec<u64>);

fn bit(place: Place) -> (usize, u64) {
    let n = match place {
        Place::Reg(r) => 2 * usize::from(r.0),
        Place::Slot(s) => 2 * s as usize + 1,
    };
    (n / 64, 1 << (n % 64))
}

impl PlaceSet {
    pub fn insert(&mut self, place: Place) {
        let (word, bit) = bit(place);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bit;
    }

    pub fn remove(&mut self, place: Place) {
        let (word, bit) = bit(place);
        if let Some(w) = self.0.get_mut(word) {
            *w &= !bit;
        }
    }

    pub fn contains(&self, place: Place) -> bool {
        let (word, bit) = bit(place);
        self.0.get(word).is_some_and(|w| w & bit != 0)
    }

    /// Take in what `other` has and `without` has not; was any of it new?
    pub fn join(&mut self, other: &PlaceSet, without: Option<&PlaceSet>) -> bool {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        let mut new = false;
        for (i, (w, &o)) in self.0.iter_mut().zip(&other.0).enumerate() {
            let o = o & !without.and_then(|s| s.0.get(i)).copied().unwrap_or(0);
            new |= o & !*w != 0;
            *w |= o;
        }
        new
    }

    pub fn iter(&self) -> impl Iterator<Item = Place> + '_ {
        let place =
            |n: usize| if n.is_multiple_of(2) { Place::Reg(Reg((n / 2) as u16)) } else { Place::Slot((n / 2) as u32) };
        let bits = |(i, &w): (usize, &u64)| (0..64).filter(move |b| w >> b & 1 != 0).map(move |b| 64 * i + b);
        self.0.iter().enumerate().flat_map(bits).map(place)
    }
}

impl FromIterator<Place> for PlaceSet {
    fn from_iter<I: IntoIterator<Item = Place>>(places: I) -> PlaceSet {
        let mut set = PlaceSet::default();
        places.into_iter().for_each(|p| set.insert(p));
        set
    }
}
