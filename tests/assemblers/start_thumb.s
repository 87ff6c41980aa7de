@ Start-up of a printed program under Linux user emulation, Thumb.
@ (What ARMv6-M has, all others have.)
@
@ Gives linear memory 512 pages and the global registers their values (globals.s,
@ written by printed.py), calls cm_start if the program has one, then every
@ function of the table cm_commands. A command is eight words: function, four
@ arguments, address and length of output, unused; a function of 0 ends the
@ table. Output goes to file descriptor 1. Exit codes: 0 done, 2 a function
@ moved the stack pointer, 3 a write failed.
	.syntax unified
	.thumb
	.text
	.globl _start
	.type _start, %function
	.weak cm_start
_start:
	ldr r0, =stack_top
	mov sp, r0
	.include "globals.s"
	ldr r0, =cm_system_start
	ldr r1, =512
	str r1, [r0]
	ldr r0, =cm_start
	cmp r0, #0
	beq next_command
	blx r0
next_command:
	ldr r4, =command
	ldr r5, [r4]
	ldr r6, [r5]
	cmp r6, #0
	beq done
	ldr r0, [r5, #4]
	ldr r1, [r5, #8]
	ldr r2, [r5, #12]
	ldr r3, [r5, #16]
	blx r6
	ldr r0, =stack_top
	mov r1, sp
	cmp r1, r0
	bne moved
	ldr r4, =command
	ldr r5, [r4]
	ldr r1, [r5, #20]
	ldr r2, [r5, #24]
	adds r5, r5, #32
	str r5, [r4]
	cmp r2, #0
	beq next_command
	mov r6, r2
	movs r0, #1
	movs r7, #4
	svc #0
	cmp r0, r6
	beq next_command
	movs r0, #3
	b exit
moved:
	movs r0, #2
	b exit
done:
	movs r0, #0
exit:
	movs r7, #1
	svc #0
	.ltorg

	.data
	.balign 4
command:
	.word cm_commands

	.bss
	.balign 16
	.skip 65536
stack_top:
