shl .s1 a4, 7, a3
|| extu .s2 b4, 27, 27, b0
shru .s1 a4, 25, a5
|| mvk .s2 32, b1
add .l1 a3, a5, a7
|| sub .l2 b1, b0, b2
|| shl .s2x a4, b0, b1
shru .s2x a4, b2, b0
xor .l2x b1, a7, b2
|| b .s2 b3
mv .l1x b2, a9
xor .l1x a9, b0, a4
nop 3
