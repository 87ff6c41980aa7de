shru .s1 a4, 29, a2
|| add .l1 a4, a4, a4
|| b .s2 b3
addaw .d1 a2, a4, a4
nop 4
