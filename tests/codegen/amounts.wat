;; Amounts go to their register for a rotate only.
;; on zen5: listing
(module (memory 1)
  (func (export "f") (param i32 i32 i32 i32) (result i32) (local i32 i32)
    (loop
      (local.set 4 (i32.mul (local.get 1) (i32.add (local.get 1) (local.get 1))))
      (local.set 5 (i32.mul (local.get 2) (i32.add (local.get 2) (local.get 2))))
      (local.set 0
        (i32.add
          (i32.rotl (i32.xor (local.get 0) (local.get 4)) (local.get 5))
          (i32.load (local.get 3))))
      (local.set 2
        (i32.add (i32.rotl (i32.xor (local.get 1) (local.get 5)) (local.get 4)) (local.get 0)))
      (local.set 1 (i32.xor (local.get 4) (local.get 5)))
      (br_if 0 (local.tee 3 (i32.sub (local.get 3) (i32.const 4)))))
    (i32.add (local.get 0) (i32.add (local.get 1) (local.get 2)))))

;; zen5:
;;   movq %rdx, %rax
;;   movq %rcx, %r8
;;   movq %rsi, %rcx
;;   jmp .L0_2
;;   movq %rsi, %rax
;;   leal (%rcx,%rcx), %edx
;;   imull %ecx, %edx
;;   leal (%rax,%rax), %esi
;;   imull %esi, %eax
;;   xorl %edx, %edi
;;   movq %rcx, %rsi
;;   movq %rax, %rcx
;;   roll %cl, %edi
;;   addl (%r8d), %edi
;;   xorl %eax, %esi
;;   movq %rdx, %rcx
;;   roll %cl, %esi
;;   addl %edi, %esi
;;   xorl %eax, %ecx
;;   addl $-4, %r8d
;;   jne .L0_1
;;   leal (%rcx,%rsi), %edx
;;   leal (%rdi,%rdx), %eax
;;   ret
