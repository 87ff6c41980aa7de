extu .s2 b4, 27, 27, b0
|| shl .s1 a4, 7, a3
mvk .s2 32, b1
|| shru .s1 a4, 25, a5
sub .l2 b1, b0, b1
|| shl .s2x a4, b0, b0
|| add .l1 a3, a5, a7
shru .s2x a4, b1, b1
add .l2 b0, b1, b2
|| b .s2 b3
xor .l1x a7, b2, a4
nop 4
