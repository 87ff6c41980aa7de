;; An index cut out of a rotated word is cut out of the word itself. Twice: field 1, load 5, exclusive-or 1; and a cycle
;; more where units are taken.
;; on c6201: ii 14..15
;; on c64x: ii 14..15
;; f(1, 9)
;; f(0x12345678, 3)
(module (memory 1)
  (data (i32.const 0) "\11\22\33\44\55\66\77\88\99\aa\bb\cc\dd\ee\ff\01\f3\52\a7\6d\01\9c\40\e8\05\bf\7a\21\d4\90\3b\c6")
  (func (export "f") (param i32 i32) (result i32) (local i32)
    (local.set 1 (i32.add (i32.and (local.get 1) (i32.const 31)) (i32.const 8)))
    (loop $l
      (local.set 2 (i32.rotl (local.get 0) (i32.const 31)))
      (local.set 0
        (i32.xor
          (i32.load8_u (i32.and (i32.shr_u (local.get 2) (i32.const 8)) (i32.const 127)))
          (local.get 2)))
      (local.set 2 (i32.rotl (local.get 0) (i32.const 31)))
      (local.set 0
        (i32.xor
          (i32.load8_u (i32.and (i32.shr_u (local.get 2) (i32.const 8)) (i32.const 127)))
          (local.get 2)))
      (br_if $l (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
    (local.get 0)))
