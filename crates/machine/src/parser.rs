//! Where the parser of the semantics language stands in its text, and what it knows of names.

use crate::gf2::BitMatrix;
use crate::lex::{SemError, Token, lex};
use crate::model::{Operand, Reg, RegFile, RegInfo, RuleVar, Table};
use crate::sem::Expr;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What names mean.
pub struct Scope<'a> {
    /// 32 or 64.
    pub word: u8,
    pub operands: &'a [Operand],
    /// Registers by name.
    pub regs: &'a BTreeMap<String, Reg>,
    pub reg_infos: &'a [RegInfo],
    pub files: &'a [RegFile],
    pub tables: &'a [Table],
    pub matrices: &'a [Arc<BitMatrix>],
    /// Names that stand for expressions: the operands of modes.
    pub bound: &'a [(String, Expr)],
}

/// How the names of variables are treated.
pub(crate) enum Vars {
    /// Operands and registers of an instruction.
    Instruction,
    /// Left side of a rule: a new name is a new variable.
    Open(Vec<RuleVar>),
    /// Right side of a rule: only the variables there are.
    Closed(Vec<RuleVar>),
}

pub(crate) struct Parser<'a> {
    pub(crate) scope: &'a Scope<'a>,
    pub(crate) tokens: Vec<(Token, Range<usize>)>,
    pub(crate) at: usize,
    pub(crate) depth: usize,
    pub(crate) vars: Vars,
    pub(crate) lets: Vec<String>,
    /// Operations that bound names have brought in.
    pub(crate) brought: usize,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &str, scope: &'a Scope<'a>, vars: Vars) -> Result<Parser<'a>, SemError> {
        Ok(Parser { scope, tokens: lex(text)?, at: 0, depth: 0, vars, lets: Vec::new(), brought: 0 })
    }

    pub(crate) fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    pub(crate) fn span(&self) -> Range<usize> {
        self.tokens[self.at].1.clone()
    }

    /// The word just read.
    pub(crate) fn last_span(&self) -> Range<usize> {
        self.tokens[self.at.saturating_sub(1)].1.clone()
    }

    pub(crate) fn at_end(&self) -> bool {
        *self.peek() == Token::End
    }

    pub(crate) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        if token != Token::End {
            self.at += 1;
        }
        token
    }

    pub(crate) fn sees(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(s) if *s == sign)
    }

    pub(crate) fn eat(&mut self, sign: &str) -> bool {
        let yes = self.sees(sign);
        self.at += usize::from(yes);
        yes
    }

    pub(crate) fn expect(&mut self, sign: &'static str) -> Result<(), SemError> {
        if self.eat(sign) { Ok(()) } else { Err(self.unexpected(&format!("expected `{sign}`"))) }
    }

    pub(crate) fn unexpected(&self, wanted: &str) -> SemError {
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
}
