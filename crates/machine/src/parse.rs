//! The semantics language: text to [`sem`](crate::sem) trees.
//!
//! A hand-written parser by recursive descent, with precedence climbing for
//! the binary operators. It is told the word size and which names mean what
//! ([`Scope`]), resolves every name at once and builds trees through
//! [`crate::fold`], so its result is already in canonical form. Depth of
//! nesting and number of words are bounded: no text makes it, or anything that
//! walks its trees, run out of stack.
//!
//! The grammar is in `docs/machine-files.md`.

use crate::error::{did_you_mean, list};
use crate::fold;
use crate::lex::{SemError, Token, lex};
use crate::model::{Operand, OperandKind, Reg, RegInfo, RuleVar, Table};
use crate::sem::{Dest, Expr, Stmt};
use ciphermill_ir::{BinOp, CmpOp, UnOp};
use std::collections::BTreeMap;
use std::ops::Range;

/// Deepest nesting of brackets and prefix operators.
const MAX_DEPTH: usize = 60;

/// What names mean.
pub struct Scope<'a> {
    /// 32 or 64.
    pub word: u8,
    pub operands: &'a [Operand],
    /// Registers by name.
    pub regs: &'a BTreeMap<String, Reg>,
    pub reg_infos: &'a [RegInfo],
    pub tables: &'a [Table],
}

/// How the names of variables are treated.
enum Vars {
    /// Operands and registers of an instruction.
    Instruction,
    /// Left side of a rule: a new name is a new variable.
    Open(Vec<RuleVar>),
    /// Right side of a rule: only the variables there are.
    Closed(Vec<RuleVar>),
}

/// Statements of an instruction, and the number of `let` temporaries.
pub fn statements(text: &str, scope: &Scope) -> Result<(Vec<Stmt>, usize), SemError> {
    let mut p = Parser::new(text, scope, Vars::Instruction)?;
    let mut out = Vec::new();
    loop {
        while p.eat(";") {}
        if p.at_end() {
            return Ok((out, p.lets.len()));
        }
        out.push(p.statement()?);
        if !p.at_end() && !p.eat(";") {
            return Err(p.unexpected("expected `;` between statements"));
        }
    }
}

/// An expression over an instruction's operands.
pub fn expression(text: &str, scope: &Scope) -> Result<Expr, SemError> {
    let mut p = Parser::new(text, scope, Vars::Instruction)?;
    p.whole()
}

/// The left side of a rule: every name is a variable, `#n` a constant one.
pub fn pattern(text: &str, scope: &Scope) -> Result<(Expr, Vec<RuleVar>), SemError> {
    let mut p = Parser::new(text, scope, Vars::Open(Vec::new()))?;
    let e = p.whole()?;
    match p.vars {
        Vars::Open(vars) => Ok((e, vars)),
        Vars::Instruction | Vars::Closed(_) => Ok((e, Vec::new())),
    }
}

/// An expression over the variables of a rule and the names of its `let`s.
pub fn over_vars(text: &str, scope: &Scope, vars: &[RuleVar], lets: &[String]) -> Result<Expr, SemError> {
    let mut p = Parser::new(text, scope, Vars::Closed(vars.to_vec()))?;
    p.lets = lets.to_vec();
    p.whole()
}

struct Parser<'a> {
    scope: &'a Scope<'a>,
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
    depth: usize,
    vars: Vars,
    lets: Vec<String>,
}

/// Binary operators from loosest to tightest. `true`: exchange the operands.
enum Infix {
    Bin(BinOp),
    Cmp(CmpOp, bool),
}

fn infix(sign: &str) -> Option<(u8, Infix)> {
    use Infix::{Bin, Cmp};
    Some(match sign {
        "|" => (1, Bin(BinOp::Or)),
        "^" => (2, Bin(BinOp::Xor)),
        "&" => (3, Bin(BinOp::And)),
        "==" => (4, Cmp(CmpOp::Eq, false)),
        "!=" => (4, Cmp(CmpOp::Ne, false)),
        "<u" => (5, Cmp(CmpOp::LtU, false)),
        "<s" => (5, Cmp(CmpOp::LtS, false)),
        "<=u" => (5, Cmp(CmpOp::LeU, false)),
        "<=s" => (5, Cmp(CmpOp::LeS, false)),
        ">u" => (5, Cmp(CmpOp::LtU, true)),
        ">s" => (5, Cmp(CmpOp::LtS, true)),
        ">=u" => (5, Cmp(CmpOp::LeU, true)),
        ">=s" => (5, Cmp(CmpOp::LeS, true)),
        "<<" => (6, Bin(BinOp::Shl)),
        ">>u" => (6, Bin(BinOp::ShrU)),
        ">>s" => (6, Bin(BinOp::ShrS)),
        "+" => (7, Bin(BinOp::Add)),
        "-" => (7, Bin(BinOp::Sub)),
        "*" => (8, Bin(BinOp::Mul)),
        "/u" => (8, Bin(BinOp::DivU)),
        "/s" => (8, Bin(BinOp::DivS)),
        "%u" => (8, Bin(BinOp::RemU)),
        "%s" => (8, Bin(BinOp::RemS)),
        _ => return None,
    })
}

impl<'a> Parser<'a> {
    fn new(text: &str, scope: &'a Scope<'a>, vars: Vars) -> Result<Parser<'a>, SemError> {
        Ok(Parser { scope, tokens: lex(text)?, at: 0, depth: 0, vars, lets: Vec::new() })
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn span(&self) -> Range<usize> {
        self.tokens[self.at].1.clone()
    }

    /// The word just read.
    fn last_span(&self) -> Range<usize> {
        self.tokens[self.at.saturating_sub(1)].1.clone()
    }

    fn at_end(&self) -> bool {
        *self.peek() == Token::End
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        if token != Token::End {
            self.at += 1;
        }
        token
    }

    fn sees(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(s) if *s == sign)
    }

    fn eat(&mut self, sign: &str) -> bool {
        let yes = self.sees(sign);
        self.at += usize::from(yes);
        yes
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), SemError> {
        if self.eat(sign) { Ok(()) } else { Err(self.unexpected(&format!("expected `{sign}`"))) }
    }

    fn unexpected(&self, wanted: &str) -> SemError {
        let found = match self.peek() {
            Token::Name(n) => format!("found `{n}`"),
            Token::Number(n) => format!("found {n}"),
            Token::Sign(s) => format!("found `{s}`"),
            Token::End => "found the end".to_owned(),
        };
        let error = SemError::new(self.span(), format!("{wanted}, {found}"));
        match self.peek() {
            Token::Sign(s @ ("<" | ">" | "<=" | ">=" | ">>" | "/" | "%")) => {
                error.mend(format!("say `{s}u` (unsigned) or `{s}s` (signed)"))
            }
            Token::Sign("&&") => error.mend("comparisons give 0 or 1: use `&`"),
            Token::Sign("||") => error.mend("comparisons give 0 or 1: use `|`"),
            _ => error,
        }
    }

    /// The whole text is one expression.
    fn whole(&mut self) -> Result<Expr, SemError> {
        let e = self.expr()?;
        if self.at_end() { Ok(e) } else { Err(self.unexpected("expected an operator or the end")) }
    }

    fn statement(&mut self) -> Result<Stmt, SemError> {
        let start = self.span();
        let Token::Name(name) = self.next() else {
            self.at = self.at.saturating_sub(1);
            return Err(self.unexpected("expected a statement"));
        };
        match name.as_str() {
            "let" => self.binding(),
            "goto" => Ok(Stmt::Goto { cond: None, target: self.expr()? }),
            "if" => {
                self.expect("(")?;
                let cond = self.expr()?;
                self.expect(")")?;
                match self.next() {
                    Token::Name(n) if n == "goto" => {}
                    _ => {
                        let error = SemError::new(self.last_span(), "only `goto` can be conditional");
                        return Err(error.mend("for a conditional value write `rd = c ? a : b`"));
                    }
                }
                Ok(Stmt::Goto { cond: Some(cond), target: self.expr()? })
            }
            "trap" => Ok(Stmt::Trap),
            "window_save" => Ok(Stmt::WindowSave),
            "window_restore" => Ok(Stmt::WindowRestore),
            _ => match memory(&name) {
                Some((bytes, signed)) => {
                    if signed {
                        let error = SemError::new(start, format!("a store has no sign: `{name}`"));
                        return Err(error.mend(format!("write `{}`", name.trim_end_matches('s'))));
                    }
                    let addr = self.bracketed()?;
                    self.expect("=")?;
                    Ok(Stmt::Store { bytes, addr, value: self.expr()? })
                }
                None => {
                    let dest = self.dest(&name, start)?;
                    self.expect("=")?;
                    Ok(Stmt::Assign { dest, value: self.expr()? })
                }
            },
        }
    }

    fn binding(&mut self) -> Result<Stmt, SemError> {
        let Token::Name(name) = self.next() else {
            return Err(SemError::new(self.last_span(), "expected a name after `let`"));
        };
        let span = self.last_span();
        let taken = self.scope.operands.iter().any(|o| o.name == name)
            || self.scope.regs.contains_key(&name)
            || self.scope.tables.iter().any(|t| t.name == name)
            || self.lets.contains(&name)
            || matches!(name.as_str(), "pc" | "W" | "let" | "goto" | "if" | "trap");
        if taken {
            return Err(SemError::new(span, format!("the name `{name}` is taken")).mend("choose another"));
        }
        self.expect("=")?;
        let value = self.expr()?;
        self.lets.push(name);
        Ok(Stmt::Let { temp: self.lets.len() - 1, value })
    }

    fn dest(&self, name: &str, span: Range<usize>) -> Result<Dest, SemError> {
        if let Some(i) = self.scope.operands.iter().position(|o| o.name == name) {
            return match self.scope.operands[i].kind {
                OperandKind::Reg { .. } => Ok(Dest::Operand(i)),
                OperandKind::Imm { .. } => Err(SemError::new(span, format!("`{name}` is a constant: nothing can be assigned to it"))),
                OperandKind::Label => Err(SemError::new(span, format!("`{name}` is a label: nothing can be assigned to it"))
                    .mend(format!("to jump, write `goto {name}`"))),
            };
        }
        if let Some(&reg) = self.scope.regs.get(name) {
            if self.scope.reg_infos.get(usize::from(reg.0)).is_some_and(|r| r.zero) {
                return Err(SemError::new(span, format!("`{name}` always reads zero: assigning to it has no effect")));
            }
            return Ok(Dest::Fixed(reg));
        }
        if self.lets.iter().any(|l| l == name) {
            return Err(SemError::new(span, format!("`{name}` has its value already")).mend("use another `let`"));
        }
        Err(self.unknown(name, span))
    }

    fn unknown(&self, name: &str, span: Range<usize>) -> SemError {
        let mut names: Vec<&str> = self.scope.operands.iter().map(|o| o.name.as_str()).collect();
        match &self.vars {
            Vars::Open(vars) | Vars::Closed(vars) => names.extend(vars.iter().map(|v| v.name.as_str())),
            Vars::Instruction => {}
        }
        names.extend(self.lets.iter().map(String::as_str));
        let shown = list(names.iter().copied());
        names.extend(self.scope.regs.keys().map(String::as_str));
        names.extend(self.scope.tables.iter().map(|t| t.name.as_str()));
        names.extend(["pc", "trap", "window_save", "window_restore"]);
        let mend = did_you_mean(name, names);
        let error = SemError::new(span, format!("unknown name `{name}`; here are {shown}"));
        SemError { mend, ..error }
    }

    fn expr(&mut self) -> Result<Expr, SemError> {
        self.deeper()?;
        let cond = self.binary(1)?;
        let e = if self.eat("?") {
            let then = self.expr()?;
            self.expect(":")?;
            fold::select(cond, then, self.expr()?)
        } else {
            cond
        };
        self.depth -= 1;
        Ok(e)
    }

    fn deeper(&mut self) -> Result<(), SemError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SemError::new(self.span(), format!("nested more than {MAX_DEPTH} deep")).mend("use `let`"));
        }
        Ok(())
    }

    fn binary(&mut self, loosest: u8) -> Result<Expr, SemError> {
        let mut a = self.prefix()?;
        loop {
            let Token::Sign(sign) = *self.peek() else { return Ok(a) };
            let Some((level, op)) = infix(sign) else { return Ok(a) };
            if level < loosest {
                return Ok(a);
            }
            self.at += 1;
            let b = self.binary(level + 1)?;
            let word = self.scope.word;
            a = match op {
                Infix::Bin(op) => fold::bin(op, word, a, b),
                Infix::Cmp(op, false) => fold::cmp(op, word, a, b),
                Infix::Cmp(op, true) => fold::cmp(op, word, b, a),
            };
        }
    }

    fn prefix(&mut self) -> Result<Expr, SemError> {
        let word = self.scope.word;
        let Token::Sign(sign @ ("~" | "-" | "!")) = *self.peek() else { return self.postfix() };
        self.at += 1;
        self.deeper()?;
        let a = self.prefix()?;
        self.depth -= 1;
        Ok(match sign {
            "~" => fold::bin(BinOp::Xor, word, a, Expr::Const(fold::mask(word))),
            "-" => fold::bin(BinOp::Sub, word, Expr::Const(0), a),
            _ => fold::cmp(CmpOp::Eq, word, a, Expr::Const(0)),
        })
    }

    fn postfix(&mut self) -> Result<Expr, SemError> {
        let mut a = self.primary()?;
        while self.sees("[") {
            self.at += 1;
            let (hi, span) = self.bit()?;
            let lo = if self.eat(":") { self.bit()?.0 } else { hi };
            if lo > hi {
                return Err(SemError::new(span, format!("bits {hi}:{lo} are none")).mend("write the higher bit first"));
            }
            self.expect("]")?;
            a = fold::slice(a, lo, hi - lo + 1, self.scope.word);
        }
        Ok(a)
    }

    /// A bit number of a slice.
    fn bit(&mut self) -> Result<(u8, Range<usize>), SemError> {
        let span = self.span();
        match self.next() {
            Token::Number(n) if n < u64::from(self.scope.word) => Ok((n as u8, span)),
            Token::Number(n) => Err(SemError::new(span, format!("bit {n} of a word of {} bits", self.scope.word))),
            _ => Err(SemError::new(span, "expected a bit number").mend("a variable bit is `(x >>u n) & 1`")),
        }
    }

    fn bracketed(&mut self) -> Result<Expr, SemError> {
        self.expect("[")?;
        let e = self.expr()?;
        self.expect("]")?;
        Ok(e)
    }

    fn primary(&mut self) -> Result<Expr, SemError> {
        let span = self.span();
        match self.peek().clone() {
            Token::Number(n) => {
                self.at += 1;
                if n > fold::mask(self.scope.word) {
                    return Err(SemError::new(span, format!("{n} does not fit a word of {} bits", self.scope.word)));
                }
                Ok(Expr::Const(n))
            }
            Token::Sign("(") => {
                self.at += 1;
                let e = self.expr()?;
                self.expect(")")?;
                Ok(e)
            }
            Token::Sign("#") => {
                self.at += 1;
                let span = self.span();
                let Token::Name(name) = self.next() else {
                    return Err(SemError::new(span, "expected a name after `#`"));
                };
                self.variable(&name, span, true)
            }
            Token::Name(name) => {
                self.at += 1;
                self.named(&name, span)
            }
            Token::Sign(_) | Token::End => Err(self.unexpected("expected a value")),
        }
    }

    fn named(&mut self, name: &str, span: Range<usize>) -> Result<Expr, SemError> {
        if self.sees("(") {
            return self.call(name, span);
        }
        if self.sees("[") {
            if let Some((bytes, signed)) = memory(name) {
                if bytes * 8 > self.scope.word {
                    return Err(SemError::new(span, format!("`{name}` is wider than a word")));
                }
                let signed = signed && bytes * 8 < self.scope.word;
                return Ok(Expr::Load { bytes, signed, addr: Box::new(self.bracketed()?) });
            }
            if let Some(table) = self.scope.tables.iter().position(|t| t.name == name) {
                return Ok(Expr::Table { table, index: Box::new(self.bracketed()?) });
            }
        }
        if let Some(temp) = self.lets.iter().position(|l| l == name) {
            return Ok(Expr::Temp(temp));
        }
        match name {
            "pc" if matches!(self.vars, Vars::Instruction) => Ok(Expr::Pc),
            "W" => Ok(Expr::Const(u64::from(self.scope.word))),
            _ => self.variable(name, span, false),
        }
    }

    fn variable(&mut self, name: &str, span: Range<usize>, constant: bool) -> Result<Expr, SemError> {
        match &mut self.vars {
            Vars::Instruction if constant => Err(SemError::new(span, "`#` marks constants in rules, not here").mend("leave it out")),
            Vars::Instruction => {
                if let Some(i) = self.scope.operands.iter().position(|o| o.name == name) {
                    return Ok(match self.scope.operands[i].kind {
                        OperandKind::Reg { .. } => Expr::Operand(i),
                        OperandKind::Imm { .. } | OperandKind::Label => Expr::Imm(i),
                    });
                }
                match self.scope.regs.get(name) {
                    Some(reg) if self.scope.reg_infos.get(usize::from(reg.0)).is_some_and(|r| r.zero) => Ok(Expr::Const(0)),
                    Some(reg) => Ok(Expr::Fixed(*reg)),
                    None => Err(self.unknown(name, span)),
                }
            }
            Vars::Open(vars) => {
                let i = match vars.iter().position(|v| v.name == name) {
                    Some(i) => i,
                    None => {
                        vars.push(RuleVar { name: name.to_owned(), constant });
                        vars.len() - 1
                    }
                };
                if vars[i].constant != constant {
                    let error = SemError::new(span, format!("`{name}` is both a variable and a constant here"));
                    return Err(error.mend(format!("write `#{name}` every time for a constant")));
                }
                Ok(if constant { Expr::Imm(i) } else { Expr::Operand(i) })
            }
            Vars::Closed(vars) => match vars.iter().position(|v| v.name == name) {
                Some(i) if vars[i].constant => Ok(Expr::Imm(i)),
                Some(_) if constant => Err(SemError::new(span, format!("`{name}` is no constant in `from`"))),
                Some(i) => Ok(Expr::Operand(i)),
                None => Err(self.unknown(name, span)),
            },
        }
    }

    fn call(&mut self, name: &str, span: Range<usize>) -> Result<Expr, SemError> {
        self.expect("(")?;
        let mut args = Vec::new();
        while !self.sees(")") {
            args.push(self.expr()?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        crate::functions::build(name, args, self.scope, span)
    }
}

/// `mem16s` and the like: bytes and sign.
fn memory(name: &str) -> Option<(u8, bool)> {
    Some(match name {
        "mem8" => (1, false),
        "mem8s" => (1, true),
        "mem16" => (2, false),
        "mem16s" => (2, true),
        "mem32" => (4, false),
        "mem32s" => (4, true),
        "mem64" => (8, false),
        _ => return None,
    })
}

/// Operators that also exist as functions with a width: `add32(a, b)`.
pub(crate) const BIN_NAMES: [(&str, BinOp); 17] = [
    ("add", BinOp::Add),
    ("sub", BinOp::Sub),
    ("mul", BinOp::Mul),
    ("mulhu", BinOp::MulHiU),
    ("mulhs", BinOp::MulHiS),
    ("divu", BinOp::DivU),
    ("divs", BinOp::DivS),
    ("remu", BinOp::RemU),
    ("rems", BinOp::RemS),
    ("and", BinOp::And),
    ("or", BinOp::Or),
    ("xor", BinOp::Xor),
    ("shl", BinOp::Shl),
    ("shru", BinOp::ShrU),
    ("shrs", BinOp::ShrS),
    ("rotl", BinOp::RotL),
    ("rotr", BinOp::RotR),
];

pub(crate) const UN_NAMES: [(&str, UnOp); 4] =
    [("clz", UnOp::Clz), ("ctz", UnOp::Ctz), ("popcnt", UnOp::Popcnt), ("bswap", UnOp::Bswap)];

/// Comparisons as functions. `true`: exchange the operands.
pub(crate) const CMP_NAMES: [(&str, CmpOp, bool); 10] = [
    ("eq", CmpOp::Eq, false),
    ("ne", CmpOp::Ne, false),
    ("ltu", CmpOp::LtU, false),
    ("lts", CmpOp::LtS, false),
    ("leu", CmpOp::LeU, false),
    ("les", CmpOp::LeS, false),
    ("gtu", CmpOp::LtU, true),
    ("gts", CmpOp::LtS, true),
    ("geu", CmpOp::LeU, true),
    ("ges", CmpOp::LeS, true),
];
