//! A finished schedule.

use super::body::From;
use super::graph::{kept, latency};
use super::place::Ops;
use ciphermill_machine::InstrId;

/// A finished schedule.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub ii: i64,
    /// Issue time of each operation, from 0.
    pub time: Vec<i64>,
    pub variant: Vec<InstrId>,
    /// Stages an iteration passes through.
    pub stages: i64,
}

/// Does every access to memory wait for those before it, and every operand find
/// its value landed and not yet overwritten by the next iteration's?
pub fn keeps_orders(ops: &Ops, ii: i64, time: &[i64], rotates: bool) -> bool {
    let memory = ops.memory.iter().all(|&(a, b, cycles, d)| time[b] + i64::from(d) * ii >= time[a] + i64::from(cycles));
    let operands = ops.ops.iter().enumerate().all(|(i, op)| {
        op.reads.iter().all(|r| match r.1 {
            From::Node(p, d) => {
                let read = time[i] + i64::from(d) * ii;
                let landed = read >= time[p] + latency(ops, p);
                landed && (rotates || read < time[p] + kept(ops, p) + ii)
            }
            From::Outside(_) => true,
        })
    });
    memory && operands
}
