//! How many templates the instructions of a machine add, without looking at any program.

use ciphermill_recognise::Recogniser;
use std::path::Path;

fn templates(name: &str, with: &[&str]) -> usize {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let with: Vec<String> = with.iter().map(|w| w.to_string()).collect();
    let machine = ciphermill_machine::load_from_dir(&root, name, &with, &[], &[]).expect("the machine file is good");
    Recogniser::new(&machine).1.len()
}

#[test]
fn machines_without_such_instructions_have_nothing_to_look_for() {
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
