//! What happened to each micro-operation, for views of the pipeline and tests.

use crate::uop::Kind;

/// One micro-operation's cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Number of its instruction.
    pub number: u32,
    pub kind: Kind,
    pub fetched: u64,
    /// Earliest cycle for renaming.
    pub decoded: u64,
    pub renamed: u64,
    pub start: u64,
    /// A user can start.
    pub end: u64,
    /// Of a wrong path: when it was thrown away.
    pub retired: u64,
    pub wrong: bool,
}

/// The first so many of a run.
#[derive(Clone, Default, Debug)]
pub struct Log {
    pub rows: Vec<Row>,
    pub most: usize,
}

impl Log {
    /// A log with room for so many.
    pub fn new(most: usize) -> Log {
        Log { rows: Vec::new(), most }
    }

    pub(crate) fn push(&mut self, row: Row) {
        if self.rows.len() < self.most {
            self.rows.push(row);
        }
    }

    /// The last `count` retired together.
    pub(crate) fn retire(&mut self, count: usize, at: u64) {
        for row in self.rows.iter_mut().rev().filter(|r| !r.wrong).take(count).filter(|r| r.retired == 0) {
            row.retired = at;
        }
    }
}
