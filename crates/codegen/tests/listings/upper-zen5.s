addq $-8, %rsp
movq %rbx, 0(%rsp)
movl $24, %ecx
shrxl %ecx, %edi, %r8d
movzbl 256(%r8d), %eax
movl $16, %r8d
shrxl %r8d, %edi, %r10d
movq %rdi, %r9
movzbl %r10b, %edi
movzbl 512(%edi), %edi
movq %r9, %rbx
addl %edi, %eax
movzbl %bh, %edi
movzbl 768(%edi), %edi
addl %edi, %eax
movzbl %bl, %edi
movzbl 1024(%edi), %edi
movq 0(%rsp), %rbx
addl %edi, %eax
rorxl $31, %r9d, %edi
subl %edi, %eax
movq %r9, %rdi
roll $16, %edi
subl %edi, %eax
shrxl %ecx, %esi, %edi
movzbl 256(%edi), %edi
shrxl %ecx, %edx, %ecx
movzbl 256(%ecx), %ecx
xorl %edi, %eax
shrxl %r8d, %esi, %edi
movzbl %dil, %edi
movzbl 512(%edi), %edi
xorl %edi, %eax
imull %esi, %eax
xorl %ecx, %eax
shrl $16, %edx
movzbl %dl, %ecx
movzbl 512(%ecx), %ecx
xorl %ecx, %eax
addq $8, %rsp
ret
