//! Semantics as a Verilog-2005 module.
//!
//! The tree is walked once. Slices, concatenations and shifts by constants
//! stay what they are ([`Value`]); what has to be cut or is used more than once
//! gets a wire. Each operator is given operands of one width, so that nothing
//! is widened or signed behind the reader's back. A division is refused: a
//! combinational divider is not what anyone wants.

use crate::options::{Refusal, Tables};
use crate::parts::{self, Part};
use crate::ports::{Ports, Source};
use crate::value::Value;
use ciphermill_ir::{BinOp, CmpOp, UnOp};
use ciphermill_machine::gf2::BitMatrix;
use ciphermill_machine::sem::{Dest, Expr, HeldMatrix, Stmt};
use ciphermill_machine::{Instr, Machine, print};
use std::fmt::Write;

type Res<T> = Result<T, Refusal>;

/// The module's text, and the modules it instantiates.
pub fn module(machine: &Machine, instr: &Instr, ports: &Ports, tables: Tables) -> Res<(String, Vec<Part>)> {
    let mut w =
        Writer { machine, instr, ports, tables, body: String::new(), parts: Vec::new(), wires: 0, lets: vec![] };
    for stmt in &instr.semantics {
        match stmt {
            Stmt::Let { value, .. } => {
                let value = w.expr(value)?;
                let named = w.named(value);
                w.lets.push(named);
            }
            Stmt::Assign { dest, value } => {
                let source = match dest {
                    Dest::Operand(i) => Source::Operand(*i),
                    Dest::Fixed(r) => Source::Fixed(*r),
                };
                let port = ports.output(source).ok_or_else(|| Refusal("an output is missing".to_owned()))?;
                let value = w.expr(value)?;
                let value = w.exactly(value, port.bits);
                let _ = writeln!(w.body, "    assign {} = {};", port.name, value.show());
            }
            _ => return Err(Refusal(format!("{} does more than compute", instr.name))),
        }
    }
    let semantics = print::statements(&instr.semantics, machine.names(&instr.operands));
    let mut text = format!("// {}: {}\n", instr.name, semantics.split_whitespace().collect::<Vec<_>>().join(" "));
    let _ = writeln!(text, "module {} (", ports.module);
    let range = |bits: u8| if bits == 1 { String::new() } else { format!("[{}:0] ", bits - 1) };
    let inputs = ports.inputs.iter().map(|p| format!("    input  wire {}{}", range(p.bits), p.name));
    let outputs = ports.outputs.iter().map(|p| format!("    output wire {}{}", range(p.bits), p.name));
    text.push_str(&inputs.chain(outputs).collect::<Vec<_>>().join(",\n"));
    let _ = write!(text, "\n);\n{}endmodule\n", w.body);
    Ok((text, w.parts))
}

struct Writer<'a> {
    machine: &'a Machine,
    instr: &'a Instr,
    ports: &'a Ports,
    tables: Tables,
    body: String,
    parts: Vec<Part>,
    wires: usize,
    lets: Vec<Value>,
}

impl Writer<'_> {
    fn word(&self) -> u8 {
        self.machine.word_bits
    }

    /// A new wire that holds a text of exactly so many bits.
    fn wire(&mut self, bits: u8, text: &str) -> Value {
        let value = self.declare(bits);
        let _ = writeln!(self.body, "    assign {} = {text};", value.show());
        value
    }

    fn declare(&mut self, bits: u8) -> Value {
        let name = format!("n{}", self.wires);
        self.wires += 1;
        let range = if bits == 1 { String::new() } else { format!("[{}:0] ", bits - 1) };
        let _ = writeln!(self.body, "    wire {range}{name};");
        Value::net(name, bits)
    }

    /// The value, on a wire of its own if it is more than bits of nets.
    fn named(&mut self, value: Value) -> Value {
        use crate::value::Piece::Text;
        if value.0.iter().any(|p| matches!(p, Text { .. })) { self.wire(value.bits(), &value.show()) } else { value }
    }

    fn slice(&mut self, value: Value, lo: u8, bits: u8) -> Value {
        match value.slice(lo, bits) {
            Some(slice) => slice.trimmed(),
            None => {
                let named = self.wire(value.bits(), &value.show());
                named.slice(lo, bits).unwrap_or_else(|| Value::zeros(1)).trimmed()
            }
        }
    }

    /// The value cut or widened to exactly so many bits.
    fn exactly(&mut self, value: Value, bits: u8) -> Value {
        let value = if value.bits() > bits { self.slice(value, 0, bits) } else { value };
        value.widened(bits)
    }

    fn fit(&mut self, value: Value, bits: u8) -> String {
        self.exactly(value, bits).show()
    }

    /// An operand whose single bits are used: a wire of exactly so many bits.
    fn whole(&mut self, value: Value, bits: u8) -> Value {
        let value = self.exactly(value, bits);
        self.named(value)
    }

    fn input(&self, source: Source) -> Res<Value> {
        let port = self.ports.input(source).ok_or_else(|| Refusal("an input is missing".to_owned()))?;
        let value = Value::net(port.name.clone(), port.bits);
        Ok(if port.signed { sign_extended(&value, port.bits, self.word()) } else { value })
    }

    fn expr(&mut self, e: &Expr) -> Res<Value> {
        let word = self.word();
        Ok(match e {
            Expr::Operand(i) | Expr::Imm(i) => self.input(Source::Operand(*i))?,
            Expr::Fixed(r) => self.input(Source::Fixed(*r))?,
            Expr::Temp(i) => self.lets.get(*i).cloned().ok_or_else(|| Refusal("a `let` is missing".to_owned()))?,
            Expr::Const(c) => Value::constant(*c),
            Expr::Bin { op, bits, a, b } => {
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                self.bin(*op, *bits, a, b)?
            }
            Expr::Un { op, bits, a } => {
                let a = self.expr(a)?;
                self.un(*op, *bits, a)
            }
            Expr::Cmp { op, bits, a, b } => {
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                self.cmp(*op, *bits, a, b)
            }
            Expr::Select { cond, then, els } => {
                let c = self.expr(cond)?;
                let c = condition(&c);
                let (t, e) = (self.expr(then)?, self.expr(els)?);
                let bits = t.bits().max(e.bits());
                Value::text(format!("({c} ? {} : {})", self.fit(t, bits), self.fit(e, bits)), bits)
            }
            // The lowest bit of a count is the parity.
            Expr::Slice { a, lo: 0, width: 1 } if matches!(&**a, Expr::Un { op: UnOp::Popcnt, bits, .. } if *bits == word) =>
            {
                let Expr::Un { a, .. } = &**a else { return Err(Refusal("no count".to_owned())) };
                let a = self.expr(a)?;
                Value::text(format!("(^{})", a.show()), 1)
            }
            Expr::Slice { a, lo, width } => {
                let a = self.expr(a)?;
                self.slice(a, *lo, *width)
            }
            Expr::Table { table, index } => {
                let index = self.expr(index)?;
                self.table(*table, index)
            }
            Expr::Linear { matrix, a } => {
                let a = self.expr(a)?;
                self.linear(matrix, a)
            }
            Expr::MatVec { matrix, a } => {
                let a = self.expr(a)?;
                self.matvec(*matrix, a)?
            }
            Expr::FlagsSub { bits, a, b } | Expr::FlagsAdd { bits, a, b } => {
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                self.flags(*bits, a, b, matches!(e, Expr::FlagsSub { .. }))
            }
            Expr::FlagsLogic { bits, a } => {
                let a = self.expr(a)?;
                let r = self.whole(a, *bits).show();
                Value::text(format!("{{{r}[{}], ~|{r}, 2'b0}}", bits - 1), 4)
            }
            Expr::FlagsTest { op, flags } => {
                let flags = self.expr(flags)?;
                let f = self.whole(flags, 4);
                let bit = |i: u8| f.slice(i, 1).map_or_else(String::new, |v| v.show());
                let (n, z, v, c) = (bit(3), bit(2), bit(1), bit(0));
                let test = match op {
                    CmpOp::Eq => z,
                    CmpOp::Ne => format!("(~{z})"),
                    CmpOp::LtU => c,
                    CmpOp::LeU => format!("({c} | {z})"),
                    CmpOp::LtS => format!("({n} ^ {v})"),
                    CmpOp::LeS => format!("({z} | ({n} ^ {v}))"),
                };
                Value::text(test, 1)
            }
            Expr::Load { .. } | Expr::Pc => return Err(Refusal(format!("{} reaches memory", self.instr.name))),
        })
    }

    fn bin(&mut self, op: BinOp, bits: u8, a: Value, b: Value) -> Res<Value> {
        use BinOp::*;
        let (a, b) = if a.bits() > bits { (self.slice(a, 0, bits), b) } else { (a, b) };
        let (a, b) = if b.bits() > bits {
            let b = self.slice(b, 0, bits);
            (a, b)
        } else {
            (a, b)
        };
        let pair = |w: &mut Self, sign: &str, bits: u8| {
            let (a, b) = (w.fit(a.clone(), bits), w.fit(b.clone(), bits));
            Value::text(format!("({a} {sign} {b})"), bits)
        };
        Ok(match op {
            Or | Xor | Add if b.is_zero() => a,
            Or | Xor | Add if a.is_zero() => b,
            Or | Xor | Add if a.low_zeros() >= b.bits() => a.over(b),
            Or | Xor | Add if b.low_zeros() >= a.bits() => b.over(a),
            Or => pair(self, "|", a.bits().max(b.bits())),
            Xor => pair(self, "^", a.bits().max(b.bits())),
            And => {
                let narrow = a.bits().min(b.bits());
                // A mask of ones is a slice.
                for (mask, other) in [(&b, &a), (&a, &b)] {
                    if let Some(ones) = ones(mask) {
                        return Ok(if other.bits() <= ones {
                            other.clone()
                        } else {
                            self.slice(other.clone(), 0, ones)
                        });
                    }
                }
                pair(self, "&", narrow)
            }
            Add => pair(self, "+", bits),
            Sub => pair(self, "-", bits),
            Mul => pair(self, "*", bits),
            MulHiU | MulHiS => {
                let wide = 2 * u16::from(bits);
                let extend = |w: &mut Self, v: Value| {
                    let x = w.whole(v, bits);
                    let zero = format!("{{{bits}'b0, {}}}", x.show());
                    let signed = format!("{{{{{bits}{{{}}}}}, {}}}", top(&x), x.show());
                    if op == MulHiU { zero } else { signed }
                };
                let (x, y) = (extend(self, a), extend(self, b));
                let name = format!("n{}", self.wires);
                self.wires += 1;
                let _ = writeln!(self.body, "    wire [{}:0] {name} = {x} * {y};", wide - 1);
                Value::text(format!("{name}[{}:{bits}]", wide - 1), bits)
            }
            Shl | ShrU | ShrS | RotL | RotR => self.shift(op, bits, a, b),
            DivU | DivS | RemU | RemS => {
                return Err(Refusal(format!("{} divides: a divider is not made of gates alone", self.instr.name)));
            }
        })
    }

    /// Amounts count modulo the width, which is a power of two.
    fn shift(&mut self, op: BinOp, bits: u8, a: Value, b: Value) -> Value {
        use BinOp::*;
        let amount_bits = bits.ilog2() as u8;
        let b = if b.bits() > amount_bits { self.slice(b, 0, amount_bits) } else { b };
        let Some(n) = constant(&b) else {
            let n = b.show();
            return match op {
                Shl => Value::text(format!("({} << {n})", self.fit(a, bits)), bits),
                ShrU => Value::text(format!("({} >> {n})", a.show()), a.bits()),
                ShrS => Value::text(format!("$unsigned($signed({}) >>> {n})", self.fit(a, bits)), bits),
                _ => {
                    let x = self.whole(a, bits).show();
                    let (sign, lo) = if op == RotL { ("<<", u16::from(bits)) } else { (">>", 0) };
                    let name = format!("n{}", self.wires);
                    self.wires += 1;
                    let high = 2 * u16::from(bits) - 1;
                    let _ = writeln!(self.body, "    wire [{high}:0] {name} = {{{x}, {x}}} {sign} {n};");
                    Value::text(format!("{name}[{}:{lo}]", lo + u16::from(bits) - 1), bits)
                }
            };
        };
        match op {
            _ if n == 0 => a,
            Shl => {
                let kept = if a.bits() > bits - n { self.slice(a, 0, bits - n) } else { a };
                kept.shifted_up(n)
            }
            ShrU if a.bits() <= n => Value::zeros(1),
            ShrU => {
                let high = a.bits() - n;
                self.slice(a, n, high)
            }
            ShrS => {
                let x = self.whole(a, bits);
                let high = x.slice(n, bits - n).unwrap_or_else(|| x.clone());
                sign_extended(&high, bits - n, bits)
            }
            _ => {
                let x = self.whole(a, bits);
                let n = if op == RotL { n } else { bits - n };
                // The upper n bits come below the others.
                let (up, low) = (self.slice(x.clone(), 0, bits - n), self.slice(x, bits - n, n));
                up.widened(bits - n).shifted_up(n).over(low.widened(n))
            }
        }
    }

    fn un(&mut self, op: UnOp, bits: u8, a: Value) -> Value {
        let x = self.whole(a, bits);
        let bit = |i: u8| x.slice(i, 1).map_or_else(String::new, |v| v.show());
        let count = bits.ilog2() as u8 + 1;
        // The first bit set decides; none: the width.
        let first = |order: &mut dyn Iterator<Item = u8>| {
            let chain: Vec<String> = order.enumerate().map(|(n, i)| format!("{} ? {count}'d{n} : ", bit(i))).collect();
            Value::text(format!("({}{count}'d{bits})", chain.concat()), count)
        };
        match op {
            UnOp::Clz => first(&mut (0..bits).rev()),
            UnOp::Ctz => first(&mut (0..bits)),
            UnOp::Popcnt => {
                let ones: Vec<String> = (0..bits).map(|i| format!("{{{}'b0, {}}}", count - 1, bit(i))).collect();
                Value::text(format!("({})", ones.join(" + ")), count)
            }
            UnOp::SExt8 => sign_extended(&x.slice(0, 8).unwrap_or(x), 8, bits),
            UnOp::SExt16 => sign_extended(&x.slice(0, 16).unwrap_or(x), 16, bits),
            UnOp::SExt32 => sign_extended(&x.slice(0, 32).unwrap_or(x), 32, bits),
            UnOp::Bswap => {
                let bytes = (0..bits / 8).filter_map(|i| x.slice(8 * i, 8)).flat_map(|v| v.widened(8).0);
                Value(bytes.collect())
            }
        }
    }

    fn cmp(&mut self, op: CmpOp, bits: u8, a: Value, b: Value) -> Value {
        let (a, b) = (self.fit(a, bits), self.fit(b, bits));
        let text = match op {
            CmpOp::Eq => format!("({a} == {b})"),
            CmpOp::Ne => format!("({a} != {b})"),
            CmpOp::LtU => format!("({a} < {b})"),
            CmpOp::LeU => format!("({a} <= {b})"),
            CmpOp::LtS => format!("($signed({a}) < $signed({b}))"),
            CmpOp::LeS => format!("($signed({a}) <= $signed({b}))"),
        };
        Value::text(text, 1)
    }

    fn flags(&mut self, bits: u8, a: Value, b: Value, sub: bool) -> Value {
        let (a, b) = (self.whole(a, bits), self.whole(b, bits));
        let sign = if sub { "-" } else { "+" };
        let r = self.wire(bits, &format!("{} {sign} {}", a.show(), b.show()));
        let (ra, rb, rr) = (top(&a), top(&b), top(&r));
        let overflow =
            if sub { format!("({ra} ^ {rb}) & ({ra} ^ {rr})") } else { format!("~({ra} ^ {rb}) & ({ra} ^ {rr})") };
        let carry = if sub { format!("{} < {}", a.show(), b.show()) } else { format!("{} < {}", r.show(), a.show()) };
        Value::text(format!("{{{rr}, ~|{}, {overflow}, {carry}}}", r.show()), 4)
    }

    fn instance(&mut self, part: Part, ports: [(&str, String); 2]) {
        let module = part.module.clone();
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
        let name = format!("u{}", self.wires);
        self.wires += 1;
        let [(input, x), (output, y)] = ports;
        let _ = writeln!(self.body, "    {module} {name} (.{input}({x}), .{output}({y}));");
    }

    fn table(&mut self, number: usize, index: Value) -> Value {
        let table = &self.machine.tables[number];
        let bits = parts::index_bits(table);
        let length = table.values.len() as u64;
        let index = if index.bits() > bits && !length.is_power_of_two() {
            let width = index.bits();
            let all = index.show();
            let rest = self.wire(width, &format!("{all} % {width}'d{length}"));
            self.slice(rest, 0, bits)
        } else {
            self.exactly(index, bits)
        };
        let part = match (&table.verilog, self.tables) {
            (Some(hand), Tables::Hand) => Part { module: hand.clone(), verilog: None },
            _ => parts::table(table),
        };
        let value = self.declare(table.bits);
        self.instance(part, [("index", index.widened(bits).show()), ("value", value.show())]);
        value
    }

    fn linear(&mut self, matrix: &BitMatrix, a: Value) -> Value {
        let x = self.exactly(a, matrix.columns);
        let y = self.declare(matrix.rows.len() as u8);
        self.instance(parts::matrix(matrix), [("x", x.show()), ("y", y.show())]);
        y
    }

    fn matvec(&mut self, matrix: HeldMatrix, a: Value) -> Res<Value> {
        let word = self.word();
        let x = self.whole(a, word).show();
        let mut bits = Vec::new();
        for i in (0..matrix.rows).rev() {
            let mut row = Vec::new();
            for (r, _) in matrix.row(i) {
                let part = self.input(Source::Fixed(r))?;
                row.push(self.fit(part, matrix.bits));
            }
            let row = match &row[..] {
                [whole] => whole.clone(),
                parts => format!("{{{}}}", parts.iter().rev().cloned().collect::<Vec<_>>().join(", ")),
            };
            bits.push(format!("^({row} & {x})"));
        }
        Ok(Value::text(format!("{{\n        {}\n    }}", bits.join(",\n        ")), matrix.rows))
    }
}

/// The highest bit.
fn top(value: &Value) -> String {
    value.slice(value.bits() - 1, 1).map_or_else(|| value.show(), |bit| bit.show())
}

/// `from` bits with their sign repeated up to `to` bits.
fn sign_extended(value: &Value, from: u8, to: u8) -> Value {
    if to <= from {
        return value.clone();
    }
    let value = value.clone().widened(from);
    Value::text(format!("{{{{{}{{{}}}}}, {}}}", to - from, top(&value), value.show()), to)
}

/// The value as a condition: is any bit set?
fn condition(value: &Value) -> String {
    if value.bits() == 1 { value.show() } else { format!("(|{})", value.show()) }
}

/// A constant that was written as one.
fn constant(value: &Value) -> Option<u8> {
    use crate::value::Piece;
    match &value.0[..] {
        [Piece::Zeros(_)] => Some(0),
        [Piece::Text { text, .. }] => {
            let digits = text.split_once("'h")?.1;
            u8::from_str_radix(digits, 16).ok()
        }
        _ => None,
    }
}

/// How many ones a mask of ones alone has.
fn ones(value: &Value) -> Option<u8> {
    use crate::value::Piece;
    let [Piece::Text { text, bits }] = &value.0[..] else { return None };
    let digits = u64::from_str_radix(text.split_once("'h")?.1, 16).ok()?;
    (digits.count_ones() == u32::from(*bits)).then_some(*bits)
}
