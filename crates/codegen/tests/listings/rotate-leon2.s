sll %o0, 7, %g3
srl %o0, 25, %o2
or %g3, %o2, %o2
sll %o0, %o1, %o3
sub %g0, %o1, %o4
srl %o0, %o4, %o5
or %o3, %o5, %g2
retl
xor %o2, %g2, %o0
