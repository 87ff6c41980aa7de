# Start-up of a printed program under Linux, IA-32.
#
# Gives linear memory 512 pages, calls cm_start if the program has one, then
# every function of the table cm_commands. A command is eight words: function,
# four arguments, address and length of output, unused; a function of 0 ends
# the table. Arguments travel in eax, edx, ecx, ebx. Output goes to file
# descriptor 1. Exit codes: 0 done, 2 a function moved the stack pointer, 3 a
# write failed, 4 a function lost a register that it has to keep. The code has
# a section of its own: what runs in .text is the program's.
	.section .start,"ax",@progbits
	.globl _start
	.weak cm_start
_start:
	movl $stack_top, %esp
	.include "globals.s"
	movl $512, cm_system_start
	movl $cm_start, %eax
	testl %eax, %eax
	je next_command
	call *%eax
next_command:
	movl command, %esi
	movl (%esi), %edi
	testl %edi, %edi
	je done
	movl 4(%esi), %eax
	movl 8(%esi), %edx
	movl 12(%esi), %ecx
	movl 16(%esi), %ebx
	movl $0x12345678, %ebp
	call *%edi
	cmpl $stack_top, %esp
	jne moved
	cmpl $0x12345678, %ebp
	jne lost
	cmpl command, %esi
	jne lost
	addl $32, command
	movl 20(%esi), %ecx
	movl 24(%esi), %edx
	testl %edx, %edx
	je next_command
	movl %edx, %edi
	movl $1, %ebx
	movl $4, %eax
	int $0x80
	cmpl %edi, %eax
	je next_command
	movl $3, %ebx
	jmp exit
lost:
	movl $4, %ebx
	jmp exit
moved:
	movl $2, %ebx
	jmp exit
done:
	xorl %ebx, %ebx
exit:
	movl $1, %eax
	int $0x80

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
