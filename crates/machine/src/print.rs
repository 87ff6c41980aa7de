//! Semantics as text: the inverse of [`crate::parse`].

use crate::functions::{BIN_NAMES, CMP_NAMES, UN_NAMES};
use crate::gf2::Origin;
use crate::model::{Operand, RegInfo, Table};
use crate::sem::{Dest, Expr, Stmt};
use ciphermill_ir::{BinOp, CmpOp, UnOp};

/// The names to print with.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    pub word: u8,
    pub operands: &'a [Operand],
    pub regs: &'a [RegInfo],
    pub tables: &'a [Table],
}

/// Statements as one line; parsing it again gives the same statements.
pub fn statements(stmts: &[Stmt], names: Names) -> String {
    let lines: Vec<String> = stmts.iter().map(|s| statement(s, names)).collect();
    lines.join("; ")
}

fn statement(s: &Stmt, names: Names) -> String {
    let e = |e: &Expr| expression(e, names);
    match s {
        Stmt::Let { temp, value } => format!("let tmp{temp} = {}", e(value)),
        Stmt::Assign { dest, value } => {
            let dest = match dest {
                Dest::Operand(i) => operand(*i, names),
                Dest::Fixed(r) => register(usize::from(r.0), names),
            };
            format!("{dest} = {}", e(value))
        }
        Stmt::Store { bytes, addr, value } => format!("mem{}[{}] = {}", u32::from(*bytes) * 8, e(addr), e(value)),
        Stmt::Goto { cond: None, target } => format!("goto {}", e(target)),
        Stmt::Goto { cond: Some(cond), target } => format!("if ({}) goto {}", e(cond), e(target)),
        Stmt::Trap => "trap".to_owned(),
        Stmt::Rotate => "rotate".to_owned(),
        Stmt::WindowSave => "window_save".to_owned(),
        Stmt::WindowRestore => "window_restore".to_owned(),
    }
}

fn operand(i: usize, names: Names) -> String {
    names.operands.get(i).map_or_else(|| format!("operand{i}"), |o| o.name.clone())
}

fn register(i: usize, names: Names) -> String {
    names.regs.get(i).map_or_else(|| format!("register{i}"), |r| r.name.clone())
}

/// An expression, with as few brackets as keep it readable.
pub fn expression(e: &Expr, names: Names) -> String {
    at_level(e, names, 0)
}

/// Tightness of what a sign makes: the same numbers as in the parser, with 0
/// for the ternary, 9 for prefixes and 10 for anything closed.
fn at_level(e: &Expr, names: Names, outer: u8) -> String {
    let (text, level) = print(e, names);
    if level < outer { format!("({text})") } else { text }
}

fn print(e: &Expr, names: Names) -> (String, u8) {
    let open = |e: &Expr| at_level(e, names, 0);
    let word = names.word;
    let pair = |sign: &str, level: u8, a: &Expr, b: &Expr| {
        // Mixed operators get brackets although C would not need them.
        let side = |e: &Expr, least: u8| {
            let (text, inner) = print(e, names);
            let same = matches!((inner, level), (7, 7) | (8, 8)) || inner == level;
            if inner < 9 && (!same || inner < least) { format!("({text})") } else { text }
        };
        (format!("{} {sign} {}", side(a, level), side(b, level + 1)), level)
    };
    match e {
        Expr::Operand(i) | Expr::Imm(i) => (operand(*i, names), 10),
        Expr::Fixed(r) => (register(usize::from(r.0), names), 10),
        Expr::Temp(i) => (format!("tmp{i}"), 10),
        Expr::Const(c) if *c < 1024 => (c.to_string(), 10),
        Expr::Const(c) => (format!("{c:#x}"), 10),
        Expr::Pc => ("pc".to_owned(), 10),
        Expr::Bin { op: BinOp::Xor, bits, a, b }
            if *bits == word && matches!(**b, Expr::Const(c) if c == crate::fold::mask(word)) =>
        {
            (format!("~{}", at_level(a, names, 9)), 9)
        }
        Expr::Bin { op: BinOp::Sub, bits, a, b } if *bits == word && matches!(**a, Expr::Const(0)) => {
            (format!("-{}", at_level(b, names, 9)), 9)
        }
        Expr::Bin { op, bits, a, b } => match sign(*op) {
            Some((sign, level)) if *bits == word => pair(sign, level, a, b),
            _ => (format!("{}({}, {})", with_width(bin_name(*op), *bits, word), open(a), open(b)), 10),
        },
        Expr::Un { op, bits, a } => (format!("{}({})", with_width(un_name(*op), *bits, word), open(a)), 10),
        Expr::Cmp { op, bits, a, b } if *bits == word => {
            let sign = match op {
                CmpOp::Eq => "==",
                CmpOp::Ne => "!=",
                CmpOp::LtU => "<u",
                CmpOp::LtS => "<s",
                CmpOp::LeU => "<=u",
                CmpOp::LeS => "<=s",
            };
            pair(sign, if matches!(op, CmpOp::Eq | CmpOp::Ne) { 4 } else { 5 }, a, b)
        }
        Expr::Cmp { op, bits, a, b } => {
            (format!("{}({}, {})", with_width(cmp_name(*op), *bits, word), open(a), open(b)), 10)
        }
        Expr::Select { cond, then, els } => {
            (format!("{} ? {} : {}", at_level(cond, names, 1), at_level(then, names, 1), at_level(els, names, 1)), 0)
        }
        Expr::Slice { a, lo, width: 1 } => (format!("{}[{lo}]", at_level(a, names, 10)), 10),
        Expr::Slice { a, lo, width } => (format!("{}[{}:{lo}]", at_level(a, names, 10), lo + width - 1), 10),
        Expr::Load { bytes, signed, addr } => {
            (format!("mem{}{}[{}]", u32::from(*bytes) * 8, if *signed { "s" } else { "" }, open(addr)), 10)
        }
        Expr::Table { table, index } => {
            let name = names.tables.get(*table).map_or("table", |t| t.name.as_str());
            (format!("{name}[{}]", open(index)), 10)
        }
        Expr::Linear { matrix, a } => match &matrix.origin {
            Origin::Named(name) => (format!("linear({name}, {})", open(a)), 10),
            Origin::Constant { constant, polynomial } => {
                (format!("gfmul({constant}, {}, {polynomial:#x})", open(a)), 10)
            }
        },
        Expr::MatVec { matrix, a } => {
            (format!("matvec({}, {})", register(usize::from(matrix.first.0), names), open(a)), 10)
        }
        Expr::FlagsSub { bits, a, b } => {
            (format!("{}({}, {})", with_width("flags_sub", *bits, word), open(a), open(b)), 10)
        }
        Expr::FlagsAdd { bits, a, b } => {
            (format!("{}({}, {})", with_width("flags_add", *bits, word), open(a), open(b)), 10)
        }
        Expr::FlagsLogic { bits, a } => (format!("{}({})", with_width("flags_logic", *bits, word), open(a)), 10),
        Expr::FlagsTest { op, flags } => (format!("{}({})", cmp_name(*op), open(flags)), 10),
    }
}

fn with_width(name: &str, bits: u8, word: u8) -> String {
    // A `sext8` in 32 of 64 bits cannot be written; no parser makes one.
    if bits == word || name.starts_with("sext") { name.to_owned() } else { format!("{name}{bits}") }
}

fn sign(op: BinOp) -> Option<(&'static str, u8)> {
    Some(match op {
        BinOp::Or => ("|", 1),
        BinOp::Xor => ("^", 2),
        BinOp::And => ("&", 3),
        BinOp::Shl => ("<<", 6),
        BinOp::ShrU => (">>u", 6),
        BinOp::ShrS => (">>s", 6),
        BinOp::Add => ("+", 7),
        BinOp::Sub => ("-", 7),
        BinOp::Mul => ("*", 8),
        BinOp::DivU => ("/u", 8),
        BinOp::DivS => ("/s", 8),
        BinOp::RemU => ("%u", 8),
        BinOp::RemS => ("%s", 8),
        BinOp::MulHiU | BinOp::MulHiS | BinOp::RotL | BinOp::RotR => return None,
    })
}

fn bin_name(op: BinOp) -> &'static str {
    BIN_NAMES.iter().find(|(_, o)| *o == op).map_or("?", |(n, _)| n)
}

fn cmp_name(op: CmpOp) -> &'static str {
    CMP_NAMES.iter().find(|(_, o, swap)| *o == op && !swap).map_or("?", |(n, _, _)| n)
}

fn un_name(op: UnOp) -> &'static str {
    match op {
        UnOp::SExt8 => "sext8",
        UnOp::SExt16 => "sext16",
        UnOp::SExt32 => "sext32",
        _ => UN_NAMES.iter().find(|(_, o)| *o == op).map_or("?", |(n, _)| n),
    }
}
