//! Registers of a modulo schedule.
//!
//! Every value occupies a register from the cycle it lands to its last read,
//! in every iteration: an arc on a circle of II cycles. A value tied to
//! another shares its register, so both arcs belong to one *web*. Webs whose
//! arcs do not touch may share a register. Greedy colouring in the order of
//! starts is optimal on a line; a circle is cut open at each cycle in turn
//! until one cut succeeds. Where none does, a web for which no register is left
//! takes that of a few others, if each of these finds one.

use super::body::From;
use super::circle::Circle;
use super::graph::kept;

use super::modulo::Schedule;
use super::place::{Ops, Sides};
use ciphermill_machine::{Machine, Reg};
use ciphermill_vcode::VReg;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Places at which the circle is cut open before colouring is given up; and before it is, where
/// webs give way to others.
const CUTS: usize = 24;
const CUTS_AGAIN: usize = 6;
/// So many webs give way to one at most.
const GIVE_WAY: usize = 4;

/// Registers for everything in a kernel.
#[derive(Clone, Debug, Default)]
pub struct Assignment {
    /// Of each operation's result.
    pub result: Vec<Option<Reg>>,
    /// Of values from outside, by side.
    pub outside: BTreeMap<(VReg, usize), Reg>,
}

struct Web {
    side: usize,
    /// `(start, cycles)` on the circle.
    arcs: Vec<(i64, i64)>,
    /// The cycles of all arcs: `(word, bits)`, words without any left out.
    bits: Vec<(usize, u64)>,
    /// Known by this register outside: the allocator must be able to use it.
    interface: bool,
    only: Option<Vec<Reg>>,
    members: Vec<usize>,
}

/// The side that has too few registers, and by how many.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Short {
    pub side: usize,
    pub by: usize,
    /// Rows with too many values, and by how many; none where their arcs are the trouble.
    pub rows: Vec<(usize, i64)>,
}

/// Registers, or which side has too few. `allocatable` are those that values
/// may come and go in.
pub fn color(sides: &Sides<'_>, ops: &Ops, schedule: &Schedule, allocatable: &[Reg]) -> Result<Assignment, Short> {
    color_counted(sides, ops, schedule, allocatable, &Cell::new(0))
}

/// The same; `looked` grows by the registers that were asked whether they are free.
pub fn color_counted(
    sides: &Sides<'_>,
    ops: &Ops,
    schedule: &Schedule,
    allocatable: &[Reg],
    looked: &Cell<usize>,
) -> Result<Assignment, Short> {
    let machine = sides.machine;
    let ii = schedule.ii;
    let mut out = Assignment { result: vec![None; ops.ops.len()], outside: BTreeMap::new() };
    let mut busy: BTreeSet<Reg> = BTreeSet::new();
    let Some(webs) = webs(machine, ops, schedule) else { return Err(Short { side: 0, by: 1, rows: Vec::new() }) };

    // Certain registers first, then values from outside, then the rest.
    let mut rows: Rows = vec![None; machine.regs.len()];
    let invariants = outside(sides, ops, schedule);
    let mut certain: BTreeMap<(usize, &[Reg]), Vec<&Web>> = BTreeMap::new();
    for web in &webs {
        if let Some(list) = &web.only {
            certain.entry((web.side, list)).or_default().push(web);
        }
    }
    for ((side, list), mine) in certain {
        let pool: Vec<Reg> = list.iter().copied().filter(|r| sides.pool[side].contains(r)).collect();
        let live = crowd(&mine, ii);
        let all = Asked::new(&mine, &pool, allocatable, &rows, ii, looked);
        let Some(found) = all.color(&live) else { return Err(Short { side, by: 1, rows: Vec::new() }) };
        for (web, r) in mine.iter().zip(found) {
            take(&mut rows, r, web, ii);
            web.members.iter().for_each(|&m| out.result[m] = Some(r));
        }
    }
    for (v, side, only) in invariants {
        // From the back: registers that only the kernel can use stay for it.
        let list: Vec<Reg> = only.unwrap_or_else(|| sides.pool[side].clone());
        let fits = |r: &&Reg| {
            allocatable.contains(r)
                && sides.pool[side].contains(r)
                && !busy.contains(r)
                && rows[usize::from(r.0)].is_none()
        };
        let Some(&r) = list.iter().rev().find(fits) else { return Err(Short { side, by: 1, rows: Vec::new() }) };
        busy.insert(r);
        out.outside.insert((v, side), r);
    }
    for side in 0..sides.files.len() {
        let mine: Vec<&Web> = webs.iter().filter(|w| w.side == side && w.only.is_none()).collect();
        let pool: Vec<Reg> = sides.pool[side].iter().copied().filter(|r| !busy.contains(r)).collect();
        let live = crowd(&mine, ii);
        let mut taken = vec![0; live.len()];
        pool.iter().filter_map(|r| rows[usize::from(r.0)].as_ref()).flat_map(Circle::taken).for_each(|c| taken[c] += 1);
        let most = live.iter().enumerate().map(|(c, n)| n + taken[c]).max().unwrap_or(0);
        if most > pool.len() {
            let over = |(c, n): (usize, &usize)| Some((c, (n + taken[c]).checked_sub(pool.len() + 1)? as i64 + 1));
            return Err(Short {
                side,
                by: most - pool.len(),
                rows: live.iter().enumerate().filter_map(over).collect(),
            });
        }
        let all = Asked::new(&mine, &pool, allocatable, &rows, ii, looked);
        let Some(found) = all.color(&live) else { return Err(Short { side, by: 1, rows: Vec::new() }) };
        for (web, r) in mine.iter().zip(found) {
            web.members.iter().for_each(|&m| out.result[m] = Some(r));
        }
    }
    Ok(out)
}

/// Values from outside: on which sides, and in which certain registers.
fn outside(sides: &Sides<'_>, ops: &Ops, schedule: &Schedule) -> Vec<(VReg, usize, Option<Vec<Reg>>)> {
    let mut list: BTreeMap<(VReg, usize), Option<Vec<Reg>>> = BTreeMap::new();
    for (i, op) in ops.ops.iter().enumerate() {
        let instr = &sides.machine.instrs[usize::from(schedule.variant[i].0)];
        for &(o, from) in &op.reads {
            if let From::Outside(v) = from {
                let only = instr.only.iter().find(|p| p.0 == o).map(|p| p.1.clone());
                let entry = list.entry((v, op.at.unit)).or_default();
                if only.is_some() {
                    *entry = only;
                }
            }
        }
    }
    // Those with few registers to choose from come first.
    let mut out: Vec<_> = list.into_iter().map(|((v, s), only)| (v, s, only)).collect();
    out.sort_by_key(|x| (x.2.is_none(), x.0, x.1));
    out
}

/// Registers of each side.
pub fn pool(sides: &Sides<'_>) -> Vec<i64> {
    sides.pool.iter().map(|pool| pool.len() as i64).collect()
}

/// Registers of each side that values from outside leave; fewer than none where they are too many.
pub fn left(sides: &Sides<'_>, ops: &Ops) -> Vec<i64> {
    let mut seen = BTreeSet::new();
    for op in &ops.ops {
        for &(_, from) in &op.reads {
            if let From::Outside(v) = from {
                seen.insert((v, op.at.unit));
            }
        }
    }
    let taken = |s: usize| seen.iter().filter(|x| x.1 == s).count() as i64;
    sides.pool.iter().enumerate().map(|(s, pool)| pool.len() as i64 - taken(s)).collect()
}

/// Hundredths of a side's registers that have values, the mean of all cycles: of the side with
/// the most.
pub fn held(sides: &Sides<'_>, ops: &Ops, schedule: &Schedule) -> u32 {
    let webs = webs(sides.machine, ops, schedule).unwrap_or_default();
    let left = left(sides, ops);
    let of = |side: usize| {
        let (pool, ii) = (sides.pool[side].len(), schedule.ii);
        let mine: Vec<&Web> = webs.iter().filter(|w| w.side == side).collect();
        let outside = (pool as i64 - left[side]) * ii;
        let all = outside + crowd(&mine, ii).iter().sum::<usize>() as i64;
        (100 * all / (pool as i64 * ii).max(1)) as u32
    };
    (0..sides.files.len()).map(of).max().unwrap_or(0)
}

fn webs(machine: &Machine, ops: &Ops, schedule: &Schedule) -> Option<Vec<Web>> {
    let n = ops.ops.len();
    let ii = schedule.ii;
    let end = (0..n).map(|i| schedule.time[i] + latency(ops, i)).max().unwrap_or(0);
    let mut last: Vec<Option<i64>> = vec![None; n];
    let mut only: Vec<Option<Vec<Reg>>> = vec![None; n];
    let mut tied_to: Vec<Option<(usize, i64)>> = vec![None; n];
    for (i, op) in ops.ops.iter().enumerate() {
        let instr = &machine.instrs[usize::from(schedule.variant[i].0)];
        for &(o, from) in &op.reads {
            let From::Node(p, d) = from else { continue };
            let read = schedule.time[i] + i64::from(d) * ii;
            last[p] = Some(last[p].map_or(read, |l: i64| l.max(read)));
            if let Some((_, regs)) = instr.only.iter().find(|x| x.0 == o) {
                only[p] = Some(match &only[p] {
                    Some(old) => old.iter().copied().filter(|r| regs.contains(r)).collect(),
                    None => regs.clone(),
                });
            }
            if op.tied && op.writes.is_some_and(|w| w.0 == o) && p != i {
                tied_to[i] = Some((p, i64::from(d)));
            }
        }
    }
    let mut behind = vec![false; n];
    ops.live_out.iter().for_each(|l| behind[l.0] = true);
    let mut webs: Vec<Web> = Vec::new();
    // When the first of the values that were in a value's register came there.
    let mut since: Vec<i64> = vec![0; n];
    let mut web_of: Vec<Option<usize>> = vec![None; n];
    for i in 0..n {
        if ops.ops[i].writes.is_none() {
            continue;
        }
        let mut start = schedule.time[i] + kept(ops, i);
        let stop = last[i].unwrap_or(start).max(start);
        let interface = ops.initial.contains_key(&i) || behind[i];
        since[i] = tied_to[i].map_or(start, |(p, d)| since[p] - d * ii);
        // The next iteration's values would come while these are there.
        if stop - since[i] >= ii {
            return None;
        }
        // The last iteration's stays to be read behind the loop: nothing comes in its
        // place any more, but nothing else may.
        let stop = if behind[i] { stop.max(end) } else { stop };
        // What the first iteration finds in the register has been there since
        // before the loop.
        if ops.initial.contains_key(&i) {
            start = start.min(ii);
        }
        let arc = (start.rem_euclid(ii), (stop - start + 1).min(ii));
        let w = match tied_to[i].and_then(|(p, _)| web_of[p]) {
            Some(w) => w,
            None => {
                webs.push(Web {
                    side: ops.ops[i].at.result,
                    arcs: Vec::new(),
                    bits: Vec::new(),
                    interface: false,
                    only: None,
                    members: Vec::new(),
                });
                webs.len() - 1
            }
        };
        web_of[i] = Some(w);
        let web = &mut webs[w];
        web.arcs.push(arc);
        web.members.push(i);
        web.interface |= interface;
        if let Some(regs) = &only[i] {
            web.only = Some(match &web.only {
                Some(old) => old.iter().copied().filter(|r| regs.contains(r)).collect(),
                None => regs.clone(),
            });
        }
    }
    webs.iter_mut().for_each(|w| w.bits = bits(ii, &w.arcs));
    Some(webs)
}

/// The cycles of some arcs, as bits, made once for all registers that a web is held against.
fn bits(ii: i64, arcs: &[(i64, i64)]) -> Vec<(usize, u64)> {
    let mut own = Circle::new(ii);
    arcs.iter().for_each(|&(start, len)| own.fill(start, len));
    own.bits().collect()
}

fn latency(ops: &Ops, i: usize) -> i64 {
    ops.ops[i].writes.map_or(1, |w| i64::from(w.1))
}

/// How many webs are alive in each cycle of the circle.
fn crowd(webs: &[&Web], ii: i64) -> Vec<usize> {
    let mut live = vec![0; ii as usize];
    for web in webs {
        if let [(start, len)] = web.arcs[..] {
            (start..start + len).for_each(|c| live[c.rem_euclid(ii) as usize] += 1);
            continue;
        }
        let mut own = Circle::new(ii);
        own.add(&web.bits);
        own.taken().for_each(|c| live[c] += 1);
    }
    live
}

/// What each register of the machine holds, where it holds anything for a part of the circle.
type Rows = Vec<Option<Circle>>;

fn free(rows: &Rows, r: Reg, web: &Web) -> bool {
    rows[usize::from(r.0)].as_ref().is_none_or(|row| row.apart(&web.bits))
}

fn take(rows: &mut Rows, r: Reg, web: &Web, ii: i64) {
    let row = rows[usize::from(r.0)].get_or_insert_with(|| Circle::new(ii));
    row.add(&web.bits);
}

/// Webs that share some registers.
struct Asked<'a> {
    webs: &'a [&'a Web],
    pool: &'a [Reg],
    /// Of these, those that values may come and go in.
    known: Vec<bool>,
    /// What is taken already.
    before: &'a Rows,
    ii: i64,
    /// Registers that were asked whether they are free.
    looked: &'a Cell<usize>,
}

impl<'a> Asked<'a> {
    fn new(
        webs: &'a [&'a Web],
        pool: &'a [Reg],
        allocatable: &[Reg],
        before: &'a Rows,
        ii: i64,
        looked: &'a Cell<usize>,
    ) -> Asked<'a> {
        let known = pool.iter().map(|r| allocatable.contains(r)).collect();
        Asked { webs, pool, known, before, ii, looked }
    }

    /// The registers, and whether values may come and go in them.
    fn registers(&self) -> impl Iterator<Item = (Reg, bool)> {
        self.pool.iter().copied().zip(self.known.iter().copied())
    }

    /// A register for each web; so many are alive in each cycle.
    fn color(&self, live: &[usize]) -> Option<Vec<Reg>> {
        // Where the fewest values lie across the cut, colouring is nearest to
        // that of a line.
        let mut cuts: Vec<usize> = (0..live.len()).collect();
        cuts.sort_by_key(|&c| (live[c], c));
        let open = |n: usize, give_way: bool| cuts.iter().take(n).find_map(|&cut| self.open_at(cut as i64, give_way));
        open(CUTS, false).or_else(|| open(CUTS_AGAIN, true))
    }

    /// Colour in order of starts, the circle cut open at a cycle: webs that lie
    /// across the cut first. Of the registers that are free the one that has been
    /// so for the shortest time is taken.
    fn open_at(&self, cut: i64, give_way: bool) -> Option<Vec<Reg>> {
        let Asked { webs, ii, .. } = self;
        let ii = *ii;
        let mut rows = self.before.clone();
        // Arcs start on the circle, and so does the cut.
        let from_cut = |a: &(i64, i64)| if a.0 < cut { a.0 - cut + ii } else { a.0 - cut };
        let key = |i: usize| {
            let arcs = || webs[i].arcs.iter().map(|a| (from_cut(a), a.1));
            let start = arcs().map(|a| a.0).min().unwrap_or(0);
            (start == 0 || arcs().all(|a| a.0 + a.1 <= ii), start, i)
        };
        let mut order: Vec<(bool, i64, usize)> = (0..webs.len()).map(key).collect();
        order.sort_unstable();
        let mut out = vec![None; webs.len()];
        for (_, start, i) in order {
            let (web, from) = (webs[i], (start + cut) % ii);
            match self.shortest_idle(&rows, web, from) {
                Some(r) => {
                    take(&mut rows, r, web, ii);
                    out[i] = Some(r);
                }
                None if give_way => (rows, out) = self.make_way(i, &rows, &out)?,
                None => return None,
            }
        }
        out.into_iter().collect()
    }

    /// Of the registers that are free for a web the one that has been so for the shortest time.
    fn shortest_idle(&self, rows: &Rows, web: &Web, from: i64) -> Option<Reg> {
        let idle = |r: Reg| rows[usize::from(r.0)].as_ref().map_or(self.ii, |row| row.idle_before(from));
        self.looked.set(self.looked.get() + self.pool.len());
        let fits = |x: &(Reg, bool)| (!web.interface || x.1) && free(rows, x.0, web);
        Some(self.registers().filter(fits).min_by_key(|&(r, known)| (idle(r), known, r.0))?.0)
    }

    /// A web for which no register is free takes one from a few others, each of which then finds
    /// another.
    fn make_way(&self, i: usize, rows: &Rows, out: &[Option<Reg>]) -> Option<(Rows, Vec<Option<Reg>>)> {
        let web = self.webs[i];
        let mut own = Circle::new(self.ii);
        own.add(&web.bits);
        let meets = |j: usize| !own.apart(&self.webs[j].bits);
        self.registers().filter(|x| !web.interface || x.1).find_map(|(r, _)| {
            self.looked.set(self.looked.get() + rows.len() + out.len() / 8);
            let holders = (0..out.len()).filter(|&j| out[j] == Some(r));
            let (gone, stay): (Vec<usize>, Vec<usize>) = holders.partition(|&j| meets(j));
            let (mut rows, mut out) = (rows.clone(), out.to_vec());
            rows[usize::from(r.0)].clone_from(&self.before[usize::from(r.0)]);
            if gone.len() > GIVE_WAY || !free(&rows, r, web) {
                return None;
            }
            for j in stay.into_iter().chain([i]) {
                take(&mut rows, r, self.webs[j], self.ii);
                out[j] = Some(r);
            }
            for j in gone {
                let from = self.webs[j].arcs.first().map_or(0, |a| a.0);
                let other = self.shortest_idle(&rows, self.webs[j], from)?;
                take(&mut rows, other, self.webs[j], self.ii);
                out[j] = Some(other);
            }
            Some((rows, out))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, Circle, Web, bits};
    use ciphermill_machine::Reg;
    use std::cell::Cell;

    fn web(arcs: &[(i64, i64)]) -> Web {
        Web { side: 0, arcs: arcs.to_vec(), bits: bits(8, arcs), interface: false, only: None, members: Vec::new() }
    }

    /// Two registers on a circle of eight cycles, the first taken in cycle 7 and the second in 5
    /// and 6, and what a colouring makes of it that is cut open at cycle 0.
    fn opened(webs: &[Web], allocatable: &[Reg], give_way: bool) -> Option<Vec<Reg>> {
        let mut before = vec![None, None];
        for (row, arc) in before.iter_mut().zip([(7, 1), (5, 2)]) {
            row.get_or_insert_with(|| Circle::new(8)).fill(arc.0, arc.1);
        }
        let webs: Vec<&Web> = webs.iter().collect();
        let pool = [Reg(0), Reg(1)];
        Asked::new(&webs, &pool, allocatable, &before, 8, &Cell::new(0)).open_at(0, give_way)
    }

    #[test]
    fn a_web_gives_way_to_one_that_has_no_other_register() {
        // The first takes what has been free for the shortest time, all that the second can have.
        let webs = [web(&[(0, 4)]), web(&[(3, 3)])];
        assert_eq!(opened(&webs, &[], false), None);
        assert_eq!(opened(&webs, &[], true), Some(vec![Reg(1), Reg(0)]));
        // Not where it can have no other itself.
        let crowded = [web(&[(0, 4)]), web(&[(3, 3)]), web(&[(0, 2)])];
        assert_eq!(opened(&crowded, &[], true), None);
    }

    #[test]
    fn what_is_known_outside_gives_way_only_to_where_it_may_be() {
        let webs = [Web { interface: true, ..web(&[(0, 4)]) }, web(&[(3, 3)])];
        assert_eq!(opened(&webs, &[Reg(0), Reg(1)], true), Some(vec![Reg(1), Reg(0)]));
        assert_eq!(opened(&webs, &[Reg(0)], true), None);
    }
}
