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
;;   movq %rcx, %r8
;;   jmp .L0_2
;;   movq %rsi, %rdx
;;   movq %rax, %rsi
;;   leal (%rsi,%rsi), %eax
;;   imull %esi, %eax
;;   leal (%rdx,%rdx), %ecx
;;   imull %ecx, %edx
;;   xorl %eax, %edi
;;   movq %rdx, %rcx
;;   roll %cl, %edi
;;   addl (%r8d), %edi
;;   xorl %edx, %esi
;;   movq %rax, %rcx
;;   roll %cl, %esi
;;   addl %edi, %esi
;;   xorl %edx, %eax
;;   addl $-4, %r8d
;;   jne .L0_1
;;   leal (%rax,%rsi), %eax
;;   leal (%rdi,%rax), %eax
;;   ret
