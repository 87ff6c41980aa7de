;; A product with half a word takes two products.
;; on c6201: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (i32.mul (i32.and (local.get 0) (i32.const 65535)) (local.get 1))))

;; c6201:
;;   mpyhlu .m2x b4, a4, b0
;;   || mpyu .m1x a4, b4, a4
;;   || b .s2 b3
;;   nop
;;   shl .s1x b0, 16, a7
;;   add .l1 a4, a7, a4
;;   nop 2
