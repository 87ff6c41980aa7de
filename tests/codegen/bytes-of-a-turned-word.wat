;; Bytes of a word that was turned are cut out of the word as it was: no rotate, and no shifts in its place.
;; on rv32: slli 0, srli 1, lbu 2
;; f(0x0300, 0) = 0
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32) (local $r i32)
    (local.set $r (i32.rotr (local.get 0) (i32.const 8)))
    (i32.add
      (i32.load8_u offset=256 (i32.and (local.get $r) (i32.const 255)))
      (i32.load8_u offset=256 (i32.shr_u (local.get $r) (i32.const 24))))))
