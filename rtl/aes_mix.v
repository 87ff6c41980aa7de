// MixColumns and its inverse with shared logic.

// A byte times 2 in the field of x^8 + x^4 + x^3 + x + 1.
module aes_times_2 (
    input  wire [7:0] x,
    output wire [7:0] y
);
    assign y = {x[6:4], x[3] ^ x[7], x[2] ^ x[7], x[1], x[0] ^ x[7], x[7]};
endmodule

// A column times (02 03 01 01): each byte is 2(a + b) + b + (c + d) of it and
// the three that follow it.
module aes_mix_column (
    input  wire [31:0] x,
    output wire [31:0] y
);
    // Sums of neighbours, each used twice.
    wire [31:0] pair = x ^ {x[7:0], x[31:8]};
    wire [31:0] twice;
    aes_times_2 t0 (.x(pair[7:0]), .y(twice[7:0]));
    aes_times_2 t1 (.x(pair[15:8]), .y(twice[15:8]));
    aes_times_2 t2 (.x(pair[23:16]), .y(twice[23:16]));
    aes_times_2 t3 (.x(pair[31:24]), .y(twice[31:24]));
    assign y = twice ^ {x[7:0], x[31:8]} ^ {pair[15:0], pair[31:16]};
endmodule

// MixColumns or its inverse: (0e 0b 0d 09) = (02 03 01 01) x (05 00 04 00), so
// before mixing, 4(a + c) is added to each byte.
module aes_mix_both (
    input  wire        decrypt,
    input  wire [31:0] x,
    output wire [31:0] y
);
    wire [15:0] sum = x[15:0] ^ x[31:16];
    wire [15:0] twice, four;
    aes_times_2 t0 (.x(sum[7:0]), .y(twice[7:0]));
    aes_times_2 t1 (.x(sum[15:8]), .y(twice[15:8]));
    aes_times_2 f0 (.x(twice[7:0]), .y(four[7:0]));
    aes_times_2 f1 (.x(twice[15:8]), .y(four[15:8]));
    wire [15:0] more = four & {16{decrypt}};
    aes_mix_column mix (.x(x ^ {more, more}), .y(y));
endmodule

// The same with nothing shared by the two directions: faster, and larger.
module aes_mix_separate (
    input  wire        decrypt,
    input  wire [31:0] x,
    output wire [31:0] y
);
    wire [31:0] mixed, unmixed;
    aes_mix_column forward (.x(x), .y(mixed));
    aes_inverse_mix_column backward (.x(x), .y(unmixed));
    assign y = decrypt ? unmixed : mixed;
endmodule

// A column times (0e 09 0d 0b), each product of a byte by itself.
module aes_inverse_mix_column (
    input  wire [31:0] x,
    output wire [31:0] y
);
    wire [31:0] c0, c1, c2, c3;
    aes_inverse_mix_byte b0 (.x(x[7:0]), .y(c0));
    aes_inverse_mix_byte b1 (.x(x[15:8]), .y(c1));
    aes_inverse_mix_byte b2 (.x(x[23:16]), .y(c2));
    aes_inverse_mix_byte b3 (.x(x[31:24]), .y(c3));
    assign y = c0 ^ {c1[23:0], c1[31:24]} ^ {c2[15:0], c2[31:16]} ^ {c3[7:0], c3[31:8]};
endmodule

// A byte times 0e, 09, 0d and 0b, lowest first.
module aes_inverse_mix_byte (
    input  wire [7:0]  x,
    output wire [31:0] y
);
    wire [7:0] two, four, eight;
    aes_times_2 t2 (.x(x), .y(two));
    aes_times_2 t4 (.x(two), .y(four));
    aes_times_2 t8 (.x(four), .y(eight));
    wire [7:0] nine = eight ^ x;
    assign y = {nine ^ two, nine ^ four, nine, eight ^ four ^ two};
endmodule

// What one byte adds to its column: (02 01 01 03), or (0e 09 0d 0b) for the
// inverse, lowest byte first.
module aes_mix_byte_both (
    input  wire        decrypt,
    input  wire [7:0]  x,
    output wire [31:0] y
);
    wire [7:0] two, four, eight;
    aes_times_2 t2 (.x(x), .y(two));
    aes_times_2 t4 (.x(two), .y(four));
    aes_times_2 t8 (.x(four), .y(eight));
    wire [7:0] more = eight & {8{decrypt}};
    wire [7:0] most = (eight ^ four) & {8{decrypt}};
    assign y = {two ^ x ^ more, x ^ most, x ^ more, two ^ most};
endmodule
