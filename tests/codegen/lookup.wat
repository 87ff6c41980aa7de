;; A table lookup takes its index already scaled, where the machine does not scale it.
;; on leon2: listing
;; on rv32: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (i32.xor
      (local.get 0)
      (i32.load offset=4096
        (i32.shl (i32.and (i32.shr_u (local.get 1) (i32.const 8)) (i32.const 255)) (i32.const 2))))))
