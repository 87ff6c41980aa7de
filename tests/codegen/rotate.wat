;; A rotate by a register uses shifts by six bits.
;; on c6201: listing
;; on c64x: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (i32.xor (i32.rotl (local.get 0) (i32.const 7)) (i32.rotl (local.get 0) (local.get 1)))))

;; c6201:
;;   mvk .s1 32, a0
;;   || shl .s2x a4, 7, b0
;;   || mv .l1x b4, a1
;;   shru .s1 a4, 25, a6
;;   || extu .s2 b4, 27, 27, b1
;;   add .l2x b0, a6, b0
;;   || sub .l1x a0, b1, a0
;;   || b .s2 b3
;;   shl .s2x a4, b1, b1
;;   || shru .s1 a4, a0, a0
;;   xor .l2 b1, b0, b4
;;   xor .l1x a0, b4, a4
;;   nop 2

;; c64x:
;;   rotl .m1 a4, 7, a3
;;   || rotl .m2x a4, b4, b0
;;   || b .s2 b3
;;   nop
;;   xor .l1x a3, b0, a4
;;   nop 3
