;; An access that does not claim alignment is made of bytes.
;; on rv32: listing
;; on c6201: listing
;; on c64x: listing
(module (memory 1) (func (export "f") (param i32) (result i32) (i32.load align=1 (local.get 0))))

;; rv32:
;;   lbu t0, 0(a0)
;;   lbu t1, 1(a0)
;;   lbu a1, 2(a0)
;;   slli t2, t1, 8
;;   or a2, t0, t2
;;   slli a3, a1, 16
;;   or a4, a2, a3
;;   lbu a6, 3(a0)
;;   slli t3, a6, 24
;;   or a0, a4, t3
;;   ret

;; c6201:
;;   ldbu .d1t2 *+a4(1), b0
;;   || mv .l2x a4, b1
;;   ldbu .d1t1 *+a4(0), a5
;;   || ldbu .d2t2 *+b1(2), b1
;;   ldbu .d1t1 *+a4(3), a0
;;   b .s2 b3
;;   nop
;;   shl .s1x b0, 8, a1
;;   add .l1 a5, a1, a1
;;   || shl .s2 b1, 16, b0
;;   add .l2x b0, a1, b0
;;   || shl .s1 a0, 24, a0
;;   add .l1x a0, b0, a4

;; c64x:
;;   ldnw .d1t1 *+a4(0), a4
;;   || b .s2 b3
;;   nop 5
