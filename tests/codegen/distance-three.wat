;; A word that is loaded three iterations after it was stored: the chain between goes round once in three.
;; on c6201: ii 6..8
;; on c64x: ii 6..8
;; on epic: ii 2..4
;; on itanium2: ii 2..4
;; f(0, 1) = 0x7ce919a8
;; f(512, 0x1234567) = 0xb27eecca
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32) (local i32 i32)
    (local.set 3 (i32.const 24))
    (local.set 0 (i32.and (local.get 0) (i32.const 0xffc)))
    (i32.store (local.get 0) (local.get 1))
    (i32.store offset=4 (local.get 0) (i32.xor (local.get 1) (i32.const 77)))
    (loop $l
      (local.set 2 (i32.load (local.get 0)))
      (local.set 2 (i32.add (i32.rotl (local.get 2) (i32.const 7)) (i32.const 5)))
      (local.set 2 (i32.xor (i32.shl (local.get 2) (i32.const 3)) (local.get 2)))
      (i32.store offset=12 (local.get 0) (local.get 2))
      (local.set 0 (i32.add (local.get 0) (i32.const 4)))
      (br_if $l (local.tee 3 (i32.sub (local.get 3) (i32.const 1)))))
    (i32.xor (local.get 2) (i32.xor (i32.load (local.get 0)) (i32.load offset=4 (local.get 0))))))
