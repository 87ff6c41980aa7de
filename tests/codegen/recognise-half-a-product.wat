;; A product behind a rotate pays only if it is whole.
;; on leon2 +mixcol4: mixcol4 0
(module (memory 2)
  (data $.rodata (i32.const 65536) "")
  (func (export "f") (param i32) (result i32) (local i32 i32 i32 i32)
    (i32.xor (local.get 0) (i32.rotr (local.get 0) (i32.const 8)))))
