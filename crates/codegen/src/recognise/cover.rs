//! Covering a sum of tables by instructions.
//!
//! A unit whose tables are all wanted is taken first. A unit that computes more
//! than is wanted still serves: its result is masked, or what is too much stands
//! where nothing looks (the two halves of a product, [`halves`]).

use super::bytes::Lookup;
use super::units::{Meaning, Part, Unit};
use ciphermill_ir::Value;

/// One instruction: a unit and the values of its sources, but for the
/// accumulator.
#[derive(Clone, Debug)]
pub struct Step {
    pub unit: usize,
    pub sources: Vec<Option<Value>>,
    /// Bits by which its result is then rotated to the left.
    pub turn: u32,
    /// Bits of that which are wanted.
    pub mask: u32,
}

impl Step {
    /// The sources from which nothing comes that the mask lets through.
    pub fn free(&self, units: &[Unit]) -> Vec<usize> {
        let parts = plain(&units[self.unit]);
        let wanted = |s: usize| parts.iter().any(|p| p.source == s && support(p, self.turn) & self.mask != 0);
        (0..self.sources.len()).filter(|&s| !parts.is_empty() && !wanted(s)).collect()
    }
}

/// Units that together make the sum of all `lookups`; those with most tables
/// come first.
pub fn cover(units: &[Unit], lookups: &[Lookup]) -> Option<Vec<Step>> {
    let mut left: Vec<&Lookup> = lookups.iter().filter(|l| l.table.iter().any(|&t| t != 0)).collect();
    let mut order: Vec<usize> = (0..units.len()).filter(|&u| !parts(&units[u]).is_empty()).collect();
    order.sort_by_key(|&u| std::cmp::Reverse(parts(&units[u]).len()));
    let mut steps = Vec::new();
    for find in [whole, partly] {
        for &u in &order {
            while let Some((step, taken)) = find(units, u, &left) {
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

/// The tables of a unit that adds to nothing.
fn plain(unit: &Unit) -> &[Part] {
    match &unit.meaning {
        Meaning::Tables { parts, accumulator: None, .. } => parts,
        _ => &[],
    }
}

/// The unit with sources bound so that each of its tables is one of `left`.
fn whole(units: &[Unit], u: usize, left: &[&Lookup]) -> Option<(Step, Vec<usize>)> {
    let mut sources = vec![None; units[u].sources];
    let mut taken = Vec::new();
    for part in parts(&units[u]) {
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
    Some((Step { unit: u, sources, turn: 0, mask: u32::MAX }, taken))
}

/// The unit with sources bound so that most of its tables are some of `left`,
/// and the others are masked out. Rotated only if that leaves nothing over.
fn partly(units: &[Unit], u: usize, left: &[&Lookup]) -> Option<(Step, Vec<usize>)> {
    let parts = plain(&units[u]);
    let mut best: Option<(Step, Vec<usize>)> = None;
    for turn in [0, 8, 16, 24] {
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
                best = Some((Step { unit: u, sources: filled(sources), turn, mask }, taken));
            }
        }
    }
    best
}

/// The unit with sources bound so that its result, as far as `mask` goes, is the
/// sum of `lookups`.
fn under(units: &[Unit], u: usize, mask: u32, lookups: &[Lookup]) -> Option<Step> {
    let parts = plain(&units[u]);
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
