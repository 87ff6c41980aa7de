//! Readable text of functions and modules, for people and for tests.
//!
//! One line an instruction: `v7: i32 = add v3, v5`. A load or store names its
//! width, sign extension, space and offset: `load.s8 linear v3 + 16`. Blocks
//! stand in layout order with their parameters; a target shows the arguments
//! it hands over. Nothing is hidden and nothing depends on hashing, so equal
//! functions print equal text.

use crate::func::{BlockData, Func, Inst, Target, Terminator, Value};
use crate::module::Module;
use crate::ops::{BinOp, Chain, CmpOp, MemAccess, Op, Signature, Space, Type, UnOp};
use std::fmt::{self, Display, Formatter, Write};

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::I32 => "i32",
            Type::I64 => "i64",
        })
    }
}

impl Display for BinOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BinOp::Add => "add",
            BinOp::Sub => "sub",
            BinOp::Mul => "mul",
            BinOp::MulHiU => "mulhi_u",
            BinOp::MulHiS => "mulhi_s",
            BinOp::DivU => "div_u",
            BinOp::DivS => "div_s",
            BinOp::RemU => "rem_u",
            BinOp::RemS => "rem_s",
            BinOp::And => "and",
            BinOp::Or => "or",
            BinOp::Xor => "xor",
            BinOp::Shl => "shl",
            BinOp::ShrU => "shr_u",
            BinOp::ShrS => "shr_s",
            BinOp::RotL => "rotl",
            BinOp::RotR => "rotr",
        })
    }
}

impl Display for UnOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnOp::Clz => "clz",
            UnOp::Ctz => "ctz",
            UnOp::Popcnt => "popcnt",
            UnOp::SExt8 => "sext8",
            UnOp::SExt16 => "sext16",
            UnOp::SExt32 => "sext32",
            UnOp::Bswap => "bswap",
        })
    }
}

impl Display for CmpOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CmpOp::Eq => "eq",
            CmpOp::Ne => "ne",
            CmpOp::LtU => "lt_u",
            CmpOp::LtS => "lt_s",
            CmpOp::LeU => "le_u",
            CmpOp::LeS => "le_s",
        })
    }
}

impl Display for Space {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Linear => "linear",
            Space::System => "system",
            Space::Stack => "stack",
            Space::Flash => "flash",
        })
    }
}

impl Display for Signature {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let list = |types: &[Type]| types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "({}) -> ({})", list(&self.params), list(&self.results))
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.block, values(&self.args))
    }
}

impl Display for Terminator {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Terminator::Jump(target) => write!(f, "jump {target}"),
            Terminator::Branch { cond, then, els } => write!(f, "branch {cond}, {then}, {els}"),
            Terminator::Switch { index, targets, default } => {
                write!(f, "switch {index}, [")?;
                for (i, target) in targets.iter().enumerate() {
                    write!(f, "{}{target}", if i == 0 { "" } else { ", " })?;
                }
                write!(f, "], {default}")
            }
            Terminator::Return(results) if results.is_empty() => f.write_str("return"),
            Terminator::Return(results) => write!(f, "return {}", values(results)),
            Terminator::Trap(code) => write!(f, "trap {code:?}"),
        }
    }
}

fn values(list: &[Value]) -> String {
    list.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

/// `.s8`, `.u16`: how a load widens; the signedness of a store says nothing.
/// Alignment is shown where less is stated than the access is wide.
fn access(name: &str, a: MemAccess, load: bool) -> String {
    let sign = match (load, a.signed) {
        (false, _) => "",
        (true, true) => "s",
        (true, false) => "u",
    };
    let align = if a.align < a.bytes { format!(" align {}", a.align) } else { String::new() };
    format!("{name}.{sign}{} {}{align}", u32::from(a.bytes) * 8, a.space)
}

impl Func {
    /// One instruction as text, without its line end.
    pub fn inst_text(&self, inst: Inst) -> String {
        let data = &self.insts[inst];
        let mut out = String::new();
        for (i, &v) in data.results.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            let _ = write!(out, "{comma}{v}: {}", self.values[v].ty);
        }
        if !data.results.is_empty() {
            out.push_str(" = ");
        }
        let args = values(&data.args);
        let (first, rest) = match data.args.split_first() {
            Some((first, rest)) => (first.to_string(), values(rest)),
            None => Default::default(),
        };
        let _ = match data.op {
            Op::Const(c) if c < 10 => write!(out, "const {c}"),
            Op::Const(c) => write!(out, "const {c:#x}"),
            Op::Bin(op) => write!(out, "{op} {args}"),
            Op::Un(op) => write!(out, "{op} {args}"),
            Op::Cmp(op) => write!(out, "{op} {args}"),
            Op::Select => write!(out, "select {args}"),
            Op::Wrap => write!(out, "wrap {args}"),
            Op::ZExt => write!(out, "zext {args}"),
            Op::SExt => write!(out, "sext {args}"),
            Op::Load(a) => write!(out, "{} {first} + {}", access("load", a, true), a.offset),
            Op::Store(a) => write!(out, "{} {first} + {}, {rest}", access("store", a, false), a.offset),
            Op::GlobalGet(g) => write!(out, "global_get {g}"),
            Op::GlobalSet(g) => write!(out, "global_set {g}, {args}"),
            Op::Call(callee) => write!(out, "call {callee}({args})"),
            Op::CallPtr(sig) => write!(out, "call_ptr {sig} {first}({rest})"),
            Op::Apply(n) => write!(out, "apply {n}({args})"),
            Op::Chain(Chain::Compare(op), bits) => write!(out, "chain{bits} {op} {args}"),
            Op::Chain(chain, bits) => write!(out, "chain{bits} {} {args}", format!("{chain:?}").to_lowercase()),
        };
        out
    }

    fn write_block(&self, f: &mut Formatter<'_>, data: &BlockData) -> fmt::Result {
        for &inst in &data.insts {
            writeln!(f, "    {}", self.inst_text(inst))?;
        }
        writeln!(f, "    {}", data.term)
    }
}

impl Display for Func {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "func {:?} {} {{", self.name, self.sig)?;
        for &block in &self.layout {
            let data = &self.blocks[block];
            let params: Vec<String> = data.params.iter().map(|&v| format!("{v}: {}", self.values[v].ty)).collect();
            let mark = if block == self.entry { " ; entry" } else { "" };
            writeln!(f, "{block}({}):{mark}", params.join(", "))?;
            self.write_block(f, data)?;
        }
        writeln!(f, "}}")
    }
}

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "memory {} .. {} pages", self.memory.min_pages, self.memory.max_pages)?;
        for (id, global) in &self.globals {
            let kind = if global.mutable { "mut " } else { "" };
            let name = global.name.as_deref().unwrap_or("");
            let (ty, init, at) = (global.ty, global.init, global.system_offset);
            writeln!(f, "{id} {name:?}: {kind}{ty} = {init:#x} at system + {at}")?;
        }
        for segment in &self.data {
            let kind = if segment.readonly { "readonly " } else { "" };
            let name = segment.name.as_deref().unwrap_or("");
            writeln!(f, "data {name:?} {kind}at {:#x}, {} bytes", segment.addr, segment.bytes.len())?;
        }
        writeln!(f, "system area: {} bytes", self.system.bytes.len())?;
        for func_ref in &self.system.func_refs {
            writeln!(f, "system + {}: address of {}", func_ref.offset, func_ref.func)?;
        }
        for (id, sig) in &self.sigs {
            writeln!(f, "{id} {sig}")?;
        }
        for (name, func) in &self.exports {
            writeln!(f, "export {name:?} {func}")?;
        }
        for (name, global) in &self.exported_globals {
            writeln!(f, "export {name:?} {global}")?;
        }
        if let Some(start) = self.start {
            writeln!(f, "start {start}")?;
        }
        for (id, func) in &self.funcs {
            write!(f, "\n; {id}\n{func}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::TrapCode;

    #[test]
    fn text_of_a_function() {
        let sig = Signature { params: vec![Type::I32], results: vec![Type::I32] };
        let mut func = Func::new("f", sig);
        let x = func.blocks[func.entry].params[0];
        let done = func.add_block();
        let out = func.add_param(done, Type::I32);
        let mem = MemAccess { bytes: 1, signed: true, align: 1, offset: 16, space: Space::Linear };
        let byte = func.append1(func.entry, Op::Load(mem), &[x], Type::I32, 0);
        func.append(func.entry, Op::Store(mem), &[x, byte], &[], 0);
        let bad = func.add_block();
        func.blocks[func.entry].term =
            Terminator::Branch { cond: byte, then: Target::new(done, vec![byte]), els: Target::new(bad, vec![]) };
        func.blocks[bad].term = Terminator::Trap(TrapCode::Unreachable);
        func.blocks[done].term = Terminator::Return(vec![out]);
        let want = r#"func "f" (i32) -> (i32) {
block0(v0: i32): ; entry
    v2: i32 = load.s8 linear v0 + 16
    store.8 linear v0 + 16, v2
    branch v2, block1(v2), block2()
block1(v1: i32):
    return v1
block2():
    trap Unreachable
}
"#;
        assert_eq!(func.to_string(), want);
    }
}
