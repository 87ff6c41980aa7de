//! Covering a sum of tables by instructions.
//!
//! A unit whose parts are all wanted is taken first. A unit that computes more than is wanted
//! still serves: its result is masked, or what is too much stands where nothing looks (the
//! two halves of a product, [`halves`]). What no tables of bytes make is tried as tables of
//! nibbles ([`super::nibbles`]). Units are taken until nothing is left of the sum, its
//! constant included.

use super::nibbles;
use super::sum::{Function, Part, Sum};
use super::units::{Turn, Unit};
use ciphermill_ir::Value;

/// Parts that are worth a mask on machines of 64-bit words, where a constant takes up to
/// eight instructions.
const LEAST_UNDER_MASK: usize = 4;

/// One instruction: a unit and the values of its sources, but for the accumulator.
#[derive(Clone, Debug)]
pub struct Step {
    pub unit: usize,
    pub sources: Vec<Option<Value>>,
    /// Bits by which a single source is shifted down before; up where it is negative.
    pub down: i32,
    /// Bits by which its result is then rotated to the left.
    pub turn: u32,
    /// Bits of that which are wanted; all ones: whatever it has.
    pub mask: u64,
}

impl Step {
    fn new(unit: usize, sources: Vec<Option<Value>>) -> Step {
        Step { unit, sources, down: 0, turn: 0, mask: u64::MAX }
    }

    /// Is it the unit's result as it is?
    pub fn is_whole(&self) -> bool {
        self.turn == 0 && self.mask == u64::MAX
    }

    /// The sources from which nothing comes that the mask lets through.
    pub fn free(&self, units: &[Unit]) -> Vec<usize> {
        let unit = &units[self.unit];
        let parts = if unit.accumulator.is_none() { &unit.sum.parts[..] } else { &[] };
        let passes = |p: &Part<usize>| unit.turned(p.possible(), self.turn) & self.mask != 0;
        let wanted = |s: usize| parts.iter().any(|p| p.source == s && passes(p));
        (0..self.sources.len()).filter(|&s| !parts.is_empty() && !wanted(s)).collect()
    }
}

/// Units that together make a sum; those with most parts come first.
pub fn cover(units: &[Unit], wanted: &Sum<Value>) -> Option<Vec<Step>> {
    if let Some(steps) = covered(units, &BYTES, &wanted.parts, wanted.at_zero()) {
        return Some(steps);
    }
    if units.iter().all(|u| u.nibbles.is_empty()) {
        return None;
    }
    covered(units, &NIBBLES, &nibbles::halves(&wanted.parts)?, wanted.at_zero())
}

/// How units are looked at: as functions of what. Results may be turned by as many bits as an
/// index has.
struct View {
    turns: fn(&Unit) -> &[Turn],
    /// Bits of an index.
    width: usize,
    /// Where in the byte a function's index begins.
    index: fn(&Function) -> usize,
}

const BYTES: View = View { turns: |unit| &unit.bytes, width: 8, index: |_| 0 };
const NIBBLES: View = View { turns: |unit| &unit.nibbles, width: 4, index: upper };

/// Where the nibble begins that a function of one looks at.
fn upper(function: &Function) -> usize {
    if (1..16).all(|x| function.at(x) == 0) { 4 } else { 0 }
}

impl View {
    fn parts<'a>(&self, unit: &'a Unit) -> &'a [Part<usize>] {
        (self.turns)(unit).first().map_or(&[], |turn| &turn.parts)
    }

    /// The rotations of a unit that adds to nothing.
    fn plain<'a>(&self, unit: &'a Unit) -> &'a [Turn] {
        if unit.accumulator.is_none() { (self.turns)(unit) } else { &[] }
    }
}

/// A step, the parts that it makes, and the constant that comes with them.
type Found = (Step, Vec<usize>, u64);

fn covered(units: &[Unit], view: &View, wanted: &[Part<Value>], mut constant: u64) -> Option<Vec<Step>> {
    let mut left: Vec<&Part<Value>> = wanted.iter().collect();
    let mut order: Vec<usize> = (0..units.len()).filter(|&u| !view.parts(&units[u]).is_empty()).collect();
    order.sort_by_key(|&u| std::cmp::Reverse(view.parts(&units[u]).len()));
    let mut steps = Vec::new();
    for find in [whole, partly, moved] {
        for &u in &order {
            while !left.is_empty()
                && let Some((step, taken, added)) = find(units, view, u, &left)
            {
                steps.push(step);
                constant ^= added;
                left = (0..left.len()).filter(|i| !taken.contains(i)).map(|i| left[i]).collect();
            }
        }
    }
    (left.is_empty() && constant == 0).then_some(steps)
}

/// Two steps whose results, under the two masks, together are a sum.
pub fn halves(units: &[Unit], masks: &[u64], wanted: &Sum<Value>) -> Option<[Step; 2]> {
    let half = |mask: u64| (0..units.len()).find_map(|u| under(units, u, mask, wanted));
    Some([half(masks[0])?, half(masks[1])?])
}

/// The unit with sources bound so that each of its parts is one of `left`.
fn whole(units: &[Unit], view: &View, u: usize, left: &[&Part<Value>]) -> Option<Found> {
    let mut sources = vec![None; units[u].sources];
    let mut taken = Vec::new();
    for part in view.parts(&units[u]) {
        let fits = |i: &usize| {
            let l = left[*i];
            !taken.contains(i)
                && l.byte == part.byte
                && sources[part.source].is_none_or(|s| s == l.source)
                && l.function == part.function
        };
        let i = (0..left.len()).find(fits)?;
        sources[part.source] = Some(left[i].source);
        taken.push(i);
    }
    Some((Step::new(u, sources), taken, units[u].sum.at_zero()))
}

/// The unit with sources bound so that most of its parts are some of `left`, and the others
/// are masked out. Rotated only if that leaves nothing over.
fn partly(units: &[Unit], view: &View, u: usize, left: &[&Part<Value>]) -> Option<Found> {
    let unit = &units[u];
    let least = if unit.bits == 64 { LEAST_UNDER_MASK } else { 1 };
    let mut best: Option<Found> = None;
    for Turn { by: turn, parts, constant } in view.plain(unit) {
        let turn = *turn;
        let fits = |p: usize, i: usize| left[i].byte == parts[p].byte && left[i].function == parts[p].function;
        for (p, i) in (0..parts.len()).flat_map(|p| (0..left.len()).map(move |i| (p, i))).filter(|&(p, i)| fits(p, i)) {
            let mut sources = vec![None; unit.sources];
            sources[parts[p].source] = Some(left[i].source);
            let (mut taken, mut mask) = (vec![i], parts[p].possible());
            let mut over = 0;
            for (n, other) in parts.iter().enumerate().filter(|&(n, _)| n != p) {
                let bound = |i: usize| sources[other.source].is_none_or(|s| s == left[i].source);
                match (0..left.len()).find(|&i| !taken.contains(&i) && bound(i) && fits(n, i)) {
                    Some(i) => {
                        sources[other.source] = Some(left[i].source);
                        taken.push(i);
                        mask |= other.possible();
                    }
                    None => over |= other.possible(),
                }
            }
            let enough =
                best.as_ref().map_or(0, |b| b.1.len()) < taken.len() && (turn == 0 || taken.len() == left.len());
            if enough && over & mask == 0 && (over == 0 || taken.len() >= least) {
                let mask = if over == 0 { u64::MAX } else { mask };
                best = Some((Step { turn, mask, ..Step::new(u, filled(sources)) }, taken, constant & mask));
            }
        }
    }
    best
}

/// A unit of one part that adds to nothing, put to a byte or nibble at another place, which is
/// shifted there first; its result is rotated.
fn moved(units: &[Unit], view: &View, u: usize, left: &[&Part<Value>]) -> Option<Found> {
    let unit = &units[u];
    let ([part], None) = (view.parts(unit), unit.low) else { return None };
    let to = (view.index)(&part.function);
    (0..left.len()).find_map(|i| {
        let theirs = &left[i].function;
        let from = (view.index)(theirs);
        let same = |turn: &&Turn| {
            let own = &turn.parts[0].function;
            (0..1 << view.width).all(|x| own.at(x << to) == theirs.at(x << from))
        };
        let turn = view.plain(unit).iter().find(same)?;
        let mut sources = vec![None; unit.sources];
        sources[part.source] = Some(left[i].source);
        let place = |byte: u8, shift: usize| 8 * i32::from(byte) + shift as i32;
        let down = place(left[i].byte, from) - place(part.byte, to);
        Some((Step { down, turn: turn.by, ..Step::new(u, sources) }, vec![i], turn.constant))
    })
}

/// The unit with sources bound so that its result, as far as `mask` goes, is the sum.
fn under(units: &[Unit], u: usize, mask: u64, wanted: &Sum<Value>) -> Option<Step> {
    let parts = BYTES.plain(&units[u]).first().map_or(&[][..], |turn| &turn.parts);
    let mut sources = vec![None; units[u].sources];
    let mut free: Vec<&Part<usize>> = parts.iter().collect();
    for l in wanted.parts.iter().filter(|p| p.function.possible() & mask != 0) {
        let fits = |p: &&Part<usize>| {
            p.byte == l.byte
                && sources[p.source].is_none_or(|s| s == l.source)
                && p.function.is_under(mask, &l.function)
        };
        let p = free.remove(free.iter().position(fits)?);
        sources[p.source] = Some(l.source);
    }
    let quiet = free.iter().all(|p| p.function.possible() & mask == 0)
        && (units[u].sum.at_zero() ^ wanted.at_zero()) & mask == 0;
    (quiet && sources.iter().any(Option::is_some)).then(|| Step::new(u, filled(sources)))
}

/// A source that does not matter is the same as another.
fn filled(sources: Vec<Option<Value>>) -> Vec<Option<Value>> {
    let any = sources.iter().flatten().next().copied();
    sources.into_iter().map(|s| s.or(any)).collect()
}
