;; Words are turned for their upper bytes.
;; on ia32: listing
;; on zen5: listing
(module (memory 1)
  (func (export "f") (param $x i32) (param $y i32) (param $z i32) (result i32) (local $sum i32)
    (local.set $sum (i32.load8_u offset=256 (i32.shr_u (local.get $x) (i32.const 24))))
    (local.set $sum
      (i32.add
        (local.get $sum)
        (i32.load8_u offset=512 (i32.and (i32.shr_u (local.get $x) (i32.const 16)) (i32.const 255)))))
    (local.set $sum
      (i32.add
        (local.get $sum)
        (i32.load8_u offset=768 (i32.and (i32.shr_u (local.get $x) (i32.const 8)) (i32.const 255)))))
    (local.set $sum
      (i32.add (local.get $sum) (i32.load8_u offset=1024 (i32.and (local.get $x) (i32.const 255)))))
    (local.set $sum (i32.sub (local.get $sum) (i32.rotl (local.get $x) (i32.const 1))))
    (local.set $sum (i32.sub (local.get $sum) (i32.rotr (local.get $x) (i32.const 16))))
    (local.set $sum
      (i32.xor (local.get $sum) (i32.load8_u offset=256 (i32.shr_u (local.get $y) (i32.const 24)))))
    (local.set $sum
      (i32.xor
        (local.get $sum)
        (i32.load8_u offset=512 (i32.and (i32.shr_u (local.get $y) (i32.const 16)) (i32.const 255)))))
    (local.set $sum (i32.mul (local.get $sum) (local.get $y)))
    (local.set $sum
      (i32.xor (local.get $sum) (i32.load8_u offset=256 (i32.shr_u (local.get $z) (i32.const 24)))))
    (i32.xor
      (local.get $sum)
      (i32.load8_u offset=512 (i32.and (i32.shr_u (local.get $z) (i32.const 16)) (i32.const 255))))))

;; ia32:
;;   addl $-12, %esp
;;   movl %esi, 0(%esp)
;;   movl %edi, 4(%esp)
;;   movl %ebp, 8(%esp)
;;   movzbl %ah, %esi
;;   movzbl %al, %edi
;;   roll $16, %eax
;;   movzbl %ah, %ebp
;;   movzbl 256(%ebp), %ebx
;;   movzbl %al, %ebp
;;   movzbl 512(%ebp), %ebp
;;   movzbl 768(%esi), %esi
;;   addl %ebp, %ebx
;;   addl %esi, %ebx
;;   movzbl 1024(%edi), %esi
;;   movl 8(%esp), %ebp
;;   addl %esi, %ebx
;;   movl %eax, %esi
;;   roll $17, %esi
;;   subl %esi, %ebx
;;   subl %eax, %ebx
;;   roll $16, %edx
;;   movzbl %dh, %esi
;;   movzbl 256(%esi), %edi
;;   movzbl %dl, %esi
;;   xorl %edi, %ebx
;;   movzbl 512(%esi), %edi
;;   movl %ecx, %eax
;;   xorl %edi, %ebx
;;   roll $16, %edx
;;   imull %edx, %ebx
;;   shrl $24, %eax
;;   movzbl 256(%eax), %esi
;;   xorl %esi, %ebx
;;   shrl $16, %ecx
;;   movzbl %cl, %esi
;;   movzbl 512(%esi), %edi
;;   movl 0(%esp), %esi
;;   xorl %edi, %ebx
;;   movl %ebx, %eax
;;   movl 4(%esp), %edi
;;   addl $12, %esp
;;   ret

;; zen5:
;;   addq $-8, %rsp
;;   movq %rbx, 0(%rsp)
;;   movl $24, %r8d
;;   shrxl %r8d, %edi, %r9d
;;   movzbl 256(%r9d), %eax
;;   movl $16, %r9d
;;   shrxl %r9d, %edi, %r10d
;;   movzbl %r10b, %r11d
;;   movzbl 512(%r11d), %r10d
;;   movq %rdi, %rcx
;;   movzbl %ch, %ebx
;;   addl %r10d, %eax
;;   movzbl 768(%ebx), %r10d
;;   movq 0(%rsp), %rbx
;;   addl %r10d, %eax
;;   movzbl %cl, %r10d
;;   movzbl 1024(%r10d), %r11d
;;   rorxl $31, %ecx, %r10d
;;   addl %r11d, %eax
;;   subl %r10d, %eax
;;   roll $16, %ecx
;;   subl %ecx, %eax
;;   shrxl %r8d, %esi, %r10d
;;   movzbl 256(%r10d), %r11d
;;   shrxl %r9d, %esi, %r10d
;;   movzbl %r10b, %r9d
;;   movzbl 512(%r9d), %r10d
;;   xorl %r11d, %eax
;;   shrxl %r8d, %edx, %r9d
;;   movzbl 256(%r9d), %r8d
;;   xorl %r10d, %eax
;;   imull %esi, %eax
;;   xorl %r8d, %eax
;;   shrl $16, %edx
;;   movzbl %dl, %r8d
;;   movzbl 512(%r8d), %r9d
;;   xorl %r9d, %eax
;;   addq $8, %rsp
;;   ret
