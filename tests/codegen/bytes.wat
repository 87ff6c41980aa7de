;; Byte addresses are turned on a big endian machine.
;; on leon2: listing
;; on rv32: listing
(module (memory 1)
  (func (export "f") (param i32 i32)
    (i32.store8 offset=1 (local.get 0) (i32.load8_u offset=2 (local.get 1)))))
