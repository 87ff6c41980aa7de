;; Each turn of a loop ends in one branch, where moves stand on the way back, too.
;; on core2: jmp 1, jne 1
(module
  (func (export "f") (param i32 i32 i32) (result i32) (local i32)
    (loop
      (local.set 3 (local.get 0))
      (local.set 0 (local.get 1))
      (local.set 1 (local.get 3))
      (br_if 0 (local.tee 2 (i32.sub (local.get 2) (i32.const 1)))))
    (local.get 0)))
