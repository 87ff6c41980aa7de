//! Values that only certain registers can hold.
//!
//! What an instruction is executed under, or a branch asks, stands in one of a few registers of
//! a side: five in all on a C62x. A row may have registers enough and these too few, and that
//! shows only when registers are coloured. So where a loop has more such values than a side has
//! of these registers they are counted twice: with all the values of their side, and by
//! themselves.

use super::body::From;
use super::place::{Ops, Sides};
use ciphermill_machine::Reg;
use std::collections::BTreeSet;

#[derive(Default)]
pub struct Certain {
    /// Is an operation's result such a value? Empty where there are registers enough for all.
    results: Vec<bool>,
    /// Registers of each side for them; none where there are enough.
    pub limits: Vec<i64>,
}

impl Certain {
    pub fn of(sides: &Sides<'_>, ops: &Ops) -> Certain {
        let mut results = vec![false; ops.ops.len()];
        let mut registers: Option<BTreeSet<Reg>> = None;
        let mut outside = BTreeSet::new();
        for op in &ops.ops {
            let only = op.variants.first().map_or(&[][..], |v| &sides.machine.instrs[usize::from(v.0)].only);
            for &(o, from) in &op.reads {
                let Some((_, list)) = only.iter().find(|p| p.0 == o) else { continue };
                // Where lists differ, what is in all of them.
                let kept = |r: &Reg| registers.as_ref().is_none_or(|known| known.contains(r));
                registers = Some(list.iter().copied().filter(kept).collect());
                match from {
                    From::Node(p, _) => results[p] = true,
                    From::Outside(v) => {
                        outside.insert((v, op.at.unit));
                    }
                }
            }
        }
        let registers = registers.unwrap_or_default();
        let limit = |(side, pool): (usize, &Vec<Reg>)| {
            let own = pool.iter().filter(|r| registers.contains(r)).count();
            own as i64 - outside.iter().filter(|o| o.1 == side).count() as i64
        };
        let limits: Vec<i64> = sides.pool.iter().enumerate().map(limit).collect();
        let values = results.iter().filter(|r| **r).count() as i64;
        match limits.iter().all(|l| values <= *l) {
            true => Certain::default(),
            false => Certain { results, limits },
        }
    }

    /// Is the operation's result such a value, and are these counted?
    pub fn holds(&self, i: usize) -> bool {
        self.results.get(i).is_some_and(|r| *r)
    }
}

#[cfg(test)]
mod tests {
    use super::Certain;
    use crate::anneal::{Loop, State};
    use crate::body::{Body, From, Node};
    use crate::color;
    use crate::modulo::{self, Plan, Policy, keeps_orders};
    use crate::place::{At, Ops, Sides, settle};
    use crate::relieve::Neighbours;
    use ciphermill_machine::{InstrId, Machine, Reg};
    use ciphermill_vcode::{VInst, VKind, VOp, VReg};
    use std::cell::Cell;
    use std::path::Path;

    fn machine() -> Machine {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        ciphermill_machine::load_from_dir(&root, "c6201", &[], &[], &[]).unwrap()
    }

    /// So many sums, each of which is a condition under which a register gets another value; and
    /// the branch. All on the first side, of whose registers two hold conditions.
    fn conditions(m: &Machine, sides: &Sides<'_>, count: usize) -> Ops {
        let named = |name: &str| InstrId(m.instrs.iter().position(|i| i.name == name).unwrap() as u16);
        let mut nodes = Vec::new();
        for k in 0..count {
            let ops = [VOp::Imm(4), VOp::Use(VReg(0)), VOp::Def(VReg(1))];
            let inst = VInst::new(VKind::Normal, named("add_imm"), &ops, 0);
            nodes.push(Node {
                mem: None,
                inst,
                reads: vec![(1, From::Outside(VReg(0)))],
                writes: Some((2, 1)),
                tied: false,
            });
            let desc = &m.instrs[usize::from(named("mv_nz").0)];
            let condition = desc.only[0].0;
            let other = (0..desc.operands.len()).find(|&o| o != condition && desc.operands[o].name == "src2").unwrap();
            let result = (0..desc.operands.len()).find(|o| *o != condition && *o != other).unwrap();
            let mut ops = vec![VOp::Use(VReg(0)); desc.operands.len()];
            ops[result] = VOp::Tied { used: VReg(0), def: VReg(2) };
            let inst = VInst::new(VKind::Normal, named("mv_nz"), &ops, 0);
            let outside = From::Outside(VReg(0));
            let sum = From::Node(2 * k, 0);
            let reads = vec![(condition, sum), (other, outside), (result, sum)];
            nodes.push(Node { mem: None, inst, reads, writes: Some((result, 1)), tied: true });
        }
        let branch = VInst::new(VKind::Normal, named("b"), &[], 0);
        nodes.push(Node { mem: None, inst: branch, reads: vec![], writes: None, tied: false });
        let body = Body::of(nodes, named("b"));
        let at = vec![At { unit: 0, result: 0 }; body.nodes.len()];
        Ops { cross_stall: 1, ..settle(&body, sides, &at).unwrap() }
    }

    #[test]
    fn they_are_counted_where_they_are_more_than_their_registers() {
        let m = machine();
        let free: Vec<Reg> = (0..m.regs.len() as u16).map(Reg).collect();
        let sides = Sides::new(&m, &free);
        let few = Certain::of(&sides, &conditions(&m, &sides, 2));
        assert!(few.limits.is_empty() && !few.holds(0));
        let many = Certain::of(&sides, &conditions(&m, &sides, 3));
        // A1 and A2; B0 to B2.
        assert_eq!(many.limits, [2, 3]);
        assert!(many.holds(0) && !many.holds(1));
    }

    #[test]
    fn what_is_scheduled_can_be_coloured_as_often_as_not() {
        let m = machine();
        let free: Vec<Reg> = (0..m.regs.len() as u16).map(Reg).collect();
        let sides = Sides::new(&m, &free);
        let ops = conditions(&m, &sides, 8);
        let plan = Plan::new(&sides, &ops, false);
        let schedules: Vec<_> = (1..=20)
            .filter_map(|seed| {
                let policy = Policy { slack: 0, ..Policy::any(seed) };
                modulo::schedule(&sides, &ops, &plan, 12, policy, &color::pool(&sides), 2, &[], &Cell::new(100_000))
            })
            .collect();
        assert!(schedules.len() >= 10, "{} of 20", schedules.len());
        // None can where these values are not counted.
        let coloured = schedules.iter().filter(|s| color::color(&sides, &ops, s, &free).is_ok()).count();
        assert!(2 * coloured >= schedules.len(), "{coloured} of {}", schedules.len());
    }

    #[test]
    fn what_is_annealed_can_be_coloured() {
        let m = machine();
        let free: Vec<Reg> = (0..m.regs.len() as u16).map(Reg).collect();
        let sides = Sides::new(&m, &free);
        let ops = conditions(&m, &sides, 8);
        let near = Neighbours::of(&ops);
        let pool = color::pool(&sides);
        let all = Loop { sides: &sides, ops: &ops, near: &near, apart: false, pool: &pool };
        let mut state = State::stretched(all, 6, 12, 2, 24).unwrap();
        state.anneal(50_000, (30, 2), 1);
        let schedule = state.finish().unwrap();
        assert!(keeps_orders(&ops, 12, &schedule.time));
        let registers = color::color(&sides, &ops, schedule, &free).unwrap();
        let certain = Certain::of(&sides, &ops);
        let name = |i: usize| registers.result[i].map(|r| m.regs[usize::from(r.0)].name.as_str());
        let held: Vec<Option<&str>> = (0..ops.ops.len()).filter(|&i| certain.holds(i)).map(name).collect();
        assert_eq!(held.len(), 8);
        assert!(held.iter().all(|r| matches!(r, Some("a1" | "a2"))), "{held:?}");
    }
}
