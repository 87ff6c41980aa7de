;; Words of which each store reaches into that of the iteration before, and loads that meet both.
;; on c6201
;; on c64x
;; on epic
;; on itanium2
;; on rv32
;; f(0, 1) = 0x44df0666
;; f(64, 0x1234567) = 0x96f537ec
;; edges
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32) (local i32 i32)
    (local.set 3 (i32.const 30))
    (local.set 0 (i32.and (local.get 0) (i32.const 0xfff)))
    (loop $l
      (local.set 2 (i32.add (i32.load offset=3 (local.get 0)) (i32.add (local.get 1) (local.get 3))))
      (local.set 2 (i32.mul (local.get 2) (i32.const 0x9e3779b1)))
      (i32.store offset=9 (local.get 0) (local.get 2))
      (i32.store16 offset=8 (local.get 0) (local.get 3))
      (local.set 0 (i32.add (local.get 0) (i32.const 2)))
      (br_if $l (local.tee 3 (i32.sub (local.get 3) (i32.const 1)))))
    (i32.xor (local.get 2) (i32.load (local.get 0)))))
