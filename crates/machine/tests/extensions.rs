//! The instruction-set extensions that come with the project: AES computed
//! with nothing but their instructions gives the example of FIPS 197.

use ciphermill_machine::eval::{Memory, Outcome, Value, execute};
use ciphermill_machine::gf2::BitMatrix;
use ciphermill_machine::{FileError, Machine, NamedText, OperandKind, Reg, Request, load as load_texts};
use std::path::PathBuf;

fn text(path: &str) -> NamedText {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    NamedText::new(path, std::fs::read_to_string(root.join(path)).unwrap())
}

fn try_load(machine: &str, with: &[&str]) -> Result<Machine, FileError> {
    load_texts(&Request {
        machine: text(&format!("machines/{machine}.toml")),
        parents: &|name| Some(text(&format!("machines/{name}.toml"))),
        vocabulary: &|| {
            let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../extensions");
            ciphermill_machine::names_in(&root).iter().map(|n| text(&format!("extensions/{n}.toml"))).collect()
        },
        extensions: with.iter().map(|name| text(&format!("extensions/{name}.toml"))).collect(),
        without: vec![],
        settings: vec![],
        rules: text("machines/rules.toml"),
    })
}

fn load(machine: &str, with: &[&str]) -> Machine {
    try_load(machine, with).unwrap_or_else(|e| panic!("{with:?}: {e}"))
}

struct NoMemory;

impl Memory for NoMemory {
    fn load(&self, _: u64, _: u8) -> Option<u64> {
        None
    }
    fn store(&mut self, _: u64, _: u8, _: u64) -> Option<()> {
        None
    }
}

/// The first result of an instruction, given its other operands in order; a
/// result that is read too is given as well.
fn op(m: &Machine, name: &str, args: &[u64]) -> u64 {
    let instr = m.instr(m.instr_named(name).unwrap_or_else(|| panic!("no {name}")));
    let mut regs = vec![0; m.regs.len()];
    let mut args = args.iter().copied();
    let mut values = Vec::new();
    let mut result = 0;
    for (i, o) in instr.operands.iter().enumerate() {
        let OperandKind::Reg { def, used, .. } = o.kind else {
            values.push(Value::Imm(args.next().unwrap() as i64));
            continue;
        };
        let r = i + 5;
        if used {
            regs[r] = args.next().unwrap();
        }
        if def {
            result = r;
        }
        values.push(Value::Reg(Reg(r as u16)));
    }
    assert_eq!(args.next(), None, "{name}");
    let outcome = execute(m, &instr.semantics, &values, &mut regs, 0, &mut NoMemory);
    assert_eq!(outcome, Some(Outcome::Next), "{name}");
    regs[result]
}

type Columns = [u64; 4];

/// FIPS 197, C.1: the input.
const PLAIN: Columns = [0x3322_1100, 0x7766_5544, 0xbbaa_9988, 0xffee_ddcc];
/// FIPS 197, C.1: the output.
const CIPHER: Columns = [0xd8e0_c469, 0x3004_7b6a, 0x80b7_cdd8, 0x5ac5_b470];

/// The round keys of FIPS 197, C.1, by the definition and by sbox4r.
fn round_keys(m: &Machine) -> Vec<Columns> {
    let mut words: Vec<u64> = vec![0x0302_0100, 0x0706_0504, 0x0b0a_0908, 0x0f0e_0d0c];
    let mut constant = 1u64;
    for i in 4..44 {
        let mut t = words[i - 1];
        if i % 4 == 0 {
            t = op(m, "sbox4r", &[t]) ^ constant;
            constant = constant << 1 ^ if constant & 0x80 != 0 { 0x11b } else { 0 };
        }
        words.push(words[i - 4] ^ t);
    }
    words.chunks(4).map(|c| [c[0], c[1], c[2], c[3]]).collect()
}

fn add(a: Columns, b: Columns) -> Columns {
    std::array::from_fn(|i| a[i] ^ b[i])
}

/// One (inverse) round without key: state, and whether columns are mixed.
type Round<'a> = &'a dyn Fn(Columns, bool) -> Columns;

fn encrypt(keys: &[Columns], round: Round) -> Columns {
    let start = add(PLAIN, keys[0]);
    (1..11).fold(start, |state, r| add(round(state, r < 10), keys[r]))
}

/// The equivalent inverse cipher: `mix` turns round keys.
fn decrypt(keys: &[Columns], round: Round, mix: &dyn Fn(u64) -> u64) -> Columns {
    let start = add(CIPHER, keys[10]);
    (0..10).rev().fold(start, |state, r| {
        let key = if r > 0 { keys[r].map(mix) } else { keys[r] };
        add(round(state, r > 0), key)
    })
}

/// One byte a time: SubBytes and ShiftRows by `sbox`, then MixColumns.
#[test]
fn sbox_and_mixcol4() {
    let m = load("leon2", &["sbox", "sbox4", "sbox4r", "mixcol4"]);
    let keys = round_keys(&m);
    let round = |name: &'static str, mix: &'static str, step: usize| {
        let m = &m;
        move |s: Columns, last: bool| -> Columns {
            std::array::from_fn(|c| {
                // The other bytes of rd stay: start from noise.
                let bytes = (0..4).fold(0x5a5a_5a5a, |rd, row: usize| {
                    op(m, name, &[s[(c + step * row) % 4], row as u64, row as u64, rd])
                });
                if last { op(m, mix, &[bytes]) } else { bytes }
            })
        }
    };
    assert_eq!(encrypt(&keys, &round("sbox", "mixcol4", 1)), CIPHER);
    let mix = |key| op(&m, "mixcol4_inverse", &[key]);
    assert_eq!(decrypt(&keys, &round("sbox_inverse", "mixcol4_inverse", 3), &mix), PLAIN);
    assert_eq!(op(&m, "sbox4_inverse", &[op(&m, "sbox4", &[0x0153_ff80])]), 0x0153_ff80);
    assert_eq!(op(&m, "sbox4", &[0x0153_ff80]), 0x7ced_16cd);
}

/// Two sources: ShiftRows comes with the choice of words.
fn two_sources(m: &Machine, names: [&str; 4]) {
    let keys = round_keys(&load("leon2", &["sbox4r"]));
    let [encs, encm, decs, decm] = names;
    // A mix takes bytes 0, 1 of one word and 2, 3 of the other, an S-box
    // 0, 2 and 1, 3: together any byte c + row (enc) or c - row (dec).
    let forward = |s: Columns, mixed: bool| -> Columns {
        let t: Columns = std::array::from_fn(|c| op(m, encs, &[s[c], s[(c + 1) % 4]]));
        std::array::from_fn(|c| match mixed {
            true => op(m, encm, &[t[c], t[(c + 2) % 4]]),
            false => t[c] & 0xffff | t[(c + 2) % 4] & 0xffff_0000,
        })
    };
    assert_eq!(encrypt(&keys, &forward), CIPHER);
    let backward = |s: Columns, mixed: bool| -> Columns {
        let t: Columns = std::array::from_fn(|c| op(m, decs, &[s[c], s[(c + 3) % 4]]));
        std::array::from_fn(|c| match mixed {
            true => op(m, decm, &[t[c], t[(c + 2) % 4]]),
            false => t[c] & 0xffff | t[(c + 2) % 4] & 0xffff_0000,
        })
    };
    let mix = |key| op(m, decm, &[key, key]);
    assert_eq!(decrypt(&keys, &backward, &mix), PLAIN);
}

#[test]
fn two_sources_at_once() {
    let leon2 = load("leon2", &["sbox4s", "mixcol4s"]);
    two_sources(&leon2, ["sbox4s", "mixcol4s", "sbox4s_inverse", "mixcol4s_inverse"]);
    let v2 = load("rv32", &["aes_v2"]);
    two_sources(&v2, ["saes_v2_encs", "saes_v2_encm", "saes_v2_decs", "saes_v2_decm"]);
}

#[test]
fn variant_1() {
    let m = load("rv32", &["aes_v1"]);
    let keys = round_keys(&load("leon2", &["sbox4r"]));
    let round = |sub: &'static str, mix: &'static str, step: usize| {
        let m = &m;
        move |s: Columns, mixed: bool| -> Columns {
            let t = s.map(|column| op(m, sub, &[column]));
            let shifted = |c: usize| (0..4).fold(0, |w, row| w | t[(c + step * row) % 4] & 0xff << (8 * row));
            let columns: Columns = std::array::from_fn(shifted);
            if mixed { columns.map(|c| op(m, mix, &[c])) } else { columns }
        }
    };
    assert_eq!(encrypt(&keys, &round("saes_v1_encs", "saes_v1_encm", 1)), CIPHER);
    let mix = |key| op(&m, "saes_v1_decm", &[key]);
    assert_eq!(decrypt(&keys, &round("saes_v1_decs", "saes_v1_decm", 3), &mix), PLAIN);
}

/// A byte a time; `swap` says that the sum is the second source.
fn byte_by_byte(m: &Machine, names: [&str; 4], swap: bool) {
    let keys = round_keys(&load("leon2", &["sbox4r"]));
    let round = |one: String, last: String, step: usize| {
        move |s: Columns, mixed: bool| -> Columns {
            let name = if mixed { &one } else { &last };
            std::array::from_fn(|c| {
                (0..4).fold(0, |sum, row: usize| {
                    let byte = s[(c + step * row) % 4];
                    op(m, name, &if swap { [byte, sum, row as u64] } else { [sum, byte, row as u64] })
                })
            })
        }
    };
    let [esm, es, dsm, ds] = names.map(str::to_owned);
    assert_eq!(encrypt(&keys, &round(esm, es.clone(), 1)), CIPHER);
    let mix = |key: u64| {
        (0..4).fold(0, |sum, row: u64| {
            let byte = if swap { [key, 0, row] } else { [0, key, row] };
            let boxed = op(m, &es, &byte);
            op(m, &dsm, &if swap { [boxed, sum, row] } else { [sum, boxed, row] })
        })
    };
    assert_eq!(decrypt(&keys, &round(dsm.clone(), ds, 3), &mix), PLAIN);
}

#[test]
fn variant_3_and_aes32() {
    let v3 = load("rv32", &["aes_v3"]);
    byte_by_byte(&v3, ["saes_v3_encsm", "saes_v3_encs", "saes_v3_decsm", "saes_v3_decs"], true);
    let zkn = load("rv32", &["zkne", "zknd"]);
    byte_by_byte(&zkn, ["aes32esmi", "aes32esi", "aes32dsmi", "aes32dsi"], false);
}

#[test]
fn variant_4() {
    let m = load("rv64", &["aes_v4"]);
    let keys = round_keys(&load("leon2", &["sbox4r"]));
    let round = |mixed_name: &'static str, last_name: &'static str| {
        let m = &m;
        move |s: Columns, mixed: bool| -> Columns {
            let name = if mixed { mixed_name } else { last_name };
            let (a, b) = (s[0] | s[1] << 32, s[2] | s[3] << 32);
            let (c, d) = (op(m, name, &[a, b]), op(m, name, &[b, a]));
            [c & 0xffff_ffff, c >> 32, d & 0xffff_ffff, d >> 32]
        }
    };
    assert_eq!(encrypt(&keys, &round("saes_v4_encsm", "saes_v4_encs")), CIPHER);
    let mix = |key| op(&m, "saes_v4_imix", &[key]);
    assert_eq!(decrypt(&keys, &round("saes_v4_decsm", "saes_v4_decs"), &mix), PLAIN);
    let keyed = op(&m, "saes_v4_sub", &[0x1234_5678_0153_ff80]);
    assert_eq!(keyed, 0x1234_5678_7ced_16cd);
}

/// Columns to quadrants; the same exchange of half words goes back.
fn quadrants(s: Columns) -> Columns {
    let pair = |a: u64, b: u64, shift: u32| (a >> shift & 0xffff) | (b >> shift & 0xffff) << 16;
    [pair(s[0], s[1], 0), pair(s[2], s[3], 0), pair(s[0], s[1], 16), pair(s[2], s[3], 16)]
}

fn columns([a, b, c, d]: Columns) -> Columns {
    let pair = |up: u64, low: u64, shift: u32| (up >> shift & 0xffff) | (low >> shift & 0xffff) << 16;
    [pair(a, c, 0), pair(a, c, 16), pair(b, d, 0), pair(b, d, 16)]
}

#[test]
fn variant_5() {
    let m = load("rv32", &["aes_v5"]);
    let keys = round_keys(&load("leon2", &["sbox4r"]));
    let round = |lo: &'static str, hi: &'static str, mix: &'static str| {
        let m = &m;
        move |s: Columns, mixed: bool| -> Columns {
            let [a, b, c, d] = quadrants(s);
            let (a, b) = (op(m, lo, &[a, b]), op(m, lo, &[b, a]));
            let (c, d) = (op(m, hi, &[c, d]), op(m, hi, &[d, c]));
            if !mixed {
                return columns([a, b, c, d]);
            }
            columns([op(m, mix, &[a, c]), op(m, mix, &[b, d]), op(m, mix, &[c, a]), op(m, mix, &[d, b])])
        }
    };
    assert_eq!(encrypt(&keys, &round("saes_v5_esrsub_lo", "saes_v5_esrsub_hi", "saes_v5_emix")), CIPHER);
    let inverse = load("leon2", &["mixcol4"]);
    let mix = |key| op(&inverse, "mixcol4_inverse", &[key]);
    assert_eq!(decrypt(&keys, &round("saes_v5_dsrsub_lo", "saes_v5_dsrsub_hi", "saes_v5_dmix"), &mix), PLAIN);
}

#[test]
fn the_general_multiplier_is_any_matrix() {
    let m = load("leon2", &["mixcolm", "mixcol4"]);
    let instr = m.instr(m.instr_named("mixcolm").unwrap());
    let configure = m.instr(m.instr_named("mixcolm_row").unwrap());
    let rows = [vec![2, 3, 1, 1], vec![1, 2, 3, 1], vec![1, 1, 2, 3], vec![3, 1, 1, 2]];
    let mix = BitMatrix::of_field("mix", &rows, 0x11b).unwrap();
    let mut regs = vec![0; m.regs.len()];
    let first = m.reg_named("gfm0").unwrap().0;
    for (i, &row) in mix.rows.iter().enumerate() {
        regs[9] = row;
        let values = [Value::Reg(Reg(9)), Value::Reg(Reg(first + i as u16))];
        execute(&m, &configure.semantics, &values, &mut regs, 0, &mut NoMemory).unwrap();
    }
    for x in [0, 1, 0x305d_bfd4, 0x8000_0000, 0xffff_ffff, 0x1234_5678] {
        regs[9] = x;
        let values = [Value::Reg(Reg(9)), Value::Reg(Reg(10))];
        execute(&m, &instr.semantics, &values, &mut regs, 0, &mut NoMemory).unwrap();
        assert_eq!(regs[10], op(&m, "mixcol4", &[x]));
    }
    assert!(m.files[m.reg(Reg(first)).file].state);
    assert!(!configure.selectable);
}

/// The same by its parts on words of 8 and 16 bits: rows and operand word by word, lowest bits first.
#[test]
fn the_general_multiplier_is_any_matrix_on_narrow_words() {
    let rows = [vec![2, 3, 1, 1], vec![1, 2, 3, 1], vec![1, 1, 2, 3], vec![3, 1, 1, 2]];
    let mix = BitMatrix::of_field("mix", &rows, 0x11b).unwrap();
    for (name, with, bits) in [("avr", "mixcolm_avr", 8), ("msp430", "mixcolm_msp430", 16)] {
        let m = load(name, &[with]);
        let (count, mask) = (32 / bits, (1 << bits) - 1);
        let mut regs = vec![0; m.regs.len()];
        let reg = |name: &str| m.reg_named(name).unwrap();
        let general = m.abi.allocatable[0];
        let mut run = |instr: &str, operands: &[Value], given: u64| {
            regs[usize::from(general.0)] = given;
            let instr = m.instr(m.instr_named(instr).unwrap());
            execute(&m, &instr.semantics, operands, &mut regs, 0, &mut NoMemory).unwrap();
            regs[usize::from(general.0)]
        };
        let word = |x: u64, w: u16| x >> (w * bits) & mask;
        for (i, &row) in mix.rows.iter().enumerate() {
            for w in 0..count {
                let to = Reg(reg("gfm0").0 + i as u16 * count + w);
                run("mixcolm_row", &[Value::Reg(to), Value::Reg(general)], word(row, w));
            }
        }
        for x in [0, 1, 0x305d_bfd4, 0x8000_0000, 0xffff_ffff, 0x1234_5678] {
            for w in 0..count - 1 {
                let part = Value::Reg(Reg(reg("gfa0").0 + w));
                run("mixcolm_put", &[part, Value::Reg(general)], word(x, w));
            }
            let mut product = run("mixcolm_last", &[Value::Reg(general); 2], word(x, count - 1));
            for w in 1..count {
                let operands = [Value::Reg(general), Value::Imm(w.into())];
                let operands = if count == 4 { &operands[..] } else { &operands[..1] };
                product |= run("mixcolm_get", operands, 0) << (w * bits);
            }
            assert_eq!(product, mix.apply(x), "{name}");
        }
    }
}

#[test]
fn crossbars() {
    // RISC-V cryptography extensions: an index beyond the register gives 0.
    let m = load("rv32", &["zbkx"]);
    assert_eq!(op(&m, "xperm8", &[0x4433_2211, 0x0001_0203]), 0x1122_3344);
    assert_eq!(op(&m, "xperm8", &[0x4433_2211, 0x0480_ff02]), 0x0000_0033);
    assert_eq!(op(&m, "xperm4", &[0x8765_4321, 0x0123_4567]), 0x1234_5678);
    assert_eq!(op(&m, "xperm4", &[0x8765_4321, 0x89ab_cdef]), 0);
}

#[test]
fn affine_maps_of_gfni() {
    // As an extension, and as an instruction of the machine's own, which overwrites its source.
    for m in [load("rv64", &["gf2p8affine"]), load("zen5", &[])] {
        // The identity has row i = bit i, and row 0 in the highest byte.
        let identity = 0x0102_0408_1020_4080;
        let x = 0x0123_4567_89ab_cdef;
        assert_eq!(op(&m, "gf2p8affineqb", &[x, identity, 0]), x);
        assert_eq!(op(&m, "gf2p8affineqb", &[x, identity, 0xff]), !x);
        // Turned upside down it reverses the bits of each byte.
        assert_eq!(op(&m, "gf2p8affineqb", &[x, identity.swap_bytes(), 0]), x.reverse_bits().swap_bytes());
    }
}

/// Every extension file loads on a machine it says it fits.
#[test]
fn all_of_them_load() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ciphermill_machine::names_in(&root.join("extensions")) {
        let fits = ["leon2", "rv32", "rv64", "epic", "avr", "msp430"]
            .iter()
            .any(|machine| try_load(machine, &[&name]).is_ok());
        assert!(fits, "{name}");
    }
}
