//! Masks of semantics against the truth: every value of the secret bits is
//! tried, and no bit outside the mask may change.

use ciphermill_audit::semantics::{Evaluator, Seen, Source};
use ciphermill_audit::taint::Word;
use ciphermill_machine::gf2::{BitMatrix, Origin};
use ciphermill_machine::sem::{Expr, HeldMatrix};
use ciphermill_machine::{Machine, Reg, load_from_dir};
use ciphermill_program::Operand;
use std::path::Path;
use std::sync::Arc;

struct Registers {
    values: Vec<Word>,
}

impl Source for Registers {
    fn register(&self, reg: Reg) -> Word {
        self.values[usize::from(reg.0)]
    }

    /// Sixteen bytes, which stand in the last registers.
    fn load(&self, addr: u32, bytes: u8) -> Option<Word> {
        let byte = |i: u32| self.values.get(8 + i as usize).map(|w| w.low(8));
        (0..u32::from(bytes)).try_fold(Word::default(), |w, i| {
            let b = byte(addr.checked_add(i)?)?;
            Some(Word { bits: w.bits | b.bits << (8 * i), secret: w.secret | b.secret << (8 * i) })
        })
    }
}

fn machine(name: &str) -> Machine {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    load_from_dir(&root, name, &[], &[], &[]).unwrap()
}

fn eval(machine: &Machine, e: &Expr, values: &[Word]) -> (Option<Word>, Seen) {
    let source = Registers { values: values.to_vec() };
    let operands: Vec<Operand> = (0..8).map(|r| Operand::Reg(Reg(r))).collect();
    let mut run = Evaluator {
        machine,
        source: &source,
        operands: &operands,
        target: &|_| 0,
        pc: 0x1000,
        lets: Vec::new(),
        seen: Seen::default(),
        under: 0,
    };
    let value = run.eval(e);
    (value, run.seen)
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let x = *state;
    (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// An expression over four registers, as deep as `left`.
fn expression(state: &mut u64, left: u32, word: u8) -> Expr {
    use ciphermill_ir::{BinOp::*, CmpOp::*, UnOp::*};
    let pick = |state: &mut u64, n: u64| (random(state) >> 20) % n;
    if left == 0 || pick(state, 5) == 0 {
        return match pick(state, 6) {
            0 => Expr::Const(random(state) >> pick(state, 64)),
            1 => Expr::Const(pick(state, 9)),
            _ => Expr::Operand(pick(state, 4) as usize),
        };
    }
    let bits = [8, 16, 32, 64][pick(state, if word == 64 { 4 } else { 3 }) as usize];
    let width = [32, 64][usize::from(word == 64 && pick(state, 2) == 0)];
    let boxed = |state: &mut u64| Box::new(expression(state, left - 1, word));
    match pick(state, 12) {
        0 => Expr::Un {
            op: [Clz, Ctz, Popcnt, SExt8, SExt16, Bswap][pick(state, 6) as usize],
            bits: bits.max(16),
            a: boxed(state),
        },
        1 => Expr::Cmp {
            op: [Eq, Ne, LtU, LtS, LeU, LeS][pick(state, 6) as usize],
            bits,
            a: boxed(state),
            b: boxed(state),
        },
        2 => Expr::Select { cond: boxed(state), then: boxed(state), els: boxed(state) },
        3 => Expr::Slice { a: boxed(state), lo: pick(state, 20) as u8, width: 1 + pick(state, 11) as u8 },
        4 => {
            let rows = (0..8).map(|_| random(state) & 0xff).collect();
            let matrix = BitMatrix { origin: Origin::Named("m".into()), rows, columns: 8 };
            Expr::Linear { matrix: Arc::new(matrix), a: boxed(state) }
        }
        5 => Expr::FlagsTest {
            op: [Eq, Ne, LtU, LtS, LeU, LeS][pick(state, 6) as usize],
            flags: Box::new(match pick(state, 3) {
                0 => Expr::FlagsAdd { bits: width, a: boxed(state), b: boxed(state) },
                1 => Expr::FlagsLogic { bits: width, a: boxed(state) },
                _ => Expr::FlagsSub { bits: width, a: boxed(state), b: boxed(state) },
            }),
        },
        6 => Expr::MatVec { matrix: HeldMatrix { first: Reg(0), rows: 4, words: 1, bits: width }, a: boxed(state) },
        7 => Expr::Load {
            bytes: [1, 2, 4][pick(state, 3) as usize],
            signed: pick(state, 2) == 0,
            addr: Box::new(Expr::Slice { a: boxed(state), lo: 0, width: 3 }),
        },
        8 => Expr::Table { table: 0, index: boxed(state) },
        _ => Expr::Bin {
            op: [Add, Sub, Mul, MulHiU, MulHiS, And, Or, Xor, Shl, ShrU, ShrS, RotL, RotR, DivU, RemS]
                [pick(state, 15) as usize],
            bits,
            a: boxed(state),
            b: boxed(state),
        },
    }
}

/// Few secret bits anywhere, so that all their values can be tried.
#[test]
fn every_bit_that_can_change_is_in_the_mask() {
    let mut machines = [machine("rv32"), machine("rv64")];
    for m in &mut machines {
        let values = (0..16).map(|i| (i * 7 + 3) % 16).collect();
        m.tables = vec![ciphermill_machine::Table { name: "t".into(), bits: 4, values, verilog: None }];
    }
    let (mut state, mut changing, mut exact) = (11, 0u64, 0u64);
    for round in 0..60_000u32 {
        let m = &machines[round as usize % 2];
        let e = expression(&mut state, 1 + round % 4, m.word_bits);
        let mask = ciphermill_ir::mask(m.word_bits.into());
        let mut values: Vec<Word> =
            (0..24).map(|_| Word::public(random(&mut state) >> (random(&mut state) % 64) & mask)).collect();
        for _ in 0..1 + random(&mut state) % 5 {
            let r = random(&mut state) as usize % 24;
            let bit =
                if r < 8 { 1 << (random(&mut state) % u64::from(m.word_bits)) } else { 1 << (random(&mut state) % 8) };
            values[r].secret |= bit;
        }
        let (Some(all), seen) = eval(m, &e, &values) else { continue };
        let places: Vec<(usize, u64)> = (0..24)
            .flat_map(|r| (0..64).map(move |b| (r, 1u64 << b)))
            .filter(|&(r, b)| values[r].secret & b != 0)
            .collect();
        let mut differ = 0;
        for choice in 0..1u32 << places.len() {
            let mut other: Vec<Word> = values.iter().map(|w| Word::public(w.bits)).collect();
            for (i, &(r, bit)) in places.iter().enumerate() {
                other[r].bits = (other[r].bits & !bit) | if choice >> i & 1 == 1 { bit } else { 0 };
            }
            let Some(public) = eval(m, &e, &other).0 else {
                // Where another secret gives no value, the run that has one was told.
                continue;
            };
            assert_eq!(public.secret, 0, "{e:?}");
            differ |= public.bits ^ all.bits;
        }
        assert_eq!(
            differ & !all.secret,
            0,
            "round {round}: {e:x?} of {values:x?} changes in {differ:x}, mask {:x}",
            all.secret
        );
        changing += u64::from(differ != 0);
        exact += u64::from(differ != 0 && differ == all.secret);
        let _ = seen;
    }
    // The test says something only if there is something to say, and masks that are all ones say nothing.
    assert!(changing > 3_000 && exact > changing / 4, "{changing} of which {exact} exact");
}

#[test]
fn comparisons_that_clear_bits_decide_are_public() {
    use ciphermill_ir::CmpOp;
    let m = machine("rv32");
    let of = |op, a: Word, b: Word| {
        let e = Expr::Cmp { op, bits: 32, a: Box::new(Expr::Operand(0)), b: Box::new(Expr::Operand(1)) };
        let mut values = vec![Word::default(); 24];
        (values[0], values[1]) = (a, b);
        eval(&m, &e, &values).0.unwrap().secret
    };
    let byte = Word { bits: 7, secret: 0xff };
    assert_eq!(of(CmpOp::LtU, byte, Word::public(256)), 0);
    assert_eq!(of(CmpOp::LtU, byte, Word::public(255)), 1);
    assert_eq!(of(CmpOp::LtS, Word::public(u64::from(-1i32 as u32)), byte), 0);
    assert_eq!(of(CmpOp::Eq, byte, Word::public(0x100)), 0);
    assert_eq!(of(CmpOp::Eq, byte, Word::public(0x80)), 1);
}

#[test]
fn a_load_in_an_arm_that_a_secret_chooses_is_noted() {
    let m = machine("rv32");
    let load = |at| Box::new(Expr::Load { bytes: 1, signed: false, addr: Box::new(Expr::Const(at)) });
    let select = |at| Expr::Select { cond: Box::new(Expr::Operand(0)), then: load(at), els: Box::new(Expr::Const(0)) };
    let with = |cond: Word| {
        let mut values = vec![Word::default(); 24];
        values[0] = cond;
        values
    };
    let seen = |e: &Expr, cond| eval(&m, e, &with(cond));
    assert!(seen(&select(0), Word { bits: 1, secret: 1 }).1.perhaps);
    assert!(!seen(&select(0), Word::public(1)).1.perhaps);
    // Nothing is promised of what stands outside memory.
    assert_eq!(seen(&select(1000), Word { bits: 0, secret: 1 }).0.unwrap().secret, 0xffff_ffff);
    assert!(!seen(&select(1000), Word::public(0)).1.perhaps);
}
