/*
 * ChaCha: 20, 12 or 8 rounds (CHACHA_ROUNDS), keys of 16 or 32 bytes.
 *
 * An IV of 8 bytes leaves a 64-bit block counter, as D. J. Bernstein's ChaCha has it; one
 * of 12 bytes leaves 32 bits, as RFC 8439 has it. The counter starts at 0. Like Salsa20,
 * but each quarter round changes each of its words twice and keeps its rows aligned.
 */
#include "../ciphermill.h"

#ifndef CHACHA_ROUNDS
#define CHACHA_ROUNDS 20
#endif

#define BLOCK 64

struct cm_ctx {
    uint32_t state[16];
    uint32_t counter_words; /* 1 or 2: how far the block counter carries */
    CM_UNUSED_KEYSTREAM(BLOCK);
};

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    /* "expand 32-byte k" and "expand 16-byte k"; a short key is taken twice. */
    static const uint32_t sigma[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    static const uint32_t tau[4] = {0x61707865, 0x3120646e, 0x79622d36, 0x6b206574};
    const uint32_t *constant = key_bytes == 32 ? sigma : tau;
    const uint8_t *second = key_bytes == 32 ? key + 16 : key;
    uint32_t i;

    for (i = 0; i < 4; i++) {
        ctx->state[i] = constant[i];
        ctx->state[4 + i] = cm_load32_le(key + 4 * i);
        ctx->state[8 + i] = cm_load32_le(second + 4 * i);
    }
}

void cm_ivsetup(struct cm_ctx *ctx, const uint8_t *iv, uint32_t iv_bytes)
{
    uint32_t i;

    ctx->counter_words = 4 - iv_bytes / 4;
    for (i = 0; i < ctx->counter_words; i++)
        ctx->state[12 + i] = 0;
    for (; i < 4; i++, iv += 4)
        ctx->state[12 + i] = cm_load32_le(iv);
    ctx->unused = 0;
}

CM_INLINE void quarter_round(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    *a += *b;
    *d = cm_rotl32(*d ^ *a, 16);
    *c += *d;
    *b = cm_rotl32(*b ^ *c, 12);
    *a += *b;
    *d = cm_rotl32(*d ^ *a, 8);
    *c += *d;
    *b = cm_rotl32(*b ^ *c, 7);
}

static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t x[16];
    uint32_t i;

#define LOAD(n) x[n] = ctx->state[n];
    CM_SIXTEEN(LOAD)
    for (i = 0; i < CHACHA_ROUNDS / 2; i++) {
        quarter_round(&x[0], &x[4], &x[8], &x[12]);
        quarter_round(&x[1], &x[5], &x[9], &x[13]);
        quarter_round(&x[2], &x[6], &x[10], &x[14]);
        quarter_round(&x[3], &x[7], &x[11], &x[15]);
        quarter_round(&x[0], &x[5], &x[10], &x[15]);
        quarter_round(&x[1], &x[6], &x[11], &x[12]);
        quarter_round(&x[2], &x[7], &x[8], &x[13]);
        quarter_round(&x[3], &x[4], &x[9], &x[14]);
    }
#define OUTPUT(n)                                                                          \
    cm_store32_le(out + 4 * (n), cm_load32_le(in + 4 * (n)) ^ (x[n] + ctx->state[n]));
    CM_SIXTEEN(OUTPUT)
    if (++ctx->state[12] == 0 && ctx->counter_words == 2)
        ctx->state[13]++;
}

CM_KEYSTREAM(BLOCK, xor_block)
CM_STREAM_CIPHER(BLOCK)
