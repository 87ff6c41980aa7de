//! Random programs: the memoised timing against a plain one, cycle by cycle,
//! and the dataflow bounds against both.

mod common;

use ciphermill_machine::{Machine, Unit};
use ciphermill_sim::{Ends, SimOptions, Simulator, Stats};
use common::{assemble, toy, tune};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// Marsaglia's xorshift.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

fn machine(rng: &mut Rng) -> Machine {
    let mut m = toy();
    let unit = |name: &str, count| Unit { name: name.into(), count, cluster: 0, shared: 1 };
    m.units = vec![unit("A", 1), unit("M", 1 + rng.below(2) as u16), unit("L", 1)];
    let (load, mul, hold, issue) =
        (1 + rng.below(5) as u32, 1 + rng.below(6) as u32, 1 + rng.below(4) as u32, 1 + rng.below(3) as u32);
    tune(&mut m, "ldw", |i| (i.latency, i.units) = (load, vec![2]));
    tune(&mut m, "mul", |i| (i.latency, i.unit_cycles, i.units) = (mul, hold, vec![1]));
    tune(&mut m, "stw", |i| (i.issue_cycles, i.units) = (issue, vec![2]));
    tune(&mut m, "add", |i| i.units = vec![0, 1]);
    m
}

/// A countdown loop over blocks of random work with random forward branches.
fn program(rng: &mut Rng) -> String {
    let mut t = String::from("func f 2 0\nli r9, 7\nloop:\n");
    let blocks = 1 + rng.below(5);
    for b in 0..blocks {
        for _ in 0..rng.below(8) {
            let mut r = || 1 + rng.0.wrapping_mul(2).wrapping_add(rng.below(8)) % 8;
            let (d, a, b) = (r(), r(), r());
            let _ = match rng.below(6) {
                0 => writeln!(t, "mul r{d}, r{a}, r{b}"),
                1 => writeln!(t, "ldw r{d}, r0, {}", 4 * rng.below(4)),
                2 => writeln!(t, "stw r{d}, r0, {}", 4 * rng.below(4)),
                3 => writeln!(t, "sub r{d}, r{a}, r{b}"),
                _ => writeln!(t, "add r{d}, r{a}, r{b}"),
            };
        }
        let (x, y) = (1 + rng.below(8), 1 + rng.below(8));
        if b + 1 < blocks {
            let _ = writeln!(t, "bltu r{x}, r{y}, b{}", b + 1 + rng.below(blocks - b - 1).min(1));
            let _ = writeln!(t, "xor r{x}, r{y}, r{x}");
        }
        let _ = writeln!(t, "b{}:", b + 1);
    }
    t.push_str("subi r9, r9, 1\nbne r9, r0, loop\nret\n");
    t
}

/// The rules of `hazard`, executed naively along the path the program took:
/// scalar, one absolute clock, instruction by instruction.
fn plain_cycles(m: &Machine, text: &str, args: &[u64]) -> u64 {
    let lines: Vec<&str> = text.lines().skip(1).collect();
    let labels: HashMap<&str, usize> =
        lines.iter().enumerate().filter_map(|(i, l)| l.strip_suffix(':').map(|l| (l, i))).collect();
    let mut r = [0xdead_beefu32; 16];
    (r[0], r[1], r[2]) = (0, args[0] as u32, args[1] as u32);
    let mut memory = [0u32; 4];
    let mut ready = [0u64; 16];
    let mut free: Vec<Vec<u64>> = m.units.iter().map(|u| vec![0; usize::from(u.count)]).collect();
    let (mut next, mut pc) = (0u64, 0);
    loop {
        let line = lines[pc];
        pc += 1;
        if line.ends_with(':') {
            continue;
        }
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let o: Vec<&str> = rest.split(", ").collect();
        let reg = |i: usize| o[i].strip_prefix('r').map_or(0, |n| n.parse::<usize>().unwrap());
        let instr = m.instrs.iter().find(|i| i.name == name).unwrap();
        let (reads, write): (Vec<usize>, Option<usize>) = match name {
            "li" => (vec![], Some(reg(0))),
            "stw" | "bltu" | "bne" => (vec![reg(0), reg(1)], None),
            "ldw" | "subi" => (vec![reg(1)], Some(reg(0))),
            "ret" => (vec![15], None),
            _ => (vec![reg(1), reg(2)], Some(reg(0))),
        };
        let mut t = reads.iter().map(|&r| ready[r]).max().unwrap_or(0).max(next);
        if !instr.units.is_empty() {
            let (c, u) = loop {
                let found = instr
                    .units
                    .iter()
                    .flat_map(|&c| (0..free[c].len()).map(move |u| (c, u)))
                    .find(|&(c, u)| free[c][u] <= t);
                match found {
                    Some(unit) => break unit,
                    None => t += 1,
                }
            };
            free[c][u] = t + u64::from(instr.unit_cycles);
        }
        next = t + u64::from(instr.issue_cycles);
        let n = |i: usize| o[i].parse::<u32>().unwrap();
        let value = match name {
            "li" => n(1),
            "mul" => r[reg(1)].wrapping_mul(r[reg(2)]),
            "add" => r[reg(1)].wrapping_add(r[reg(2)]),
            "sub" => r[reg(1)].wrapping_sub(r[reg(2)]),
            "xor" => r[reg(1)] ^ r[reg(2)],
            "subi" => r[reg(1)].wrapping_sub(n(2)),
            "ldw" => memory[n(2) as usize / 4],
            "stw" => {
                memory[n(2) as usize / 4] = r[reg(0)];
                0
            }
            "bltu" if r[reg(0)] < r[reg(1)] => {
                pc = labels[o[2]];
                0
            }
            "bne" if r[reg(0)] != r[reg(1)] => {
                pc = labels[o[2]];
                0
            }
            "ret" => return next,
            _ => 0,
        };
        if let Some(d) = write {
            ready[d] = t + u64::from(instr.latency);
            r[d] = value;
        }
    }
}

#[test]
fn memoised_timing_is_exact_and_bounds_hold() {
    let mut rng = Rng(0x1234_5678_9abc_def1);
    let mut waited = 0;
    for round in 0..400 {
        let m = machine(&mut rng);
        let text = program(&mut rng);
        let args = [rng.below(1 << 32), rng.below(1 << 32)];
        let mut s = Simulator::new(Arc::new(assemble(m.clone(), &text)), SimOptions::default()).unwrap();
        s.call(0, &args).unwrap();
        let stats: Stats = s.stats();
        assert_eq!(stats.cycles, plain_cycles(&m, &text, &args), "round {round}:\n{text}");
        assert_eq!(stats.cycles, stats.issue_cycles + stats.stalls.total());
        waited += stats.stalls.total();
        let memory = s.memory().to_vec();
        s.memory_mut().fill(0);
        let (_, flow) = s.dataflow(0, &args, &Ends::default()).unwrap();
        assert_eq!(memory, s.memory(), "round {round}");
        assert_eq!(flow.instructions, stats.instructions);
        assert!(flow.critical_path <= stats.cycles, "round {round}: {flow:?} {}", stats.cycles);
        // Looking does not count.
        assert_eq!(s.stats(), stats);
    }
    assert!(waited > 10_000, "{waited}");
}

#[test]
fn critical_path_by_hand() {
    let mut m = toy();
    tune(&mut m, "ldw", |i| i.latency = 3);
    tune(&mut m, "mul", |i| i.latency = 4);
    // Starts: ldw 0; mul 3; stw 7; ldw (of what the store wrote, at 8) 8; add 11; ret 0.
    // Beside them a chain of one: li. The path is 12; the run itself takes
    // 0 ldw, 3 mul, 7 stw, 8 ldw, 9 li, 11 add, 12 ret: 13.
    let text = "
        func f 1 1
            ldw r2, r1, 0
            mul r2, r2, r2
            stw r2, r1, 8
            ldw r3, r1, 8
            li r4, 5
            add r1, r3, r4
            ret
    ";
    let mut s = Simulator::new(Arc::new(assemble(m.clone(), text)), SimOptions::default()).unwrap();
    s.memory_mut()[0] = 6;
    let (results, flow) = s.dataflow(0, &[0], &Ends::default()).unwrap();
    assert_eq!((results[0], flow.critical_path, flow.instructions), (41, 12, 7));
    s.call(0, &[0]).unwrap();
    assert_eq!(s.stats().cycles, 13);
}

#[test]
fn dataflow_follows_exposed_pipelines() {
    let mut m = toy();
    m.issue.interlock = false;
    tune(&mut m, "mul", |i| i.latency = 3);
    // The first add reads r1 before the product lands: it starts at 0, the
    // second at 3. Path: mul 0, add 3: 4.
    let text = "
        func f 1 1
            mul r1, r1, r1
            add r2, r1, r1
            nop
            add r1, r1, r1
            ret
    ";
    let mut s = Simulator::new(Arc::new(assemble(m, text)), SimOptions::default()).unwrap();
    let (results, flow) = s.dataflow(0, &[3], &Ends::default()).unwrap();
    assert_eq!((results[0], flow.critical_path), (18, 4));
}

#[test]
fn the_block_alone_by_hand() {
    let mut m = toy();
    tune(&mut m, "ldw", |i| i.latency = 3);
    tune(&mut m, "mul", |i| i.latency = 4);
    // The block at 0 is copied to 4 first, as a feedback driver does, and
    // loaded from there: still not begun, 0. The key at 32 is no part of the
    // block: the chain through it (ldw 3, mul 7) does not count, though it is
    // longer. Product 4, key added 5, copied in a register 5, through memory
    // at 12: stored 6, loaded 9, added 10. The store of the result is no part.
    let text = "
        func f 1 0
            ldw r2, r1, 0
            stw r2, r1, 4
            ldw r2, r1, 4
            ldw r3, r1, 32
            mul r3, r3, r3
            mul r2, r2, r2
            add r2, r2, r3
            mov r4, r2
            stw r4, r1, 12
            ldw r5, r1, 12
            add r5, r5, r3
            stw r5, r1, 64
            ret
    ";
    let mut s = Simulator::new(Arc::new(assemble(m, text)), SimOptions::default()).unwrap();
    let ends = |to: u32| Ends { from: vec![0..4; 1], to: vec![to..to + 4; 1] };
    assert_eq!(s.dataflow(0, &[0], &ends(64)).unwrap().1.between, Some(10));
    // What was copied is there at once; where nothing goes, there is no path.
    assert_eq!(s.dataflow(0, &[0], &ends(4)).unwrap().1.between, Some(0));
    assert_eq!(s.dataflow(0, &[0], &ends(96)).unwrap().1.between, None);
}

#[test]
fn sums_in_the_best_order() {
    // Four words of the block, one after the other: a tree of two levels. The
    // second chain mixes operations: `add` at 1, `xor` at 2.
    let text = "
        func f 1 0
            ldw r2, r1, 0
            ldw r3, r1, 4
            ldw r4, r1, 8
            ldw r5, r1, 12
            xor r6, r2, r3
            xor r6, r6, r4
            xor r6, r6, r5
            stw r6, r1, 64
            add r7, r2, r3
            xor r7, r7, r4
            stw r7, r1, 68
            ret
    ";
    let mut s = Simulator::new(Arc::new(assemble(toy(), text)), SimOptions::default()).unwrap();
    let mut between =
        |to: std::ops::Range<u32>| s.dataflow(0, &[0], &Ends { from: vec![0..16; 1], to: vec![to] }).unwrap().1.between;
    assert_eq!(between(64..68), Some(2));
    assert_eq!(between(68..72), Some(2));
    assert_eq!(between(64..72), Some(2));
}
