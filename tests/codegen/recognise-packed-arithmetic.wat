;; Packed arithmetic is the matrix.
;; on leon2 +mixcol4: mixcol4 1, and_imm 0, sll_imm 0, xor 0
(module (memory 2)
  (data $.rodata (i32.const 65536) "")
  (func (export "f") (param i32) (result i32) (local i32 i32 i32 i32)
    (local.set 1 (i32.rotr (local.get 0) (i32.const 8)))
    (local.set 2 (i32.xor (local.get 0) (local.get 1)))
    (i32.xor
      (i32.xor
        (i32.xor
          (i32.shl (i32.and (local.get 2) (i32.const 0x7f7f7f7f)) (i32.const 1))
          (i32.mul
            (i32.and (i32.shr_u (local.get 2) (i32.const 7)) (i32.const 0x01010101))
            (i32.const 27)))
        (local.get 1))
      (i32.rotr (local.get 2) (i32.const 16)))))
