;; A product with a constant is shifts where multiplying is slow.
;; on leon2: listing
;; on rv32: listing
(module (memory 1) (func (export "f") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 27))))

;; leon2:
;;   sll %o0, 5, %g2
;;   sll %o0, 2, %g4
;;   sub %g2, %g4, %o1
;;   retl
;;   sub %o1, %o0, %o0

;; rv32:
;;   addi t0, zero, 27
;;   mul a0, a0, t0
;;   ret
