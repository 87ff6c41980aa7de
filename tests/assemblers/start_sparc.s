! Start-up of a printed program under Linux user emulation, SPARC V8.
!
! Gives linear memory 512 pages and the global registers their values (globals.s,
! written by printed.py), calls cm_start if the program has one, then every
! function of the table cm_commands. A command is eight words: function, four
! arguments, address and length of output, unused; a function of 0 ends the
! table. Output goes to file descriptor 1. Exit codes: 0 done, 2 a function
! moved the stack pointer, 3 a write failed.
	.text
	.globl _start
	.weak cm_start
_start:
	set stack_top - 96, %sp
	.include "globals.s"
	set cm_system_start, %l0
	mov 512, %l1
	st %l1, [%l0]
	set cm_start, %l0
	tst %l0
	be next_command
	nop
	call %l0
	nop
next_command:
	set command, %l0
	ld [%l0], %l1
	ld [%l1], %l2
	tst %l2
	be done
	nop
	ld [%l1 + 4], %o0
	ld [%l1 + 8], %o1
	ld [%l1 + 12], %o2
	call %l2
	ld [%l1 + 16], %o3
	set stack_top - 96, %l3
	cmp %sp, %l3
	bne moved
	nop
	set command, %l0
	ld [%l0], %l1
	ld [%l1 + 20], %o1
	ld [%l1 + 24], %o2
	add %l1, 32, %l1
	tst %o2
	be next_command
	st %l1, [%l0]
	mov %o2, %l4
	mov 1, %o0
	mov 4, %g1
	ta 0x10
	cmp %o0, %l4
	be next_command
	nop
	ba exit
	mov 3, %o0
moved:
	ba exit
	mov 2, %o0
done:
	mov 0, %o0
exit:
	mov 1, %g1
	ta 0x10

	.data
	.align 4
command:
	.word cm_commands

	.bss
	.align 16
	.skip 65536
stack_top:
