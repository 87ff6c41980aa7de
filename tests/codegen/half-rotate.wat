;; A term is added to half a rotate where one unit shifts.
;; on c6201: listing
;; on c64x: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (i32.add (local.get 1) (i32.rotl (i32.xor (local.get 0) (i32.const -1)) (i32.const 9)))))

;; c6201:
;;   xor .l1 -1, a4, a3
;;   || b .s2 b3
;;   shl .s1 a3, 9, a5
;;   || shru .s2x a3, 23, b0
;;   add .l1x a5, b4, a0
;;   add .l1x a0, b0, a4
;;   nop 2

;; c64x:
;;   xor .l1 -1, a4, a3
;;   || b .s2 b3
;;   rotl .m1 a3, 9, a5
;;   nop
;;   add .l1x a5, b4, a4
;;   nop 2
