use ciphermill_machine::{NamedText, Request, load};
use std::path::PathBuf;
fn text(p: &std::path::Path) -> NamedText { NamedText::new(p.display().to_string(), String::from_utf8_lossy(&std::fs::read(p).unwrap()).into_owned()) }
#[test]
fn dir() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all: Vec<_> = std::fs::read_dir("/tmp/odd").unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "toml")).collect();
    all.sort();
    for p in all {
        let parents = |name: &str| { let f = root.join(format!("machines/{name}.toml")); f.is_file().then(|| text(&f)) };
        let start = std::time::Instant::now();
        let r = std::panic::catch_unwind(|| load(&Request { machine: text(&p), parents: &parents, vocabulary: &|| vec![], extensions: vec![], without: vec![], settings: vec![], rules: text(&root.join("machines/rules.toml")) }));
        let t = start.elapsed().as_secs_f64();
        let s = match r { Err(_) => "PANIC".to_owned(), Ok(Err(e)) => format!("{} @{}:{} | {} | {}", e.message, e.line, e.column, e.text.chars().take(70).collect::<String>(), e.mend.unwrap_or_default()), Ok(Ok(_)) => "loaded".to_owned() };
        println!("### {} {:.1}s: {}", p.file_stem().unwrap().to_string_lossy(), t, s);
    }
}
