;; An index that stays inside reads the copy in the machine's order of bytes.
;; on leon2: copies 1
;; on rv32: copies 0
;; f(0) = 97
;; f(1) = 110
;; f(6) = 46
;; f(7) = 97
;; f(8) = 97
;; f(0xffffffff) = 97
(module (memory 2)
  (data $.rodata (i32.const 65536) "constants...a")
  (data $.data (i32.const 65549) "nd the rest")
  (func (export "f") (param $i i32) (result i32)
    (i32.load8_u offset=65541 (i32.and (local.get $i) (i32.const 7)))))
