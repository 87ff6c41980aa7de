//! How fast the simulator is: simulated instructions per second.
//!
//! `cargo bench -p ciphermill-sim`. RC6 by hand on a toy machine without
//! rotates, over 4 MB, with ideal memory and with caches.

#[path = "../tests/common/mod.rs"]
mod common;

use ciphermill_machine::{Cache, Replacement, WritePolicy};
use ciphermill_sim::{SimOptions, Simulator};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

/// `d = rotl(a, n)` by shifts, through `t`.
fn rotate(out: &mut String, d: &str, a: &str, n: u32, t: &str) {
    let _ = writeln!(out, "shrui {t}, {a}, {}\nshli {d}, {a}, {n}\nor {d}, {d}, {t}", 32 - n);
}

/// The same by a register.
fn rotate_by(out: &mut String, d: &str, n: &str, t: &str, u: &str) {
    let _ = writeln!(out, "sub {u}, r0, {n}\nshru {t}, {d}, {u}\nshl {d}, {d}, {n}\nor {d}, {d}, {t}");
}

fn rc6() -> String {
    let mut t = String::from("func rc6 3 0\nblock:\n");
    for (i, r) in ["r4", "r5", "r6", "r7"].iter().enumerate() {
        let _ = writeln!(t, "ldw {r}, r1, {}", 4 * i);
    }
    t.push_str("li r12, 0\nrounds:\n");
    let mut regs = ["r4", "r5", "r6", "r7"];
    for i in 0..4 {
        let [a, b, c, d] = regs;
        for (x, to) in [(b, "r8"), (d, "r9")] {
            let _ = writeln!(t, "shli {to}, {x}, 1\naddi {to}, {to}, 1\nmul {to}, {to}, {x}");
            rotate(&mut t, "r10", to, 5, "r11");
            let _ = writeln!(t, "mov {to}, r10");
        }
        for (x, by, mix, key) in [(a, "r9", "r8", 8 * i), (c, "r8", "r9", 8 * i + 4)] {
            let _ = writeln!(t, "xor {x}, {x}, {mix}");
            rotate_by(&mut t, x, by, "r10", "r11");
            let _ = writeln!(t, "add r11, r2, r12\nldw r10, r11, {key}\nadd {x}, {x}, r10");
        }
        regs = [b, c, d, a];
    }
    t.push_str("addi r12, r12, 32\nli r10, 160\nbne r12, r10, rounds\n");
    for (i, r) in ["r4", "r5", "r6", "r7"].iter().enumerate() {
        let _ = writeln!(t, "stw {r}, r1, {}", 4 * i);
    }
    t.push_str("addi r1, r1, 16\nsubi r3, r3, 1\nbne r3, r0, block\nret\n");
    // The callee-saved registers r10 to r13 are not saved here.
    t
}

fn measure(name: &str, caches: bool, blocks: u64) {
    let mut m = common::toy();
    m.abi.callee_saved.clear();
    common::tune(&mut m, "ldw", |i| i.latency = 2);
    common::tune(&mut m, "mul", |i| i.issue_cycles = 5);
    let cache = Cache {
        bytes: 4096,
        ways: 2,
        line_bytes: 32,
        replacement: Replacement::Lru,
        write: WritePolicy::Through,
        miss_cycles: 8,
        writeback_cycles: 0,
    };
    (m.memory.icache, m.memory.dcache) = (Some(cache.clone()), Some(cache));
    let mut p = common::assemble(m, &rc6());
    (p.min_pages, p.max_pages) = (80, 80);
    let mut s = Simulator::new(Arc::new(p), SimOptions { caches, ..SimOptions::default() }).expect("a program");
    let start = Instant::now();
    s.call(0, &[4096, 16, blocks]).expect("no stop");
    let time = start.elapsed().as_secs_f64();
    let stats = s.stats();
    println!(
        "{name}: {:.0} M instructions/s ({} instructions, {} cycles, {time:.3} s)",
        stats.instructions as f64 / time / 1e6,
        stats.instructions,
        stats.cycles
    );
}

fn main() {
    let blocks = 4 * 1024 * 1024 / 16;
    for _ in 0..3 {
        measure("rc6, ideal memory", false, blocks);
        measure("rc6, caches", true, blocks);
    }
}
