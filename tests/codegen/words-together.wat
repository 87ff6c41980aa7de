;; Words that lie one behind the other are loaded and stored together, by registers that rise, where that takes fewer
;; cycles, and a pointer that is stepped behind them is where the instruction leaves it.
;; on cortex-m0plus: ldm4 2, stm4 2, adds_i8 0
;; on cortex-m4: ldm4 0, stm4 0
;; f(64, 128) = 0x800
(module (memory 1)
  (data (i32.const 64) "\03\00\00\00\02\00\00\00\01\00\00\00\00\08\00\00")
  (func (export "f") (param i32 i32) (result i32) (local i32 i32 i32 i32)
    (local.set 2 (i32.load offset=0 (local.get 0)))
    (local.set 3 (i32.load offset=4 (local.get 0)))
    (local.set 4 (i32.load offset=8 (local.get 0)))
    (local.set 5 (i32.load offset=12 (local.get 0)))
    (i32.store offset=0 (local.get 1) (i32.add (local.get 2) (i32.const 1)))
    (i32.store offset=4 (local.get 1) (i32.add (local.get 3) (i32.const 2)))
    (i32.store offset=8 (local.get 1) (i32.add (local.get 4) (i32.const 3)))
    (i32.store offset=12 (local.get 1) (i32.add (local.get 5) (i32.const 7)))
    (local.get 5))
  (func (export "copied") (param i32 i32) (result i32) (local i32 i32 i32 i32)
    (loop $again
      (local.set 2 (i32.load offset=0 (local.get 0)))
      (local.set 3 (i32.load offset=4 (local.get 0)))
      (local.set 4 (i32.load offset=8 (local.get 0)))
      (local.set 5 (i32.load offset=12 (local.get 0)))
      (i32.store offset=0 (local.get 1) (i32.xor (local.get 2) (local.get 3)))
      (i32.store offset=4 (local.get 1) (local.get 3))
      (i32.store offset=8 (local.get 1) (local.get 4))
      (i32.store offset=12 (local.get 1) (local.get 5))
      (local.set 0 (i32.add (local.get 0) (i32.const 16)))
      (local.set 1 (i32.add (local.get 1) (i32.const 16)))
      (br_if $again (i32.lt_u (local.get 0) (i32.const 128))))
    (i32.load offset=12 (i32.const 128))))
