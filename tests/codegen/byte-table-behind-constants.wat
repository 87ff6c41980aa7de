;; A table behind the constants is not taken for one of them: the constant is the address of the last.
;; on leon2: copies 0
;; on rv32: copies 0
;; f(1) = 110
;; f(2) = 100
;; f(10) = 115
;; f(11) = 116
;; f(0) = 97
;; f(0xfffffff4) = 99
(module (memory 2)
  (data $.rodata (i32.const 65536) "constants...a")
  (data $.data (i32.const 65549) "nd the rest")
  (func (export "f") (param $i i32) (result i32)
    (i32.load8_u (i32.add (local.get $i) (i32.const 65548)))))
