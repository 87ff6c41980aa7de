//! Tables and matrices of files: every way to write them, and what is refused.

use ciphermill_machine::{Machine, NamedText, Request, load};
use std::path::PathBuf;

fn text(path: &str) -> NamedText {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    NamedText::new(path, std::fs::read_to_string(root.join(path)).unwrap())
}

/// An rv32 with an extension of these sections.
fn with(sections: &str) -> Result<Machine, String> {
    let head = "[extension]\nname = \"x\"\ntitle = \"x\"\n[sources]\n";
    let citations: Vec<String> = ["tables", "matrices"]
        .iter()
        .filter(|s| sections.contains(&format!("[{s}.")))
        .map(|s| format!("{s} = \"test\"\n"))
        .collect();
    let extension = NamedText::new("x.toml", format!("{head}{}{sections}", citations.concat()));
    let request = Request {
        machine: text("machines/rv32.toml"),
        parents: &|_| None,
        // What is tried here is the tables alone.
        vocabulary: &|| vec![NamedText::new("users.toml", "[tables.v]\nformula = \"t + u + m + swap + twice\"")],
        extensions: vec![extension],
        without: vec![],
        settings: vec![],
        rules: text("machines/rules.toml"),
    };
    load(&request).map_err(|e| e.to_string())
}

fn table(body: &str) -> Result<Vec<u64>, String> {
    with(&format!("[tables.t]\n{body}\n")).map(|m| m.tables[0].values.clone())
}

#[test]
fn one_table_in_every_way() {
    let values = vec![1, 2, 3, 0];
    assert_eq!(table("bits = 2\nvalues = [1, 2, 3, 0]").unwrap(), values);
    assert_eq!(table("bits = 2\nhex = [\"1 2\", \"30\"]").unwrap(), values);
    assert_eq!(table("bits = 2\nformula = \"(i + 1) & 3\"").unwrap(), values);
    assert_eq!(table("bits = 12\nhex = [\"abc 001\"]").unwrap(), [0xabc, 1]);
    assert_eq!(table("bits = 32\nformula = \"i * i\"\nentries = 3").unwrap(), [0, 1, 4]);
    let both = "[tables.u]\nbits = 2\ninverse_of = \"t\"\n[tables.t]\nbits = 2\nvalues = [1, 2, 3, 0]\n";
    let m = with(both).unwrap();
    assert_eq!((m.tables[1].name.as_str(), &m.tables[1].values[..]), ("u", &[3, 0, 1, 2][..]));
}

#[test]
fn inverses_in_a_field() {
    let inverse = table("bits = 8\nformula = \"inverse\"\npolynomial = 0x11b").unwrap();
    // FIPS 197, 4.2: {53} and {ca} are inverse.
    assert_eq!((inverse[0], inverse[1], inverse[0x53], inverse[0xca]), (0, 1, 0xca, 0x53));
    assert_eq!(table("bits = 1\nformula = \"inverse\"\npolynomial = 2").unwrap(), [0, 1]);
}

#[test]
fn wrong_tables_are_refused() {
    for (body, message) in [
        ("bits = 2", "given in 0 ways"),
        ("bits = 2\nvalues = [1]\nhex = [\"1\"]", "given in 2 ways"),
        ("bits = 2\nvalues = [4]", "4 is no entry of 2 bits"),
        ("bits = 2\nvalues = []", "has no entries"),
        ("bits = 12\nhex = [\"abcd\"]", "4 digits are no whole number of entries of 3"),
        ("bits = 2\nhex = [\"7\"]", "`7` is no entry of 2 bits"),
        ("bits = 8\nhex = [\"+1\"]", "`+1` is no entry of 8 bits"),
        ("bits = 8\ninverse_of = \"s\"", "there is no table `s`"),
        ("bits = 2\nformula = \"i + 1\"", "for i = 3 the formula gives 0x4"),
        ("bits = 2\nformula = \"4 /u i\"", "for i = 0 the formula has no value"),
        ("bits = 2\nformula = \"j\"", "unknown name `j`"),
        ("bits = 2\nformula = \"inverse\"", "unknown name `inverse`"),
        ("bits = 8\nformula = \"inverse\"\npolynomial = 7", "256 entries, but the field has 4 elements"),
        ("bits = 8\nformula = \"inverse\"\npolynomial = 0x100", "0x100 is a product of polynomials"),
        ("bits = 8\nformula = \"inverse\"\npolynomial = 0x11", "0x11 is a product of polynomials"),
        ("bits = 32\nformula = \"i\"", "needs `entries`"),
        ("bits = 8\nvalues = [1]\nentries = 1", "`entries` belongs to `formula`"),
        ("bits = 33\nvalues = [1]", "entries of 33 bits on a machine of 32 bits"),
    ] {
        let error = table(body).unwrap_err();
        assert!(error.contains(message), "{body}: {error}");
    }
    let error = with("[tables.t]\nbits = 2\nvalues = [1, 1]\n[tables.u]\nbits = 2\ninverse_of = \"t\"\n").unwrap_err();
    assert!(error.contains("`t` is no permutation"), "{error}");
}

#[test]
fn matrices_in_both_ways() {
    let m =
        with("[matrices.swap]\nrows = [\"2\", \"1\"]\n[matrices.twice]\npolynomial = 7\nrows = [\"2 0\"]\n").unwrap();
    assert_eq!((m.matrices[0].apply(1), m.matrices[0].columns), (2, 2));
    // x times x is x + 1 modulo x^2 + x + 1; the second element does not count.
    assert_eq!((m.matrices[1].apply(2), m.matrices[1].apply(8), m.matrices[1].columns), (3, 0, 4));
    for (body, message) in [
        ("rows = [\"x\"]", "a row is hexadecimal numbers"),
        ("rows = [\"4\", \"1\"]", "no matrix of at most 64 rows of 2 bits"),
        ("rows = []", "no matrix"),
        ("rows = [\"1 2\"]", "no matrix"),
        ("polynomial = 7\nrows = [\"4\"]", "over GF(2^2)"),
        ("polynomial = 0x11b\nrows = [\"1 1\", \"1\"]", "its rows differ in length"),
        ("polynomial = 0x101\nrows = [\"1\"]", "0x101 is a product of polynomials"),
        ("polynomial = 7\nrows = [\"1\"]\ncolumns = 2", "as many columns as its rows have elements"),
    ] {
        let error = with(&format!("[matrices.m]\n{body}\n")).unwrap_err();
        assert!(error.contains(message), "{body}: {error}");
    }
}
