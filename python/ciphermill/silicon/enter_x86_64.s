# Calls a function of a printed program for x86-64 with addresses of 32 bits, from C:
# cm_enter(function, arguments), words of 64 bits. Its first six travel in registers, its stack
# lies below 4 GiB. It may change any register but the stack pointer.
	.section .cm_enter,"ax",@progbits
	.globl cm_enter
cm_enter:
	pushq %rbx
	pushq %rbp
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rdi, %rax
	movq %rsi, %r11
	movq %rsp, %r10
	movl $CM_STACK_TOP, %esp
	pushq %r10
	movl (%r11), %edi
	movl 8(%r11), %esi
	movl 16(%r11), %edx
	movl 24(%r11), %ecx
	movl 32(%r11), %r8d
	movl 40(%r11), %r9d
	cm_globals
	call *%rax
	popq %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbp
	popq %rbx
	ret
