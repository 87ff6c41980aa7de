/*
 * What the variants of Twofish share: the function h, the key schedule, and the rounds.
 *
 * h sends each byte of its argument through a chain of the permutations q0 and q1 with key
 * bytes XORed in between, and multiplies the four results by a 4 by 4 matrix over GF(2^8)
 * modulo 0x169 (an MDS code). A round uses it as g with key words derived by a Reed-Solomon
 * code; the key schedule uses it with the key itself.
 */
#ifndef TWOFISH_H
#define TWOFISH_H

#include "../ciphermill.h"
#ifdef TWOFISH_NIBBLES
#include "nibbles.h"
#else
#include "permutations.h"
#endif

/* Each byte of x divided by 2 in GF(2^8). */
CM_INLINE uint32_t half(uint32_t x)
{
    return (x >> 1 & 0x7f7f7f7f) ^ (x & 0x01010101) * 0xb4;
}

/*
 * The MDS matrix, rows 01 EF 5B 5B, 5B EF EF 01, EF 5B 01 EF, EF 01 EF 5B, row 0 in the
 * least significant byte. As 5B = 1 + 1/4 and EF = 5B + 1/2, two halvings of all four bytes
 * at once give every product that is needed.
 */
CM_INLINE uint32_t mds(uint32_t x)
{
    uint32_t h = half(x);
    uint32_t m5b = x ^ half(h);
    uint32_t mef = m5b ^ h;
    uint32_t z0 = x ^ mef >> 8 ^ m5b >> 16 ^ m5b >> 24;
    uint32_t z1 = m5b ^ mef >> 8 ^ mef >> 16 ^ x >> 24;
    uint32_t z2 = mef ^ m5b >> 8 ^ x >> 16 ^ mef >> 24;
    uint32_t z3 = mef ^ x >> 8 ^ mef >> 16 ^ m5b >> 24;

    return (z0 & 0xff) | (z1 & 0xff) << 8 | (z2 & 0xff) << 16 | z3 << 24;
}

/* The four chains of h; the key words are l[0], l[step], ... , `words` of them. */
CM_INLINE uint32_t chains(uint32_t x, const uint32_t *l, uint32_t step, uint32_t words)
{
    uint32_t a = cm_byte(x, 0), b = cm_byte(x, 1), c = cm_byte(x, 2), d = cm_byte(x, 3);
    uint32_t k;

    if (words == 4) {
        k = l[3 * step];
        a = q1(a) ^ cm_byte(k, 0);
        b = q0(b) ^ cm_byte(k, 1);
        c = q0(c) ^ cm_byte(k, 2);
        d = q1(d) ^ cm_byte(k, 3);
    }
    if (words >= 3) {
        k = l[2 * step];
        a = q1(a) ^ cm_byte(k, 0);
        b = q1(b) ^ cm_byte(k, 1);
        c = q0(c) ^ cm_byte(k, 2);
        d = q0(d) ^ cm_byte(k, 3);
    }
    k = l[step];
    a = q0(a) ^ cm_byte(k, 0);
    b = q1(b) ^ cm_byte(k, 1);
    c = q0(c) ^ cm_byte(k, 2);
    d = q1(d) ^ cm_byte(k, 3);
    k = l[0];
    a = q1(q0(a) ^ cm_byte(k, 0));
    b = q0(q0(b) ^ cm_byte(k, 1));
    c = q1(q1(c) ^ cm_byte(k, 2));
    d = q0(q1(d) ^ cm_byte(k, 3));
    return a | b << 8 | c << 16 | d << 24;
}

/*
 * Eight key bytes to one word by the Reed-Solomon code over GF(2^8) modulo 0x14d: the
 * remainder of the key as a polynomial divided by
 * x^4 + (a + 1/a) x^3 + a x^2 + (a + 1/a) x + 1.
 */
CM_INLINE uint32_t reed_solomon(uint32_t low, uint32_t high)
{
    uint32_t r = high;
    uint32_t i, top, by_a, by_both;

    for (i = 0; i < 8; i++) {
        if (i == 4)
            r ^= low;
        top = r >> 24;
        by_a = top << 1 ^ (top >> 7) * 0x14d;
        by_both = by_a ^ top >> 1 ^ (top & 1) * 0xa6;
        r = r << 8 ^ by_both << 24 ^ by_a << 16 ^ by_both << 8 ^ top;
    }
    return r;
}

/*
 * The 40 subkeys into k, and into s, which has room for four, the words that key g, in the
 * order in which h takes them. Returns how many of those there are.
 */
static uint32_t expand_key(uint32_t *k, uint32_t *s, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t m[8];
    uint32_t words = key_bytes / 8;
    uint32_t i, a, b;

    for (i = 0; i < 2 * words; i++)
        m[i] = cm_load32_le(key + 4 * i);
    for (i = 0; i < words; i++)
        s[words - 1 - i] = reed_solomon(m[2 * i], m[2 * i + 1]);
    for (i = 0; i < 40; i += 2) {
        a = mds(chains(i * 0x01010101, m, 2, words));
        b = cm_rotl32(mds(chains((i + 1) * 0x01010101, m + 1, 2, words)), 8);
        k[i] = a + b;
        k[i + 1] = cm_rotl32(a + 2 * b, 9);
    }
    return words;
}

/*
 * Both directions, from a variant's g(ctx, x) and g_rotated(ctx, x), which is g of x rotated
 * left by 8 bits. Two rounds a turn, so that no words change places.
 */
#define TWOFISH_ROUNDS                                                                     \
    CM_INLINE void forward(const struct cm_ctx *ctx, const uint32_t *k, uint32_t a,        \
                           uint32_t b, uint32_t *c, uint32_t *d)                           \
    {                                                                                      \
        uint32_t t = g(ctx, a), u = g_rotated(ctx, b);                                     \
                                                                                           \
        *c = cm_rotr32(*c ^ (t + u + k[0]), 1);                                            \
        *d = cm_rotl32(*d, 1) ^ (t + 2 * u + k[1]);                                        \
    }                                                                                      \
    CM_INLINE void backward(const struct cm_ctx *ctx, const uint32_t *k, uint32_t a,       \
                            uint32_t b, uint32_t *c, uint32_t *d)                          \
    {                                                                                      \
        uint32_t t = g(ctx, a), u = g_rotated(ctx, b);                                     \
                                                                                           \
        *c = cm_rotl32(*c, 1) ^ (t + u + k[0]);                                            \
        *d = cm_rotr32(*d ^ (t + 2 * u + k[1]), 1);                                        \
    }                                                                                      \
    void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)             \
    {                                                                                      \
        const uint32_t *k = ctx->subkey;                                                   \
        uint32_t a = cm_load32_le(in) ^ k[0];                                              \
        uint32_t b = cm_load32_le(in + 4) ^ k[1];                                          \
        uint32_t c = cm_load32_le(in + 8) ^ k[2];                                          \
        uint32_t d = cm_load32_le(in + 12) ^ k[3];                                         \
        uint32_t i;                                                                        \
                                                                                           \
        for (i = 8; i < 40; i += 4) {                                                      \
            forward(ctx, k + i, a, b, &c, &d);                                             \
            forward(ctx, k + i + 2, c, d, &a, &b);                                         \
        }                                                                                  \
        cm_store32_le(out, c ^ k[4]);                                                      \
        cm_store32_le(out + 4, d ^ k[5]);                                                  \
        cm_store32_le(out + 8, a ^ k[6]);                                                  \
        cm_store32_le(out + 12, b ^ k[7]);                                                 \
    }                                                                                      \
    void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)             \
    {                                                                                      \
        const uint32_t *k = ctx->subkey;                                                   \
        uint32_t c = cm_load32_le(in) ^ k[4];                                              \
        uint32_t d = cm_load32_le(in + 4) ^ k[5];                                          \
        uint32_t a = cm_load32_le(in + 8) ^ k[6];                                          \
        uint32_t b = cm_load32_le(in + 12) ^ k[7];                                         \
        uint32_t i;                                                                        \
                                                                                           \
        for (i = 40; i > 8; i -= 4) {                                                      \
            backward(ctx, k + i - 2, c, d, &a, &b);                                        \
            backward(ctx, k + i - 4, a, b, &c, &d);                                        \
        }                                                                                  \
        cm_store32_le(out, a ^ k[0]);                                                      \
        cm_store32_le(out + 4, b ^ k[1]);                                                  \
        cm_store32_le(out + 8, c ^ k[2]);                                                  \
        cm_store32_le(out + 12, d ^ k[3]);                                                 \
    }

#endif
