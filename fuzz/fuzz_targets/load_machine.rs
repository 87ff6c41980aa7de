//! Any byte string given as a machine file gives a machine or an error; it
//! never panics. Its parents are the machines of the project.

#![no_main]

use ciphermill_machine::{NamedText, Request, load};
use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::OnceLock;

/// The machine files of the project by name.
fn files() -> &'static [(String, NamedText)] {
    static FILES: OnceLock<Vec<(String, NamedText)>> = OnceLock::new();
    FILES.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machines");
        let names = ciphermill_machine::names_in(&folder).into_iter().chain(["rules".to_string()]);
        let read = |name: String| {
            let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).ok()?;
            Some((name.clone(), NamedText::new(format!("{name}.toml"), text)))
        };
        names.filter_map(read).collect()
    })
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let find = |name: &str| files().iter().find(|(n, _)| n == name).map(|(_, text)| text.clone());
    let Some(rules) = find("rules") else { panic!("machines/rules.toml is missing") };
    let request = Request {
        machine: NamedText::new("fuzzed.toml", text),
        parents: &find,
        vocabulary: &Vec::new,
        extensions: Vec::new(),
        without: Vec::new(),
        settings: Vec::new(),
        rules,
    };
    if let Err(e) = load(&request) {
        let _ = e.to_string();
    }
});
