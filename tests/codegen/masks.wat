;; A mask and its complement share a register.
;; on leon2: listing
(module (memory 1)
  (func (export "f") (param i32) (result i32)
    (i32.xor
      (i32.and (i32.shl (local.get 0) (i32.const 1)) (i32.const 0xfefefefe))
      (i32.and (i32.shr_u (local.get 0) (i32.const 7)) (i32.const 0x01010101)))))

;; leon2:
;;   sll %o0, 1, %g2
;;   sethi %hi(4278123520), %o1
;;   or %o1, 766, %o1
;;   and %g2, %o1, %o2
;;   srl %o0, 7, %o0
;;   andn %o0, %o1, %o3
;;   retl
;;   xor %o2, %o3, %o0
