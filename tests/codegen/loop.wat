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

;; leon2:
;;   mov %o0, %o5
;;   add %g0, 0, %o0
;;   mov %o5, %g2
;;   ld [%g2 + 0], %o2
;;   add %g2, 4, %g2
;;   addcc %o1, -1, %o1
;;   bne .L0_1
;;   add %o0, %o2, %o0
;;   retl
;;   nop

;; rv32:
;;   mv a3, a0
;;   addi a0, zero, 0
;;   mv a5, a3
;;   lw a2, 0(a5)
;;   addi a5, a5, 4
;;   add a0, a0, a2
;;   addi a1, a1, -1
;;   bne a1, zero, .L0_1
;;   ret
