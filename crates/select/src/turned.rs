//! Bytes of a word's upper half, by turning the word.
//!
//! Where instructions take the lowest two bytes of a register and overwrite one of their
//! sources, each byte of the upper half costs a copy and a shift, and the copy a register, as
//! long as the word is wanted afterwards. Turned by 16 places in its own register the word
//! has these bytes where the lowest were, and it is turned back by the rotate that comes next
//! anyway, or by one more:
//!
//! ```text
//! x & 255, x >> 8 & 255, x >> 16 & 255, x >> 24, rotl(x, 1)
//! x & 255, x >> 8 & 255, y = rotl(x, 16), y & 255, y >> 8 & 255, rotl(y, 17)
//! ```
//!
//! A word that is not wanted afterwards is shifted in its own register as it is, and left. Where
//! copies cost nothing the rotates would be all that is new.

use ciphermill_ir::{BinOp, Block, Func, Inst, Op, Type, Value};
use ciphermill_machine::core::Idiom;
use ciphermill_machine::{Machine, OperandKind};
use ciphermill_patterns::matcher::Matcher;
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::pattern::Action;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// By how many places a word is turned.
const HALF: u64 = 16;
const BYTE: u64 = 255;

/// Does it take copies to get at the upper bytes of a word, but none to get at the lower, and
/// does a rotate overwrite what it turns?
pub fn of_use(machine: &Machine, matcher: &Matcher) -> bool {
    if machine.core.as_ref().is_some_and(|c| c.rename.moves == Idiom::Eliminated) {
        return false;
    }
    let byte = |p: &Pat| match p {
        Pat::Bin(BinOp::And, a, mask) if **mask == Pat::Const(BYTE) => match &**a {
            Pat::Bin(BinOp::ShrU, x, by) if matches!(**x, Pat::Reg(_)) => Some((**by).clone()),
            _ => None,
        },
        _ => None,
    };
    let (mut bytes, mut turns) = (Vec::new(), false);
    for t in &matcher.templates {
        let Action::Value(to, p) = &t.action else { continue };
        bytes.extend(byte(p));
        if let Pat::Bin(BinOp::RotL, x, by) = p {
            let tied = matches!(t.operands[*to].kind, OperandKind::Reg { def: true, used: true, .. });
            turns |= tied && **x == Pat::Reg(*to) && matches!(**by, Pat::Imm(_));
        }
    }
    turns && !bytes.is_empty() && bytes.iter().all(|by| *by == Pat::Const(8))
}

/// Turn the words of a function.
pub fn turn(func: &mut Func) {
    func.resolve_all();
    let homes = homes(func);
    for block in func.layout.clone() {
        let mut done = BTreeSet::new();
        while let Some((x, uses)) = next(func, block, &homes, &done) {
            done.insert(x);
            rewrite(func, block, x, &uses);
        }
    }
}

/// The block that all uses of a value are in, where it is one.
fn homes(func: &Func) -> HashMap<Value, Option<Block>> {
    let mut homes = HashMap::new();
    for &block in &func.layout {
        let mut used = |v: Value| {
            let home = homes.entry(v).or_insert(Some(block));
            *home = home.filter(|h| *h == block);
        };
        let data = &func.blocks[block];
        data.insts.iter().flat_map(|&i| &func.insts[i].args).for_each(|&v| used(v));
        data.term.for_each_value(used);
    }
    homes
}

/// Uses of a word: in instructions of its block, which are places in it.
#[derive(Default)]
struct Uses {
    /// Bytes of the lower half, with what has to be made for them.
    low: Vec<Vec<Inst>>,
    /// The byte from bit 16 on: the shift, and the masks; and the highest.
    third: Vec<(Inst, Vec<Inst>)>,
    highest: Vec<Inst>,
    /// The first of these.
    first: usize,
    rotates: Vec<(usize, Inst)>,
    others: Vec<(usize, Inst)>,
    /// The end of the block passes it on.
    ends: bool,
}

/// A word to be turned.
fn next(
    func: &Func,
    block: Block,
    homes: &HashMap<Value, Option<Block>>,
    done: &BTreeSet<Value>,
) -> Option<(Value, Uses)> {
    let insts = &func.blocks[block].insts;
    let mut users: HashMap<Value, Vec<usize>> = HashMap::new();
    for (at, &inst) in insts.iter().enumerate() {
        let mut args = func.insts[inst].args.clone();
        args.sort_unstable();
        args.dedup();
        args.iter().for_each(|&a| users.entry(a).or_default().push(at));
    }
    // Values made here on the way are used nowhere else.
    let elsewhere = |v: Value| homes.get(&v).is_some_and(|home| *home != Some(block));
    let mut ends = BTreeSet::new();
    func.blocks[block].term.for_each_value(|v| {
        ends.insert(v);
    });
    // In the order of the block, so that the same comes of it every time.
    let words: BTreeMap<(usize, Value), &Vec<usize>> = users.iter().map(|(&v, list)| ((list[0], v), list)).collect();
    words.into_iter().find_map(|((_, x), list)| {
        let word = func.ty(x) == Type::I32 && func.as_const(x).is_none();
        if !word || done.contains(&x) || elsewhere(x) {
            return None;
        }
        let alone = |v: Value| !elsewhere(v) && !ends.contains(&v);
        let mut uses = Uses { first: usize::MAX, ends: ends.contains(&x), ..Uses::default() };
        for &at in list {
            let inst = insts[at];
            // The masks of a byte, which a shifted word is there for alone.
            let masks = || -> Option<Vec<Inst>> {
                let v = *func.insts[inst].results.first()?;
                let all: Vec<Inst> = users.get(&v)?.iter().map(|&k| insts[k]).collect();
                (alone(v) && all.iter().all(|&i| constant(func, i, BinOp::And, v) == Some(BYTE))).then_some(all)
            };
            match (constant(func, inst, BinOp::And, x), constant(func, inst, BinOp::ShrU, x)) {
                (Some(BYTE), _) => uses.low.push(vec![inst]),
                (_, Some(8)) if masks().is_some() => {
                    uses.low.push(std::iter::once(inst).chain(masks().unwrap_or_default()).collect());
                }
                (_, Some(HALF)) if masks().is_some() => {
                    uses.third.push((inst, masks().unwrap_or_default()));
                    uses.first = uses.first.min(at);
                }
                (_, Some(24)) => {
                    uses.highest.push(inst);
                    uses.first = uses.first.min(at);
                }
                _ if rotate(func, inst, x).is_some() => uses.rotates.push((at, inst)),
                _ => uses.others.push((at, inst)),
            }
        }
        let after = uses.ends || uses.rotates.iter().chain(&uses.others).any(|u| u.0 > uses.first);
        (after && !uses.third.is_empty() && !uses.highest.is_empty()).then_some((x, uses))
    })
}

/// The constant that an instruction combines a value with in such a way.
fn constant(func: &Func, inst: Inst, op: BinOp, x: Value) -> Option<u64> {
    let data = &func.insts[inst];
    (data.op == Op::Bin(op) && data.args[0] == x).then(|| func.as_const(data.args[1])).flatten()
}

/// The places by which an instruction rotates a value.
fn rotate(func: &Func, inst: Inst, x: Value) -> Option<u64> {
    [BinOp::RotL, BinOp::RotR].into_iter().find_map(|op| constant(func, inst, op, x))
}

fn rewrite(func: &mut Func, block: Block, x: Value, uses: &Uses) {
    let loc = func.insts[func.blocks[block].insts[uses.first]].loc;
    let made = |func: &mut Func, op: BinOp, a: Value, by: u64| {
        let by = func.make_inst(Op::Const(by), &[], &[Type::I32], loc);
        let inst = func.make_inst(Op::Bin(op), &[a, func.result(by)], &[Type::I32], loc);
        (func.result(inst), [by, inst])
    };
    // What stands in front of which place of the block now, and what is gone.
    let mut front: BTreeMap<usize, Vec<Inst>> = BTreeMap::new();
    let mut gone: BTreeSet<Inst> = BTreeSet::new();
    let (y, turned) = made(func, BinOp::RotL, x, HALF);
    let here = front.entry(uses.first).or_default();
    let place: HashMap<Inst, usize> = func.blocks[block].insts.iter().enumerate().map(|(at, &i)| (i, at)).collect();
    for inst in uses.low.iter().flatten().filter(|i| place[i] > uses.first) {
        // Its constant may stand between.
        let constant = func.insts[*inst].args.get(1).and_then(|&c| func.def_inst(c));
        here.extend(constant.filter(|c| place.get(c).is_some_and(|&at| at > uses.first) && gone.insert(*c)));
        here.push(*inst);
        gone.insert(*inst);
    }
    here.extend(turned);
    for (shift, masks) in &uses.third {
        masks.iter().for_each(|&mask| func.insts[mask].args[0] = y);
        gone.insert(*shift);
    }
    for &inst in &uses.highest {
        let (second, shifted) = made(func, BinOp::ShrU, y, 8);
        let mask = func.make_inst(Op::Const(BYTE), &[], &[Type::I32], loc);
        front.entry(place[&inst]).or_default().extend(shifted.into_iter().chain([mask]));
        func.insts[inst].op = Op::Bin(BinOp::And);
        func.insts[inst].args = [second, func.result(mask)].into_iter().collect();
    }
    for &(at, inst) in uses.rotates.iter().filter(|r| r.0 > uses.first) {
        let by = func.as_const(func.insts[inst].args[1]).unwrap_or(0);
        if (by + HALF).is_multiple_of(32) {
            func.replace(func.result(inst), y);
            gone.insert(inst);
            continue;
        }
        let amount = func.make_inst(Op::Const((by + HALF) % 32), &[], &[Type::I32], loc);
        front.entry(at).or_default().push(amount);
        func.insts[inst].args = [y, func.result(amount)].into_iter().collect();
    }
    let others: Vec<(usize, Inst)> = uses.others.iter().copied().filter(|o| o.0 > uses.first).collect();
    let end = func.blocks[block].insts.len();
    if uses.ends || !others.is_empty() {
        let (back, turned) = made(func, BinOp::RotL, y, HALF);
        let at = others.first().map_or(end, |o| o.0);
        front.entry(at).or_default().extend(turned);
        for &(_, inst) in &others {
            func.insts[inst].args.iter_mut().filter(|a| **a == x).for_each(|a| *a = back);
        }
        func.blocks[block].term.map_values(|v| if v == x { back } else { v });
    }
    let old = std::mem::take(&mut func.blocks[block].insts);
    let mut new = Vec::with_capacity(old.len() + 8);
    for (at, inst) in old.into_iter().enumerate() {
        new.extend(front.remove(&at).unwrap_or_default());
        if !gone.contains(&inst) {
            new.push(inst);
        }
    }
    new.extend(front.remove(&end).unwrap_or_default());
    func.blocks[block].insts = new;
}
