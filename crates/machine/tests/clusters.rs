//! The variants of an instruction on a clustered machine.

use ciphermill_machine::{Machine, OperandKind, load_from_dir};
use std::path::Path;

fn c6201() -> Machine {
    load_from_dir(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), "c6201", &[], &[], &[]).unwrap()
}

/// Assembly of all variants, with the register files of their operands.
fn variants(m: &Machine, name: &str) -> Vec<String> {
    let first = m.instr_named(name).unwrap();
    let text = |id: &ciphermill_machine::InstrId| {
        let instr = m.instr(*id);
        let files = instr.operands.iter().filter_map(|o| match o.kind {
            OperandKind::Reg { file, .. } => Some(m.files[file].name.as_str()),
            _ => None,
        });
        format!("{} {}", instr.asm, files.collect::<String>())
    };
    m.variants[usize::from(first.0)].iter().map(text).collect()
}

#[test]
fn units_sides_and_crossing_operands() {
    let add = variants(&c6201(), "add");
    let side = |u: char, own: char, other: char| {
        let three = |asm: &str, files: [char; 3]| format!("add .{asm}, {{dst}} {}", files.iter().collect::<String>());
        vec![
            three(&format!("l{u} {{src1}}, {{src2}}"), [own, own, own]),
            three(&format!("l{u}x {{src1}}, {{src2}}"), [own, other, own]),
            // An addition commutes: its first source crosses written as the second.
            three(&format!("l{u}x {{src2}}, {{src1}}"), [other, own, own]),
            three(&format!("s{u} {{src1}}, {{src2}}"), [own, own, own]),
            three(&format!("s{u}x {{src1}}, {{src2}}"), [own, other, own]),
            three(&format!("s{u}x {{src2}}, {{src1}}"), [other, own, own]),
            // .D has no cross path.
            three(&format!("d{u} {{src1}}, {{src2}}"), [own, own, own]),
        ]
    };
    let expected: Vec<String> = side('1', 'a', 'b').into_iter().chain(side('2', 'b', 'a')).collect();
    assert_eq!(add, expected);
}

#[test]
fn a_difference_does_not_commute() {
    let sub = variants(&c6201(), "sub");
    assert!(sub.contains(&"sub .l1x {left}, {src2}, {dst} baa".to_owned()), "{sub:?}");
    assert!(sub.contains(&"sub .s1x {left}, {src2}, {dst} aba".to_owned()), "{sub:?}");
    assert!(!sub.iter().any(|s| s.starts_with("sub .s1x") && s.ends_with("baa")), "{sub:?}");
}

#[test]
fn a_field_does_not_cross() {
    assert_eq!(variants(&c6201(), "extu").len(), 2);
}

#[test]
fn data_goes_to_either_side() {
    let expected = ["1t1 {} aa", "1t2 {} ab", "2t1 {} ba", "2t2 {} bb"].map(|s| {
        let (unit, files) = s.split_once(" {} ").unwrap();
        format!("ldw .d{unit} *+{{base}}({{imm}}), {{data}} {files}")
    });
    assert_eq!(variants(&c6201(), "ldw"), expected);
}

#[test]
fn only_the_first_is_selected_and_shown() {
    let m = c6201();
    for list in m.variants.iter().filter(|v| v.len() > 1) {
        assert!(list[1..].iter().all(|&v| !m.instr(v).selectable && m.variants[usize::from(v.0)] == [v]));
    }
    let json = m.to_json();
    let adds: Vec<_> = json["instructions"].as_array().unwrap().iter().filter(|i| i["name"] == "add").collect();
    assert_eq!(adds.len(), 1);
    assert_eq!(adds[0]["asm"], "add {src1}, {src2}, {dst}");
    assert_eq!(adds[0]["units"], serde_json::json!(["l1", "s1", "d1", "l2", "s2", "d2"]));
}

#[test]
fn paths_for_every_cluster_or_none() {
    let setting = |key: &str, value: &str| {
        let set = [(key.to_owned(), value.to_owned())];
        load_from_dir(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), "c6201", &[], &[], &set)
    };
    assert!(setting("memory.banks.enabled", "false").unwrap().memory.banks.is_none());
    let error = setting("memory.banks.block_bytes", "20").unwrap_err().to_string();
    assert!(error.contains("a multiple of banks * bank_bytes"), "{error}");
}
