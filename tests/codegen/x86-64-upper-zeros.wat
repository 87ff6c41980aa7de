;; What is above 32 bits is zero, whatever instruction made the word.
;; on x86_64
;; edges
(module (memory 1)
  (data (i32.const 0) "\80\ff\00\00\80\ff\ff\ff")
  (func (export "add") (param i32) (result i64) (i64.extend_i32_u (i32.add (local.get 0) (i32.const -1))))
  (func (export "shl") (param i32) (result i64) (i64.extend_i32_u (i32.shl (local.get 0) (i32.const 4))))
  (func (export "sar") (param i32) (result i64) (i64.extend_i32_u (i32.shr_s (local.get 0) (i32.const 4))))
  (func (export "rotl") (param i32) (result i64) (i64.extend_i32_u (i32.rotl (local.get 0) (i32.const 4))))
  (func (export "extend") (param i32) (result i64) (i64.extend_i32_u (i32.extend8_s (local.get 0))))
  (func (export "byte") (result i64) (i64.extend_i32_u (i32.load8_s (i32.const 0))))
  (func (export "half") (result i64) (i64.extend_i32_u (i32.load16_s (i32.const 0))))
  (func (export "word") (result i64) (i64.extend_i32_u (i32.load (i32.const 4)))))
