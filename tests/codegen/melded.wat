;; A step that renews one of two tables, as a bit of data says: both sides of the branch become one, and the loop is pipelined.
;; on c6201: ii 8..40
;; on c64x: ii 8..40
;; on epic: ii 6..30
;; on itanium2: ii 6..30
;; f(0x1, 0x2) = 0x74e6abbe
;; f(0x12345678, 0x9abcdef0) = 0x9ad37388
(module (memory 1)
  (func (export "f") (param $x i32) (param $first i32) (result i32) (local $i i32) (local $p i32)
    (i32.store offset=1024 (i32.const 0) (local.get $first))
    (i32.store offset=2052 (i32.const 0) (i32.xor (local.get $first) (i32.const 0x55)))
    (loop $l
      (local.set $p (i32.shl (i32.and (local.get $i) (i32.const 15)) (i32.const 2)))
      (if (i32.and (local.get $x) (i32.const 1))
        (then
          (i32.store offset=1024 (local.get $p)
            (i32.add (i32.load offset=1024 (local.get $p))
                     (i32.rotl (i32.xor (i32.load offset=1032 (local.get $p)) (local.get $x)) (i32.const 10))))
          (local.set $x (i32.xor (local.get $x)
            (i32.load offset=2048 (i32.and (i32.load offset=1024 (local.get $p)) (i32.const 60))))))
        (else
          (i32.store offset=2048 (local.get $p)
            (i32.add (i32.load offset=2048 (local.get $p))
                     (i32.rotl (i32.xor (i32.load offset=2056 (local.get $p)) (local.get $x)) (i32.const 22))))
          (local.set $x (i32.xor (local.get $x)
            (i32.load offset=1024 (i32.and (i32.load offset=2048 (local.get $p)) (i32.const 60)))))))
      (local.set $x (i32.add (i32.rotl (local.get $x) (i32.const 3)) (i32.const 0x9e3779b9)))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 40))))
    (local.get $x)))
