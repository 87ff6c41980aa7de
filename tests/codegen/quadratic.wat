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
