/*
 * Rijndael (AES) on words of 64 bits: two columns of the state to a word, the first of
 * them in its low half.
 *
 * The tables are those of the T-table variant. A round makes half a state from the two
 * halves, and the other half by the same function with the halves exchanged: ShiftRows
 * draws the rows round, and two columns on from a half stands the other one. On
 * processors with words of 32 bits this is the T-table variant with detours.
 */
#define RIJNDAEL_OWN_CONTEXT
#include <stdint.h>

struct cm_ctx {
    union {
        uint32_t round_key[60]; /* in the order of use: for decryption, last round first */
        uint64_t half_key[30];
    };
    uint32_t rounds; /* 10, 12 or 14 */
};

#include "rijndael.h"
#include "ttables.h"

/* Byte n of a word of eight, as an index. */
CM_INLINE uint32_t byte_of(uint64_t x, uint32_t n)
{
    return (uint32_t)(x >> 8 * n) & 0xff;
}

CM_INLINE uint64_t two_columns(uint32_t first, uint32_t second)
{
    return (uint64_t)second << 32 | first;
}

/* Half a round, without its key: the half that stands where `here` does. */
CM_INLINE uint64_t encrypt_half(uint64_t here, uint64_t there)
{
    return two_columns(encrypt_0[byte_of(here, 0)] ^ encrypt_1[byte_of(here, 5)]
            ^ encrypt_2[byte_of(there, 2)] ^ encrypt_3[byte_of(there, 7)],
        encrypt_0[byte_of(here, 4)] ^ encrypt_1[byte_of(there, 1)]
            ^ encrypt_2[byte_of(there, 6)] ^ encrypt_3[byte_of(here, 3)]);
}

CM_INLINE uint64_t decrypt_half(uint64_t here, uint64_t there)
{
    return two_columns(decrypt_0[byte_of(here, 0)] ^ decrypt_1[byte_of(there, 5)]
            ^ decrypt_2[byte_of(there, 2)] ^ decrypt_3[byte_of(here, 7)],
        decrypt_0[byte_of(here, 4)] ^ decrypt_1[byte_of(here, 1)]
            ^ decrypt_2[byte_of(there, 6)] ^ decrypt_3[byte_of(there, 3)]);
}

/* SubBytes and ShiftRows alone: eight bytes of the box, in their places. */
CM_INLINE uint64_t in_place(const uint8_t *box, uint64_t x, uint32_t from, uint32_t to)
{
    return (uint64_t)box[byte_of(x, from)] << 8 * to;
}

CM_INLINE uint64_t encrypt_last(uint64_t here, uint64_t there)
{
    return in_place(sbox, here, 0, 0) | in_place(sbox, here, 5, 1) | in_place(sbox, there, 2, 2)
        | in_place(sbox, there, 7, 3) | in_place(sbox, here, 4, 4) | in_place(sbox, there, 1, 5)
        | in_place(sbox, there, 6, 6) | in_place(sbox, here, 3, 7);
}

CM_INLINE uint64_t decrypt_last(uint64_t here, uint64_t there)
{
    return in_place(inverse_sbox, here, 0, 0) | in_place(inverse_sbox, there, 5, 1)
        | in_place(inverse_sbox, there, 2, 2) | in_place(inverse_sbox, here, 7, 3)
        | in_place(inverse_sbox, here, 4, 4) | in_place(inverse_sbox, here, 1, 5)
        | in_place(inverse_sbox, there, 6, 6) | in_place(inverse_sbox, there, 3, 7);
}

/* The multiplication hidden in the decryption tables, freed of its inverse S-box. */
CM_INLINE uint32_t inverse_mix_column(uint32_t x)
{
    return decrypt_0[sbox[cm_byte(x, 0)]] ^ decrypt_1[sbox[cm_byte(x, 1)]]
        ^ decrypt_2[sbox[cm_byte(x, 2)]] ^ decrypt_3[sbox[cm_byte(x, 3)]];
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    expand_key(ctx, key, key_bytes);
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint64_t *k = ctx->half_key;
    uint32_t i;

    expand_key(ctx, key, key_bytes);
    reverse_keys(ctx);
    for (i = 2; i < 2 * ctx->rounds; i++)
        k[i] = two_columns(inverse_mix_column((uint32_t)k[i]), inverse_mix_column((uint32_t)(k[i] >> 32)));
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint64_t *k = ctx->half_key;
    uint64_t a = cm_load64_le(in) ^ k[0];
    uint64_t b = cm_load64_le(in + 8) ^ k[1];
    uint32_t round;
    uint64_t c;

    for (round = ctx->rounds - 1; round != 0; round--) {
        k += 2;
        c = encrypt_half(a, b) ^ k[0];
        b = encrypt_half(b, a) ^ k[1];
        a = c;
    }
    cm_store64_le(out, encrypt_last(a, b) ^ k[2]);
    cm_store64_le(out + 8, encrypt_last(b, a) ^ k[3]);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint64_t *k = ctx->half_key;
    uint64_t a = cm_load64_le(in) ^ k[0];
    uint64_t b = cm_load64_le(in + 8) ^ k[1];
    uint32_t round;
    uint64_t c;

    for (round = ctx->rounds - 1; round != 0; round--) {
        k += 2;
        c = decrypt_half(a, b) ^ k[0];
        b = decrypt_half(b, a) ^ k[1];
        a = c;
    }
    cm_store64_le(out, decrypt_last(a, b) ^ k[2]);
    cm_store64_le(out + 8, decrypt_last(b, a) ^ k[3]);
}

CM_BLOCK_CIPHER(16)
