;; A sum that is only an address has no sign.
;; on rv64: add 1, addw 0
;; on rv64 +zba_rv64: sh2add_uw 1, addw 0
;; f(65536, 0xffffffff)
;; f(65536, 2)
;; f(65536, 1)
(module (memory 2)
  (data (i32.const 65536) "\01\00\00\00\02\00\00\00\03\00\00\00")
  (func (export "f") (param i32 i32) (result i32) (local i32)
    (local.set 2 (i32.add (local.get 0) (i32.shl (i32.and (local.get 1) (i32.const 3)) (i32.const 2))))
    (i32.add (i32.load (local.get 2)) (i32.const 5))))
