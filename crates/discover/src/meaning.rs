//! What subgraphs compute modulo a number.

use ciphermill_ir::bits::Masks;
use ciphermill_ir::{Func, Value};
use ciphermill_recognise::congruence::Congruence;
use ciphermill_recognise::form;
use ciphermill_recognise::ranges::Ranges;
use ciphermill_recognise::residue::Residue;
use ciphermill_recognise::wanted;
use std::collections::{BTreeSet, HashMap};

/// What the results of a subgraph are modulo a number, where they all are such.
pub fn meaning(
    func: &Func,
    masks: &Masks,
    inputs: &[Value],
    nodes: &BTreeSet<Value>,
    outputs: &[Value],
) -> Option<String> {
    let ranges = Ranges::new(func, masks);
    let source = |(n, &v): (usize, &Value)| (v, Residue::source(n, ranges.of(v), func.ty(v).bits()));
    let mut forms: HashMap<Value, Residue> = inputs.iter().enumerate().map(source).collect();
    let insts = func.layout.iter().flat_map(|&b| &func.blocks[b].insts);
    for &inst in insts.filter(|&&i| func.insts[i].results.first().is_some_and(|r| nodes.contains(r))) {
        let data = &func.insts[inst];
        let operand = |&v: &Value| match func.as_const(func.resolve(v)) {
            Some(c) => Some(Residue::constant(c, func.ty(func.resolve(v)).bits())),
            None => forms.get(&func.resolve(v)).cloned(),
        };
        let args = data.args.iter().map(operand).collect::<Option<Vec<Residue>>>()?;
        forms.insert(func.result(inst), form::operation(func, data, &args.iter().collect::<Vec<_>>())?);
    }
    // Of bits that nobody looks at a compiler may have changed the constants.
    let wanted = wanted::low_bits(func);
    let name = |n: usize| format!("rs{}", n + 1);
    let one = |(n, v): (usize, &Value)| {
        let seen = forms.get(v)?.seen(wanted.get(v).copied().unwrap_or(0));
        let congruence = Congruence::of(&seen)?;
        Some(format!("{} = {}", crate::text::output(n), congruence.text(&name)))
    };
    let all: Vec<String> = outputs.iter().enumerate().map(one).collect::<Option<_>>()?;
    Some(all.join("; "))
}
