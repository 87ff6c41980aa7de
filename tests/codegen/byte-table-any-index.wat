;; An index of which nothing is known reads what is there.
;; on leon2: copies 0
;; on rv32: copies 0
;; f(0) = 99
;; f(5) = 97
;; f(12) = 97
;; f(13) = 110
;; f(23) = 116
(module (memory 2)
  (data $.rodata (i32.const 65536) "constants...a")
  (data $.data (i32.const 65549) "nd the rest")
  (func (export "f") (param $i i32) (result i32)
    (i32.load8_u offset=65536 (local.get $i))))
