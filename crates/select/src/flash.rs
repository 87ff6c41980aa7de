//! Loads of constant tables that lie in the memory that code is in.
//!
//! Some machines read such tables by instructions of their own, so it has to be known of each load where its address
//! leads. Tables there have the addresses of a range that no other memory has ([`mark`]), and an address is one of them
//! if a constant of that range has gone into it as the start of a sum: what is added is an index. Data flow over
//! the whole module, parameters of functions that it calls itself among it. Where an address may be of either memory it
//! is taken for one of RAM; the simulator stops at a load from the wrong one.

use ciphermill_ir::{BinOp, Func, FuncId, Module, Op, Space, Value};
use cranelift_entity::SecondaryMap;
use std::collections::HashMap;
use std::ops::Range;

/// What an address leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Leads {
    /// Not reached yet by the data flow.
    #[default]
    Unseen,
    /// To a table in flash.
    Flash,
    /// To anything else, or it is no address.
    Elsewhere,
}

impl Leads {
    fn either(self, other: Leads) -> Leads {
        match (self, other) {
            (Leads::Unseen, x) | (x, Leads::Unseen) => x,
            (a, b) if a == b => a,
            _ => Leads::Elsewhere,
        }
    }

    /// Of a sum. Nobody adds two addresses: two numbers look like some.
    fn plus(self, other: Leads) -> Leads {
        match (self, other) {
            (Leads::Unseen, _) | (_, Leads::Unseen) => Leads::Unseen,
            (Leads::Flash, Leads::Elsewhere) | (Leads::Elsewhere, Leads::Flash) => Leads::Flash,
            _ => Leads::Elsewhere,
        }
    }
}

/// Are the module's tables in flash, which has these addresses?
pub fn holds_tables(module: &Module, flash: &Range<u32>) -> bool {
    module.data.iter().any(|d| d.readonly && flash.contains(&d.addr))
}

/// Let every load from flash, which has these addresses, say so.
pub fn mark(module: &mut Module, flash: &Range<u32>) {
    let mut params: HashMap<FuncId, Vec<Leads>> =
        module.funcs.iter().map(|(id, func)| (id, vec![Leads::Unseen; func.sig.params.len()])).collect();
    let outside = module.exports.iter().map(|e| e.1).chain(module.system.func_refs.iter().map(|r| r.func));
    for id in outside.chain(module.start) {
        params.entry(id).or_default().fill(Leads::Elsewhere);
    }
    // Each parameter only ever goes from unseen to a memory to anything, so this ends.
    loop {
        let mut changed = false;
        for (id, func) in &module.funcs {
            let leads = solve(func, &params[&id], flash);
            for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
                let data = &func.insts[inst];
                let Op::Call(callee) = data.op else { continue };
                for (param, &arg) in params.entry(callee).or_default().iter_mut().zip(&data.args) {
                    let met = param.either(leads[func.resolve(arg)]);
                    changed |= *param != met;
                    *param = met;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let ids: Vec<FuncId> = module.funcs.keys().collect();
    for id in ids {
        let func = &mut module.funcs[id];
        let leads = solve(func, &params[&id], flash);
        for inst in func.layout.iter().flat_map(|&b| func.blocks[b].insts.clone()).collect::<Vec<_>>() {
            let addr = func.insts[inst].args.first().map(|&v| func.resolve(v));
            if let (Op::Load(m), Some(addr)) = (&mut func.insts[inst].op, addr)
                && m.space == Space::Linear
                && (leads[addr] == Leads::Flash || flash.contains(&m.offset))
            {
                m.space = Space::Flash;
            }
        }
    }
}

/// Where the values of a function lead.
fn solve(func: &Func, params: &[Leads], flash: &Range<u32>) -> SecondaryMap<Value, Leads> {
    let mut leads: SecondaryMap<Value, Leads> = SecondaryMap::new();
    for (&param, &from) in func.blocks[func.entry].params.iter().zip(params) {
        leads[param] = from;
    }
    loop {
        let mut changed = false;
        let mut set = |leads: &mut SecondaryMap<Value, Leads>, v: Value, new: Leads| {
            changed |= leads[v] != new;
            leads[v] = new;
        };
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                let arg = |i: usize| leads[func.resolve(data.args[i])];
                let to = match data.op {
                    Op::Const(c) if u32::try_from(c).is_ok_and(|c| flash.contains(&c)) => Leads::Flash,
                    Op::Bin(BinOp::Add | BinOp::Or) => arg(0).plus(arg(1)),
                    Op::Bin(BinOp::Sub) if arg(1) != Leads::Flash => arg(0).plus(arg(1)),
                    Op::Select => arg(1).either(arg(2)),
                    _ => Leads::Elsewhere,
                };
                for &v in &data.results {
                    set(&mut leads, v, to);
                }
            }
            for target in func.blocks[block].term.targets() {
                for (&p, &a) in func.blocks[target.block].params.iter().zip(&target.args) {
                    let met = leads[p].either(leads[func.resolve(a)]);
                    set(&mut leads, p, met);
                }
            }
        }
        if !changed {
            return leads;
        }
    }
}
