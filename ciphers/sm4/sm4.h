/*
 * SM4 (GB/T 32907-2016) but for its round function, which each variant brings as
 *
 *     static uint32_t round_function(uint32_t x);    T: four S-boxes, then L
 *
 * 32 rounds of an unbalanced Feistel network on four words, big-endian; decryption is
 * encryption with the round keys backwards.
 */
#ifndef SM4_H
#define SM4_H

#include "../ciphermill.h"
#include "sbox.h"

#define ROUNDS 32

struct cm_ctx {
    uint32_t round_key[ROUNDS]; /* in the order of use */
};

/* The S-box applied to the four bytes of a word. */
CM_INLINE uint32_t sub_word(uint32_t x)
{
    return (uint32_t)sbox[cm_byte(x, 0)] | (uint32_t)sbox[cm_byte(x, 1)] << 8
        | (uint32_t)sbox[cm_byte(x, 2)] << 16 | (uint32_t)sbox[cm_byte(x, 3)] << 24;
}

/* Round key i goes to `first`, `first` + `step`, ... */
CM_INLINE void expand_key(struct cm_ctx *ctx, const uint8_t *key, uint32_t first, uint32_t step)
{
    static const uint32_t family[4] = {0xa3b1bac6, 0x56aa3350, 0x677d9197, 0xb27022dc};
    uint32_t k[4];
    uint32_t i, x, constant;

    for (i = 0; i < 4; i++)
        k[i] = cm_load32_be(key + 4 * i) ^ family[i];
    for (i = 0; i < ROUNDS; i++) {
        /* Byte j of constant i is 7 (4 i + j) modulo 256, the first on top. */
        constant = (28 * i & 0xff) << 24 | ((28 * i + 7) & 0xff) << 16
            | ((28 * i + 14) & 0xff) << 8 | ((28 * i + 21) & 0xff);
        x = sub_word(k[(i + 1) & 3] ^ k[(i + 2) & 3] ^ k[(i + 3) & 3] ^ constant);
        k[i & 3] ^= x ^ cm_rotl32(x, 13) ^ cm_rotl32(x, 23);
        ctx->round_key[first] = k[i & 3];
        first += step;
    }
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    (void)key_bytes;
    expand_key(ctx, key, 0, 1);
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    (void)key_bytes;
    expand_key(ctx, key, ROUNDS - 1, -(uint32_t)1);
}

#define SM4_ROUNDS                                                                         \
    void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)             \
    {                                                                                      \
        const uint32_t *k = ctx->round_key;                                                \
        uint32_t a = cm_load32_be(in), b = cm_load32_be(in + 4);                           \
        uint32_t c = cm_load32_be(in + 8), d = cm_load32_be(in + 12);                      \
        uint32_t i;                                                                        \
                                                                                           \
        for (i = 0; i < ROUNDS; i += 4, k += 4) {                                          \
            a ^= round_function(b ^ c ^ d ^ k[0]);                                         \
            b ^= round_function(c ^ d ^ a ^ k[1]);                                         \
            c ^= round_function(d ^ a ^ b ^ k[2]);                                         \
            d ^= round_function(a ^ b ^ c ^ k[3]);                                         \
        }                                                                                  \
        cm_store32_be(out, d);                                                             \
        cm_store32_be(out + 4, c);                                                         \
        cm_store32_be(out + 8, b);                                                         \
        cm_store32_be(out + 12, a);                                                        \
    }                                                                                      \
    void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)             \
    {                                                                                      \
        cm_encrypt(ctx, in, out);                                                          \
    }

#endif
