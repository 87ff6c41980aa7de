//! And-inverter graphs: logic as two-input and-gates and inverters.
//!
//! Equal gates are shared when they are made, constants vanish. A literal is
//! twice the number of its gate, plus one when inverted; literal 0 is false.

use crate::ports::{Port, Ports};
use std::collections::HashMap;
use std::fmt::Write;

/// A gate's output, or its inverse.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Lit(u32);

pub(crate) const FALSE: Lit = Lit(0);
pub(crate) const TRUE: Lit = Lit(1);

impl std::ops::Not for Lit {
    type Output = Lit;
    fn not(self) -> Lit {
        Lit(self.0 ^ 1)
    }
}

impl Lit {
    fn gate(self) -> usize {
        (self.0 / 2) as usize
    }
}

/// Logic from the bits of input ports to the bits of output ports.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Inputs have no operands; gate 0 is false.
    gates: Vec<Option<(Lit, Lit)>>,
    shared: HashMap<(Lit, Lit), Lit>,
    /// Bits of each input port, lowest first.
    pub inputs: Vec<Vec<Lit>>,
    /// Bits of each output port, lowest first.
    pub outputs: Vec<Vec<Lit>>,
}

impl Graph {
    pub fn new() -> Graph {
        Graph { gates: vec![None], ..Graph::default() }
    }

    pub fn input(&mut self, bits: u8) -> Vec<Lit> {
        let port: Vec<Lit> = (0..bits).map(|_| self.push(None)).collect();
        self.inputs.push(port.clone());
        port
    }

    fn push(&mut self, gate: Option<(Lit, Lit)>) -> Lit {
        self.gates.push(gate);
        Lit((self.gates.len() as u32 - 1) * 2)
    }

    pub fn and(&mut self, a: Lit, b: Lit) -> Lit {
        let (a, b) = (a.min(b), a.max(b));
        match (a, b) {
            (FALSE, _) => FALSE,
            (TRUE, b) => b,
            _ if a == b => a,
            _ if a == !b => FALSE,
            _ => match self.shared.get(&(a, b)) {
                Some(&there) => there,
                None => {
                    let gate = self.push(Some((a, b)));
                    self.shared.insert((a, b), gate);
                    gate
                }
            },
        }
    }

    pub fn or(&mut self, a: Lit, b: Lit) -> Lit {
        !self.and(!a, !b)
    }

    pub fn xor(&mut self, a: Lit, b: Lit) -> Lit {
        let (left, right) = (self.and(a, !b), self.and(!a, b));
        self.or(left, right)
    }

    /// `c ? t : e`.
    pub fn mux(&mut self, c: Lit, t: Lit, e: Lit) -> Lit {
        if t == e {
            return t;
        }
        let (then, els) = (self.and(c, t), self.and(!c, e));
        self.or(then, els)
    }

    /// Number of and-gates.
    pub fn size(&self) -> usize {
        self.gates.iter().flatten().count()
    }

    /// Unit gates of what the outputs need: an AND or an OR is 1, an exclusive-or
    /// 2, inverters nothing (A. J. Elbirt, AINAW 2007, III-A). Nothing is
    /// simplified but what making the graph did, so synthesis finds fewer.
    pub fn unit_gates(&self) -> usize {
        let mut uses = vec![0usize; self.gates.len()];
        let mut needed = vec![false; self.gates.len()];
        self.outputs.iter().flatten().for_each(|lit| {
            needed[lit.gate()] = true;
            uses[lit.gate()] += 1;
        });
        // Operands come before the gates they are for.
        for (i, gate) in self.gates.iter().enumerate().rev() {
            if let (true, Some((a, b))) = (needed[i], gate) {
                for lit in [a, b] {
                    needed[lit.gate()] = true;
                    uses[lit.gate()] += 1;
                }
            }
        }
        let gate = |lit: Lit| self.gates[lit.gate()];
        let is_xor = |(a, b): (Lit, Lit)| {
            a.0 & b.0 & 1 != 0
                && uses[a.gate()] == 1
                && uses[b.gate()] == 1
                && matches!((gate(a), gate(b)), (Some((p, q)), Some((r, s))) if (r, s) == (!p, !q) || (s, r) == (!p, !q))
        };
        let counted = self.gates.iter().enumerate().filter(|(i, _)| needed[*i]).filter_map(|(_, gate)| *gate);
        // The gate that joins an exclusive-or's two others is not counted: they are the 2.
        counted.map(|gate| usize::from(!is_xor(gate))).sum()
    }

    /// The outputs for one value of each input port.
    pub fn evaluate(&self, inputs: &[u64]) -> Vec<u64> {
        let mut values = vec![false; self.gates.len()];
        for (port, value) in self.inputs.iter().zip(inputs) {
            for (i, lit) in port.iter().enumerate() {
                values[lit.gate()] = value >> i & 1 != 0;
            }
        }
        let read = |values: &[bool], lit: Lit| values[lit.gate()] ^ (lit.0 & 1 != 0);
        for (i, gate) in self.gates.iter().enumerate() {
            if let Some((a, b)) = gate {
                values[i] = read(&values, *a) & read(&values, *b);
            }
        }
        let word =
            |port: &Vec<Lit>| port.iter().enumerate().fold(0, |w, (i, &lit)| w | u64::from(read(&values, lit)) << i);
        self.outputs.iter().map(word).collect()
    }

    /// The graph as BLIF, its model called `reference`; bit i of a port is
    /// called `port[i]`.
    pub(crate) fn blif(&self, ports: &Ports) -> String {
        let names = |list: &[Port]| {
            let bits = |p: &Port| (0..p.bits).map(|i| bit(p, i)).collect::<Vec<_>>();
            list.iter().flat_map(bits).collect::<Vec<_>>().join(" ")
        };
        let mut text = String::from("# Made from the semantics, gate by gate.\n.model reference\n");
        let _ = writeln!(text, ".inputs {}\n.outputs {}\n.names g0", names(&ports.inputs), names(&ports.outputs));
        let mut called: Vec<String> = (0..self.gates.len()).map(|i| format!("g{i}")).collect();
        for (lits, port) in self.inputs.iter().zip(&ports.inputs) {
            for (i, lit) in lits.iter().enumerate() {
                called[lit.gate()] = bit(port, i as u8);
            }
        }
        let on = |lit: Lit| 1 - (lit.0 & 1);
        for (i, gate) in self.gates.iter().enumerate() {
            if let Some((a, b)) = gate {
                let (x, y) = (&called[a.gate()], &called[b.gate()]);
                let _ = writeln!(text, ".names {x} {y} g{i}\n{}{} 1", on(*a), on(*b));
            }
        }
        for (lits, port) in self.outputs.iter().zip(&ports.outputs) {
            for (i, lit) in lits.iter().enumerate() {
                let _ = writeln!(text, ".names {} {}\n{} 1", called[lit.gate()], bit(port, i as u8), on(*lit));
            }
        }
        text.push_str(".end\n");
        text
    }
}

fn bit(port: &Port, i: u8) -> String {
    if port.bits == 1 { port.name.clone() } else { format!("{}[{i}]", port.name) }
}
