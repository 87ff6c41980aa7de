// The AES S-box and its inverse as small circuits: a layer of sums, an
// inversion that both directions share, another layer of sums. The straight-line
// programs are those of Boyar and Peralta, A Small Depth-16 Circuit for the AES
// S-Box, SEC 2012 (eprint 2011/332), whose names T, M, L, P are kept; U0 there
// is bit 7 here. Every module that instantiates one of them is proved equal to
// the table of its instruction.

// Sums of input bits for the S-box.
module aes_sbox_top (
    input  wire [7:0]  x,
    output wire [21:0] t
);
    wire t1 = x[7] ^ x[4];
    wire t2 = x[7] ^ x[2];
    wire t3 = x[7] ^ x[1];
    wire t4 = x[4] ^ x[2];
    wire t5 = x[3] ^ x[1];
    wire t6 = t1 ^ t5;
    wire t7 = x[6] ^ x[5];
    wire t8 = x[0] ^ t6;
    wire t9 = x[0] ^ t7;
    wire t10 = t6 ^ t7;
    wire t11 = x[6] ^ x[2];
    wire t12 = x[5] ^ x[2];
    wire t13 = t3 ^ t4;
    wire t14 = t6 ^ t11;
    wire t15 = t5 ^ t11;
    wire t16 = t5 ^ t12;
    wire t17 = t9 ^ t16;
    wire t18 = x[4] ^ x[0];
    wire t19 = t7 ^ t18;
    wire t20 = t1 ^ t19;
    wire t21 = x[1] ^ x[0];
    wire t22 = t7 ^ t21;
    wire t23 = t2 ^ t22;
    wire t24 = t2 ^ t10;
    wire t25 = t20 ^ t17;
    wire t26 = t3 ^ t16;
    wire t27 = t1 ^ t12;
    assign t = {x[0], t27, t26, t25, t24, t23, t22, t20, t19, t17, t16, t15, t14, t13, t10, t9, t8, t6, t4, t3, t2, t1};
endmodule

// Sums of input bits for the inverse S-box.
module aes_inverse_sbox_top (
    input  wire [7:0]  x,
    output wire [21:0] t
);
    wire t23 = x[7] ^ x[4];
    wire t22 = x[6] ~^ x[4];
    wire t2 = x[7] ~^ x[6];
    wire t1 = x[4] ^ x[3];
    wire t24 = x[3] ~^ x[0];
    wire r5 = x[1] ^ x[0];
    wire t8 = x[6] ~^ t23;
    wire t19 = t22 ^ r5;
    wire t9 = x[0] ~^ t1;
    wire t10 = t2 ^ t24;
    wire t13 = t2 ^ r5;
    wire t3 = t1 ^ r5;
    wire t25 = x[5] ~^ t1;
    wire r13 = x[6] ^ x[1];
    wire t17 = x[5] ~^ t19;
    wire t20 = t24 ^ r13;
    wire t4 = x[3] ^ t8;
    wire r17 = x[5] ~^ x[2];
    wire r18 = x[2] ~^ x[1];
    wire r19 = x[5] ~^ x[3];
    wire d = x[7] ^ r17;
    wire t6 = t22 ^ r17;
    wire t16 = r13 ^ r19;
    wire t27 = t1 ^ r18;
    wire t15 = t10 ^ t27;
    wire t14 = t10 ^ r18;
    wire t26 = t3 ^ t16;
    assign t = {d, t27, t26, t25, t24, t23, t22, t20, t19, t17, t16, t15, t14, t13, t10, t9, t8, t6, t4, t3, t2, t1};
endmodule

// The inversion both directions share: 34 and-gates and 30 sums. m[i] is the
// product M(46 + i) of the paper, t holds its sums T in the order of their
// numbers, with the input D on top.
module aes_sbox_middle (
    input  wire [21:0] t,
    output wire [17:0] m
);
    wire m1 = t[8] & t[4];
    wire m2 = t[16] & t[5];
    wire m3 = t[9] ^ m1;
    wire m4 = t[13] & t[21];
    wire m5 = m4 ^ m1;
    wire m6 = t[2] & t[11];
    wire m7 = t[15] & t[6];
    wire m8 = t[19] ^ m6;
    wire m9 = t[14] & t[12];
    wire m10 = m9 ^ m6;
    wire m11 = t[0] & t[10];
    wire m12 = t[3] & t[20];
    wire m13 = m12 ^ m11;
    wire m14 = t[1] & t[7];
    wire m15 = m14 ^ m11;
    wire m16 = m3 ^ m2;
    wire m17 = m5 ^ t[17];
    wire m18 = m8 ^ m7;
    wire m19 = m10 ^ m15;
    wire m20 = m16 ^ m13;
    wire m21 = m17 ^ m15;
    wire m22 = m18 ^ m13;
    wire m23 = m19 ^ t[18];
    wire m24 = m22 ^ m23;
    wire m25 = m22 & m20;
    wire m26 = m21 ^ m25;
    wire m27 = m20 ^ m21;
    wire m28 = m23 ^ m25;
    wire m29 = m28 & m27;
    wire m30 = m26 & m24;
    wire m31 = m20 & m23;
    wire m32 = m27 & m31;
    wire m33 = m27 ^ m25;
    wire m34 = m21 & m22;
    wire m35 = m24 & m34;
    wire m36 = m24 ^ m25;
    wire m37 = m21 ^ m29;
    wire m38 = m32 ^ m33;
    wire m39 = m23 ^ m30;
    wire m40 = m35 ^ m36;
    wire m41 = m38 ^ m40;
    wire m42 = m37 ^ m39;
    wire m43 = m37 ^ m38;
    wire m44 = m39 ^ m40;
    wire m45 = m42 ^ m41;
    assign m[0] = m44 & t[4];
    assign m[1] = m40 & t[5];
    assign m[2] = m39 & t[21];
    assign m[3] = m43 & t[11];
    assign m[4] = m38 & t[6];
    assign m[5] = m37 & t[12];
    assign m[6] = m42 & t[10];
    assign m[7] = m45 & t[20];
    assign m[8] = m41 & t[7];
    assign m[9] = m44 & t[8];
    assign m[10] = m40 & t[16];
    assign m[11] = m39 & t[13];
    assign m[12] = m43 & t[2];
    assign m[13] = m38 & t[15];
    assign m[14] = m37 & t[14];
    assign m[15] = m42 & t[0];
    assign m[16] = m45 & t[3];
    assign m[17] = m41 & t[1];
endmodule

// Sums of products for the S-box.
module aes_sbox_bottom (
    input  wire [17:0] m,
    output wire [7:0]  s
);
    wire l0 = m[15] ^ m[16];
    wire l1 = m[4] ^ m[10];
    wire l2 = m[0] ^ m[2];
    wire l3 = m[1] ^ m[9];
    wire l4 = m[8] ^ m[12];
    wire l5 = m[3] ^ m[15];
    wire l6 = m[16] ^ l5;
    wire l7 = m[0] ^ l3;
    wire l8 = m[5] ^ m[13];
    wire l9 = m[6] ^ m[7];
    wire l10 = m[7] ^ l4;
    wire l11 = m[14] ^ l2;
    wire l12 = m[2] ^ m[5];
    wire l13 = m[4] ^ l0;
    wire l14 = m[6] ^ m[15];
    wire l15 = m[9] ^ l1;
    wire l16 = m[10] ^ l0;
    wire l17 = m[11] ^ l1;
    wire l18 = m[12] ^ l8;
    wire l19 = m[17] ^ l4;
    wire l20 = l0 ^ l1;
    wire l21 = l1 ^ l7;
    wire l22 = l3 ^ l12;
    wire l23 = l18 ^ l2;
    wire l24 = l15 ^ l9;
    wire l25 = l6 ^ l10;
    wire l26 = l7 ^ l9;
    wire l27 = l8 ^ l10;
    wire l28 = l11 ^ l14;
    wire l29 = l11 ^ l17;
    assign s[7] = l6 ^ l24;
    assign s[6] = l16 ~^ l26;
    assign s[5] = l19 ~^ l28;
    assign s[4] = l6 ^ l21;
    assign s[3] = l20 ^ l22;
    assign s[2] = l25 ^ l29;
    assign s[1] = l13 ~^ l27;
    assign s[0] = l6 ~^ l23;
endmodule

// Sums of products for the inverse S-box.
module aes_inverse_sbox_bottom (
    input  wire [17:0] m,
    output wire [7:0]  s
);
    wire p0 = m[6] ^ m[15];
    wire p1 = m[12] ^ m[13];
    wire p2 = m[8] ^ m[16];
    wire p3 = m[1] ^ m[4];
    wire p4 = m[2] ^ m[10];
    wire p5 = m[0] ^ m[5];
    wire p6 = m[3] ^ m[14];
    wire p7 = p0 ^ p1;
    wire p8 = m[4] ^ m[7];
    wire p9 = m[9] ^ m[17];
    wire p10 = m[11] ^ p4;
    wire p11 = p0 ^ p3;
    wire p12 = m[0] ^ m[2];
    wire p13 = m[3] ^ m[5];
    wire p14 = m[3] ^ m[16];
    wire p15 = m[8] ^ m[13];
    wire p16 = m[11] ^ m[15];
    wire p17 = m[12] ^ p2;
    wire p18 = m[17] ^ p5;
    wire p19 = p2 ^ p3;
    wire p20 = p4 ^ p6;
    wire p22 = p2 ^ p7;
    wire p23 = p7 ^ p8;
    wire p24 = p5 ^ p7;
    wire p25 = p6 ^ p10;
    wire p26 = p9 ^ p11;
    wire p27 = p10 ^ p18;
    wire p28 = p11 ^ p25;
    wire p29 = p15 ^ p20;
    assign s[7] = p13 ^ p22;
    assign s[6] = p26 ^ p29;
    assign s[5] = p17 ^ p28;
    assign s[4] = p12 ^ p22;
    assign s[3] = p23 ^ p27;
    assign s[2] = p19 ^ p24;
    assign s[1] = p14 ^ p23;
    assign s[0] = p9 ^ p16;
endmodule

// The S-box.
module aes_sbox (
    input  wire [7:0] index,
    output wire [7:0] value
);
    wire [21:0] t;
    wire [17:0] m;
    aes_sbox_top top (.x(index), .t(t));
    aes_sbox_middle middle (.t(t), .m(m));
    aes_sbox_bottom bottom (.m(m), .s(value));
endmodule

// The inverse S-box.
module aes_inverse_sbox (
    input  wire [7:0] index,
    output wire [7:0] value
);
    wire [21:0] t;
    wire [17:0] m;
    aes_inverse_sbox_top top (.x(index), .t(t));
    aes_sbox_middle middle (.t(t), .m(m));
    aes_inverse_sbox_bottom bottom (.m(m), .s(value));
endmodule

// Both: with one inversion between them, or (SHARED = 0) side by side, which
// is larger and not as deep.
module aes_sbox_both #(
    parameter SHARED = 1
) (
    input  wire       decrypt,
    input  wire [7:0] index,
    output wire [7:0] value
);
    wire [7:0] sbox, inverse;
    generate
        if (SHARED) begin : one_inversion
            wire [21:0] forward, backward;
            wire [17:0] m;
            aes_sbox_top top (.x(index), .t(forward));
            aes_inverse_sbox_top inverse_top (.x(index), .t(backward));
            aes_sbox_middle middle (.t(decrypt ? backward : forward), .m(m));
            aes_sbox_bottom bottom (.m(m), .s(sbox));
            aes_inverse_sbox_bottom inverse_bottom (.m(m), .s(inverse));
        end else begin : two_inversions
            aes_sbox forward (.index(index), .value(sbox));
            aes_inverse_sbox backward (.index(index), .value(inverse));
        end
    endgenerate
    assign value = decrypt ? inverse : sbox;
endmodule
