;; Both shifts of a rotate, or the instruction that is one, read the sum as it is.
;; on rv64: addw 1, slliw 1, srliw 1, or 1
;; on rv64 +zbb_rv64: addw 1, roriw 1
;; edges
(module
  (func (export "f") (param i32 i32) (result i32)
    (i32.rotl (i32.add (local.get 0) (local.get 1)) (i32.const 7))))
