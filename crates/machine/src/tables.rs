//! `[tables]` and `[matrices]`: constants that semantics use.
//!
//! A table is written in one of four ways: its values, the same as hexadecimal
//! digits, as the inverse of another, or by a formula over the index. A matrix
//! is written as rows of field constants, or of bit masks. Whatever the way,
//! what comes out is checked to be complete.

use crate::builder::{Builder, good_name, int, nodes, text};
use crate::error::{FileError, did_you_mean};
use crate::eval::{Env, eval};
use crate::fold::mask;
use crate::gf2::{BitMatrix, Origin, degree, is_field, multiply};
use crate::model::{Operand, OperandKind, Table};
use crate::parse;
use crate::tree::{Entry, Node, Table as Tree};
use std::sync::Arc;

pub(crate) fn tables(b: &Builder) -> Result<Vec<Table>, FileError> {
    let mut tables: Vec<Table> = Vec::new();
    // Inverses come last: they may stand before what they invert.
    let inverse = |t: &Tree| t.get("inverse_of").is_some();
    for last in [false, true] {
        for (name, entry, t) in b.section("tables").filter(|(_, _, t)| inverse(t) == last) {
            if !good_name(name) || b.reg_names.contains_key(name) {
                return Err(entry.place.error(format!("`{name}` cannot name a table")).mend("choose another name"));
            }
            let bits: u8 = int(t, "bits").unwrap_or(8);
            if bits > b.word {
                return Err(entry.place.error(format!("entries of {bits} bits on a machine of {} bits", b.word)));
            }
            let values = entries(b, name, entry, t, bits, &tables)?;
            if values.is_empty() {
                return Err(entry.place.error(format!("table `{name}` has no entries")));
            }
            let verilog = text(t, "verilog").map(str::to_owned);
            tables.push(Table { name: name.to_owned(), bits, values, verilog });
        }
    }
    Ok(tables)
}

/// The entries, in whichever way they are given.
fn entries(
    b: &Builder,
    name: &str,
    entry: &Entry,
    t: &Tree,
    bits: u8,
    others: &[Table],
) -> Result<Vec<u64>, FileError> {
    let ways = ["values", "hex", "inverse_of", "formula"];
    let given: Vec<&str> = ways.into_iter().filter(|w| t.get(w).is_some()).collect();
    let [way] = given[..] else {
        let error = entry.place.error(format!("table `{name}` is given in {} ways", given.len()));
        return Err(error.mend("give one of `values`, `hex`, `inverse_of` and `formula`"));
    };
    for key in ["entries", "polynomial"] {
        if let (Some(node), true) = (t.get(key), way != "formula") {
            return Err(node.place.error(format!("`{key}` belongs to `formula`")));
        }
    }
    match (way, t.get(way)) {
        ("values", _) => nodes(t, "values").iter().map(|n| value(n, bits)).collect(),
        ("hex", _) => digits(nodes(t, "hex"), bits),
        ("inverse_of", Some(node)) => inverse(node, bits, others),
        (_, Some(node)) => formula(b, t, node, bits),
        (_, None) => Ok(Vec::new()),
    }
}

fn value(node: &Node, bits: u8) -> Result<u64, FileError> {
    let value = node.as_int().unwrap_or(-1);
    if value < 0 || value as u64 > mask(bits) {
        return Err(node.place.error(format!("{value} is no entry of {bits} bits")));
    }
    Ok(value as u64)
}

/// Rows of hexadecimal digits; spaces do not count.
fn digits(rows: &[Node], bits: u8) -> Result<Vec<u64>, FileError> {
    let each = usize::from(bits).div_ceil(4);
    let mut values = Vec::new();
    for node in rows {
        let row: Vec<char> = node.as_str().unwrap_or_default().chars().filter(|c| !c.is_whitespace()).collect();
        if !row.len().is_multiple_of(each) {
            let error = node.place.error(format!("{} digits are no whole number of entries of {each}", row.len()));
            return Err(error.mend(format!("an entry of {bits} bits has {each} digits")));
        }
        for chunk in row.chunks(each) {
            let chunk: String = chunk.iter().collect();
            match u64::from_str_radix(&chunk, 16) {
                Ok(v) if v <= mask(bits) && !chunk.starts_with('+') => values.push(v),
                _ => return Err(node.place.error(format!("`{chunk}` is no entry of {bits} bits"))),
            }
        }
    }
    Ok(values)
}

fn inverse(node: &Node, bits: u8, others: &[Table]) -> Result<Vec<u64>, FileError> {
    let name = node.as_str().unwrap_or_default();
    let Some(other) = others.iter().find(|t| t.name == name) else {
        let error = node.place.error(format!("there is no table `{name}`, or it is an inverse itself"));
        return Err(error.mend_opt(did_you_mean(name, others.iter().map(|t| t.name.as_str()))));
    };
    let mut values = vec![None; other.values.len()];
    for (i, &v) in other.values.iter().enumerate() {
        match values.get_mut(v as usize) {
            Some(place @ None) => *place = Some(i as u64),
            Some(Some(first)) => {
                let error = node.place.error(format!("`{name}` is no permutation: {v:#x} at {first:#x} and at {i:#x}"));
                return Err(error.mend("only a table with each value once has an inverse; correct its entries"));
            }
            None => {
                let error = node.place.error(format!("`{name}` is no permutation: {v:#x} at {i:#x}"));
                return Err(error.mend(format!("its {} entries must be the numbers below that", other.values.len())));
            }
        }
    }
    let values: Vec<u64> = values.into_iter().flatten().collect();
    match values.iter().find(|&&v| v > mask(bits)) {
        Some(v) => Err(node.place.error(format!("{v:#x} is no entry of {bits} bits"))),
        None => Ok(values),
    }
}

/// The index of a formula, and its inverse in the field.
struct Index(u64, u64);

impl Env for Index {
    fn operand(&self, index: usize) -> Option<u64> {
        Some(if index == 0 { self.0 } else { self.1 })
    }
}

/// x to the power 2^m - 2, which is its inverse, and 0 for 0.
fn inverse_in_field(x: u64, polynomial: u64, m: u8) -> u64 {
    if x == 0 {
        return 0;
    }
    let square = |x| multiply(x, x, polynomial);
    // The product of x^2, x^4, ... x^(2^(m-1)).
    (1..m).fold((1, x), |(product, power), _| (multiply(product, square(power), polynomial), square(power))).0
}

fn formula(b: &Builder, t: &Tree, node: &Node, bits: u8) -> Result<Vec<u64>, FileError> {
    let field = match t.get("polynomial") {
        Some(node) => {
            let polynomial = node.as_int().unwrap_or(0) as u64;
            let m = degree(polynomial).filter(|m| *m <= 16);
            let Some(m) = m else {
                return Err(node.place.error(format!("{polynomial:#x} is no polynomial of degree 1 to 16")));
            };
            check_field(node, polynomial)?;
            Some((polynomial, m))
        }
        None => None,
    };
    let Some(count) = int(t, "entries").or((bits <= 16).then_some(1 << bits)) else {
        return Err(node.place.error("a formula for entries of more than 16 bits needs `entries`"));
    };
    if let Some((_, m)) = field.filter(|(_, m)| count > 1 << m) {
        return Err(node.place.error(format!("{count} entries, but the field has {} elements", 1u64 << m)));
    }
    let operand =
        |name: &str| Operand { name: name.to_owned(), kind: OperandKind::Reg { file: 0, def: false, used: true } };
    let operands = [operand("i"), operand("inverse")];
    let operands = &operands[..if field.is_some() { 2 } else { 1 }];
    // Neither registers nor other tables: a formula depends on its index alone.
    let regs = Default::default();
    let scope = parse::Scope {
        word: b.word,
        operands,
        regs: &regs,
        reg_infos: &[],
        files: &[],
        tables: &[],
        matrices: &b.matrices,
        bound: &[],
    };
    let e = parse::expression(node.as_str().unwrap_or_default(), &scope)
        .map_err(|e| node.error_within(e.span, e.message).mend_opt(e.mend))?;
    let inverse = |i| field.map_or(0, |(polynomial, m)| inverse_in_field(i, polynomial, m));
    let entry = |i: u64| match eval(&e, b.word, &Index(i, inverse(i))) {
        Some(v) if v <= mask(bits) => Ok(v),
        Some(v) => Err(node.place.error(format!("for i = {i} the formula gives {v:#x}, no entry of {bits} bits"))),
        None => Err(node.place.error(format!("for i = {i} the formula has no value"))),
    };
    (0..count).map(entry).collect()
}

/// A polynomial of a good degree that is the product of two has no field.
fn check_field(node: &Node, polynomial: u64) -> Result<(), FileError> {
    if is_field(polynomial) {
        return Ok(());
    }
    let error =
        node.place.error(format!("{polynomial:#x} is a product of polynomials: the numbers modulo it are no field"));
    Err(error.mend(
        "give an irreducible polynomial with its highest bit, such as 0x11b (AES), or leave it out and give bits",
    ))
}

pub(crate) fn matrices(b: &Builder) -> Result<Vec<Arc<BitMatrix>>, FileError> {
    let mut matrices = Vec::new();
    for (name, entry, t) in b.section("matrices") {
        if !good_name(name) || b.reg_names.contains_key(name) {
            return Err(entry.place.error(format!("`{name}` cannot name a matrix")).mend("choose another name"));
        }
        let mut rows: Vec<Vec<u64>> = Vec::new();
        for node in nodes(t, "rows") {
            let words = node.as_str().unwrap_or_default().split_whitespace();
            let row: Result<Vec<u64>, _> = words.map(|w| u64::from_str_radix(w.trim_start_matches("0x"), 16)).collect();
            rows.push(row.map_err(|_| node.place.error("a row is hexadecimal numbers with spaces between them"))?);
        }
        let matrix = match t.get("polynomial") {
            Some(node) => of_field(name, entry, node, t, &rows)?,
            None => of_bits(name, entry, t, &rows)?,
        };
        matrices.push(Arc::new(matrix));
    }
    Ok(matrices)
}

fn of_field(name: &str, entry: &Entry, node: &Node, t: &Tree, rows: &[Vec<u64>]) -> Result<BitMatrix, FileError> {
    let polynomial = node.as_int().unwrap_or(0) as u64;
    let Some(m) = degree(polynomial) else {
        return Err(node.place.error(format!("{polynomial:#x} is no polynomial of degree 1 to 32")));
    };
    check_field(node, polynomial)?;
    if let Some(node) = t.get("columns") {
        return Err(node.place.error("a matrix of field elements has as many columns as its rows have elements"));
    }
    BitMatrix::of_field(name, rows, polynomial).ok_or_else(|| {
        let lengths: std::collections::BTreeSet<usize> = rows.iter().map(Vec::len).collect();
        let what = match lengths.len() {
            0 | 1 => format!("no matrix of at most 64 by 64 bits over GF(2^{m})"),
            _ => "no matrix: its rows differ in length".to_owned(),
        };
        let error = entry.place.error(format!("`{name}` is {what}"));
        error.mend(format!("give rows of equal length, of elements below {:#x}", 1u64 << m))
    })
}

fn of_bits(name: &str, entry: &Entry, t: &Tree, rows: &[Vec<u64>]) -> Result<BitMatrix, FileError> {
    let columns: u8 = int(t, "columns").or(u8::try_from(rows.len()).ok()).unwrap_or(0);
    let fits = |row: &Vec<u64>| row.len() == 1 && columns > 0 && row[0] <= mask(columns);
    if rows.is_empty() || rows.len() > 64 || columns > 64 || !rows.iter().all(fits) {
        let error = entry.place.error(format!("`{name}` is no matrix of at most 64 rows of {columns} bits"));
        return Err(error.mend("a row is one mask; for constants of a field give its `polynomial`"));
    }
    let rows = rows.iter().map(|r| r[0]).collect();
    Ok(BitMatrix { origin: Origin::Named(name.to_owned()), rows, columns })
}
