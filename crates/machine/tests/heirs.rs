//! Files that inherit, and what they say amiss: names that nothing refers to,
//! what is left out and needed, numbers that say the same thing twice, and
//! ancestors named by a path.

use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{FileError, Machine, NamedText, Request, load};
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> NamedText {
    NamedText::new(path, std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}")))
}

/// A file that inherits from a machine of the project or from `others`, by name or path.
fn with(file: NamedText, others: &[NamedText], settings: &[(&str, &str)]) -> Result<Machine, FileError> {
    let parents = |name: &str| {
        let mine = others.iter().find(|o| o.name == name || o.name == format!("{name}.toml")).cloned();
        mine.or_else(|| {
            root().join(format!("machines/{name}.toml")).is_file().then(|| text(&format!("machines/{name}.toml")))
        })
    };
    load(&Request {
        machine: file,
        parents: &parents,
        vocabulary: &|| {
            let names = ciphermill_machine::names_in(&root().join("extensions"));
            names.iter().map(|n| text(&format!("extensions/{n}.toml"))).collect()
        },
        extensions: vec![],
        without: vec![],
        settings: settings.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
        rules: NamedText::new("rules.toml", ""),
    })
}

fn heir(of: &str, body: &str) -> Result<Machine, FileError> {
    let head = format!("[machine]\nname = \"m\"\ntitle = \"m\"\ninherits = \"{of}\"\n");
    with(NamedText::new("m.toml", format!("{head}{body}")), &[], &[])
}

/// The heir's error is in its own file, on this line of what follows its head of four lines.
fn says(result: Result<Machine, FileError>, line: u32, message: &str, mend: &str) {
    let e = result.map(|m| m.name).unwrap_err();
    assert_eq!((e.file.as_str(), e.line), ("m.toml", 4 + line), "{e}");
    assert!(e.message.contains(message), "{e}");
    assert!(e.mend.as_deref().unwrap_or("").contains(mend), "{e}");
}

#[test]
fn a_name_that_nothing_refers_to_is_an_error_with_the_one_meant() {
    let source = "source = \"test\"\n";
    for (of, body, line, message, mend) in [
        ("rv32", format!("[timings.laod]\nlatency = 4\n{source}"), 1, "the timing `laod`", "`load`"),
        ("rv32", format!("[units]\nallu = 2\n{source}"), 2, "the unit `allu`", "`alu`"),
        ("rv32", "[formats.lod]\nasm = \"x\"\n".into(), 1, "the format `lod`", "did you mean"),
        ("rv32", format!("[registers.xx]\nbits = 32\n{source}"), 1, "the register file `xx`", "`x`"),
        ("rv32", format!("[tables.sbx]\nbits = 1\nvalues = [0]\n{source}"), 1, "the table `sbx`", "take it out"),
        ("rv32", format!("[matrices.mat]\nrows = [\"1\"]\n{source}"), 1, "the matrix `mat`", "take it out"),
        ("rv32", "[classes]\nlow = [\"a0\"]\n".into(), 2, "the class `low`", "take it out"),
        (
            "ia32",
            format!(
                "[modes.mm.a]\noperands = {{ i = \"simm8\" }}\nvalue = \"i\"\nasm = \"{{i}}\"\nbytes = 1\n{source}"
            ),
            1,
            "",
            "`m`",
        ),
        ("ia32", "[registers.r.views]\nbb = [\"al\"]\n".into(), 2, "the view of registers `bb`", "did you mean"),
        ("c6201", format!("[units]\nll1 = 1\n{source}"), 2, "the unit `ll1`", "`l1`"),
        (
            "core2",
            format!("[core.predictor.parts.lop]\nkind = \"bimodal\"\nentries = 4\nbits = 2\n{source}"),
            1,
            "the part of the predictor `lop`",
            "",
        ),
    ] {
        if message.is_empty() {
            // A mode's first line may stand anywhere above its forms.
            let e = heir(of, &body).map(|m| m.name).unwrap_err();
            assert!(
                e.message == "nothing refers to the mode `mm`" && e.mend.as_deref().unwrap_or("").contains(mend),
                "{e}"
            );
            continue;
        }
        says(heir(of, &body), line, &format!("nothing refers to {message}"), mend);
    }
    let cross = heir("c6201", "[clusters.cross]\nq = [\"a\"]\n");
    says(cross, 2, "no units are called `q1`, `q2` ...", "");
}

#[test]
fn what_an_heir_leaves_unused_of_its_parents_is_no_mistake() {
    // Without multiplications nothing uses their timings, which the parent states.
    heir("rv32", "without = [\"m\"]\n").unwrap();
    // A format that only an extension uses.
    let own = heir("epic", "[formats.load_indexed]\nbytes = 6\nsource = \"test\"\n");
    own.unwrap();
    // What is stated is used, by what is stated with it.
    heir(
        "rv32",
        "[timings.slow]\nunits = [\"alu\"]\nlatency = 3\nsource = \"test\"\n[instructions.add]\ntiming = \"slow\"\n",
    )
    .unwrap();
}

#[test]
fn a_unit_or_instruction_left_out_is_told_where_that_is_said() {
    says(
        heir("rv32", "without = [\"units.alu\"]\n"),
        1,
        "the unit `alu` is left out, and machines/rv32.toml line",
        "keep it",
    );
    says(heir("c6201", "without = [\"units.l1\"]\n"), 1, "the unit `l1` is left out, and", "keep it");
    says(heir("core2", "without = [\"units.p2\"]\n"), 1, "the unit `p2` is left out, and", "keep it");
    says(heir("rv32", "without = [\"lw\"]\n"), 1, "the frame code needs `lw`, which is left out", "keep it");
}

#[test]
fn loads_of_a_core_have_one_latency() {
    let slow = "[timings.load]\nlatency = 9\nsource = \"test\"\n";
    let core = "[core.load]\nlatency = 9\nsource = \"test\"\n";
    says(heir("core2", slow), 2, "`timings.load.latency` is 9", "change `core.load.latency`");
    let latency =
        |m: &Machine| (m.instr(m.instr_named("load_bd8").unwrap()).latency, m.core.as_ref().unwrap().load.latency);
    // The core's number counts for both; one that was stated before it gives way.
    assert_eq!(latency(&heir("core2", core).unwrap()), (9, 9));
    assert_eq!(latency(&heir("core2", &format!("{slow}{core}")).unwrap()), (9, 9));
    let set = |path: &str| with(text("machines/core2.toml"), &[], &[(path, "9")]);
    assert_eq!(latency(&set("core.load.latency").unwrap()), (9, 9));
    let e = set("timings.load.latency").map(|m| m.name).unwrap_err();
    assert!(e.file == "--set" && e.message.contains("`core.load.latency`, 3"), "{e}");
    // Where there is no core, a timing's number is the only one.
    assert_eq!(
        heir("ia32", slow).unwrap().instr(heir("ia32", slow).unwrap().instr_named("load_bd8").unwrap()).latency,
        9
    );
}

#[test]
fn operands_of_modes_are_expressions() {
    // With names that are signs of the language, too, and tighter operators around them.
    let modes = "[modes.n.s]\noperands = { s = \"r\", u = \"uimm3\" }\nvalue = \"s + u\"\nasm = \"{s}+{u}\"\nbytes = 1\nsource = \"test\"\n";
    let instr = "[instructions]\nodd = { operands = { rd = \"r\", n = \"n\" }, asm = \"odd {n}, {rd}\", bytes = 2, timing = \"alu\", semantics = \"rd = rd >>s n * 2\" }\nsource = \"test\"\n";
    let m = heir("ia32", &format!("{modes}{instr}")).unwrap();
    let odd = m.instr(m.instr_named("odd_s").unwrap());
    let names: Vec<&str> = odd.operands.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["rd", "n_s", "n_u"]);
    assert_eq!(
        ciphermill_machine::print::statements(&odd.semantics, m.names(&odd.operands)),
        "rd = rd >>s ((n_s + n_u) * 2)"
    );
    assert!(matches!(&odd.semantics[..], [Stmt::Assign { dest: Dest::Operand(0), value: Expr::Bin { .. } }]));
    // What is wrong with a value is shown in the value.
    let wrong = modes.replace("s + u", "s + q");
    says(heir("ia32", &format!("{wrong}{instr}")), 3, "unknown name `q`", "");
    let assigned = instr.replace("rd = rd >>s n * 2", "n = rd");
    says(heir("ia32", &format!("{modes}{assigned}")), 8, "`n` is an operand of a mode", "");
    let form = instr.replace("bytes = 2,", "bytes = 2, shorter = { \"rd@t\" = [\"eax\"] },");
    says(heir("ia32", &format!("{modes}{form}")), 8, "`t` is no form of a mode here; there are s", "");
}

#[test]
fn the_return_address_and_what_is_no_name_are_refused() {
    let all = text("machines/rv32.toml");
    let ra = all.text.replacen("allocatable = [", "allocatable = [\"ra\", ", 1);
    let e = with(NamedText::new("m.toml", &*ra), &[], &[]).map(|m| m.name).unwrap_err();
    assert!(e.message.contains("`ra` is the return address: it cannot be in `allocatable`"), "{e}");
    assert_eq!(&e.text[e.column as usize - 1..][..4], "\"ra\"");
    // A function that hands it back may use it.
    let saved = ra.replacen("callee_saved = [", "callee_saved = [\"ra\", ", 1);
    assert!(with(NamedText::new("m.toml", &*saved), &[], &[]).is_ok());
    for name in ["", " ", "a b", "a/b", "a\\nb"] {
        let named = all.text.replacen("name = \"rv32\"", &format!("name = \"{name}\""), 1);
        let e = with(NamedText::new("m.toml", &*named), &[], &[]).map(|m| m.name).unwrap_err();
        assert!(e.message.contains("cannot name a machine"), "{name}: {e}");
    }
}

#[test]
fn a_wrong_instruction_is_answered_with_its_forms() {
    let e = heir("ia32", "[abi.ops]\nload = \"load\"\n").map(|m| m.name).unwrap_err();
    assert_eq!(e.message, "unknown instruction `load`");
    let mend = e.mend.unwrap();
    assert!(mend.starts_with("there are load_") && mend.contains("load_bd8"), "{mend}");
    let e = heir("ia32", "[compounds.x]\nformat = \"rr\"\nsemantics = \"rd = rd & rs\"\nparts = [\"an rd, rs\"]\n");
    assert_eq!(e.map(|m| m.name).unwrap_err().mend.as_deref(), Some("did you mean `and`?"));
}

#[test]
fn ancestors_can_be_named_by_a_path() {
    let file = |path: &str, name: &str, inherits: &str| {
        NamedText::new(path, format!("[machine]\nname = \"{name}\"\ntitle = \"t\"\ninherits = \"{inherits}\"\n"))
    };
    let base = file("up/base.toml", "base", "rv32");
    let middle = file("up/down/middle.toml", "middle", "../base.toml");
    let all = [base, middle];
    assert_eq!(with(file("up/down/x.toml", "x", "./middle.toml"), &all, &[]).unwrap().name, "x");
    assert_eq!(with(file("up/x.toml", "x", "./down/../base.toml"), &all, &[]).unwrap().name, "x");
    let e = with(file("x.toml", "x", "./base.toml"), &all, &[]).map(|m| m.name).unwrap_err();
    assert!(e.message.contains("there is no file `base.toml` to inherit from") && e.line == 4, "{e}");
    // Circles, of one file and of two, whatever they call themselves.
    let e = with(file("up/x.toml", "x", "./x.toml"), &[file("up/x.toml", "x", "./x.toml")], &[])
        .map(|m| m.name)
        .unwrap_err();
    assert!(e.message.contains("among its own ancestors"), "{e}");
    let two = [file("a.toml", "same", "./b.toml"), file("b.toml", "other", "./c/../a.toml")];
    let e = with(two[0].clone(), &two, &[]).map(|m| m.name).unwrap_err();
    assert!(e.file == "b.toml" && e.message.contains("among its own ancestors"), "{e}");
}

#[test]
fn too_few_registers_are_refused_however_they_are_said() {
    says(
        heir("rv32", "[abi]\nallocatable = []\n"),
        2,
        "0 registers for values, where programs need 2 at least",
        "list more",
    );
    says(heir("rv32", "[abi]\nallocatable = [\"a0\"]\n"), 2, "1 registers for values", "list more");
    heir("rv32", "[abi]\nallocatable = [\"a0\", \"a1\"]\n").unwrap();
    let set =
        |of: &str, n: &str| with(text(&format!("machines/{of}.toml")), &[], &[("abi.registers", n)]).map(|m| m.name);
    let e = set("c6201", "8").unwrap_err();
    assert!(e.file == "--set" && e.message.contains("1 registers of cluster 1 for values"), "{e}");
    set("c6201", "9").unwrap();
    assert!(set("rv32", "1").unwrap_err().message.contains("1 registers for values"));
    // `b_nz` looks at a register of the class `pred`, in the cluster of its unit.
    let all = "[abi]\nallocatable = [\"b4..b6\", \"a3..a5\"]\n";
    says(heir("c6201", all), 2, "no register for values is of the class `pred`", "one of a1, a2 must be");
    let other = "[registers.y]\nnames = [\"y0..y7\"]\nbits = 32\nsource = \"test\"\n[abi]\nallocatable = [\"a0..a7\", \"y0..y7\"]\n";
    says(heir("rv32", other), 6, "`y0` is not of the register file that values are in", "");
}

#[test]
fn what_does_not_fit_together_is_told_where_it_was_stated_last() {
    let source = "source = \"test\"\n";
    says(heir("rv32", "[abi]\nscratch = [\"a0\"]\n"), 2, "`a0` is reserved for the frame", "take it out");
    says(heir("rv32", "[abi]\nstack_pointer = \"zero\"\n"), 2, "`zero` is zero: it cannot be the stack pointer", "");
    says(heir("rv32", "[abi]\nargs = [\"a0\", \"sp\"]\n"), 2, "`sp` is the stack pointer: it cannot be in `args`", "");
    says(heir("rv32", &format!("[registers.x]\nbits = 16\n{source}")), 2, "has 16 bits, and a word has 32", "");
    says(heir("leon2", "[abi.windows]\nins = []\n"), 2, "0 `ins` and 8 `outs`", "as many");
    says(heir("c6201", "[clusters]\nfiles = [\"a\"]\n"), 2, "2 `cross_paths` for 1 clusters", "one for each");
    says(heir("c6201", "[clusters.cross]\nl = [\"nope\"]\n"), 2, "no instruction or format has an operand `nope`", "");
    says(heir("rv32", "[instructions.add]\nannul = true\n"), 2, "`add`: only a branch, jump or call", "");
    says(
        heir("rv32", "[instructions.lww]\ntiming = \"load\"\n"),
        1,
        "`instructions.lww` lacks `semantics`",
        "did you mean `lw`?",
    );
    says(heir("rv32", "[sources]\nunits = 3\n"), 2, "a source must be a string", "");
    says(heir("rv32", "[units]\nalu = 2\nsource = \" \"\n"), 3, "an empty source", "");
    says(
        heir("ia32", "[classes]\nmix = [\"eax\", \"eflags\"]\n"),
        2,
        "`eax` and `eflags` are not of one register file",
        "",
    );
    says(heir("rv32", &format!("[abi]\nframe_reserve = 3\n{source}")), 2, "whole words", "");
}

#[test]
fn a_third_cache_is_behind_a_second() {
    let third = "[memory.l3]\nenabled = true\nbytes = 4194304\nways = 16\nline_bytes = 64\nreplacement = \"lru\"\nlatency = 40\n\
                 source = \"test\"\n";
    let core = heir("core2", third).unwrap().core.unwrap();
    assert_eq!(core.l3.map(|l3| (l3.cache.bytes, l3.latency, l3.interval)), Some((4_194_304, 40, 1)));
    let alone = format!("[memory.l2]\nenabled = false\n{third}");
    says(heir("core2", &alone), 3, "a third cache, and no second one", "enable `[memory.l2]`");
    let wide = third.replace("line_bytes = 64", "line_bytes = 128");
    says(heir("core2", &wide), 5, "lines of 128 bytes", "one size");
}
