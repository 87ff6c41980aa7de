;; A product and each of two words are added by one instruction, whichever sum stands first; a product and one word by
;; the one for two words.
;; on cortex-m4: umaal 2, umlal 1, umull 0
;; on cortex-m3: umull 3, umlal 0
;; f(3, 5) = 23
;; f(0xffffffff, 0xffffffff) = 0xfffffffc
;; edges
(module (memory 1)
  (func $folded (param i64) (result i32)
    (i32.add (i32.wrap_i64 (local.get 0))
      (i32.mul (i32.wrap_i64 (i64.shr_u (local.get 0) (i64.const 32))) (i32.const 3))))
  (func (export "f") (param i32 i32) (result i32)
    (call $folded (i64.add
      (i64.add (i64.mul (i64.extend_i32_u (local.get 0)) (i64.extend_i32_u (local.get 1)))
        (i64.extend_i32_u (local.get 0)))
      (i64.extend_i32_u (local.get 1)))))
  (func (export "sum_first") (param i32 i32) (result i32)
    (call $folded (i64.add
      (i64.add (i64.extend_i32_u (local.get 0)) (i64.extend_i32_u (i32.load (i32.const 8))))
      (i64.mul (i64.extend_i32_u (local.get 0)) (i64.extend_i32_u (local.get 1))))))
  (func (export "one_word") (param i32 i32) (result i32)
    (call $folded (i64.add
      (i64.mul (i64.extend_i32_u (local.get 0)) (i64.extend_i32_u (local.get 1)))
      (i64.extend_i32_u (i32.load (i32.const 8)))))))
