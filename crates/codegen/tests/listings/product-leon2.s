sll %o0, 5, %g2
sll %o0, 2, %g4
sub %g2, %g4, %o1
retl
sub %o1, %o0, %o0
