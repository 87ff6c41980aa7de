srl %o1, 6, %g3
and %g3, 1020, %o1
sethi %hi(4096), %o2
ld [%o1 + %o2], %o1
retl
xor %o0, %o1, %o0
