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

/// Some of a run: the first after so many instructions have been passed over.
#[derive(Clone, Default, Debug)]
pub struct Log {
    pub rows: Vec<Row>,
    most: usize,
    skip: u64,
    /// The last of the rows has yet to retire.
    open: bool,
}

impl Log {
    /// A log of at most `most`, after `skip` micro-operations that retire.
    pub fn new(skip: u64, most: usize) -> Log {
        Log { rows: Vec::new(), most, skip, open: false }
    }

    pub(crate) fn push(&mut self, row: Row) {
        if self.skip > 0 {
            self.skip -= u64::from(!row.wrong);
        } else if self.rows.len() < self.most {
            self.rows.push(row);
            self.open |= !row.wrong;
        }
    }

    /// The last `count` retired together.
    pub(crate) fn retire(&mut self, count: usize, at: u64) {
        if std::mem::take(&mut self.open) {
            let last = self.rows.iter_mut().rev().filter(|r| !r.wrong).take(count);
            last.filter(|r| r.retired == 0).for_each(|r| r.retired = at);
        }
    }
}
