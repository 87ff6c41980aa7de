//! A certificate in one plain sentence.

use crate::certificate::{Certificate, Circuit, Joint, Lifetimes, Reason, Relaxation, Resources};
use crate::model::{Kind, Loop, Why};
use std::collections::{BTreeMap, BTreeSet};

/// Names of instructions that are told of, those that are most.
const NAMES: usize = 3;

/// Why no II below the bound is possible.
pub fn told(l: &Loop, certificate: &Certificate, least: i64) -> String {
    match certificate {
        Certificate::Resources(c) => resources(l, c, least),
        Certificate::Circuit(c) => circuit(l, c, least),
        Certificate::Joint(c) => joint(l, c, least),
        Certificate::Relaxation(c) => relaxation(l, c),
        Certificate::Lifetimes(c) => lifetimes(l, c),
    }
}

fn resources(l: &Loop, c: &Resources, least: i64) -> String {
    let takes = |ways: &Vec<Vec<crate::model::Use>>| {
        !ways.is_empty() && ways.iter().all(|w| w.iter().any(|u| c.set.contains(&u.resource)))
    };
    let names: Vec<&str> = l.operations.iter().filter(|o| takes(&o.ways)).map(|o| o.name.as_str()).collect();
    let slots = c.set.iter().all(|&r| l.resources[r].kind == Kind::Issue);
    let count: u32 = c.set.iter().map(|&r| l.resources[r].count).sum();
    let most = most(&names);
    match slots {
        true => format!("{} need {} at {count} an issue", operations(names.len()), cycles(least)),
        false => format!("{} ({most}) need {} for {}", operations(names.len()), units(l, &c.set), cycles(least)),
    }
}

fn circuit(l: &Loop, c: &Circuit, least: i64) -> String {
    let edges = || c.edges.iter().map(|&e| &l.edges[e]);
    let latency: i64 = edges().map(|e| e.latency).sum();
    let distance: i64 = edges().map(|e| e.distance).sum();
    if edges().any(|e| e.why == Why::Branch) {
        return format!("what the branch waits for, and the branch itself, take {}", cycles(least));
    }
    let names: Vec<&str> = edges().map(|e| l.operations[e.from].name.as_str()).collect();
    let memory = if edges().any(|e| e.why == Why::Memory) { ", through memory," } else { "" };
    let way = match names.as_slice() {
        [] | [_] => most(&names),
        _ if names.len() <= 2 * NAMES => names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "),
        _ => format!("{}, among them {}", operations(names.len()), most(&names)),
    };
    format!("a recurrence circuit ({way}){memory} takes {} in {}", cycles(latency), iterations(distance))
}

fn joint(l: &Loop, c: &Joint, least: i64) -> String {
    let sets = c.steps.iter().filter_map(|s| if let Reason::Crowd { set, .. } = &s.reason { Some(set) } else { None });
    let set: BTreeSet<usize> = sets.flatten().copied().collect();
    let name = &l.operations[c.operation].name;
    let last = c.steps.last().map_or(least, |s| s.cycle);
    format!(
        "from `{name}` to itself {} later, what stands between on {} takes {}",
        iterations(c.iterations as i64),
        named(l, &set.into_iter().collect::<Vec<_>>(), "and"),
        cycles(last)
    )
}

fn relaxation(l: &Loop, c: &Relaxation) -> String {
    let around = &l.operations[c.anchor].name;
    let what = if c.registers.is_empty() { "units" } else { "units and registers" };
    format!("around `{around}` the linear program of dependences and {what} has no solution at {}", c.ii)
}

fn lifetimes(l: &Loop, c: &Lifetimes) -> String {
    let values: Vec<_> = l.values.iter().filter(|v| v.file == c.file).collect();
    let ends = values.iter().zip(&c.ends);
    let lives = ends.map(|(v, end)| end.map_or(1, |r| v.readers[r].1 * c.ii - v.lands + 1)).sum::<i64>();
    let ways = c.flow.iter().map(|&(e, times)| times as i64 * (l.edges[e].latency - l.edges[e].distance * c.ii));
    let lives = lives + ways.sum::<i64>();
    let file = &l.files[c.file];
    let left = file.left();
    let name = if file.name.is_empty() { String::new() } else { format!(" of {}", file.name) };
    let outside =
        if file.outside == 0 { String::new() } else { format!(" beside {} for values from outside", file.outside) };
    format!(
        "{} values live for {lives} cycles together, and {left} registers{name}{outside} have {} at {}",
        values.len(),
        left * c.ii,
        c.ii
    )
}

/// The names that stand there most.
fn most(names: &[&str]) -> String {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    names.iter().for_each(|n| *count.entry(n).or_default() += 1);
    let mut list: Vec<(&str, usize)> = count.into_iter().collect();
    list.sort_by_key(|x| (std::cmp::Reverse(x.1), x.0));
    let more = if list.len() > NAMES { ", ..." } else { "" };
    let told: Vec<String> = list.iter().take(NAMES).map(|(name, n)| format!("{n} `{name}`")).collect();
    format!("{}{more}", told.join(", "))
}

/// Resources with how many there are of each.
fn units(l: &Loop, set: &[usize]) -> String {
    match set {
        [one] if l.resources[*one].count != 1 => format!("the {} {}", l.resources[*one].count, l.resources[*one].name),
        _ => named(l, set, "and"),
    }
}

fn named(l: &Loop, set: &[usize], and: &str) -> String {
    let names: Vec<&str> = set.iter().map(|&r| l.resources[r].name.as_str()).collect();
    match names.as_slice() {
        [] => "no units".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} {and} {last}", first.join(", ")),
    }
}

fn cycles(n: i64) -> String {
    if n == 1 { "1 cycle".to_owned() } else { format!("{n} cycles") }
}

fn iterations(n: i64) -> String {
    if n == 1 { "1 iteration".to_owned() } else { format!("{n} iterations") }
}

fn operations(n: usize) -> String {
    if n == 1 { "1 operation".to_owned() } else { format!("{n} operations") }
}
