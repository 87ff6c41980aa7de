mv a3, a0
addi a0, zero, 0
mv a5, a3
lw a2, 0(a5)
addi a5, a5, 4
add a0, a0, a2
addi a1, a1, -1
bne a1, zero, .L0_1
ret
