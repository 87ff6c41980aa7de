//! A loop as plain data: what bounds of its initiation interval are made of.
//!
//! All cycles count from the beginning of an iteration. A schedule of an II gives each operation a
//! cycle `t`, and the same operation of the iteration after runs II cycles later.

/// A loop of one block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Loop {
    pub operations: Vec<Operation>,
    pub resources: Vec<Resource>,
    pub edges: Vec<Edge>,
    /// Every value that the loop makes, each made by another operation.
    pub values: Vec<Value>,
    /// Register files; a value of none that is here is not counted.
    pub files: Vec<File>,
}

/// What runs once in every iteration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// The instruction's name, for people.
    pub name: String,
    /// The ways to run it, for each what it takes; none: it takes nothing.
    pub ways: Vec<Vec<Use>>,
}

/// A resource taken from the operation's cycle on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Use {
    /// An index into [`Loop::resources`].
    pub resource: usize,
    /// For so many cycles, at least 1.
    pub cycles: u32,
}

/// Units of one kind, a path between clusters, or the issue slots of a cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resource {
    pub name: String,
    /// How many there are in a cycle.
    pub count: u32,
    pub kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Issue,
    Unit,
    Path,
}

/// A dependence: `t[to] + distance * II >= t[from] + latency`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    pub latency: i64,
    pub distance: i64,
    pub why: Why,
}

/// What a dependence comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The second operation reads the first one's result.
    Value,
    /// Accesses to memory that keep their order.
    Memory,
    /// No operation runs before its iteration begins, and the branch decides whether the next
    /// iteration does: such edges lead from and to an operation that stands for the beginning.
    Branch,
}

/// A value and who reads it. Its register is taken from `t[operation] + lands` to the last read, at
/// least for one cycle; both cycles count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    pub operation: usize,
    /// The file that its register is of, an index into [`Loop::files`].
    pub file: usize,
    pub lands: i64,
    /// Operations, and how many iterations later each reads it.
    pub readers: Vec<(usize, i64)>,
}

/// A register file, or all files of a machine as one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// Empty: all files.
    pub name: String,
    pub count: u32,
    /// Of these, those that values from outside the loop hold all the time.
    pub outside: u32,
}

impl File {
    /// Registers that are left for values of the loop.
    pub fn left(&self) -> i64 {
        i64::from(self.count) - i64::from(self.outside)
    }
}
