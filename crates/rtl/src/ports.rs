//! The ports of an instruction's module.
//!
//! A register operand or a register named in the semantics is a port as wide
//! as its file; an immediate has as many bits as its range needs. What is read
//! and written gets two ports: `x_in` and `x`.

use crate::options::Refusal;
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Instr, Machine, OperandKind, Reg, for_each_expr};
use serde::Serialize;

/// What a port carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    Operand(usize),
    Fixed(Reg),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Port {
    pub name: String,
    pub bits: u8,
    /// An immediate whose highest bit is its sign.
    pub signed: bool,
    #[serde(skip)]
    pub source: Source,
}

#[derive(Clone, Debug)]
pub struct Ports {
    pub module: String,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
}

impl Ports {
    pub fn of(machine: &Machine, instr: &Instr) -> Result<Ports, Refusal> {
        let refuse = |what: &str| Err(Refusal(format!("{} {what}: its hardware is the processor's", instr.name)));
        let mut read: Vec<Source> = Vec::new();
        let mut written: Vec<Source> = Vec::new();
        let (mut memory, mut pc) = (false, false);
        let note = |source: Source, list: &mut Vec<Source>| {
            if !list.contains(&source) {
                list.push(source);
            }
        };
        for_each_expr(&instr.semantics, &mut |e| match e {
            Expr::Operand(i) | Expr::Imm(i) => note(Source::Operand(*i), &mut read),
            Expr::Fixed(r) => note(Source::Fixed(*r), &mut read),
            Expr::MatVec { matrix, .. } => {
                matrix.registers().for_each(|r| note(Source::Fixed(r), &mut read));
            }
            Expr::Load { .. } => memory = true,
            Expr::Pc => pc = true,
            _ => {}
        });
        for stmt in &instr.semantics {
            match stmt {
                Stmt::Assign { dest: Dest::Operand(i), .. } => note(Source::Operand(*i), &mut written),
                Stmt::Assign { dest: Dest::Fixed(r), .. } => note(Source::Fixed(*r), &mut written),
                Stmt::Let { .. } => {}
                Stmt::Store { .. } => memory = true,
                Stmt::Goto { .. } => return refuse("jumps"),
                Stmt::Trap => return refuse("traps"),
                Stmt::Rotate => return refuse("rotates registers"),
                Stmt::WindowSave | Stmt::WindowRestore => return refuse("turns the register window"),
            }
        }
        if memory {
            return refuse("reaches memory");
        }
        if pc {
            return refuse("reads the address of the program");
        }
        if written.is_empty() {
            return Err(Refusal(format!("{} writes no register", instr.name)));
        }
        // Operands first, in their order; then registers by number.
        let order = |s: &Source| match s {
            Source::Operand(i) => (0, *i),
            Source::Fixed(r) => (1, usize::from(r.0)),
        };
        read.sort_by_key(order);
        written.sort_by_key(order);
        let port = |source: Source, input: bool| -> Port {
            let (name, bits, signed) = match source {
                Source::Fixed(r) => {
                    let info = machine.reg(r);
                    (info.name.clone(), machine.files[info.file].bits, false)
                }
                Source::Operand(i) => {
                    let o = &instr.operands[i];
                    let (bits, signed) = match &o.kind {
                        OperandKind::Reg { file, .. } => (machine.files[*file].bits, false),
                        OperandKind::Imm { min, max, .. } => immediate(*min, *max),
                        OperandKind::Label => (machine.word_bits, false),
                    };
                    (o.name.clone(), bits.min(machine.word_bits), signed)
                }
            };
            let both = input && written.contains(&source);
            Port { name: identifier(&if both { format!("{name}_in") } else { name }), bits, signed, source }
        };
        Ok(Ports {
            module: format!("op_{}", instr.name),
            inputs: read.iter().map(|&s| port(s, true)).collect(),
            outputs: written.iter().map(|&s| port(s, false)).collect(),
        })
    }

    pub fn input(&self, source: Source) -> Option<&Port> {
        self.inputs.iter().find(|p| p.source == source)
    }

    pub fn output(&self, source: Source) -> Option<&Port> {
        self.outputs.iter().find(|p| p.source == source)
    }
}

/// Bits that hold an immediate from `min` to `max`, and whether it has a sign.
fn immediate(min: i64, max: i64) -> (u8, bool) {
    let unsigned = |x: i64| (64 - x.leading_zeros()).max(1) as u8;
    if min >= 0 {
        return (unsigned(max), false);
    }
    let magnitude = |x: i64| if x < 0 { !x } else { x };
    (unsigned(magnitude(min).max(magnitude(max))).min(63) + 1, true)
}

/// A name that is no word of Verilog.
pub fn identifier(name: &str) -> String {
    const WORDS: [&str; 32] = [
        "always", "and", "assign", "begin", "buf", "case", "default", "deassign", "disable", "edge", "else", "end",
        "event", "for", "force", "if", "in", "initial", "inout", "input", "module", "nand", "nor", "not", "or",
        "output", "reg", "table", "wait", "wire", "xnor", "xor",
    ];
    if WORDS.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::immediate;

    #[test]
    fn immediates_have_the_bits_of_their_range() {
        assert_eq!(immediate(0, 3), (2, false));
        assert_eq!(immediate(0, 31), (5, false));
        assert_eq!(immediate(-2048, 2047), (12, true));
        assert_eq!(immediate(-1, 0), (1 + 1, true));
        assert_eq!(immediate(0, 0), (1, false));
        assert_eq!(immediate(i64::MIN, i64::MAX), (64, true));
    }
}
