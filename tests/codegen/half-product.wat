;; A product with half a word takes two products.
;; on c6201: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (i32.mul (i32.and (local.get 0) (i32.const 65535)) (local.get 1))))
