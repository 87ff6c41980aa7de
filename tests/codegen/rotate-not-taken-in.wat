;; One of the two users wants the rotate in a register: then the other reads it there.
;; on cortex-m4: ror 1, eor_ror 0, eor_r 1
;; f(1, 3) = 16768
;; edges
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32) (local $r i32)
    (local.set $r (i32.rotl (local.get 0) (i32.const 7)))
    (i32.mul (i32.xor (local.get $r) (local.get 1)) (local.get $r))))
