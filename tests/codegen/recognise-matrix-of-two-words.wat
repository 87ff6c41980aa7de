;; A matrix of two words is found without tables.
;; on rv32 +aes_v5: saes_v5_emix 1, xor 1, slli 0
(module (memory 2)
  (data $.rodata (i32.const 65536) "")
  (func (export "f") (param i32 i32 i32) (result i32) (local i32 i32 i32 i32)
    (local.set 3
      (i32.or
        (i32.and (i32.shr_u (local.get 0) (i32.const 8)) (i32.const 0x00ff00ff))
        (i32.and (i32.shl (local.get 1) (i32.const 8)) (i32.const 0xff00ff00))))
    (local.set 4 (i32.xor (local.get 0) (local.get 3)))
    (i32.xor
      (i32.xor
        (i32.xor
          (i32.xor
            (i32.shl (i32.and (local.get 4) (i32.const 0x7f7f7f7f)) (i32.const 1))
            (i32.mul
              (i32.and (i32.shr_u (local.get 4) (i32.const 7)) (i32.const 0x01010101))
              (i32.const 27)))
          (local.get 3))
        (i32.xor
          (local.get 1)
          (i32.or
            (i32.and (i32.shr_u (local.get 1) (i32.const 8)) (i32.const 0x00ff00ff))
            (i32.and (i32.shl (local.get 0) (i32.const 8)) (i32.const 0xff00ff00)))))
      (local.get 2))))
