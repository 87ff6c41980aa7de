movl %ecx, %r8d
jmp .L0_2
movl %esi, %edx
movl %eax, %esi
leal (%rsi,%rsi), %eax
imull %esi, %eax
leal (%rdx,%rdx), %ecx
imull %ecx, %edx
xorl %eax, %edi
movl %edx, %ecx
roll %cl, %edi
addl (%r8d), %edi
xorl %edx, %esi
movl %eax, %ecx
roll %cl, %esi
addl %edi, %esi
xorl %edx, %eax
addl $-4, %r8d
jne .L0_1
leal (%rax,%rsi), %eax
leal (%rdi,%rax), %eax
ret
