/*
 * The operations of a round on columns, four bytes in a word, with the two S-boxes as the
 * only tables; and blocks with round keys that were expanded beforehand.
 *
 * MixColumns works on a whole column at once: the four bytes of a word are doubled in
 * GF(2^8) together, by a shift with the reduction polynomial masked in where a top bit was
 * lost, and the circulant matrix is made of rotations of the word. The inverse matrix is
 * the forward one times a matrix that needs only multiples of four,
 *
 *     (0e 0b 0d 09) = (02 03 01 01) x (05 00 04 00),
 *
 * so decryption costs one more multiplication by four (gone through for four bytes at once
 * as well) and one more rotation a column.
 */
#ifndef RIJNDAEL_COLUMNS_H
#define RIJNDAEL_COLUMNS_H

#include "rijndael.h"

/*
 * Each byte of x times 2 in GF(2^8). The bit that leaves a byte comes back as the reduction
 * polynomial; one product does that for the four bytes, and compilers make shifts and
 * subtractions of it where a multiplication is slow.
 */
CM_INLINE uint32_t times_2(uint32_t x)
{
    return (x & 0x7f7f7f7f) << 1 ^ (x >> 7 & 0x01010101) * 0x1b;
}

/*
 * Each byte of x times 4. The two bits v that leave a byte come back as v(x) times the
 * reduction polynomial without its top term, x^4 + x^3 + x + 1 = (x^3 + 1)(x + 1).
 */
CM_INLINE uint32_t times_4(uint32_t x)
{
    uint32_t top = x & 0xc0c0c0c0;
    uint32_t back = top >> 6;
    back ^= back << 1;
    back ^= back << 3;
    return (x ^ top) << 2 ^ back;
}

/* Rows (02 03 01 01): 2(a0 + a1) + a1 + (a2 + a3) in each byte. */
CM_INLINE uint32_t mix_column(uint32_t x)
{
    uint32_t next = cm_rotr32(x, 8);
    uint32_t pair = x ^ next;
    return times_2(pair) ^ next ^ cm_rotr32(pair, 16);
}

CM_INLINE uint32_t inverse_mix_column(uint32_t x)
{
    return mix_column(x ^ times_4(x ^ cm_rotr32(x, 16)));
}

/* SubBytes and ShiftRows: one new column from one byte of each of four columns. */
CM_INLINE uint32_t sub_column(const uint8_t *box, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return (uint32_t)box[cm_byte(a, 0)] | (uint32_t)box[cm_byte(b, 1)] << 8
        | (uint32_t)box[cm_byte(c, 2)] << 16 | (uint32_t)box[cm_byte(d, 3)] << 24;
}

CM_INLINE void encrypt_expanded(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->round_key;
    uint32_t a = cm_load32_le(in) ^ k[0];
    uint32_t b = cm_load32_le(in + 4) ^ k[1];
    uint32_t c = cm_load32_le(in + 8) ^ k[2];
    uint32_t d = cm_load32_le(in + 12) ^ k[3];
    const uint32_t *last = k + 4 * ctx->rounds;
    uint32_t e, f, g, h;

    k += 4;
    do {
        e = mix_column(sub_column(sbox, a, b, c, d)) ^ k[0];
        f = mix_column(sub_column(sbox, b, c, d, a)) ^ k[1];
        g = mix_column(sub_column(sbox, c, d, a, b)) ^ k[2];
        h = mix_column(sub_column(sbox, d, a, b, c)) ^ k[3];
        a = e;
        b = f;
        c = g;
        d = h;
        k += 4;
    } while (k != last);
    cm_store32_le(out, sub_column(sbox, a, b, c, d) ^ last[0]);
    cm_store32_le(out + 4, sub_column(sbox, b, c, d, a) ^ last[1]);
    cm_store32_le(out + 8, sub_column(sbox, c, d, a, b) ^ last[2]);
    cm_store32_le(out + 12, sub_column(sbox, d, a, b, c) ^ last[3]);
}

CM_INLINE void decrypt_expanded(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->round_key;
    uint32_t a = cm_load32_le(in) ^ k[0];
    uint32_t b = cm_load32_le(in + 4) ^ k[1];
    uint32_t c = cm_load32_le(in + 8) ^ k[2];
    uint32_t d = cm_load32_le(in + 12) ^ k[3];
    const uint32_t *last = k + 4 * ctx->rounds;
    uint32_t e, f, g, h;

    k += 4;
    do {
        e = inverse_mix_column(sub_column(inverse_sbox, a, d, c, b)) ^ k[0];
        f = inverse_mix_column(sub_column(inverse_sbox, b, a, d, c)) ^ k[1];
        g = inverse_mix_column(sub_column(inverse_sbox, c, b, a, d)) ^ k[2];
        h = inverse_mix_column(sub_column(inverse_sbox, d, c, b, a)) ^ k[3];
        a = e;
        b = f;
        c = g;
        d = h;
        k += 4;
    } while (k != last);
    cm_store32_le(out, sub_column(inverse_sbox, a, d, c, b) ^ last[0]);
    cm_store32_le(out + 4, sub_column(inverse_sbox, b, a, d, c) ^ last[1]);
    cm_store32_le(out + 8, sub_column(inverse_sbox, c, b, a, d) ^ last[2]);
    cm_store32_le(out + 12, sub_column(inverse_sbox, d, c, b, a) ^ last[3]);
}

#endif
