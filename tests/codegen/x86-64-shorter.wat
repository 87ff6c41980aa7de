;; Making a word shorter costs nothing: 32-bit instructions read no more.
;; on x86_64: listing
;; f(0xffffffff00000080, 2) = 0xfe000003
;; edges
(module
  (func (export "f") (param i64 i32) (result i32)
    (i32.xor (local.get 1) (i32.wrap_i64 (i64.shr_u (local.get 0) (i64.const 7))))))

;; x86_64:
;;   shrq $7, %rdi
;;   xorl %edi, %esi
;;   movq %rsi, %rax
;;   ret
