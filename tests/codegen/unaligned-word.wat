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
;;   ldbu .d1t1 *+a4(1), a5
;;   ldbu .d1t1 *+a4(0), a2
;;   ldbu .d1t1 *+a4(2), a8
;;   ldbu .d1t2 *+a4(3), b0
;;   nop
;;   shl .s2x a5, 8, b1
;;   add .l2x b1, a2, b1
;;   || b .s2 b3
;;   shl .s2x a8, 16, b2
;;   add .l2 b1, b2, b1
;;   || shl .s2 b0, 24, b2
;;   mv .l1x b1, a9
;;   add .l1x a9, b2, a4
;;   nop

;; c64x:
;;   ldnw .d1t1 *+a4(0), a4
;;   || b .s2 b3
;;   nop 5
