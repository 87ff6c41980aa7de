;; An access that does not claim alignment is made of bytes.
;; on rv32: listing
(module (memory 1) (func (export "f") (param i32) (result i32) (i32.load align=2 (local.get 0))))

;; rv32:
;;   lhu t0, 0(a0)
;;   lhu t1, 2(a0)
;;   slli t1, t1, 16
;;   or a0, t0, t1
;;   ret
