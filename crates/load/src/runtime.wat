;; The runtime library. See runtime.rs for what the imports and memory 1 mean.
(module
  (import "trap" "memory-out-of-bounds" (func $trap_memory))
  (import "trap" "table-out-of-bounds" (func $trap_table))
  (import "trap" "integer-division-by-zero" (func $trap_zero))
  (import "trap" "integer-overflow" (func $trap_overflow))
  (memory $linear 0)
  (memory $system 0)

  ;; ---------------------------------------------------------------- memory

  ;; The number of pages before, or -1 when the limit does not allow that many.
  (func (export "rt_memory_grow") (param $delta i32) (result i32)
    (local $pages i32)
    (local.set $pages (i32.load $system (i32.const 0xF0000000)))
    (if (i32.gt_u
          (local.get $delta)
          (i32.sub (i32.load $system offset=4 (i32.const 0xF0000000)) (local.get $pages)))
      (then (return (i32.const -1))))
    (i32.store $system (i32.const 0xF0000000) (i32.add (local.get $pages) (local.get $delta)))
    (local.get $pages))

  ;; Traps unless n bytes from p on are in memory. Never wraps: a memory has at
  ;; most 2^30 bytes.
  (func $check (param $p i32) (param $n i32)
    (local $size i32)
    (local.set $size (i32.shl (memory.size $linear) (i32.const 16)))
    (if (i32.or
          (i32.gt_u (local.get $n) (local.get $size))
          (i32.gt_u (local.get $p) (i32.sub (local.get $size) (local.get $n))))
      (then (call $trap_memory))))

  ;; As memmove. Words are used when both addresses are equally misaligned.
  (func (export "rt_memory_copy") (param $d i32) (param $s i32) (param $n i32)
    (call $check (local.get $d) (local.get $n))
    (call $check (local.get $s) (local.get $n))
    (if (i32.eqz (local.get $n)) (then (return)))
    ;; d - s, taken as unsigned, is below n just when a forward copy would
    ;; overwrite bytes of the source that are still to be read.
    (if (i32.ge_u (i32.sub (local.get $d) (local.get $s)) (local.get $n))
      (then (call $forward (local.get $d) (local.get $s) (local.get $n)))
      (else (call $backward
        (i32.add (local.get $d) (local.get $n))
        (i32.add (local.get $s) (local.get $n))
        (local.get $n)))))

  ;; Copies n > 0 bytes upwards.
  (func $forward (param $d i32) (param $s i32) (param $n i32)
    (local $end i32)
    (block $bytes
      (br_if $bytes (i32.and (i32.xor (local.get $d) (local.get $s)) (i32.const 3)))
      (block $aligned
        (loop $head
          (br_if $aligned (i32.eqz (i32.and (local.get $d) (i32.const 3))))
          (i32.store8 (local.get $d) (i32.load8_u (local.get $s)))
          (local.set $d (i32.add (local.get $d) (i32.const 1)))
          (local.set $s (i32.add (local.get $s) (i32.const 1)))
          (local.set $n (i32.sub (local.get $n) (i32.const 1)))
          (br_if $head (local.get $n)))
        (return))
      (block $quads
        (br_if $quads (i32.lt_u (local.get $n) (i32.const 16)))
        (local.set $end (i32.add (local.get $d) (i32.and (local.get $n) (i32.const -16))))
        (loop $quad
          (i32.store (local.get $d) (i32.load (local.get $s)))
          (i32.store offset=4 (local.get $d) (i32.load offset=4 (local.get $s)))
          (i32.store offset=8 (local.get $d) (i32.load offset=8 (local.get $s)))
          (i32.store offset=12 (local.get $d) (i32.load offset=12 (local.get $s)))
          (local.set $s (i32.add (local.get $s) (i32.const 16)))
          (local.set $d (i32.add (local.get $d) (i32.const 16)))
          (br_if $quad (i32.ne (local.get $d) (local.get $end))))
        (local.set $n (i32.and (local.get $n) (i32.const 15))))
      (block $words
        (br_if $words (i32.lt_u (local.get $n) (i32.const 4)))
        (local.set $end (i32.add (local.get $d) (i32.and (local.get $n) (i32.const 12))))
        (loop $word
          (i32.store (local.get $d) (i32.load (local.get $s)))
          (local.set $s (i32.add (local.get $s) (i32.const 4)))
          (local.set $d (i32.add (local.get $d) (i32.const 4)))
          (br_if $word (i32.ne (local.get $d) (local.get $end))))
        (local.set $n (i32.and (local.get $n) (i32.const 3)))))
    (if (i32.eqz (local.get $n)) (then (return)))
    (local.set $end (i32.add (local.get $d) (local.get $n)))
    (loop $byte
      (i32.store8 (local.get $d) (i32.load8_u (local.get $s)))
      (local.set $s (i32.add (local.get $s) (i32.const 1)))
      (local.set $d (i32.add (local.get $d) (i32.const 1)))
      (br_if $byte (i32.ne (local.get $d) (local.get $end)))))

  ;; Copies n > 0 bytes downwards; d and s point behind the last byte.
  (func $backward (param $d i32) (param $s i32) (param $n i32)
    (local $end i32)
    (block $bytes
      (br_if $bytes (i32.and (i32.xor (local.get $d) (local.get $s)) (i32.const 3)))
      (block $aligned
        (loop $tail
          (br_if $aligned (i32.eqz (i32.and (local.get $d) (i32.const 3))))
          (local.set $d (i32.sub (local.get $d) (i32.const 1)))
          (local.set $s (i32.sub (local.get $s) (i32.const 1)))
          (i32.store8 (local.get $d) (i32.load8_u (local.get $s)))
          (local.set $n (i32.sub (local.get $n) (i32.const 1)))
          (br_if $tail (local.get $n)))
        (return))
      (br_if $bytes (i32.lt_u (local.get $n) (i32.const 4)))
      (local.set $end (i32.sub (local.get $d) (i32.and (local.get $n) (i32.const -4))))
      (loop $word
        (local.set $d (i32.sub (local.get $d) (i32.const 4)))
        (local.set $s (i32.sub (local.get $s) (i32.const 4)))
        (i32.store (local.get $d) (i32.load (local.get $s)))
        (br_if $word (i32.ne (local.get $d) (local.get $end))))
      (local.set $n (i32.and (local.get $n) (i32.const 3))))
    (if (i32.eqz (local.get $n)) (then (return)))
    (local.set $end (i32.sub (local.get $d) (local.get $n)))
    (loop $byte
      (local.set $d (i32.sub (local.get $d) (i32.const 1)))
      (local.set $s (i32.sub (local.get $s) (i32.const 1)))
      (i32.store8 (local.get $d) (i32.load8_u (local.get $s)))
      (br_if $byte (i32.ne (local.get $d) (local.get $end)))))

  ;; Sets n bytes to the low byte of c.
  (func (export "rt_memory_fill") (param $d i32) (param $c i32) (param $n i32)
    (local $end i32) (local $last i32)
    (call $check (local.get $d) (local.get $n))
    (if (i32.eqz (local.get $n)) (then (return)))
    (local.set $c (i32.mul (i32.and (local.get $c) (i32.const 0xFF)) (i32.const 0x01010101)))
    (local.set $end (i32.add (local.get $d) (local.get $n)))
    (block $aligned
      (loop $head
        (br_if $aligned (i32.eqz (i32.and (local.get $d) (i32.const 3))))
        (i32.store8 (local.get $d) (local.get $c))
        (local.set $d (i32.add (local.get $d) (i32.const 1)))
        (br_if $head (i32.ne (local.get $d) (local.get $end))))
      (return))
    (local.set $last (i32.and (local.get $end) (i32.const -4)))
    (block $words
      (br_if $words (i32.eq (local.get $d) (local.get $last)))
      (loop $word
        (i32.store (local.get $d) (local.get $c))
        (local.set $d (i32.add (local.get $d) (i32.const 4)))
        (br_if $word (i32.ne (local.get $d) (local.get $last)))))
    (if (i32.eq (local.get $d) (local.get $end)) (then (return)))
    (loop $byte
      (i32.store8 (local.get $d) (local.get $c))
      (local.set $d (i32.add (local.get $d) (i32.const 1)))
      (br_if $byte (i32.ne (local.get $d) (local.get $end)))))

  ;; Copies n bytes from place s of a segment of `length` bytes at `segment`.
  (func (export "rt_memory_init")
    (param $d i32) (param $s i32) (param $n i32) (param $segment i32) (param $length i32)
    (local $end i32)
    (if (i32.or
          (i32.gt_u (local.get $n) (local.get $length))
          (i32.gt_u (local.get $s) (i32.sub (local.get $length) (local.get $n))))
      (then (call $trap_memory)))
    (call $check (local.get $d) (local.get $n))
    (if (i32.eqz (local.get $n)) (then (return)))
    (local.set $s (i32.add (local.get $s) (local.get $segment)))
    (local.set $end (i32.add (local.get $d) (local.get $n)))
    (if (i32.eqz (i32.and
          (i32.or (i32.or (local.get $d) (local.get $s)) (local.get $n))
          (i32.const 3)))
      (then
        (loop $word
          (i32.store (local.get $d) (i32.load $system (local.get $s)))
          (local.set $s (i32.add (local.get $s) (i32.const 4)))
          (local.set $d (i32.add (local.get $d) (i32.const 4)))
          (br_if $word (i32.ne (local.get $d) (local.get $end))))
        (return)))
    (loop $byte
      (i32.store8 (local.get $d) (i32.load8_u $system (local.get $s)))
      (local.set $s (i32.add (local.get $s) (i32.const 1)))
      (local.set $d (i32.add (local.get $d) (i32.const 1)))
      (br_if $byte (i32.ne (local.get $d) (local.get $end)))))

  ;; ----------------------------------------------------------------- table

  ;; Copies n entries within the table of `size` entries at `table`.
  (func (export "rt_table_copy")
    (param $d i32) (param $s i32) (param $n i32) (param $table i32) (param $size i32)
    (local $step i32)
    (if (i32.or
          (i32.gt_u (local.get $n) (local.get $size))
          (i32.or
            (i32.gt_u (local.get $d) (i32.sub (local.get $size) (local.get $n)))
            (i32.gt_u (local.get $s) (i32.sub (local.get $size) (local.get $n)))))
      (then (call $trap_table)))
    (local.set $step (i32.const 8))
    (if (i32.lt_u (i32.sub (local.get $d) (local.get $s)) (local.get $n))
      (then
        (local.set $step (i32.const -8))
        (local.set $d (i32.sub (i32.add (local.get $d) (local.get $n)) (i32.const 1)))
        (local.set $s (i32.sub (i32.add (local.get $s) (local.get $n)) (i32.const 1)))))
    (call $entries
      (i32.add (local.get $table) (i32.shl (local.get $d) (i32.const 3)))
      (i32.add (local.get $table) (i32.shl (local.get $s) (i32.const 3)))
      (local.get $n)
      (local.get $step)))

  ;; Copies n entries from place s of a segment of `length` entries.
  (func (export "rt_table_init")
    (param $d i32) (param $s i32) (param $n i32) (param $table i32) (param $size i32)
    (param $segment i32) (param $length i32)
    (if (i32.or
          (i32.or
            (i32.gt_u (local.get $n) (local.get $length))
            (i32.gt_u (local.get $s) (i32.sub (local.get $length) (local.get $n))))
          (i32.or
            (i32.gt_u (local.get $n) (local.get $size))
            (i32.gt_u (local.get $d) (i32.sub (local.get $size) (local.get $n)))))
      (then (call $trap_table)))
    (call $entries
      (i32.add (local.get $table) (i32.shl (local.get $d) (i32.const 3)))
      (i32.add (local.get $segment) (i32.shl (local.get $s) (i32.const 3)))
      (local.get $n)
      (i32.const 8)))

  ;; Copies n entries of 8 bytes, going up or down by `step`.
  (func $entries (param $d i32) (param $s i32) (param $n i32) (param $step i32)
    (if (i32.eqz (local.get $n)) (then (return)))
    (loop $entry
      (i32.store $system (local.get $d) (i32.load $system (local.get $s)))
      (i32.store $system offset=4 (local.get $d) (i32.load $system offset=4 (local.get $s)))
      (local.set $d (i32.add (local.get $d) (local.get $step)))
      (local.set $s (i32.add (local.get $s) (local.get $step)))
      (br_if $entry (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))

  ;; -------------------------------------------------------------- division

  ;; The 64-bit number hi:lo divided by d, where hi < d, so that the quotient
  ;; has 32 bits: schoolbook division with two digits of 16 bits (Knuth, The
  ;; Art of Computer Programming, volume 2, 4.3.1, algorithm D).
  (func $digits (param $hi i32) (param $lo i32) (param $d i32) (result i32)
    (local $s i32) (local $d1 i32) (local $d0 i32) (local $q1 i32) (local $q0 i32) (local $r i32)
    ;; Make the divisor's top bit one; the quotient stays.
    (local.set $s (i32.clz (local.get $d)))
    (local.set $d (i32.shl (local.get $d) (local.get $s)))
    (if (local.get $s)
      (then
        (local.set $hi (i32.or
          (i32.shl (local.get $hi) (local.get $s))
          (i32.shr_u (local.get $lo) (i32.sub (i32.const 32) (local.get $s)))))
        (local.set $lo (i32.shl (local.get $lo) (local.get $s)))))
    (local.set $d1 (i32.shr_u (local.get $d) (i32.const 16)))
    (local.set $d0 (i32.and (local.get $d) (i32.const 0xFFFF)))
    ;; First digit: estimate, then correct it at most twice.
    (local.set $q1 (i32.div_u (local.get $hi) (local.get $d1)))
    (local.set $r (i32.sub (local.get $hi) (i32.mul (local.get $q1) (local.get $d1))))
    (block $done
      (loop $again
        (br_if $done (i32.and
          (i32.lt_u (local.get $q1) (i32.const 0x10000))
          (i32.le_u
            (i32.mul (local.get $q1) (local.get $d0))
            (i32.or
              (i32.shl (local.get $r) (i32.const 16))
              (i32.shr_u (local.get $lo) (i32.const 16))))))
        (local.set $q1 (i32.sub (local.get $q1) (i32.const 1)))
        (local.set $r (i32.add (local.get $r) (local.get $d1)))
        (br_if $again (i32.lt_u (local.get $r) (i32.const 0x10000)))))
    (local.set $hi (i32.sub
      (i32.or
        (i32.shl (local.get $hi) (i32.const 16))
        (i32.shr_u (local.get $lo) (i32.const 16)))
      (i32.mul (local.get $q1) (local.get $d))))
    ;; Second digit, likewise.
    (local.set $q0 (i32.div_u (local.get $hi) (local.get $d1)))
    (local.set $r (i32.sub (local.get $hi) (i32.mul (local.get $q0) (local.get $d1))))
    (block $done
      (loop $again
        (br_if $done (i32.and
          (i32.lt_u (local.get $q0) (i32.const 0x10000))
          (i32.le_u
            (i32.mul (local.get $q0) (local.get $d0))
            (i32.or
              (i32.shl (local.get $r) (i32.const 16))
              (i32.and (local.get $lo) (i32.const 0xFFFF))))))
        (local.set $q0 (i32.sub (local.get $q0) (i32.const 1)))
        (local.set $r (i32.add (local.get $r) (local.get $d1)))
        (br_if $again (i32.lt_u (local.get $r) (i32.const 0x10000)))))
    (i32.add (i32.shl (local.get $q1) (i32.const 16)) (local.get $q0)))

  ;; The quotient of n by d, which is not zero.
  (func $quotient (param $n i64) (param $d i64) (result i64)
    (local $nh i32) (local $nl i32) (local $dh i32) (local $dl i32) (local $q i32) (local $s i32)
    (local.set $nh (i32.wrap_i64 (i64.shr_u (local.get $n) (i64.const 32))))
    (local.set $nl (i32.wrap_i64 (local.get $n)))
    (local.set $dh (i32.wrap_i64 (i64.shr_u (local.get $d) (i64.const 32))))
    (local.set $dl (i32.wrap_i64 (local.get $d)))
    (if (i32.eqz (local.get $dh))
      (then
        (if (i32.eqz (local.get $nh))
          (then (return (i64.extend_i32_u (i32.div_u (local.get $nl) (local.get $dl))))))
        ;; A divisor of 32 bits: two divisions, the remainder carried down.
        (local.set $q (i32.div_u (local.get $nh) (local.get $dl)))
        (return (i64.or
          (i64.shl (i64.extend_i32_u (local.get $q)) (i64.const 32))
          (i64.extend_i32_u (call $digits
            (i32.sub (local.get $nh) (i32.mul (local.get $q) (local.get $dl)))
            (local.get $nl)
            (local.get $dl)))))))
    (if (i64.lt_u (local.get $n) (local.get $d)) (then (return (i64.const 0))))
    ;; The quotient has 32 bits. Divide half of n by the 32 leading bits of d:
    ;; after the shift back the result is right or one too large, so take one
    ;; off and look whether that was one too many.
    (local.set $s (i32.clz (local.get $dh)))
    (local.set $q (call $digits
      (i32.shr_u (local.get $nh) (i32.const 1))
      (i32.wrap_i64 (i64.shr_u (local.get $n) (i64.const 1)))
      (i32.wrap_i64 (i64.shr_u
        (i64.shl (local.get $d) (i64.extend_i32_u (local.get $s)))
        (i64.const 32)))))
    (local.set $q (i32.shr_u (local.get $q) (i32.sub (i32.const 31) (local.get $s))))
    (if (local.get $q) (then (local.set $q (i32.sub (local.get $q) (i32.const 1)))))
    (local.set $n (i64.sub
      (local.get $n)
      (i64.mul (i64.extend_i32_u (local.get $q)) (local.get $d))))
    (i64.extend_i32_u
      (i32.add (local.get $q) (i64.ge_u (local.get $n) (local.get $d)))))

  (func (export "rt_div_u64") (param $n i64) (param $d i64) (result i64)
    (if (i64.eqz (local.get $d)) (then (call $trap_zero)))
    (call $quotient (local.get $n) (local.get $d)))

  (func (export "rt_rem_u64") (param $n i64) (param $d i64) (result i64)
    (if (i64.eqz (local.get $d)) (then (call $trap_zero)))
    (i64.sub
      (local.get $n)
      (i64.mul (call $quotient (local.get $n) (local.get $d)) (local.get $d))))

  ;; x when sign is 0, -x when sign is -1.
  (func $negate_if (param $x i64) (param $sign i64) (result i64)
    (i64.sub (i64.xor (local.get $x) (local.get $sign)) (local.get $sign)))

  (func (export "rt_div_s64") (param $n i64) (param $d i64) (result i64)
    (local $ns i64) (local $ds i64)
    (if (i64.eqz (local.get $d)) (then (call $trap_zero)))
    (if (i32.and
          (i64.eq (local.get $d) (i64.const -1))
          (i64.eq (local.get $n) (i64.const 0x8000000000000000)))
      (then (call $trap_overflow)))
    (local.set $ns (i64.shr_s (local.get $n) (i64.const 63)))
    (local.set $ds (i64.shr_s (local.get $d) (i64.const 63)))
    (call $negate_if
      (call $quotient
        (call $negate_if (local.get $n) (local.get $ns))
        (call $negate_if (local.get $d) (local.get $ds)))
      (i64.xor (local.get $ns) (local.get $ds))))

  ;; The remainder has the sign of n.
  (func (export "rt_rem_s64") (param $n i64) (param $d i64) (result i64)
    (local $ns i64)
    (if (i64.eqz (local.get $d)) (then (call $trap_zero)))
    (local.set $ns (i64.shr_s (local.get $n) (i64.const 63)))
    (local.set $n (call $negate_if (local.get $n) (local.get $ns)))
    (local.set $d (call $negate_if
      (local.get $d)
      (i64.shr_s (local.get $d) (i64.const 63))))
    (call $negate_if
      (i64.sub
        (local.get $n)
        (i64.mul (call $quotient (local.get $n) (local.get $d)) (local.get $d)))
      (local.get $ns)))

  ;; -------------------------------------------------------- 32-bit division

  ;; Quotient and remainder by shifting and subtracting. Only as many bits of the
  ;; quotient are worked out as it can have. Two in a turn, since there is more
  ;; time between two branches than one bit takes; where their number is odd, one
  ;; in front. d is not 0.
  (func $divide (param $n i32) (param $d i32) (result i32 i32)
    (local $q i32) (local $bit i32) (local $turns i32)
    (if (i32.lt_u (local.get $n) (local.get $d))
      (then (return (i32.const 0) (local.get $n))))
    (local.set $turns (i32.sub (i32.clz (local.get $d)) (i32.clz (local.get $n))))
    ;; The same top bit as n's: one place higher d would be larger than n.
    (local.set $d (i32.shl (local.get $d) (local.get $turns)))
    (if (i32.eqz (i32.and (local.get $turns) (i32.const 1)))
      (then
        (local.set $q (i32.ge_u (local.get $n) (local.get $d)))
        (local.set $n (select
          (i32.sub (local.get $n) (local.get $d))
          (local.get $n)
          (local.get $q)))
        (local.set $d (i32.shr_u (local.get $d) (i32.const 1)))))
    (local.set $turns (i32.shr_u (i32.add (local.get $turns) (i32.const 1)) (i32.const 1)))
    (if (local.get $turns)
      (then
        (loop $turn
          (local.set $bit (i32.ge_u (local.get $n) (local.get $d)))
          (local.set $n (select
            (i32.sub (local.get $n) (local.get $d))
            (local.get $n)
            (local.get $bit)))
          (local.set $q (i32.or (i32.shl (local.get $q) (i32.const 1)) (local.get $bit)))
          (local.set $d (i32.shr_u (local.get $d) (i32.const 1)))
          (local.set $bit (i32.ge_u (local.get $n) (local.get $d)))
          (local.set $n (select
            (i32.sub (local.get $n) (local.get $d))
            (local.get $n)
            (local.get $bit)))
          (local.set $q (i32.or (i32.shl (local.get $q) (i32.const 1)) (local.get $bit)))
          (local.set $d (i32.shr_u (local.get $d) (i32.const 1)))
          (br_if $turn (local.tee $turns (i32.sub (local.get $turns) (i32.const 1)))))))
    (local.get $q)
    (local.get $n))

  (func (export "rt_div_u32") (param $n i32) (param $d i32) (result i32)
    (if (i32.eqz (local.get $d)) (then (call $trap_zero)))
    (call $divide (local.get $n) (local.get $d))
    (drop))

  (func (export "rt_rem_u32") (param $n i32) (param $d i32) (result i32)
    (local $r i32)
    (if (i32.eqz (local.get $d)) (then (call $trap_zero)))
    (call $divide (local.get $n) (local.get $d))
    (local.set $r)
    (drop)
    (local.get $r))

  ;; x when sign is 0, -x when sign is -1.
  (func $negate_if_32 (param $x i32) (param $sign i32) (result i32)
    (i32.sub (i32.xor (local.get $x) (local.get $sign)) (local.get $sign)))

  (func (export "rt_div_s32") (param $n i32) (param $d i32) (result i32)
    (local $ns i32) (local $ds i32)
    (if (i32.eqz (local.get $d)) (then (call $trap_zero)))
    (if (i32.and
          (i32.eq (local.get $d) (i32.const -1))
          (i32.eq (local.get $n) (i32.const 0x80000000)))
      (then (call $trap_overflow)))
    (local.set $ns (i32.shr_s (local.get $n) (i32.const 31)))
    (local.set $ds (i32.shr_s (local.get $d) (i32.const 31)))
    (call $divide
      (call $negate_if_32 (local.get $n) (local.get $ns))
      (call $negate_if_32 (local.get $d) (local.get $ds)))
    (drop)
    (call $negate_if_32 (i32.xor (local.get $ns) (local.get $ds))))

  ;; The remainder has the sign of n.
  (func (export "rt_rem_s32") (param $n i32) (param $d i32) (result i32)
    (local $ns i32) (local $r i32)
    (if (i32.eqz (local.get $d)) (then (call $trap_zero)))
    (local.set $ns (i32.shr_s (local.get $n) (i32.const 31)))
    (call $divide
      (call $negate_if_32 (local.get $n) (local.get $ns))
      (call $negate_if_32 (local.get $d) (i32.shr_s (local.get $d) (i32.const 31))))
    (local.set $r)
    (drop)
    (call $negate_if_32 (local.get $r) (local.get $ns))))
