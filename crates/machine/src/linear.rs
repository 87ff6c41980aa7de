//! The functions of the semantics language that multiply over GF(2): by matrices, and words by words.
//!
//! `linear(M, x)` and `matvec(r, x)` take a name that is no value as their
//! first argument, so they are parsed here and not with the other functions.

use crate::error::{did_you_mean, list};
use crate::fold;
use crate::gf2::{BitMatrix, degree, is_field};
use crate::ids::Reg;
use crate::lex::{SemError, Token};
use crate::parser::Parser;
use crate::sem::{Expr, HeldMatrix};
use ciphermill_ir::BinOp;
use std::ops::Range;

/// `gfmul(c, x, p)`: the low bits of x, an element of GF(2)[x]/p, times c.
pub(crate) fn gfmul(args: [Expr; 3], word: u8, span: Range<usize>) -> Result<Expr, SemError> {
    let [Expr::Const(constant), x, Expr::Const(polynomial)] = args else {
        let error = SemError::new(span, "`gfmul` takes a constant, a value and a polynomial");
        return Err(error.mend("write it like `gfmul(3, x[7:0], 0x11b)`"));
    };
    let m = degree(polynomial).filter(|&m| m <= word);
    let Some(matrix) = m.and_then(|_| BitMatrix::constant(constant, polynomial)) else {
        let error = SemError::new(span, format!("{constant:#x} is no element of the field of {polynomial:#x}"));
        return Err(error.mend("the polynomial has a degree from 1 to 32, the constant a lower one"));
    };
    if !is_field(polynomial) {
        let error = SemError::new(
            span,
            format!("{polynomial:#x} is a product of polynomials: the numbers modulo it are no field"),
        );
        return Err(error.mend("give an irreducible polynomial with its highest bit, such as 0x11b"));
    }
    Ok(fold::linear(matrix, x))
}

/// A word's bits from `low` on of a carry-less product: for each bit of the second factor that is set the first
/// one, moved there, is added. Both are values that have a name, since they are named for each bit.
pub(crate) fn clmul([a, b]: [Expr; 2], low: u8, word: u8, span: Range<usize>) -> Result<Expr, SemError> {
    let named =
        |e: &Expr| matches!(e, Expr::Operand(_) | Expr::Fixed(_) | Expr::Temp(_) | Expr::Imm(_) | Expr::Const(_));
    if !named(&a) || !named(&b) {
        let error = SemError::new(span, "a carry-less product takes operands or what `let` has named");
        return Err(error.mend("name the factor before: `let x = ...; rd = clmul(x, rs2)`"));
    }
    let term = |n: u8| {
        let moved = match n.checked_sub(low) {
            Some(0) => a.clone(),
            Some(up) => fold::bin(BinOp::Shl, word, a.clone(), Expr::Const(up.into())),
            None => fold::bin(BinOp::ShrU, word, a.clone(), Expr::Const((low - n).into())),
        };
        fold::select(fold::slice(b.clone(), n, 1, word), moved, Expr::Const(0))
    };
    // What is moved by a whole word is gone.
    let mut terms: Vec<Expr> = (0..word).filter(|&n| low < word || n > 0).map(term).collect();
    // In pairs, so that the tree is as low as can be.
    while terms.len() > 1 {
        let mut pairs = terms.into_iter();
        terms = Vec::new();
        while let Some(first) = pairs.next() {
            terms.push(match pairs.next() {
                Some(second) => fold::bin(BinOp::Xor, word, first, second),
                None => first,
            });
        }
    }
    Ok(terms.pop().unwrap_or(Expr::Const(0)))
}

impl Parser<'_> {
    /// What follows `linear(`.
    pub(crate) fn linear(&mut self) -> Result<Expr, SemError> {
        let (name, span) = self.first_name("the name of a matrix")?;
        let Some(matrix) = self.scope.matrices.iter().find(|m| m.name() == Some(&name)).cloned() else {
            let names = || self.scope.matrices.iter().filter_map(|m| m.name());
            let shown = if self.scope.matrices.is_empty() { "none".to_owned() } else { list(names()) };
            let mend = match self.scope.tables.iter().any(|t| t.name == name) {
                true => {
                    Some(format!("`{name}` is a table, looked up by `{name}[...]`; a linear map stands in [matrices]"))
                }
                false => did_you_mean(&name, names()),
            };
            let error = SemError::new(span, format!("unknown matrix `{name}`; there are {shown}"));
            return Err(SemError { mend, ..error });
        };
        let word = self.scope.word;
        if matrix.columns > word || matrix.rows.len() > usize::from(word) {
            return Err(SemError::new(span, format!("`{name}` is larger than a word of {word} bits")));
        }
        Ok(fold::linear(matrix, self.last_argument()?))
    }

    /// What follows `matvec(`.
    pub(crate) fn matvec(&mut self) -> Result<Expr, SemError> {
        let (name, span) = self.first_name("the register that holds row 0")?;
        let Some(&first) = self.scope.regs.get(&name) else {
            return Err(self.unknown(&name, span));
        };
        let file = |r: Reg| self.scope.reg_infos.get(usize::from(r.0)).map(|r| r.file);
        let rows = self.scope.word;
        let bits = file(first).and_then(|f| self.scope.files.get(f)).map_or(rows, |f| f.bits.clamp(1, rows));
        let matrix = HeldMatrix { first, rows, words: rows.div_ceil(bits), bits };
        if matrix.registers().any(|r| file(r).is_none() || file(r) != file(first)) {
            let count = matrix.registers().count();
            let error = SemError::new(span, format!("`matvec` needs {count} registers of one file from `{name}` on"));
            return Err(error.mend(format!(
                "declare a register file with `count = {count}`: a row of {rows} bits for each bit of a word"
            )));
        }
        Ok(Expr::MatVec { matrix, a: Box::new(self.last_argument()?) })
    }

    fn first_name(&mut self, what: &str) -> Result<(String, Range<usize>), SemError> {
        let span = self.span();
        let Token::Name(name) = self.next() else {
            return Err(SemError::new(span, format!("expected {what}")));
        };
        self.expect(",")?;
        Ok((name, span))
    }

    fn last_argument(&mut self) -> Result<Expr, SemError> {
        let a = self.expr()?;
        self.expect(")")?;
        Ok(a)
    }
}
