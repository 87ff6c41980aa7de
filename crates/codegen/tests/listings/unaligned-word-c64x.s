ldnw .d1t1 *+a4(0), a4
|| b .s2 b3
nop 5
