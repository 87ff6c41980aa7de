/*
 * Poly1305 (D. J. Bernstein, 2005; RFC 8439): a polynomial in r modulo 2^130 - 5.
 *
 * The number h has five limbs of 26 bits, so that sums of five products of 32 bits fit into 64.
 */
#ifndef POLY1305_H
#define POLY1305_H

#include "../ciphermill.h"

#define POLY1305_BLOCK 16
#define LIMB 0x3ffffff

struct poly1305 {
    uint32_t r[5], h[5];
    uint32_t s[4]; /* added to the polynomial at last */
};

CM_INLINE void poly1305_key(struct poly1305 *p, const uint8_t *key)
{
    uint32_t i;

    p->r[0] = cm_load32_le(key) & 0x3ffffff;
    p->r[1] = cm_load32_le(key + 3) >> 2 & 0x3ffff03;
    p->r[2] = cm_load32_le(key + 6) >> 4 & 0x3ffc0ff;
    p->r[3] = cm_load32_le(key + 9) >> 6 & 0x3f03fff;
    p->r[4] = cm_load32_le(key + 12) >> 8 & 0x00fffff;
    for (i = 0; i < 4; i++)
        p->s[i] = cm_load32_le(key + 16 + 4 * i);
}

CM_INLINE void poly1305_init(struct poly1305 *p)
{
    uint32_t i;

    for (i = 0; i < 5; i++)
        p->h[i] = 0;
}

/* h = (h + block) r. `high` is the bit behind the block, in the highest limb. */
CM_INLINE void poly1305_blocks(struct poly1305 *p, const uint8_t *in, uint32_t blocks,
                               uint32_t high)
{
    uint32_t r0 = p->r[0], r1 = p->r[1], r2 = p->r[2], r3 = p->r[3], r4 = p->r[4];
    uint32_t s1 = 5 * r1, s2 = 5 * r2, s3 = 5 * r3, s4 = 5 * r4;
    uint32_t h0 = p->h[0], h1 = p->h[1], h2 = p->h[2], h3 = p->h[3], h4 = p->h[4];

    for (; blocks != 0; blocks--, in += POLY1305_BLOCK) {
        uint64_t d0, d1, d2, d3, d4;

        h0 += cm_load32_le(in) & LIMB;
        h1 += cm_load32_le(in + 3) >> 2 & LIMB;
        h2 += cm_load32_le(in + 6) >> 4 & LIMB;
        h3 += cm_load32_le(in + 9) >> 6 & LIMB;
        h4 += cm_load32_le(in + 12) >> 8 | high;
#define M(a, b) ((uint64_t)(a) * (b))
        d0 = M(h0, r0) + M(h1, s4) + M(h2, s3) + M(h3, s2) + M(h4, s1);
        d1 = M(h0, r1) + M(h1, r0) + M(h2, s4) + M(h3, s3) + M(h4, s2);
        d2 = M(h0, r2) + M(h1, r1) + M(h2, r0) + M(h3, s4) + M(h4, s3);
        d3 = M(h0, r3) + M(h1, r2) + M(h2, r1) + M(h3, r0) + M(h4, s4);
        d4 = M(h0, r4) + M(h1, r3) + M(h2, r2) + M(h3, r1) + M(h4, r0);
#undef M
        d1 += (uint32_t)(d0 >> 26);
        d2 += (uint32_t)(d1 >> 26);
        d3 += (uint32_t)(d2 >> 26);
        d4 += (uint32_t)(d3 >> 26);
        h0 = ((uint32_t)d0 & LIMB) + 5 * (uint32_t)(d4 >> 26);
        h1 = ((uint32_t)d1 & LIMB) + (h0 >> 26);
        h0 &= LIMB;
        h2 = (uint32_t)d2 & LIMB;
        h3 = (uint32_t)d3 & LIMB;
        h4 = (uint32_t)d4 & LIMB;
    }
    p->h[0] = h0;
    p->h[1] = h1;
    p->h[2] = h2;
    p->h[3] = h3;
    p->h[4] = h4;
}

/* A whole message's blocks of the usual kind. */
#define POLY1305_HIGH (1u << 24)

CM_INLINE void poly1305_tag(struct poly1305 *p, uint8_t *out)
{
    uint32_t g[5], i, carry, mask;
    uint64_t sum = 0;

    for (i = 1, carry = p->h[0] >> 26, p->h[0] &= LIMB; i < 5; i++) {
        p->h[i] += carry;
        carry = p->h[i] >> 26;
        p->h[i] &= LIMB;
    }
    p->h[0] += 5 * carry;
    p->h[1] += p->h[0] >> 26;
    p->h[0] &= LIMB;
    /* h, or h - p if that is not negative. */
    for (i = 0, carry = 5; i < 5; i++) {
        g[i] = p->h[i] + carry;
        carry = g[i] >> 26;
        g[i] &= LIMB;
    }
    mask = 0 - carry;
    for (i = 0; i < 5; i++)
        g[i] = (g[i] & mask) | (p->h[i] & ~mask);
    g[0] |= g[1] << 26;
    g[1] = g[1] >> 6 | g[2] << 20;
    g[2] = g[2] >> 12 | g[3] << 14;
    g[3] = g[3] >> 18 | g[4] << 8;
    for (i = 0; i < 4; i++) {
        sum += (uint64_t)g[i] + p->s[i];
        cm_store32_le(out + 4 * i, (uint32_t)sum);
        sum >>= 32;
    }
}

#endif
