//! The order in which operands that may be exchanged are written.
//!
//! A compiler leaves `a ^ rotl(b, 7)` at one place and `rotl(b, 9) ^ a` at another. Of two
//! operands the one with more operations stands first, then the one whose text comes first
//! with all inputs called the same. Where that says nothing, both orders are tried: which
//! of two inputs is the first can show at another place of the same subgraph.

use ciphermill_ir::{Func, Op, Value};
use std::collections::{BTreeSet, HashMap};

/// Operations whose operands are tried in both orders, at most.
const MOST_TIES: usize = 4;

/// Operations whose operands are exchanged when they are written.
pub struct OperandOrder {
    turned: BTreeSet<Value>,
}

impl OperandOrder {
    /// The orders to be tried.
    pub fn all(
        func: &Func,
        nodes: &BTreeSet<Value>,
        uses: &HashMap<Value, usize>,
    ) -> impl Iterator<Item = OperandOrder> {
        let mut shapes = Shapes { func, nodes, known: HashMap::new() };
        let (mut always, mut ties) = (BTreeSet::new(), Vec::new());
        for &v in nodes {
            let Some(inst) = func.def_inst(v) else { continue };
            let data = &func.insts[inst];
            let (Op::Bin(op), &[a, b]) = (data.op, &data.args[..]) else { continue };
            if !op.commutes() {
                continue;
            }
            let (a, b) = (func.resolve(a), func.resolve(b));
            let alone = |v: Value| !nodes.contains(&v) && uses.get(&v) == Some(&1);
            match shapes.rank(a).cmp(&shapes.rank(b)) {
                std::cmp::Ordering::Greater => drop(always.insert(v)),
                // Two inputs that nothing else reads: nobody can tell them apart.
                std::cmp::Ordering::Equal if a != b && !(alone(a) && alone(b)) && ties.len() < MOST_TIES => {
                    ties.push(v)
                }
                _ => {}
            }
        }
        (0..1u32 << ties.len()).map(move |choice| {
            let some = ties.iter().enumerate().filter(|(n, _)| choice >> n & 1 != 0).map(|(_, &v)| v);
            OperandOrder { turned: always.iter().copied().chain(some).collect() }
        })
    }

    pub fn turned(&self, v: Value) -> bool {
        self.turned.contains(&v)
    }
}

/// What values look like with all inputs the same.
struct Shapes<'a> {
    func: &'a Func,
    nodes: &'a BTreeSet<Value>,
    known: HashMap<Value, String>,
}

impl Shapes<'_> {
    /// What comes first has the smaller rank.
    fn rank(&mut self, v: Value) -> (std::cmp::Reverse<usize>, String) {
        let shape = self.shape(v);
        (std::cmp::Reverse(shape.len()), shape)
    }

    fn shape(&mut self, v: Value) -> String {
        let v = self.func.resolve(v);
        if self.func.as_const(v).is_some() {
            return "k".to_owned();
        }
        let Some(inst) = self.func.def_inst(v).filter(|_| self.nodes.contains(&v)) else { return "i".to_owned() };
        if let Some(shape) = self.known.get(&v) {
            return shape.clone();
        }
        let data = &self.func.insts[inst];
        let mut args: Vec<String> = data.args.iter().map(|&a| self.shape(a)).collect();
        if matches!(data.op, Op::Bin(op) if op.commutes()) {
            args.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        }
        let shape = format!("({:?} {})", data.op, args.join(" "));
        self.known.insert(v, shape.clone());
        shape
    }
}
