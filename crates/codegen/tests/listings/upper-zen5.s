addq $-8, %rsp
movq %rbx, 0(%rsp)
movl $24, %r8d
shrxl %r8d, %edi, %r9d
movzbl 256(%r9d), %eax
movl $16, %r9d
shrxl %r9d, %edi, %r10d
movzbl %r10b, %r11d
movzbl 512(%r11d), %r10d
movq %rdi, %rcx
movzbl %ch, %ebx
addl %r10d, %eax
movzbl 768(%ebx), %r10d
movq 0(%rsp), %rbx
addl %r10d, %eax
movzbl %cl, %r10d
movzbl 1024(%r10d), %r11d
rorxl $31, %ecx, %r10d
addl %r11d, %eax
subl %r10d, %eax
roll $16, %ecx
subl %ecx, %eax
shrxl %r8d, %esi, %r10d
movzbl 256(%r10d), %r11d
shrxl %r9d, %esi, %r10d
movzbl %r10b, %r9d
movzbl 512(%r9d), %r10d
xorl %r11d, %eax
shrxl %r8d, %edx, %r9d
movzbl 256(%r9d), %r8d
xorl %r10d, %eax
imull %esi, %eax
xorl %r8d, %eax
shrl $16, %edx
movzbl %dl, %r8d
movzbl 512(%r8d), %r9d
xorl %r9d, %eax
addq $8, %rsp
ret
