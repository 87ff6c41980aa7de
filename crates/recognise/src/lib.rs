//! Finding where a program means what a machine's table or matrix instruction
//! does.
//!
//! Such instructions have no pattern that a compiler could look for: MixColumns
//! is written with shifts and masks, with multiplications, or as tables, and
//! never as the matrix it is. So the program's values are compared by what they
//! compute:
//!
//! * [`form`]: words whose bits are sums over GF(2);
//! * [`semantics`]: the walk through what an instruction says it does;
//! * [`units`]: what the machine's instructions compute, as matrices and tables;
//! * [`fields`]: multiplication of bytes by constants in a field;
//! * [`sums`]: exclusive-ors of a program and their terms;
//! * [`linear`]: values that are a matrix times another value;
//! * [`bytes`]: values that are sums of tables of single bytes;
//! * [`nibbles`]: tables of bytes that are sums of tables of nibbles;
//! * [`cover`]: instructions that together make a sum of tables;
//! * [`pairs`]: matrices of two words behind tables;
//! * [`words`]: maps of several words, computed without tables that are not linear;
//! * [`layers`]: linear layers of several words as wholes;
//! * [`configure`]: which matrix a multiplier that can be loaded should hold;
//! * [`report`]: what was found and what was just missed, for people;
//! * [`rewrite`]: which of the matches are taken;
//! * [`agree`]: instructions of which only parts are wanted made the same;
//! * [`emit`]: the new code;
//! * [`wide`]: all of this on machines of 64-bit words.
//!
//! A match becomes an [`ciphermill_ir::Op::Apply`], which one template computes.
//! On a machine without such instructions nothing is done. Where the program
//! needs an operation that is no match, nothing is lost either: what a match
//! does not replace stays as it was.

pub mod agree;
pub mod bytes;
pub mod configure;
pub mod cover;
pub mod emit;
pub mod fields;
pub mod form;
pub mod layers;
pub mod linear;
pub mod nibbles;
pub mod pairs;
pub mod report;
pub mod rewrite;
pub mod semantics;
pub mod sums;
pub mod units;
pub mod wide;
pub mod words;

use ciphermill_patterns::pattern::{Action, Pat, Template, templates};
use ciphermill_ir::bits::Masks;
use ciphermill_ir::{BinOp, DataSegment, Func};
use ciphermill_machine::{Machine, Reg};
use std::collections::HashMap;

/// Operations in a rotate by a constant where no instruction does it.
const ROTATE_BY_SHIFTS: usize = 3;

/// What to look for in the programs for one machine.
pub struct Recogniser {
    units: Vec<units::Unit>,
    matrices: HashMap<[u32; form::WORD], units::Turned>,
    inverses: Vec<units::Inverse>,
    configurable: Option<units::Configurable>,
    /// Where nothing is configurable.
    multiplier: Option<fields::Multiplier>,
    rotate_cost: usize,
    /// On machines of 64-bit words; then the others are empty.
    wide: Vec<wide::units::Unit>,
}

impl Recogniser {
    /// The recogniser of a machine, and the templates of what it finds.
    pub fn new(machine: &Machine) -> (Recogniser, Vec<Template>) {
        let (units, mut found) = units::units(machine);
        let mut wide = Vec::new();
        if machine.word_bits == 64 {
            (wide, found) = wide::units::units(machine);
        }
        let configurable = units::configurable(machine, found.len()).map(|(unit, template)| {
            found.push(template);
            unit
        });
        let multiplier = match configurable {
            Some(_) => None,
            None => fields::multiplier(machine, found.len()).map(|(unit, template)| {
                found.push(template);
                unit
            }),
        };
        let rotates = |t: &Template| matches!(t.action, Action::Value(_, Pat::Bin(BinOp::RotL | BinOp::RotR, ..)));
        let one = !found.is_empty() && templates(machine).iter().any(rotates);
        let rotate_cost = if one { 1 } else { ROTATE_BY_SHIFTS };
        let (matrices, inverses) = (units::matrices(&units), units::inverses(&units));
        (Recogniser { matrices, inverses, units, configurable, multiplier, rotate_cost, wide }, found)
    }

    /// The first of the registers that say what a multiplier does, and how many there are.
    pub fn registers(&self) -> Option<(Reg, usize)> {
        let matrix = self.configurable.as_ref().map(|c| (c.first, form::WORD));
        matrix.or_else(|| self.multiplier.as_ref().map(|m| (m.register, 1)))
    }

    /// Replace what the machine's table and matrix instructions compute.
    /// `data` is what memory holds when the module starts, `held` what the
    /// registers of a multiplier hold.
    pub fn run(&self, func: &mut Func, data: &[DataSegment], held: Option<&configure::Held>) {
        if !self.wide.is_empty() {
            wide::rewrite(func, data, &self.wide);
        }
        let rows = held.and_then(|held| units::Rows::try_from(&held[..]).ok());
        if let Some((unit, rows)) = self.configurable.as_ref().zip(rows) {
            let meaning = units::Meaning::Matrix(vec![rows]);
            let configured = units::Unit { meaning, sources: 1, function: unit.function, regardless: None, nibbles: Vec::new() };
            let units: Vec<units::Unit> = self.units.iter().cloned().chain([configured]).collect();
            let (matrices, inverses) = (units::matrices(&units), units::inverses(&units));
            return self.rewrite(func, data, &units, &inverses, Some(&|rows| Some(vec![*matrices.get(rows)?])));
        }
        let field = self.multiplier.as_ref().zip(held.and_then(|held| held.first()));
        let accept = |rows: &units::Rows| match self.matrices.get(rows) {
            Some(turned) => Some(vec![*turned]),
            None => field.and_then(|(m, &held)| m.products(rows, held)),
        };
        let any = !self.matrices.is_empty() || field.is_some();
        self.rewrite(func, data, &self.units, &self.inverses, any.then_some(&accept));
    }

    fn rewrite(
        &self,
        func: &mut Func,
        data: &[DataSegment],
        units: &[units::Unit],
        inverses: &[units::Inverse],
        accept: Option<linear::Accept<'_>>,
    ) {
        if units.is_empty() && accept.is_none() {
            return;
        }
        let masks = Masks::new(func);
        let sums = sums::Sums::new(func, &masks);
        let bytes = bytes::ByteSums::new(func, &masks, &sums, data);
        let find = |accept| linear::find(func, &masks, &sums, &bytes, self.rotate_cost, accept);
        let linear = accept.map(find).unwrap_or_default();
        let pairs = pairs::pairs(units);
        let words = words::matches(func, &masks, &bytes, units);
        let found =
            rewrite::Found { units, inverses, pairs: &pairs, sums: &sums, linear: &linear, words: &words, bytes: &bytes };
        rewrite::rewrite(func, &found);
    }
}
