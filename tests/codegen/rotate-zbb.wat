;; A rotate is one instruction where there is one.
;; on rv32 +zbb: listing
;; on leon2: listing
(module (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (i32.xor (i32.rotl (local.get 0) (i32.const 7)) (i32.rotl (local.get 0) (local.get 1)))))

;; rv32 +zbb:
;;   rori t0, a0, 25
;;   rol t1, a0, a1
;;   xor a0, t0, t1
;;   ret

;; leon2:
;;   sll %o0, 7, %g3
;;   srl %o0, 25, %o2
;;   or %g3, %o2, %o2
;;   sll %o0, %o1, %o3
;;   sub %g0, %o1, %o4
;;   srl %o0, %o4, %o5
;;   or %o3, %o5, %g2
;;   retl
;;   xor %o2, %g2, %o0
