;; Sums and differences of two words hand a carry on, and a product is added to two words by one instruction.
;; on cortex-m4: adds 1, adc 1, subs 1, sbc 1, umlal 1
;; on cortex-m0plus: sbcs 1
;; f(3, 5) = 0x80000005
;; f(0xffffffff, 0xffffffff) = 0x7fffffff
;; edges
(module (memory 1)
  (data (i32.const 8) "\ff\ff\ff\ff\01\00\00\80")
  (func $folded (param i64) (result i32)
    (i32.xor (i32.wrap_i64 (local.get 0)) (i32.wrap_i64 (i64.shr_u (local.get 0) (i64.const 32)))))
  (func $pair (param i32 i32) (result i64)
    (i64.or (i64.extend_i32_u (local.get 0)) (i64.shl (i64.extend_i32_u (local.get 1)) (i64.const 32))))
  (func (export "f") (param i32 i32) (result i32)
    (call $folded (i64.add (i64.load (i32.const 8)) (call $pair (local.get 0) (local.get 1)))))
  (func (export "difference") (param i32 i32) (result i32)
    (call $folded (i64.sub (i64.load (i32.const 8)) (call $pair (local.get 0) (local.get 1)))))
  (func (export "product") (param i32 i32) (result i32)
    (call $folded (i64.add (i64.load (i32.const 8))
      (i64.mul (i64.extend_i32_u (local.get 0)) (i64.extend_i32_u (local.get 1)))))))
