add %o1, 2, %g3
xor %g3, 3, %o1
ldub [%o1 + 0], %o1
add %o0, 1, %o2
xor %o2, 3, %o3
retl
stb %o1, [%o3 + 0]
