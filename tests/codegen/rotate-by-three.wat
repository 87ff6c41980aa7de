;; An eightfold is added as four times the double: no shift but that to the right.
;; on c6201: listing
(module (memory 1) (func (export "f") (param i32) (result i32) (i32.rotl (local.get 0) (i32.const 3))))

;; c6201:
;;   shru .s1 a4, 29, a2
;;   || add .l1 a4, a4, a4
;;   || b .s2 b3
;;   addaw .d1 a2, a4, a4
;;   nop 4
