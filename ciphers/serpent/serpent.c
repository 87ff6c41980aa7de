/*
 * Serpent: 32 rounds on four 32-bit words; keys of 16, 24 or 32 bytes.
 *
 * Bitsliced by design: each round XORs a round key, applies one of eight 4-bit S-boxes to
 * 32 nibbles at once as Boolean operations on words, and mixes the words by rotations,
 * shifts and XORs. No tables at all, and long chains of dependent operations.
 *
 * Bytes are in the order that today's libraries and the NESSIE vectors use: words are
 * little-endian. The vectors of the AES submission print every string backwards.
 */
#include "sboxes.h"

struct cm_ctx {
    uint32_t round_key[33 * 4];
};

/* Thirty-two pre-keys become eight round keys; the S-boxes go round backwards from S3. */
#define EIGHT_KEYS(k)                                                                      \
    sbox_3((k));                                                                           \
    sbox_2((k) + 4);                                                                       \
    sbox_1((k) + 8);                                                                       \
    sbox_0((k) + 12);                                                                      \
    sbox_7((k) + 16);                                                                      \
    sbox_6((k) + 20);                                                                      \
    sbox_5((k) + 24);                                                                      \
    sbox_4((k) + 28)

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t padded[8];
    uint32_t *k = ctx->round_key;
    uint32_t i, w;

    /* A short key is lengthened by a one bit and zeros. */
    for (i = 0; i < 8; i++)
        padded[i] = 4 * i < key_bytes ? cm_load32_le(key + 4 * i) : 4 * i == key_bytes;
    for (i = 0; i < 33 * 4; i++) {
        w = (i < 8 ? padded[i] : k[i - 8]) ^ (i < 5 ? padded[i + 3] : k[i - 5])
            ^ (i < 3 ? padded[i + 5] : k[i - 3]) ^ (i < 1 ? padded[7] : k[i - 1]);
        k[i] = cm_rotl32(w ^ 0x9e3779b9 ^ i, 11);
    }
    for (i = 0; i < 4; i++, k += 32) {
        EIGHT_KEYS(k);
    }
    sbox_3(k);
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

CM_INLINE void add_key(uint32_t x[4], const uint32_t *k)
{
    x[0] ^= k[0];
    x[1] ^= k[1];
    x[2] ^= k[2];
    x[3] ^= k[3];
}

CM_INLINE void mix(uint32_t x[4])
{
    x[0] = cm_rotl32(x[0], 13);
    x[2] = cm_rotl32(x[2], 3);
    x[1] = cm_rotl32(x[1] ^ x[0] ^ x[2], 1);
    x[3] = cm_rotl32(x[3] ^ x[2] ^ x[0] << 3, 7);
    x[0] = cm_rotl32(x[0] ^ x[1] ^ x[3], 5);
    x[2] = cm_rotl32(x[2] ^ x[3] ^ x[1] << 7, 22);
}

CM_INLINE void inverse_mix(uint32_t x[4])
{
    x[2] = cm_rotr32(x[2], 22) ^ x[3] ^ x[1] << 7;
    x[0] = cm_rotr32(x[0], 5) ^ x[1] ^ x[3];
    x[3] = cm_rotr32(x[3], 7) ^ x[2] ^ x[0] << 3;
    x[1] = cm_rotr32(x[1], 1) ^ x[0] ^ x[2];
    x[2] = cm_rotr32(x[2], 3);
    x[0] = cm_rotr32(x[0], 13);
}

#define ROUND(n)                                                                           \
    add_key(x, k + 4 * (n));                                                               \
    sbox_##n(x);                                                                           \
    mix(x)

#define INVERSE_ROUND(n)                                                                   \
    inverse_mix(x);                                                                        \
    inverse_sbox_##n(x);                                                                   \
    add_key(x, k + 4 * (n))

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->round_key;
    const uint32_t *last = k + 3 * 32;
    uint32_t x[4];
    uint32_t i;

    for (i = 0; i < 4; i++)
        x[i] = cm_load32_le(in + 4 * i);
    for (;;) {
        ROUND(0);
        ROUND(1);
        ROUND(2);
        ROUND(3);
        ROUND(4);
        ROUND(5);
        ROUND(6);
        add_key(x, k + 28);
        sbox_7(x);
        if (k == last)
            break;
        mix(x);
        k += 32;
    }
    add_key(x, k + 32);
    for (i = 0; i < 4; i++)
        cm_store32_le(out + 4 * i, x[i]);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->round_key + 3 * 32;
    uint32_t x[4];
    uint32_t i;

    for (i = 0; i < 4; i++)
        x[i] = cm_load32_le(in + 4 * i);
    add_key(x, k + 32);
    for (;;) {
        inverse_sbox_7(x);
        add_key(x, k + 28);
        INVERSE_ROUND(6);
        INVERSE_ROUND(5);
        INVERSE_ROUND(4);
        INVERSE_ROUND(3);
        INVERSE_ROUND(2);
        INVERSE_ROUND(1);
        INVERSE_ROUND(0);
        if (k == ctx->round_key)
            break;
        inverse_mix(x);
        k -= 32;
    }
    for (i = 0; i < 4; i++)
        cm_store32_le(out + 4 * i, x[i]);
}

CM_BLOCK_CIPHER(16)
