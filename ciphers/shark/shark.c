/*
 * SHARK (the variant E of the paper: round keys are XORed): six rounds on 8 bytes, a
 * 16-byte key.
 *
 * A round is eight S-boxes and a multiplication by an 8 by 8 matrix over GF(2^8): eight
 * lookups of 64-bit entries in 16 KB of tables a direction. The round keys are the key,
 * repeated, enciphered in CFB mode by SHARK with fixed round keys.
 */
#include "../ciphermill.h"
#include "tables.h"

#define ROUNDS 6

struct cm_ctx {
    uint64_t round_key[ROUNDS + 1]; /* in the order of use */
};

CM_INLINE uint32_t byte_of(uint64_t x, uint32_t n)
{
    return (uint32_t)(x >> (8 * n)) & 0xff;
}

CM_INLINE uint64_t substitute(const uint8_t *box, uint64_t x)
{
    uint64_t y = 0;
    uint32_t i;

    for (i = 0; i < 8; i++)
        y |= (uint64_t)box[byte_of(x, i)] << (8 * i);
    return y;
}

CM_INLINE uint64_t look_up(const uint64_t table[8][256], uint64_t x)
{
    return table[0][byte_of(x, 7)] ^ table[1][byte_of(x, 6)] ^ table[2][byte_of(x, 5)]
        ^ table[3][byte_of(x, 4)] ^ table[4][byte_of(x, 3)] ^ table[5][byte_of(x, 2)]
        ^ table[6][byte_of(x, 1)] ^ table[7][byte_of(x, 0)];
}

/* The inverse matrix: the decryption tables without the S-box inside them. */
static uint64_t inverse_matrix(uint64_t x)
{
    return look_up(decrypt_table, substitute(sbox, x));
}

CM_INLINE uint64_t rounds(const uint64_t *k, const uint64_t table[8][256], const uint8_t *box,
                          uint64_t x)
{
    uint32_t i;

    x ^= k[0];
    for (i = 1; i < ROUNDS; i++)
        x = look_up(table, x) ^ k[i];
    return substitute(box, x) ^ k[ROUNDS];
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint64_t fixed[ROUNDS + 1];
    uint64_t x = 0;
    uint32_t i;

    (void)key_bytes;
    for (i = 0; i < ROUNDS; i++)
        fixed[i] = encrypt_table[0][i];
    fixed[ROUNDS] = inverse_matrix(encrypt_table[0][ROUNDS]);
    for (i = 0; i <= ROUNDS; i++) {
        x = rounds(fixed, encrypt_table, sbox, x) ^ cm_load64_be(key + (8 * i & 15));
        ctx->round_key[i] = x;
    }
    ctx->round_key[ROUNDS] = inverse_matrix(ctx->round_key[ROUNDS]);
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint64_t *k = ctx->round_key;
    uint64_t t;
    uint32_t i;

    cm_keysetup(ctx, key, key_bytes);
    for (i = 0; i < ROUNDS - i; i++) {
        t = k[i];
        k[i] = k[ROUNDS - i];
        k[ROUNDS - i] = t;
    }
    for (i = 1; i < ROUNDS; i++)
        k[i] = inverse_matrix(k[i]);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    cm_store64_be(out, rounds(ctx->round_key, encrypt_table, sbox, cm_load64_be(in)));
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    cm_store64_be(out, rounds(ctx->round_key, decrypt_table, inverse_sbox, cm_load64_be(in)));
}

CM_BLOCK_CIPHER(8)
