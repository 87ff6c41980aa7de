//! SSA form on the fly.
//!
//! The builder turns reads and writes of numbered local variables into SSA
//! values while blocks are being filled, after Braun, Buchwald, Hack, Leißa,
//! Mallon and Zwinkau, "Simple and Efficient Construction of Static Single
//! Assignment Form" (CC 2013). A block is *sealed* once all its predecessors
//! are known. Reading a variable in a sealed block with one predecessor looks
//! there; with several, the block gets a parameter and every edge an argument;
//! in a block not yet sealed (a loop header) the parameter is made at once and
//! its arguments are found when the block is sealed.
//!
//! WebAssembly's control flow is structured, hence reducible, and for
//! reducible graphs removing trivial parameters (whose arguments are all one
//! value, or the parameter itself) until none is left gives *minimal* SSA. That
//! is done once, at the end.
//!
//! No step recurses: lookups walk chains of single predecessors in a loop, and
//! arguments still to be found wait on a list. A hostile module can therefore
//! not overflow the stack.
//!
//! Invariant: every edge to a block carries exactly as many arguments as the
//! block has parameters at that moment. An argument not yet known is the
//! parameter itself, which the removal of trivial parameters ignores.

use ciphermill_ir::{Block, Func, Op, Signature, Target, Terminator, Type, Value, ValueDef};
use std::collections::HashMap;

/// An edge: the block it leaves, and which of the terminator's targets it is.
#[derive(Clone, Copy)]
struct Edge {
    from: Block,
    slot: usize,
}

#[derive(Default)]
struct BlockState {
    preds: Vec<Edge>,
    sealed: bool,
    /// Variables and parameter numbers whose arguments are found at sealing.
    incomplete: Vec<(u32, usize)>,
}

pub(crate) struct SsaBuilder {
    pub func: Func,
    locals: Vec<Type>,
    /// What a variable holds at the end of a block, as far as is known.
    defs: HashMap<(Block, u32), Value>,
    blocks: Vec<BlockState>,
    /// Parameters of sealed blocks whose arguments are still to be found.
    pending: Vec<(Block, u32, usize)>,
    order: Vec<Block>,
    zeros: [Option<Value>; 2],
}

impl SsaBuilder {
    /// A builder whose first variables are the function's parameters. `locals`
    /// has the types of all variables, parameters included; those that are not
    /// parameters start as zero.
    pub fn new(name: &str, sig: Signature, locals: Vec<Type>) -> SsaBuilder {
        let func = Func::new(name, sig);
        let entry = func.entry;
        let defs = (0u32..).zip(&func.blocks[entry].params).map(|(i, &v)| ((entry, i), v)).collect();
        SsaBuilder {
            locals,
            defs,
            blocks: vec![BlockState { sealed: true, ..BlockState::default() }],
            pending: Vec::new(),
            order: vec![entry],
            zeros: [None; 2],
            func,
        }
    }

    /// A new block with parameters of the given types, not sealed.
    pub fn block(&mut self, params: &[Type]) -> Block {
        let block = self.func.add_block();
        self.blocks.push(BlockState::default());
        for &ty in params {
            self.func.add_param(block, ty);
        }
        block
    }

    /// The block is filled from now on; fixes its place in the layout.
    pub fn begin(&mut self, block: Block) {
        self.order.push(block);
    }

    /// End a block. The targets carry arguments for the parameters given to
    /// [`SsaBuilder::block`]; those for variables are the builder's business.
    pub fn terminate(&mut self, block: Block, term: Terminator) {
        let targets: Vec<Block> = term.targets().iter().map(|t| t.block).collect();
        self.func.blocks[block].term = term;
        for (slot, to) in targets.into_iter().enumerate() {
            self.connect(Edge { from: block, slot }, to);
        }
    }

    fn connect(&mut self, edge: Edge, to: Block) {
        self.blocks[index(to)].preds.push(edge);
        let have = target(&mut self.func.blocks[edge.from].term, edge.slot).args.len();
        let rest: Vec<Value> = self.func.blocks[to].params.get(have..).unwrap_or_default().to_vec();
        target(&mut self.func.blocks[edge.from].term, edge.slot).args.extend(rest);
    }

    /// Lead the edge of a block that was never begun elsewhere.
    pub fn redirect(&mut self, unused: Block, to: Target) {
        for edge in std::mem::take(&mut self.blocks[index(unused)].preds) {
            *target(&mut self.func.blocks[edge.from].term, edge.slot) = to.clone();
            self.connect(edge, to.block);
        }
    }

    /// All predecessors of the block are known.
    pub fn seal(&mut self, block: Block) {
        let state = &mut self.blocks[index(block)];
        state.sealed = true;
        for (local, param) in std::mem::take(&mut state.incomplete) {
            self.pending.push((block, local, param));
        }
        self.find_arguments();
    }

    pub fn write(&mut self, block: Block, local: u32, value: Value) {
        self.defs.insert((block, local), value);
    }

    pub fn read(&mut self, block: Block, local: u32) -> Value {
        let value = self.lookup(block, local);
        self.find_arguments();
        value
    }

    fn find_arguments(&mut self) {
        while let Some((block, local, param)) = self.pending.pop() {
            for k in 0..self.blocks[index(block)].preds.len() {
                let edge = self.blocks[index(block)].preds[k];
                let value = self.lookup(edge.from, local);
                target(&mut self.func.blocks[edge.from].term, edge.slot).args[param] = value;
            }
        }
    }

    fn lookup(&mut self, start: Block, local: u32) -> Value {
        let mut block = start;
        let value = loop {
            if let Some(&value) = self.defs.get(&(block, local)) {
                break value;
            }
            if block == self.func.entry {
                break self.zero(self.locals[local as usize]);
            }
            let state = &self.blocks[index(block)];
            match state.preds[..] {
                [edge] if state.sealed => block = edge.from,
                _ => break self.parameter(block, local),
            }
        };
        self.defs.insert((block, local), value);
        self.defs.insert((start, local), value);
        value
    }

    fn parameter(&mut self, block: Block, local: u32) -> Value {
        let number = self.func.blocks[block].params.len();
        let param = self.func.add_param(block, self.locals[local as usize]);
        let state = &mut self.blocks[index(block)];
        for edge in &state.preds {
            target(&mut self.func.blocks[edge.from].term, edge.slot).args.push(param);
        }
        if state.sealed {
            self.pending.push((block, local, number));
        } else {
            state.incomplete.push((local, number));
        }
        param
    }

    /// The zero a variable starts with: one constant of each type, at the top
    /// of the entry block.
    fn zero(&mut self, ty: Type) -> Value {
        let func = &mut self.func;
        *self.zeros[usize::from(ty == Type::I64)].get_or_insert_with(|| {
            let inst = func.make_inst(Op::Const(0), &[], &[ty], 0);
            func.blocks[func.entry].insts.insert(0, inst);
            func.result(inst)
        })
    }

    /// The finished function, in minimal SSA form.
    pub fn finish(mut self) -> Func {
        self.func.layout = std::mem::take(&mut self.order);
        self.remove_trivial();
        for i in 0..self.func.values.len() {
            self.resolve(Value::from_u32(i as u32));
        }
        self.func.resolve_all();
        self.func
    }

    fn remove_trivial(&mut self) {
        let mut dead = vec![false; self.func.values.len()];
        let mut users = self.parameter_users();
        let mut work: Vec<(Block, usize)> = Vec::new();
        for &block in self.func.layout[1..].iter().rev() {
            work.extend((0..self.func.blocks[block].params.len()).rev().map(|number| (block, number)));
        }
        while let Some((block, number)) = work.pop() {
            let param = self.func.blocks[block].params[number];
            let place = param.as_u32() as usize;
            if dead[place] {
                continue;
            }
            if let Some(value) = self.only_argument(block, number, param) {
                self.func.replace(param, value);
                dead[place] = true;
                // Those it was an argument for may be trivial now.
                let mut affected = std::mem::take(&mut users[place]);
                affected.retain(|&(b, n)| !dead[self.func.blocks[b].params[n].as_u32() as usize]);
                work.extend_from_slice(&affected);
                users[value.as_u32() as usize].extend(affected);
            }
        }
        self.drop_parameters(&dead);
    }

    /// For each value, the parameters it is an argument for.
    fn parameter_users(&mut self) -> Vec<Vec<(Block, usize)>> {
        let mut users = vec![Vec::new(); self.func.values.len()];
        for i in 1..self.func.layout.len() {
            let block = self.func.layout[i];
            for edge in &self.blocks[index(block)].preds {
                let args = &target(&mut self.func.blocks[edge.from].term, edge.slot).args;
                for (number, arg) in args.iter().enumerate() {
                    users[arg.as_u32() as usize].push((block, number));
                }
            }
        }
        users
    }

    /// Take parameters out of their blocks, and their arguments off the edges.
    fn drop_parameters(&mut self, dead: &[bool]) {
        for i in 1..self.func.layout.len() {
            let block = self.func.layout[i];
            let params = std::mem::take(&mut self.func.blocks[block].params);
            let keep: Vec<bool> = params.iter().map(|p| !dead[p.as_u32() as usize]).collect();
            for edge in &self.blocks[index(block)].preds {
                let args = &mut target(&mut self.func.blocks[edge.from].term, edge.slot).args;
                let mut kept = keep.iter();
                args.retain(|_| kept.next().copied().unwrap_or(false));
            }
            for (param, keep) in params.into_iter().zip(keep) {
                if keep {
                    let number = self.func.blocks[block].params.len() as u16;
                    self.func.values[param].def = ValueDef::Param(block, number);
                    self.func.blocks[block].params.push(param);
                }
            }
        }
    }

    /// What a value stands for. Shortens the chain it follows, so that long
    /// ones are followed once.
    fn resolve(&mut self, v: Value) -> Value {
        let root = self.func.resolve(v);
        let mut at = v;
        while let ValueDef::Alias(next) = self.func.values[at].def {
            self.func.values[at].def = ValueDef::Alias(root);
            at = next;
        }
        root
    }

    /// The one value a parameter can have, if there is only one.
    fn only_argument(&mut self, block: Block, number: usize, param: Value) -> Option<Value> {
        let mut only = None;
        for k in 0..self.blocks[index(block)].preds.len() {
            let edge = self.blocks[index(block)].preds[k];
            let arg = target(&mut self.func.blocks[edge.from].term, edge.slot).args[number];
            let arg = self.resolve(arg);
            if arg == param {
                continue;
            }
            match only {
                Some(value) if value != arg => return None,
                _ => only = Some(arg),
            }
        }
        only
    }
}

fn index(block: Block) -> usize {
    block.as_u32() as usize
}

/// One of a terminator's targets, `default` and `els` last. Edges are made
/// from the targets a terminator has, so the slot is always there.
fn target(term: &mut Terminator, slot: usize) -> &mut Target {
    match term {
        Terminator::Branch { then, els, .. } => {
            if slot == 0 {
                then
            } else {
                els
            }
        }
        Terminator::Switch { targets, default, .. } => targets.get_mut(slot).unwrap_or(default),
        Terminator::Jump(target) => target,
        Terminator::Return(_) | Terminator::Trap(_) => unreachable!("an edge leaves a block that has none"),
    }
}
