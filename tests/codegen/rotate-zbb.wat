;; A rotate is one instruction where there is one.
;; on rv32 +zbb: listing
;; on leon2: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (i32.xor (i32.rotl (local.get 0) (i32.const 7)) (i32.rotl (local.get 0) (local.get 1)))))
