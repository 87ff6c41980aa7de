;; Packed arithmetic on two columns in one word is the matrix of 64 by 64 bits.
;; on rv64 +zknd_rv64: aes64im 1, and 0, xor 0, mul 0
;; f(0) = 0
(module
  (func (export "f") (param i64) (result i64) (local i64 i64 i64 i64)
    (local.set 1 (i64.xor
      (i64.shl (i64.and (local.get 0) (i64.const 0x7f7f7f7f7f7f7f7f)) (i64.const 1))
      (i64.mul (i64.and (i64.shr_u (local.get 0) (i64.const 7)) (i64.const 0x0101010101010101)) (i64.const 27))))
    (local.set 1 (i64.xor
      (i64.shl (i64.and (local.get 1) (i64.const 0x7f7f7f7f7f7f7f7f)) (i64.const 1))
      (i64.mul (i64.and (i64.shr_u (local.get 1) (i64.const 7)) (i64.const 0x0101010101010101)) (i64.const 27))))
    ;; With the double of the double, its half turned, on it, the inverse is MixColumns.
    (local.set 1 (i64.xor (local.get 0) (i64.xor (local.get 1) (i64.or
      (i64.and (i64.shr_u (local.get 1) (i64.const 16)) (i64.const 0xffff0000ffff))
      (i64.shl (i64.and (local.get 1) (i64.const 0xffff0000ffff)) (i64.const 16))))))
    (local.set 2 (i64.or
      (i64.and (i64.shr_u (local.get 1) (i64.const 8)) (i64.const 0xffffff00ffffff))
      (i64.shl (i64.and (local.get 1) (i64.const 0xff000000ff)) (i64.const 24))))
    (local.set 3 (i64.xor (local.get 1) (local.get 2)))
    (i64.xor
      (i64.xor (i64.xor
      (i64.shl (i64.and (local.get 3) (i64.const 0x7f7f7f7f7f7f7f7f)) (i64.const 1))
      (i64.mul (i64.and (i64.shr_u (local.get 3) (i64.const 7)) (i64.const 0x0101010101010101)) (i64.const 27))) (local.get 2))
      (i64.or
      (i64.and (i64.shr_u (local.get 3) (i64.const 16)) (i64.const 0xffff0000ffff))
      (i64.shl (i64.and (local.get 3) (i64.const 0xffff0000ffff)) (i64.const 16))))))
