//! Subgraphs as text in the language of semantics.

use crate::order::OperandOrder;
use ciphermill_ir::{BinOp, CmpOp, Func, Inst, Op, Type, UnOp, Value};
use std::collections::{BTreeSet, HashMap};

/// Can an operation stand in an instruction's semantics? All its values are words of the
/// machine then: what comes to the selector has no others in arithmetic.
pub fn expressible(func: &Func, inst: Inst) -> bool {
    let data = &func.insts[inst];
    let [result] = data.results[..] else { return false };
    let word = func.ty(result);
    matches!(word, Type::I32 | Type::I64)
        && data.args.iter().all(|&v| func.ty(v) == word)
        && matches!(data.op, Op::Bin(_) | Op::Un(_) | Op::Cmp(_) | Op::Select)
        && written(data.op, &["x"; 3], false).is_some()
}

/// An operation of operands that are written out already; `half` for one of 32 bits in
/// words of 64.
fn written(op: Op, args: &[&str], half: bool) -> Option<String> {
    let call = |name: &str| Some(format!("{name}{}({})", if half { "32" } else { "" }, args.join(", ")));
    let infix = |sign: &str, name: &str| match half {
        true => call(name),
        false => Some(format!("({} {sign} {})", args[0], args[1])),
    };
    let low = |text: Option<String>| text.map(|t| if half { format!("zext32({t})") } else { t });
    let extended = |name: &str| low(Some(format!("{name}({})", args.join(", "))));
    match op {
        Op::Bin(op) => match op {
            BinOp::Add => infix("+", "add"),
            BinOp::Sub => infix("-", "sub"),
            BinOp::Mul => infix("*", "mul"),
            BinOp::MulHiU => call("mulhu"),
            BinOp::MulHiS => call("mulhs"),
            BinOp::And => infix("&", "and"),
            BinOp::Or => infix("|", "or"),
            BinOp::Xor => infix("^", "xor"),
            BinOp::Shl => infix("<<", "shl"),
            BinOp::ShrU => infix(">>u", "shru"),
            BinOp::ShrS => infix(">>s", "shrs"),
            BinOp::RotL => call("rotl"),
            BinOp::RotR => call("rotr"),
            _ => None,
        },
        Op::Un(op) => match op {
            UnOp::Clz => call("clz"),
            UnOp::Ctz => call("ctz"),
            UnOp::Popcnt => call("popcnt"),
            UnOp::SExt8 => extended("sext8"),
            UnOp::SExt16 => extended("sext16"),
            UnOp::Bswap => call("bswap"),
            UnOp::SExt32 => extended("sext32"),
        },
        Op::Cmp(op) => match op {
            CmpOp::Eq => infix("==", "eq"),
            CmpOp::Ne => infix("!=", "ne"),
            CmpOp::LtU => infix("<u", "ltu"),
            CmpOp::LtS => infix("<s", "lts"),
            CmpOp::LeU => infix("<=u", "leu"),
            CmpOp::LeS => infix("<=s", "les"),
        },
        Op::Select => Some(format!("({} ? {} : {})", args[0], args[1], args[2])),
        _ => None,
    }
}

/// A subgraph, written out.
pub struct Written {
    /// With `{n}` for the n-th constant; statements before the last are `let`.
    pub skeleton: String,
    pub constants: Vec<u64>,
    /// What it reads as registers `rs1`, `rs2` ..., and how many results it has.
    pub inputs: Vec<Value>,
    pub outputs: usize,
}

impl Written {
    /// The semantics with every constant in place, but for those named.
    pub fn semantics(&self, named: &HashMap<usize, String>) -> String {
        let mut text = self.skeleton.clone();
        for (n, c) in self.constants.iter().enumerate() {
            let value =
                named.get(&n).cloned().unwrap_or_else(|| if *c < 256 { c.to_string() } else { format!("{c:#x}") });
            text = text.replace(&format!("{{{n}}}"), &value);
        }
        text
    }
}

/// The name of the n-th result.
pub fn output(n: usize) -> String {
    if n == 0 { "rd".to_owned() } else { format!("rd{}", n + 1) }
}

/// Write out what `outputs` are, of values outside `nodes`: these become `rs1`,
/// `rs2` and so on, in the order of their first use.
///
/// `narrow` says that words have 64 bits and values of 32 are computed in 32.
///
/// What is the same but for the order of operands that may be exchanged reads the same
/// ([`crate::order`]).
pub fn write(func: &Func, outputs: &[Value], nodes: &BTreeSet<Value>, narrow: bool) -> Option<Written> {
    let rotates = if nodes.len() > ROTATE { rotates(func, outputs, nodes) } else { HashMap::new() };
    let within: BTreeSet<Value> = rotates.values().flat_map(|r| r.shifts).collect();
    let mut uses: HashMap<Value, usize> = outputs.iter().map(|&v| (v, 1)).collect();
    for &v in nodes.iter().filter(|v| !within.contains(v)) {
        if let Some(rotate) = rotates.get(&v) {
            *uses.entry(rotate.of).or_default() += 1;
            continue;
        }
        for &a in &func.insts[func.def_inst(v)?].args {
            *uses.entry(func.resolve(a)).or_default() += 1;
        }
    }
    OperandOrder::all(func, nodes, &uses)
        .filter_map(|order| written_out(func, outputs, nodes, &rotates, &uses, order, narrow))
        .min_by(|a, b| (&a.skeleton, &a.constants).cmp(&(&b.skeleton, &b.constants)))
}

fn written_out(
    func: &Func,
    outputs: &[Value],
    nodes: &BTreeSet<Value>,
    rotates: &HashMap<Value, Rotate>,
    uses: &HashMap<Value, usize>,
    order: OperandOrder,
    narrow: bool,
) -> Option<Written> {
    let mut out = Writer {
        narrow,
        func,
        nodes,
        rotates,
        uses,
        order,
        inputs: Vec::new(),
        lets: Vec::new(),
        names: HashMap::new(),
        constants: Vec::new(),
    };
    let results: Vec<String> = outputs.iter().map(|&v| out.value(v)).collect::<Option<_>>()?;
    let lets: String = out.lets.iter().map(|(name, text)| format!("let {name} = {text}; ")).collect();
    let bare = |text: &String| {
        text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).filter(|t| balanced(t)).unwrap_or(text).to_owned()
    };
    let results: Vec<String> =
        results.iter().enumerate().map(|(n, text)| format!("{} = {}", output(n), bare(text))).collect();
    Some(Written {
        skeleton: format!("{lets}{}", results.join("; ")),
        constants: out.constants,
        inputs: out.inputs,
        outputs: outputs.len(),
    })
}

/// No parenthesis closes before it was opened.
fn balanced(text: &str) -> bool {
    let mut depth = 0i32;
    text.chars().all(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth >= 0
    })
}

/// Operations in a rotate where the machine has none. One by itself stays two shifts: an
/// instruction for some rotates and not for others is none that a compiler can rely on.
const ROTATE: usize = 3;

/// Two shifts that together are a rotate to the left, by a constant.
struct Rotate {
    of: Value,
    left: u64,
    shifts: [Value; 2],
}

/// The rotates among `nodes` whose shifts nothing else uses: one constant says what two
/// did, and the hardware has one shifter.
fn rotates(func: &Func, outputs: &[Value], nodes: &BTreeSet<Value>) -> HashMap<Value, Rotate> {
    let args = |v: Value| func.def_inst(v).map_or(&[][..], |i| &func.insts[i].args);
    let users = |v: Value| nodes.iter().flat_map(|&n| args(n)).filter(|&&a| func.resolve(a) == v).count();
    let shift = |v: Value, op: BinOp| {
        let inst = func.def_inst(v).filter(|_| nodes.contains(&v) && !outputs.contains(&v) && users(v) == 1)?;
        let data = &func.insts[inst];
        (data.op == Op::Bin(op)).then_some(())?;
        Some((func.resolve(data.args[0]), func.as_const(func.resolve(data.args[1]))?))
    };
    let rotate = |v: Value| {
        let data = &func.insts[func.def_inst(v)?];
        matches!(data.op, Op::Bin(BinOp::Or | BinOp::Xor | BinOp::Add)).then_some(())?;
        let [a, b] = [func.resolve(data.args[0]), func.resolve(data.args[1])];
        [(a, b), (b, a)].into_iter().find_map(|(up, down)| {
            let ((x, left), (y, right)) = (shift(up, BinOp::Shl)?, shift(down, BinOp::ShrU)?);
            let whole = x == y && left > 0 && right > 0 && left + right == u64::from(func.ty(v).bits());
            whole.then_some(Rotate { of: x, left, shifts: [up, down] })
        })
    };
    nodes.iter().filter_map(|&v| Some((v, rotate(v)?))).collect()
}

struct Writer<'a> {
    narrow: bool,
    func: &'a Func,
    nodes: &'a BTreeSet<Value>,
    rotates: &'a HashMap<Value, Rotate>,
    uses: &'a HashMap<Value, usize>,
    order: OperandOrder,
    inputs: Vec<Value>,
    lets: Vec<(String, String)>,
    names: HashMap<Value, String>,
    constants: Vec<u64>,
}

impl Writer<'_> {
    fn value(&mut self, v: Value) -> Option<String> {
        let v = self.func.resolve(v);
        if let Some(name) = self.names.get(&v) {
            return Some(name.clone());
        }
        if let Some(c) = self.func.as_const(v) {
            self.constants.push(c & self.func.ty(v).mask());
            return Some(format!("{{{}}}", self.constants.len() - 1));
        }
        if !self.nodes.contains(&v) {
            self.inputs.push(v);
            let name = format!("rs{}", self.inputs.len());
            self.names.insert(v, name.clone());
            return Some(name);
        }
        let half = self.narrow && self.func.ty(v) == Type::I32;
        let text = match self.rotates.get(&v).map(|r| (r.of, r.left)) {
            Some((of, left)) => {
                let of = self.value(of)?;
                self.constants.push(left);
                format!("rotl{}({of}, {{{}}})", if half { "32" } else { "" }, self.constants.len() - 1)
            }
            None => {
                let data = &self.func.insts[self.func.def_inst(v)?];
                let (op, mut args) = (data.op, data.args.clone());
                let ones = |&a: &Value| self.func.as_const(self.func.resolve(a)) == Some(self.func.ty(v).mask());
                if let (Op::Bin(BinOp::Xor), Some(at), false) = (op, args.iter().position(ones), half) {
                    let of = self.value(args[1 - at])?;
                    return self.shared(v, format!("~{of}"));
                }
                if self.order.turned(v) {
                    args.reverse();
                }
                let args: Vec<String> = args.iter().map(|&a| self.value(a)).collect::<Option<_>>()?;
                written(op, &args.iter().map(String::as_str).collect::<Vec<_>>(), half)?
            }
        };
        self.shared(v, text)
    }

    /// A value's text, or the name that it gets because it is used again.
    fn shared(&mut self, v: Value, text: String) -> Option<String> {
        if self.uses.get(&v).is_none_or(|&n| n < 2) {
            return Some(text);
        }
        // No machine has a register of such a name.
        let name = format!("part{}", self.lets.len());
        self.lets.push((name.clone(), text));
        self.names.insert(v, name.clone());
        Some(name)
    }
}
