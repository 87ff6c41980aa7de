# Calls a function of a printed program for x86-64 with addresses of 32 bits, from C:
# cm_enter(function, a, b, c, d). Its arguments travel in edi, esi, edx, ecx, its stack lies
# below 4 GiB. It may change any register but the stack pointer.
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
	movq %rsp, %r10
	movl $CM_STACK_TOP, %esp
	pushq %r10
	movl %esi, %edi
	movl %edx, %esi
	movl %ecx, %edx
	movl %r8d, %ecx
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
