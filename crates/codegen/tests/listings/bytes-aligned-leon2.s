ldub [%o1 + 1], %g3
retl
stb %g3, [%o0 + 2]
