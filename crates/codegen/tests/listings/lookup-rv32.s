srli t0, a1, 6
andi t0, t0, 1020
lui a1, %hi(4096)
add a1, t0, a1
lw a1, 0(a1)
xor a0, a0, a1
ret
