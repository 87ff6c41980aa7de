;; Both halves of a product come of one instruction, and so does the upper half alone.
;; on cortex-m4: umull 1, mul 0
;; on cortex-m3: umull 1
;; f(0xffffffff, 0xffffffff) = 0xffffffff
;; edges
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32) (local $p i64)
    (local.set $p (i64.mul (i64.extend_i32_u (local.get 0)) (i64.extend_i32_u (local.get 1))))
    (i32.xor (i32.wrap_i64 (local.get $p)) (i32.wrap_i64 (i64.shr_u (local.get $p) (i64.const 32)))))
  (func (export "upper") (param i32 i32) (result i32)
    (i32.wrap_i64 (i64.shr_s
      (i64.mul (i64.extend_i32_s (local.get 0)) (i64.extend_i32_s (local.get 1)))
      (i64.const 32)))))
