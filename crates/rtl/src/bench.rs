//! A test bench: values from the plain interpreter, for any Verilog simulator.

use crate::options::Refusal;
use crate::ports::{Port, Ports, Source};
use ciphermill_machine::eval::{Memory, Outcome, Value, execute};
use ciphermill_machine::{Instr, Machine, OperandKind, Reg};
use std::fmt::Write;

/// Cases in a test bench.
const CASES: u64 = 200;

/// There is none: the instructions here do not reach it.
struct NoMemory;

impl Memory for NoMemory {
    fn load(&self, _: u64, _: u8) -> Option<u64> {
        None
    }
    fn store(&mut self, _: u64, _: u8, _: u64) -> Option<()> {
        None
    }
}

/// The outputs for values of the inputs, by the plain interpreter.
///
/// # Errors
/// A [`Refusal`] when the machine has too few registers to try it on.
pub fn outputs(machine: &Machine, instr: &Instr, ports: &Ports, inputs: &[u64]) -> Result<Vec<u64>, Refusal> {
    let refuse = || Refusal(format!("{} cannot be tried out", instr.name));
    let mut regs = vec![0; machine.regs.len()];
    let mut places = Vec::new();
    let mut taken: Vec<Reg> = ports
        .inputs
        .iter()
        .chain(&ports.outputs)
        .filter_map(|p| if let Source::Fixed(r) = p.source { Some(r) } else { None })
        .collect();
    let mut operands = Vec::new();
    for (i, o) in instr.operands.iter().enumerate() {
        let given = ports.inputs.iter().position(|p| p.source == Source::Operand(i)).map(|n| inputs[n]);
        match &o.kind {
            OperandKind::Reg { file, .. } => {
                let f = &machine.files[*file];
                let free =
                    (f.first.0..f.first.0 + f.count).map(Reg).find(|r| !machine.reg(*r).zero && !taken.contains(r));
                let reg = free.ok_or_else(refuse)?;
                taken.push(reg);
                regs[usize::from(reg.0)] = given.unwrap_or(0);
                operands.push(Value::Reg(reg));
                places.push(Some(reg));
            }
            _ => {
                operands.push(Value::Imm(signed(ports, i, given.unwrap_or(0))));
                places.push(None);
            }
        }
    }
    for (port, &value) in ports.inputs.iter().zip(inputs) {
        if let Source::Fixed(r) = port.source {
            regs[usize::from(r.0)] = value;
        }
    }
    let outcome = execute(machine, &instr.semantics, &operands, &mut regs, 0, &mut NoMemory);
    if outcome != Some(Outcome::Next) {
        return Err(refuse());
    }
    let value = |p: &Port| match p.source {
        Source::Fixed(r) => Some(regs[usize::from(r.0)]),
        Source::Operand(i) => places[i].map(|r: Reg| regs[usize::from(r.0)]),
    };
    ports.outputs.iter().map(|p| value(p).ok_or_else(refuse)).collect()
}

/// The number that the bits of an immediate's port stand for.
fn signed(ports: &Ports, operand: usize, bits: u64) -> i64 {
    match ports.input(Source::Operand(operand)) {
        Some(p) if p.signed => ciphermill_ir::ops::sext(bits, u32::from(p.bits)),
        _ => bits as i64,
    }
}

/// Values of the inputs for case `n`: the extremes, single bits, then noise.
pub fn case(ports: &Ports, n: u64) -> Vec<u64> {
    let value = |(i, p): (usize, &Port)| {
        let mask = ciphermill_ir::ops::mask(u32::from(p.bits));
        let noise = {
            let x = (n * 64 + i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x2545_f491_4f6c_dd1d);
            let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x ^ x >> 31
        };
        mask & match n {
            0 => 0,
            1 => u64::MAX,
            2..34 => 1 << ((n - 2 + i as u64) % 64),
            _ => noise,
        }
    };
    ports.inputs.iter().enumerate().map(value).collect()
}

/// The test bench. It prints `PASS` or a line for each wrong case.
pub fn bench(machine: &Machine, instr: &Instr, ports: &Ports) -> Result<String, Refusal> {
    let module = &ports.module;
    let mut text = format!(
        "// {CASES} cases of {}, computed from its semantics.\n`timescale 1ns / 1ps\nmodule {module}_tb;\n",
        instr.name
    );
    let range = |bits: u8| if bits == 1 { String::new() } else { format!("[{}:0] ", bits - 1) };
    for p in &ports.inputs {
        let _ = writeln!(text, "    reg  {}{};", range(p.bits), p.name);
    }
    for p in &ports.outputs {
        let _ = writeln!(text, "    wire {}{};", range(p.bits), p.name);
    }
    let all: Vec<String> = ports.inputs.iter().chain(&ports.outputs).map(|p| format!(".{0}({0})", p.name)).collect();
    let _ = writeln!(text, "    integer wrong = 0;\n\n    {module} dut ({});\n", all.join(", "));
    let (ins, outs): (Vec<&str>, Vec<String>) = (
        ports.inputs.iter().map(|p| p.name.as_str()).collect(),
        ports.outputs.iter().map(|p| format!("{}_expected", p.name)).collect(),
    );
    text.push_str("    task try;\n");
    for p in &ports.inputs {
        let _ = writeln!(text, "        input {}{}_given;", range(p.bits), p.name);
    }
    for p in &ports.outputs {
        let _ = writeln!(text, "        input {}{}_expected;", range(p.bits), p.name);
    }
    text.push_str("        begin\n");
    for name in &ins {
        let _ = writeln!(text, "            {name} = {name}_given;");
    }
    text.push_str("            #1;\n");
    for (p, expected) in ports.outputs.iter().zip(&outs) {
        let _ = writeln!(
            text,
            "            if ({0} !== {expected}) begin\n                wrong = wrong + 1;\n                \
             $display(\"{0} is %h, not %h\", {0}, {expected});\n            end",
            p.name
        );
    }
    text.push_str("        end\n    endtask\n\n    initial begin\n");
    for n in 0..CASES {
        let inputs = case(ports, n);
        let results = outputs(machine, instr, ports, &inputs)?;
        let given = ports.inputs.iter().zip(&inputs).chain(ports.outputs.iter().zip(&results));
        let args: Vec<String> = given.map(|(p, v)| format!("{}'h{v:x}", p.bits)).collect();
        let _ = writeln!(text, "        try({});", args.join(", "));
    }
    text.push_str("        if (wrong == 0) $display(\"PASS\");\n        else $display(\"FAIL: %0d wrong\", wrong);\n");
    text.push_str("        $finish;\n    end\nendmodule\n");
    Ok(text)
}
