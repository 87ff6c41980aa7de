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
;;   || mv .l2x a4, b7
;;   || mvk .s2 32, b2
;;   mpyu .m1 a4, a4, a3
;;   shl .s1 a5, 17, a8
;;   add .l1 a3, a8, a9
;;   mv .l2x a9, b0
;;   addah .d2 b7, b0, b0
;;   shl .s2 b0, 5, b1
;;   shru .s2 b0, 27, b0
;;   || xor .l2 b1, b4, b4
;;   sub .l2 b2, b0, b6
;;   || xor .s2 b4, b0, b4
;;   mv .l1x b6, a9
;;   || shl .s2 b4, b0, b8
;;   shru .s1x b4, a9, a0
;;   || b .s2 b3
;;   add .l1x a0, b8, a4
;;   nop 4

;; c64x:
;;   mpyhlu .m1 a4, a4, a5
;;   mpyu .m1 a4, a4, a3
;;   shl .s1 a5, 17, a7
;;   add .l1 a3, a7, a16
;;   addah .d1 a4, a16, a16
;;   || b .s2 b3
;;   rotl .m1 a16, 5, a16
;;   nop
;;   xor .l1x a16, b4, a17
;;   rotl .m1 a17, a16, a4
;;   nop
