xor .l1 -1, a4, a3
|| b .s2 b3
rotl .m1 a3, 9, a5
nop
add .l1x a5, b4, a4
nop 2
