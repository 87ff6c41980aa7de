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

struct cm_ctx {
    uint32_t round_key[60]; /* in the order of use: for decryption, last round first */
    uint32_t rounds;        /* 10, 12 or 14 */
};

/* The S-box applied to the four bytes of a word. */
CM_INLINE uint32_t sub_word(const uint8_t *box, uint32_t x)
{
    return (uint32_t)box[cm_byte(x, 0)] | (uint32_t)box[cm_byte(x, 1)] << 8
        | (uint32_t)box[cm_byte(x, 2)] << 16 | (uint32_t)box[cm_byte(x, 3)] << 24;
}

/* FIPS-197, section 5.2. */
static void expand_key(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t *w = ctx->round_key;
    uint32_t key_words = key_bytes / 4;
    uint32_t i, in_turn = 0, constant = 1, t = 0;

    ctx->rounds = key_words + 6;
    for (i = 0; i < key_words; i++)
        w[i] = t = cm_load32_le(key + 4 * i);
    for (; i < 4 * (ctx->rounds + 1); i++) {
        if (in_turn == 0) {
            t = sub_word(sbox, cm_rotr32(t, 8)) ^ constant;
            constant = constant << 1 ^ (constant >> 7) * 0x11b;
        } else if (in_turn == 4 && key_words == 8) {
            t = sub_word(sbox, t);
        }
        t ^= w[i - key_words];
        w[i] = t;
        if (++in_turn == key_words)
            in_turn = 0;
    }
}

/*
 * Turns the encryption keys into those of the equivalent inverse cipher (FIPS-197, section
 * 5.3.5): the order reversed, all but the first and the last through InvMixColumns.
 */
CM_INLINE void invert_key(struct cm_ctx *ctx, uint32_t (*inverse_mix_column)(uint32_t))
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
    for (i = 4; i < 4 * ctx->rounds; i++)
        w[i] = inverse_mix_column(w[i]);
}

#endif
