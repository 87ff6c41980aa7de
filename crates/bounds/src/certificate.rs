//! Proofs that no schedule has a certain II: what [`crate::check`] verifies.

/// Why no schedule has this II or a smaller one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Certificate {
    Resources(Resources),
    Circuit(Circuit),
    Joint(Joint),
    Relaxation(Relaxation),
    Lifetimes(Lifetimes),
}

/// These resources are taken for longer than they are there, whichever way each operation runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resources {
    /// Indices into the loop's resources, each once.
    pub set: Vec<usize>,
}

/// Indices of edges, each of which begins where the one before it ends, the first where the last ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Circuit {
    pub edges: Vec<usize>,
}

/// An operation cannot come back `iterations` later within so many intervals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joint {
    pub operation: usize,
    pub iterations: usize,
    /// Earliest cycles after the operation in iteration 0, each proved by those before it; the last
    /// is that of the operation itself after all iterations.
    pub steps: Vec<Step>,
}

/// In this iteration the operation issues no earlier than in this cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    pub operation: usize,
    pub iteration: usize,
    pub cycle: i64,
    pub reason: Reason,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// An index of an edge from an operation whose earliest cycle is known.
    Edge(usize),
    /// Operations before it have to issue first, and there are so many for these resources.
    Crowd {
        /// Each operation counted takes one of these, whichever way it runs.
        set: Vec<usize>,
        /// Those counted cannot issue before this cycle,
        from: i64,
        /// and have a chain of dependences of at least so many cycles to the operation.
        tail: i64,
    },
}

/// Multipliers of a linear program's rows that no cycles of the operations satisfy together.
///
/// Its variables say with which weight an operation issues in a cycle, from the earliest to the
/// latest that ways to and from one operation leave it, which issues in cycle 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Relaxation {
    pub ii: i64,
    /// The operation in cycle 0.
    pub anchor: usize,
    /// `(resources, cycle modulo II, multiplier)`: operations that take one of these whichever way
    /// they run are no more than there are.
    pub resources: Vec<(Vec<usize>, i64, u64)>,
    /// `(edge, cycle, multiplier)`: where the first operation issues in this cycle or later, the
    /// second does not issue before the dependence allows it.
    pub edges: Vec<(usize, i64, u64)>,
    /// `(file, cycle modulo II, multiplier)`: there are no more values in it than registers.
    pub registers: Vec<(usize, i64, u64)>,
    /// For these values, of which reader the register is held for.
    pub readers: Vec<(usize, usize)>,
}

/// Values live longer, all together, than registers are there: a flow from each value's operation
/// to one of its readers, or to nowhere. All dependences that it takes say how long they live.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lifetimes {
    pub ii: i64,
    /// The file, and for each of the loop's values that are in it the reader that ends it, an index
    /// into its readers; none: it counts one cycle.
    pub file: usize,
    pub ends: Vec<Option<usize>>,
    /// `(edge, how often)`.
    pub flow: Vec<(usize, u64)>,
}

impl Certificate {
    /// Does it hold only where every value stays in a register from when it lands to its last read,
    /// and each operation runs once? Otherwise it holds for all schedules.
    pub fn needs_registers(&self) -> bool {
        match self {
            Certificate::Lifetimes(_) => true,
            Certificate::Relaxation(r) => !r.registers.is_empty(),
            _ => false,
        }
    }

    /// Its kind, in a word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Certificate::Resources(_) => "resources",
            Certificate::Circuit(_) => "circuit",
            Certificate::Joint(_) => "joint",
            Certificate::Relaxation(_) => "relaxation",
            Certificate::Lifetimes(_) => "registers",
        }
    }
}
