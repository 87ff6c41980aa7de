;; A comparison of 32 bits looks at no more of a word of 64.
;; on x86_64: listing
;; f(0x1ffffffff, 0) = 1
;; f(0xffffffff7fffffff, 0x80000000) = 0
;; edges
(module
  (func (export "f") (param i64 i32) (result i32) (i32.lt_s (i32.wrap_i64 (local.get 0)) (local.get 1))))

;; x86_64:
;;   movl %edi, %ecx
;;   cmpl %esi, %ecx
;;   movl $0, %eax
;;   setl %al
;;   ret
