;; The low half of a word that is shifted further than it is wide is 0, as an address, too.
;; on x86_64 level 0
;; on x86_64 level 1
;; on zen5 level 0
;; on zen5
;; f(7) = 99
;; f(4026531843) = 99
(module
  (memory 1)
  (data (i32.const 0) "c")
  (func (export "f") (param i32) (result i32)
    (i32.load8_u (i32.wrap_i64 (i64.shl (i64.extend_i32_u (local.get 0)) (i64.const 33))))))
