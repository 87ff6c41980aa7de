/*
 * Keccak-f[1600] (FIPS 202): 24 rounds on 25 words of 64 bits, word x + 5 y.
 */
#ifndef KECCAK_H
#define KECCAK_H

#include "../ciphermill.h"

#define LANES 25

static const uint64_t keccak_constants[24] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a,
    0x8000000080008000, 0x000000000000808b, 0x0000000080000001,
    0x8000000080008081, 0x8000000000008009, 0x000000000000008a,
    0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
    0x000000008000808b, 0x800000000000008b, 0x8000000000008089,
    0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
    0x000000000000800a, 0x800000008000000a, 0x8000000080008081,
    0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
};

/* Theta: each word takes the parities of two columns. */
#define PARITY(x) c[x] = a[x] ^ a[(x) + 5] ^ a[(x) + 10] ^ a[(x) + 15] ^ a[(x) + 20];
#define SPREAD(x)                                                                          \
    d = c[((x) + 4) % 5] ^ cm_rotl64(c[((x) + 1) % 5], 1);                                 \
    a[x] ^= d;                                                                             \
    a[(x) + 5] ^= d;                                                                       \
    a[(x) + 10] ^= d;                                                                      \
    a[(x) + 15] ^= d;                                                                      \
    a[(x) + 20] ^= d;
/* Rho and pi: each word is rotated and goes to another place. */
#define MOVE(from, to, by) b[to] = cm_rotl64(a[from], by);
/* Chi: the only step that is not linear, a row at a time. */
#define CHI(y, x) a[(y) + (x)] = b[(y) + (x)] ^ (~b[(y) + ((x) + 1) % 5] & b[(y) + ((x) + 2) % 5]);
#define FIVE(step) step(0) step(1) step(2) step(3) step(4)
#define ROW(y) CHI(5 * (y), 0) CHI(5 * (y), 1) CHI(5 * (y), 2) CHI(5 * (y), 3) CHI(5 * (y), 4)

CM_INLINE void keccak_f(uint64_t *a)
{
    uint64_t b[LANES], c[5], d;
    uint32_t round;

    for (round = 0; round < 24; round++) {
        FIVE(PARITY)
        FIVE(SPREAD)
        MOVE(0, 0, 0) MOVE(1, 10, 1) MOVE(2, 20, 62)
        MOVE(3, 5, 28) MOVE(4, 15, 27) MOVE(5, 16, 36)
        MOVE(6, 1, 44) MOVE(7, 11, 6) MOVE(8, 21, 55)
        MOVE(9, 6, 20) MOVE(10, 7, 3) MOVE(11, 17, 10)
        MOVE(12, 2, 43) MOVE(13, 12, 25) MOVE(14, 22, 39)
        MOVE(15, 23, 41) MOVE(16, 8, 45) MOVE(17, 18, 15)
        MOVE(18, 3, 21) MOVE(19, 13, 8) MOVE(20, 14, 18)
        MOVE(21, 24, 2) MOVE(22, 9, 61) MOVE(23, 19, 56)
        MOVE(24, 4, 14)
        FIVE(ROW)
        a[0] ^= keccak_constants[round];
    }
}

#define CM_LANES(step)                                                                     \
    CM_SIXTEEN(step)                                                                       \
    step(16) step(17) step(18) step(19) step(20) step(21) step(22) step(23) step(24)

#endif
