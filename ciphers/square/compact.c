/*
 * SQUARE with the two S-boxes as its only tables, 256 bytes each, and the matrix in packed
 * arithmetic.
 *
 * The matrix is that of Rijndael, (02 03 01 01) and its rotations, over the field of another
 * polynomial. Its inverse is its third power, and its square has multiples of four only:
 *
 *     (0e 0b 0d 09) = (02 03 01 01) x (05 00 04 00).
 */
#include "../ciphermill.h"
#include "sbox.h"

#define ROUNDS 8

struct cm_ctx {
    uint32_t round_key[4 * (ROUNDS + 1)]; /* in the order of use */
};

/* Each byte of x times 2 in GF(2^8): 0xf5 is the polynomial without its top term. */
CM_INLINE uint32_t times_2(uint32_t x)
{
    return (x & 0x7f7f7f7f) << 1 ^ (x >> 7 & 0x01010101) * 0xf5;
}

/* Rows (02 03 01 01): 2(a0 + a1) + a1 + (a2 + a3) in each byte. */
CM_INLINE uint32_t multiply_row(uint32_t x)
{
    uint32_t next = cm_rotr32(x, 8);
    uint32_t pair = x ^ next;

    return times_2(pair) ^ next ^ cm_rotr32(pair, 16);
}

CM_INLINE uint32_t inverse_multiply_row(uint32_t x)
{
    return multiply_row(x ^ times_2(times_2(x ^ cm_rotr32(x, 16))));
}

/* The key evolution; the keys are not yet multiplied. */
static void expand_key(uint32_t *k, const uint8_t *key)
{
    uint32_t i, constant = 1;

    for (i = 0; i < 4; i++)
        k[i] = cm_load32_le(key + 4 * i);
    for (i = 0; i < ROUNDS; i++, k += 4) {
        k[4] = k[0] ^ cm_rotr32(k[3], 8) ^ constant;
        k[5] = k[1] ^ k[4];
        k[6] = k[2] ^ k[5];
        k[7] = k[3] ^ k[6];
        constant = constant << 1 ^ (constant >> 7) * 0x1f5;
    }
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t i;

    (void)key_bytes;
    expand_key(ctx->round_key, key);
    for (i = 0; i < 4 * ROUNDS; i++)
        ctx->round_key[i] = multiply_row(ctx->round_key[i]);
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t *k = ctx->round_key;
    uint32_t first, last, i, t;

    (void)key_bytes;
    expand_key(k, key);
    for (first = 0, last = 4 * ROUNDS; first < last; first += 4, last -= 4) {
        for (i = 0; i < 4; i++) {
            t = k[first + i];
            k[first + i] = k[last + i];
            k[last + i] = t;
        }
    }
    for (i = 4 * ROUNDS; i < 4 * (ROUNDS + 1); i++)
        k[i] = multiply_row(k[i]);
}

CM_INLINE uint32_t sub_row(const uint8_t *box, uint32_t a, uint32_t b, uint32_t c, uint32_t d,
                           uint32_t n)
{
    return (uint32_t)box[cm_byte(a, n)] | (uint32_t)box[cm_byte(b, n)] << 8
        | (uint32_t)box[cm_byte(c, n)] << 16 | (uint32_t)box[cm_byte(d, n)] << 24;
}

CM_INLINE uint32_t encrypt_row(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t n)
{
    return multiply_row(sub_row(sbox, a, b, c, d, n));
}

CM_INLINE uint32_t decrypt_row(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t n)
{
    return inverse_multiply_row(sub_row(inverse_sbox, a, b, c, d, n));
}

/* Seven rounds with the matrix and one without, in either direction. */
#define SQUARE_ROUNDS(row, box)                                                            \
    const uint32_t *k = ctx->round_key;                                                    \
    uint32_t a = cm_load32_le(in) ^ k[0];                                                  \
    uint32_t b = cm_load32_le(in + 4) ^ k[1];                                              \
    uint32_t c = cm_load32_le(in + 8) ^ k[2];                                              \
    uint32_t d = cm_load32_le(in + 12) ^ k[3];                                             \
    uint32_t round, e, f, g, h;                                                            \
                                                                                           \
    for (round = 1; round < ROUNDS; round++) {                                             \
        k += 4;                                                                            \
        e = row(a, b, c, d, 0) ^ k[0];                                                     \
        f = row(a, b, c, d, 1) ^ k[1];                                                     \
        g = row(a, b, c, d, 2) ^ k[2];                                                     \
        h = row(a, b, c, d, 3) ^ k[3];                                                     \
        a = e;                                                                             \
        b = f;                                                                             \
        c = g;                                                                             \
        d = h;                                                                             \
    }                                                                                      \
    cm_store32_le(out, sub_row(box, a, b, c, d, 0) ^ k[4]);                                \
    cm_store32_le(out + 4, sub_row(box, a, b, c, d, 1) ^ k[5]);                            \
    cm_store32_le(out + 8, sub_row(box, a, b, c, d, 2) ^ k[6]);                            \
    cm_store32_le(out + 12, sub_row(box, a, b, c, d, 3) ^ k[7]);

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    SQUARE_ROUNDS(encrypt_row, sbox)
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    SQUARE_ROUNDS(decrypt_row, inverse_sbox)
}

CM_BLOCK_CIPHER(16)
