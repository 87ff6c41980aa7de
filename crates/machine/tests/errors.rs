//! Mistakes in machine files: each is found, shown where it is, and comes
//! with a way to mend it. And no text whatever makes the loader panic.

use ciphermill_machine::keys;
use ciphermill_machine::shape::{Key, Kind};
use ciphermill_machine::{FileError, Machine, NamedText, Request, load};
use std::path::PathBuf;

fn file(path: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[derive(Default)]
struct Case<'a> {
    machine: String,
    extension: Option<String>,
    without: &'a [&'a str],
    settings: &'a [(&'a str, &'a str)],
}

fn run(case: &Case) -> Result<Machine, FileError> {
    let parents = |name: &str| (name == "rv32").then(|| NamedText::new("rv32.toml", file("machines/rv32.toml")));
    load(&Request {
        machine: NamedText::new("m.toml", case.machine.clone()),
        parents: &parents,
        vocabulary: &|| vec![],
        extensions: case.extension.iter().map(|e| NamedText::new("e.toml", e.clone())).collect(),
        without: case.without.iter().map(|s| (*s).to_owned()).collect(),
        settings: case.settings.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
        rules: NamedText::new("rules.toml", ""),
    })
}

/// `rv32.toml` with one piece replaced; the error's line is that of the piece.
fn broken(from: &str, to: &str) -> FileError {
    let text = file("machines/rv32.toml");
    assert!(text.contains(from), "{from}");
    let at = text.find(from).unwrap();
    let first = text[..at].matches('\n').count() as u32 + 1;
    let last = first + to.matches('\n').count() as u32;
    let e = run(&Case { machine: text.replacen(from, to, 1), ..Case::default() }).expect_err(to);
    assert_eq!(e.file, "m.toml", "{e}");
    assert!((first..=last).contains(&e.line), "expected line {first} to {last}:\n{e}");
    assert!(e.column as usize <= e.text.chars().count() + 1, "{e}");
    e
}

fn says(e: &FileError, message: &str, mend: &str) {
    assert!(e.message.contains(message), "{e}");
    assert!(e.mend.as_deref().unwrap_or("").contains(mend), "{e}");
}

#[test]
fn unknown_names_are_shown_with_what_was_meant() {
    let e = broken("units = [\"alu\"]", "units = [\"alx\"]");
    says(&e, "unknown unit `alx`; this machine has alu, mul, div, lsu", "did you mean `alu`?");
    assert_eq!((e.column, e.width, e.text.as_str()), (11, 3, "units = [\"alx\"]"));
    says(
        &broken("width = 1", "widht = 1"),
        "unknown key `widht` in `issue`; known here: width, interlock",
        "did you mean `width`?",
    );
    says(&broken("[issue]", "[isue]"), "unknown key `isue` in the top level", "did you mean `issue`?");
    says(&broken("format = \"i\", timing", "format = \"j\", timing"), "unknown format `j`", "");
    says(&broken("timing = \"mul\"", "timing = \"mull\""), "unknown timing `mull`", "did you mean `mul`?");
    says(&broken("rd = \"x\", rs1", "rd = \"y\", rs1"), "unknown kind of operand `y`", "");
    says(&broken("zero = \"zero\"", "zero = \"zer\""), "no register of `x` is called `zer`", "`zero`");
    says(&broken("scratch = [\"t5\"", "scratch = [\"t7\""), "unknown register `t7`", "did you mean `");
    says(&broken("load = \"lw\"", "load = \"lww\""), "unknown instruction `lww`", "did you mean `lw`?");
}

#[test]
fn wrong_types_and_ranges() {
    says(&broken("width = 1", "width = \"1\""), "`issue.width` must be an integer, here is a string", "");
    says(&broken("width = 1", "width = 0"), "`issue.width` must be from 1 to 64, here is 0", "");
    says(&broken("interlock = true", "interlock = 1"), "must be true or false, here is an integer", "");
    says(
        &broken("endian = \"little\"", "endian = \"litle\""),
        "one of little, big, not `litle`",
        "did you mean `little`?",
    );
    says(&broken("word_bits = 32", "word_bits = 33"), "a word has 32 or 64 bits", "");
    says(&broken("bytes = 4096\nways", "bytes = 5000\nways"), "must be a power of two", "would do");
    says(&broken("[\"a0..a7\"]\nresults", "[\"a0..b7\"]\nresults"), "`a0..b7` is no range", "g0..g7");
}

#[test]
fn semantics_are_checked_word_by_word() {
    let add = "semantics = \"rd = rs1 + rs2\"";
    let e = broken(add, "semantics = \"rd = rs1 + rs3\"");
    says(&e, "unknown name `rs3`; here are rd, rs1, rs2", "did you mean `rs1`?");
    assert_eq!((&e.text[e.column as usize - 1..][..3], e.width), ("rs3", 3));
    says(&broken(add, "semantics = \"rd = rs1 < rs2\""), "found `<`", "say `<u` (unsigned) or `<s` (signed)");
    says(&broken(add, "semantics = \"rd = rs1 && rs2\""), "found `&&`", "use `&`");
    says(&broken(add, "semantics = \"rd = rs1 + \""), "expected a value, found the end", "");
    says(&broken(add, "semantics = \"rd = rs1\""), "`add`: the semantics never mention operand `rs2`", "");
    says(&broken(add, "semantics = \"rd = rs1 + rs2; rd = rs1\""), "assigns to the same register twice", "");
    says(&broken(add, "semantics = \"rd = rotle(rs1, rs2)\""), "unknown function `rotle`", "did you mean `rotl`?");
    says(&broken(add, "semantics = \"rd = rotl(rs1)\""), "`rotl` takes 2 arguments, here are 1", "");
    says(&broken(add, "semantics = \"rd = rs1[8:9] + rs2\""), "bits 8:9 are none", "higher bit first");
    says(&broken(add, "semantics = \"rd = rs1[32] + rs2\""), "bit 32 of a word of 32 bits", "from 0 to 31");
    says(&broken(add, "semantics = \"rd = mem64[rs1 + rs2]\""), "wider than a word", "");
    says(&broken(add, "semantics = \"mem8s[rs1] = rd + rs2\""), "a store has no sign", "write `mem8`");
    says(&broken(add, "semantics = \"let rs1 = 1; rd = rs1 + rs2\""), "the name `rs1` is taken", "");
    says(&broken(add, "semantics = \"if (rs1) rd = rs2\""), "only `goto` can be conditional", "c ? a : b");
    says(&broken(add, "semantics = \"if (rs1) goto rs2 + rd\""), "needs an operand of kind `label`", "");
    says(&broken(add, "semantics = \"zero = rd + rs1 + rs2\""), "assigning to it has no effect", "");
    says(&broken("semantics = \"rd = rs1 + imm\"", "semantics = \"imm = rs1 + rd\""), "`imm` is a constant", "");
    says(
        &broken(add, &format!("semantics = \"rd = {}rs1{}\"", "(".repeat(100), ")".repeat(100))),
        "nested more than",
        "use `let`",
    );
    says(&broken(add, &format!("semantics = \"rd = rs1{}\"", " + rs2".repeat(1100))), "more than 2000 words", "");
}

#[test]
fn formats_and_assembly() {
    says(
        &broken("{name} {rd}, {rs1}, {rs2}", "{name} {rd}, {rs1}"),
        "operand `rs2` does not appear in the assembly",
        "the operands of `add`",
    );
    says(
        &broken("{name} {rd}, {rs1}, {rs2}", "{name} {rd}, {rs1}, {rs2}, {rs3}"),
        "`{rs3}` is no operand",
        "rd, rs1, rs2",
    );
    says(&broken("{name} {rd}, {rs1}, {rs2}", "{name} {rd, {rs1}, {rs2}"), "is no operand", "");
    says(&broken("imm = { min = -2147483648, max", "imm = { min = 5, mux"), "unknown key `mux`", "did you mean `max`?");
}

#[test]
fn compounds_are_proved() {
    let e =
        broken("parts = [\"xor $0, rs1, rs2\", \"seqz rd, $0\"]", "parts = [\"sub $0, rs1, rs2\", \"snez rd, $0\"]");
    says(&e, "`eq` does not do what it says: with rd = ", "");
    let eq = "parts = [\"xor $0, rs1, rs2\", \"seqz rd, $0\"]";
    says(&broken(eq, "parts = [\"xorr $0, rs1, rs2\"]"), "unknown instruction `xorr`", "did you mean `xor`?");
    says(
        &broken(eq, "parts = [\"xor $0, rs1\", \"seqz rd, $0\"]"),
        "`xor` takes 3 arguments (rd, rs1, rs2), here are 2",
        "",
    );
    says(&broken(eq, "parts = [\"seqz rd, $0\"]"), "`$0` is read before it is written", "");
    says(
        &broken(eq, "parts = [\"xor rd, rs1, rs2\", \"seqz rd, rd\"]"),
        "a source is read after a result was written",
        "scratch",
    );
    says(&broken(eq, "parts = [\"beq rs1, rs2, rd\", \"seqz rd, rs1\"]"), "`beq` cannot stand here", "");
    says(&broken(eq, "parts = [\"xori $0, rs1, rs2\", \"seqz rd, $0\"]"), "it can only depend on immediates", "");
    let wide = "\"lui $0, (imm + 0x800) & 0xfffff000\"";
    says(&broken(wide, "\"lui $0, imm\""), "`imm` cannot hold `imm`: it gives 0x", "");
    says(&broken(eq, "parts = []"), "`eq` has no parts", "");
}

#[test]
fn frame_instructions_must_fit_their_role() {
    says(&broken("mov = \"mv\"", "mov = \"neg\""), "`neg` cannot be `mov`: that must be `rd = rs`", "");
    says(
        &broken("load = \"lw\"", "pop = [\"lw\"]\nload = \"lw\""),
        "`lw` cannot be number 1 of `pop`: that must be",
        "",
    );
    says(&broken("load = \"lw\"", "load = \"lb\""), "a word load", "");
    says(&broken("store = \"sw\"", "store = \"nop\""), "a word store", "");
    says(&broken("ret = \"ret\"", "ret = \"j\""), "a jump to a register", "");
    says(&broken("allocatable = [\"a0..a7\"", "allocatable = [\"gp\", \"a0..a7\""), "`gp` is reserved", "");
    let e = run(&Case { machine: file("machines/rv32.toml"), without: &["sw"], ..Case::default() }).unwrap_err();
    says(&e, "the frame code needs `sw`, which is left out", "");
}

#[test]
fn a_missing_key_is_named_with_its_meaning() {
    let text = file("machines/rv32.toml").replace("[branch]\npredictor = \"none\"\n", "");
    says(
        &run(&Case { machine: text, ..Case::default() }).unwrap_err(),
        "the file lacks `branch`",
        "how branches are predicted",
    );
    let text = file("machines/rv32.toml").replace("predictor = \"none\"\n", "");
    let e = run(&Case { machine: text, ..Case::default() }).unwrap_err();
    says(&e, "`branch` lacks `predictor`", "");
    assert_eq!(e.text, "[branch]");
}

#[test]
fn extensions() {
    let rv32 = || file("machines/rv32.toml");
    let ext = |body: &str| Some(format!("[extension]\nname = \"x\"\ntitle = \"X\"\n{body}"));
    let fails = |body: &str| run(&Case { machine: rv32(), extension: ext(body), ..Case::default() }).unwrap_err();
    let e = fails("[timings.gf]\nunits = [\"gfmul\"]\nlatency = 2\nsource = \"a test\"\n");
    assert_eq!((e.file.as_str(), e.line), ("e.toml", 5));
    says(&e, "unknown unit `gfmul`; this machine has alu, mul, div, lsu", "");
    let e = fails("for = [\"leon2\"]\n");
    says(&e, "extension `x` is for leon2, not for rv32", "");
    let e = fails("[instructions]\nadd = { format = \"r\", timing = \"alu\", semantics = \"rd = rs1 - rs2\" }\n");
    assert_eq!((e.file.as_str(), e.line), ("e.toml", 5));
    says(&e, "instructions `add` exists already, in m.toml, and differs", "");
    says(&fails("[instructions]\nfoo = 3\n"), "must be a table", "");
    says(&fails("[units]\ngf = 1\nsource = \"a test\"\n"), "unknown key `units`", "");

    let sbox = "[tables.sbox]\nbits = 8\nvalues = [1, 2, 3, 4]\nsource = \"a test\"\n[instructions]\n\
        sub = { format = \"unary\", timing = \"alu\", mnemonic = \"sub1\", semantics = \"rd = sbox[rs1[1:0]]\" }\n";
    says(&fails(sbox), "`sub` exists already", "");
    let sbox = sbox.replace("\nsub =", "\nsub1 =");
    let m = run(&Case { machine: rv32(), extension: ext(&sbox), ..Case::default() }).unwrap();
    let sub1 = m.instr(m.instr_named("sub1").unwrap());
    assert_eq!((sub1.extension.as_deref(), m.extensions.len(), m.tables[0].values.len()), (Some("x"), 1, 4));
    let m = run(&Case { machine: rv32(), extension: ext(&sbox), without: &["x"], ..Case::default() }).unwrap();
    assert_eq!((m.instr_named("sub1"), m.extensions.len()), (None, 0));
    says(&fails(&sbox.replace("4]", "256]")), "256 is no entry of 8 bits", "");
    let short = sbox.replace("[1:0]", "[7:0]");
    says(&fails(&short), "an index of 8 bits into `sbox`, which has 4 entries", "all its entries");
    let declared = sbox.replace("sbox[rs1[1:0]]", "linear(sbox, rs1)");
    says(&fails(&declared), "unknown matrix `sbox`", "`sbox` is a table");
    let inverse = format!(
        "{}\n[tables.back]\nbits = 8\ninverse_of = \"sbox\"\nsource = \"a test\"\n",
        sbox.replace("3, 4", "3, 3")
    );
    says(&fails(&inverse), "`sbox` is no permutation: 0x3 at 0x2 and at 0x3", "each value once");
    let bare = "[instructions]\nfoo = { timing = \"alu\", semantics = \"rd = rs1\" }\nsource = \"a test\"\n";
    says(&fails(bare), "unknown name `rd`: the instruction has no operands", "give it a `format`");
    says(&fails("[timings.gf]\nlatency = 2\n"), "`timings.gf.latency` is a number without a source", "[timings.gf]");
}

#[test]
fn without() {
    let rv32 = || file("machines/rv32.toml");
    let m = run(&Case { machine: rv32(), without: &["m", "slti"], ..Case::default() }).unwrap();
    assert!(m.instr_named("mul").is_none() && m.instr_named("slti").is_none());
    assert!(m.compounds.iter().all(|c| c.name != "les_imm") && m.compounds.iter().any(|c| c.name == "les"));
    let e = run(&Case { machine: rv32(), without: &["mull"], ..Case::default() }).unwrap_err();
    assert_eq!(e.file, "--without");
    says(&e, "nothing here is called `mull`", "did you mean `mul`?");
}

#[test]
fn settings() {
    let rv32 = || file("machines/rv32.toml");
    let set = |path, value| run(&Case { machine: rv32(), settings: &[(path, value)], ..Case::default() });
    assert_eq!(set("issue.width", "4").unwrap().issue.width, 4);
    let m = set("memory.dcache.enabled", "true").unwrap();
    assert!(m.memory.dcache.is_some() && m.memory.icache.is_none());
    assert_eq!(set("units.alu", "2").unwrap().units[0].count, 2);
    // Numbers the file may state but does not.
    let m = set("timings.mul.issue_cycles", "3").unwrap();
    assert_eq!(m.instr(m.instr_named("mul").unwrap()).issue_cycles, 3);
    assert_eq!(m.source("timings.mul.issue_cycles"), Some("set for this run: timings.mul.issue_cycles=3"));
    assert_ne!(m.hash, set("timings.mul.issue_cycles", "2").unwrap().hash);
    let e = set("isue.width", "4").unwrap_err();
    assert_eq!(e.file, "--set");
    says(&e, "there is no `isue.width` in this machine", "near it: issue.width");
    says(
        &set("memory.dcache.lines", "4").unwrap_err(),
        "there is no `memory.dcache.lines`",
        "memory.dcache.line_bytes",
    );
    says(&set("units.fpu", "1").unwrap_err(), "there is no `units.fpu`", "units.alu");
    says(&set("issue.width", "four").unwrap_err(), "`issue.width` must be an integer, here is a string", "");
    says(&set("issue.width", "[4]").unwrap_err(), "only single values", "");
    says(&set("issue", "4").unwrap_err(), "`issue` is not a single value", "issue.width");
    says(&set("issue..", "4").unwrap_err(), "is not a dotted path", "");
}

#[test]
fn what_follows_sooner_and_what_is_read_early() {
    let load = "[timings.load]\nunits = [\"lsu\"]\nlatency = 2\n";
    let with = |more: &str| format!("{load}{more}\n");
    says(&broken(load, &with("issue_before = { laod = 1 }")), "`laod` is no timing", "did you mean `load`?");
    says(
        &broken(load, &with("issue_before = { load = 2 }")),
        "2 cycles are more than the 1 of `issue_cycles`",
        "can only issue earlier",
    );
    says(&broken(load, &with("early = { rs3 = 1 }")), "`rs3` is no operand", "did you mean");
    let text = file("machines/rv32.toml");
    let good = text.replacen(load, &with("issue_cycles = 2\nissue_before = { load = 1 }\nearly = { rs1 = 1 }"), 1);
    let m = run(&Case { machine: good, ..Case::default() }).unwrap();
    let lw = m.instr(m.instr_named("lw").unwrap());
    assert_eq!((&lw.issue_before[..], &lw.early[..]), (&[("load".to_owned(), 1)][..], &[(2, 1)][..]));
}

#[test]
fn literals_and_what_reaches_how_far() {
    let addi = "addi = { format = \"i\", ";
    let with = |more: &str| format!("addi = {{ format = \"i\", {more}, ");
    says(
        &broken(addi, &with("literal = \"rs1\"")),
        "`rs1` is no immediate of the instruction",
        "its immediates are imm",
    );
    says(&broken(addi, &with("literal = \"imm\"")), "a literal needs a distance", "`literal_reach`");
    let good = file("machines/rv32.toml").replacen(addi, &with("literal = \"imm\", literal_reach = 64"), 1);
    let m = run(&Case { machine: good, ..Case::default() }).unwrap();
    let literal = m.instr(m.instr_named("addi").unwrap()).literal.unwrap();
    assert_eq!((literal.operand, literal.reach), (2, 64));
    let m = run(&Case { machine: file("machines/cortex-m0plus.toml"), ..Case::default() }).unwrap();
    assert_eq!(m.instr(m.instr_named("beq").unwrap()).reach, Some((-254, 256)));
    // What few instructions take must be taken by the move; nothing else is made of it.
    let spill = |which: &str| {
        let text = file("machines/cortex-m0plus.toml");
        let list = "spill = [\"r12\", \"r8..r11\"]";
        assert!(text.contains(list));
        run(&Case { machine: text.replacen(list, which, 1), ..Case::default() })
    };
    assert_eq!(spill("spill = [\"r12\"]").unwrap().abi.spill.len(), 1);
    says(&spill("spill = [\"r7\"]").unwrap_err(), "`r7` is reserved for spilled values", "take it out of");
}

#[test]
fn a_predictor_that_learns() {
    let dynamic = "predictor = \"dynamic\"\nbht_entries = 48\nsource = \"none\"";
    says(&broken("predictor = \"none\"", dynamic), "the number of counters must be a power of two", "");
    let text = file("machines/rv32.toml").replacen("interlock = true", "interlock = false", 1);
    let text = text.replacen("predictor = \"none\"", "predictor = \"dynamic\"", 1);
    let e = run(&Case { machine: text, ..Case::default() }).unwrap_err();
    says(&e, "a pipeline without interlock has no predictor that learns", "");
}

#[test]
fn inheritance_changes_key_by_key() {
    let child = "[machine]\nname = \"mine\"\ntitle = \"Mine\"\ninherits = \"rv32\"\nwithout = [\"m\"]\n\
        [timings.load]\nlatency = 3\nsource = \"measured here\"\n[units]\nalu = 2\nsource = \"two of them\"\n";
    let m = run(&Case { machine: child.to_owned(), ..Case::default() }).unwrap();
    assert_eq!((m.name.as_str(), m.word_bits, m.units[0].count), ("mine", 32, 2));
    let lw = m.instr(m.instr_named("lw").unwrap());
    assert_eq!((lw.latency, lw.issue_cycles), (3, 1));
    assert!(m.instr_named("mul").is_none());
    assert_eq!(m.source("timings.load.latency"), Some("measured here"));
    assert!(m.source("timings.store.latency").unwrap().contains("Patterson"));
    // An error in what was inherited shows the parent's file.
    let e = run(&Case { machine: child.replace("[units]", "[formats.load]\nasm = \"x\"\n[units]"), ..Case::default() })
        .unwrap_err();
    assert_eq!(e.file, "m.toml");
    let e = run(&Case { machine: child.replace("\"rv32\"", "\"rv31\""), ..Case::default() }).unwrap_err();
    says(&e, "there is no machine `rv31`", "");
    let e = run(&Case { machine: child.replace("\"mine\"", "\"rv32\""), ..Case::default() }).unwrap_err();
    says(&e, "`rv32` is among its own ancestors", "");
    // A child's numbers need sources of their own.
    let e = run(&Case { machine: child.replace("source = \"measured here\"\n", ""), ..Case::default() }).unwrap_err();
    says(&e, "`timings.load.latency` is a number without a source", "");
}

#[test]
fn the_example_in_the_documentation_loads() {
    let text = file("docs/machine-files.md");
    let example = text.split("```toml\n").nth(1).and_then(|t| t.split("```").next()).unwrap();
    let m = run(&Case { machine: example.to_owned(), ..Case::default() }).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((m.name.as_str(), m.issue.width), ("mymachine", 2));
    assert!(m.instr_named("sh2add").is_some() && m.instr_named("mul").is_none());
}

#[test]
fn every_key_is_in_the_documentation() {
    let text = file("docs/machine-files.md");
    fn names(keys: &'static [Key], out: &mut Vec<&'static str>) {
        for key in keys {
            out.push(key.name);
            match &key.kind {
                Kind::Table(inner) | Kind::Tables(inner) | Kind::Map(_, Kind::Table(inner)) => names(inner, out),
                _ => {}
            }
        }
    }
    let mut all = Vec::new();
    for keys in [keys::MACHINE, keys::EXTENSION, keys::RULES] {
        names(keys, &mut all);
    }
    for name in all {
        assert!(text.contains(name), "`{name}` is not documented");
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

/// Change a text somewhere: lose, repeat, exchange or garble a piece.
fn mutate(text: &str, random: &mut Random) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = random.below(chars.len());
    let len = 1 + random.below(12);
    let end = (at + len).min(chars.len());
    let (before, piece, after) = (&chars[..at], &chars[at..end], &chars[end..]);
    let other = random.below(chars.len().saturating_sub(20));
    let new: Vec<char> = match random.below(6) {
        0 => Vec::new(),
        1 => [piece, piece].concat(),
        2 => chars[other..(other + len).min(chars.len())].to_vec(),
        3 => "-9223372036854775808".chars().collect(),
        4 => vec![['"', '{', '}', '[', ']', '\n', '=', '$', '%', '#', 'é', '\0', '(', '0'][random.below(14)]],
        _ => piece.iter().rev().copied().collect(),
    };
    [before, &new, after].concat().into_iter().collect()
}

/// A core of which some instructions fuse.
fn fusing(first: &str, without: &[&str]) -> Result<Machine, FileError> {
    let fusion = format!("[core.decode]\nmacro_fusion = [{{ first = [\"{first}\"], second = [\"bne\"] }}]");
    run(&Case { machine: file("machines/boom.toml").replace("[core.decode]", &fusion), without, ..Case::default() })
}

#[test]
fn fused_instructions_have_to_be_there_or_taken_out() {
    let pairs =
        |m: Machine| m.core.map(|c| (c.decode.macro_fusion[0].first.len(), c.decode.macro_fusion[0].second.len()));
    assert_eq!(pairs(fusing("add", &[]).unwrap()), Some((1, 1)));
    assert_eq!(pairs(fusing("mulh*", &[]).unwrap()), Some((2, 1)));
    assert_eq!(pairs(fusing("add", &["bne"]).unwrap()), Some((1, 0)));
    assert_eq!(pairs(fusing("mulh*", &["m"]).unwrap()), Some((0, 1)));
    says(&fusing("ad", &[]).unwrap_err(), "no instruction is called `ad`", "did you mean `add`?");
    says(&fusing("mulq*", &[]).unwrap_err(), "no instruction is called `mulq*`", "");
}

#[test]
fn a_unit_is_in_one_queue() {
    let queues = |text: &str, binds: bool| {
        let rename = format!("[core.rename]\nbinds_port = {binds}\n");
        let machine = file("machines/boom.toml").replace("[core.rename]\n", &format!("{text}{rename}"));
        run(&Case { machine, ..Case::default() })
    };
    let unit = file("machines/boom.toml").lines().skip_while(|l| *l != "[units]").nth(1).unwrap().to_owned();
    let unit = unit.split(' ').next().unwrap().to_owned();
    let one = |name: &str| format!("[core.queues.{name}]\nunits = [\"{unit}\"]\nentries = 8\nsource = \"test\"\n");
    let core = queues(&one("a"), false).unwrap().core.unwrap();
    assert_eq!((core.queues.len(), core.queues[0].entries, core.queues[0].units.len()), (1, 8, 1));
    let twice = queues(&(one("a") + &one("b")), false).unwrap_err();
    says(&twice, &format!("the unit `{unit}` is in the queue `a` already"), "leave it out of one of them");
    says(&queues(&one("a"), true).unwrap_err(), "`binds_port` makes every port a queue", "leave the queues out");
}

#[test]
fn a_queue_shares_the_places_of_one_before_it() {
    let units: Vec<String> = file("machines/boom.toml")
        .lines()
        .skip_while(|l| *l != "[units]")
        .skip(1)
        .take(2)
        .map(|l| l.split(' ').next().unwrap().to_owned())
        .collect();
    let queues = |second: &str| {
        let first = format!("[core.queues.a]\nunits = [\"{}\"]\nentries = 8\nsource = \"test\"\n", units[0]);
        let second = format!("[core.queues.b]\nunits = [\"{}\"]\n{second}source = \"test\"\n", units[1]);
        let machine = file("machines/boom.toml").replace("[core.rename]\n", &format!("{first}{second}[core.rename]\n"));
        run(&Case { machine, ..Case::default() })
    };
    let core = queues("shares = \"a\"\n").unwrap().core.unwrap();
    assert_eq!(core.queues.iter().map(|q| q.shares).collect::<Vec<_>>(), [None, Some(0)]);
    let own = queues("shares = \"\"\nentries = 9\n").unwrap().core.unwrap();
    assert_eq!((own.queues[1].shares, own.queues[1].entries), (None, 9));
    for (second, what, mend) in [
        ("", "the queue `b` has no entries", "`shares` with the name of another queue"),
        ("shares = \"a\"\nentries = 9\n", "the queue `b` has entries and shares another's", "leave one"),
        ("shares = \"b\"\n", "no queue `b` with entries stands before `b`", "`entries` of its own"),
    ] {
        says(&queues(second).unwrap_err(), what, mend);
    }
}

#[test]
fn units_of_a_parent_can_be_left_out() {
    let heir = |without: &str| {
        let text = format!("[machine]\nname = \"m\"\ntitle = \"m\"\ninherits = \"rv32\"\nwithout = [\"{without}\"]\n");
        run(&Case { machine: text, ..Case::default() })
    };
    // What still runs on it is the parent's; who took it away is the heir, on its fifth line.
    let e = heir("units.mul").unwrap_err();
    says(&e, "the unit `mul` is left out, and rv32.toml line", "keep it");
    assert_eq!((e.file.as_str(), e.line), ("m.toml", 5), "{e}");
    says(&heir("units.mull").unwrap_err(), "nothing here is called `units.mull`", "");
}

#[test]
fn no_text_makes_it_panic() {
    let texts = [file("machines/rv32.toml"), file("machines/leon2.toml")];
    let extension = file("extensions/zbkb.toml").replace("for = [\"rv32\"]\n", "");
    let mut random = Random(1);
    let rounds = std::env::var("MACHINE_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    let mut loaded = 0;
    for round in 0..rounds {
        let mut case = Case { machine: texts[round % 2].clone(), ..Case::default() };
        if round % 3 == 0 {
            case.extension = Some(extension.clone());
        }
        for _ in 0..=random.below(3) {
            match &mut case.extension {
                Some(e) if round % 2 == 0 => *e = mutate(e, &mut random),
                _ => case.machine = mutate(&case.machine, &mut random),
            }
        }
        match run(&case) {
            Ok(m) => loaded += usize::from(!m.to_json().is_null()),
            Err(e) => assert!(e.to_string().starts_with("error: "), "{e}"),
        }
    }
    assert!(
        loaded > rounds / 30 && loaded < rounds - rounds / 30,
        "{loaded} of {rounds} loaded: the mutations test nothing"
    );
}
