//! Promises about buffers, and which buffer an address belongs to.
//!
//! A function of a C interface is often given buffers that never overlap: a
//! context, an input and an output. WebAssembly cannot say so, hence
//! [`crate::Options::disjoint_params`] can. The promise about a list of
//! parameters of an exported function is the one C's `restrict` makes: in one
//! call of the function, a byte accessed through an address *based on* a
//! listed parameter is accessed through none that is based on another one, nor
//! through one that no listed parameter has gone into (a local array, a table,
//! a parameter that is not listed).
//!
//! An address is based on `p` when it is `p` itself, or a sum of something
//! based on `p` and something that no parameter of the list has gone into, or
//! a block parameter or selection whose every source is based on `p`. A value
//! that the parameters have gone into in any other way (a difference of two
//! pointers, a pointer that has been masked) is based on nothing in particular
//! and may be anywhere. Once a listed parameter has been stored, something
//! loaded may be it (globals of compiled C hold the stack pointer and nothing
//! else). The data flow is solved optimistically: a pointer that
//! a loop moves along is based on what it started from.
//!
//! The promise holds for calls from outside. A function that the module itself
//! calls may be given anything, so there it does not count; inlining has made
//! that rare by the time it matters.

use crate::options::Options;
use crate::reachable::reachable_functions;
use ciphermill_ir::{BinOp, Cfg, Func, FuncId, InstData, Module, Op, Value};
use cranelift_entity::SecondaryMap;

/// The promises that hold, by function.
#[derive(Default)]
pub(crate) struct Promises {
    /// Numbers of parameters.
    of: Vec<(FuncId, Vec<usize>)>,
    /// Number of a parameter, and how many bytes it points to.
    sizes: Vec<(FuncId, usize, u32)>,
}

impl Promises {
    pub(crate) fn new(module: &Module, options: &Options) -> Promises {
        if options.disjoint_params.is_empty() && options.buffer_bytes.is_empty() {
            return Promises::default();
        }
        let mut called: SecondaryMap<FuncId, bool> = SecondaryMap::new();
        let reached = reachable_functions(module);
        for (id, func) in module.funcs.iter().filter(|&(id, _)| reached[id]) {
            for &inst in func.layout.iter().flat_map(|&b| &func.blocks[b].insts) {
                if let Op::Call(callee) = func.insts[inst].op {
                    called[callee] = true;
                }
            }
            called[id] |= module.start == Some(id);
        }
        for reference in &module.system.func_refs {
            called[reference.func] = true;
        }
        let from_outside = |name: &str| module.export(name).filter(|&id| !called[id]);
        let apart = options.disjoint_params.iter();
        let sizes = options.buffer_bytes.iter();
        Promises {
            of: apart.filter_map(|(name, params)| Some((from_outside(name)?, params.clone()))).collect(),
            sizes: sizes.filter_map(|(name, param, bytes)| Some((from_outside(name)?, *param, *bytes))).collect(),
        }
    }

    /// Parameters of a function with the bytes that they point to.
    pub(crate) fn sizes(&self, id: FuncId, func: &Func) -> Vec<(Value, u64)> {
        let params = &func.blocks[func.entry].params;
        let of = self.sizes.iter().filter(|(f, ..)| *f == id);
        of.filter_map(|&(_, param, bytes)| Some((*params.get(param)?, u64::from(bytes)))).collect()
    }

    /// What the addresses of a function are based on.
    pub(crate) fn bases(&self, id: FuncId, func: &Func) -> Bases {
        let groups: Vec<Vec<usize>> =
            self.of.iter().filter(|(f, _)| *f == id).map(|(_, params)| params.clone()).collect();
        if groups.is_empty() {
            return Bases::default();
        }
        let of = solve(func, &groups);
        Bases { groups, of }
    }
}

/// What values are based on, in one function.
#[derive(Default)]
pub(crate) struct Bases {
    /// Lists of parameters whose buffers are apart from each other.
    groups: Vec<Vec<usize>>,
    of: SecondaryMap<Value, Base>,
}

impl Bases {
    /// Is it an address in a buffer of a list?
    pub(crate) fn in_buffer(&self, a: Value) -> bool {
        !self.groups.is_empty() && matches!(self.of[a], Base::Param(_))
    }

    /// Do the two addresses lie in different buffers for certain?
    pub(crate) fn disjoint(&self, a: Value, b: Value) -> bool {
        if self.groups.is_empty() {
            return false;
        }
        match (self.of[a], self.of[b]) {
            (Base::Param(p), Base::Param(q)) => {
                p != q && self.groups.iter().any(|g| g.contains(&usize::from(p)) && g.contains(&usize::from(q)))
            }
            (Base::Param(_), Base::Data) | (Base::Data, Base::Param(_)) => true,
            _ => false,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Base {
    /// Anything.
    #[default]
    Unknown,
    /// Not reached yet by the data flow.
    Unseen,
    /// No parameter of a list has gone into it.
    Data,
    /// Nor into this, unless one has been stored where it was loaded.
    Loaded,
    Param(u16),
}

impl Base {
    /// Of a value that is one or the other.
    fn either(self, other: Base) -> Base {
        match (self, other) {
            (Base::Unseen, x) | (x, Base::Unseen) => x,
            (x, y) if x == y => x,
            (Base::Data | Base::Loaded, Base::Data | Base::Loaded) => Base::Loaded,
            _ => Base::Unknown,
        }
    }

    fn plus(self, other: Base) -> Base {
        match (self, other) {
            (Base::Unseen, _) | (_, Base::Unseen) => Base::Unseen,
            (Base::Data, x) | (x, Base::Data) => x,
            // Nobody adds two pointers.
            (Base::Loaded, x) | (x, Base::Loaded) => x,
            _ => Base::Unknown,
        }
    }

    /// Of a value computed from these in a way that keeps no base.
    fn mixed(self, other: Base) -> Base {
        match (self, other) {
            (Base::Unseen, _) | (_, Base::Unseen) => Base::Unseen,
            (Base::Data, Base::Data) => Base::Data,
            (Base::Data | Base::Loaded, Base::Data | Base::Loaded) => Base::Loaded,
            _ => Base::Unknown,
        }
    }
}

fn solve(func: &Func, groups: &[Vec<usize>]) -> SecondaryMap<Value, Base> {
    let listed = |i: usize| groups.iter().any(|g| g.contains(&i));
    let cfg = Cfg::new(func);
    let mut of: SecondaryMap<Value, Base> = SecondaryMap::new();
    for &block in &cfg.rpo {
        for (i, &param) in func.blocks[block].params.iter().enumerate() {
            of[param] = match block == func.entry {
                true if listed(i) => Base::Param(i as u16),
                true => Base::Data,
                false => Base::Unseen,
            };
        }
        for &inst in &func.blocks[block].insts {
            for &result in &func.insts[inst].results {
                of[result] = Base::Unseen;
            }
        }
    }
    // A value only ever goes from unseen to a base to unknown, so this ends.
    loop {
        let mut changed = false;
        for &block in &cfg.rpo {
            if block != func.entry {
                for (i, &param) in func.blocks[block].params.iter().enumerate() {
                    let merged = cfg.preds(block).iter().fold(Base::Unseen, |all, edge| {
                        let targets = func.blocks[edge.from].term.targets();
                        all.either(of[func.resolve(targets[edge.index as usize].args[i])])
                    });
                    changed |= of[param] != merged;
                    of[param] = merged;
                }
            }
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                let base = transfer(func, &of, data.op, &data.args);
                for &result in &data.results {
                    changed |= of[result] != base;
                    of[result] = base;
                }
            }
        }
        if !changed {
            break;
        }
    }
    if !stores_pointer(func, &cfg, &of) {
        for v in func.values.keys() {
            if of[v] == Base::Loaded {
                of[v] = Base::Data;
            }
        }
    }
    of
}

/// May a listed parameter be in memory once the function has run?
fn stores_pointer(func: &Func, cfg: &Cfg, of: &SecondaryMap<Value, Base>) -> bool {
    let pointer = |&v: &Value| matches!(of[func.resolve(v)], Base::Param(_) | Base::Unknown);
    cfg.rpo.iter().flat_map(|&b| &func.blocks[b].insts).any(|&inst| {
        let InstData { op, args, .. } = &func.insts[inst];
        match op {
            Op::Store(_) => args[1..].iter().any(pointer),
            Op::Call(_) | Op::CallPtr(_) => args.iter().any(pointer),
            _ => false,
        }
    })
}

fn transfer(func: &Func, of: &SecondaryMap<Value, Base>, op: Op, args: &[Value]) -> Base {
    let arg = |i: usize| of[func.resolve(args[i])];
    match op {
        Op::Bin(BinOp::Add) => arg(0).plus(arg(1)),
        // A pointer less a number; a number less a pointer is no address.
        Op::Bin(BinOp::Sub) => match (arg(0), arg(1)) {
            (x, y @ (Base::Data | Base::Loaded)) => x.plus(y),
            (x, y) => x.mixed(y),
        },
        Op::Select if arg(0) == Base::Unseen => Base::Unseen,
        Op::Select => arg(1).either(arg(2)),
        Op::Load(_) => Base::Loaded,
        Op::GlobalGet(_) => Base::Data,
        Op::Call(_) | Op::CallPtr(_) => Base::Unknown,
        _ => (0..args.len()).fold(Base::Data, |all, i| all.mixed(arg(i))),
    }
}
