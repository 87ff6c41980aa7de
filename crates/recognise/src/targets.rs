//! All that is looked for on a machine, in the forms in which it is looked for.

use super::matrices::{Inverse, Turned, inverses, matrices};
use super::pairs::{Pair, pairs};
use super::sum::Rows;
use super::units::Unit;
use std::collections::HashMap;

/// A machine's units, and their matrices turned and undone.
pub struct Targets {
    pub units: Vec<Unit>,
    pub matrices: HashMap<Rows, Turned>,
    pub inverses: Vec<Inverse>,
    pub pairs: Vec<Pair>,
}

impl Targets {
    pub fn new(units: Vec<Unit>) -> Targets {
        Targets { matrices: matrices(&units), inverses: inverses(&units), pairs: pairs(&units), units }
    }
}
