/*
 * Camellia (RFC 3713) but for the S-boxes and the P-function, which each variant brings as
 *
 *     static void f(uint32_t *to, const uint32_t *from, const uint32_t *key);
 *
 * F of the two words `from` under the two words `key`, XORed to the two words `to`. A
 * Feistel network of 18 rounds (24 for keys longer than 16 bytes) on two halves of two
 * big-endian words, with FL and its inverse after every six.
 */
#ifndef CAMELLIA_H
#define CAMELLIA_H

#include "../ciphermill.h"

struct cm_ctx {
    uint32_t subkey[2 * 34]; /* in the order of use: kw, six k, two ke, six k, ... , kw */
    uint32_t sixes;          /* groups of six rounds: 3 or 4 */
};

static void f(uint32_t *to, const uint32_t *from, const uint32_t *key);

/* Where a subkey comes from: one of four 128-bit values, rotated left. */
enum { KL, KR, KA, KB };
struct origin {
    uint8_t value, rotation;
};

/* Even places take the upper half of the rotated value, odd places the lower one. */
static const struct origin short_key[26] = {
    {KL, 0},  {KL, 0},                                                         /* kw1, kw2 */
    {KA, 0},  {KA, 0},  {KL, 15}, {KL, 15}, {KA, 15},  {KA, 15},               /* k1..k6 */
    {KA, 30}, {KA, 30},                                                        /* ke1, ke2 */
    {KL, 45}, {KL, 45}, {KA, 45}, {KL, 60}, {KA, 60},  {KA, 60},               /* k7..k12 */
    {KL, 77}, {KL, 77},                                                        /* ke3, ke4 */
    {KL, 94}, {KL, 94}, {KA, 94}, {KA, 94}, {KL, 111}, {KL, 111},              /* k13..k18 */
    {KA, 111}, {KA, 111},                                                      /* kw3, kw4 */
};
static const struct origin long_key[34] = {
    {KL, 0},  {KL, 0},                                                         /* kw1, kw2 */
    {KB, 0},  {KB, 0},  {KR, 15}, {KR, 15}, {KA, 15},  {KA, 15},               /* k1..k6 */
    {KR, 30}, {KR, 30},                                                        /* ke1, ke2 */
    {KB, 30}, {KB, 30}, {KL, 45}, {KL, 45}, {KA, 45},  {KA, 45},               /* k7..k12 */
    {KL, 60}, {KL, 60},                                                        /* ke3, ke4 */
    {KR, 60}, {KR, 60}, {KB, 60}, {KB, 60}, {KL, 77},  {KL, 77},               /* k13..k18 */
    {KA, 77}, {KA, 77},                                                        /* ke5, ke6 */
    {KR, 94}, {KR, 94}, {KA, 94}, {KA, 94}, {KL, 111}, {KL, 111},              /* k19..k24 */
    {KB, 111}, {KB, 111},                                                      /* kw3, kw4 */
};

/* Word n of a 128-bit value rotated left. */
CM_INLINE uint32_t rotated(const uint32_t *x, uint32_t n, uint32_t rotation)
{
    uint32_t first = n + rotation / 32, shift = rotation & 31;

    return x[first & 3] << shift | x[(first + 1) & 3] >> 1 >> (31 - shift);
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    static const uint32_t sigma[12] = {
        0xa09e667f, 0x3bcc908b, 0xb67ae858, 0x4caa73b2, 0xc6ef372f, 0xe94f82be,
        0x54ff53a5, 0xf1d36f1c, 0x10e527fa, 0xde682d1d, 0xb05688c2, 0xb3e6c1fd,
    };
    const struct origin *from = key_bytes == 16 ? short_key : long_key;
    uint32_t v[4][4];
    uint32_t i, n;

    ctx->sixes = key_bytes == 16 ? 3 : 4;
    for (i = 0; i < 4; i++) {
        v[KL][i] = cm_load32_be(key + 4 * i);
        v[KR][i] = 4 * i + 16 < key_bytes ? cm_load32_be(key + 16 + 4 * i) : 0;
    }
    if (key_bytes == 24) {
        v[KR][2] = ~v[KR][0];
        v[KR][3] = ~v[KR][1];
    }
    for (i = 0; i < 4; i++)
        v[KA][i] = v[KL][i] ^ v[KR][i];
    f(v[KA] + 2, v[KA], sigma);
    f(v[KA], v[KA] + 2, sigma + 2);
    for (i = 0; i < 4; i++)
        v[KA][i] ^= v[KL][i];
    f(v[KA] + 2, v[KA], sigma + 4);
    f(v[KA], v[KA] + 2, sigma + 6);
    for (i = 0; i < 4; i++)
        v[KB][i] = v[KA][i] ^ v[KR][i];
    f(v[KB] + 2, v[KB], sigma + 8);
    f(v[KB], v[KB] + 2, sigma + 10);

    n = 8 * ctx->sixes + 2;
    for (i = 0; i < n; i++) {
        ctx->subkey[2 * i] = rotated(v[from[i].value], 2 * (i & 1), from[i].rotation);
        ctx->subkey[2 * i + 1] = rotated(v[from[i].value], 2 * (i & 1) + 1, from[i].rotation);
    }
}

CM_INLINE void swap_subkeys(uint32_t *k, uint32_t i, uint32_t j)
{
    uint32_t high = k[2 * i], low = k[2 * i + 1];

    k[2 * i] = k[2 * j];
    k[2 * i + 1] = k[2 * j + 1];
    k[2 * j] = high;
    k[2 * j + 1] = low;
}

/* The subkeys backwards, but the two at either end in the order they have. */
void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t i, n;

    cm_keysetup(ctx, key, key_bytes);
    n = 8 * ctx->sixes + 2;
    swap_subkeys(ctx->subkey, 0, n - 2);
    swap_subkeys(ctx->subkey, 1, n - 1);
    for (i = 2; i < n - 1 - i; i++)
        swap_subkeys(ctx->subkey, i, n - 1 - i);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->subkey;
    uint32_t a[2], b[2];
    uint32_t i;

    a[0] = cm_load32_be(in) ^ k[0];
    a[1] = cm_load32_be(in + 4) ^ k[1];
    b[0] = cm_load32_be(in + 8) ^ k[2];
    b[1] = cm_load32_be(in + 12) ^ k[3];
    k += 4;
    for (i = ctx->sixes;;) {
        f(b, a, k);
        f(a, b, k + 2);
        f(b, a, k + 4);
        f(a, b, k + 6);
        f(b, a, k + 8);
        f(a, b, k + 10);
        k += 12;
        if (--i == 0)
            break;
        a[1] ^= cm_rotl32(a[0] & k[0], 1);
        a[0] ^= a[1] | k[1];
        b[0] ^= b[1] | k[3];
        b[1] ^= cm_rotl32(b[0] & k[2], 1);
        k += 4;
    }
    cm_store32_be(out, b[0] ^ k[0]);
    cm_store32_be(out + 4, b[1] ^ k[1]);
    cm_store32_be(out + 8, a[0] ^ k[2]);
    cm_store32_be(out + 12, a[1] ^ k[3]);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    cm_encrypt(ctx, in, out);
}

#endif
