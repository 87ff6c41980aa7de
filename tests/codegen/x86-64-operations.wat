;; Each width has its instructions on a machine that computes in 32 bits and in 64.
;; on x86_64: sub 1, sub_q 1, xor 1, xor_q 1, imul 1, imul_q 1, shl_cl 1, shl_cl_q 1, shr_cl 1, shr_cl_q 1, rol_cl 1, rol_cl_q 1
;; edges
(module
  (func (export "sub32") (param i32 i32) (result i32) (i32.sub (local.get 0) (local.get 1)))
  (func (export "sub64") (param i64 i64) (result i64) (i64.sub (local.get 0) (local.get 1)))
  (func (export "xor32") (param i32 i32) (result i32) (i32.xor (local.get 0) (local.get 1)))
  (func (export "xor64") (param i64 i64) (result i64) (i64.xor (local.get 0) (local.get 1)))
  (func (export "mul32") (param i32 i32) (result i32) (i32.mul (local.get 0) (local.get 1)))
  (func (export "mul64") (param i64 i64) (result i64) (i64.mul (local.get 0) (local.get 1)))
  (func (export "shl32") (param i32 i32) (result i32) (i32.shl (local.get 0) (local.get 1)))
  (func (export "shl64") (param i64 i64) (result i64) (i64.shl (local.get 0) (local.get 1)))
  (func (export "shr32") (param i32 i32) (result i32) (i32.shr_u (local.get 0) (local.get 1)))
  (func (export "shr64") (param i64 i64) (result i64) (i64.shr_u (local.get 0) (local.get 1)))
  (func (export "rotl32") (param i32 i32) (result i32) (i32.rotl (local.get 0) (local.get 1)))
  (func (export "rotl64") (param i64 i64) (result i64) (i64.rotl (local.get 0) (local.get 1))))
