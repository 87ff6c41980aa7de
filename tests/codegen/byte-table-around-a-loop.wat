;; An index that goes round a loop is bounded, too: a byte looks up the next.
;; on leon2: copies 2
;; on rv32: copies 0
;; f(0) = 99
;; f(1) = 115
;; f(2) = 115
;; f(3) = 115
(module (memory 2)
  (data $.rodata (i32.const 65536) "constants...a")
  (data $.data (i32.const 65549) "nd the rest")
  (func (export "f") (param $i i32) (result i32)
    (local $x i32)
    (local.set $i (i32.and (local.get $i) (i32.const 3)))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $i)))
        (local.set $x (i32.and (i32.load8_u offset=65536 (local.get $x)) (i32.const 7)))
        (local.set $i (i32.sub (local.get $i) (i32.const 1)))
        (br $next)))
    (i32.load8_u offset=65536 (local.get $x))))
