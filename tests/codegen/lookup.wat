;; A table lookup takes its index already scaled, where the machine does not scale it.
;; on leon2: listing
;; on rv32: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (i32.xor
      (local.get 0)
      (i32.load offset=4096
        (i32.shl (i32.and (i32.shr_u (local.get 1) (i32.const 8)) (i32.const 255)) (i32.const 2))))))

;; leon2:
;;   srl %o1, 6, %g3
;;   and %g3, 1020, %o1
;;   sethi %hi(4096), %o2
;;   ld [%o1 + %o2], %o1
;;   retl
;;   xor %o0, %o1, %o0

;; rv32:
;;   srli t0, a1, 6
;;   andi t0, t0, 1020
;;   lui a1, %hi(4096)
;;   add a1, t0, a1
;;   lw a1, 0(a1)
;;   xor a0, a0, a1
;;   ret
