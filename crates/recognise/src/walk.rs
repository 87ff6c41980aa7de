//! The operations on the way to some values.

use ciphermill_ir::{Func, Value};
use std::collections::BTreeSet;

/// `roots` and what they are computed from, as far as `part` says so.
pub fn backwards(func: &Func, roots: &[Value], part: impl Fn(Value) -> bool) -> BTreeSet<Value> {
    let (mut seen, mut todo) = (BTreeSet::new(), roots.to_vec());
    while let Some(v) = todo.pop() {
        let v = func.resolve(v);
        if part(v)
            && seen.insert(v)
            && let Some(inst) = func.def_inst(v)
        {
            todo.extend(&func.insts[inst].args);
        }
    }
    seen
}
