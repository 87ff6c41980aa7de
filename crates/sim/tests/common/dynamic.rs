//! A small core that schedules at run time, for the toy machine.

use crate::common::{toy, tune};
use ciphermill_machine::core::*;
use ciphermill_machine::{InstrKind, Machine, Unit};

/// Ports: `alu` twice (0 and 1), `ld`, `sta`, `std`, `br`.
pub fn core() -> Core {
    Core {
        in_order: false,
        reorder_buffer: 32,
        reservation_stations: 16,
        fetch: Fetch { bytes: 16, stages: 1, queue: 16, ..Fetch::default() },
        decode: Decode { pattern: vec![1; 4], stages: 1, queue: 16, micro_fusion: true, macro_fusion: vec![] },
        rename: Rename {
            width: 4,
            stages: 1,
            written_reads: 0,
            zero_idioms: Idiom::Plain,
            moves: Idiom::Plain,
            partial_reads: PartialReads::Free,
            partial_cycles: 0,
            low_move_bits: 0,
            stack_engine: false,
            binds_port: false,
            queue_choice: QueueChoice::Fewest,
            queue_slack: 0,
            deals_few: false,
            queue_delay: 1,
            queue_step: 1,
            queue_spare: 0,
        },
        result_bus: false,
        result_patience: 0,
        queues: vec![],
        retire: Retire { width: 4, recovers: false },
        load: Load {
            units: vec![1],
            latency: 3,
            buffers: 8,
            fill_buffers: 4,
            forward_latency: 5,
            failed_forward_cycles: 7,
            scaled_cycles: 0,
            three_term_cycles: 0,
            renaming: Renaming::No,
            renamed_cycles: 0,
            renaming_distance: 15,
            renaming_bytes: 1,
            renaming_moves: false,
            split_cycles: 0,
            alias_bytes: 0,
            disambiguation: Disambiguation::Perfect,
            violation_cycles: 2,
            misnamed: None,
        },
        store: Store {
            address_units: vec![2],
            data_units: vec![3],
            data_through: vec![],
            buffers: 8,
            commits: 1,
            one_line: false,
        },
        predictor: Predictor {
            direction: 0,
            parts: vec![Part { name: "backward".into(), kind: PartKind::Backward }],
            btb_entries: 0,
            btb_ways: 1,
            return_stack: 8,
            indirect_entries: 0,
            indirect_history: 0,
        },
        prefetch: Prefetch::default(),
        l2: None,
        l3: None,
        dram: Dram { latency: 50, interval: 4 },
        dtlb: None,
        events: vec![],
    }
}

/// The toy machine with that core, changed as the test needs.
pub fn dynamic(change: impl Fn(&mut Core)) -> Machine {
    let mut m = toy();
    let unit = |name: &str, count| Unit { name: name.into(), count, cluster: 0, shared: 1 };
    m.units = vec![unit("alu", 2), unit("ld", 1), unit("sta", 1), unit("std", 1), unit("br", 1)];
    for i in &mut m.instrs {
        let branches = !matches!(i.kind, InstrKind::Compute | InstrKind::Load | InstrKind::Store);
        i.units = vec![if branches { 4 } else { 0 }];
    }
    tune(&mut m, "nop", |i| i.units = vec![]);
    tune(&mut m, "mul", |i| i.latency = 3);
    tune(&mut m, "divu", |i| (i.latency, i.unit_cycles) = (10, 10));
    let mut core = core();
    change(&mut core);
    m.core = Some(core);
    m
}
