//! Values that go to the frame while a schedule is under way, or come back from there.
//!
//! A form says before there is a schedule which values wait in the frame, in the order of its operations. Where a row has too
//! many values when all operations stand, it is known which of them are not read for long. So one of these is stored where it
//! was read last, and loaded again for its next reader; one that the frame has already, or that follows from values outside
//! the loop alone, is only loaded or made again. And where dependences fail, values that wait in the frame while registers are
//! free keep one: the store and the load are on no chain then, and take no units. All other operations stay where they stand
//! (Zalamea, Llosa, Ayguadé and Valero, *Improved spill code generation for software pipelined loops*, PLDI 2000, and *MIRS*,
//! MICRO 2001).
//!
//! Only values of one iteration change places: what is carried round, or wanted behind the loop, is the form's.

#[cfg(test)]
mod tests;
mod waits;

use super::state::{Loop, State};
use super::{Search, clusters};
use crate::body::{From, Node};
use crate::graph::latency;
use crate::place::{At, Free, Op, Ops, Origin, fit};
use crate::{based, framed};
use ciphermill_program::search_log::Moves;
use waits::{Held, Idle, is_load};

/// Operations that are looked at in as long as a move takes.
const LOOKS: u64 = 4;

/// An operation that comes in before another, near a cycle.
struct Incoming {
    op: Op,
    before: usize,
    wish: i64,
}

impl<'s> Search<'s> {
    /// The schedule with other values in the frame, in which others of its rules are broken; none where that is no use.
    pub(super) fn respilled(&self, state: &State<'s>) -> (Option<State<'s>>, Moves) {
        let mut moves = Moves::default();
        if !self.params.respills || state.ops().frame.is_none() || state.left() == 0 {
            return (None, moves);
        }
        moves.work += state.ops().ops.len() as u64 / LOOKS;
        let held = if state.faults > 0 { state.held() } else { Vec::new() };
        let back = if held.is_empty() { None } else { self.back(state, &held) };
        let from = back.as_ref().unwrap_or(state);
        let idle = if from.excess > 0 { from.idle() } else { Vec::new() };
        // As many as units have cycles for.
        let counts = std::iter::successors(Some(idle.len()), |n| Some(n / 2)).take_while(|n| *n > 0);
        let away = { counts }.find_map(|n| Some((self.away(from, &idle[..n])?, n)));
        moves.spills.tried += (held.len() + idle.len()) as u64;
        moves.spills.taken += back.as_ref().map_or(0, |_| held.len() as u64) + away.as_ref().map_or(0, |a| a.1 as u64);
        (away.map(|a| a.0).or(back), moves)
    }

    /// The schedule with some values in the frame for a while. None where units have no cycles for that.
    fn away(&self, state: &State<'s>, idle: &[Idle]) -> Option<State<'s>> {
        let mut ops = state.ops().clone();
        let n = ops.ops.len();
        let mut incoming: Vec<Incoming> = Vec::new();
        for Idle { value, readers, gap, again } in idle {
            let before = *readers.iter().min()?;
            let wish = gap.1 - latency(&ops, *value);
            let new = if *again {
                let new = n + incoming.len();
                let orders: Vec<_> = ops.memory.iter().filter(|m| m.0 == *value || m.1 == *value).copied().collect();
                let renamed = |i: usize| if i == *value { new } else { i };
                ops.memory.extend(orders.into_iter().map(|(a, b, c, d)| (renamed(a), renamed(b), c, d)));
                incoming.push(Incoming { op: ops.ops[*value].clone(), before, wish });
                new
            } else {
                let [store, load] = self.accesses(&mut ops, *value)?;
                let new = n + incoming.len() + 1;
                ops.memory.extend([(new - 1, new, 1, 0), (new, new - 1, 0, 1)]);
                incoming.push(Incoming { op: store, before: value + 1, wish: gap.0 });
                let wish = gap.1 - load.writes.map_or(1, |w| i64::from(w.1));
                incoming.push(Incoming { op: load, before, wish });
                new
            };
            replace(&mut ops, readers, *value, new);
        }
        let mut order: Vec<(usize, usize)> = incoming.iter().enumerate().map(|(k, i)| (i.before, n + k)).collect();
        order.extend((0..n).map(|i| (i, usize::MAX)));
        order.sort_unstable();
        let order: Vec<usize> = order.into_iter().map(|(i, new)| if new == usize::MAX { i } else { new }).collect();
        ops.ops.extend(incoming.iter().map(|i| i.op.clone()));
        ops.origins.resize(ops.ops.len(), Origin::Own);
        let mut ops = in_order(ops, &order);
        for i in (0..order.len()).filter(|i| order[*i] >= n) {
            ops.ops[i].variants = fit(self.sides, &ops, i);
            ops.ops[i].follow_paths(self.sides);
            if ops.ops[i].variants.is_empty() {
                return None;
            }
        }
        let all = self.with_clusters(ops);
        let units = clusters::least(&all, &all.task.ops) <= state.schedule.ii;
        let wish: Vec<i64> = order.iter().map(|i| i.checked_sub(n).map_or(0, |k| incoming[k].wish)).collect();
        state.joined(&all, &order, &wish).filter(|_| units)
    }

    /// A store of a value to a new word of the frame, and a load from there. None where they take more than one operation
    /// each.
    fn accesses(&self, ops: &mut Ops, value: usize) -> Option<[Op; 2]> {
        let machine = self.sides.machine;
        let Free { first, banks } = ops.frame?;
        let offset = first + i64::from(machine.word_bits / 8) * ops.spilled as i64;
        let home = self.sides.of_reg(machine.abi.stack_pointer)?;
        let op = |instr, from: Option<From>, result: usize| {
            let mut nodes = framed::access(machine, instr, offset, from, 0)?;
            let Node { mut inst, reads, writes, .. } = nodes.pop().filter(|_| nodes.is_empty())?;
            if let Some(mem) = inst.mem.as_mut().filter(|_| banks) {
                mem.banks = based::banks(machine, offset);
            }
            let (at, reads) = (At { unit: home, result }, reads.into());
            Some(Op { inst, reads, writes, tied: false, at, variants: Default::default(), stalling: Vec::new() })
        };
        ops.spilled += 1;
        let store = op(machine.abi.ops.store, Some(From::Node(value, 0)), home)?;
        Some([store, op(machine.abi.ops.load, None, ops.ops[value].at.result)?])
    }

    /// The schedule with values in registers that were in the frame.
    fn back(&self, state: &State<'s>, held: &[Held]) -> Option<State<'s>> {
        let mut ops = state.ops().clone();
        let n = ops.ops.len();
        let mut gone = vec![false; n];
        for Held { store, load, bearer, readers, .. } in held {
            replace(&mut ops, readers, *load, *bearer);
            gone[*load] = true;
            let others = ops.memory.iter().any(|m| m.0 == *store && !gone[m.1] && is_load(&ops, *m));
            if !others {
                gone[*store] = true;
                // Who used its word before still comes before who uses it next.
                let before = ops.memory.iter().filter(|m| m.1 == *store && m.2 == 0 && !gone[m.0]);
                let after = || ops.memory.iter().filter(|m| m.0 == *load && m.2 == 0 && !gone[m.1]);
                let both: Vec<_> = before.flat_map(|b| after().map(|a| (b.0, a.1, 0, b.3 + a.3))).collect();
                ops.memory.extend(both);
            }
            ops.memory.retain(|m| !gone[m.0] && !gone[m.1]);
        }
        let order: Vec<usize> = (0..n).filter(|i| !gone[*i]).collect();
        let all = self.with_clusters(in_order(ops, &order));
        state.joined(&all, &order, &vec![0; order.len()])
    }
}

/// Readers of a value read another instead.
fn replace(ops: &mut Ops, readers: &[usize], value: usize, by: usize) {
    for &reader in readers {
        let reads = ops.ops[reader].reads.iter_mut().filter(|r| r.1 == From::Node(value, 0));
        reads.for_each(|r| r.1 = From::Node(by, 0));
    }
}

/// Those operations that an order names, in that order. Nothing may be left that names others.
fn in_order(ops: Ops, order: &[usize]) -> Ops {
    let mut index = vec![usize::MAX; ops.ops.len()];
    order.iter().enumerate().for_each(|(new, &old)| index[old] = new);
    let mut out = Ops {
        ops: order.iter().map(|&i| ops.ops[i].clone()).collect(),
        origins: order.iter().map(|&i| ops.origins[i]).collect(),
        initial: ops.initial.iter().map(|(&i, &v)| (index[i], v)).collect(),
        live_out: ops.live_out.iter().map(|&(i, v)| (index[i], v)).collect(),
        memory: ops.memory.iter().map(|&(a, b, c, d)| (index[a], index[b], c, d)).collect(),
        ..ops
    };
    for (_, from) in out.ops.iter_mut().flat_map(|op| &mut op.reads) {
        if let From::Node(p, _) = from {
            *p = index[*p];
        }
    }
    out
}

impl<'s> State<'s> {
    /// These operations of the schedule and others, which stand near cycles of their own. None where units have no place
    /// for one.
    fn joined(&self, all: &Loop<'s>, order: &[usize], wish: &[i64]) -> Option<State<'s>> {
        let (time, variant) = (&self.schedule.time, &self.schedule.variant);
        let stood = order.iter().map(|&i| Some((*time.get(i)?, *variant.get(i)?))).collect::<Vec<_>>();
        State::around(all, (self.schedule.ii, self.schedule.stages), &stood, wish)
    }
}
