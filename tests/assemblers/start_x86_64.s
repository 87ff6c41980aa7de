# Start-up of a printed program under Linux, x86-64 with addresses of 32 bits.
#
# Gives linear memory 512 pages, calls cm_start if the program has one, then
# every function of the table cm_commands. A command is eight words: function,
# four arguments, address and length of output, unused; a function of 0 ends
# the table. Arguments travel in edi, esi, edx, ecx. Output goes to file
# descriptor 1. Exit codes: 0 done, 2 a function moved the stack pointer, 3 a
# write failed, 4 a function lost a register that it has to keep. The code has
# a section of its own: what runs in .text is the program's.
	.section .start,"ax",@progbits
	.globl _start
	.weak cm_start
_start:
	movl $stack_top, %esp
	.include "globals.s"
	movl $512, cm_system_start(,%eiz)
	movl $cm_start, %eax
	testl %eax, %eax
	je next_command
	call *%rax
next_command:
	movl command(,%eiz), %ebx
	movl (%ebx), %eax
	testl %eax, %eax
	je done
	movl 4(%ebx), %edi
	movl 8(%ebx), %esi
	movl 12(%ebx), %edx
	movl 16(%ebx), %ecx
	movl $0x12345678, %ebp
	movl $0x12345679, %r12d
	movl $0x1234567a, %r15d
	call *%rax
	movl $stack_top, %eax
	cmpq %rax, %rsp
	jne moved
	cmpl $0x12345678, %ebp
	jne lost
	cmpl $0x12345679, %r12d
	jne lost
	cmpl $0x1234567a, %r15d
	jne lost
	cmpl command(,%eiz), %ebx
	jne lost
	addl $32, command(,%eiz)
	movl 20(%ebx), %esi
	movl 24(%ebx), %edx
	testl %edx, %edx
	je next_command
	movl %edx, %ebp
	movl $1, %edi
	movl $1, %eax
	syscall
	cmpl %ebp, %eax
	je next_command
	movl $3, %edi
	jmp exit
lost:
	movl $4, %edi
	jmp exit
moved:
	movl $2, %edi
	jmp exit
done:
	xorl %edi, %edi
exit:
	movl $60, %eax
	syscall

# To compare with: a function of one instruction.
	.globl cm_nothing
cm_nothing:
	ret

	.data
	.balign 4
command:
	.long cm_commands

	.bss
	.balign 16
	.skip 65536
stack_top:
	.section .note.GNU-stack,"",@progbits
