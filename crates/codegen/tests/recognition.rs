//! Tables and matrices of instructions, found in what programs compute: what
//! matches, what must not, and that the program with the instruction does the
//! same as the one without.

use ciphermill_recognise::Recogniser;
use ciphermill_codegen::{Options, compile};
use ciphermill_machine::{Machine, load_from_dir};
use ciphermill_program::Program;
use ciphermill_sim::{SimOptions, Simulator};
use std::path::Path;
use std::sync::Arc;

/// Where the tests' constants stand.
const TABLE: u32 = 65536;

fn machine(name: &str, with: &[&str]) -> Machine {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let with: Vec<String> = with.iter().map(|w| w.to_string()).collect();
    load_from_dir(&root, name, &with, &[], &[]).expect("the machine file is good")
}

/// A table of a machine, as bytes.
fn table(name: &str) -> Vec<u8> {
    let m = machine("leon2", &["sbox"]);
    let found = m.tables.iter().find(|t| t.name == name).expect("the extension has the table");
    found.values.iter().map(|&v| v as u8).collect()
}

/// The S-box times one column of MixColumns, as a table of words.
fn round_table() -> Vec<u8> {
    let double = |x: u8| x << 1 ^ if x & 0x80 != 0 { 0x1b } else { 0 };
    table("aes_sbox").into_iter().flat_map(|s| [double(s), s, s, double(s) ^ s]).collect()
}

/// Function `f` with `constants` (in a segment of that name) from [`TABLE`] on.
fn program(machine_name: &str, with: &[&str], segment: &str, constants: &[u8], body: &str) -> Arc<Program> {
    let bytes: String = constants.iter().map(|b| format!("\\{b:02x}")).collect();
    let module = format!("(module (memory 2) (data ${segment} (i32.const {TABLE}) \"{bytes}\") {body})");
    let wasm = wat::parse_str(module).expect("the test's module is well formed");
    let mut module = ciphermill_load::load(&wasm).expect("the test's module loads");
    ciphermill_opt::optimise(&mut module, &ciphermill_opt::Options::default()).expect("the module optimises");
    let options = Options { level: 2, ..Options::default() };
    Arc::new(compile(&module, Arc::new(machine(machine_name, with)), &options).expect("the module compiles"))
}

/// How often each of `names` occurs.
fn count(program: &Program, names: &[&str]) -> Vec<usize> {
    let insts = || program.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.bundles).flat_map(|b| &b.insts);
    let name = |i: &ciphermill_program::Inst| program.machine.instrs[usize::from(i.instr.0)].name.clone();
    names.iter().map(|n| insts().filter(|i| name(i) == *n).count()).collect()
}

fn results(program: Arc<Program>, args: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let mut sim = Simulator::new(program, SimOptions::default()).expect("the program fits its machine");
    args.iter().map(|a| sim.call_export("f", a).expect("the call returns")).collect()
}

fn words(n: usize) -> Vec<Vec<u64>> {
    let mut x = 0x1234_5678_9abc_def1u64;
    let mut next = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        x >> 32
    };
    (0..64).map(|_| (0..n).map(|_| next()).collect()).collect()
}

/// Check how often `instr` is used, and that it makes no other results.
#[track_caller]
fn check(on: &str, with: &[&str], constants: &[u8], params: usize, body: &str, uses: &[(&str, usize)]) {
    check_in("rodata", on, with, constants, params, body, uses);
}

#[track_caller]
fn check_in(
    segment: &str,
    on: &str,
    with: &[&str],
    constants: &[u8],
    params: usize,
    body: &str,
    uses: &[(&str, usize)],
) {
    let segment = format!(".{segment}");
    let types = " i32".repeat(params);
    let body = format!("(func (export \"f\") (param{types}) (result i32) (local i32 i32 i32 i32) {body})");
    let found = program(on, with, &segment, constants, &body);
    let names: Vec<&str> = uses.iter().map(|u| u.0).collect();
    let expected: Vec<usize> = uses.iter().map(|u| u.1).collect();
    assert_eq!(count(&found, &names), expected, "{names:?} in\n{}", ciphermill_program::asm::print(&found));
    let plain = program(on, &[], &segment, constants, &body);
    assert_eq!(results(found, &words(params)), results(plain, &words(params)), "{body}");
}

fn byte(x: u32, k: u32) -> String {
    format!("(i32.and (i32.shr_u (local.get {x}) (i32.const {})) (i32.const 255))", 8 * k)
}

/// Entry `index` of the table of bytes, moved to byte `to`.
fn entry(index: &str, to: u32) -> String {
    format!("(i32.shl (i32.load8_u offset={TABLE} {index}) (i32.const {}))", 8 * to)
}

/// SubBytes and ShiftRows of one column.
fn column() -> String {
    let at = |k: u32| entry(&byte(k, k), k);
    format!("(i32.or (i32.or {} {}) (i32.or {} {}))", at(0), at(1), at(2), at(3))
}

#[test]
fn four_lookups_are_four_insertions_and_no_load() {
    let uses = [("sbox", 4), ("sbox_inverse", 0), ("ldub_reg", 0), ("ldub", 0), ("sll_imm", 0)];
    check("leon2", &["sbox"], &table("aes_sbox"), 4, &column(), &uses);
    let uses = [("sbox", 0), ("sbox_inverse", 4), ("ldub_reg", 0), ("ldub", 0)];
    check("leon2", &["sbox"], &table("aes_inverse_sbox"), 4, &column(), &uses);
}

#[test]
fn a_single_byte_clears_the_others() {
    check("leon2", &["sbox"], &table("aes_sbox"), 1, &entry(&byte(0, 2), 0), &[("sbox", 1)]);
    let with_key = format!("(i32.xor (local.get 1) {})", entry(&byte(0, 3), 1));
    check("leon2", &["sbox"], &table("aes_sbox"), 2, &with_key, &[("sbox", 1)]);
}

#[test]
fn another_table_is_no_match() {
    for at in [0, 77, 255] {
        let mut wrong = table("aes_sbox");
        wrong[at] ^= 0x10;
        check("leon2", &["sbox"], &wrong, 4, &column(), &[("sbox", 0)]);
    }
}

#[test]
fn an_index_beyond_the_table_is_no_match() {
    let mut long = table("aes_sbox");
    long.extend(table("aes_sbox"));
    let index = "(i32.and (local.get 0) (i32.const 511))";
    check("leon2", &["sbox"], &long, 1, &entry(index, 0), &[("sbox", 0)]);
    // Seven bits of a byte are no byte, nor are eight bits across two.
    let index = "(i32.and (local.get 0) (i32.const 254))";
    check("leon2", &["sbox"], &long, 1, &entry(index, 0), &[("sbox", 1)]);
    let index = "(i32.and (i32.shr_u (local.get 0) (i32.const 4)) (i32.const 255))";
    check("leon2", &["sbox"], &long, 1, &entry(index, 0), &[("sbox", 1)]);
}

#[test]
fn a_table_that_may_change_is_no_match() {
    check_in("data", "leon2", &["sbox"], &table("aes_sbox"), 4, &column(), &[("sbox", 0)]);
}

#[test]
fn a_table_too_short_is_no_match() {
    // The index cannot leave the table of the program, which is a byte shorter.
    let body = entry("(i32.and (local.get 0) (i32.const 127))", 0);
    check("leon2", &["sbox"], &table("aes_sbox")[..255], 1, &body, &[("sbox", 0)]);
}

/// MixColumns as the `compact` variant of Rijndael has it; `poly` is 0x1b there.
fn mix(poly: u32) -> String {
    format!(
        "(local.set 1 (i32.rotr (local.get 0) (i32.const 8)))
        (local.set 2 (i32.xor (local.get 0) (local.get 1)))
        (i32.xor (i32.xor (i32.xor
          (i32.shl (i32.and (local.get 2) (i32.const 0x7f7f7f7f)) (i32.const 1))
          (i32.mul (i32.and (i32.shr_u (local.get 2) (i32.const 7)) (i32.const 0x01010101)) (i32.const {poly})))
          (local.get 1))
          (i32.rotr (local.get 2) (i32.const 16)))"
    )
}

#[test]
fn packed_arithmetic_is_the_matrix() {
    check("leon2", &["mixcol4"], &[], 1, &mix(0x1b), &[("mixcol4", 1), ("and_imm", 0), ("sll_imm", 0), ("xor", 0)]);
    // A key added in the middle of the sum changes nothing.
    let keyed = mix(0x1b).replacen("(local.get 1))\n", "(i32.xor (local.get 1) (i32.load (i32.const 64))))\n", 1);
    check("leon2", &["mixcol4"], &[], 1, &keyed, &[("mixcol4", 1)]);
}

#[test]
fn another_polynomial_is_no_match() {
    check("leon2", &["mixcol4"], &[], 1, &mix(0x1d), &[("mixcol4", 0)]);
    check("leon2", &["mixcol4"], &[], 1, &mix(0x1a), &[("mixcol4", 0)]);
    let carries = mix(0x1b).replace("(i32.const 0x01010101)", "(i32.const 0x01010103)");
    check("leon2", &["mixcol4"], &[], 1, &carries, &[("mixcol4", 0)]);
}

#[test]
fn a_product_behind_a_rotate_pays_only_if_it_is_whole() {
    let half = "(i32.xor (local.get 0) (i32.rotr (local.get 0) (i32.const 8)))";
    check("leon2", &["mixcol4"], &[], 1, half, &[("mixcol4", 0)]);
}

#[test]
fn tables_of_words_are_the_box_and_the_matrix() {
    let word = |x: u32, turn: u32| {
        let at = format!("(i32.shl {} (i32.const 2))", byte(x, turn));
        format!("(i32.rotl (i32.load offset={TABLE} {at}) (i32.const {}))", 8 * turn)
    };
    let sum = format!(
        "(i32.xor (i32.xor {} {}) (i32.xor {} (i32.xor {} (local.get 4))))",
        word(0, 0),
        word(1, 1),
        word(2, 2),
        word(3, 3)
    );
    check("rv32", &["zkne"], &round_table(), 5, &sum, &[("aes32esmi", 4), ("lw", 0), ("xor", 0)]);
    let mut wrong = round_table();
    wrong[1020] ^= 1;
    check("rv32", &["zkne"], &wrong, 5, &sum, &[("aes32esmi", 0)]);
    // A part of an entry is looked up whole.
    let plain = format!("(i32.xor (local.get 1) (i32.and {} (i32.const 0xff00)))", word(0, 0));
    check("rv32", &["zkne"], &round_table(), 2, &plain, &[("aes32esmi", 1), ("lw", 0)]);
    check("rv32", &["zkne"], &table("aes_sbox"), 4, &column(), &[("aes32esi", 4), ("lbu", 0)]);
}

#[test]
fn tables_of_words_are_gathered_before_the_matrix() {
    let word = |k: u32| {
        let at = format!("(i32.shl {} (i32.const 2))", byte(k, k));
        format!("(i32.rotl (i32.load offset={TABLE} {at}) (i32.const {}))", 8 * k)
    };
    let sum = [0, 1, 2, 3].map(word).into_iter().fold("(local.get 4)".to_owned(), |s, w| format!("(i32.xor {s} {w})"));
    let uses = [("sbox", 4), ("mixcol4", 1), ("ld_reg", 0), ("ld", 0), ("xor", 1)];
    check("leon2", &["sbox", "mixcol4"], &round_table(), 5, &sum, &uses);
    check("leon2", &["mixcol4"], &round_table(), 5, &sum, &[("mixcol4", 0)]);
    let mut wrong = round_table();
    wrong[3] ^= 0x80;
    check("leon2", &["sbox", "mixcol4"], &wrong, 5, &sum, &[("mixcol4", 0), ("sbox", 0)]);
}

#[test]
fn a_box_with_arithmetic_behind_it_is_tables_of_words() {
    let local = |text: String| {
        (0..3).rev().fold(text, |t, i| {
            t.replace(&format!("(local.get {i})"), &format!("(local.get {})", i + 4))
                .replace(&format!("(local.set {i} "), &format!("(local.set {} ", i + 4))
        })
    };
    let mixed = local(mix(0x1b));
    let keyed = mixed.replacen("(local.get 5))\n", "(i32.xor (local.get 5) (i32.load (i32.const 64))))\n", 1);
    assert_ne!(mixed, keyed);
    for mixed in [mixed, keyed] {
        let body = format!("(local.set 4 {}) {mixed}", column());
        check("rv32", &["zkne"], &table("aes_sbox"), 4, &body, &[("aes32esmi", 4), ("lbu", 0), ("slli", 0)]);
    }
}

#[test]
fn bytes_of_two_words_are_halves_of_a_product() {
    let text = column();
    // MixColumns of the column held in a local.
    let mixed = (0..3).rev().fold(mix(0x1b), |t, i| {
        t.replace(&format!("(local.get {i})"), &format!("(local.get {})", i + 4))
            .replace(&format!("(local.set {i} "), &format!("(local.set {} ", i + 4))
    });
    let body = format!("(local.set 4 {text}) {mixed}");
    let uses = [("sbox4s", 2), ("mixcol4s", 1), ("ldub", 0), ("and", 0), ("sll_imm", 0)];
    check("leon2", &["sbox4s", "mixcol4s"], &table("aes_sbox"), 4, &body, &uses);
    // Without the S-boxes it is the matrix of one word, given twice.
    check("leon2", &["mixcol4s"], &[], 1, &mix(0x1b), &[("mixcol4s", 1), ("sll_imm", 0)]);
    // A wrong table leaves everything as it was.
    let mut wrong = table("aes_sbox");
    wrong[200] ^= 4;
    check("leon2", &["sbox4s"], &wrong, 4, &text, &[("sbox4s", 0)]);
}

#[test]
fn what_is_too_much_is_masked() {
    check("leon2", &["sbox4s"], &table("aes_sbox"), 4, &column(), &[("sbox4s", 2), ("ldub", 0), ("ldub_reg", 0)]);
    check("leon2", &["sbox4"], &table("aes_sbox"), 4, &column(), &[("sbox4", 4), ("ldub", 0), ("ldub_reg", 0)]);
    // A single byte from one place to another: the word is rotated, and cut.
    let moved = entry(&byte(0, 2), 0);
    check("leon2", &["sbox4"], &table("aes_sbox"), 1, &moved, &[("sbox4", 1), ("ldub", 0), ("ldub_reg", 0)]);
    // RotWord and SubWord.
    let at = |from: u32, to: u32| entry(&byte(0, from), to);
    let word = format!("(i32.or (i32.or {} {}) (i32.or {} {}))", at(1, 0), at(2, 1), at(3, 2), at(0, 3));
    check("leon2", &["sbox4r"], &table("aes_sbox"), 1, &word, &[("sbox4r", 1), ("and_imm", 0)]);
    check("leon2", &["sbox4s"], &table("aes_sbox"), 1, &word, &[("sbox4s", 1), ("and_imm", 0)]);
}

/// The halves of what one instruction makes, each cut from it where it is wanted.
#[test]
fn halves_of_a_word_are_cut_from_one_instruction() {
    let at = |word: u32, from: u32, to: u32| entry(&byte(word, from), to);
    let lower = format!("(i32.or {} {})", at(0, 0, 0), at(0, 3, 1));
    let upper = |x: u32| format!("(i32.mul (i32.or {} {}) (i32.const 3))", at(x, 2, 0), at(1, 1, 1));
    let sum = |x: u32| format!("(i32.add {lower} {})", upper(x));
    let uses = |n: usize| [("saes_v5_esrsub_lo", n), ("lbu", 0)];
    check("rv32", &["aes_v5"], &table("aes_sbox"), 3, &sum(0), &uses(1));
    check("rv32", &["aes_v5"], &table("aes_sbox"), 3, &sum(2), &uses(2));
}

/// What the matrix of an extension's instruction makes of each byte, as words.
fn linear_table(extension: &str, name: &str) -> Vec<u8> {
    let m = machine("rv32", &[extension]);
    let instr = m.instrs.iter().find(|i| i.name == name).expect("the extension has the instruction");
    let [ciphermill_machine::sem::Stmt::Assign { value, .. }] = &instr.semantics[..] else { panic!("one result") };
    let mut matrix = None;
    value.walk(&mut |e| {
        if let ciphermill_machine::sem::Expr::Linear { matrix: m, .. } = e {
            matrix = Some(m.clone());
        }
    });
    let matrix = matrix.expect("it has a matrix");
    (0..256u64).flat_map(|x| (matrix.apply(x) as u32).to_le_bytes()).collect()
}

#[test]
fn a_table_that_is_linear_is_part_of_a_matrix() {
    let with = &["sosemanuk_alpha"];
    let table = linear_table("sosemanuk_alpha", "times_alpha");
    let product = |x: u32| {
        let at = format!("(i32.shl (i32.shr_u (local.get {x}) (i32.const 24)) (i32.const 2))");
        format!("(i32.xor (i32.shl (local.get {x}) (i32.const 8)) (i32.load offset={TABLE} {at}))")
    };
    check("rv32", with, &table, 1, &product(0), &[("times_alpha", 1), ("lw", 0), ("slli", 0)]);
    // Two products in one sum, with a word that is none.
    let sum = format!("(i32.xor (i32.xor {} (local.get 2)) {})", product(0), product(1));
    check("rv32", with, &table, 3, &sum, &[("times_alpha", 2), ("lw", 0), ("xor", 2)]);
    let mut wrong = table;
    wrong[77] ^= 1;
    check("rv32", with, &wrong, 1, &product(0), &[("times_alpha", 0)]);
}

/// MixColumns on the upper two rows of two columns, from them and the lower
/// ones, behind SubBytes with ShiftRows.
#[test]
fn bytes_of_two_words_are_a_matrix_of_both() {
    let quadrant = |x: u32, y: u32| {
        let at = |word: u32, from: u32, to: u32| entry(&byte(word, from), to);
        format!("(i32.or (i32.or {} {}) (i32.or {} {}))", at(x, 0, 0), at(x, 3, 1), at(x, 2, 2), at(y, 1, 3))
    };
    let next = |x: &str, y: &str| {
        format!(
            "(i32.or (i32.and (i32.shr_u {x} (i32.const 8)) (i32.const 0x00ff00ff))
               (i32.and (i32.shl {y} (i32.const 8)) (i32.const 0xff00ff00)))"
        )
    };
    let (u, l, n, t) = ("(local.get 4)", "(local.get 5)", "(local.get 6)", "(local.get 7)");
    let mixed = |poly: u32| {
        format!(
            "(local.set 4 {}) (local.set 5 {}) (local.set 6 {}) (local.set 7 (i32.xor {u} {n}))
             (i32.xor (i32.xor (i32.xor (i32.shl (i32.and {t} (i32.const 0x7f7f7f7f)) (i32.const 1))
               (i32.mul (i32.and (i32.shr_u {t} (i32.const 7)) (i32.const 0x01010101)) (i32.const {poly})))
               {n}) (i32.xor {l} {}))",
            quadrant(0, 1),
            quadrant(3, 2),
            next(u, l),
            next(l, u),
        )
    };
    let uses = [("saes_v5_esrsub_lo", 2), ("saes_v5_emix", 1), ("lbu", 0), ("xor", 0)];
    check("rv32", &["aes_v5"], &table("aes_sbox"), 4, &mixed(0x1b), &uses);
    check("rv32", &["aes_v5"], &table("aes_sbox"), 4, &mixed(0x1d), &[("saes_v5_emix", 0)]);
}

/// Upper byte of each half of `x` and lower one of `y`, each in the other's place.
fn next_row(x: &str, y: &str) -> String {
    let down = format!("(i32.and (i32.shr_u {x} (i32.const 8)) (i32.const 0x00ff00ff))");
    let up = format!("(i32.and (i32.shl {y} (i32.const 8)) (i32.const 0xff00ff00))");
    format!("(i32.or {down} {up})")
}

/// Each byte times x, modulo a polynomial without its top term.
fn doubled(x: &str, poly: u32) -> String {
    let low = format!("(i32.shl (i32.and {x} (i32.const 0x7f7f7f7f)) (i32.const 1))");
    let top = format!("(i32.and (i32.shr_u {x} (i32.const 7)) (i32.const 0x01010101))");
    format!("(i32.xor {low} (i32.mul {top} (i32.const {poly})))")
}

#[test]
fn a_matrix_of_two_words_is_found_without_tables() {
    let mixed = |poly: u32| {
        let (x, y) = ("(local.get 0)", "(local.get 1)");
        let (next, sum) = ("(local.get 3)", "(local.get 4)");
        format!(
            "(local.set 3 {}) (local.set 4 (i32.xor {x} {next}))
             (i32.xor (i32.xor (i32.xor {} {next}) (i32.xor {y} {})) (local.get 2))",
            next_row(x, y),
            doubled(sum, poly),
            next_row(y, x)
        )
    };
    check("rv32", &["aes_v5"], &[], 3, &mixed(0x1b), &[("saes_v5_emix", 1), ("xor", 1), ("slli", 0)]);
    check("rv32", &["aes_v5"], &[], 3, &mixed(0x1d), &[("saes_v5_emix", 0)]);
}

#[test]
fn bytes_in_a_word_are_multiplied_as_that_word() {
    // The word's neighbour is made of the bytes themselves.
    let byte = |n: u32| format!("(i32.load8_u offset={TABLE} (i32.and (local.get {n}) (i32.const 255)))");
    let word = |order: [u32; 4]| {
        let at = |(to, from): (usize, u32)| format!("(i32.shl {} (i32.const {}))", byte(from), 8 * to);
        let [a, b, c, d]: [String; 4] = std::array::from_fn(|to| at((to, order[to])));
        format!("(i32.or (i32.or {a} {b}) (i32.or {c} {d}))")
    };
    let mixed = |poly: u32| {
        let (pair, next) = ("(local.get 4)", "(local.get 5)");
        format!(
            "(local.set 5 {}) (local.set 4 (i32.xor {} {next}))
             (i32.xor (i32.xor {} {next}) (i32.rotr {pair} (i32.const 16)))",
            word([1, 2, 3, 0]),
            word([0, 1, 2, 3]),
            doubled(pair, poly)
        )
    };
    let check = |poly, times| {
        check_in("data", "leon2", &["mixcol4"], &table("aes_sbox"), 4, &mixed(poly), &[("mixcol4", times)]);
    };
    check(0x1b, 1);
    check(0x1d, 0);
}

#[test]
fn what_is_added_before_a_product_of_halves_is_added_to_both() {
    let mixed = (0..3).rev().fold(mix(0x1b), |t, i| {
        t.replace(&format!("(local.get {i})"), &format!("(local.get {})", i + 5))
            .replace(&format!("(local.set {i} "), &format!("(local.set {} ", i + 5))
    });
    let body = format!("(local.set 5 (i32.xor {} (local.get 4))) {mixed}", column());
    let uses = [("sbox4s", 2), ("mixcol4s", 1), ("xor", 2), ("and", 0), ("ldub", 0)];
    check("leon2", &["sbox4s", "mixcol4s"], &table("aes_sbox"), 5, &body, &uses);
}

#[test]
fn a_word_of_tables_is_turned_where_its_bytes_cannot_be() {
    // RotWord and SubWord, with an instruction that leaves bytes where they are.
    let at = |from: u32, to: u32| entry(&byte(0, from), to);
    let word = format!("(i32.or (i32.or {} {}) (i32.or {} {}))", at(1, 0), at(2, 1), at(3, 2), at(0, 3));
    check("rv32", &["aes_v3"], &table("aes_sbox"), 1, &word, &[("saes_v3_encs", 4), ("lbu", 0)]);
}

/// `body` on local 0 so often that a matrix is worth loading.
fn repeated(body: &str) -> String {
    format!(
        "(local.set 3 (i32.const 20))
        (loop (local.set 0 {body})
          (br_if 0 (local.tee 3 (i32.sub (local.get 3) (i32.const 1)))))
        (local.get 0)"
    )
}

/// [`mix`] twice, as an expression: a matrix, too.
fn mix_expression(poly: u32) -> String {
    let text = mix(poly);
    let (sets, sum) = text.split_at(text.find("(i32.xor (i32.xor (i32.xor").expect("the sum of the text above"));
    format!("(block (result i32) {sets} (local.set 0 {sum}) {sets} {sum})")
}

#[test]
fn any_matrix_is_loaded_and_used() {
    for poly in [0x1b, 0x1d, 0xf5] {
        let body = repeated(&mix_expression(poly));
        let uses = [("mixcolm", 1), ("mixcolm_row", 32), ("and_imm", 0)];
        check("leon2", &["mixcolm"], &[], 1, &body, &uses);
        check("rv32", &["mixcolm_rv32"], &[], 1, &body, &uses[..2]);
    }
    // Once is not worth it.
    check("leon2", &["mixcolm"], &[], 1, &mix(0x1b), &[("mixcolm", 0), ("mixcolm_row", 0)]);
}

#[test]
fn a_matrix_is_loaded_where_the_program_is_entered() {
    let inner = repeated(&mix_expression(0x1b));
    let module = |callee: &str| {
        format!(
            "(func $inner {callee} (param i32) (result i32) (local i32 i32 i32) {inner})
            (func (export \"f\") (param i32) (result i32) (local i32 i32 i32)
              (local.set 1 (i32.const 3))
              (loop (local.set 0 (call $inner (local.get 0)))
                (br_if 0 (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
              (i32.add (local.get 0) (call $inner (local.get 0))))"
        )
    };
    for (callee, loaded) in [("", 32), ("(export \"g\")", 64)] {
        let found = program("leon2", &["mixcolm"], ".rodata", &[], &module(callee));
        assert_eq!(count(&found, &["mixcolm_row"]), [loaded], "{}", ciphermill_program::asm::print(&found));
        let plain = program("leon2", &[], ".rodata", &[], &module(callee));
        assert_eq!(results(found, &words(1)), results(plain, &words(1)));
    }
}

#[test]
fn machines_without_such_instructions_have_nothing_to_look_for() {
    let templates = |name: &str, with: &[&str]| Recogniser::new(&machine(name, with)).1.len();
    for name in ["leon2", "rv32", "c6201", "clapp"] {
        assert_eq!(templates(name, &[]), 0, "{name}");
    }
    // GMPY4.
    assert_eq!(templates("c64x", &[]), 1);
    // Each place of the byte in source and result, with and without the rest of
    // the result, both directions.
    assert_eq!(templates("leon2", &["sbox"]), 2 * 2 * 16);
    assert_eq!(templates("leon2", &["mixcol4"]), 2);
    assert_eq!(templates("leon2", &["sbox4s", "mixcol4s"]), 4);
    assert_eq!(templates("leon2", &["mixcolm"]), 1);
    assert_eq!(templates("rv32", &["zkne", "zknd"]), 4 * 4);
}
