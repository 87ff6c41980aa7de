//! Covering a sum of tables by instructions.
//!
//! A unit whose tables are all wanted is taken first. A unit that computes more
//! than is wanted still serves: its result is masked, or what is too much stands
//! where nothing looks (the two halves of a product, [`halves`]). What no tables of
//! bytes make is tried as tables of nibbles ([`super::nibbles`]).

use super::bytes::Lookup;
use super::nibbles;
use super::nibbles::ByteTable;
use super::units::{Meaning, Part, Unit};
use ciphermill_ir::Value;
use std::sync::Arc;

/// One instruction: a unit and the values of its sources, but for the
/// accumulator.
#[derive(Clone, Debug)]
pub struct Step {
    pub unit: usize,
    pub sources: Vec<Option<Value>>,
    /// Bits by which a single source is shifted down before; up where it is negative.
    pub down: i32,
    /// Bits by which its result is then rotated to the left.
    pub turn: u32,
    /// Bits of that which are wanted.
    pub mask: u32,
}

impl Step {
    /// Bits that its unit's result may have, before it is rotated.
    pub fn possible(&self, units: &[Unit]) -> u32 {
        let unit = &units[self.unit];
        match &unit.meaning {
            Meaning::Tables { parts, accumulator: None, .. } => parts.iter().fold(0, |m, p| m | support(p, 0)),
            _ => u32::MAX,
        }
    }

    /// The sources from which nothing comes that the mask lets through.
    pub fn free(&self, units: &[Unit]) -> Vec<usize> {
        let parts = BYTES.plain(&units[self.unit]);
        let wanted = |s: usize| parts.iter().any(|p| p.source == s && support(p, self.turn) & self.mask != 0);
        (0..self.sources.len()).filter(|&s| !parts.is_empty() && !wanted(s)).collect()
    }
}

/// Units that together make the sum of all `lookups`; those with most tables
/// come first.
pub fn cover(units: &[Unit], lookups: &[Lookup]) -> Option<Vec<Step>> {
    let lookups: Vec<Lookup> = lookups.iter().filter(|l| l.table.iter().any(|&t| t != 0)).cloned().collect();
    if let Some(steps) = covered(units, &BYTES, &lookups) {
        return Some(steps);
    }
    if units.iter().all(|u| u.nibbles.is_empty()) {
        return None;
    }
    let mut halves = Vec::new();
    for lookup in &lookups {
        let tables = nibbles::split(&lookup.table)?.into_iter().filter(|t| t.iter().any(|&entry| entry != 0));
        halves.extend(tables.map(|table| Lookup { table: Arc::new(table), ..lookup.clone() }));
    }
    covered(units, &NIBBLES, &halves)
}

/// How units are looked at: as functions of what. Results may be turned by as many bits
/// as an index has.
struct View {
    parts: fn(&Unit) -> &[Part],
    /// Bits of an index.
    width: usize,
    /// Where in the byte a table's index begins.
    index: fn(&ByteTable) -> usize,
}

const BYTES: View = View { parts, width: 8, index: |_| 0 };
const NIBBLES: View = View { parts: |unit| &unit.nibbles, width: 4, index: nibbles::first };

impl View {
    /// The tables of a unit that adds to nothing.
    fn plain<'a>(&self, unit: &'a Unit) -> &'a [Part] {
        match &unit.meaning {
            Meaning::Tables { accumulator: None, .. } => (self.parts)(unit),
            _ => &[],
        }
    }
}

fn covered(units: &[Unit], view: &View, lookups: &[Lookup]) -> Option<Vec<Step>> {
    let mut left: Vec<&Lookup> = lookups.iter().collect();
    let mut order: Vec<usize> = (0..units.len()).filter(|&u| !(view.parts)(&units[u]).is_empty()).collect();
    order.sort_by_key(|&u| std::cmp::Reverse((view.parts)(&units[u]).len()));
    let mut steps = Vec::new();
    for find in [whole, partly, moved] {
        for &u in &order {
            while let Some((step, taken)) = find(units, view, u, &left) {
                steps.push(step);
                left = (0..left.len()).filter(|i| !taken.contains(i)).map(|i| left[i]).collect();
            }
        }
    }
    left.is_empty().then_some(steps)
}

/// Two steps whose results, under the two masks, together are the sum of
/// `lookups`.
pub fn halves(units: &[Unit], masks: &[u32], lookups: &[Lookup]) -> Option<[Step; 2]> {
    let half = |mask: u32| (0..units.len()).find_map(|u| under(units, u, mask, lookups));
    Some([half(masks[0])?, half(masks[1])?])
}

fn parts(unit: &Unit) -> &[Part] {
    if let Meaning::Tables { parts, .. } = &unit.meaning { parts } else { &[] }
}

/// The unit with sources bound so that each of its tables is one of `left`.
fn whole(units: &[Unit], view: &View, u: usize, left: &[&Lookup]) -> Option<(Step, Vec<usize>)> {
    let mut sources = vec![None; units[u].sources];
    let mut taken = Vec::new();
    for part in (view.parts)(&units[u]) {
        let fits = |i: &usize| {
            let l = left[*i];
            !taken.contains(i)
                && l.byte == part.byte
                && sources[part.source].is_none_or(|s| s == l.source)
                && l.table == part.table
        };
        let i = (0..left.len()).find(fits)?;
        sources[part.source] = Some(left[i].source);
        taken.push(i);
    }
    Some((Step { unit: u, sources, down: 0, turn: 0, mask: u32::MAX }, taken))
}

/// The unit with sources bound so that most of its tables are some of `left`,
/// and the others are masked out. Rotated only if that leaves nothing over.
fn partly(units: &[Unit], view: &View, u: usize, left: &[&Lookup]) -> Option<(Step, Vec<usize>)> {
    let parts = view.plain(&units[u]);
    let mut best: Option<(Step, Vec<usize>)> = None;
    for turn in (0..u32::BITS).step_by(view.width) {
        let table = |p: usize, l: &Lookup| (0..256).all(|x| l.table[x] == parts[p].table[x].rotate_left(turn));
        let fits = |p: usize, i: usize| left[i].byte == parts[p].byte && table(p, left[i]);
        for (p, i) in (0..parts.len()).flat_map(|p| (0..left.len()).map(move |i| (p, i))).filter(|&(p, i)| fits(p, i)) {
            let mut sources = vec![None; units[u].sources];
            sources[parts[p].source] = Some(left[i].source);
            let (mut taken, mut mask) = (vec![i], support(&parts[p], turn));
            let mut over = 0;
            for other in (0..parts.len()).filter(|&other| other != p) {
                let bound = |i: usize| sources[parts[other].source].is_none_or(|s| s == left[i].source);
                match (0..left.len()).find(|&i| !taken.contains(&i) && bound(i) && fits(other, i)) {
                    Some(i) => {
                        sources[parts[other].source] = Some(left[i].source);
                        taken.push(i);
                        mask |= support(&parts[other], turn);
                    }
                    None => over |= support(&parts[other], turn),
                }
            }
            let enough =
                best.as_ref().map_or(0, |b| b.1.len()) < taken.len() && (turn == 0 || taken.len() == left.len());
            if enough && over & mask == 0 {
                let mask = if over == 0 { u32::MAX } else { mask };
                best = Some((Step { unit: u, sources: filled(sources), down: 0, turn, mask }, taken));
            }
        }
    }
    best
}

/// A unit of one table at one place that adds to nothing, put to a byte or nibble at
/// another place, which is shifted there first; its result is rotated.
fn moved(units: &[Unit], view: &View, u: usize, left: &[&Lookup]) -> Option<(Step, Vec<usize>)> {
    let [part] = view.plain(&units[u]) else { return None };
    let own = (view.index)(&part.table);
    (0..left.len()).find_map(|i| {
        let theirs = (view.index)(&left[i].table);
        let same = |turn: u32| {
            let entry = |x: usize| part.table[x << own].rotate_left(turn) == left[i].table[x << theirs];
            (0..1 << view.width).all(entry)
        };
        let turn = (0..u32::BITS).step_by(view.width).find(|&t| same(t))?;
        let at = |byte: u8, shift: usize| 8 * i32::from(byte) + shift as i32;
        let mut sources = vec![None; units[u].sources];
        sources[part.source] = Some(left[i].source);
        let down = at(left[i].byte, theirs) - at(part.byte, own);
        Some((Step { unit: u, sources, down, turn, mask: u32::MAX }, vec![i]))
    })
}

/// The unit with sources bound so that its result, as far as `mask` goes, is the
/// sum of `lookups`.
fn under(units: &[Unit], u: usize, mask: u32, lookups: &[Lookup]) -> Option<Step> {
    let parts = BYTES.plain(&units[u]);
    let mut sources = vec![None; units[u].sources];
    let mut free: Vec<&Part> = parts.iter().collect();
    for l in lookups.iter().filter(|l| l.table.iter().any(|t| t & mask != 0)) {
        let fits = |p: &&Part| {
            p.byte == l.byte
                && sources[p.source].is_none_or(|s| s == l.source)
                && (0..256).all(|x| (p.table[x] ^ l.table[x]) & mask == 0)
        };
        let p = free.remove(free.iter().position(fits)?);
        sources[p.source] = Some(l.source);
    }
    let quiet = free.iter().all(|p| support(p, 0) & mask == 0);
    (quiet && sources.iter().any(Option::is_some)).then(|| Step {
        unit: u,
        sources: filled(sources),
        down: 0,
        turn: 0,
        mask: u32::MAX,
    })
}

/// Bits that a table's entries have, rotated.
fn support(part: &Part, turn: u32) -> u32 {
    part.table.iter().fold(0, |m, t| m | t).rotate_left(turn)
}

/// A source that does not matter is the same as another.
fn filled(sources: Vec<Option<Value>>) -> Vec<Option<Value>> {
    let any = sources.iter().flatten().next().copied();
    sources.into_iter().map(|s| s.or(any)).collect()
}
