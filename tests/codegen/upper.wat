;; Words are turned for their upper bytes.
;; on ia32: listing
;; on zen5: listing
(module (memory 1)
  (func (export "f") (param $x i32) (param $y i32) (param $z i32) (result i32) (local $sum i32)
    (local.set $sum (i32.load8_u offset=256 (i32.shr_u (local.get $x) (i32.const 24))))
    (local.set $sum
      (i32.add
        (local.get $sum)
        (i32.load8_u offset=512 (i32.and (i32.shr_u (local.get $x) (i32.const 16)) (i32.const 255)))))
    (local.set $sum
      (i32.add
        (local.get $sum)
        (i32.load8_u offset=768 (i32.and (i32.shr_u (local.get $x) (i32.const 8)) (i32.const 255)))))
    (local.set $sum
      (i32.add (local.get $sum) (i32.load8_u offset=1024 (i32.and (local.get $x) (i32.const 255)))))
    (local.set $sum (i32.sub (local.get $sum) (i32.rotl (local.get $x) (i32.const 1))))
    (local.set $sum (i32.sub (local.get $sum) (i32.rotr (local.get $x) (i32.const 16))))
    (local.set $sum
      (i32.xor (local.get $sum) (i32.load8_u offset=256 (i32.shr_u (local.get $y) (i32.const 24)))))
    (local.set $sum
      (i32.xor
        (local.get $sum)
        (i32.load8_u offset=512 (i32.and (i32.shr_u (local.get $y) (i32.const 16)) (i32.const 255)))))
    (local.set $sum (i32.mul (local.get $sum) (local.get $y)))
    (local.set $sum
      (i32.xor (local.get $sum) (i32.load8_u offset=256 (i32.shr_u (local.get $z) (i32.const 24)))))
    (i32.xor
      (local.get $sum)
      (i32.load8_u offset=512 (i32.and (i32.shr_u (local.get $z) (i32.const 16)) (i32.const 255))))))
