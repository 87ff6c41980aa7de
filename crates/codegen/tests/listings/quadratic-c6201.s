mpyhlu .m1 a4, a4, a5
|| mv .l2x a4, b7
|| mvk .s2 32, b2
mpyu .m1 a4, a4, a3
shl .s1 a5, 17, a8
add .l1 a3, a8, a9
mv .l2x a9, b0
addah .d2 b7, b0, b0
shl .s2 b0, 5, b1
shru .s2 b0, 27, b0
|| xor .l2 b1, b4, b4
sub .l2 b2, b0, b6
|| xor .s2 b4, b0, b4
mv .l1x b6, a9
|| shl .s2 b4, b0, b8
shru .s1x b4, a9, a0
|| b .s2 b3
add .l1x a0, b8, a4
nop 4
