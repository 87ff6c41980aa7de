//! Semantics as gates, bit by bit: the second translation.
//!
//! It knows nothing of Verilog. Every value is a list of bits, lowest first;
//! adders ripple, shifts by a variable are rows of multiplexers, a table is a
//! tree of multiplexers over its entries.

use crate::aig::{FALSE, Graph, Lit, TRUE};
use crate::options::Refusal;
use crate::ports::{Port, Ports, Source};
use ciphermill_ir::{BinOp, CmpOp, UnOp};
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Instr, Machine, Table};

type Bits = Vec<Lit>;

/// The graph of an instruction, with the ports in their order.
///
/// # Errors
/// A [`Refusal`] for what is not combinational logic.
pub fn blast(machine: &Machine, instr: &Instr, ports: &Ports) -> Result<Graph, Refusal> {
    let mut graph = Graph::new();
    let inputs = ports.inputs.iter().map(|p| graph.input(p.bits)).collect();
    let mut b = Blaster { machine, ports, graph, inputs, lets: Vec::new() };
    let mut results: Vec<(Source, Bits)> = Vec::new();
    for stmt in &instr.semantics {
        match stmt {
            Stmt::Let { value, .. } => {
                let value = b.expr(value)?;
                b.lets.push(value);
            }
            Stmt::Assign { dest: Dest::Operand(i), value } => results.push((Source::Operand(*i), b.expr(value)?)),
            Stmt::Assign { dest: Dest::Fixed(r), value } => results.push((Source::Fixed(*r), b.expr(value)?)),
            _ => return Err(Refusal(format!("{} does more than compute", instr.name))),
        }
    }
    for port in &ports.outputs {
        let value = results.iter().find(|(source, _)| *source == port.source);
        let value = value.ok_or_else(|| Refusal("an output is missing".to_owned()))?;
        let bits = value.1.iter().copied().take(usize::from(port.bits)).collect();
        b.graph.outputs.push(bits);
    }
    Ok(b.graph)
}

struct Blaster<'a> {
    machine: &'a Machine,
    ports: &'a Ports,
    graph: Graph,
    inputs: Vec<Bits>,
    lets: Vec<Bits>,
}

fn at(bits: &[Lit], i: usize) -> Lit {
    bits.get(i).copied().unwrap_or(FALSE)
}

impl Blaster<'_> {
    fn word(&self) -> usize {
        usize::from(self.machine.word_bits)
    }

    fn number(&self, value: u64) -> Bits {
        (0..self.word()).map(|i| if value >> i & 1 != 0 { TRUE } else { FALSE }).collect()
    }

    fn input(&self, source: Source) -> Result<Bits, Refusal> {
        let wanted = |p: &Port| p.source == source;
        let i = self.ports.inputs.iter().position(wanted).ok_or_else(|| Refusal("an input is missing".to_owned()))?;
        let mut bits = self.inputs[i].clone();
        let above = if self.ports.inputs[i].signed { *bits.last().unwrap_or(&FALSE) } else { FALSE };
        bits.resize(self.word(), above);
        Ok(bits)
    }

    /// All values have the word's width.
    fn expr(&mut self, e: &Expr) -> Result<Bits, Refusal> {
        let word = self.word();
        let mut value = match e {
            Expr::Operand(i) | Expr::Imm(i) => self.input(Source::Operand(*i))?,
            Expr::Fixed(r) => self.input(Source::Fixed(*r))?,
            Expr::Temp(i) => self.lets.get(*i).cloned().ok_or_else(|| Refusal("a `let` is missing".to_owned()))?,
            Expr::Const(c) => self.number(*c),
            Expr::Bin { op, bits, a, b } => {
                let (mut a, mut b) = (self.expr(a)?, self.expr(b)?);
                a.truncate(usize::from(*bits));
                b.truncate(usize::from(*bits));
                self.bin(*op, &a, &b)?
            }
            Expr::Un { op, bits, a } => {
                let mut a = self.expr(a)?;
                a.truncate(usize::from(*bits));
                self.un(*op, &a)
            }
            Expr::Cmp { op, bits, a, b } => {
                let (mut a, mut b) = (self.expr(a)?, self.expr(b)?);
                a.truncate(usize::from(*bits));
                b.truncate(usize::from(*bits));
                vec![self.cmp(*op, &a, &b)]
            }
            Expr::Select { cond, then, els } => {
                let (c, t, e) = (self.expr(cond)?, self.expr(then)?, self.expr(els)?);
                let c = self.any(&c);
                self.choose(c, &t, &e)
            }
            Expr::Slice { a, lo, width } => {
                let a = self.expr(a)?;
                a.into_iter().skip(usize::from(*lo)).take(usize::from(*width)).collect()
            }
            Expr::Table { table, index } => {
                let index = self.expr(index)?;
                let table = &self.machine.tables[*table];
                self.table(table, &index)
            }
            Expr::Linear { matrix, a } => {
                let a = self.expr(a)?;
                let row = |row: &u64| (0..word).filter(|i| row >> i & 1 != 0).map(|i| a[i]).collect::<Bits>();
                let rows: Vec<Bits> = matrix.rows.iter().map(row).collect();
                rows.into_iter().map(|r| r.into_iter().fold(FALSE, |sum, x| self.graph.xor(sum, x))).collect()
            }
            Expr::MatVec { matrix, a } => {
                let a = self.expr(a)?;
                let mut out = Vec::new();
                for i in 0..matrix.rows {
                    let mut row = Bits::new();
                    for (r, at) in matrix.row(i) {
                        row.truncate(at as usize);
                        row.extend(self.input(Source::Fixed(r))?);
                    }
                    let products: Bits = row.iter().zip(&a).map(|(&x, &y)| self.graph.and(x, y)).collect();
                    out.push(self.parity(products));
                }
                out
            }
            Expr::FlagsSub { bits, a, b } => {
                let (a, b) = (self.low(a, *bits)?, self.low(b, *bits)?);
                let (r, carry) = self.sub(&a, &b);
                let overflow = self.overflow(&a, &b, &r, true);
                self.flags(&r, overflow, !carry)
            }
            Expr::FlagsAdd { bits, a, b } => {
                let (a, b) = (self.low(a, *bits)?, self.low(b, *bits)?);
                let (r, carry) = self.add(&a, &b, FALSE);
                let overflow = self.overflow(&a, &b, &r, false);
                self.flags(&r, overflow, carry)
            }
            Expr::FlagsLogic { bits, a } => {
                let a = self.low(a, *bits)?;
                self.flags(&a, FALSE, FALSE)
            }
            Expr::FlagsTest { op, flags } => {
                let f = self.expr(flags)?;
                let (n, z, v, c) = (f[3], f[2], f[1], f[0]);
                let less = self.graph.xor(n, v);
                vec![match op {
                    CmpOp::Eq => z,
                    CmpOp::Ne => !z,
                    CmpOp::LtU => c,
                    CmpOp::LeU => self.graph.or(c, z),
                    CmpOp::LtS => less,
                    CmpOp::LeS => self.graph.or(z, less),
                }]
            }
            Expr::Load { .. } | Expr::Pc => return Err(Refusal("an instruction reaches memory".to_owned())),
        };
        value.resize(word, FALSE);
        Ok(value)
    }

    fn each(&mut self, a: &[Lit], b: &[Lit], f: fn(&mut Graph, Lit, Lit) -> Lit) -> Bits {
        a.iter().zip(b).map(|(&x, &y)| f(&mut self.graph, x, y)).collect()
    }

    fn choose(&mut self, c: Lit, t: &[Lit], e: &[Lit]) -> Bits {
        t.iter().zip(e).map(|(&t, &e)| self.graph.mux(c, t, e)).collect()
    }

    fn any(&mut self, bits: &[Lit]) -> Lit {
        bits.iter().fold(FALSE, |sum, &x| self.graph.or(sum, x))
    }

    /// Pairs of neighbours, then pairs of pairs.
    fn parity(&mut self, mut bits: Bits) -> Lit {
        while bits.len() > 1 {
            bits = bits.chunks(2).map(|p| if let [a, b] = p { self.graph.xor(*a, *b) } else { p[0] }).collect();
        }
        at(&bits, 0)
    }

    /// Sum and carry out.
    fn add(&mut self, a: &[Lit], b: &[Lit], mut carry: Lit) -> (Bits, Lit) {
        let mut sum = Vec::new();
        for (&x, &y) in a.iter().zip(b) {
            let half = self.graph.xor(x, y);
            sum.push(self.graph.xor(half, carry));
            let (both, moved) = (self.graph.and(x, y), self.graph.and(half, carry));
            carry = self.graph.or(both, moved);
        }
        (sum, carry)
    }

    /// Difference, and a carry that is the inverse of the borrow.
    fn sub(&mut self, a: &[Lit], b: &[Lit]) -> (Bits, Lit) {
        let inverse: Bits = b.iter().map(|&x| !x).collect();
        self.add(a, &inverse, TRUE)
    }

    /// The low bits of a word.
    fn low(&mut self, e: &Expr, bits: u8) -> Result<Bits, Refusal> {
        let mut value = self.expr(e)?;
        value.resize(usize::from(bits), FALSE);
        Ok(value)
    }

    fn overflow(&mut self, a: &[Lit], b: &[Lit], r: &[Lit], sub: bool) -> Lit {
        let top = |x: &[Lit]| at(x, x.len() - 1);
        let differ = self.graph.xor(top(a), top(b));
        let turned = self.graph.xor(top(a), top(r));
        self.graph.and(if sub { differ } else { !differ }, turned)
    }

    fn flags(&mut self, r: &[Lit], overflow: Lit, carry: Lit) -> Bits {
        let zero = !self.any(r);
        vec![carry, overflow, zero, at(r, r.len() - 1)]
    }

    fn cmp(&mut self, op: CmpOp, a: &[Lit], b: &[Lit]) -> Lit {
        let less = |s: &mut Self, a: &[Lit], b: &[Lit], signed: bool| {
            let (mut a, mut b) = (a.to_vec(), b.to_vec());
            if signed {
                // Turning the signs makes the order unsigned.
                for x in [&mut a, &mut b] {
                    if let Some(top) = x.last_mut() {
                        *top = !*top;
                    }
                }
            }
            !s.sub(&a, &b).1
        };
        match op {
            CmpOp::Eq | CmpOp::Ne => {
                let differences = self.each(a, b, Graph::xor);
                let differ = self.any(&differences);
                if op == CmpOp::Eq { !differ } else { differ }
            }
            CmpOp::LtU => less(self, a, b, false),
            CmpOp::LtS => less(self, a, b, true),
            CmpOp::LeU => !less(self, b, a, false),
            CmpOp::LeS => !less(self, b, a, true),
        }
    }

    fn bin(&mut self, op: BinOp, a: &[Lit], b: &[Lit]) -> Result<Bits, Refusal> {
        use BinOp::*;
        let bits = a.len();
        Ok(match op {
            Add => self.add(a, b, FALSE).0,
            Sub => self.sub(a, b).0,
            And => self.each(a, b, Graph::and),
            Or => self.each(a, b, Graph::or),
            Xor => self.each(a, b, Graph::xor),
            Mul => self.product(a, b)[..bits].to_vec(),
            MulHiU => self.product(a, b)[bits..].to_vec(),
            MulHiS => {
                // Signed is unsigned less b where a is negative, and the reverse.
                let high = self.product(a, b)[bits..].to_vec();
                let masked =
                    |s: &mut Self, x: &[Lit], sign: Lit| -> Bits { x.iter().map(|&l| s.graph.and(l, sign)).collect() };
                let (x, y) = (masked(self, b, a[bits - 1]), masked(self, a, b[bits - 1]));
                let once = self.sub(&high, &x).0;
                self.sub(&once, &y).0
            }
            Shl | ShrU | ShrS | RotL | RotR => {
                let mut value = a.to_vec();
                for (k, &amount) in b.iter().enumerate().take(bits.ilog2() as usize) {
                    let n = 1 << k;
                    let moved: Bits = (0..bits)
                        .map(|i| match op {
                            Shl => {
                                if i >= n {
                                    value[i - n]
                                } else {
                                    FALSE
                                }
                            }
                            RotL => value[(i + bits - n) % bits],
                            RotR => value[(i + n) % bits],
                            ShrU => at(&value, i + n),
                            _ => value[(i + n).min(bits - 1)],
                        })
                        .collect();
                    value = self.choose(amount, &moved, &value);
                }
                value
            }
            DivU | DivS | RemU | RemS => return Err(Refusal("an instruction divides".to_owned())),
        })
    }

    fn product(&mut self, a: &[Lit], b: &[Lit]) -> Bits {
        let bits = a.len();
        let mut sum = vec![FALSE; 2 * bits];
        for (i, &x) in b.iter().enumerate() {
            let mut row = vec![FALSE; 2 * bits];
            for (j, &y) in a.iter().enumerate() {
                row[i + j] = self.graph.and(x, y);
            }
            sum = self.add(&sum, &row, FALSE).0;
        }
        sum
    }

    fn un(&mut self, op: UnOp, a: &[Lit]) -> Bits {
        let bits = a.len();
        match op {
            UnOp::SExt8 | UnOp::SExt16 | UnOp::SExt32 => {
                let kept = match op {
                    UnOp::SExt8 => 8,
                    UnOp::SExt16 => 16,
                    _ => 32,
                };
                (0..bits).map(|i| a[i.min(kept - 1)]).collect()
            }
            UnOp::Bswap => a.chunks(8).rev().flatten().copied().collect(),
            UnOp::Popcnt => {
                let mut sum = vec![FALSE; bits];
                for &x in a {
                    let one: Bits = (0..bits).map(|i| if i == 0 { x } else { FALSE }).collect();
                    sum = self.add(&sum, &one, FALSE).0;
                }
                sum
            }
            UnOp::Clz | UnOp::Ctz => {
                let mut count = self.number(bits as u64)[..bits].to_vec();
                for n in (0..bits).rev() {
                    let place = if op == UnOp::Clz { bits - 1 - n } else { n };
                    let here = self.number(n as u64)[..bits].to_vec();
                    count = self.choose(a[place], &here, &count);
                }
                count
            }
        }
    }

    /// The index counts modulo the table's length: subtract multiples of it
    /// until it is below.
    fn table(&mut self, table: &Table, index: &[Lit]) -> Bits {
        let length = table.values.len() as u64;
        let mut index = index.to_vec();
        if !length.is_power_of_two() {
            let most = (self.word() as u32).saturating_sub(64 - length.leading_zeros());
            for k in (0..=most).rev() {
                let multiple = self.number(length << k);
                let (difference, fits) = self.sub(&index, &multiple);
                index = self.choose(fits, &difference, &index);
            }
        }
        let bits = crate::parts::index_bits(table);
        (0..table.bits)
            .map(|bit| {
                let places = 1u64 << bits;
                let entry = |i: u64| if table.values[(i % length) as usize] >> bit & 1 != 0 { TRUE } else { FALSE };
                let mut layer: Bits = (0..places).map(entry).collect();
                for &select in &index[..usize::from(bits)] {
                    layer = layer.chunks(2).map(|p| self.graph.mux(select, p[1], p[0])).collect();
                }
                at(&layer, 0)
            })
            .collect()
    }
}
