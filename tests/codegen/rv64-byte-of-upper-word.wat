;; The upper half of a word is not shifted into a byte that is cut out of the lower: two of these
;; four bytes reach its top, and there alone it is kept out.
;; on rv64: sext_w 0, srliw 2
;; edges
(module
  (func (export "f") (param i64) (result i32)
    (i32.and (i32.shr_u (i32.wrap_i64 (local.get 0)) (i32.const 8)) (i32.const 255)))
  (func (export "g") (param i64) (result i32)
    (i32.and (i32.shr_u (i32.wrap_i64 (local.get 0)) (i32.const 16)) (i32.const 255)))
  (func (export "h") (param i64) (result i32)
    (i32.and (i32.shr_u (i32.wrap_i64 (local.get 0)) (i32.const 24)) (i32.const 255)))
  (func (export "i") (param i64) (result i32)
    (i32.and (i32.shr_u (i32.wrap_i64 (local.get 0)) (i32.const 25)) (i32.const 255))))
