//! Modules that instructions instantiate: tables and matrices.

use ciphermill_machine::Table;
use ciphermill_machine::gf2::{BitMatrix, Origin};
use serde::Serialize;
use std::fmt::Write;

/// A module of its own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Part {
    pub module: String,
    /// Its text; none for a hand-written module in `rtl/`.
    pub verilog: Option<String>,
}

/// Bits of a table's index.
pub fn index_bits(table: &Table) -> u8 {
    (table.values.len().max(2) - 1).ilog2() as u8 + 1
}

/// A table by a case statement. Beyond its last entry it starts again.
pub fn table(table: &Table) -> Part {
    let (module, bits, index) = (format!("table_{}", table.name), table.bits, index_bits(table));
    let digits = usize::from(bits).div_ceil(4);
    let mut text = format!(
        "// Constant table `{}`: {} entries of {bits} bits.\n\
         module {module} (\n    input  wire [{}:0] index,\n    output reg  [{}:0] value\n);\n    \
         always @* case (index)\n",
        table.name,
        table.values.len(),
        index - 1,
        bits - 1
    );
    let places = 1usize << index;
    for i in 0..places {
        let value = table.values[i % table.values.len()];
        // The last entry is the default, so that no latch is made.
        let label = if i + 1 == places { "default".to_owned() } else { format!("{index}'h{i:02x}") };
        let _ = writeln!(text, "        {label}: value = {bits}'h{value:0digits$x};");
    }
    text.push_str("    endcase\nendmodule\n");
    Part { module, verilog: Some(text) }
}

pub fn matrix_name(matrix: &BitMatrix) -> String {
    match &matrix.origin {
        Origin::Named(name) => format!("matrix_{name}"),
        Origin::Constant { constant, polynomial } => format!("gfmul_{constant:x}_{polynomial:x}"),
    }
}

/// A matrix over GF(2): each output bit a sum of input bits.
pub fn matrix(matrix: &BitMatrix) -> Part {
    let module = matrix_name(matrix);
    let about = match &matrix.origin {
        Origin::Named(name) => format!("Matrix `{name}` over GF(2)"),
        Origin::Constant { constant, polynomial } => {
            format!("Multiplication by {constant:#x} in the field of {polynomial:#x}")
        }
    };
    let mut text = format!(
        "// {about}.\nmodule {module} (\n    input  wire [{}:0] x,\n    output wire [{}:0] y\n);\n",
        matrix.columns - 1,
        matrix.rows.len() - 1
    );
    for (i, row) in matrix.rows.iter().enumerate() {
        let bits: Vec<String> = (0..matrix.columns).filter(|j| row >> j & 1 != 0).map(|j| format!("x[{j}]")).collect();
        let sum = if bits.is_empty() { "1'b0".to_owned() } else { bits.join(" ^ ") };
        let _ = writeln!(text, "    assign y[{i}] = {sum};");
    }
    text.push_str("endmodule\n");
    Part { module, verilog: Some(text) }
}
