//! Control frames: from `block`, `loop`, `if` and branches to basic blocks.
//!
//! A frame knows where branches to it go (its *label*) and which operands they
//! carry. A `loop`'s label is its header, made when the frame opens and sealed
//! when it closes, since only then are all branches back known. Any other
//! frame's label is the block behind its `end`, made by the first branch to it,
//! with a parameter for each result. An `if` without `else` needs no block for
//! the condition zero: the edge is led straight to the label when that becomes
//! known. Leaving the function is a `return` where it can be one, and a branch
//! to a block that returns where it is conditional.

use crate::sections::value_type;
use crate::translator::{Frame, Kind, Refused, Translator};
use ciphermill_ir::{Block, Target, Terminator, Type};
use wasmparser::BlockType;

impl Translator<'_, '_, '_> {
    /// Parameter and result types of a control frame.
    fn block_types(&self, ty: BlockType) -> Result<(Vec<Type>, Vec<Type>), Refused> {
        let refused = |reason| Refused { what: Some("the type of a block".into()), reason };
        match ty {
            BlockType::Empty => Ok((Vec::new(), Vec::new())),
            BlockType::Type(ty) => Ok((Vec::new(), vec![value_type(ty).map_err(refused)?])),
            BlockType::FuncType(index) => {
                let sig = self.cx.source.types[index as usize].as_ref().map_err(|&reason| refused(reason))?;
                Ok((sig.params.clone(), sig.results.clone()))
            }
        }
    }

    pub fn enter_frame(&mut self, ty: BlockType, kind: Kind) -> Result<(), Refused> {
        let (params, results) = self.block_types(ty)?;
        let mut frame = Frame {
            live: self.live,
            label: None,
            height: self.stack.len(),
            results: results.len(),
            carries: if matches!(kind, Kind::Loop) { params.clone() } else { results },
            kind,
        };
        if self.live {
            frame.height -= params.len();
            if matches!(frame.kind, Kind::Loop) {
                let header = self.ssa.block(&params);
                let args = self.pop_many(params.len());
                self.terminate(Terminator::Jump(Target::new(header, args)));
                self.ssa.begin(header);
                self.block = header;
                self.live = true;
                self.stack.extend_from_slice(&self.ssa.func.blocks[header].params);
                frame.label = Some(header);
            }
        }
        self.frames.push(frame);
        Ok(())
    }

    pub fn enter_if(&mut self, ty: BlockType) -> Result<(), Refused> {
        if !self.live {
            return self.enter_frame(ty, Kind::Block);
        }
        let cond = self.pop();
        let (params, results) = self.block_types(ty)?;
        let (then, els) = (self.ssa.block(&[]), self.ssa.block(&[]));
        self.frames.push(Frame {
            kind: Kind::If(els, self.top_many(params.len())),
            live: true,
            label: None,
            height: self.stack.len() - params.len(),
            results: results.len(),
            carries: results,
        });
        let (then_target, els) = (Target::new(then, Vec::new()), Target::new(els, Vec::new()));
        self.terminate(Terminator::Branch { cond, then: then_target, els });
        self.enter(then);
        Ok(())
    }

    pub fn otherwise(&mut self) {
        let top = self.frames.len() - 1;
        if !self.frames[top].live {
            return;
        }
        if let Kind::If(els, operands) = std::mem::replace(&mut self.frames[top].kind, Kind::Block) {
            if self.live {
                self.branch(0);
            }
            self.stack.truncate(self.frames[top].height);
            self.stack.extend(operands);
            self.enter(els);
        }
    }

    pub fn end(&mut self) {
        if let Some(Kind::If(..)) = self.frames.last().filter(|f| f.live).map(|f| &f.kind) {
            self.end_if_without_else();
        }
        let top = self.frames.len() - 1;
        let is_function = matches!(self.frames[top].kind, Kind::Function);
        if is_function && self.live {
            let results = self.pop_many(self.frames[top].results);
            self.terminate(Terminator::Return(results));
        }
        let is_loop = matches!(self.frames[top].kind, Kind::Loop);
        let label = self.frames[top].label;
        if let (Some(label), false) = (label, is_loop) {
            if self.live {
                self.branch(0);
            }
            self.stack.truncate(self.frames[top].height);
            let params = self.frames[top].results;
            self.enter(label);
            self.stack.extend_from_slice(&self.ssa.func.blocks[label].params[..params]);
            if is_function {
                let results = self.pop_many(params);
                self.terminate(Terminator::Return(results));
            }
        } else if !self.live {
            self.stack.truncate(self.frames[top].height);
        }
        if let (Some(header), true) = (label, is_loop) {
            self.ssa.seal(header);
        }
        self.frames.pop();
    }

    /// The condition zero leads straight behind the `end`, with the operands
    /// the `if` started with.
    fn end_if_without_else(&mut self) {
        let top = self.frames.len() - 1;
        if let Kind::If(els, operands) = std::mem::replace(&mut self.frames[top].kind, Kind::Block) {
            let label = self.label(0);
            self.ssa.redirect(els, Target::new(label, operands));
        }
    }

    /// The block a branch of that depth goes to.
    fn label(&mut self, depth: u32) -> Block {
        let frame = self.frames.len() - 1 - depth as usize;
        match self.frames[frame].label {
            Some(label) => label,
            None => {
                let label = self.ssa.block(&self.frames[frame].carries);
                self.frames[frame].label = Some(label);
                label
            }
        }
    }

    /// The target of a branch of that depth, with the operands it carries.
    pub fn target(&mut self, depth: u32) -> Target {
        let label = self.label(depth);
        let frame = &self.frames[self.frames.len() - 1 - depth as usize];
        Target::new(label, self.top_many(frame.carries.len()))
    }

    pub fn branch(&mut self, depth: u32) {
        let frame = &self.frames[self.frames.len() - 1 - depth as usize];
        if matches!(frame.kind, Kind::Function) {
            let results = self.top_many(frame.results);
            return self.terminate(Terminator::Return(results));
        }
        let target = self.target(depth);
        self.terminate(Terminator::Jump(target));
    }
}
