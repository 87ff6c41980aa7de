//! Expressions of the semantics language.
//!
//! Precedence climbing: one table ([`infix`]) says how tightly each operator
//! binds, and one loop serves them all. The levels are those of C.

use crate::fold;
use crate::lex::{SemError, Token};
use crate::model::{OperandKind, RuleVar};
use crate::parser::{Parser, Vars};
use crate::sem::Expr;
use ciphermill_ir::{BinOp, CmpOp};
use std::ops::Range;

/// Deepest nesting of brackets and prefix operators.
const MAX_DEPTH: usize = 60;

/// Operations and leaves that the operands of modes may bring into one piece of semantics.
const MAX_BROUGHT: usize = 4 * crate::lex::MAX_TOKENS;

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

impl Parser<'_> {
    pub(crate) fn expr(&mut self) -> Result<Expr, SemError> {
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
            Token::Number(n) => Err(SemError::new(span, format!("bit {n} of a word of {} bits", self.scope.word))
                .mend(format!("bits are numbered from 0 to {}", self.scope.word - 1))),
            _ => Err(SemError::new(span, "expected a bit number").mend("a variable bit is `(x >>u n) & 1`")),
        }
    }

    pub(crate) fn bracketed(&mut self) -> Result<Expr, SemError> {
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
                let index = self.bracketed()?;
                let entries = self.scope.tables[table].values.len();
                if let Expr::Slice { width, .. } = &index
                    && ciphermill_ir::ops::mask(u32::from(*width)) >= entries as u64
                {
                    let error = format!("an index of {width} bits into `{name}`, which has {entries} entries");
                    return Err(
                        SemError::new(span, error).mend("give the table all its entries, or cut fewer bits out")
                    );
                }
                return Ok(Expr::Table { table, index: Box::new(index) });
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
            Vars::Instruction if constant => {
                Err(SemError::new(span, "`#` marks constants in rules, not here").mend("leave it out"))
            }
            Vars::Instruction => {
                if let Some(i) = self.scope.operands.iter().position(|o| o.name == name) {
                    return Ok(match self.scope.operands[i].kind {
                        OperandKind::Reg { .. } => Expr::Operand(i),
                        OperandKind::Imm { .. } | OperandKind::Label => Expr::Imm(i),
                    });
                }
                if let Some((_, value)) = self.scope.bound.iter().find(|b| b.0 == name) {
                    value.walk(&mut |_| self.brought += 1);
                    if self.brought > MAX_BROUGHT {
                        let error = SemError::new(
                            span,
                            format!("`{name}` brings the semantics to more than {MAX_BROUGHT} operations"),
                        );
                        return Err(error.mend("name its value with `let`, once"));
                    }
                    return Ok(value.clone());
                }
                match self.scope.regs.get(name) {
                    Some(reg) if self.scope.reg_infos.get(usize::from(reg.0)).is_some_and(|r| r.zero) => {
                        Ok(Expr::Const(0))
                    }
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
        match name {
            "linear" => return self.linear(),
            "matvec" => return self.matvec(),
            _ => {}
        }
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
pub(crate) fn memory(name: &str) -> Option<(u8, bool)> {
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
