;; An address has 32 bits, and an index may be negative.
;; on x86_64: listing
;; f(72, 0xfffffffe) = 7
(module (memory 1)
  (data (i32.const 64) "\07")
  (func (export "f") (param i32 i32) (result i32)
    (i32.load8_u (i32.add (local.get 0) (i32.shl (local.get 1) (i32.const 2))))))

;; x86_64:
;;   movzbl (%edi,%esi,4), %eax
;;   ret
