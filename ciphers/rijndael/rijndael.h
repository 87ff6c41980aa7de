/*
 * What all variants of Rijndael have in common: the context and the key schedule.
 *
 * The state is four words, one a column of FIPS-197's state; byte 0 of the column (the
 * first in memory) is the least significant byte of its word.
 */
#ifndef RIJNDAEL_H
#define RIJNDAEL_H

#include "../ciphermill.h"
#include "sbox.h"

#ifndef RIJNDAEL_OWN_CONTEXT
struct cm_ctx {
    uint32_t round_key[60]; /* in the order of use: for decryption, last round first */
    uint32_t rounds;        /* 10, 12 or 14 */
};
#endif

/* The S-box applied to the four bytes of a word. */
CM_INLINE uint32_t sub_word(const uint8_t *box, uint32_t x)
{
    return (uint32_t)box[cm_byte(x, 0)] | (uint32_t)box[cm_byte(x, 1)] << 8
        | (uint32_t)box[cm_byte(x, 2)] << 16 | (uint32_t)box[cm_byte(x, 3)] << 24;
}

/* x to the power of 0, 1, 2 and so on in GF(2^8): FIPS-197, section 5.2. */
static const uint32_t round_constants[10] = {
    0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36,
};

/* What the first word of a round key gets of the last word of the one before. */
CM_INLINE uint32_t schedule_core(uint32_t last, uint32_t constant)
{
    return sub_word(sbox, cm_rotr32(last, 8)) ^ constant;
}

/*
 * FIPS-197, section 5.2, in steps of as many words as the key has, each of which takes one
 * round constant. With 192 bits the last step makes two words more than are used, with 256
 * bits it is half a step.
 */
static void expand_key(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t *w = ctx->round_key;
    const uint32_t *constant = round_constants;
    uint32_t a = w[0] = cm_load32_le(key);
    uint32_t b = w[1] = cm_load32_le(key + 4);
    uint32_t c = w[2] = cm_load32_le(key + 8);
    uint32_t d = w[3] = cm_load32_le(key + 12);
    uint32_t e, f, g, h;

    ctx->rounds = key_bytes / 4 + 6;
    if (key_bytes == 16) {
        do {
            w += 4;
            w[0] = a ^= schedule_core(d, *constant++);
            w[1] = b ^= a;
            w[2] = c ^= b;
            w[3] = d ^= c;
        } while (constant != round_constants + 10);
        return;
    }
    e = w[4] = cm_load32_le(key + 16);
    f = w[5] = cm_load32_le(key + 20);
    if (key_bytes == 24) {
        do {
            w += 6;
            w[0] = a ^= schedule_core(f, *constant++);
            w[1] = b ^= a;
            w[2] = c ^= b;
            w[3] = d ^= c;
            w[4] = e ^= d;
            w[5] = f ^= e;
        } while (constant != round_constants + 8);
        return;
    }
    g = w[6] = cm_load32_le(key + 24);
    h = w[7] = cm_load32_le(key + 28);
    for (;;) {
        w += 8;
        w[0] = a ^= schedule_core(h, *constant++);
        w[1] = b ^= a;
        w[2] = c ^= b;
        w[3] = d ^= c;
        if (constant == round_constants + 7)
            break;
        w[4] = e ^= sub_word(sbox, d);
        w[5] = f ^= e;
        w[6] = g ^= f;
        w[7] = h ^= g;
    }
}

/* Turns the order of the round keys round. */
CM_INLINE void reverse_keys(struct cm_ctx *ctx)
{
    uint32_t *w = ctx->round_key;
    uint32_t first, last, i, t;

    for (first = 0, last = 4 * ctx->rounds; first < last; first += 4, last -= 4) {
        for (i = 0; i < 4; i++) {
            t = w[first + i];
            w[first + i] = w[last + i];
            w[last + i] = t;
        }
    }
}

/*
 * Turns the encryption keys into those of the equivalent inverse cipher (FIPS-197, section
 * 5.3.5): the order reversed, all but the first and the last through InvMixColumns.
 */
CM_INLINE void invert_key(struct cm_ctx *ctx, uint32_t (*inverse_mix_column)(uint32_t))
{
    uint32_t *w = ctx->round_key;
    uint32_t i;

    reverse_keys(ctx);
    for (i = 4; i < 4 * ctx->rounds; i++)
        w[i] = inverse_mix_column(w[i]);
}

#endif
