mov %o0, %o5
add %g0, 0, %o0
mov %o5, %g2
ld [%g2 + 0], %o2
add %g2, 4, %g2
addcc %o1, -1, %o1
bne .L0_1
add %o0, %o2, %o0
retl
nop
