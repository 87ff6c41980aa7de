//! Each rule of the verifier, broken once.

use super::*;
use crate::ids::{FuncId, GlobalId};
use crate::module::GlobalData;
use crate::ops::{BinOp, CmpOp, Space, TrapCode};

/// `f(x: i32) -> i32`: loops while x != 0, then returns x + 1.
fn sample() -> Module {
    let sig = Signature { params: vec![Type::I32], results: vec![Type::I32] };
    let mut func = Func::new("f", sig);
    let x = func.blocks[func.entry].params[0];
    let head = func.add_block();
    let p = func.add_param(head, Type::I32);
    let done = func.add_block();
    func.blocks[func.entry].term = Terminator::Jump(Target::new(head, vec![x]));
    let one = func.append1(head, Op::Const(1), &[], Type::I32, 0);
    let sum = func.append1(head, Op::Bin(BinOp::Add), &[p, one], Type::I32, 0);
    func.blocks[head].term =
        Terminator::Branch { cond: sum, then: Target::new(head, vec![sum]), els: Target::new(done, vec![]) };
    func.blocks[done].term = Terminator::Return(vec![sum]);
    let mut module = Module::default();
    module.funcs.push(func);
    module.globals.push(GlobalData { ty: Type::I32, mutable: false, init: 1, system_offset: 8, name: None });
    module
}

/// Break the sample and give the verifier's message.
fn fault(breaking: impl FnOnce(&mut Func, [Block; 3])) -> String {
    let mut module = sample();
    let func = &mut module.funcs[FuncId::from_u32(0)];
    let blocks = [0, 1, 2].map(Block::from_u32);
    breaking(func, blocks);
    verify(&module).expect_err("the fault has to be found").to_string()
}

fn contains(text: &str, part: &str) {
    assert!(text.contains(part), "{text}");
}

#[test]
fn the_sample_is_well_formed() {
    assert_eq!(verify(&sample()), Ok(()));
}

#[test]
fn use_before_definition() {
    let text = fault(|f, [_, head, _]| f.blocks[head].insts.swap(0, 1));
    contains(&text, "function \"f\", block1, `v3: i32 = add v1, v2`");
    contains(&text, "used before its definition");
}

#[test]
fn use_without_dominance() {
    let text = fault(|f, [entry, head, done]| {
        let x = f.blocks[entry].params[0];
        f.blocks[entry].term =
            Terminator::Branch { cond: x, then: Target::new(head, vec![x]), els: Target::new(done, vec![]) };
    });
    contains(&text, "block2, `return v3`: the definition of v3 does not dominate");
}

#[test]
fn replaced_values() {
    let text = fault(|f, [entry, head, _]| {
        let (x, p) = (f.blocks[entry].params[0], f.blocks[head].params[0]);
        f.blocks[head].params.clear();
        f.replace(p, x);
    });
    contains(&text, "v1 has been replaced by v0");
}

#[test]
fn block_arguments() {
    let wrong_count = fault(|f, [entry, head, _]| f.blocks[entry].term = Terminator::Jump(Target::new(head, vec![])));
    contains(&wrong_count, "block1 gets (), wants (i32)");
    let wrong_type = fault(|f, [entry, head, _]| {
        let x = f.blocks[entry].params[0];
        let wide = f.append1(entry, Op::ZExt, &[x], Type::I64, 0);
        f.blocks[entry].term = Terminator::Jump(Target::new(head, vec![wide]));
    });
    contains(&wrong_type, "block1 gets (i64), wants (i32)");
}

#[test]
fn layout_and_entry() {
    contains(&fault(|f, [_, _, done]| f.layout.push(done)), "in the layout twice");
    contains(&fault(|f, _| f.layout.truncate(2)), "reachable but not in the layout");
    contains(&fault(|f, _| f.layout.retain(|&b| b != f.entry)), "the entry block is not in the layout");
    let text = fault(|f, [entry, _, done]| {
        let x = f.blocks[entry].params[0];
        f.blocks[done].term = Terminator::Jump(Target::new(entry, vec![x]));
    });
    contains(&text, "leads to the entry");
    contains(&fault(|f, _| f.sig.params.clear()), "are not the signature's");
    let twice = fault(|f, [_, head, _]| {
        let inst = f.blocks[head].insts[0];
        f.blocks[head].insts.push(inst);
    });
    contains(&twice, "stands in two places");
}

#[test]
fn operand_types() {
    let op = |op: Op, args: &'static [usize], result: Option<Type>| {
        fault(move |f, [entry, ..]| {
            let x = f.blocks[entry].params[0];
            let wide = f.append1(entry, Op::ZExt, &[x], Type::I64, 0);
            let args: Vec<Value> = args.iter().map(|&i| [x, wide][i]).collect();
            f.append(entry, op, &args, result.as_slice(), 0);
        })
    };
    let i32 = Some(Type::I32);
    let i64 = Some(Type::I64);
    contains(&op(Op::Bin(BinOp::Add), &[0, 1], i32), "operands (i32, i64)");
    contains(&op(Op::Cmp(CmpOp::Eq), &[1, 1], i64), "results (i64), wanted (i32)");
    contains(&op(Op::Select, &[1, 0, 0], i32), "wanted (i32, i32, i32)");
    contains(&op(Op::Un(UnOp::SExt32), &[0], i32), "wanted (i64)");
    contains(&op(Op::Wrap, &[0], i32), "wanted (i64)");
    contains(&op(Op::Const(1 << 32), &[], i32), "does not fit i32");
    let access = |bytes| MemAccess { bytes, signed: false, align: 1, offset: 0, space: Space::Linear };
    contains(&op(Op::Load(access(8)), &[0], i32), "8 bytes with a value of type i32");
    contains(&op(Op::Load(access(3)), &[0], i32), "3 bytes");
    contains(&op(Op::Store(access(8)), &[0, 0], None), "8 bytes");
    let aligned = |align| Op::Load(MemAccess { align, ..access(4) });
    contains(&op(aligned(8), &[0], i32), "aligned to 8");
    contains(&op(aligned(3), &[0], i32), "aligned to 3");
    contains(&op(Op::Load(access(4)), &[1], i32), "operands (i64), wanted (i32)");
    contains(&op(Op::GlobalSet(GlobalId::from_u32(0)), &[0], None), "not mutable");
    contains(&op(Op::GlobalGet(GlobalId::from_u32(7)), &[], i32), "does not exist");
    contains(&op(Op::Call(FuncId::from_u32(0)), &[1], i32), "operands (i64), wanted (i32)");
    contains(&op(Op::Call(FuncId::from_u32(0)), &[0], None), "results (), wanted (i32)");
}

#[test]
fn returns() {
    let text = fault(|f, [_, _, done]| f.blocks[done].term = Terminator::Return(vec![]));
    contains(&text, "returns (), wanted (i32)");
}

#[test]
fn unreachable_blocks_are_checked_for_types_only() {
    let mut module = sample();
    let func = &mut module.funcs[FuncId::from_u32(0)];
    let dead = func.add_block();
    let sum = func.insts.keys().next_back().map(|i| func.result(i)).unwrap();
    func.blocks[dead].term = Terminator::Return(vec![sum]);
    assert_eq!(verify(&module), Ok(()));
    let func = &mut module.funcs[FuncId::from_u32(0)];
    func.blocks[dead].term = Terminator::Return(vec![]);
    assert!(verify(&module).is_err());
}

#[test]
fn module_references() {
    let mut module = sample();
    module.start = Some(FuncId::from_u32(0));
    contains(&verify(&module).unwrap_err().to_string(), "module: start function");
    module.start = None;
    module.exports.push(("g".into(), FuncId::from_u32(9)));
    contains(&verify(&module).unwrap_err().to_string(), "export \"g\"");
    module.exports.clear();
    let mut idle = Func::new("idle", Signature::default());
    idle.blocks[idle.entry].term = Terminator::Trap(TrapCode::Unreachable);
    module.start = Some(module.funcs.push(idle));
    assert_eq!(verify(&module), Ok(()));
}
