//! Assembles the runtime (`src/runtime.wat`), so that the library needs no reader of
//! WebAssembly's text format.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = "src/runtime.wat";
    println!("cargo::rerun-if-changed={text}");
    let folder = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    std::fs::write(Path::new(&folder).join("runtime.wasm"), wat::parse_file(text)?)?;
    Ok(())
}
