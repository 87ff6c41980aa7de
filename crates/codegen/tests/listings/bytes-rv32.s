lbu t0, 2(a1)
sb t0, 1(a0)
ret
