;; An access that does not claim alignment is made of bytes.
;; on rv32: listing
;; on c6201: listing
;; on c64x: listing
(module (memory 1) (func (export "f") (param i32) (result i32) (i32.load align=1 (local.get 0))))
