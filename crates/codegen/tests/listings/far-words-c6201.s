addk .s1 128, a4
ldw .d1t1 *+a4(72), a5
ldw .d1t1 *+a4(76), a6
ldw .d1t2 *+a4(80), b0
ldw .d1t2 *+a4(124), b1
b .s2 b3
nop
xor .l1 a5, a6, a9
mv .l2x a9, b2
xor .l2 b0, b1, b0
|| mv .l1x b2, a9
xor .l1x a9, b0, a4
