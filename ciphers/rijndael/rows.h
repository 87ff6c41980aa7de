/*
 * The state by rows: four words, each one row of FIPS-197's state, its first column in the
 * lowest byte. (G. Bertoni and others, Efficient Software Implementation of AES on 32-Bit
 * Platforms, CHES 2002.)
 *
 * The products of MixColumns then stand beside one another in different words, so nothing
 * is rotated, and its inverse multiplies two sums by four where columns need four. The S-box
 * brings each row's bytes to their places. Blocks are transposed when they come and when
 * they leave, and so is the key; the words of a round key are sums of those before them,
 * which here are bytes of one word.
 */
#ifndef RIJNDAEL_ROWS_H
#define RIJNDAEL_ROWS_H

#include "columns.h"

/* Bytes 0 and 2 of a and of b, and bytes 1 and 3. */
CM_INLINE uint32_t even_bytes(uint32_t a, uint32_t b)
{
    return (a & 0x00ff00ff) | (b & 0x00ff00ff) << 8;
}

CM_INLINE uint32_t odd_bytes(uint32_t a, uint32_t b)
{
    return (a >> 8 & 0x00ff00ff) | (b & 0xff00ff00);
}

/* Rows from columns, and columns from rows. */
CM_INLINE void transpose(uint32_t x[4])
{
    uint32_t a = even_bytes(x[0], x[1]);
    uint32_t b = odd_bytes(x[0], x[1]);
    uint32_t c = even_bytes(x[2], x[3]);
    uint32_t d = odd_bytes(x[2], x[3]);

    x[0] = (a & 0xffff) | c << 16;
    x[1] = (b & 0xffff) | d << 16;
    x[2] = a >> 16 | (c & 0xffff0000);
    x[3] = b >> 16 | (d & 0xffff0000);
}

CM_INLINE void load_rows(uint32_t x[4], const uint8_t *in)
{
    x[0] = cm_load32_le(in);
    x[1] = cm_load32_le(in + 4);
    x[2] = cm_load32_le(in + 8);
    x[3] = cm_load32_le(in + 12);
    transpose(x);
}

CM_INLINE void store_rows(uint8_t *out, uint32_t x[4])
{
    transpose(x);
    cm_store32_le(out, x[0]);
    cm_store32_le(out + 4, x[1]);
    cm_store32_le(out + 8, x[2]);
    cm_store32_le(out + 12, x[3]);
}

CM_INLINE void add_key(uint32_t x[4], const uint32_t *k)
{
    x[0] ^= k[0];
    x[1] ^= k[1];
    x[2] ^= k[2];
    x[3] ^= k[3];
}

/* The S-box of a row whose byte `first` comes to its lowest place. */
CM_INLINE uint32_t sub_row(const uint8_t *box, uint32_t row, uint32_t first)
{
    return (uint32_t)box[cm_byte(row, first)] | (uint32_t)box[cm_byte(row, (first + 1) & 3)] << 8
        | (uint32_t)box[cm_byte(row, (first + 2) & 3)] << 16
        | (uint32_t)box[cm_byte(row, (first + 3) & 3)] << 24;
}

CM_INLINE void sub(uint32_t x[4])
{
    x[0] = sub_row(sbox, x[0], 0);
    x[1] = sub_row(sbox, x[1], 1);
    x[2] = sub_row(sbox, x[2], 2);
    x[3] = sub_row(sbox, x[3], 3);
}

CM_INLINE void inverse_sub(uint32_t x[4])
{
    x[0] = sub_row(inverse_sbox, x[0], 0);
    x[1] = sub_row(inverse_sbox, x[1], 3);
    x[2] = sub_row(inverse_sbox, x[2], 2);
    x[3] = sub_row(inverse_sbox, x[3], 1);
}

/* Rows (02 03 01 01): 2(a0 + a1) + a1 + (a2 + a3). */
CM_INLINE void mix(uint32_t x[4])
{
    uint32_t a = x[0] ^ x[1];
    uint32_t b = x[1] ^ x[2];
    uint32_t c = x[2] ^ x[3];
    uint32_t d = x[3] ^ x[0];
    uint32_t first = x[0];

    x[0] = times_2(a) ^ x[1] ^ c;
    x[1] = times_2(b) ^ x[2] ^ d;
    x[2] = times_2(c) ^ x[3] ^ a;
    x[3] = times_2(d) ^ first ^ b;
}

CM_INLINE void inverse_mix(uint32_t x[4])
{
    uint32_t even = times_4(x[0] ^ x[2]);
    uint32_t odd = times_4(x[1] ^ x[3]);

    x[0] ^= even;
    x[1] ^= odd;
    x[2] ^= even;
    x[3] ^= odd;
    mix(x);
}

/* In each byte the sum of it and all below it. */
CM_INLINE uint32_t sums(uint32_t x)
{
    x ^= x << 8;
    return x ^ x << 16;
}

/* A round key from the one before. */
CM_INLINE void next_key(uint32_t k[4], uint32_t constant)
{
    uint32_t last = k[0] >> 24;

    k[0] = sums(k[0] ^ sbox[k[1] >> 24] ^ constant);
    k[1] = sums(k[1] ^ sbox[k[2] >> 24]);
    k[2] = sums(k[2] ^ sbox[k[3] >> 24]);
    k[3] = sums(k[3] ^ sbox[last]);
}

/* A round key from the one behind it. */
CM_INLINE void previous_key(uint32_t k[4], uint32_t constant)
{
    k[0] ^= k[0] << 8;
    k[1] ^= k[1] << 8;
    k[2] ^= k[2] << 8;
    k[3] ^= k[3] << 8;
    k[0] ^= sbox[k[1] >> 24] ^ constant;
    k[1] ^= sbox[k[2] >> 24];
    k[2] ^= sbox[k[3] >> 24];
    k[3] ^= sbox[k[0] >> 24];
}

/* Round keys that were expanded beforehand, by rows. */
CM_INLINE void expand_rows(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t i;

    expand_key(ctx, key, key_bytes);
    for (i = 0; i <= ctx->rounds; i++)
        transpose(ctx->round_key + 4 * i);
}

CM_INLINE void expand_rows_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t i;

    expand_rows(ctx, key, key_bytes);
    reverse_keys(ctx);
    for (i = 1; i < ctx->rounds; i++)
        inverse_mix(ctx->round_key + 4 * i);
}

CM_INLINE void encrypt_rows(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->round_key;
    const uint32_t *last = k + 4 * ctx->rounds;
    uint32_t x[4];

    load_rows(x, in);
    add_key(x, k);
    k += 4;
    do {
        sub(x);
        mix(x);
        add_key(x, k);
        k += 4;
    } while (k != last);
    sub(x);
    add_key(x, last);
    store_rows(out, x);
}

CM_INLINE void decrypt_rows(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->round_key;
    const uint32_t *last = k + 4 * ctx->rounds;
    uint32_t x[4];

    load_rows(x, in);
    add_key(x, k);
    k += 4;
    do {
        inverse_sub(x);
        inverse_mix(x);
        add_key(x, k);
        k += 4;
    } while (k != last);
    inverse_sub(x);
    add_key(x, last);
    store_rows(out, x);
}

#endif
