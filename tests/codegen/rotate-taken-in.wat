;; A rotate with two users is not made where both take it in.
;; on cortex-m4: ror 0, eor_ror 1, add_ror 1
;; f(1, 3) = 17161
;; f(0x80000000, 0) = 4096
;; edges
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32) (local $r i32)
    (local.set $r (i32.rotl (local.get 0) (i32.const 7)))
    (i32.mul (i32.xor (local.get $r) (local.get 1)) (i32.add (local.get $r) (local.get 1)))))
