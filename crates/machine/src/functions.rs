//! The functions of the semantics language.
//!
//! Those that are operators under another name take a width as a suffix
//! (`add32`), which is how a 64-bit machine says what its 32-bit instructions
//! do. `ltu(flags)` with one argument tests condition bits, `ltu32(a, b)` with
//! two compares.

use crate::error::{did_you_mean, list};
use crate::fold;
use crate::lex::SemError;
use crate::parser::Scope;
use crate::sem::Expr;
use ciphermill_ir::{BinOp, CmpOp, UnOp};
use std::ops::Range;

/// Names without width suffix, for messages.
const NAMES: [&str; 39] = [
    "rotl",
    "rotr",
    "mulhu",
    "mulhs",
    "clz",
    "ctz",
    "popcnt",
    "bswap",
    "sext8",
    "sext16",
    "sext32",
    "zext8",
    "zext16",
    "zext32",
    "cat",
    "linear",
    "gfmul",
    "clmul",
    "clmulh",
    "clmulr",
    "matvec",
    "flags_sub",
    "flags_add",
    "flags_logic",
    "eq",
    "ne",
    "ltu",
    "lts",
    "leu",
    "les",
    "gtu",
    "gts",
    "geu",
    "ges",
    "add32",
    "sub32",
    "shl32",
    "shru32",
    "shrs32",
];

/// The value of `name(args)`.
pub fn build(name: &str, args: Vec<Expr>, scope: &Scope, span: Range<usize>) -> Result<Expr, SemError> {
    let word = scope.word;
    let count = args.len();
    let wrong = |wanted: usize| {
        let s = if wanted == 1 { "" } else { "s" };
        SemError::new(span.clone(), format!("`{name}` takes {wanted} argument{s}, here are {count}"))
    };
    if name == "cat" {
        return cat(args, scope, span);
    }
    if name == "gfmul" {
        let args = <[Expr; 3]>::try_from(args).map_err(|_| wrong(3))?;
        return crate::linear::gfmul(args, word, span);
    }
    if let Some(low) = carryless(name, word) {
        let args = <[Expr; 2]>::try_from(args).map_err(|_| wrong(2))?;
        return crate::linear::clmul(args, low, word, span);
    }
    if let Some((op, bits)) = extension(name) {
        let [a] = <[Expr; 1]>::try_from(args).map_err(|_| wrong(1))?;
        if bits > word {
            return Err(SemError::new(span, format!("`{name}` is wider than a word")));
        }
        return Ok(match op {
            Some(op) => fold::un(op, word, a),
            None => fold::slice(a, 0, bits, word),
        });
    }
    let (base, bits) = split_width(name, word);
    let Some(bits) = bits else {
        return Err(SemError::new(span, format!("`{name}`: no such width on a machine of {word} bits"))
            .mend("widths are 8, 16, 32, 64"));
    };
    if base.starts_with("flags_") && bits < 32 {
        return Err(SemError::new(span, format!("`{name}`: condition bits are those of 32 or 64 bits")));
    }
    match base {
        "flags_sub" | "flags_add" => {
            let [a, b] = <[Expr; 2]>::try_from(args).map_err(|_| wrong(2))?;
            let (a, b) = (Box::new(a), Box::new(b));
            return Ok(if base == "flags_sub" { Expr::FlagsSub { bits, a, b } } else { Expr::FlagsAdd { bits, a, b } });
        }
        "flags_logic" => {
            let [a] = <[Expr; 1]>::try_from(args).map_err(|_| wrong(1))?;
            return Ok(Expr::FlagsLogic { bits, a: Box::new(a) });
        }
        _ => {}
    }
    if let Some(&(_, op)) = BIN_NAMES.iter().find(|(n, _)| *n == base) {
        let [a, b] = <[Expr; 2]>::try_from(args).map_err(|_| wrong(2))?;
        return Ok(fold::bin(op, bits, a, b));
    }
    if let Some(&(_, op)) = UN_NAMES.iter().find(|(n, _)| *n == base) {
        let [a] = <[Expr; 1]>::try_from(args).map_err(|_| wrong(1))?;
        return Ok(fold::un(op, bits, a));
    }
    if let Some(&(_, op, swap)) = CMP_NAMES.iter().find(|(n, _, _)| *n == base) {
        let mut args = args.into_iter();
        return match (args.next(), args.next(), args.next()) {
            (Some(a), Some(b), None) => {
                let (a, b) = if swap { (b, a) } else { (a, b) };
                Ok(fold::cmp(op, bits, a, b))
            }
            (Some(flags), None, None) if base == name => Ok(flags_test(op, swap, flags, word)),
            _ => Err(wrong(2)),
        };
    }
    let error = SemError::new(span, format!("unknown function `{name}`; there are {}", list(NAMES)));
    Err(SemError { mend: did_you_mean(name, NAMES), ..error })
}

/// A test of condition bits; the greater-than forms are negations, because
/// the bits know which operand came first.
fn flags_test(op: CmpOp, greater: bool, flags: Expr, word: u8) -> Expr {
    let test = |op, flags| Expr::FlagsTest { op, flags: Box::new(flags) };
    if !greater {
        return test(op, flags);
    }
    // a > b is not (a <= b), and a >= b is not (a < b).
    let opposite = match op {
        CmpOp::LtU => CmpOp::LeU,
        CmpOp::LtS => CmpOp::LeS,
        CmpOp::LeU => CmpOp::LtU,
        CmpOp::LeS => CmpOp::LtS,
        CmpOp::Eq | CmpOp::Ne => op,
    };
    Expr::Cmp { op: CmpOp::Eq, bits: word, a: Box::new(test(opposite, flags)), b: Box::new(Expr::Const(0)) }
}

/// The lowest bit that a carry-less product gives: `clmul` the lower half, `clmulh` the upper, `clmulr` the
/// bits that are the lower half of the product of reversed words, reversed.
fn carryless(name: &str, word: u8) -> Option<u8> {
    match name {
        "clmul" => Some(0),
        "clmulh" => Some(word),
        "clmulr" => Some(word - 1),
        _ => None,
    }
}

/// `sext8` ...: the operator (none for a zero extension) and the width.
fn extension(name: &str) -> Option<(Option<UnOp>, u8)> {
    Some(match name {
        "sext8" => (Some(UnOp::SExt8), 8),
        "sext16" => (Some(UnOp::SExt16), 16),
        "sext32" => (Some(UnOp::SExt32), 32),
        "zext8" => (None, 8),
        "zext16" => (None, 16),
        "zext32" => (None, 32),
        _ => return None,
    })
}

/// `add32` is `add` in 32 bits; a name without a suffix works in the word.
/// `None` when the suffix is no width the machine has.
fn split_width(name: &str, word: u8) -> (&str, Option<u8>) {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match &name[base.len()..] {
        "" => (base, Some(word)),
        digits => (base, digits.parse().ok().filter(|w| matches!(w, 8 | 16 | 32 | 64) && *w <= word)),
    }
}

/// Bits laid side by side, the first argument highest.
fn cat(args: Vec<Expr>, scope: &Scope, span: Range<usize>) -> Result<Expr, SemError> {
    let mut below = 0u32;
    let mut value = Expr::Const(0);
    for arg in args.into_iter().rev() {
        let Some(width) = width(&arg, scope) else {
            let error = SemError::new(span, "`cat` needs parts of known width");
            return Err(error.mend("use slices (`x[7:0]`), single bits (`x[3]`), loads or table entries"));
        };
        if below + u32::from(width) > u32::from(scope.word) {
            return Err(SemError::new(span, format!("the parts of `cat` have more than {} bits", scope.word)));
        }
        let shifted =
            if below == 0 { arg } else { fold::bin(BinOp::Shl, scope.word, arg, Expr::Const(u64::from(below))) };
        value = if below == 0 { shifted } else { fold::bin(BinOp::Or, scope.word, shifted, value) };
        below += u32::from(width);
    }
    if below == 0 { Err(SemError::new(span, "`cat` of nothing")) } else { Ok(value) }
}

/// Bits an expression can have set, where that is plain to see.
fn width(e: &Expr, scope: &Scope) -> Option<u8> {
    match e {
        Expr::Slice { width, .. } => Some(*width),
        Expr::Table { table, .. } => scope.tables.get(*table).map(|t| t.bits),
        Expr::Load { bytes, signed: false, .. } => Some(bytes * 8),
        Expr::Cmp { .. } | Expr::FlagsTest { .. } => Some(1),
        Expr::Linear { matrix, .. } => u8::try_from(matrix.rows.len()).ok(),
        _ => None,
    }
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
