//! What random loop nests are for: loops that a machine pipelines.

use ciphermill_codegen::tables::Tables;
use ciphermill_differential::kind::Kind;
use ciphermill_differential::{folders, subject};
use std::sync::Arc;

const MODULES: u64 = 60;

#[test]
fn most_nests_have_a_loop_that_is_pipelined() {
    let machine = ciphermill_machine::load_from_dir(&folders::root(), "c64x", &[], &[], &[]).expect("it loads");
    let tables = Tables::new(Arc::new(machine)).expect("it is complete");
    let (mut nests, mut loops, mut others) = (0, 0, 0);
    for number in 0..MODULES {
        let wasm = Kind::Nests.module(number).expect("every number has a nest");
        let mut module = ciphermill_load::load(&wasm).expect("it is valid");
        ciphermill_opt::optimise(&mut module, &subject::optimiser(&tables, 2, false)).expect("it is optimised");
        let options = ciphermill_codegen::Options { level: 2, quick: true, ..Default::default() };
        let program = ciphermill_codegen::compile_with(&module, &tables, &options)
            .unwrap_or_else(|e| panic!("nest {number}: {e}"));
        nests += u64::from(!program.loops.is_empty());
        loops += program.loops.len();
        others += program.plain_loops.len();
    }
    println!("{nests} of {MODULES} nests have {loops} pipelined loops, and {others} loops are not pipelined");
    assert!(2 * nests > MODULES, "only {nests} of {MODULES} nests have a loop that is pipelined");
}
