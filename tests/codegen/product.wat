;; A product with a constant is shifts where multiplying is slow.
;; on leon2: listing
;; on rv32: listing
(module (memory 1) (func (export "f") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 27))))
