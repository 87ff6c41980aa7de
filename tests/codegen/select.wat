;; Selection of a constant folds.
;; on rv32: listing
;; on leon2: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (select (i32.const 16) (i32.const 0) (i32.lt_u (local.get 0) (local.get 1)))))

;; rv32:
;;   sltu t0, a0, a1
;;   sub t0, zero, t0
;;   andi a0, t0, 16
;;   ret

;; leon2:
;;   cmp %o0, %o1
;;   addx %g0, 0, %g4
;;   sub %g0, %g4, %o0
;;   retl
;;   and %o0, 16, %o0
