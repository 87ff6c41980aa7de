// The general multiplier by look-up tables: sixteen tables of 256 bytes, one
// for each constant of the matrix, and sums of four (Elbirt, AINAW 2007, III-A).
// 32,768 bits to load: 4,096, 2,048, 1,024 or 512 instructions.
//
// Configuration: `data` goes to the `address`-th group of WORD bits; a table's
// bytes follow one another, and the tables in the order of the rows.
// Use: as gf_multiplier.
module gf_multiplier_table #(
    parameter WORD = 32,
    parameter ADDRESS = WORD == 8 ? 12 : WORD == 16 ? 11 : WORD == 32 ? 10 : 9
) (
    input  wire               clock,
    input  wire               configure,
    input  wire [ADDRESS-1:0] address,
    input  wire               load,
    input  wire [WORD-1:0]    data,
    output wire [31:0]        product
);
    localparam EACH = WORD / 8;        // bytes of a word
    localparam PLACES = 256 / EACH;    // words of a table
    localparam PLACE = ADDRESS - 4;    // address bits within a table
    localparam INNER = 8 - PLACE;      // index bits within a word

    reg [31:0] operand;
    generate
        if (WORD >= 32) begin : whole
            always @(posedge clock) if (load) operand <= data[31:0];
        end else begin : in_parts
            always @(posedge clock) if (load) operand <= {data, operand[31:WORD]};
        end
    endgenerate

    wire [127:0] terms;
    genvar k, row;
    generate
        for (k = 0; k < 16; k = k + 1) begin : tables
            reg [WORD-1:0] store [0:PLACES-1];
            wire [7:0] index = operand[(k % 4)*8 +: 8];
            wire [WORD-1:0] word = store[index[7:INNER]];
            always @(posedge clock)
                if (configure && address[ADDRESS-1:PLACE] == k) store[address[PLACE-1:0]] <= data;
            if (INNER == 0) begin : byte_wide
                assign terms[k*8 +: 8] = word;
            end else begin : pick
                wire [WORD-1:0] down = word >> {index[INNER-1:0], 3'b000};
                assign terms[k*8 +: 8] = down[7:0];
            end
        end
        for (row = 0; row < 4; row = row + 1) begin : sums
            assign product[row*8 +: 8] =
                terms[row*32 +: 8] ^ terms[row*32+8 +: 8] ^ terms[row*32+16 +: 8] ^ terms[row*32+24 +: 8];
        end
    endgenerate
endmodule
