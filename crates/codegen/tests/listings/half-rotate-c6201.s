xor .l1 -1, a4, a3
|| b .s2 b3
shl .s1 a3, 9, a5
shru .s1 a3, 23, a7
|| add .l2x b4, a5, b0
add .l1x a7, b0, a4
nop 2
