rori t0, a0, 25
rol t1, a0, a1
xor a0, t0, t1
ret
