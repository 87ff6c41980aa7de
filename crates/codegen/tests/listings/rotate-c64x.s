mv .l1x b4, a9
|| rotl .m1 a4, 7, a3
|| b .s2 b3
rotl .m1 a4, a9, a5
nop
xor .l1 a3, a5, a4
nop 2
