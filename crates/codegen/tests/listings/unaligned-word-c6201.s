ldbu .d1t1 *+a4(1), a5
ldbu .d1t1 *+a4(0), a2
ldbu .d1t1 *+a4(2), a8
ldbu .d1t2 *+a4(3), b0
nop
shl .s2x a5, 8, b1
add .l2x b1, a2, b1
|| b .s2 b3
shl .s2x a8, 16, b2
add .l2 b1, b2, b1
|| shl .s2 b0, 24, b2
mv .l1x b1, a9
add .l1x a9, b2, a4
nop
