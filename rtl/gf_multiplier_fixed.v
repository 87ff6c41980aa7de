// The multiplier with its constants in the wiring: the 4x4 matrix MATRIX over
// the field of POLYNOMIAL. Byte 4 * row + column of MATRIX, lowest byte first,
// is the constant by which byte `column` of x goes into byte `row` of product.
// The default is AES MixColumns.
module gf_multiplier_fixed #(
    parameter [8:0]   POLYNOMIAL = 9'h11b,
    parameter [127:0] MATRIX = 128'h02010103_03020101_01030201_01010302
) (
    input  wire [31:0] x,
    output wire [31:0] product
);
    // A constant times a power of x in the field.
    function [7:0] times_power;
        input [7:0] constant;
        input integer power;
        integer i;
        reg [8:0] value;
        begin
            value = {1'b0, constant};
            for (i = 0; i < power; i = i + 1) begin
                value = value << 1;
                if (value[8]) value = value ^ POLYNOMIAL;
            end
            times_power = value[7:0];
        end
    endfunction

    genvar row, column, b;
    generate
        for (row = 0; row < 4; row = row + 1) begin : rows
            wire [255:0] terms;
            for (column = 0; column < 4; column = column + 1) begin : columns
                for (b = 0; b < 8; b = b + 1) begin : bits
                    localparam [7:0] PRODUCT = times_power(MATRIX[(4*row + column)*8 +: 8], b);
                    assign terms[(8*column + b)*8 +: 8] = PRODUCT & {8{x[8*column + b]}};
                end
            end
            for (b = 0; b < 8; b = b + 1) begin : sums
                wire [31:0] same;
                for (column = 0; column < 32; column = column + 1) begin : gather
                    assign same[column] = terms[8*column + b];
                end
                assign product[8*row + b] = ^same;
            end
        end
    endgenerate
endmodule
