;; An eightfold is added as four times the double: no shift but that to the right.
;; on c6201: listing
(module (memory 1) (func (export "f") (param i32) (result i32) (i32.rotl (local.get 0) (i32.const 3))))

;; c6201:
;;   shru .s2x a4, 29, b0
;;   || add .l1 a4, a4, a4
;;   mv .l1x b0, a7
;;   || mv .l2x a4, b0
;;   || b .s2 b3
;;   addaw .d1 a7, a4, a4
;;   nop 4
