# Entry and system calls for 32-bit x86 Linux.
# All of the harness stands in .harness, so that .text holds only the cipher.
        .section .harness, "ax"

        .globl  _start
_start:
        movl    %esp, %eax
        andl    $-16, %esp
        subl    $12, %esp
        pushl   %eax
        call    harness_main
        movl    %eax, %ebx
        movl    $1, %eax                # exit
        int     $0x80

        .globl  harness_write           # (bytes, length) to standard output
harness_write:
        pushl   %ebx
        movl    $1, %ebx
        movl    8(%esp), %ecx
        movl    12(%esp), %edx
        movl    $4, %eax                # write
        int     $0x80
        popl    %ebx
        ret

        .section .note.GNU-stack, ""
