mpyhlu .m1 a4, a4, a5
mpyu .m1 a4, a4, a3
shl .s1 a5, 17, a7
add .l1 a3, a7, a16
addah .d1 a4, a16, a16
|| b .s2 b3
rotl .m1 a16, 5, a16
nop
xor .l1x a16, b4, a17
rotl .m1 a17, a16, a4
nop
