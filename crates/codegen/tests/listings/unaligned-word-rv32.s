lbu t0, 0(a0)
lbu t1, 1(a0)
lbu a1, 2(a0)
slli t2, t1, 8
or a2, t0, t2
slli a3, a1, 16
or a4, a2, a3
lbu a6, 3(a0)
slli t3, a6, 24
or a0, a4, t3
ret
