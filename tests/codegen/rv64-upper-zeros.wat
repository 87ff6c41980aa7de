;; A word made longer has nothing above its 32 bits, even where only that is looked at.
;; on rv64 level 0
;; edges
(module
  (func (export "f") (param i32) (result i64)
    (i64.shr_u (i64.extend_i32_u (i32.shr_u (local.get 0) (i32.const 8))) (i64.const 32)))
  (func (export "g") (param i32) (result i64)
    (i64.and (i64.extend_i32_u (i32.shr_u (local.get 0) (i32.const 8))) (i64.const -4294967296))))
