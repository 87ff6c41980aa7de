/*
 * Rijndael (AES) with the state in quadrants: a word holds two rows of two columns, in the
 * order (upper row, lower row) of the left and then of the right column, lowest byte first.
 * The four words are the upper left, upper right, lower left and lower right quadrant.
 *
 *     a: 0 2   b: 0 2        ShiftRows leaves the upper row of a quadrant where it is and
 *        1 3      1 3        draws the lower row of the upper quadrants by one column;
 *     c: 0 2   d: 0 2        the lower quadrants do the same with left and right exchanged,
 *        1 3      1 3        because their rows go two columns further.
 *
 * So SubBytes with ShiftRows makes a word from two words, and so does MixColumns: every
 * byte of a column's half depends on both halves. That is one function each for all four
 * quadrants, with the arguments exchanged. Blocks are put into quadrants when they come and
 * taken out of them when they leave, so the round keys of the rounds between are kept as
 * quadrants, the first and the last one as columns.
 */
#include "columns.h"

/* The low halves of two words, and the high ones. */
CM_INLINE uint32_t low_halves(uint32_t x, uint32_t y)
{
    return (x & 0xffff) | y << 16;
}

CM_INLINE uint32_t high_halves(uint32_t x, uint32_t y)
{
    return x >> 16 | (y & 0xffff0000);
}

/* The bytes 0, 3, 2 and 1 of four words. */
CM_INLINE uint32_t sub_quadrant(const uint8_t *box, uint32_t p, uint32_t q, uint32_t r, uint32_t s)
{
    return (uint32_t)box[cm_byte(p, 0)] | (uint32_t)box[cm_byte(q, 3)] << 8
        | (uint32_t)box[cm_byte(r, 2)] << 16 | (uint32_t)box[cm_byte(s, 1)] << 24;
}

/* SubBytes and ShiftRows: a quadrant from that in its place and the one beside it. */
CM_INLINE uint32_t sub(uint32_t here, uint32_t beside)
{
    return sub_quadrant(sbox, here, here, here, beside);
}

CM_INLINE uint32_t inverse_sub(uint32_t here, uint32_t beside)
{
    return sub_quadrant(inverse_sbox, here, beside, here, here);
}

/* In each half the upper byte of x and the lower one of y: x one row on, of the two. */
CM_INLINE uint32_t next_row(uint32_t x, uint32_t y)
{
    return (x >> 8 & 0x00ff00ff) | (y << 8 & 0xff00ff00);
}

/* MixColumns for the rows of `here`; 2(a0 + a1) + a1 + (a2 + a3) in each byte. */
CM_INLINE uint32_t mix(uint32_t here, uint32_t there)
{
    uint32_t next = next_row(here, there);
    return times_2(here ^ next) ^ next ^ there ^ next_row(there, here);
}

CM_INLINE uint32_t inverse_mix(uint32_t here, uint32_t there)
{
    uint32_t both = times_4(here ^ there);
    return mix(here ^ both, there ^ both);
}

static void keys_to_quadrants(struct cm_ctx *ctx)
{
    uint32_t *w = ctx->round_key + 4;
    uint32_t *end = ctx->round_key + 4 * ctx->rounds;
    uint32_t a, b, c, d;

    for (; w != end; w += 4) {
        a = w[0];
        b = w[1];
        c = w[2];
        d = w[3];
        w[0] = low_halves(a, b);
        w[1] = low_halves(c, d);
        w[2] = high_halves(a, b);
        w[3] = high_halves(c, d);
    }
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    expand_key(ctx, key, key_bytes);
    keys_to_quadrants(ctx);
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t *w = ctx->round_key + 4;
    uint32_t *end;
    uint32_t a, b, c, d;

    cm_keysetup(ctx, key, key_bytes);
    reverse_keys(ctx);
    for (end = ctx->round_key + 4 * ctx->rounds; w != end; w += 4) {
        a = w[0];
        b = w[1];
        c = w[2];
        d = w[3];
        w[0] = inverse_mix(a, c);
        w[1] = inverse_mix(b, d);
        w[2] = inverse_mix(c, a);
        w[3] = inverse_mix(d, b);
    }
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->round_key;
    const uint32_t *last = k + 4 * ctx->rounds;
    uint32_t e = cm_load32_le(in) ^ k[0];
    uint32_t f = cm_load32_le(in + 4) ^ k[1];
    uint32_t g = cm_load32_le(in + 8) ^ k[2];
    uint32_t h = cm_load32_le(in + 12) ^ k[3];
    uint32_t a = low_halves(e, f);
    uint32_t b = low_halves(g, h);
    uint32_t c = high_halves(e, f);
    uint32_t d = high_halves(g, h);

    k += 4;
    do {
        e = sub(a, b);
        f = sub(b, a);
        g = sub(d, c);
        h = sub(c, d);
        a = mix(e, g) ^ k[0];
        b = mix(f, h) ^ k[1];
        c = mix(g, e) ^ k[2];
        d = mix(h, f) ^ k[3];
        k += 4;
    } while (k != last);
    e = sub(a, b);
    f = sub(b, a);
    g = sub(d, c);
    h = sub(c, d);
    cm_store32_le(out, low_halves(e, g) ^ last[0]);
    cm_store32_le(out + 4, high_halves(e, g) ^ last[1]);
    cm_store32_le(out + 8, low_halves(f, h) ^ last[2]);
    cm_store32_le(out + 12, high_halves(f, h) ^ last[3]);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->round_key;
    const uint32_t *last = k + 4 * ctx->rounds;
    uint32_t e = cm_load32_le(in) ^ k[0];
    uint32_t f = cm_load32_le(in + 4) ^ k[1];
    uint32_t g = cm_load32_le(in + 8) ^ k[2];
    uint32_t h = cm_load32_le(in + 12) ^ k[3];
    uint32_t a = low_halves(e, f);
    uint32_t b = low_halves(g, h);
    uint32_t c = high_halves(e, f);
    uint32_t d = high_halves(g, h);

    k += 4;
    do {
        e = inverse_sub(a, b);
        f = inverse_sub(b, a);
        g = inverse_sub(d, c);
        h = inverse_sub(c, d);
        a = inverse_mix(e, g) ^ k[0];
        b = inverse_mix(f, h) ^ k[1];
        c = inverse_mix(g, e) ^ k[2];
        d = inverse_mix(h, f) ^ k[3];
        k += 4;
    } while (k != last);
    e = inverse_sub(a, b);
    f = inverse_sub(b, a);
    g = inverse_sub(d, c);
    h = inverse_sub(c, d);
    cm_store32_le(out, low_halves(e, g) ^ last[0]);
    cm_store32_le(out + 4, high_halves(e, g) ^ last[1]);
    cm_store32_le(out + 8, low_halves(f, h) ^ last[2]);
    cm_store32_le(out + 12, high_halves(f, h) ^ last[3]);
}

CM_BLOCK_CIPHER(16)
