/*
 * GHASH (NIST SP 800-38D): a polynomial in H over GF(2^128).
 *
 * The standard numbers bits from the left, so bytes are read most significant first and x to the
 * power of 0 is the highest bit; a product by x shifts right, and what falls out comes back as
 * 0xe1 at the top. GHASH_TABLE takes four bits a step from a table of the sixteen multiples of H
 * (V. Shoup, 1996). GHASH_PRODUCTS is 32 or 64: carry-less products of words of so many bits, in
 * constant time (carryless.h). Without either a bit a step, by masks, in constant time.
 */
#ifndef GHASH_H
#define GHASH_H

#include "../ciphermill.h"
#ifdef GHASH_PRODUCTS
#include "carryless.h"
#endif

#define GHASH_BLOCK 16

struct ghash {
#ifdef GHASH_TABLE
    uint64_t high[16], low[16];
#else
    uint64_t high, low;
#endif
    uint64_t sum[2];
};

/* (high, low) times x. */
#define TIMES_X(high, low)                                                                 \
    do {                                                                                   \
        uint64_t out_ = 0 - ((low) & 1);                                                   \
        (low) = (low) >> 1 | (high) << 63;                                                 \
        (high) = (high) >> 1 ^ (out_ & 0xe100000000000000);                                \
    } while (0)

CM_INLINE void ghash_key(struct ghash *g, const uint8_t *h)
{
    uint64_t high = cm_load64_be(h), low = cm_load64_be(h + 8);
#ifdef GHASH_TABLE
    uint32_t i, j;

    g->high[0] = g->low[0] = 0;
    for (i = 8; i != 0; i >>= 1) {
        g->high[i] = high;
        g->low[i] = low;
        TIMES_X(high, low);
    }
    for (i = 2; i < 16; i <<= 1)
        for (j = 1; j < i; j++) {
            g->high[i + j] = g->high[i] ^ g->high[j];
            g->low[i + j] = g->low[i] ^ g->low[j];
        }
#else
    g->high = high;
    g->low = low;
#endif
}

CM_INLINE void ghash_init(struct ghash *g) { g->sum[0] = g->sum[1] = 0; }

#ifdef GHASH_TABLE
/* What four bits that are shifted out come back as, in the highest 16 bits. */
static const uint16_t ghash_reduced[16] = {
    0x0000, 0x1c20, 0x3840, 0x2460, 0x7080, 0x6ca0, 0x48c0, 0x54e0,
    0xe100, 0xfd20, 0xd940, 0xc560, 0x9180, 0x8da0, 0xa9c0, 0xb5e0,
};

#define GHASH_STEP(bits)                                                                   \
    rest = (uint32_t)low & 15;                                                             \
    n = (uint32_t)(bits) & 15;                                                             \
    low = (low >> 4 | high << 60) ^ g->low[n];                                             \
    high = high >> 4 ^ (uint64_t)ghash_reduced[rest] << 48 ^ g->high[n];
#endif

#ifdef GHASH_PRODUCTS
/*
 * (high, low) = (a, b) times (h, l). The product of the words as they stand has x to the power of
 * 254 - k in bit k: moved up by one, its upper half is what there is below x^128, and each word of
 * its lower half comes back as 1 + x + x^2 + x^7 times itself, 128 bits further up.
 */
CM_INLINE void ghash_times(uint64_t a, uint64_t b, uint64_t h, uint64_t l, uint64_t *high, uint64_t *low)
{
    uint64_t v0, v1, v2, v3, m0, m1;

    carryless128(b, l, &v0, &v1);
    carryless128(a, h, &v2, &v3);
    carryless128(a ^ b, h ^ l, &m0, &m1);
    m0 ^= v0 ^ v2;
    m1 ^= v1 ^ v3;
    v1 ^= m0;
    v2 ^= m1;
    v3 = v3 << 1 | v2 >> 63;
    v2 = v2 << 1 | v1 >> 63;
    v1 = v1 << 1 | v0 >> 63;
    v0 <<= 1;
    v2 ^= v0 ^ v0 >> 1 ^ v0 >> 2 ^ v0 >> 7;
    v1 ^= v0 << 63 ^ v0 << 62 ^ v0 << 57;
    v3 ^= v1 ^ v1 >> 1 ^ v1 >> 2 ^ v1 >> 7;
    v2 ^= v1 << 63 ^ v1 << 62 ^ v1 << 57;
    *high = v3;
    *low = v2;
}
#endif

/* sum = (sum + block) H, for each of the blocks. */
CM_INLINE void ghash_blocks(struct ghash *g, const uint8_t *in, uint32_t blocks)
{
    uint64_t a = g->sum[0], b = g->sum[1];

    for (; blocks != 0; blocks--, in += GHASH_BLOCK) {
        uint64_t high = 0, low = 0;
#if defined(GHASH_TABLE)
        uint32_t i, rest, n;
#elif !defined(GHASH_PRODUCTS)
        uint32_t i;
        uint64_t h = g->high, l = g->low, mask;
#endif

        a ^= cm_load64_be(in);
        b ^= cm_load64_be(in + 8);
#if defined(GHASH_PRODUCTS)
        ghash_times(a, b, g->high, g->low, &high, &low);
#elif defined(GHASH_TABLE)
        for (i = 0; i < 16; i++, b >>= 4) {
            GHASH_STEP(b)
        }
        for (i = 0; i < 16; i++, a >>= 4) {
            GHASH_STEP(a)
        }
#else
        for (i = 0; i < 64; i++, a <<= 1) {
            mask = 0 - (a >> 63);
            high ^= h & mask;
            low ^= l & mask;
            TIMES_X(h, l);
        }
        for (i = 0; i < 64; i++, b <<= 1) {
            mask = 0 - (b >> 63);
            high ^= h & mask;
            low ^= l & mask;
            TIMES_X(h, l);
        }
#endif
        a = high;
        b = low;
    }
    g->sum[0] = a;
    g->sum[1] = b;
}

CM_INLINE void ghash_sum(const struct ghash *g, uint8_t *out)
{
    cm_store64_be(out, g->sum[0]);
    cm_store64_be(out + 8, g->sum[1]);
}

#endif
