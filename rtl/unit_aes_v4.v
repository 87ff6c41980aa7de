// The unit of aes_v4, for words of 64 bits: eight S-boxes of both directions,
// two columns of MixColumns of both. `plain` leaves the S-boxes out, `straight`
// puts the lower half of rs1 through them as it stands and leaves the upper.
module unit_aes_v4 #(
    parameter SHARED = 1    // inversion and MixColumns serve both directions
) (
    input  wire        decrypt,
    input  wire        mix,
    input  wire        plain,
    input  wire        straight,
    input  wire [63:0] rs1,
    input  wire [63:0] rs2,
    output wire [63:0] rd
);
    // The rows that ShiftRows takes from one source in encryption and from the
    // other in decryption.
    wire [63:0] here  = decrypt ? rs2 : rs1;
    wire [63:0] there = decrypt ? rs1 : rs2;
    wire [63:0] index = {here[31:24], rs2[55:48], there[15:8], rs1[39:32],
                         straight ? rs1[31:0] : {there[63:56], rs2[23:16], here[47:40], rs1[7:0]}};
    wire [63:0] boxed, mixed;
    genvar i;
    generate
        for (i = 0; i < 8; i = i + 1) begin : bytes
            aes_sbox_both #(.SHARED(SHARED)) box (.decrypt(decrypt), .index(index[8*i +: 8]), .value(boxed[8*i +: 8]));
        end
        for (i = 0; i < 2; i = i + 1) begin : columns
            wire [31:0] x = plain ? rs1[32*i +: 32] : boxed[32*i +: 32];
            if (SHARED) begin : one_mix
                aes_mix_both column (.decrypt(decrypt), .x(x), .y(mixed[32*i +: 32]));
            end else begin : two_mixes
                aes_mix_separate column (.decrypt(decrypt), .x(x), .y(mixed[32*i +: 32]));
            end
        end
    endgenerate
    assign rd = mix ? mixed : {straight ? rs1[63:32] : boxed[63:32], boxed[31:0]};
endmodule
