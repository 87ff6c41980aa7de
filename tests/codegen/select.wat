;; Selection of a constant folds.
;; on rv32: listing
;; on leon2: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (select (i32.const 16) (i32.const 0) (i32.lt_u (local.get 0) (local.get 1)))))
