;; A loop branches back with its step in the delay slot.
;; on leon2: listing
;; on rv32: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32) (local i32)
    (loop $l
      (local.set 2 (i32.add (local.get 2) (i32.load (local.get 0))))
      (local.set 0 (i32.add (local.get 0) (i32.const 4)))
      (br_if $l (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
    (local.get 2)))
