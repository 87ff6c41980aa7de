;; An eightfold is added as four times the double: no shift but that to the right.
;; on c6201: listing
(module (memory 1) (func (export "f") (param i32) (result i32) (i32.rotl (local.get 0) (i32.const 3))))
