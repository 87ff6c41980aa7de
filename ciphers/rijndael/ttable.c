/*
 * Rijndael (AES) with four 1 KB tables a direction.
 *
 * SubBytes, ShiftRows and MixColumns of one column are four lookups and three XORs: table
 * n holds the S-box value of its index times column n of the MixColumns matrix. The four
 * are byte rotations of one another; keeping all of them trades 3 KB for three rotations
 * a column. The last round has no MixColumns and takes its bytes from the plain S-box.
 *
 * With ONE_TABLE only table 0 of each direction is kept: where an instruction rotates an
 * operand on the way, nothing is lost, and three registers with addresses are gained.
 */
#include "rijndael.h"
#include "ttables.h"

#ifdef ONE_TABLE
#define COLUMN(way, n, x) cm_rotl32(way##_0[x], 8 * (n))
#else
#define COLUMN(way, n, x) way##_##n[x]
#endif

/* The multiplication hidden in the decryption tables, freed of its inverse S-box. */
static uint32_t inverse_mix_column(uint32_t x)
{
    return COLUMN(decrypt, 0, sbox[cm_byte(x, 0)]) ^ COLUMN(decrypt, 1, sbox[cm_byte(x, 1)])
        ^ COLUMN(decrypt, 2, sbox[cm_byte(x, 2)]) ^ COLUMN(decrypt, 3, sbox[cm_byte(x, 3)]);
}

CM_INLINE uint32_t encrypt_column(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return COLUMN(encrypt, 0, cm_byte(a, 0)) ^ COLUMN(encrypt, 1, cm_byte(b, 1)) ^ COLUMN(encrypt, 2, cm_byte(c, 2))
        ^ COLUMN(encrypt, 3, cm_byte(d, 3));
}

CM_INLINE uint32_t decrypt_column(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return COLUMN(decrypt, 0, cm_byte(a, 0)) ^ COLUMN(decrypt, 1, cm_byte(b, 1)) ^ COLUMN(decrypt, 2, cm_byte(c, 2))
        ^ COLUMN(decrypt, 3, cm_byte(d, 3));
}

/* SubBytes and ShiftRows: one new column from one byte of each of four columns. */
CM_INLINE uint32_t sub_column(const uint8_t *box, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return (uint32_t)box[cm_byte(a, 0)] | (uint32_t)box[cm_byte(b, 1)] << 8
        | (uint32_t)box[cm_byte(c, 2)] << 16 | (uint32_t)box[cm_byte(d, 3)] << 24;
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    expand_key(ctx, key, key_bytes);
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    expand_key(ctx, key, key_bytes);
    invert_key(ctx, inverse_mix_column);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->round_key;
    uint32_t a = cm_load32_le(in) ^ k[0];
    uint32_t b = cm_load32_le(in + 4) ^ k[1];
    uint32_t c = cm_load32_le(in + 8) ^ k[2];
    uint32_t d = cm_load32_le(in + 12) ^ k[3];
    uint32_t round, e, f, g, h;

    for (round = ctx->rounds - 1; round != 0; round--) {
        k += 4;
        e = encrypt_column(a, b, c, d) ^ k[0];
        f = encrypt_column(b, c, d, a) ^ k[1];
        g = encrypt_column(c, d, a, b) ^ k[2];
        h = encrypt_column(d, a, b, c) ^ k[3];
        a = e;
        b = f;
        c = g;
        d = h;
    }
    cm_store32_le(out, sub_column(sbox, a, b, c, d) ^ k[4]);
    cm_store32_le(out + 4, sub_column(sbox, b, c, d, a) ^ k[5]);
    cm_store32_le(out + 8, sub_column(sbox, c, d, a, b) ^ k[6]);
    cm_store32_le(out + 12, sub_column(sbox, d, a, b, c) ^ k[7]);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->round_key;
    uint32_t a = cm_load32_le(in) ^ k[0];
    uint32_t b = cm_load32_le(in + 4) ^ k[1];
    uint32_t c = cm_load32_le(in + 8) ^ k[2];
    uint32_t d = cm_load32_le(in + 12) ^ k[3];
    uint32_t round, e, f, g, h;

    for (round = ctx->rounds - 1; round != 0; round--) {
        k += 4;
        e = decrypt_column(a, d, c, b) ^ k[0];
        f = decrypt_column(b, a, d, c) ^ k[1];
        g = decrypt_column(c, b, a, d) ^ k[2];
        h = decrypt_column(d, c, b, a) ^ k[3];
        a = e;
        b = f;
        c = g;
        d = h;
    }
    cm_store32_le(out, sub_column(inverse_sbox, a, d, c, b) ^ k[4]);
    cm_store32_le(out + 4, sub_column(inverse_sbox, b, a, d, c) ^ k[5]);
    cm_store32_le(out + 8, sub_column(inverse_sbox, c, b, a, d) ^ k[6]);
    cm_store32_le(out + 12, sub_column(inverse_sbox, d, c, b, a) ^ k[7]);
}

CM_BLOCK_CIPHER(16)
