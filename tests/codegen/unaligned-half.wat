;; An access that does not claim alignment is made of bytes.
;; on rv32: listing
(module (memory 1) (func (export "f") (param i32) (result i32) (i32.load align=2 (local.get 0))))
