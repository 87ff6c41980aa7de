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
use crate::lex::{SemError, Token};
use crate::model::{OperandKind, RuleVar};
use crate::parser::{Parser, Vars};
use crate::sem::{Dest, Expr, Stmt};
use std::ops::Range;

pub use crate::parser::Scope;

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
pub(crate) fn over_vars(text: &str, scope: &Scope, vars: &[RuleVar], lets: &[String]) -> Result<Expr, SemError> {
    let mut p = Parser::new(text, scope, Vars::Closed(vars.to_vec()))?;
    p.lets = lets.to_vec();
    p.whole()
}

impl Parser<'_> {
    /// The whole text is one expression.
    pub(crate) fn whole(&mut self) -> Result<Expr, SemError> {
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
            "rotate" => Ok(Stmt::Rotate),
            "window_save" => Ok(Stmt::WindowSave),
            "window_restore" => Ok(Stmt::WindowRestore),
            _ => match crate::expr::memory(&name) {
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
            || self.scope.bound.iter().any(|b| b.0 == name)
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
                OperandKind::Imm { .. } => {
                    Err(SemError::new(span, format!("`{name}` is a constant: nothing can be assigned to it")))
                }
                OperandKind::Label => {
                    Err(SemError::new(span, format!("`{name}` is a label: nothing can be assigned to it"))
                        .mend(format!("to jump, write `goto {name}`")))
                }
            };
        }
        if let Some(&reg) = self.scope.regs.get(name) {
            if self.scope.reg_infos.get(usize::from(reg.0)).is_some_and(|r| r.zero) {
                return Err(SemError::new(span, format!("`{name}` always reads zero: assigning to it has no effect")));
            }
            return Ok(Dest::Fixed(reg));
        }
        if self.scope.bound.iter().any(|b| b.0 == name) {
            let error = SemError::new(span, format!("`{name}` is an operand of a mode: nothing can be assigned to it"));
            return Err(error.mend(format!("to store at an address, write `mem32[{name}] = ...`")));
        }
        if self.lets.iter().any(|l| l == name) {
            return Err(SemError::new(span, format!("`{name}` has its value already")).mend("use another `let`"));
        }
        Err(self.unknown(name, span))
    }

    pub(crate) fn unknown(&self, name: &str, span: Range<usize>) -> SemError {
        let mut names: Vec<&str> = self.scope.operands.iter().map(|o| o.name.as_str()).collect();
        match &self.vars {
            Vars::Open(vars) | Vars::Closed(vars) => names.extend(vars.iter().map(|v| v.name.as_str())),
            Vars::Instruction => {}
        }
        names.extend(self.scope.bound.iter().map(|b| b.0.as_str()));
        names.extend(self.lets.iter().map(String::as_str));
        if names.is_empty() {
            return SemError::new(span, format!("unknown name `{name}`: the instruction has no operands"))
                .mend("give it a `format`, or `operands` of its own");
        }
        let shown = list(names.iter().copied());
        names.extend(self.scope.regs.keys().map(String::as_str));
        names.extend(self.scope.tables.iter().map(|t| t.name.as_str()));
        names.extend(["pc", "trap", "rotate", "window_save", "window_restore"]);
        let mend = did_you_mean(name, names);
        let error = SemError::new(span, format!("unknown name `{name}`; here are {shown}"));
        SemError { mend, ..error }
    }
}
