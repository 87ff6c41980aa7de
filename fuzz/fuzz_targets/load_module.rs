//! Any byte string given as a module loads into something well formed or gives
//! an error; it never panics.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(module) = ciphermill_load::load(bytes)
        && let Err(e) = ciphermill_ir::verify::verify(&module)
    {
        panic!("the loaded module does not verify: {e}\n{module}");
    }
});
