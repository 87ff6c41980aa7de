sll %o0, 1, %g2
sethi %hi(4278123520), %o1
or %o1, 766, %o1
and %g2, %o1, %o2
srl %o0, 7, %o0
andn %o0, %o1, %o3
retl
xor %o2, %o3, %o0
