//! What is looked for on one machine, and the search in one function.

use crate::facts::Facts;
use crate::products::{self, CarrylessMultiplier, Product};
use crate::sum::Rows;
use crate::targets::Targets;
use crate::units::Configurable;
use crate::words::Maps;
use crate::{fields, linear, modular, rewrite, units, words};
use ciphermill_ir::{BinOp, DataSegment, Func, Type, ops};
use ciphermill_machine::{Machine, Reg};
use ciphermill_patterns::pat::Pat;
use ciphermill_patterns::pattern::{Action, Template, templates};

/// Operations in a rotate by a constant where no instruction does it.
const ROTATE_BY_SHIFTS: usize = 3;

/// What the registers hold: rows of a matrix, one for each bit of the result, or a polynomial.
pub type LoadedMatrix = Vec<u32>;

/// What to look for in the programs for one machine.
pub struct Recogniser {
    word: Type,
    targets: Targets,
    configurable: Option<Configurable>,
    /// Where nothing is configurable.
    pub(super) multiplier: Option<fields::Multiplier>,
    pub(super) rotate_cost: usize,
    /// Instructions that multiply two words over GF(2).
    multipliers: Vec<CarrylessMultiplier>,
    /// Instructions that compute modulo a number.
    reductions: Vec<modular::Reduction>,
}

impl Recogniser {
    /// The recogniser of a machine, and the templates of what it finds.
    pub fn new(machine: &Machine) -> (Recogniser, Vec<Template>) {
        let (units, mut found) = units::units(machine);
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
        let (multipliers, more) = products::carryless_multipliers(machine, found.len());
        found.extend(more);
        let (reductions, more) = modular::reductions(machine, found.len());
        found.extend(more);
        let rotates = |t: &Template| matches!(t.action, Action::Value(_, Pat::Bin(BinOp::RotL | BinOp::RotR, ..)));
        let one = !found.is_empty() && templates(machine).iter().any(rotates);
        let rotate_cost = if one { 1 } else { ROTATE_BY_SHIFTS };
        let (word, targets) = (Type::of_word(machine.word_bits.into()), Targets::new(units));
        (Recogniser { word, targets, configurable, multiplier, rotate_cost, multipliers, reductions }, found)
    }

    /// The first of the registers that say what a multiplier does, and how many there are.
    pub fn registers(&self) -> Option<(Reg, usize)> {
        let matrix = self.configurable.as_ref().map(|c| (c.matrix.first, c.matrix.registers().count()));
        matrix.or_else(|| self.multiplier.as_ref().map(|m| (m.register, 1)))
    }

    /// What goes into these registers.
    pub(super) fn in_registers(&self, loaded: &LoadedMatrix) -> Vec<u32> {
        let Some(Configurable { matrix, .. }) = &self.configurable else { return loaded.clone() };
        let part = |row: u32, at: u32| row >> at & ops::mask(matrix.bits.into()) as u32;
        loaded.iter().flat_map(|&row| matrix.row(0).map(move |(_, at)| part(row, at))).collect()
    }

    /// Replace what the machine's table and matrix instructions compute.
    /// `data` is what memory holds when the module starts, `loaded` what the
    /// registers of a multiplier hold.
    pub fn run(&self, func: &mut Func, data: &[DataSegment], loaded: Option<&LoadedMatrix>) {
        if let Some((unit, loaded)) = self.configurable.as_ref().zip(loaded) {
            let configured = unit.holding(loaded.iter().map(|&row| row.into()).collect());
            let targets = Targets::new(self.targets.units.iter().cloned().chain([configured]).collect());
            return self.rewrite(func, data, &targets, Some(&|rows| Some(vec![*targets.matrices.get(rows)?])));
        }
        let field = self.multiplier.as_ref().zip(loaded.and_then(|loaded| loaded.first()));
        let accept = |rows: &Rows| match self.targets.matrices.get(rows) {
            Some(turned) => Some(vec![*turned]),
            None => field.and_then(|(m, &loaded)| m.products(rows, loaded)),
        };
        let any = !self.targets.matrices.is_empty() || field.is_some();
        self.rewrite(func, data, &self.targets, any.then_some(&accept));
    }

    fn rewrite(&self, func: &mut Func, data: &[DataSegment], targets: &Targets, accept: Option<linear::Accept<'_>>) {
        if targets.units.is_empty() && accept.is_none() && self.multipliers.is_empty() && self.reductions.is_empty() {
            return;
        }
        let facts = Facts::new(func, data, self.word);
        let wanted = accept.is_some() || targets.units.iter().any(|u| u.matrix.len() == 2);
        let maps = wanted.then(|| Maps::new(&facts));
        let find = |(maps, accept)| linear::find(maps, self.rotate_cost, accept);
        let linear = maps.as_ref().zip(accept).map(find).unwrap_or_default();
        let words = maps.as_ref().map(|maps| words::matches(maps, &targets.units)).unwrap_or_default();
        drop(maps);
        let units: Vec<&dyn Product> = self.multipliers.iter().map(|m| m as &dyn Product).collect();
        let products = products::find(&facts, &units);
        // The other forms know nothing of values that are right in some bits only.
        let whole = !targets.units.is_empty() || accept.is_some() || !units.is_empty();
        let modular = modular::find(&facts, &self.reductions, whole);
        let Facts { sums, values, .. } = facts;
        let multipliers = &self.multipliers;
        let matches = rewrite::Matches { targets, sums, linear, words, products, multipliers, modular, values };
        rewrite::rewrite(func, &matches);
    }
}
