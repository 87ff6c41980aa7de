;; A constant amount of a narrow shift counts modulo 32, also where a shift of wider words would take it.
;; on x86_64 level 1: listing
;; f(3) = 774
(module
  (func (export "f") (param i32) (result i32)
    (i32.add
      (i32.shl (local.get 0) (i32.const 33))
      (i32.rotl (local.get 0) (i32.const 40)))))

;; x86_64 level 1:
;;   movq %rdi, %rax
;;   roll $8, %eax
;;   leal (%rax,%rdi,2), %eax
;;   ret
