//! Small loops solved by trying everything, beside which bounds are held.

use ciphermill_bounds::model::{Edge, File, Kind, Loop, Operation, Resource, Use, Value, Why};

/// A generator of random numbers (Marsaglia, *Xorshift RNGs*, 2003).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// A loop of a few operations on two kinds of units, each of which reads some before it.
pub fn random(seed: u64) -> Loop {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let n = 3 + random.below(3) as usize;
    let unit = |resource| vec![Use { resource, cycles: 1 }, Use { resource: 2, cycles: 1 }];
    let mut l = Loop {
        resources: vec![
            Resource { name: "A".into(), count: 1, kind: Kind::Unit },
            Resource { name: "B".into(), count: 1, kind: Kind::Unit },
            Resource { name: "issue".into(), count: 1 + random.below(2) as u32, kind: Kind::Issue },
        ],
        files: vec![File { name: "r".into(), count: 1 + random.below(4) as u32, outside: random.below(2) as u32 }],
        ..Loop::default()
    };
    for i in 0..n {
        let ways = match random.below(3) {
            0 => vec![unit(0)],
            1 => vec![unit(1)],
            _ => vec![unit(0), unit(1)],
        };
        l.operations.push(Operation { name: format!("op{i}"), ways });
    }
    let latencies: Vec<i64> = (0..n).map(|_| 1 + random.below(3) as i64).collect();
    let mut readers = vec![Vec::new(); n];
    for i in 0..n {
        for _ in 0..random.below(3) {
            let from = random.below(n as u64) as usize;
            let distance = i64::from(from >= i);
            l.edges.push(Edge { from, to: i, latency: latencies[from], distance, why: Why::Value });
            readers[from].push((i, distance));
        }
    }
    let lands = |i: usize| if seed.is_multiple_of(2) { 1 } else { latencies[i] };
    l.values = readers
        .into_iter()
        .enumerate()
        .map(|(i, r)| Value { operation: i, file: 0, lands: lands(i), readers: r })
        .collect();
    l
}

/// Does an II have a schedule, and where registers count one whose values find room? Every cycle of
/// every operation up to a horizon is tried.
pub fn possible(l: &Loop, ii: i64, registers: bool) -> bool {
    // Chains are short: beyond this nothing new comes.
    let latest = ii * 2 + 6;
    place(l, ii, registers, latest, &mut Vec::new())
}

fn place(l: &Loop, ii: i64, registers: bool, latest: i64, times: &mut Vec<i64>) -> bool {
    let i = times.len();
    if !units(l, ii, times) {
        return false;
    }
    if i == l.operations.len() {
        return !registers || lives(l, ii, times);
    }
    // As any schedule may be shifted, the first operation stands in the middle.
    let (from, to) = if i == 0 { (latest / 2, latest / 2) } else { (0, latest) };
    (from..=to).any(|t| {
        times.push(t);
        let kept = |e: &&Edge| e.from.max(e.to) == i;
        let holds = l.edges.iter().filter(kept).all(|e| times[e.to] + e.distance * ii >= times[e.from] + e.latency);
        let found = holds && place(l, ii, registers, latest, times);
        times.pop();
        found
    })
}

/// Every operation finds a way in its row.
fn units(l: &Loop, ii: i64, times: &[i64]) -> bool {
    (0..ii).all(|row| {
        let there: Vec<usize> = (0..times.len()).filter(|&i| times[i].rem_euclid(ii) == row).collect();
        let mut left: Vec<u32> = l.resources.iter().map(|r| r.count).collect();
        run(l, &there, &mut left)
    })
}

fn run(l: &Loop, there: &[usize], left: &mut Vec<u32>) -> bool {
    let Some((&i, rest)) = there.split_first() else { return true };
    l.operations[i].ways.iter().any(|way| {
        if way.iter().any(|u| left[u.resource] == 0) {
            return false;
        }
        way.iter().for_each(|u| left[u.resource] -= 1);
        let found = run(l, rest, left);
        way.iter().for_each(|u| left[u.resource] += 1);
        found
    })
}

/// In no row are more values alive than registers are left.
fn lives(l: &Loop, ii: i64, times: &[i64]) -> bool {
    let left = l.files[0].left();
    let mut alive = vec![0i64; ii as usize];
    for v in &l.values {
        let begin = times[v.operation] + v.lands;
        let end = v.readers.iter().map(|&(r, d)| times[r] + d * ii).max().unwrap_or(begin).max(begin);
        (begin..=end).for_each(|t| alive[t.rem_euclid(ii) as usize] += 1);
    }
    alive.iter().all(|&n| n <= left)
}
