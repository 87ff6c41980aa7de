//! A schedule for a narrower machine is one for a wider machine too.
//!
//! Schedulers are heuristics: with more slots or more units a loop's least interval
//! is never longer, but the one they find may be. So where a pipeline is longer than
//! its bound by more than a search cares for, the loop is also scheduled as for machines
//! with half the issue slots, a quarter and so on, and with fewer units of each class, and
//! the shortest pipeline of all is taken. A machine whose bound is no shorter than what has
//! been found is not tried. So along widths that double, or along the number of units of a
//! class, no loop gets longer by more than that, as long as fewer machines are worth a try
//! than may be tried.
//!
//! A loop of very many operations gains hardly anything from fewer units, and each search takes
//! seconds: it is tried at fewer slots alone.
//!
//! Where work is divided between clusters, the search for how takes all the effort: such a
//! machine is not made narrower.
//!
//! Instructions and their numbers are the machine's own; what changes is only how
//! many may start together. Nothing is said here of what is tried on each machine.

use super::body::Body;
use super::memo::Memo;
use super::place::Ops;
use super::search::params::Params;
use super::{Asked, Searched, graph, renamed, shortest};
use ciphermill_machine::Machine;
use ciphermill_vcode::CompileError;
use std::collections::BTreeSet;

/// Narrower machines that a loop is scheduled for.
const TRIED: usize = 24;
/// Nodes of a loop beyond which only the width is made less.
const LARGE: usize = 1_000;

/// Is a loop searched for on many narrower machines?
pub(super) fn many(body: &Body) -> bool {
    body.nodes.len() <= LARGE
}

/// The part of a machine that says how much may start in a cycle: its width, and
/// how many units of each class it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    width: u16,
    units: Vec<u16>,
}

impl Room {
    /// That of a machine, with no more units of a class than slots to use them in.
    fn of(machine: &Machine) -> Room {
        let width = machine.issue.width;
        Room { width, units: machine.units.iter().map(|u| u.count.min(width)).collect() }
    }

    fn give(&self, machine: &mut Machine) {
        machine.issue.width = self.width;
        machine.units.iter_mut().zip(&self.units).for_each(|(unit, count)| unit.count = *count);
    }

    /// Those with less: half the width, a quarter and so on, and at this width and
    /// each of these any fewer units of `classes`; what takes least away comes first.
    fn narrower(&self, classes: &[usize]) -> Vec<Room> {
        let widths = std::iter::successors(Some(self.width), |w| (*w > 1).then_some(w / 2));
        let mut out = Vec::new();
        for width in widths {
            let mut here = vec![self.units.iter().map(|count| (*count).min(width)).collect::<Vec<u16>>()];
            for &class in classes {
                let fewer = |units: &Vec<u16>| -> Vec<Vec<u16>> {
                    let with = |count: u16| {
                        units.iter().enumerate().map(|(c, &n)| if c == class { count } else { n }).collect()
                    };
                    (1..=units[class]).rev().map(with).collect()
                };
                here = here.iter().flat_map(fewer).collect();
            }
            here.sort_by_key(|units| std::cmp::Reverse(units.iter().map(|&u| u32::from(u)).sum::<u32>()));
            out.extend(here.into_iter().map(|units| Room { width, units }));
        }
        out.retain(|room| room != self);
        out
    }
}

/// Classes of units that a loop needs, but for the one that most of its operations
/// can run on: fewer slots do to that what fewer units would.
fn classes(machine: &Machine, ops: &Ops) -> Vec<usize> {
    let mut wanted = vec![0usize; machine.units.len()];
    for op in &ops.ops {
        let units = op.variants.iter().flat_map(|v| &machine.instrs[usize::from(v.0)].units);
        units.collect::<BTreeSet<_>>().into_iter().for_each(|&u| wanted[u] += 1);
    }
    let most = (0..wanted.len()).max_by_key(|&u| (wanted[u], std::cmp::Reverse(u)));
    (0..wanted.len()).filter(|&u| wanted[u] > 0 && Some(u) != most && machine.units[u].count > 1).collect()
}

/// The shortest pipeline that is found for a loop on a machine, or on one with less
/// room where the search is to be `thorough` and that is shorter.
///
/// # Errors
/// When some operation has no variant.
pub(super) fn pipeline(asked: Asked<'_>, memo: &Memo) -> Result<Searched, CompileError> {
    let (body, names) = renamed::own(asked.body);
    let mut searched = in_own_numbers(Asked { body: &body, ..asked }, memo)?;
    if let Some((kernel, own)) = &mut searched.found {
        names.give(kernel, own);
    }
    Ok(searched)
}

fn in_own_numbers(asked: Asked<'_>, memo: &Memo) -> Result<Searched, CompileError> {
    let Asked { body, sides, effort, .. } = asked;
    let remembered = |asked: Asked<'_>| {
        let known = memo.of(body, asked.sides, asked.registers, asked.kept, effort, asked.below);
        known.or(|| shortest(asked))
    };
    let Searched { found, bound, bounds, cut } = remembered(asked)?;
    let Some(mut best) = found else { return Ok(Searched { found, bound, bounds, cut }) };
    let (res_mii, rec_mii) = (best.0.res_mii, best.0.rec_mii);
    let enough = |ii: i64| Params::default().enough(ii, bound);
    if !effort.thorough || sides.files.len() > 1 || best.0.recorded || enough(best.0.schedule.ii) {
        return Ok(Searched { found: Some(best), bound, bounds, cut });
    }
    let ops = graph::one_side(sides, body)?;
    let mut machine = sides.machine.clone();
    let mut tried = 0;
    let classes = if !many(body) { Vec::new() } else { classes(sides.machine, &ops) };
    for room in Room::of(sides.machine).narrower(&classes) {
        room.give(&mut machine);
        let narrow = sides.on(&machine);
        if graph::resources(&narrow, &ops) >= best.0.schedule.ii {
            continue;
        }
        let searched = remembered(Asked { sides: &narrow, below: best.0.schedule.ii, ..asked })?;
        best = searched.found.filter(|f| f.0.schedule.ii < best.0.schedule.ii).unwrap_or(best);
        tried += 1;
        if tried == TRIED || enough(best.0.schedule.ii) {
            break;
        }
    }
    (best.0.res_mii, best.0.rec_mii) = (res_mii, rec_mii);
    let cut = cut && best.0.schedule.ii > bound;
    Ok(Searched { found: Some(best), bound, bounds, cut })
}

#[cfg(test)]
mod tests {
    use super::Room;

    #[test]
    fn less_room_is_fewer_slots_and_fewer_units_of_some_classes() {
        let room = Room { width: 4, units: vec![4, 3, 2] };
        let got: Vec<(u16, Vec<u16>)> = room.narrower(&[1, 2]).into_iter().map(|r| (r.width, r.units)).collect();
        let four = [[4, 3, 1], [4, 2, 2], [4, 2, 1], [4, 1, 2], [4, 1, 1]].map(|u| (4, u.to_vec()));
        let two = [[2, 2, 2], [2, 2, 1], [2, 1, 2], [2, 1, 1]].map(|u| (2, u.to_vec()));
        let one = [(1, vec![1, 1, 1])];
        assert_eq!(got, [&four[..], &two[..], &one[..]].concat());
    }

    #[test]
    fn what_a_narrower_machine_tries_a_wider_one_tries_too() {
        let all = |width: u16, ports: u16| {
            let room = Room { width, units: vec![width, ports.min(width), 2.min(width)] };
            let mut all = room.narrower(&[1, 2]);
            all.push(room);
            all
        };
        for (width, ports) in [(1, 1), (2, 1), (2, 3), (4, 2), (8, 3), (16, 1)] {
            for wider in [all(2 * width, ports), all(width, ports + 1)] {
                assert!(all(width, ports).iter().all(|room| wider.contains(room)), "{width} {ports}");
            }
        }
    }
}
