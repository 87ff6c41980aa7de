//! Modules from WebAssembly text, and functions as text.

use ciphermill_ir::{Func, Module, Op, Terminator, Value, ValueDef};

/// Load a module written as text.
pub fn module(wat: &str) -> Module {
    let wasm = wat::parse_str(wat).unwrap_or_else(|e| panic!("{e}\n{wat}"));
    ciphermill_load::load(&wasm).unwrap_or_else(|e| panic!("{e}\n{wat}"))
}

/// The exported function `name`.
pub fn func<'a>(module: &'a Module, name: &str) -> &'a Func {
    &module.funcs[module.export(name).expect("the export exists")]
}

/// A value as a nested expression over parameters `p0`, `p1`, ... of the
/// entry; what no expression shows (other blocks' parameters) is `?`.
pub fn expr(func: &Func, v: Value) -> String {
    let inst = match func.values[func.resolve(v)].def {
        ValueDef::Param(block, i) if block == func.entry => return format!("p{i}"),
        ValueDef::Inst(inst, 0) => inst,
        _ => return "?".into(),
    };
    let data = &func.insts[inst];
    let args: Vec<String> = data.args.iter().map(|&v| expr(func, v)).collect();
    let args = args.join(", ");
    match data.op {
        Op::Const(c) if func.ty(v).bits() == 32 => format!("{}", c as u32 as i32),
        Op::Const(c) => format!("{}", c as i64),
        Op::Bin(op) => format!("{op}({args})"),
        Op::Un(op) => format!("{op}({args})"),
        Op::Cmp(op) => format!("{op}({args})"),
        Op::Select => format!("select({args})"),
        Op::Wrap => format!("wrap({args})"),
        Op::ZExt => format!("zext({args})"),
        Op::SExt => format!("sext({args})"),
        Op::Load(a) => {
            let sign = if a.signed { "s" } else { "u" };
            format!("load{sign}{}({args} + {})", u32::from(a.bytes) * 8, a.offset)
        }
        Op::GlobalGet(g) => format!("{g}"),
        other => format!("{other:?}"),
    }
}

/// What a function of one block returns, as expressions.
pub fn returned(func: &Func) -> String {
    let last = func.layout.last().expect("a function has blocks");
    match &func.blocks[*last].term {
        Terminator::Return(values) => values.iter().map(|&v| expr(func, v)).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

/// How many instructions of live blocks satisfy `f`.
pub fn count(func: &Func, f: impl Fn(Op) -> bool) -> usize {
    let insts = func.layout.iter().flat_map(|&b| &func.blocks[b].insts);
    insts.filter(|&&i| f(func.insts[i].op)).count()
}
