// The unit of aes_v5: four S-boxes of both directions, and two halves of
// MixColumns of both. `upper` exchanges the sources, `straight` takes the bytes
// of rs1 as they stand.
module unit_aes_v5 #(
    parameter SHARED = 1    // inversion and MixColumns serve both directions
) (
    input  wire        decrypt,
    input  wire        mix,
    input  wire        upper,
    input  wire        straight,
    input  wire [31:0] rs1,
    input  wire [31:0] rs2,
    output wire [31:0] rd
);
    wire [31:0] x = upper ? rs2 : rs1;
    wire [31:0] y = upper ? rs1 : rs2;
    wire [7:0] i1 = straight ? x[15:8] : decrypt ? y[31:24] : x[31:24];
    wire [7:0] i3 = straight ? x[31:24] : decrypt ? x[15:8] : y[15:8];
    wire [31:0] boxed, left, right;
    aes_sbox_both #(.SHARED(SHARED)) s0 (.decrypt(decrypt), .index(x[7:0]), .value(boxed[7:0]));
    aes_sbox_both #(.SHARED(SHARED)) s1 (.decrypt(decrypt), .index(i1), .value(boxed[15:8]));
    aes_sbox_both #(.SHARED(SHARED)) s2 (.decrypt(decrypt), .index(x[23:16]), .value(boxed[23:16]));
    aes_sbox_both #(.SHARED(SHARED)) s3 (.decrypt(decrypt), .index(i3), .value(boxed[31:24]));
    generate
        if (SHARED) begin : one_mix
            aes_mix_both column0 (.decrypt(decrypt), .x({rs2[15:0], rs1[15:0]}), .y(left));
            aes_mix_both column1 (.decrypt(decrypt), .x({rs2[31:16], rs1[31:16]}), .y(right));
        end else begin : two_mixes
            aes_mix_separate column0 (.decrypt(decrypt), .x({rs2[15:0], rs1[15:0]}), .y(left));
            aes_mix_separate column1 (.decrypt(decrypt), .x({rs2[31:16], rs1[31:16]}), .y(right));
        end
    endgenerate
    assign rd = mix ? {right[15:0], left[15:0]} : boxed;
endmodule
