// The general multiplier (gf_multiplier.v) for words of 8 or 16 bits, with the
// way in and out that registers of a word need: the operand comes a word an
// instruction, and a word of the product is read at a time, the first one by the
// instruction that brings the operand's last word.
//
// `load` stores `data` as the `part`-th word of the operand. With `last` it is the
// highest word, and the product is that of the operand as it is then; `word` is the
// `part`-th word of the product.
//
// The logic comes first: it is what is proved equal to the instructions.
module gf_word_product #(
    parameter WORD = 8,
    parameter PART = WORD == 8 ? 2 : 1
) (
    input  wire [1023:0]     matrix,
    input  wire [31:0]       held,
    input  wire              last,
    input  wire [WORD-1:0]   data,
    input  wire [PART-1:0]   part,
    output wire [WORD-1:0]   word
);
    wire [31:0] operand, product;

    assign operand = {last ? data : held[31:32-WORD], held[31-WORD:0]};
    gf_matrix_product multiply (.matrix(matrix), .operand(operand), .product(product));
    assign word = product[part*WORD +: WORD];
endmodule

module gf_multiplier_words #(
    parameter WORD = 8,
    parameter PART = WORD == 8 ? 2 : 1,
    parameter ADDRESS = WORD == 8 ? 7 : 6
) (
    input  wire               clock,
    input  wire               configure,
    input  wire [ADDRESS-1:0] address,
    input  wire               load,
    input  wire               last,
    input  wire [WORD-1:0]    data,
    input  wire [PART-1:0]    part,
    output wire [WORD-1:0]    word
);
    reg [1023:0] matrix;
    reg [31:0]   held;

    genvar g;
    generate
        for (g = 0; g < 1024 / WORD; g = g + 1) begin : storage
            always @(posedge clock)
                if (configure && address == g) matrix[g*WORD +: WORD] <= data;
        end
        for (g = 0; g < 32 / WORD; g = g + 1) begin : words
            always @(posedge clock)
                if (last ? g == 32 / WORD - 1 : load && part == g) held[g*WORD +: WORD] <= data;
        end
    endgenerate
    gf_word_product #(.WORD(WORD)) multiply (
        .matrix(matrix), .held(held), .last(last), .data(data), .part(part), .word(word)
    );
endmodule
