;; A square takes two products and the amount no mask.
;; on c6201: listing
;; on c64x: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32) (local i32)
    (local.set 2
      (i32.rotl
        (i32.mul (local.get 0) (i32.or (i32.shl (local.get 0) (i32.const 1)) (i32.const 1)))
        (i32.const 5)))
    (i32.rotl (i32.xor (local.get 1) (local.get 2)) (local.get 2))))

;; c6201:
;;   mpyhlu .m1 a4, a4, a5
;;   || mv .l2x a4, b5
;;   || mvk .s1 32, a0
;;   mpyu .m2 b5, b5, b0
;;   shl .s1 a5, 17, a1
;;   add .l1x a1, b0, a1
;;   addah .d1 a4, a1, a1
;;   shl .s2x a1, 5, b0
;;   || shru .s1 a1, 27, a1
;;   xor .l2 b0, b4, b4
;;   || sub .l1 a0, a1, a0
;;   || b .s2 b3
;;   xor .l2x b4, a1, b6
;;   shl .s1x b6, a1, a1
;;   || mv .l2x a0, b0
;;   shru .s1x b6, a0, a0
;;   add .l1 a1, a0, a4
;;   nop

;; c64x:
;;   mpyhlu .m1 a4, a4, a5
;;   || mv .l2x a4, b0
;;   mpyu .m1 a4, a4, a6
;;   shl .s1 a5, 17, a8
;;   add .l1 a6, a8, a16
;;   addah .d1 a4, a16, a16
;;   || b .s2 b3
;;   rotl .m1 a16, 5, a16
;;   nop
;;   xor .l1x a16, b4, a17
;;   rotl .m1 a17, a16, a4
;;   nop
