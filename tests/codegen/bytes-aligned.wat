;; Byte addresses are turned on a big endian machine.
;; on leon2: listing
;; aligned 0 1
(module (memory 1)
  (func (export "f") (param i32 i32)
    (i32.store8 offset=1 (local.get 0) (i32.load8_u offset=2 (local.get 1)))))

;; leon2:
;;   ldub [%o1 + 1], %g3
;;   retl
;;   stb %g3, [%o0 + 2]
