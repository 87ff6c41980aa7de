;; Any matrix is loaded and used: MixColumns twice.
;; on leon2 +mixcolm: mixcolm 1, mixcolm_row 32, and_imm 0
;; on rv32 +mixcolm_rv32: mixcolm 1, mixcolm_row 32
;; on avr +mixcolm_avr: mixcolm_put 3, mixcolm_last 1, mixcolm_get 3, mixcolm_row 128, lsr 0
;; on msp430 +mixcolm_msp430: mixcolm_put 1, mixcolm_last 1, mixcolm_get 1, mixcolm_row 64
(module (memory 2)
  (data $.rodata (i32.const 65536) "")
  (func (export "f") (param i32) (result i32) (local i32 i32 i32 i32)
    (local.set 3 (i32.const 20))
    (loop
      (local.set 0
        (block (result i32)
          (local.set 1 (i32.rotr (local.get 0) (i32.const 8)))
          (local.set 2 (i32.xor (local.get 0) (local.get 1)))
          (local.set 0
            (i32.xor
              (i32.xor
                (i32.xor
                  (i32.shl (i32.and (local.get 2) (i32.const 0x7f7f7f7f)) (i32.const 1))
                  (i32.mul
                    (i32.and (i32.shr_u (local.get 2) (i32.const 7)) (i32.const 0x01010101))
                    (i32.const 27)))
                (local.get 1))
              (i32.rotr (local.get 2) (i32.const 16))))
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
      (br_if 0 (local.tee 3 (i32.sub (local.get 3) (i32.const 1)))))
    (local.get 0)))
