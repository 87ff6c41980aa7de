//! The checker of certificates: exact integers, and nothing of what finds them.
//!
//! It takes a loop and a certificate and says which bound that proves. What finds certificates may
//! use floating point or be wrong: what does not pass here is not claimed.

use crate::certificate::{Certificate, Circuit, Joint, Lifetimes, Reason, Relaxation, Resources};
use crate::model::Loop;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Why a certificate proves nothing.
type Wrong = &'static str;

const STRANGE: Wrong = "it names something that the loop does not have";

/// The least II that a certificate leaves: no schedule has a smaller one.
///
/// # Errors
/// What is wrong with it, where it proves nothing.
pub fn least(l: &Loop, certificate: &Certificate) -> Result<i64, Wrong> {
    match certificate {
        Certificate::Resources(c) => resources(l, c),
        Certificate::Circuit(c) => circuit(l, c),
        Certificate::Joint(c) => joint(l, c),
        Certificate::Relaxation(c) => relaxation(l, c),
        Certificate::Lifetimes(c) => lifetimes(l, c),
    }
}

/// How many of some resources there are in a cycle.
fn capacity(l: &Loop, set: &[usize]) -> Result<i128, Wrong> {
    let distinct: BTreeSet<usize> = set.iter().copied().collect();
    if distinct.len() != set.len() {
        return Err("a resource is named twice");
    }
    let counts = set.iter().map(|&r| l.resources.get(r).map(|x| i128::from(x.count)).ok_or(STRANGE));
    let all: i128 = counts.sum::<Result<i128, Wrong>>()?;
    if all > 0 { Ok(all) } else { Err("there is none of its resources") }
}

/// Cycles for which an operation takes some resources at the least.
fn taken(l: &Loop, operation: usize, set: &[usize]) -> i128 {
    let of = |way: &Vec<crate::model::Use>| {
        way.iter().filter(|u| set.contains(&u.resource)).map(|u| i128::from(u.cycles)).sum::<i128>()
    };
    l.operations.get(operation).and_then(|o| o.ways.iter().map(of).min()).unwrap_or(0)
}

fn resources(l: &Loop, c: &Resources) -> Result<i64, Wrong> {
    let all = capacity(l, &c.set)?;
    let work: i128 = (0..l.operations.len()).map(|i| taken(l, i, &c.set)).sum();
    narrow(ceil(work, all))
}

fn circuit(l: &Loop, c: &Circuit) -> Result<i64, Wrong> {
    let mut edges = Vec::new();
    for &e in &c.edges {
        edges.push(*l.edges.get(e).ok_or(STRANGE)?);
    }
    let next = edges.iter().skip(1).chain(edges.first());
    if edges.is_empty() || edges.iter().zip(next).any(|(a, b)| a.to != b.from) {
        return Err("its edges do not lead round");
    }
    let latency: i128 = edges.iter().map(|e| i128::from(e.latency)).sum();
    let distance: i128 = edges.iter().map(|e| i128::from(e.distance)).sum();
    if distance <= 0 {
        return Err("it does not lead to a later iteration");
    }
    narrow(ceil(latency, distance))
}

fn joint(l: &Loop, c: &Joint) -> Result<i64, Wrong> {
    if c.operation >= l.operations.len() || c.iterations == 0 {
        return Err(STRANGE);
    }
    let order = order(l)?;
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); l.operations.len()];
    for (k, e) in l.edges.iter().enumerate() {
        into.get_mut(e.to).ok_or(STRANGE)?.push(k);
    }
    let mut known = BTreeMap::from([((c.operation, 0), 0)]);
    for step in &c.steps {
        let at = (step.operation, step.iteration);
        if step.operation >= l.operations.len() || known.contains_key(&at) {
            return Err(STRANGE);
        }
        let proved = match &step.reason {
            Reason::Edge(e) => {
                let e = l.edges.get(*e).filter(|e| e.to == step.operation).ok_or(STRANGE)?;
                let before = source(e.distance, step.iteration).and_then(|t| known.get(&(e.from, t)));
                before.ok_or("a cycle is taken from an operation without one")? + e.latency
            }
            Reason::Crowd { set, from, tail } => {
                let all = capacity(l, set)?;
                let before = before(l, &into, &order, &known, at, *from);
                let counts = |&(&(u, _), &way): &(&(usize, usize), &i64)| way >= *tail && taken(l, u, set) > 0;
                let members = before.iter().filter(counts).count() as i128;
                let last = i128::from(*from) + i128::from(*tail) + ceil(members, all) - 1;
                if members > 0 { narrow(last)? } else { return Err("nothing has to issue before") }
            }
        };
        if proved < step.cycle {
            return Err("an operation can issue earlier than it says");
        }
        known.insert(at, step.cycle);
    }
    let last = known.get(&(c.operation, c.iterations)).ok_or("it does not lead back to its operation")?;
    narrow(ceil(i128::from(*last), c.iterations as i128))
}

/// The iteration in which a dependence to one begins.
fn source(distance: i64, iteration: usize) -> Option<usize> {
    usize::try_from(distance).ok().and_then(|d| iteration.checked_sub(d))
}

/// The place of each operation in an order that all dependences within an iteration respect.
fn order(l: &Loop) -> Result<Vec<usize>, Wrong> {
    let n = l.operations.len();
    let mut left = vec![0usize; n];
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); n];
    for e in &l.edges {
        if e.from >= n || e.to >= n || e.distance < 0 {
            return Err(STRANGE);
        }
        if e.distance == 0 {
            left[e.to] += 1;
            behind[e.from].push(e.to);
        }
    }
    let mut ready: Vec<usize> = (0..n).filter(|&i| left[i] == 0).collect();
    let mut place = vec![usize::MAX; n];
    let mut next = 0;
    while let Some(i) = ready.pop() {
        place[i] = next;
        next += 1;
        for &s in &behind[i] {
            left[s] -= 1;
            if left[s] == 0 {
                ready.push(s);
            }
        }
    }
    if next == n { Ok(place) } else { Err("operations of one iteration wait for each other") }
}

/// Operations from which dependences lead to another, with the longest chain's cycles. Only those
/// with a known cycle of at least `from` are gone through: others could only add some.
fn before(
    l: &Loop,
    into: &[Vec<usize>],
    order: &[usize],
    known: &BTreeMap<(usize, usize), i64>,
    at: (usize, usize),
    from: i64,
) -> BTreeMap<(usize, usize), i64> {
    let key = |(u, t): (usize, usize)| (t, order[u], u);
    let mut longest = BTreeMap::from([(at, 0)]);
    let mut waiting = BinaryHeap::from([key(at)]);
    while let Some((t, _, u)) = waiting.pop() {
        let way = longest[&(u, t)];
        for e in into[u].iter().map(|&k| &l.edges[k]) {
            let Some(p) = source(e.distance, t).map(|s| (e.from, s)) else { continue };
            if known.get(&p).is_some_and(|c| *c >= from) {
                let longer = longest.get(&p).is_none_or(|old| *old < way + e.latency);
                if longer && longest.insert(p, way + e.latency).is_none() {
                    waiting.push(key(p));
                }
            }
        }
    }
    longest.remove(&at);
    longest
}

fn relaxation(l: &Loop, c: &Relaxation) -> Result<i64, Wrong> {
    if c.ii < 1 || c.anchor >= l.operations.len() {
        return Err(STRANGE);
    }
    let windows = windows(l, c.ii, c.anchor)?;
    // What all rows together have before each operation's weight in each cycle.
    let mut sum: Vec<Vec<i128>> =
        windows.iter().map(|w| w.map_or(Vec::new(), |(a, b)| vec![0; (b - a + 1).max(0) as usize])).collect();
    if windows.iter().flatten().any(|w| w.0 > w.1) {
        return narrow(i128::from(c.ii) + 1);
    }
    let mut right: i128 = 0;
    for (set, slot, times) in &c.resources {
        right += capacity(l, set)? * i128::from(*times);
        for (i, w) in windows.iter().enumerate() {
            let Some((a, _)) = w.filter(|_| taken(l, i, set) > 0) else { continue };
            let here = sum[i].iter_mut().enumerate().filter(|(k, _)| (a + *k as i64 - slot).rem_euclid(c.ii) == 0);
            here.for_each(|(_, s)| *s += i128::from(*times));
        }
    }
    for &(edge, cycle, times) in &c.edges {
        let e = l.edges.get(edge).filter(|e| e.from != e.to).ok_or(STRANGE)?;
        let window = |i: usize| windows.get(i).copied().flatten().ok_or("a dependence of an operation without cycles");
        let ((a, _), (b, _)) = (window(e.from)?, window(e.to)?);
        let then = cycle + e.latency - e.distance * c.ii;
        right += i128::from(times);
        sum[e.from]
            .iter_mut()
            .enumerate()
            .filter(|(k, _)| a + *k as i64 >= cycle)
            .for_each(|(_, s)| *s += i128::from(times));
        sum[e.to]
            .iter_mut()
            .enumerate()
            .filter(|(k, _)| b + (*k as i64) < then)
            .for_each(|(_, s)| *s += i128::from(times));
    }
    if !c.registers.is_empty() {
        let values: BTreeSet<usize> = c.readers.iter().map(|r| r.0).collect();
        if values.len() != c.readers.len() {
            return Err("a value is counted twice");
        }
        for &(file, slot, times) in &c.registers {
            right += i128::from(l.files.get(file).ok_or(STRANGE)?.left()) * i128::from(times);
            for &(v, r) in &c.readers {
                let value = l.values.get(v).ok_or(STRANGE)?;
                if value.file != file {
                    continue;
                }
                let &(reader, distance) = value.readers.get(r).ok_or(STRANGE)?;
                let (made, read) = (windows.get(value.operation).copied(), windows.get(reader).copied());
                let (Some((a, _)), Some((b, end))) = (made.flatten(), read.flatten()) else { return Err(STRANGE) };
                let later = distance * c.ii;
                // Rows of this number from a cycle to the last in which it may be read.
                let rows = |first: i64| i128::from(count(first, end + later, slot, c.ii)) * i128::from(times);
                sum[value.operation].iter_mut().enumerate().for_each(|(k, s)| *s += rows(a + k as i64 + value.lands));
                sum[reader].iter_mut().enumerate().for_each(|(k, s)| *s -= rows(b + k as i64 + later + 1));
            }
        }
    }
    // Each operation's weights are 1 together: no choice of them has a smaller sum.
    let left: i128 = sum.iter().filter_map(|s| s.iter().min()).sum();
    if left > right { narrow(i128::from(c.ii) + 1) } else { Err("its rows can be satisfied together") }
}

/// Cycles from `first` to `last` that are a row's.
fn count(first: i64, last: i64, row: i64, ii: i64) -> i64 {
    if last < first { 0 } else { (last - row).div_euclid(ii) - (first - 1 - row).div_euclid(ii) }
}

/// The earliest and the latest cycle of each operation that dependences tie to the anchor both ways.
fn windows(l: &Loop, ii: i64, anchor: usize) -> Result<Vec<Option<(i64, i64)>>, Wrong> {
    let n = l.operations.len();
    if l.edges.iter().any(|e| e.from >= n || e.to >= n) {
        return Err(STRANGE);
    }
    let (mut first, mut last): (Vec<Option<i64>>, Vec<Option<i64>>) = (vec![None; n], vec![None; n]);
    (first[anchor], last[anchor]) = (Some(0), Some(0));
    // Every cycle found on the way is right; after as many turns as operations none gets better,
    // or the ways have no end.
    for _ in 0..=n {
        let mut changed = false;
        for e in &l.edges {
            let cycles = e.latency - e.distance * ii;
            let (after, until) = (first[e.from].map(|t| t + cycles), last[e.to].map(|t| t - cycles));
            if after > first[e.to] {
                (first[e.to], changed) = (after, true);
            }
            if until.is_some_and(|u| last[e.from].is_none_or(|t| u < t)) {
                (last[e.from], changed) = (until, true);
            }
        }
        if !changed {
            break;
        }
    }
    Ok(first.into_iter().zip(last).map(|(a, b)| a.zip(b)).collect())
}

fn lifetimes(l: &Loop, c: &Lifetimes) -> Result<i64, Wrong> {
    let left = i128::from(l.files.get(c.file).ok_or(STRANGE)?.left());
    let values: Vec<_> = l.values.iter().filter(|v| v.file == c.file).collect();
    if c.ends.len() != values.len() || c.ii < 1 {
        return Err(STRANGE);
    }
    // What comes to an operation less what leaves it; and all cycles as `fixed + turns * II`.
    let mut balance = vec![0i128; l.operations.len()];
    let (mut fixed, mut turns) = (0i128, 0i128);
    for (value, end) in values.into_iter().zip(&c.ends) {
        let Some(end) = end else {
            fixed += 1;
            continue;
        };
        let &(reader, distance) = value.readers.get(*end).ok_or(STRANGE)?;
        *balance.get_mut(value.operation).ok_or(STRANGE)? += 1;
        *balance.get_mut(reader).ok_or(STRANGE)? -= 1;
        fixed += 1 - i128::from(value.lands);
        turns += i128::from(distance);
    }
    for &(e, times) in &c.flow {
        let (e, times) = (l.edges.get(e).ok_or(STRANGE)?, i128::from(times));
        *balance.get_mut(e.from).ok_or(STRANGE)? -= times;
        *balance.get_mut(e.to).ok_or(STRANGE)? += times;
        fixed += times * i128::from(e.latency);
        turns -= times * i128::from(e.distance);
    }
    if balance.iter().any(|b| *b != 0) {
        return Err("something flows away");
    }
    // Both sides are straight lines over the II: what exceeds the registers at both ends does
    // between them.
    let exceeds = |ii: i128| fixed + turns * ii > left * ii;
    match exceeds(1) && exceeds(i128::from(c.ii)) {
        true => narrow(i128::from(c.ii) + 1),
        false => Err("there are registers enough"),
    }
}

fn ceil(a: i128, b: i128) -> i128 {
    -(-a).div_euclid(b)
}

fn narrow(n: i128) -> Result<i64, Wrong> {
    i64::try_from(n.max(1)).map_err(|_| "it has no end")
}
