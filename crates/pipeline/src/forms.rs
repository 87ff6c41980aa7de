//! Forms of a loop, and the records of each.
//!
//! Where parts of a loop do not depend on each other, as several blocks do not, what they all
//! read, such as a round key, is loaded once for all or once for each ([`partition::separate`]).
//! The first takes fewer units, the second fewer ways between the sides and no turns. A run
//! takes the form that the scheduler does better with; a search of minutes goes on with every form
//! whose units leave room for something shorter. In which order the nodes of a body stand decides
//! only what the scheduler comes to, but it is part of what a record is found by.

use super::body::Body;
use super::graph::lower;
use super::modulo::Policy;
use super::place::Sides;
use super::squeeze::Finished;
use super::{DIVIDED, Found, Kernel, Loops, order, partition, recorded};
use ciphermill_program::kept_schedules::KeptSchedule as Recorded;
use ciphermill_vcode::CompileError;
use ciphermill_vcode::VReg;

/// A body as it is, and with common nodes for each part.
fn parted(body: &Body) -> impl Iterator<Item = Body> {
    std::iter::once(body.clone()).chain(partition::separate(body))
}

/// A form as it stands and in a frugal order.
fn ordered(form: Body, sides: &Sides<'_>) -> [Body; 2] {
    let part: Vec<usize> = partition::apart(&form, sides).iter().map(|a| a.result).collect();
    let frugal = order::frugal(&form, &part);
    [form, frugal]
}

/// The record of a kernel of one form of a body, none where registers rotate; it names the others.
pub(super) fn write(kernel: &Kernel, own: &Body, body: &Body, sides: &Sides<'_>) -> Option<Recorded> {
    let record = recorded::write(kernel, own, sides)?;
    let forms = parted(body).flat_map(|form| ordered(form, sides));
    let mut forms: Vec<String> = forms.map(|form| recorded::digest(&form, sides)).collect();
    forms.retain(|other| *other != record.digest);
    Some(Recorded { equivalent: forms, ..record })
}

impl Loops<'_> {
    /// The shortest kernel of a body that there is a record of, in whatever form.
    pub(super) fn shortest_known(&self, body: &Body) -> Option<Found> {
        // Two letters for each node.
        let fits = |form: &Body| self.records.iter().any(|r| r.assignment.len() == 2 * form.nodes.len());
        let forms = parted(body).filter(fits).flat_map(|form| ordered(form, self.sides));
        let known = forms.filter_map(|form| self.known(&form, &[]));
        known.min_by_key(|f| f.kernel.schedule.ii)
    }

    /// The shortest of some kernels' bodies with schedules of records.
    pub(super) fn known_of(&self, all: &[Found]) -> Option<Found> {
        let known = all.iter().filter_map(|found| self.known(&found.body, &found.kept));
        known.min_by_key(|f| f.kernel.schedule.ii)
    }

    /// A body, some of whose values are in the frame, with the shortest schedule that records have.
    fn known(&self, body: &Body, kept: &[(VReg, i64)]) -> Option<Found> {
        if self.records.is_empty() {
            return None;
        }
        let own = recorded::digest(body, self.sides);
        let read = |r: &Recorded| recorded::read(r, body, self.sides, &self.registers.allocatable);
        let records = self.records.iter().filter(|r| r.digest == own);
        let Finished { schedule, registers, ops } = records.filter_map(read).min_by_key(|f| f.schedule.ii)?;
        let kernel = Kernel { recorded: true, ..Kernel::new(body, ops, schedule, registers) };
        let at = kernel.ops.at(body.nodes.len());
        let (body, kept) = (body.clone(), kept.to_vec());
        Some(Found { kernel, body, at, given: Vec::new(), policy: Policy::any(0), kept, annealed: true })
    }

    /// Add kernels of those forms of a body that are not among some, and take for each what there
    /// is a record of where that is shorter.
    ///
    /// # Errors
    /// When some operation has no variant.
    pub(super) fn add_forms(&self, body: &Body, all: &mut Vec<Found>) -> Result<(), CompileError> {
        // The nodes' order does not matter to what is annealed.
        for form in parted(body) {
            if all.iter().any(|f| f.kept.is_empty() && f.body.nodes.len() == form.nodes.len()) {
                continue;
            }
            let before = self.work.replace(DIVIDED);
            let mut found = None;
            for at in [partition::apart(&form, self.sides), partition::spread(&form, self.sides, &[])] {
                self.try_at(&form, &at, &[], &[], i64::MAX, &mut found)?;
            }
            self.work.set(before);
            all.extend(found);
        }
        for found in &mut *all {
            let known = self.known(&found.body, &found.kept);
            *found =
                known.filter(|k| k.kernel.schedule.ii <= found.kernel.schedule.ii).unwrap_or_else(|| found.clone());
        }
        all.extend(self.shortest_known(body));
        all.sort_by_key(|f| f.kernel.schedule.ii);
        Ok(())
    }

    /// Shorten every kernel that may yet become the shortest.
    pub(super) fn shorten_forms(&self, all: &mut [Found]) {
        let mut best = i64::MAX;
        for found in all {
            let (res_mii, rec_mii) = lower(self.sides, &found.body).unwrap_or((0, 0));
            if res_mii.max(rec_mii) < best {
                self.squeeze(found, true);
                best = best.min(found.kernel.schedule.ii);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::{Sides, settle};
    use super::super::squeeze::finished;
    use super::super::{Effort, Kernel, Loops, Search, recorded};
    use crate::anneal::tests::{addition, machine, named, with_branch};
    use crate::anneal::{Loop, State};
    use crate::body::{Body, From, Node};
    use crate::relieve::Neighbours;
    use crate::{color, partition};
    use ciphermill_machine::{InstrId, Machine, Reg};
    use ciphermill_program::kept_schedules::KeptSchedule as Recorded;
    use ciphermill_vcode::Registers;
    use ciphermill_vcode::{VInst, VKind, VOp, VReg};
    use std::cell::Cell;

    /// Two rings of four additions through the iterations, to which one value is added, and the branch.
    fn body(m: &Machine) -> Body {
        let mut nodes = vec![addition(m, From::Outside(VReg(0)))];
        let mut last = Vec::new();
        for _ in 0..2 {
            let first = nodes.len();
            let ops = [VOp::Use(VReg(0)), VOp::Use(VReg(0)), VOp::Def(VReg(1))];
            let inst = VInst::new(VKind::Normal, named(m, "add"), &ops, 0);
            let reads = vec![(0, From::Node(0, 0)), (1, From::Node(first + 3, 1))];
            nodes.push(Node { mem: None, inst, reads, writes: Some((2, 1)), tied: false });
            (0..3).for_each(|k| nodes.push(addition(m, From::Node(first + k, 0))));
            last.push(first + 3);
        }
        let initial = last.into_iter().zip([VReg(1), VReg(2)]).collect();
        Body { initial, ..with_branch(m, nodes) }
    }

    /// The loop on the C6201, all of whose registers are free.
    fn on_the_c6201(run: impl FnOnce(&Body, &Sides<'_>, &Registers)) {
        let m = machine();
        let free: Vec<Reg> = (0..m.regs.len() as u16).map(Reg).collect();
        let none = InstrId(0);
        let registers = Registers {
            allocatable: free,
            clobbered: vec![],
            callee_saved: vec![],
            mov: (none, vec![]),
            jump: none,
            nop: none,
        };
        run(&body(&m), &Sides::new(&m, &registers.allocatable), &registers);
    }

    /// The record of a schedule of so many cycles.
    fn record(body: &Body, sides: &Sides<'_>, allocatable: &[Reg], ii: i64) -> Recorded {
        let ops = settle(body, sides, &partition::apart(body, sides)).unwrap();
        let (near, pool) = (Neighbours::of(&ops), color::pool(sides));
        let all = Loop { sides, ops: &ops, near: &near, apart: false, pool: &pool };
        let mut state = State::stretched(all, ii - 6, ii, 1, ii).unwrap();
        state.anneal(50_000, (30, 2), 1);
        let found = finished(all, &state, allocatable).unwrap();
        let kernel = Kernel::new(body, found.ops, found.schedule, found.registers);
        recorded::write(&kernel, body, sides).unwrap()
    }

    #[test]
    fn the_shortest_record_of_any_form_is_taken() {
        on_the_c6201(|body, sides, registers| {
            let parted = partition::separate(body).unwrap();
            assert_eq!((body.nodes.len(), parted.nodes.len()), (10, 11));
            for (whole, apart) in [(12, 10), (10, 12)] {
                let records = [
                    record(body, sides, &registers.allocatable, whole),
                    record(&parted, sides, &registers.allocatable, apart),
                ];
                let of =
                    |records| Loops { sides, registers, search: Effort::quick().search, records, work: Cell::new(0) };
                let known = of(&records).shortest_known(body).unwrap();
                assert_eq!((known.kernel.schedule.ii, known.kernel.recorded), (10, true));
                assert_eq!(known.body.nodes.len(), if whole < apart { 10 } else { 11 });
                assert!(of(&[]).shortest_known(body).is_none());
                // The form that is taken names the other.
                let new = super::write(&known.kernel, &known.body, body, sides).unwrap();
                let [short, long] = if whole < apart { [0, 1] } else { [1, 0] }.map(|k: usize| &records[k].digest);
                assert_eq!(&new.digest, short);
                assert!(new.equivalent.contains(long) && !new.equivalent.contains(short));
            }
        });
    }

    #[test]
    fn a_search_for_records_goes_on_with_every_form() {
        on_the_c6201(|body, sides, registers| {
            let records = [record(body, sides, &registers.allocatable, 12)];
            let search = Search { times: 2, round: 1 };
            let loops = Loops { sides, registers, search, records: &records, work: Cell::new(1_000_000) };
            let mut all = Vec::new();
            loops.add_forms(body, &mut all).unwrap();
            let nodes: Vec<usize> = all.iter().map(|f| f.body.nodes.len()).collect();
            assert!(nodes.contains(&10) && nodes.contains(&11), "{nodes:?}");
            assert!(all.is_sorted_by_key(|f| f.kernel.schedule.ii));
            loops.shorten_forms(&mut all);
            // The branch has six cycles behind it, nothing else asks for more than three.
            assert_eq!(all.iter().map(|f| f.kernel.schedule.ii).min(), Some(7));
        });
    }
}
