// The unit of aes_v1: four S-boxes of both directions, MixColumns of both.
module unit_aes_v1 #(
    parameter SHARED = 1    // inversion and MixColumns serve both directions
) (
    input  wire        decrypt,
    input  wire        mix,
    input  wire [31:0] rs1,
    output wire [31:0] rd
);
    wire [31:0] boxed, mixed;
    aes_sbox_both #(.SHARED(SHARED)) s0 (.decrypt(decrypt), .index(rs1[7:0]), .value(boxed[7:0]));
    aes_sbox_both #(.SHARED(SHARED)) s1 (.decrypt(decrypt), .index(rs1[15:8]), .value(boxed[15:8]));
    aes_sbox_both #(.SHARED(SHARED)) s2 (.decrypt(decrypt), .index(rs1[23:16]), .value(boxed[23:16]));
    aes_sbox_both #(.SHARED(SHARED)) s3 (.decrypt(decrypt), .index(rs1[31:24]), .value(boxed[31:24]));
    generate
        if (SHARED) begin : one_mix
            aes_mix_both column (.decrypt(decrypt), .x(rs1), .y(mixed));
        end else begin : two_mixes
            aes_mix_separate column (.decrypt(decrypt), .x(rs1), .y(mixed));
        end
    endgenerate
    assign rd = mix ? mixed : boxed;
endmodule
