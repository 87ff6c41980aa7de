// The general multiplier: a 4x4 matrix of constants over GF(2^8), or any 32x32
// matrix over GF(2), held in flip-flops and loaded by the processor (Elbirt,
// AINAW 2007, III). WORD is the processor's word: 8, 16, 32 or 64 bits.
//
// Configuration: `configure` stores `data` as the `address`-th group of WORD
// bits of the matrix, row 0 first, the lowest bit of a row its first: 128, 64,
// 32 or 16 instructions for the 1,024 bits.
//
// Use: `load` shifts `data` into the operand register from above, so that after
// 32 / WORD of them (one, for 32 and 64 bits) the first byte is the lowest. The
// product stands at `product` in the cycle after.
//
// The product by itself comes first: it is what is proved equal to `mixcolm`.
module gf_matrix_product (
    input  wire [1023:0] matrix,
    input  wire [31:0]   operand,
    output wire [31:0]   product
);
    genvar row;
    generate
        for (row = 0; row < 32; row = row + 1) begin : rows
            assign product[row] = ^(matrix[row*32 +: 32] & operand);
        end
    endgenerate
endmodule

module gf_multiplier #(
    parameter WORD = 32,
    parameter ADDRESS = WORD == 8 ? 7 : WORD == 16 ? 6 : WORD == 32 ? 5 : 4
) (
    input  wire               clock,
    input  wire               configure,
    input  wire [ADDRESS-1:0] address,
    input  wire               load,
    input  wire [WORD-1:0]    data,
    output wire [31:0]        product
);
    reg [1023:0] matrix;
    reg [31:0]   operand;

    genvar g;
    generate
        for (g = 0; g < 1024 / WORD; g = g + 1) begin : storage
            always @(posedge clock)
                if (configure && address == g) matrix[g*WORD +: WORD] <= data;
        end
        if (WORD >= 32) begin : whole
            always @(posedge clock) if (load) operand <= data[31:0];
        end else begin : in_parts
            always @(posedge clock) if (load) operand <= {data, operand[31:WORD]};
        end
    endgenerate
    gf_matrix_product multiply (.matrix(matrix), .operand(operand), .product(product));
endmodule
