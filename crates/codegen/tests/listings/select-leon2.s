cmp %o0, %o1
addx %g0, 0, %g4
sub %g0, %g4, %o0
retl
and %o0, 16, %o0
