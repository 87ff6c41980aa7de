;; A product with half a word takes two products.
;; on c6201: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (i32.mul (i32.and (local.get 0) (i32.const 65535)) (local.get 1))))

;; c6201:
;;   mv .l1x b4, a9
;;   || b .s2 b3
;;   mpyhlu .m1 a9, a4, a5
;;   mpyu .m1x a4, b4, a3
;;   shl .s1 a5, 16, a7
;;   add .l1 a3, a7, a4
;;   nop
