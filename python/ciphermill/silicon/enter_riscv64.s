# Calls a function of a printed program for RV64 with addresses of 32 bits, from C:
# cm_enter(function, arguments), words of 64 bits. Its first eight travel in registers, its stack lies below 4 GiB; gp and tp, where it keeps globals,
# are the caller's again afterwards. It may change any register but the stack pointer.
	.option norelax
	.section .cm_enter,"ax",@progbits
	.globl cm_enter
cm_enter:
	addi sp, sp, -128
	sd ra, 0(sp)
	sd gp, 8(sp)
	sd tp, 16(sp)
	sd s0, 24(sp)
	sd s1, 32(sp)
	sd s2, 40(sp)
	sd s3, 48(sp)
	sd s4, 56(sp)
	sd s5, 64(sp)
	sd s6, 72(sp)
	sd s7, 80(sp)
	sd s8, 88(sp)
	sd s9, 96(sp)
	sd s10, 104(sp)
	sd s11, 112(sp)
	mv t0, a0
	mv t1, sp
	mv t2, a1
	li sp, CM_STACK_TOP
	addi sp, sp, -16
	sd t1, 0(sp)
	lw a0, 0(t2)
	lw a1, 8(t2)
	lw a2, 16(t2)
	lw a3, 24(t2)
	lw a4, 32(t2)
	lw a5, 40(t2)
	lw a6, 48(t2)
	lw a7, 56(t2)
	cm_globals
	jalr ra, 0(t0)
	ld sp, 0(sp)
	ld ra, 0(sp)
	ld gp, 8(sp)
	ld tp, 16(sp)
	ld s0, 24(sp)
	ld s1, 32(sp)
	ld s2, 40(sp)
	ld s3, 48(sp)
	ld s4, 56(sp)
	ld s5, 64(sp)
	ld s6, 72(sp)
	ld s7, 80(sp)
	ld s8, 88(sp)
	ld s9, 96(sp)
	ld s10, 104(sp)
	ld s11, 112(sp)
	addi sp, sp, 128
	ret
