;; Divisions by constants are products with a reciprocal: of one word where the dividend is known to
;; be small, of two otherwise; by 7 the reciprocal has 33 bits, by 14 it has them unless halved first.
;; on rv32: div 0, divu 0, rem 0, remu 0, mulhu 7, mulh 4
;; on c6201
;; on c64x
;; on leon2
;; on core2
;; on zen5
;; on epic
;; on clapp
;; edges
;; f(9) = 0
;; f(10) = 1
;; f(4294967295) = 429496729
(module
  (func (export "f") (param i32) (result i32) (i32.div_u (local.get 0) (i32.const 10)))
  (func (export "by3") (param i32) (result i32) (i32.rem_u (local.get 0) (i32.const 3)))
  (func (export "by7") (param i32) (result i32) (i32.div_u (local.get 0) (i32.const 7)))
  (func (export "by14") (param i32) (result i32) (i32.rem_u (local.get 0) (i32.const 14)))
  (func (export "large") (param i32) (result i32) (i32.div_u (local.get 0) (i32.const -2)))
  (func (export "half") (param i32) (result i32) (i32.rem_u (local.get 0) (i32.const 0x80000001)))
  (func (export "small") (param i32) (result i32)
    (i32.rem_u (i32.and (local.get 0) (i32.const 127)) (i32.const 10)))
  (func (export "byte") (param i32) (result i32)
    (i32.div_s (i32.and (local.get 0) (i32.const 255)) (i32.const -3)))
  (func (export "kyber") (param i32) (result i32) (i32.rem_u (local.get 0) (i32.const 3329)))
  (func (export "signed3") (param i32) (result i32) (i32.div_s (local.get 0) (i32.const 3)))
  (func (export "signed7") (param i32) (result i32) (i32.rem_s (local.get 0) (i32.const 7)))
  (func (export "negative") (param i32) (result i32) (i32.div_s (local.get 0) (i32.const -10)))
  (func (export "most") (param i32) (result i32) (i32.rem_s (local.get 0) (i32.const 0x7fffffff))))
