;; A rotate by a register uses shifts by six bits.
;; on c6201: listing
;; on c64x: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (i32.xor (i32.rotl (local.get 0) (i32.const 7)) (i32.rotl (local.get 0) (local.get 1)))))
