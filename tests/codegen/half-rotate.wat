;; A term is added to half a rotate where one unit shifts.
;; on c6201: listing
;; on c64x: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (i32.add (local.get 1) (i32.rotl (i32.xor (local.get 0) (i32.const -1)) (i32.const 9)))))
