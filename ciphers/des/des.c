/*
 * DES and triple DES (FIPS 46-3): keys of 8 bytes, or of 16 or 24 for encryption, decryption and
 * encryption under two or three of them. Parity bits are not looked at.
 *
 * The six bits that an S-box reads overlap with its neighbours'. Rotated once to the right the
 * half block has the groups of the boxes 1, 3, 5, 7 in its four bytes, rotated left by three
 * those of 2, 4, 6, 8. Each box is a table of its outputs, moved to where the permutation P puts
 * them.
 */
#include "../ciphermill.h"
#include "tables.h"

#define BLOCK 8

struct cm_ctx {
    uint32_t key[3][32]; /* in the order of use, two words a round */
    uint32_t passes;     /* 1 or 3 */
};

/* Bit `n` of a string of bytes, 1 the first. */
static uint32_t bit(const uint8_t *in, uint32_t n)
{
    n--;
    return (uint32_t)in[n >> 3] >> (7 - (n & 7)) & 1;
}

/* One key's rounds; `backwards` for a pass that decrypts. */
static void expand(uint32_t *to, const uint8_t *key, uint32_t backwards)
{
    uint8_t both[56];
    uint32_t round, i, at = 0;

    for (round = 0; round < 16; round++) {
        uint32_t words[2] = {0, 0}, *out = to + 2 * (backwards ? 15 - round : round);

        at += round < 2 || round == 8 || round == 15 ? 1 : 2;
        for (i = 0; i < 28; i++) {
            both[i] = (uint8_t)bit(key, choice_1[(i + at) % 28]);
            both[28 + i] = (uint8_t)bit(key, choice_1[28 + (i + at) % 28]);
        }
        for (i = 0; i < 48; i++)
            words[i / 6 % 2] |= (uint32_t)both[choice_2[i] - 1] << (31 - i / 12 * 8 - i % 6);
        out[0] = words[0];
        out[1] = words[1];
    }
}

static void setup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes, uint32_t back)
{
    const uint8_t *third = key_bytes == 24 ? key + 16 : key;

    ctx->passes = key_bytes == 8 ? 1 : 3;
    expand(ctx->key[0], back ? third : key, back);
    if (key_bytes == 8)
        return;
    expand(ctx->key[1], key + 8, !back);
    expand(ctx->key[2], back ? key : third, back);
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    setup(ctx, key, key_bytes, 0);
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    setup(ctx, key, key_bytes, 1);
}

#define EXCHANGE(a, b, n, mask)                                                            \
    t = ((a) >> (n) ^ (b)) & (mask);                                                       \
    (b) ^= t;                                                                              \
    (a) ^= t << (n);

#define ROUND(a, b, k)                                                                     \
    t = cm_rotr32(b, 1) ^ (k)[0];                                                          \
    u = cm_rotl32(b, 3) ^ (k)[1];                                                          \
    (a) ^= box[0][t >> 26] ^ box[2][t >> 18 & 63] ^ box[4][t >> 10 & 63] ^                 \
           box[6][t >> 2 & 63] ^ box[1][u >> 26] ^ box[3][u >> 18 & 63] ^                  \
           box[5][u >> 10 & 63] ^ box[7][u >> 2 & 63];

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t l = cm_load32_be(in), r = cm_load32_be(in + 4), t, u, pass, round;

    EXCHANGE(l, r, 4, 0x0f0f0f0f)
    EXCHANGE(l, r, 16, 0x0000ffff)
    EXCHANGE(r, l, 2, 0x33333333)
    EXCHANGE(r, l, 8, 0x00ff00ff)
    EXCHANGE(l, r, 1, 0x55555555)
    for (pass = 0; pass < ctx->passes; pass++) {
        const uint32_t *k = ctx->key[pass];

        for (round = 0; round < 16; round += 2, k += 4) {
            ROUND(l, r, k)
            ROUND(r, l, k + 2)
        }
        /* The last round does not exchange the halves. */
        t = l;
        l = r;
        r = t;
    }
    EXCHANGE(l, r, 1, 0x55555555)
    EXCHANGE(r, l, 8, 0x00ff00ff)
    EXCHANGE(r, l, 2, 0x33333333)
    EXCHANGE(l, r, 16, 0x0000ffff)
    EXCHANGE(l, r, 4, 0x0f0f0f0f)
    cm_store32_be(out, l);
    cm_store32_be(out + 4, r);
}

/* The context has the keys in the order of use. */
void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    cm_encrypt(ctx, in, out);
}

CM_BLOCK_CIPHER(BLOCK)
