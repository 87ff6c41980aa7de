;; Words of 32 bits keep their sign extended in registers of 64.
;; on rv64: addw 1, subw 1, mulw 1, xor 1, sllw 3, srlw 3, sltu 1, slt 1
;; edges
(module
  (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "sub") (param i32 i32) (result i32) (i32.sub (local.get 0) (local.get 1)))
  (func (export "mul") (param i32 i32) (result i32) (i32.mul (local.get 0) (local.get 1)))
  (func (export "xor") (param i32 i32) (result i32) (i32.xor (local.get 0) (local.get 1)))
  (func (export "shl") (param i32 i32) (result i32) (i32.shl (local.get 0) (local.get 1)))
  (func (export "shr") (param i32 i32) (result i32) (i32.shr_u (local.get 0) (local.get 1)))
  (func (export "sar") (param i32 i32) (result i32) (i32.shr_s (local.get 0) (local.get 1)))
  (func (export "rotl") (param i32 i32) (result i32) (i32.rotl (local.get 0) (local.get 1)))
  (func (export "rotr") (param i32 i32) (result i32) (i32.rotr (local.get 0) (local.get 1)))
  (func (export "below") (param i32 i32) (result i32) (i32.lt_u (local.get 0) (local.get 1)))
  (func (export "less") (param i32 i32) (result i32) (i32.lt_s (local.get 0) (local.get 1))))
