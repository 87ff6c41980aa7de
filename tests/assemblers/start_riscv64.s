# Start-up of a printed program under Linux user emulation, RV64.
#
# Gives linear memory 512 pages and the global registers their values (globals.s,
# written by printed.py), calls cm_start if the program has one, then every
# function of the table cm_commands. A command is eight words: function, four
# arguments, address and length of output, unused; a function of 0 ends the
# table. Output goes to file descriptor 1. Exit codes: 0 done, 2 a function
# moved the stack pointer, 3 a write failed.
	.option norelax
	.text
	.globl _start
	.weak cm_start
_start:
	la sp, stack_top
	.include "globals.s"
	li t0, 0xf0000000
	li t1, 512
	sw t1, 0(t0)
	lui t0, %hi(cm_start)
	addi t0, t0, %lo(cm_start)
	slli t0, t0, 32
	srli t0, t0, 32
	beqz t0, next_command
	jalr ra, 0(t0)
next_command:
	la t0, command
	lwu t1, 0(t0)
	lwu t2, 0(t1)
	beqz t2, done
	lw a0, 4(t1)
	lw a1, 8(t1)
	lw a2, 12(t1)
	lw a3, 16(t1)
	jalr ra, 0(t2)
	la t0, stack_top
	bne sp, t0, moved
	la t0, command
	lwu t1, 0(t0)
	lwu a1, 20(t1)
	lwu a2, 24(t1)
	addi t1, t1, 32
	sw t1, 0(t0)
	beqz a2, next_command
	mv s0, a2
	li a0, 1
	li a7, 64
	ecall
	beq a0, s0, next_command
	li a0, 3
	j exit
moved:
	li a0, 2
	j exit
done:
	li a0, 0
exit:
	li a7, 93
	ecall

	.data
	.balign 4
command:
	.word cm_commands

	.bss
	.balign 16
	.skip 65536
stack_top:
