sltu t0, a0, a1
sub t0, zero, t0
andi a0, t0, 16
ret
