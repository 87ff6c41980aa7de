/*
 * Salsa20: 20, 12 or 8 rounds (SALSA20_ROUNDS), keys of 16 or 32 bytes, an 8-byte IV.
 *
 * Sixteen words (four constants, key, IV, a 64-bit block counter) are stirred by additions,
 * rotations by constants and XORs, and added to what they were. No tables, no branches on
 * data. A block depends on nothing but its counter.
 */
#include "../ciphermill.h"

#ifndef SALSA20_ROUNDS
#define SALSA20_ROUNDS 20
#endif

#define BLOCK 64

struct cm_ctx {
    uint32_t state[16];
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
        ctx->state[5 * i] = constant[i];
        ctx->state[1 + i] = cm_load32_le(key + 4 * i);
        ctx->state[11 + i] = cm_load32_le(second + 4 * i);
    }
}

void cm_ivsetup(struct cm_ctx *ctx, const uint8_t *iv, uint32_t iv_bytes)
{
    (void)iv_bytes;
    ctx->state[6] = cm_load32_le(iv);
    ctx->state[7] = cm_load32_le(iv + 4);
    ctx->state[8] = 0;
    ctx->state[9] = 0;
    ctx->unused = 0;
}

CM_INLINE void quarter_round(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    *b ^= cm_rotl32(*a + *d, 7);
    *c ^= cm_rotl32(*b + *a, 9);
    *d ^= cm_rotl32(*c + *b, 13);
    *a ^= cm_rotl32(*d + *c, 18);
}

static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t x[16];
    uint32_t i;

#define LOAD(n) x[n] = ctx->state[n];
    CM_SIXTEEN(LOAD)
    for (i = 0; i < SALSA20_ROUNDS / 2; i++) {
        quarter_round(&x[0], &x[4], &x[8], &x[12]);
        quarter_round(&x[5], &x[9], &x[13], &x[1]);
        quarter_round(&x[10], &x[14], &x[2], &x[6]);
        quarter_round(&x[15], &x[3], &x[7], &x[11]);
        quarter_round(&x[0], &x[1], &x[2], &x[3]);
        quarter_round(&x[5], &x[6], &x[7], &x[4]);
        quarter_round(&x[10], &x[11], &x[8], &x[9]);
        quarter_round(&x[15], &x[12], &x[13], &x[14]);
    }
#define OUTPUT(n)                                                                          \
    cm_store32_le(out + 4 * (n), cm_load32_le(in + 4 * (n)) ^ (x[n] + ctx->state[n]));
    CM_SIXTEEN(OUTPUT)
    if (++ctx->state[8] == 0)
        ctx->state[9]++;
}

CM_KEYSTREAM(BLOCK, xor_block)
CM_STREAM_CIPHER(BLOCK)
