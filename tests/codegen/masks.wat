;; A mask and its complement share a register.
;; on leon2: listing
(module (memory 1)
  (func (export "f") (param i32) (result i32)
    (i32.xor
      (i32.and (i32.shl (local.get 0) (i32.const 1)) (i32.const 0xfefefefe))
      (i32.and (i32.shr_u (local.get 0) (i32.const 7)) (i32.const 0x01010101)))))
