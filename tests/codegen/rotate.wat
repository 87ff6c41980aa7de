;; A rotate by a register uses shifts by six bits.
;; on c6201: listing
;; on c64x: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (i32.xor (i32.rotl (local.get 0) (i32.const 7)) (i32.rotl (local.get 0) (local.get 1)))))

;; c6201:
;;   shl .s1 a4, 7, a3
;;   || extu .s2 b4, 27, 27, b0
;;   shru .s1 a4, 25, a5
;;   || mvk .s2 32, b1
;;   add .l1 a3, a5, a7
;;   || sub .l2 b1, b0, b2
;;   || shl .s2x a4, b0, b1
;;   shru .s2x a4, b2, b0
;;   xor .l2x b1, a7, b2
;;   || b .s2 b3
;;   mv .l1x b2, a9
;;   xor .l1x a9, b0, a4
;;   nop 3

;; c64x:
;;   mv .l1x b4, a9
;;   || rotl .m1 a4, 7, a3
;;   || b .s2 b3
;;   rotl .m1 a4, a9, a5
;;   nop
;;   xor .l1 a3, a5, a4
;;   nop 2
