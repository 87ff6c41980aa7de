// The unit of zkne and zknd: one S-box of both directions, one byte of
// MixColumns, a rotation by bytes.
module unit_aes32 (
    input  wire        decrypt,
    input  wire        mix,
    input  wire [31:0] rs1,
    input  wire [31:0] rs2,
    input  wire [1:0]  bs,
    output wire [31:0] rd
);
    wire [7:0] index = bs[1] ? (bs[0] ? rs2[31:24] : rs2[23:16]) : (bs[0] ? rs2[15:8] : rs2[7:0]);
    wire [7:0] value;
    wire [31:0] mixed;
    aes_sbox_both sbox (.decrypt(decrypt), .index(index), .value(value));
    aes_mix_byte_both column (.decrypt(decrypt), .x(value), .y(mixed));
    wire [31:0] sum  = {mixed[31:8] & {24{mix}}, mix ? mixed[7:0] : value};
    wire [31:0] once = bs[0] ? {sum[23:0], sum[31:24]} : sum;
    assign rd = rs1 ^ (bs[1] ? {once[15:0], once[31:16]} : once);
endmodule
