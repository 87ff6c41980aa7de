;; A word is rotated by a constant, then by an amount that is computed: the other term is rotated instead, beforehand, and the
;; amount made larger. Three times: exclusive-or 1, a shift (or rotate) and additions 3; and up to two cycles more where units are taken.
;; on c6201: ii 12..14
;; on c64x: ii 12..14
;; f(1, 9)
;; f(0x12345678, 3)
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (local.set 1 (i32.add (i32.and (local.get 1) (i32.const 31)) (i32.const 8)))
    (loop $l
      (local.set 0
        (i32.add
          (i32.rotl
            (i32.xor (i32.rotl (local.get 0) (i32.const 5)) (local.get 1))
            (i32.mul (local.get 1) (local.get 1)))
          (local.get 1)))
      (local.set 0
        (i32.add
          (i32.rotl
            (i32.xor (i32.rotl (local.get 0) (i32.const 5)) (local.get 1))
            (i32.mul (local.get 1) (local.get 1)))
          (local.get 1)))
      (local.set 0
        (i32.add
          (i32.rotl
            (i32.xor (i32.rotl (local.get 0) (i32.const 5)) (local.get 1))
            (i32.mul (local.get 1) (local.get 1)))
          (local.get 1)))
      (br_if $l (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
    (local.get 0)))
