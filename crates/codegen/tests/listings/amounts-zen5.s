movq %rcx, %r8
jmp .L0_2
movq %rsi, %rdx
movq %rax, %rsi
leal (%rsi,%rsi), %eax
imull %esi, %eax
leal (%rdx,%rdx), %ecx
imull %ecx, %edx
xorl %eax, %edi
movq %rdx, %rcx
roll %cl, %edi
addl (%r8d), %edi
xorl %edx, %esi
movq %rax, %rcx
roll %cl, %esi
addl %edi, %esi
xorl %edx, %eax
addl $-4, %r8d
jne .L0_1
leal (%rax,%rsi), %eax
leal (%rdi,%rax), %eax
ret
