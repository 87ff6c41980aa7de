//! Stores put behind loads through other pointers.
//!
//! A machine of narrow words has few registers that an address can be in, so to go from one pointer to another and back costs
//! moves. Where a block loads through one pointer and stores through another in turn, as when a key is added to a state on
//! its way out, the stores wait until the loads have been made. Only buffers that the caller has promised to be apart are
//! told apart, and stores keep their order.

use crate::provenance::{Root, roots};
use ciphermill_ir::{Func, Inst, Op, Space};
use ciphermill_machine::{Machine, OperandKind, PartArg};
use ciphermill_patterns::graph::any;
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::pattern::{Action, Template};

/// Bytes that wait, at most: as many as a block of a cipher has. All of them live meanwhile.
const MOST_BYTES: u32 = 16;
/// Instructions between a store and a load that it lets pass, at most.
const WINDOW: usize = 32;

/// Addresses that a machine can hold in registers for its loads at once, as far as operands say: the fewest registers that
/// one of the words of an address may be in, of the load that has most.
pub fn pointers(machine: &Machine, templates: &[Template]) -> usize {
    let registers = |t: &Template, operand: usize| {
        let [part] = &t.parts[..] else { return 0 };
        let at = part.args.iter().position(|a| matches!(a, PartArg::Operand(i) if *i == operand));
        let only = &machine.instrs[usize::from(part.instr.0)].only;
        let within = at.and_then(|at| only.iter().find(|o| o.0 == at));
        match &t.operands[operand].kind {
            OperandKind::Reg { file, .. } => within.map_or(machine.files[*file].count.into(), |o| o.1.len()),
            _ => 0,
        }
    };
    let of = |t: &Template| {
        let Action::Value(_, Pat::Load { addr, .. }) = &t.action else { return None };
        let mut fewest: Option<usize> = None;
        any(addr, |p| {
            if let Pat::Reg(i) = p {
                fewest = Some(fewest.unwrap_or(usize::MAX).min(registers(t, *i)));
            }
            false
        });
        fewest
    };
    templates.iter().filter_map(of).max().unwrap_or(0)
}

/// Put them there in a function whose first `buffers` parameters are buffers apart from each other.
pub fn stores_behind_loads(func: &mut Func, buffers: usize) {
    let roots = roots(func, buffers);
    for block in func.layout.clone() {
        let mut made = Made { insts: Vec::new(), waiting: Vec::new() };
        for inst in std::mem::take(&mut func.blocks[block].insts) {
            let data = &func.insts[inst];
            match data.op {
                Op::Store(access) => {
                    let root = roots[func.resolve(data.args[0])];
                    if made.bytes() + u32::from(access.bytes) > MOST_BYTES {
                        made.flush();
                    }
                    let at = made.insts.len();
                    made.waiting.push(Waiting { inst, space: access.space, root, bytes: access.bytes.into(), at });
                }
                Op::Load(access) => made.pass(inst, access.space, roots[func.resolve(data.args[0])]),
                op => {
                    if op.has_effect() {
                        made.flush();
                    }
                    made.insts.push(inst);
                }
            }
        }
        made.flush();
        func.blocks[block].insts = made.insts;
    }
}

struct Waiting {
    inst: Inst,
    space: Space,
    root: Root,
    bytes: u32,
    /// Its place among the other instructions.
    at: usize,
}

/// A block as it becomes.
struct Made {
    insts: Vec<Inst>,
    waiting: Vec<Waiting>,
}

impl Made {
    fn bytes(&self) -> u32 {
        self.waiting.iter().map(|w| w.bytes).sum()
    }

    /// A load: behind all that waits, or in front of it.
    fn pass(&mut self, load: Inst, space: Space, root: Root) {
        let here = self.insts.len();
        let passes = |w: &Waiting| apart((w.space, w.root), (space, root)) && here - w.at <= WINDOW;
        if self.waiting.iter().all(passes) {
            self.insts.push(load);
            self.waiting.iter_mut().for_each(|w| w.at = here + 1);
        } else {
            self.flush();
            self.insts.push(load);
        }
    }

    /// All that waits, each at its place.
    fn flush(&mut self) {
        for (n, store) in self.waiting.drain(..).enumerate() {
            self.insts.insert(store.at + n, store.inst);
        }
    }
}

/// Do two accesses reach different memory for certain?
fn apart(a: (Space, Root), b: (Space, Root)) -> bool {
    a.0 != b.0
        || match (a.1, b.1) {
            (Root::Pointer(x), Root::Pointer(y)) => x != y,
            (Root::Pointer(_), Root::Int) | (Root::Int, Root::Pointer(_)) => true,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciphermill_ir::{MemAccess, Signature, Terminator, Type, Value};

    const BYTE: MemAccess = MemAccess { bytes: 1, signed: false, align: 1, offset: 0, space: Space::Linear };

    /// Loads and stores through parameters, `l0` and `s1` for instance, in the order that becomes of them.
    fn moved(text: &str) -> String {
        let mut func = Func::new("f", Signature { params: vec![Type::I32; 3], results: vec![] });
        let (entry, params) = (func.entry, func.blocks[func.entry].params.clone());
        let pointer = |code: &str| params[code[1..].parse::<usize>().expect("a parameter's number")];
        let mut last: Value = params[2];
        for code in text.split_whitespace() {
            match &code[..1] {
                "l" => last = func.append1(entry, Op::Load(BYTE), &[pointer(code)], Type::I32, 0),
                _ => _ = func.append(entry, Op::Store(BYTE), &[pointer(code), last], &[], 0),
            }
        }
        func.blocks[entry].term = Terminator::Return(vec![]);
        stores_behind_loads(&mut func, 2);
        let number = |v: Value| params.iter().position(|&p| p == v).expect("a parameter");
        let shown = |inst: &Inst| match func.insts[*inst].op {
            Op::Load(_) => format!("l{}", number(func.insts[*inst].args[0])),
            _ => format!("s{}", number(func.insts[*inst].args[0])),
        };
        func.blocks[entry].insts.iter().map(shown).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn stores_wait_for_loads_from_other_buffers() {
        assert_eq!(moved("l0 s1 l0 s1 l0 s1"), "l0 l0 l0 s1 s1 s1");
        // Parameter 2 is no buffer, but in neither of them.
        assert_eq!(moved("l2 s1 l2 s1"), "l2 l2 s1 s1");
    }

    #[test]
    fn stores_stay_in_front_of_loads_from_their_own() {
        assert_eq!(moved("l0 s0 l0 s0"), "l0 s0 l0 s0");
        assert_eq!(moved("l0 s1 l0 s1 l1 l0"), "l0 l0 s1 s1 l1 l0");
        assert_eq!(moved("l2 s2 l2 s2"), "l2 s2 l2 s2");
    }

    #[test]
    fn no_more_than_a_block_waits() {
        let text = "l0 s1 ".repeat(MOST_BYTES as usize + 1);
        let first = format!("{}{}", "l0 ".repeat(MOST_BYTES as usize + 1), "s1 ".repeat(MOST_BYTES as usize + 1));
        assert_eq!(moved(&text), first.trim());
        let twice = moved(&"l0 s1 ".repeat(2 * MOST_BYTES as usize));
        assert!(twice.contains("s1 l0"), "{twice}");
    }
}
