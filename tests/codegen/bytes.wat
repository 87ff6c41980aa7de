;; Byte addresses are turned on a big endian machine.
;; on leon2: listing
;; on rv32: listing
(module (memory 1)
  (func (export "f") (param i32 i32)
    (i32.store8 offset=1 (local.get 0) (i32.load8_u offset=2 (local.get 1)))))

;; leon2:
;;   add %o1, 2, %g3
;;   xor %g3, 3, %o1
;;   ldub [%o1 + 0], %o1
;;   add %o0, 1, %o2
;;   xor %o2, 3, %o3
;;   retl
;;   stb %o1, [%o3 + 0]

;; rv32:
;;   lbu t0, 2(a1)
;;   sb t0, 1(a0)
;;   ret
