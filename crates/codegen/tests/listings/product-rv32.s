addi t0, zero, 27
mul a0, a0, t0
ret
