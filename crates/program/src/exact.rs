//! Pipelined loops as problems for an exact scheduler, and its answers: plain
//! data, which crosses to whoever has a solver (`python/ciphermill/optimal.py`
//! says what each field means and what a schedule has to keep).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a loop is to a solver.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    /// Iterations that may be under way at once.
    pub stages: i64,
    pub resources: BTreeMap<String, u32>,
    /// Register files and how many of their registers there are to be had.
    pub files: BTreeMap<String, u32>,
    /// Values from outside the loop.
    pub outside: usize,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Node {
    /// It need not run: a copy between files.
    pub optional: bool,
    /// Cycles until its result has landed.
    pub latency: i64,
    /// It issues so many cycles before the first stage ends: the branch back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_end: Option<i64>,
    /// For each operand, where it may be read from.
    pub operands: Vec<Vec<Source>>,
    pub alternatives: Vec<Alternative>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Source {
    Node { node: usize, distance: u32 },
    Outside { outside: usize },
}

/// One way to run a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Alternative {
    pub uses: Vec<String>,
    pub result: Option<String>,
    pub reads: Vec<String>,
}

/// An order that is not through a register.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    pub latency: i64,
    pub distance: u32,
}

/// A loop that was pipelined, as it can be asked about.
#[derive(Clone, Debug, Serialize)]
pub struct LoopProblem {
    /// An index into the program's functions.
    pub func: u32,
    /// Does what is measured come here? Others need not be asked about.
    pub runs: bool,
    /// The initiation interval that was found without a solver.
    pub ii: u32,
    /// Lower bound on the II: units, recurrence circuits, the branch.
    pub first: u32,
    /// Work divided between the clusters as it now is: an answer is a schedule.
    pub divided: Problem,
    /// Any division, with copies between the clusters as they are needed. An
    /// answer is a proof that there is none, or a division to go on with. Null
    /// on machines of one cluster.
    pub free: Option<Problem>,
}

/// What a solver said of one loop.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// There is no schedule below this II.
    #[serde(default)]
    pub least: u32,
    /// For each node of the `free` problem that is no copy, its alternative.
    #[serde(default)]
    pub division: Option<Vec<usize>>,
    /// A schedule of the `divided` problem.
    #[serde(default)]
    pub schedule: Option<Schedule>,
    /// What was asked, in this order.
    #[serde(default)]
    pub asked: Vec<Question>,
}

/// A question to a solver, and its word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Is there a schedule of this II,
    pub ii: u32,
    /// with work divided between the clusters as this says?
    pub division: Division,
    pub word: Word,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Division {
    /// In any way: the `free` problem.
    Any,
    /// As it is: the `divided` problem.
    Own,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    Found,
    /// It was proved that there is none.
    None,
    /// Not decided within the time there was.
    Unknown,
    /// Too large to be asked.
    Large,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    pub ii: u32,
    /// Issue cycle of each node in iteration 0.
    pub time: Vec<i64>,
    /// Number of the alternative of each.
    pub alternative: Vec<usize>,
}
