//! What happened to each micro-operation, for views of the pipeline and tests.

use crate::uop::Kind;

/// One micro-operation's cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Number of its instruction in the program.
    pub number: u32,
    /// How many instructions had retired before its own; of a wrong path: with
    /// the branch that it is behind the last of them.
    pub retired_before: u64,
    /// The instruction and the one behind it became one.
    pub pair: bool,
    pub kind: Kind,
    pub fetched: u64,
    /// Earliest cycle for renaming.
    pub decoded: u64,
    pub renamed: u64,
    /// Wrong paths are left before some of their micro-operations start.
    pub started: bool,
    pub start: u64,
    /// A user can start.
    pub end: u64,
    /// The port it started on, as a set of one; 0: it takes none.
    pub port: u32,
    /// Of a wrong path: when it was thrown away.
    pub retired: u64,
    pub wrong: bool,
}

/// Some of a run: the micro-operations of a range of retired instructions, and
/// those of wrong paths between them.
#[derive(Clone, Default, Debug)]
pub struct Log {
    pub rows: Vec<Row>,
    first: u64,
    end: u64,
    /// The last of the rows has yet to retire.
    open: bool,
}

impl Log {
    /// A log of `count` instructions after `first` of those that retire.
    pub fn new(first: u64, count: u64) -> Log {
        Log { rows: Vec::new(), first, end: first.saturating_add(count), open: false }
    }

    pub(crate) fn push(&mut self, row: Row) {
        if (self.first..self.end).contains(&row.retired_before) && !(row.wrong && row.retired_before == self.first) {
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
