;; Making a word longer costs nothing: what 32-bit instructions leave is the value already.
;; on x86_64: listing
;; f(0xffffffff, 1) = 0xfffffffb
;; edges
(module
  (func (export "f") (param i32 i64) (result i64)
    (i64.add (local.get 1) (i64.extend_i32_u (i32.xor (local.get 0) (i32.const 5))))))

;; x86_64:
;;   xorl $5, %edi
;;   addq %rdi, %rsi
;;   movq %rsi, %rax
;;   ret
