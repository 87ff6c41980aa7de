;; A word stored somewhere in one table is none of those loaded from the table behind it: no load waits for a store.
;; on c6201: ii 6..8
;; on c64x: ii 6..8
;; on epic: ii 2..5
;; on itanium2: ii 2..5
;; f(0, 1) = 0x1b4e79
;; f(512, 0x1234567) = 0x13e93df
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32) (local i32 i32)
    (local.set 3 (i32.const 24))
    (local.set 0 (i32.and (local.get 0) (i32.const 0xffc)))
    (i32.store offset=1024 (local.get 0) (local.get 1))
    (loop $l
      (local.set 2 (i32.load offset=1024 (i32.add (local.get 0) (i32.and (local.get 1) (i32.const 0x3fc)))))
      (local.set 2 (i32.add (i32.rotl (local.get 2) (i32.const 7)) (i32.const 5)))
      (local.set 2 (i32.xor (i32.shl (local.get 2) (i32.const 3)) (local.get 2)))
      (i32.store
        (i32.add (local.get 0) (i32.and (i32.shr_u (local.get 1) (i32.const 3)) (i32.const 0x3fc)))
        (i32.add (local.get 2) (local.get 1)))
      (local.set 1 (i32.add (local.get 1) (i32.const 0x12345)))
      (br_if $l (local.tee 3 (i32.sub (local.get 3) (i32.const 1)))))
    (i32.xor
      (i32.xor
        (i32.load (i32.add (local.get 0) (i32.and (i32.shr_u (local.get 1) (i32.const 3)) (i32.const 0x3fc))))
        (i32.load offset=1024 (i32.add (local.get 0) (i32.and (local.get 1) (i32.const 0x3fc)))))
      (local.get 1))))
