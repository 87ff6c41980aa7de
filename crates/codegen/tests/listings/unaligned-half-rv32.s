lhu t0, 0(a0)
lhu t1, 2(a0)
slli t1, t1, 16
or a0, t0, t1
ret
